package contract

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// TestViewsFitTheModels checks that kaz's views have the names and shapes of the official models: a
// view with all fields set passes the model without loss. All types share one frame around the
// properties, so each type lists the frame's fields that it lacks.
func TestViewsFitTheModels(t *testing.T) {
	const (
		ofInstances = "instanceId"
		ofEdges     = "extendedLocation"
		ofParts     = "zones of parts"
		ofAccounts  = "kind"
	)
	for _, c := range []struct {
		view, model reflect.Type
		foreign     []string
	}{
		{reflect.TypeFor[azure.Resource[network.LoadBalancer]](), reflect.TypeFor[armnetwork.LoadBalancer](),
			[]string{ofAccounts, ofInstances, "zones", "sku.capacity", ofParts}},
		{reflect.TypeFor[azure.Resource[network.PublicIPAddress]](), reflect.TypeFor[armnetwork.PublicIPAddress](),
			[]string{ofAccounts, ofInstances, "sku.capacity"}},
		{reflect.TypeFor[azure.Resource[network.SecurityGroup]](), reflect.TypeFor[armnetwork.SecurityGroup](),
			[]string{ofAccounts, ofInstances, ofEdges, "zones", "sku", ofParts}},
		{reflect.TypeFor[azure.Resource[network.Interface]](), reflect.TypeFor[armnetwork.Interface](),
			[]string{ofAccounts, ofInstances, "zones", "sku", ofParts}},
		{reflect.TypeFor[azure.Resource[compute.ScaleSet]](), reflect.TypeFor[armcompute.VirtualMachineScaleSet](),
			[]string{ofAccounts, ofInstances, "properties.virtualMachineProfile.osProfile.computerName"}},
		{reflect.TypeFor[azure.Resource[compute.Instance]](), reflect.TypeFor[armcompute.VirtualMachineScaleSetVM](),
			[]string{ofAccounts, ofEdges, "properties.osProfile.computerNamePrefix", "properties.virtualMachineScaleSet"}},
		{reflect.TypeFor[azure.Resource[compute.VirtualMachine]](), reflect.TypeFor[armcompute.VirtualMachine](),
			[]string{ofAccounts, ofInstances, "sku"}},
		{reflect.TypeFor[azure.Resource[network.PrivateLinkService]](), reflect.TypeFor[armnetwork.PrivateLinkService](),
			[]string{ofAccounts, ofInstances, "zones", "sku", ofParts}},
		{reflect.TypeFor[azure.Resource[network.Subnet]](), reflect.TypeFor[armnetwork.Subnet](),
			[]string{ofAccounts, ofInstances, ofEdges, "zones", "sku", "location", "tags"}},
		{reflect.TypeFor[azure.Resource[network.RouteTable]](), reflect.TypeFor[armnetwork.RouteTable](),
			[]string{ofAccounts, ofInstances, ofEdges, "zones", "sku", ofParts}},
	} {
		t.Run(c.model.String(), func(t *testing.T) {
			said := document(t, full(c.view, "").Interface())
			_, kept, err := throughModel(c.model, said)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			compare("", said, kept, func(path, what string) {
				if strings.Contains(path, ".loadBalancerBackendAddresses[].") &&
					(strings.HasSuffix(path, ".id") || strings.HasSuffix(path, ".etag")) {
					return // has a name and no identity of its own; the view reads neither
				}
				if strings.HasSuffix(path, "[].zones") && !strings.HasPrefix(path, "properties.frontendIPConfigurations[]") {
					path = ofParts
				}
				found[path] = true
				if what != unknown || !slices.Contains(c.foreign, path) {
					t.Errorf("%s: %s", path, what)
				}
			})
			for _, field := range c.foreign {
				if !found[field] {
					t.Errorf("%s is the type's own after all", field)
				}
			}
		})
	}
}

// TestDocumentsThatAreWritten checks that a document made by Overlay passes the model without loss.
func TestDocumentsThatAreWritten(t *testing.T) {
	self := balancerID("kubernetes")
	frontend := self.Child("frontendIPConfigurations", "a")
	want := azure.Resource[network.LoadBalancer]{
		Location: region, SKU: &azure.SKU{Name: "Standard"}, Tags: azure.Tags{"k8s-azure-cluster-name": "kaz"},
		Properties: network.LoadBalancer{
			FrontendIPConfigurations: []azure.Child[network.FrontendIPConfiguration]{{Name: "a",
				Properties: network.FrontendIPConfiguration{
					PublicIPAddress: azure.Ref(networkID("publicIPAddresses", "ip"))}}},
			BackendAddressPools: []azure.Child[network.BackendAddressPool]{{Name: "kubernetes"}},
			Probes: []azure.Child[network.Probe]{{Name: "a-TCP-80", Properties: network.Probe{
				Protocol: "Http", Port: 30080, RequestPath: "/healthz", IntervalInSeconds: 5, ProbeThreshold: 2}}},
			LoadBalancingRules: []azure.Child[network.LoadBalancingRule]{{Name: "a-TCP-80", Properties: network.LoadBalancingRule{
				Protocol: "Tcp", FrontendPort: 80, BackendPort: 80, EnableFloatingIP: new(true), EnableTCPReset: new(true),
				DisableOutboundSNAT: new(false), IdleTimeoutInMinutes: new(int32(4)), LoadDistribution: "Default",
				FrontendIPConfiguration: azure.Ref(frontend),
				BackendAddressPool:      azure.Ref(self.Child("backendAddressPools", "kubernetes")),
				Probe:                   azure.Ref(self.Child("probes", "a-TCP-80"))}}},
		},
	}
	made, changes, err := azure.Overlay(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if len(changes) == 0 {
		t.Error("a document out of nothing changes nothing")
	}
	said := document(t, made)
	_, kept, err := throughModel(reflect.TypeFor[armnetwork.LoadBalancer](), said)
	if err != nil {
		t.Fatal(err)
	}
	compare("", said, kept, func(path, what string) { t.Errorf("%s: %s", path, what) })

	var model armnetwork.LoadBalancer
	if err := json.Unmarshal(made, &model); err != nil {
		t.Fatal(err)
	}
	rule := model.Properties.LoadBalancingRules[0].Properties
	has(t, "port", rule.FrontendPort, 80)
	has(t, "floating IP", rule.EnableFloatingIP, true)
	has(t, "probe", rule.Probe.ID, string(self.Child("probes", "a-TCP-80")))
	has(t, "threshold", model.Properties.Probes[0].Properties.ProbeThreshold, 2)
	has(t, "address", model.Properties.FrontendIPConfigurations[0].Properties.PublicIPAddress.ID,
		string(networkID("publicIPAddresses", "ip")))
}

func document(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var said any
	if err := decoder.Decode(&said); err != nil {
		t.Fatal(err)
	}
	return said
}

// full is a value of the type in which every field is set.
func full(t reflect.Type, name string) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(full(t.Elem(), name))
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				v.Field(i).Set(full(field.Type, field.Name))
			}
		}
	case reflect.Slice:
		v.Set(reflect.Append(v, full(t.Elem(), name)))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.ValueOf("key").Convert(t.Key()), full(t.Elem(), name))
	case reflect.String:
		v.SetString("a " + name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(7)
	default:
		panic("a view with a field of type " + t.String() + ": " + name)
	}
	return v
}
