package local

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// Site is what a local cluster looks like in Azure. The names are those that its
// azure.json refers to.
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
	// IPFamilies are [IPv4], and [IPv6] in a dual-stack cluster; none stands for IPv4.
	IPFamilies []string `json:"ipFamilies,omitempty"`
}

// newSite is the site of a cluster with so many scale sets.
func newSite(tenant, subscription string, scaleSets int) Site {
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

func (s Site) group() azure.ID { return azure.GroupID(s.Subscription, s.ResourceGroup) }

func (s Site) network(kind, name string) azure.ID {
	return s.group().Resource("Microsoft.Network/"+kind, name)
}

func (s Site) scaleSet(name string) azure.ID {
	return s.group().Resource("Microsoft.Compute/virtualMachineScaleSets", name)
}

// shares spreads nodes over the scale sets, the first ones getting the rest.
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

// resources are the documents of an empty cluster's infrastructure, each after
// what it refers to.
func (s Site) resources(count int) []seed {
	subnet := s.network("virtualNetworks", s.VNet).Child("subnets", s.Subnet)
	ref := func(id azure.ID) object { return object{"id": id} }
	nodes := object{
		"networkSecurityGroup": ref(s.network("networkSecurityGroups", s.SecurityGroup)),
		"routeTable":           ref(s.network("routeTables", s.RouteTable)),
	}
	// Subnets of one range have it in another place.
	if ranges := s.subnetRanges(); len(ranges) == 1 {
		nodes["addressPrefix"] = ranges[0]
	} else {
		nodes["addressPrefixes"] = ranges
	}
	all := []seed{
		{s.group(), object{"location": s.Location}},
		{s.network("networkSecurityGroups", s.SecurityGroup), object{"location": s.Location}},
		{s.network("routeTables", s.RouteTable), object{"location": s.Location}},
		{s.network("virtualNetworks", s.VNet), object{"location": s.Location, "properties": object{
			"addressSpace": object{"addressPrefixes": s.networkRanges()},
			"subnets":      []object{{"name": s.Subnet, "properties": nodes}},
		}}},
	}
	for i, share := range s.shares(count) {
		all = append(all, seed{s.scaleSet(s.ScaleSets[i]), s.scaleSetModel(s.ScaleSets[i], subnet, share)})
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

// ipConfigurations give an interface an address of each family. That of IPv6 cannot be
// the primary one.
func (s Site) ipConfigurations(subnet azure.ID) []object {
	all := []object{{"name": "ipconfig", "properties": object{"subnet": object{"id": subnet}, "primary": true}}}
	if s.dualStack() {
		all = append(all, object{"name": "ipconfig-ipv6", "properties": object{"subnet": object{"id": subnet}, "privateIPAddressVersion": IPv6}})
	}
	return all
}

type seed struct {
	id   azure.ID
	body object
}

// door is what laying a site takes.
type door interface {
	azure.Reader
	azure.Writer
}

// lay creates what of the site does not exist yet, and makes the scale sets have so
// many instances together where that is wanted. made is told of what was created
// and how long it took.
func (s Site) lay(ctx context.Context, d door, nodes int, exactly bool, made func(azure.ID, time.Duration)) error {
	var sets errgroup.Group
	shares, all := s.shares(nodes), s.resources(nodes)
	first := len(all) - len(s.ScaleSets)
	for i, r := range all {
		if i < first {
			if _, err := create(ctx, d, r, made); err != nil {
				return err
			}
			continue
		}
		// The scale sets take long and do not need each other.
		sets.Go(func() error {
			have, err := create(ctx, d, r, made)
			if err != nil || !exactly {
				return err
			}
			return scale(ctx, d, have, shares[i-first])
		})
	}
	return sets.Wait()
}

// create makes a resource that does not exist yet and returns it as it is now.
func create(ctx context.Context, d door, r seed, made func(azure.ID, time.Duration)) (azure.Document, error) {
	have, err := d.Get(ctx, r.id)
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
	if have, err = d.Put(ctx, azure.Write{ID: r.id, Body: body}); err != nil {
		return nil, fmt.Errorf("create %s: %w", r.id, err)
	}
	made(r.id, time.Since(began))
	return have, nil
}

// scale makes a scale set have so many instances, if it has not.
func scale(ctx context.Context, d azure.Writer, have azure.Document, instances int) error {
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
	if _, err := d.Patch(ctx, azure.Write{ID: set.ID, Body: body}); err != nil {
		return fmt.Errorf("scale %s to %d: %w", set.ID, instances, err)
	}
	return nil
}

// cloudConfig is the cluster's azure.json, for a client that gets its tokens from
// a managed identity.
func (s Site) cloudConfig(endpoint string) object {
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
