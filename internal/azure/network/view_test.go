package network_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// views puts each type's view over the document that it was read from and says
// what that changes.
var views = map[string]func(azure.Document) ([]azure.Change, error){
	network.LoadBalancers:     restate[network.LoadBalancer],
	network.PublicIPAddresses: restate[network.PublicIPAddress],
	network.SecurityGroups:    restate[network.SecurityGroup],
	network.Interfaces:        restate[network.Interface],
	network.RouteTables:       restate[network.RouteTable],
	compute.ScaleSets:         restate[compute.ScaleSet],
	compute.ScaleSetInstances: restate[compute.Instance],
}

func restate[P any](d azure.Document) ([]azure.Change, error) {
	view, err := azure.Decode[P](d)
	if err != nil {
		return nil, err
	}
	_, changes, err := azure.Overlay(d, view)
	return changes, err
}

// What Azure returns can be read and stated again without a change. This holds for both ways in which Azure writes
// lists of addresses, for its defaults, and for fields that the views do not know.
func TestViewsStateWhatTheyRead(t *testing.T) {
	for kind, doc := range map[string]string{
		network.LoadBalancers: `{"name":"lb","sku":{"name":"Standard","tier":"Regional"},"properties":{"resourceGuid":"g",
			"frontendIPConfigurations":[{"name":"f","properties":{"privateIPAllocationMethod":"Dynamic","publicIPAddress":{"id":"/p"},"loadBalancingRules":[{"id":"/r"}]}}],
			"backendAddressPools":[{"name":"b","properties":{"backendIPConfigurations":[{"id":"/c"}],"loadBalancingRules":[{"id":"/r"}]}}],
			"loadBalancingRules":[{"name":"r","properties":{"frontendIPConfiguration":{"id":"/f"},"frontendPort":80,"backendPort":80,"enableFloatingIP":false,"idleTimeoutInMinutes":4,"protocol":"Tcp","enableDestinationServiceEndpoint":false,"enableTcpReset":false,"loadDistribution":"Default","disableOutboundSnat":false,"backendAddressPool":{"id":"/b"},"backendAddressPools":[{"id":"/b"}],"probe":{"id":"/p"}}}],
			"probes":[{"name":"p","properties":{"protocol":"Http","port":80,"requestPath":"/","intervalInSeconds":15,"numberOfProbes":2,"probeThreshold":1}}],
			"inboundNatRules":[],"outboundRules":[{"name":"o","properties":{"frontendIPConfigurations":[{"id":"/f"}]}}],"inboundNatPools":[]}}`,
		network.PublicIPAddresses: `{"name":"p","zones":["1"],"properties":{"ipAddress":"40.121.142.104","publicIPAddressVersion":"IPv4","publicIPAllocationMethod":"Static","idleTimeoutInMinutes":4,"ipTags":[],"ddosSettings":{"protectionMode":"VirtualNetworkInherited"}},"sku":{"name":"Standard","tier":"Regional"}}`,
		network.SecurityGroups: `{"name":"n","properties":{"securityRules":[
			{"name":"one","properties":{"priority":500,"direction":"Inbound","access":"Allow","protocol":"*","sourcePortRange":"*","sourcePortRanges":[],"sourceAddressPrefix":"*","sourceAddressPrefixes":[],"destinationAddressPrefix":"*","destinationAddressPrefixes":[],"destinationPortRange":"22","destinationPortRanges":[]}},
			{"name":"many","properties":{"priority":501,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourcePortRange":"*","sourceAddressPrefixes":["10.0.0.0/8","11.0.0.0/8"],"destinationAddressPrefixes":["1.1.1.1","1.1.1.2"],"destinationPortRanges":["80"],"destinationApplicationSecurityGroups":[{"id":"/a"}]}}],"defaultSecurityRules":[{"name":"x"}]}}`,
		network.RouteTables: `{"name":"rt","properties":{"disableBgpRoutePropagation":false,"subnets":[{"id":"/s"}],
			"routes":[{"name":"a____102440024","etag":"e","properties":{"addressPrefix":"10.244.0.0/24","nextHopType":"VirtualAppliance","nextHopIpAddress":"10.240.0.4","hasBgpOverride":false}},
			{"name":"out","properties":{"addressPrefix":"0.0.0.0/0","nextHopType":"Internet","nextHopIpAddress":""}}]}}`,
		network.Interfaces:        `{"name":"n","properties":{"primary":true,"ipConfigurations":[{"name":"c","properties":{"privateIPAddress":"10.0.0.4","privateIPAllocationMethod":"Dynamic","subnet":{"id":"/s"},"primary":true,"privateIPAddressVersion":"IPv4"}}]}}`,
		compute.ScaleSets:         `{"name":"s","sku":{"name":"Standard_D2s_v3","tier":"Standard","capacity":3},"properties":{"orchestrationMode":"Uniform","virtualMachineProfile":{"osProfile":{"computerNamePrefix":"np"},"storageProfile":{"osDisk":{"osType":"Linux"}},"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,"enableAcceleratedNetworking":false,"dnsSettings":{"dnsServers":[]},"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":"/s"},"privateIPAddressVersion":"IPv4","loadBalancerBackendAddressPools":[{"id":"/b"}]}}]}}]}}}}`,
		compute.ScaleSetInstances: `{"name":"s_0","instanceId":"0","properties":{"latestModelApplied":true,"hardwareProfile":{},"networkProfileConfiguration":{"networkInterfaceConfigurations":[{"name":"n","properties":{"ipConfigurations":[{"name":"c","properties":{}}]}}]},"networkProfile":{"networkInterfaces":[{"id":"/n"}]}}}`,
	} {
		if changes, err := views[kind](azure.Document(doc)); err != nil || len(changes) > 0 {
			t.Errorf("%s: %v %v", kind, err, changes)
		}
	}
}

// The same holds for what was recorded from Azure.
func TestViewsStateWhatWasRecorded(t *testing.T) {
	files, err := filepath.Glob("../../../../shared/recordings/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Skip("there are no recordings beside this checkout")
	}
	seen := map[string]int{}
	for _, file := range files {
		for _, d := range recorded(t, file) {
			var head struct{ Type string }
			if json.Unmarshal(d, &head) != nil {
				continue
			}
			for kind, restate := range views {
				if !strings.EqualFold(head.Type, kind) {
					continue
				}
				seen[kind]++
				if changes, err := restate(d); err != nil || len(changes) > 0 {
					t.Errorf("%s in %s: %v %v", kind, file, err, changes)
				}
			}
		}
	}
	if len(seen) < len(views) {
		t.Errorf("of %d types only these were recorded: %v", len(views), seen)
	}
}

// recorded lists the documents that Azure returned, alone or in lists.
func recorded(t *testing.T, file string) []azure.Document {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cassette struct {
		Interactions []struct{ Response struct{ Body string } }
	}
	if err := yaml.Unmarshal(text, &cassette); err != nil {
		t.Fatal(file, err)
	}
	var docs []azure.Document
	for _, i := range cassette.Interactions {
		body := azure.Document(i.Response.Body)
		docs = append(docs, body)
		var list struct{ Value []azure.Document }
		if json.Unmarshal(body, &list) == nil {
			docs = append(docs, list.Value...)
		}
	}
	return docs
}
