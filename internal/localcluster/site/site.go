// Package site describes a local cluster in Azure: its resource group, network, address ranges and scale sets, and its
// azure.json. Layer L4.
package site

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// Site names the resources of a local cluster. Its azure.json refers to the same names.
type Site struct {
	Tenant        string   `json:"tenant"`
	Subscription  string   `json:"subscription"`
	ClusterName   string   `json:"clusterName"`
	ResourceGroup string   `json:"resourceGroup"`
	Location      string   `json:"location"`
	VNet          string   `json:"vnet"`
	Subnet        string   `json:"subnet"`
	SecurityGroup string   `json:"securityGroup"`
	RouteTable    string   `json:"routeTable"`
	ScaleSets     []string `json:"scaleSets"`
	// Gateway is the first application gateway, "" if the cluster has none.
	Gateway string `json:"gateway,omitempty"`
	// Gateways is the number of application gateways if the cluster has some. 0 means 1.
	Gateways int `json:"gateways,omitempty"`
	// IPFamilies are [IPv4], or [IPv4] and [IPv6] in a dual-stack cluster. Empty means IPv4.
	IPFamilies []string `json:"ipFamilies,omitempty"`
}

// New returns the site of a cluster with a number of scale sets.
func New(tenant, subscription string, scaleSets int) Site {
	s := Site{
		Tenant: tenant, Subscription: subscription,
		ClusterName: "kaz", ResourceGroup: "kaz", Location: "westeurope",
		VNet: "kaz-vnet", Subnet: "nodes", SecurityGroup: "kaz-nsg", RouteTable: "kaz-routes",
	}
	for i := range scaleSets {
		s.ScaleSets = append(s.ScaleSets, fmt.Sprintf("nodes%d", i))
	}
	return s
}

// Group returns the id of the resource group.
func (s Site) Group() azure.ID { return azure.GroupID(s.Subscription, s.ResourceGroup) }

// Network returns the id of a resource of Microsoft.Network.
func (s Site) Network(kind, name string) azure.ID {
	return s.Group().Resource("Microsoft.Network/"+kind, name)
}

// ScaleSet returns the id of a scale set.
func (s Site) ScaleSet(name string) azure.ID {
	return s.Group().Resource("Microsoft.Compute/virtualMachineScaleSets", name)
}

// shares spreads nodes over the scale sets. The first scale sets get the remainder.
func (s Site) shares(nodes int) []int {
	n := len(s.ScaleSets)
	shares := make([]int, n)
	for i := range shares {
		shares[i] = nodes / n
		if i < nodes%n {
			shares[i]++
		}
	}
	return shares
}

type object = map[string]any

// resources returns the documents of an empty cluster, each one behind the documents that it refers to.
func (s Site) resources(count int) []resource {
	subnet := s.Network("virtualNetworks", s.VNet).Child("subnets", s.Subnet)
	ref := func(id azure.ID) object { return object{"id": id} }
	nodes := object{
		"networkSecurityGroup": ref(s.Network("networkSecurityGroups", s.SecurityGroup)),
		"routeTable":           ref(s.Network("routeTables", s.RouteTable)),
	}
	// Azure has a field of its own for the range of a subnet with a single range.
	if ranges := s.SubnetRanges(); len(ranges) == 1 {
		nodes["addressPrefix"] = ranges[0]
	} else {
		nodes["addressPrefixes"] = ranges
	}
	all := []resource{
		{s.Group(), object{"location": s.Location}},
		{s.Network("networkSecurityGroups", s.SecurityGroup), object{"location": s.Location}},
		{s.Network("routeTables", s.RouteTable), object{"location": s.Location}},
		{s.Network("virtualNetworks", s.VNet), object{"location": s.Location, "properties": object{
			"addressSpace": object{"addressPrefixes": s.NetworkRanges()},
			"subnets":      []object{{"name": s.Subnet, "properties": nodes}},
		}}},
	}
	for i, share := range s.shares(count) {
		all = append(all, resource{s.ScaleSet(s.ScaleSets[i]), s.scaleSetModel(s.ScaleSets[i], subnet, share)})
	}
	return all
}

