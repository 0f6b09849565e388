package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/cmd/internal/access"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudconfig"
	"kaz/internal/plan/rights"
)

// checkRights finds out which rights are missing before anything is attempted, says so,
// and gives up where nothing can work. What one Service in a hundred may need by an
// annotation is not asked for.
func checkRights(ctx context.Context, c cloudconfig.Config, door *access.Doors, missing *prometheus.GaugeVec) ([]access.Lack, error) {
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	found := door.Rights(ctx, rights.Needed(featuresOf(c)...), placesOf(c))
	if found.Hopeless != nil {
		return nil, fmt.Errorf("azure does not let us work: %w", found.Hopeless)
	}
	for _, u := range found.Unknown {
		slog.WarnContext(ctx, "azure does not say which rights we have here, so what is missing shows when it is refused", "scope", u.At, "error", u.Err)
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

// newMissingRights is the metric of missing rights. Actions and scopes are those of the
// table and of azure.json.
func newMissingRights() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "kaz_azure_rights_missing", Help: "1 for each right that was found missing when the cloud configuration was read.",
	}, []string{"action", "scope"})
}

// featuresOf is what a configuration uses whatever Services say.
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

// placesOf is where a configuration has the scopes of rights.
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
		vnet.Resource = vnet.Resource.Child("subnets", c.SubnetName) // which has the rights on the network, too
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
