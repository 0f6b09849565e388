package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/plan/rights"
)

// checkRights logs which Azure rights are missing before any write is attempted. It returns an error
// if nothing can work. It does not check rights that only rare annotations need.
func checkRights(ctx context.Context, c cloudconfig.Config, client *access.Clients, missing *prometheus.GaugeVec) ([]access.Lack, error) {
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	found := client.Rights(ctx, rights.Needed(featuresOf(c)...), placesOf(c))
	if found.Hopeless != nil {
		return nil, fmt.Errorf("no azure access: %w", found.Hopeless)
	}
	for _, u := range found.Unknown {
		slog.WarnContext(ctx, "cannot read the rights at this scope: a missing right shows only when a request is denied", "scope", u.At,
			"error", u.Err)
	}
	missing.Reset()
	for _, l := range found.Missing {
		level := slog.LevelError
		if l.Degrades {
			level = slog.LevelWarn
		}
		slog.Log(ctx, level, "a right is missing", "action", l.Action, "scope", l.At, "needed_to", l.Why)
		missing.WithLabelValues(l.Action, string(l.At)).Set(1)
	}
	return found.Missing, nil
}

// newMissingRights returns the metric of missing rights. Its labels are bounded by the rights table
// and the scopes of azure.json.
func newMissingRights() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kaz_azure_rights_missing", Help: "1 for each right that was found missing when the cloud configuration was read.",
	}, []string{"action", "scope"})
}

// featuresOf returns the features that a configuration uses regardless of Services.
func featuresOf(c cloudconfig.Config) []rights.Feature {
	features := []rights.Feature{rights.Check, rights.Nodes, rights.Services}
	add := func(f rights.Feature, used bool) {
		if used {
			features = append(features, f)
		}
	}
	add(rights.SecurityGroup, c.SecurityGroupName != "")
	add(rights.InternalServices, c.VnetName != "")
	add(rights.Routes, c.RouteTableName != "")
	byAddress := c.LoadBalancerBackendPoolConfigurationType == cloudconfig.PoolNodeIP
	filled := c.PreConfiguredBackendPoolLoadBalancerTypes == cloudconfig.PreConfiguredAll
	add(rights.PoolsOfAddresses, byAddress && !filled)
	add(rights.PoolMigration, byAddress && !filled && c.EnableMigrateToIPBasedBackendPoolAPI)
	add(rights.PoolsOfInterfaces, !byAddress && !filled)
	return features
}

// placesOf returns the resource group or resource of each scope of the rights table.
func placesOf(c cloudconfig.Config) map[rights.Scope]access.Place {
	subscription := or(c.NetworkResourceSubscriptionID, c.SubscriptionID)
	group := func(name string) azure.ID { return azure.GroupID(subscription, or(name, c.ResourceGroup)) }
	one := func(groupName, fullType, name string) access.Place {
		p := access.Place{Group: group(groupName)}
		if name != "" {
			p.Resource = p.Group.Resource(fullType, name)
		}
		return p
	}
	vnet := one(c.VnetResourceGroup, network.VirtualNetworks, c.VnetName)
	if vnet.Resource != "" && c.SubnetName != "" {
		vnet.Resource = vnet.Resource.Child("subnets", c.SubnetName) // rights on the network apply to the subnet
	}
	places := map[rights.Scope]access.Place{
		rights.Machines:      {Group: azure.GroupID(c.SubscriptionID, c.ResourceGroup)},
		rights.LoadBalancers: {Group: group(c.LoadBalancerResourceGroup)},
		rights.PublicIPs:     {Group: group("")},
		rights.RouteTable:    one(c.RouteTableResourceGroup, network.RouteTables, c.RouteTableName),
	}
	if c.SecurityGroupName != "" {
		places[rights.SecurityGroups] = one(c.SecurityGroupResourceGroup, network.SecurityGroups, c.SecurityGroupName)
	}
	if c.VnetName != "" {
		places[rights.VirtualNetwork] = vnet
	}
	return places
}
