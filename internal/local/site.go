package local

import (
	"context"
	"encoding/json"
	"fmt"

	"kaz/internal/azure"
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
func (s Site) resources(nodes int) []seed {
	subnet := s.network("virtualNetworks", s.VNet).Child("subnets", s.Subnet)
	ref := func(id azure.ID) object { return object{"id": id} }
	all := []seed{
		{s.group(), object{"location": s.Location}},
		{s.network("networkSecurityGroups", s.SecurityGroup), object{"location": s.Location}},
		{s.network("routeTables", s.RouteTable), object{"location": s.Location}},
		{s.network("virtualNetworks", s.VNet), object{"location": s.Location, "properties": object{
			"addressSpace": object{"addressPrefixes": []string{"10.240.0.0/16"}},
			"subnets": []object{{"name": s.Subnet, "properties": object{
				"addressPrefix":        "10.240.0.0/16",
				"networkSecurityGroup": ref(s.network("networkSecurityGroups", s.SecurityGroup)),
				"routeTable":           ref(s.network("routeTables", s.RouteTable)),
			}}},
		}}},
	}
	for i, share := range s.shares(nodes) {
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
						"ipConfigurations": []object{{"name": "ipconfig", "properties": object{"subnet": object{"id": subnet}, "primary": true}}},
					},
				}}},
			},
		},
	}
}

type seed struct {
	id   azure.ID
	body object
}

// lay creates what of the site does not exist yet and leaves the rest as it is.
func (s Site) lay(ctx context.Context, door interface {
	azure.Reader
	azure.Writer
}, nodes int,
) error {
	for _, r := range s.resources(nodes) {
		_, err := door.Get(ctx, r.id)
		if err == nil {
			continue
		}
		if !azure.IsNotFound(err) {
			return fmt.Errorf("read %s: %w", r.id, err)
		}
		body, err := json.Marshal(r.body)
		if err != nil {
			return fmt.Errorf("document of %s: %w", r.id, err)
		}
		if _, err := door.Put(ctx, azure.Write{ID: r.id, Body: body}); err != nil {
			return fmt.Errorf("create %s: %w", r.id, err)
		}
	}
	return nil
}

// scale makes the scale sets have so many instances together.
func (s Site) scale(ctx context.Context, door azure.Writer, nodes int) error {
	for i, share := range s.shares(nodes) {
		body, err := json.Marshal(object{"sku": object{"capacity": share}})
		if err != nil {
			return err
		}
		id := s.scaleSet(s.ScaleSets[i])
		if _, err := door.Patch(ctx, azure.Write{ID: id, Body: body}); err != nil {
			return fmt.Errorf("scale %s to %d: %w", id, share, err)
		}
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
