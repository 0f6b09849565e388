package cloudconfig

import (
	"slices"
	"strings"
	"testing"
)

func TestRateLimits(t *testing.T) {
	const (
		tables = "Microsoft.Network/routeTables"
		disks  = "microsoft.compute/DISKS"
	)
	for _, test := range []struct {
		name, doc, resource string
		want                Limit
		limited             bool
	}{
		{"off unless asked for", `{"cloudProviderRateLimitQPS":6}`, tables, Limit{}, false},
		{"the usual", `{"cloudProviderRateLimit":true}`, tables, Limit{Rate{1, 5}, Rate{1, 5}}, true},
		{"writes like reads", `{"cloudProviderRatelimit":true,"cloudProviderRateLimitQPS":6,"cloudProviderRateLimitBucket":20}`, tables,
			Limit{Rate{6, 20}, Rate{6, 20}}, true},
		{"writes of their own",
			`{"cloudProviderRateLimit":true,"CloudProviderRateLimitQPSWrite":0.5,"cloudProviderRateLimitBucketWrite":2}`, tables,
			Limit{Rate{1, 5}, Rate{0.5, 2}}, true},
		{"a client of its own", `{"routeTableRateLimit":{"cloudProviderRateLimit":true,"cloudProviderRateLimitQPS":10}}`, tables,
			Limit{Rate{10, 5}, Rate{10, 5}}, true},
		{"others stay free", `{"routeTableRateLimit":{"cloudProviderRateLimit":true}}`, disks, Limit{}, false},
		{"a client without", `{"cloudProviderRateLimit":true,"diskRateLimit":{"cloudProviderRateLimit":false}}`, disks, Limit{}, false},
		{"unsaid is general",
			`{"cloudProviderRateLimitQPS":3,"cloudProviderRateLimitBucket":7,"diskRateLimit":{"cloudProviderRateLimit":true,"cloudProviderRateLimitQPSWrite":9}}`, disks, Limit{Rate{3, 7}, Rate{9, 7}}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, warnings, err := Parse([]byte(test.doc))
			if err != nil || len(warnings) > 0 {
				t.Fatal(err, warnings)
			}
			got, limited := c.RateLimits().For(test.resource)
			if got.Limit != test.want || limited != test.limited {
				t.Errorf("%+v %t", got, limited)
			}
		})
	}
}

func TestTypesShareTheirLimit(t *testing.T) {
	c, _, err := Parse([]byte(`{"cloudProviderRateLimit":true,"routeRateLimit":{"cloudProviderRateLimit":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	for resource, key := range map[string]string{
		"Microsoft.Network/routeTables":                             "routeTableRateLimit",
		"Microsoft.Network/routeTables/routes":                      "routeRateLimit",
		"Microsoft.Network/virtualNetworks":                         "virtualNetworkRateLimit",
		"Microsoft.Network/virtualNetworks/subnets":                 "subnetsRateLimit",
		"microsoft.network/loadbalancers/backendaddresspools":       "loadBalancerRateLimit",
		"Microsoft.Compute/virtualMachineScaleSets/virtualMachines": "virtualMachineScaleSetRateLimit",
		"Microsoft.Compute/virtualMachines":                         "virtualMachineRateLimit",
		"Microsoft.Vault/vaults":                                    "microsoft.vault/vaults",
	} {
		if got, _ := c.RateLimits().For(resource); got.Key != key {
			t.Errorf("%s counts with %s", resource, got.Key)
		}
	}
}

func TestEveryClientIsAKey(t *testing.T) {
	names := make([]string, 0, 200)
	for _, k := range allKeys() {
		names = append(names, k.name)
	}
	// All rate limit objects that existing files may contain.
	for name := range strings.FieldsSeq(`routeRateLimit subnetsRateLimit interfaceRateLimit routeTableRateLimit loadBalancerRateLimit
		publicIPAddressRateLimit securityGroupRateLimit virtualMachineRateLimit storageAccountRateLimit diskRateLimit snapshotRateLimit
		virtualMachineScaleSetRateLimit virtualMachineSizesRateLimit availabilitySetRateLimit attachDetachDiskRateLimit
		containerServiceRateLimit deploymentRateLimit privateDNSRateLimit privateDNSZoneGroupRateLimit privateEndpointRateLimit
		privateLinkServiceRateLimit virtualNetworkRateLimit ipGroupRateLimit natGatewayRateLimit serviceGatewayRateLimit`) {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no key", name)
		}
	}
}