func (s Site) scaleSetModel(name string, subnet azure.ID, capacity int) object {
	return object{
		"location": s.Location,
		"sku":      object{"name": "Standard_D2s_v5", "tier": "Standard", "capacity": capacity},
		"zones":    []string{"1", "2", "3"},
		"properties": object{
			"orchestrationMode": "Uniform",
			"upgradePolicy":     object{"mode": "Manual"},
			"virtualMachineProfile": object{
				"osProfile": object{
					"computerNamePrefix": name + "-", "adminUsername": "kaz",
					"linuxConfiguration": object{"disablePasswordAuthentication": true},
				},
				"storageProfile": object{
					"osDisk":         object{"createOption": "FromImage", "managedDisk": object{"storageAccountType": "Premium_LRS"}},
					"imageReference": object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
				},
				"networkProfile": object{"networkInterfaceConfigurations": []object{{
					"name": "nic", "properties": object{
						"primary": true, "enableIPForwarding": true,
						"ipConfigurations": s.ipConfigurations(subnet),
					},
				}}},
			},
		},
	}
}

// ipConfigurations returns an IP configuration for each family. Azure allows only IPv4 in the primary one.
func (s Site) ipConfigurations(subnet azure.ID) []object {
	all := []object{{"name": "ipconfig", "properties": object{"subnet": object{"id": subnet}, "primary": true}}}
	if s.DualStack() {
		all = append(all,
			object{"name": "ipconfig-ipv6", "properties": object{"subnet": object{"id": subnet}, "privateIPAddressVersion": IPv6}})
	}
	return all
}

// resource is a document to create.
type resource struct {
	id   azure.ID
	body object
}

// client reads and writes Azure.
type client interface {
	azure.Reader
	azure.Writer
}

// created is called for a resource that was created, with the time that it took.
type created = func(azure.ID, time.Duration)

// Create creates the missing resources of the site, with a number of nodes over all scale sets. It scales existing
// scale sets to that number if scaleExisting is true. It calls created for each resource that it created.
func (s Site) Create(ctx context.Context, c client, nodes int, scaleExisting bool, created created) error {
	var sets errgroup.Group
	shares, all := s.shares(nodes), s.resources(nodes)
	first := len(all) - len(s.ScaleSets)
	for i, r := range all {
		if i < first {
			if _, err := r.create(ctx, c, created); err != nil {
				return err
			}
			continue
		}
		// Scale sets are slow and independent of each other.
		sets.Go(func() error {
			have, err := r.create(ctx, c, created)
			if err != nil || !scaleExisting {
				return err
			}
			return scale(ctx, c, have, shares[i-first])
		})
	}
	sets.Go(func() error { return s.createGateways(ctx, c, created) })
	return sets.Wait()
}

// create creates a missing resource and returns its document.
func (r resource) create(ctx context.Context, c client, created created) (azure.Document, error) {
	have, err := c.Get(ctx, r.id)
	if err == nil {
		return have, nil
	}
	if !azure.IsNotFound(err) {
		return nil, fmt.Errorf("read %s: %w", r.id, err)
	}
	body, err := json.Marshal(r.body)
	if err != nil {
		return nil, fmt.Errorf("document of %s: %w", r.id, err)
	}
	began := time.Now()
	if have, err = azure.Do(ctx, c, azure.Request{Verb: azure.Put, ID: r.id, Body: body}); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.id, err)
	}
	created(r.id, time.Since(began))
	return have, nil
}

// scale sets the capacity of a scale set, if it differs.
func scale(ctx context.Context, w azure.Writer, have azure.Document, instances int) error {
	set, err := azure.Decode[compute.ScaleSet](have)
	if err != nil {
		return err
	}
	if set.SKU != nil && set.SKU.Capacity != nil && *set.SKU.Capacity == int64(instances) {
		return nil
	}
	body, err := json.Marshal(object{"sku": object{"capacity": instances}})
	if err != nil {
		return err
	}
	if _, err := azure.Do(ctx, w, azure.Request{Verb: azure.Patch, ID: set.ID, Body: body}); err != nil {
		return fmt.Errorf("scale %s to %d: %w", set.ID, instances, err)
	}
	return nil
}

// CloudConfig returns the cluster's azure.json, for a client that logs in with a managed identity.
func (s Site) CloudConfig(endpoint string) map[string]any {
	return object{
		"cloud":                       "AzurePublicCloud",
		"resourceManagerEndpoint":     endpoint,
		"tenantId":                    s.Tenant,
		"subscriptionId":              s.Subscription,
		"resourceGroup":               s.ResourceGroup,
		"location":                    s.Location,
		"vmType":                      "vmss",
		"vnetName":                    s.VNet,
		"vnetResourceGroup":           s.ResourceGroup,
		"subnetName":                  s.Subnet,
		"securityGroupName":           s.SecurityGroup,
		"routeTableName":              s.RouteTable,
		"primaryScaleSetName":         s.ScaleSets[0],
		"loadBalancerSku":             "standard",
		"useManagedIdentityExtension": true,
		"useInstanceMetadata":         false,
	}
}
