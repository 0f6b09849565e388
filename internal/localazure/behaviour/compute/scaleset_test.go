package compute_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core"
)

func TestAScaleSetMakesInstancesWithDisksAndInterfaces(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 3, zones: []string{"1", "2", "3"}, tags: behaviour.Object{"pool": "np"}})
	doc := w.get(set)
	w.want(doc, "properties.provisioningState", "Succeeded")
	w.want(doc, "sku.tier", "Standard")
	w.want(doc, "etag", `"1"`)
	w.want(doc, "properties.orchestrationMode", "Uniform")
	for _, secret := range []string{"properties.virtualMachineProfile.osProfile.adminPassword",
		"properties.virtualMachineProfile.osProfile.customData", "runtime"} {
		w.want(doc, secret, nil)
	}
	instances := w.list(set + "/virtualMachines?$expand=instanceView")
	if len(instances) != 3 {
		t.Fatalf("%d instances, want 3", len(instances))
	}
	for n, i := range instances {
		w.want(i, "name", fmt.Sprintf("np_%d", n))
		w.want(i, "instanceId", strconv.Itoa(n))
		w.want(i, "zones", []any{strconv.Itoa(n + 1)})
		w.want(i, "tags.pool", "np")
		w.want(i, "etag", `"1"`)
		w.want(i, "properties.osProfile.computerName", fmt.Sprintf("aks-np-vmss%06d", n))
		w.want(i, "properties.latestModelApplied", true)
		if got, want := states(behaviour.Sub(i, "properties.instanceView")),
			[]string{"ProvisioningState/succeeded", "PowerState/running"}; !slices.Equal(got, want) {
			t.Errorf("statuses of instance %d: %v, want %v", n, got, want)
		}
		w.want(i, "runtime", nil)
		interfaceID := fmt.Sprintf("%s/virtualMachines/%d/networkInterfaces/nic", set, n)
		w.want(i, "properties.networkProfile.networkInterfaces", []any{behaviour.Object{"id": interfaceID}})
		iface := w.get(strings.Replace(interfaceID, "Microsoft.Compute", "microsoft.Compute", 1))
		w.want(iface, "properties.virtualMachine.id", fmt.Sprintf("%s/virtualMachines/%d", set, n))
		w.want(iface, "properties.primary", true)
		w.want(behaviour.Objects(iface, "properties.ipConfigurations")[0], "properties.privateIPAddress", fmt.Sprintf("10.0.0.%d", n+4))
		osDisk := w.get(behaviour.Text(i, "properties.storageProfile.osDisk.managedDisk.id"))
		w.want(osDisk, "managedBy", fmt.Sprintf("%s/virtualMachines/np_%d", set, n))
		w.want(osDisk, "properties.diskState", "Attached")
	}
	if n := len(w.list(set + "/networkInterfaces")); n != 3 {
		t.Errorf("the scale set has %d interfaces in its list, want 3", n)
	}
	if n := len(behaviour.Array(w.get(subnet), "properties.ipConfigurations")); n != 3 {
		t.Errorf("the subnet shows %d addresses in use, want 3", n)
	}
}

func TestComputerNamesCountInBase36(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 40})
	instances := w.list(set + "/virtualMachines")
	for n, want := range map[int]string{9: "aks-np-vmss000009", 10: "aks-np-vmss00000a", 35: "aks-np-vmss00000z", 36: "aks-np-vmss000010"} {
		w.want(instances[n], "properties.osProfile.computerName", want)
	}
}

// states returns the status codes of an instance view.
func states(view behaviour.Object) []string {
	var codes []string
	for _, s := range behaviour.Objects(view, "statuses") {
		codes = append(codes, behaviour.Text(s, "code"))
	}
	return codes
}

func TestScaleInOrder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		zones []string
		rule  string
		from  int
		to    int
		stay  string
	}{
		{"newest by default", nil, "", 4, 2, "0 1"},
		{"zones stay balanced", []string{"1", "2", "3"}, "", 4, 3, "0 1 2"},
		{"newest of every zone", []string{"1", "2"}, "", 6, 2, "0 1"},
		{"oldest by rule", nil, "OldestVM", 4, 2, "2 3"},
		{"newest by rule", nil, "NewestVM", 4, 1, "0"},
		{"all", nil, "", 3, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newSubscription(t, core.Options{})
			m := model{capacity: tt.from, zones: tt.zones}
			if tt.rule != "" {
				m.extra = behaviour.Object{"scaleInPolicy": behaviour.Object{"rules": []any{tt.rule}}}
			}
			w.scaleSet(m)
			w.must("PATCH", set, fmt.Sprintf(`{"sku":{"capacity":%d}}`, tt.to))
			if got := strings.Join(w.instanceIDs(), " "); got != tt.stay {
				t.Errorf("instances %q stay, want %q", got, tt.stay)
			}
			w.want(w.get(set), "sku.capacity", tt.to)
			if n := len(w.list(group + "/providers/Microsoft.Compute/disks")); n != tt.to {
				t.Errorf("%d disks are left for %d instances", n, tt.to)
			}
		})
	}
}

func TestInstanceIDsAreNeverReused(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 2})
	w.must("DELETE", set+"/virtualMachines/1", "")
	w.want(w.get(set), "sku.capacity", 1)
	w.must("POST", set+"/delete", `{"instanceIds":["0"]}`)
	w.want(w.get(set), "sku.capacity", 0)
	w.must("PATCH", set, `{"sku":{"capacity":2}}`)
	if got := w.instanceIDs(); !slices.Equal(got, []string{"2", "3"}) {
		t.Errorf("instances %v, want 2 and 3", got)
	}
	w.refused("POST", set+"/delete", `{"instanceIds":["1"]}`, 400, "InvalidParameter")
	for _, etag := range []string{"*", `"1"`} { // the answer does not depend on the condition
		got := w.do("PUT", set+"/virtualMachines/1", `{"location":"eastus"}`, "If-Match", etag)
		w.want(got.Body, "error.message", "The provided instanceId 1 is not an active Virtual Machine Scale Set VM instanceId.")
		if got.Status != 400 || got.Code() != "InvalidParameter" {
			t.Errorf("If-Match %s: %d %s", etag, got.Status, got.Code())
		}
	}
	w.refused("POST", set+"/delete", `{}`, 400, "InvalidParameter")
	w.refused("POST", set+"/delete", `{"instanceIds":[]}`, 400, "InvalidParameter")
	w.refused("POST", set+"/delete", `{"instanceIds":[2]}`, 400, "InvalidRequestContent")
	w.refused("POST", set+"/restart", `{"instanceIds":["99"]}`, 400, "InvalidParameter")
	w.must("POST", set+"/delete", `{"instanceIds":["*"]}`)
	if got := w.instanceIDs(); len(got) != 0 {
		t.Errorf("instances %v after all were deleted", got)
	}
}

func TestAProtectedInstanceStays(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 3})
	w.must("PUT", set+"/virtualMachines/2", `{"location":"eastus","properties":{"protectionPolicy":{"protectFromScaleIn":true}}}`)
	w.must("PATCH", set, `{"sku":{"capacity":1}}`)
	if got := w.instanceIDs(); !slices.Equal(got, []string{"2"}) {
		t.Errorf("instances %v, want the protected one", got)
	}
	w.must("PATCH", set, `{"sku":{"capacity":0}}`)
	w.want(w.get(set), "sku.capacity", 1)
}

func TestModelReachesInstancesByUpgrade(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.balancer()
	w.scaleSet(model{capacity: 2})
	// The cloud provider sends a part of the document.
	full := model{pools: []string{pool}}.object()
	part := behaviour.Object{"location": "eastus", "properties": behaviour.Object{"virtualMachineProfile": behaviour.Object{
		"networkProfile": behaviour.At(full, "properties.virtualMachineProfile.networkProfile")}}}
	w.must("PUT", set, text(part), "If-Match", `"1"`)
	doc := w.get(set)
	w.want(doc, "sku.capacity", 2)
	w.want(doc, "etag", `"2"`)
	w.want(doc, "properties.virtualMachineProfile.osProfile.adminUsername", "azureuser")
	for _, i := range w.list(set + "/virtualMachines") {
		w.want(i, "properties.latestModelApplied", false)
	}
	if got := w.members(); len(got) != 0 {
		t.Errorf("pool has %v before the upgrade", got)
	}
	address := func() any {
		iface := w.get(set + "/virtualMachines/1/networkInterfaces/nic")
		return behaviour.At(behaviour.Objects(iface, "properties.ipConfigurations")[0], "properties.privateIPAddress")
	}
	before := address()
	w.must("POST", set+"/manualupgrade", `{"instanceIds":["1"]}`)
	if got, want := w.members(), []string{"1/networkInterfaces/nic/ipConfigurations/ip"}; !slices.Equal(got, want) {
		t.Errorf("pool has %v, want %v", got, want)
	}
	w.want(w.get(first), "properties.latestModelApplied", false)
	upgraded := w.get(set + "/virtualMachines/1")
	w.want(upgraded, "properties.latestModelApplied", true)
	w.want(upgraded, "properties.provisioningState", "Succeeded")
	if after := address(); after != before {
		t.Errorf("the upgrade changed the address from %v to %v", before, after)
	}
	if got := len(w.list(set + "/virtualMachines?$filter=latestModelApplied eq false")); got != 1 {
		t.Errorf("%d instances have an old model by the filter, want 1", got)
	}
}

func TestAnInstanceCanHaveItsOwnNetwork(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.balancer()
	w.scaleSet(model{capacity: 2})
	configs := behaviour.At(model{pools: []string{pool}}.object(), "properties.virtualMachineProfile.networkProfile")
	body := text(behaviour.Object{"location": "eastus", "properties": behaviour.Object{
		"hardwareProfile": behaviour.Object{}, "networkProfileConfiguration": configs}})
	if got := w.do("PUT", first, body, "If-Match", `"7"`); got.Status != 412 {
		t.Errorf("an old etag is answered with %d %v", got.Status, got.Body)
	}
	if got := w.must("PUT", first, body, "If-Match", `"1"`); got.Status != 200 {
		t.Errorf("update of an instance: %d", got.Status)
	}
	if got, want := w.members(), []string{"0/networkInterfaces/nic/ipConfigurations/ip"}; !slices.Equal(got, want) {
		t.Errorf("pool has %v, want %v", got, want)
	}
	i := w.get(first)
	w.want(i, "properties.latestModelApplied", false)
	w.want(i, "properties.modelDefinitionApplied", "VirtualMachine")
	w.must("PUT", set, model{capacity: 2, pools: []string{pool}}.json())
	w.want(w.get(first), "properties.latestModelApplied", true)
	w.want(w.get(set+"/virtualMachines/1"), "properties.latestModelApplied", false)
	w.must("PUT", first, text(behaviour.Object{"properties": behaviour.Object{
		"networkProfileConfiguration": behaviour.At(model{}.object(), "properties.virtualMachineProfile.networkProfile")}}))
	if got := w.members(); len(got) != 0 {
		t.Errorf("pool has %v after the instance left it", got)
	}
}

func TestAutomaticPolicyUpgradesInstances(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.balancer()
	w.scaleSet(model{capacity: 2, policy: "Automatic"})
	w.scaleSet(model{capacity: 3, policy: "Automatic", pools: []string{pool}})
	if got := len(w.members()); got != 3 {
		t.Errorf("%d addresses in the pool, want 3", got)
	}
}

func TestPower(t *testing.T) {
	for _, tt := range []struct{ action, power, diskState string }{
		{"powerOff", "stopped", "Attached"},
		{"deallocate", "deallocated", "Reserved"},
		{"start", "running", "Attached"},
		{"restart", "running", "Attached"},
		{"redeploy", "running", "Attached"},
		{"reimage", "running", "Attached"},
	} {
		for _, path := range []string{first + "/" + tt.action, set + "/" + strings.ToLower(tt.action)} {
			t.Run(tt.action, func(t *testing.T) {
				w := newSubscription(t, core.Options{})
				w.scaleSet(model{capacity: 1})
				if got := w.must("POST", path, ""); got.Status != 202 {
					t.Errorf("POST %s: %d", path, got.Status)
				}
				view := w.get(first + "/instanceView")
				if got, want := states(view), []string{"ProvisioningState/succeeded", "PowerState/" + tt.power}; !slices.Equal(got, want) {
					t.Errorf("statuses %v, want %v", got, want)
				}
				w.want(w.list(group + "/providers/Microsoft.Compute/disks")[0], "properties.diskState", tt.diskState)
				w.Look(func(subscription behaviour.World) {
					doc, _ := subscription.Get(azure.ID(first))
					if got := vm.PowerOf(doc); got != tt.power {
						t.Errorf("PowerOf the stored instance is %q, want %q", got, tt.power)
					}
				})
				summary := behaviour.Objects(w.get(set+"/instanceView"), "virtualMachine.statusesSummary")
				w.want(summary[0], "code", "ProvisioningState/succeeded")
				w.want(summary[1], "code", "PowerState/"+tt.power)
			})
		}
	}
}

// A power-off with skipShutdown is abrupt, any other change of the power state is not.
func TestAbruptPowerOff(t *testing.T) {
	for _, path := range []string{first, set} {
		w := newSubscription(t, core.Options{})
		w.scaleSet(model{capacity: 1})
		for _, step := range []struct {
			action string
			abrupt bool
		}{{"powerOff?skipShutdown=true", true}, {"start", false}, {"powerOff?skipShutdown=false", false},
			{"poweroff?skipshutdown=True", true}, {"deallocate", false}} {
			w.must("POST", path+"/"+step.action, "")
			w.Look(func(subscription behaviour.World) {
				doc, _ := subscription.Get(azure.ID(first))
				if got := vm.Abrupt(doc); got != step.abrupt {
					t.Errorf("%s of %s: abrupt %t, want %t", step.action, azure.ID(path).Name(), got, step.abrupt)
				}
			})
		}
	}
}

func TestStatesWhileOperationsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSubscription(t, core.Options{Latency: 1})
		<-time.After(time.Minute)
		w.scaleSet(model{capacity: 1})
		w.want(w.get(set), "properties.provisioningState", "Creating")
		i := w.list(set + "/virtualMachines?$expand=instanceView")[0]
		w.want(i, "properties.provisioningState", "Creating")
		if got := states(behaviour.Sub(i, "properties.instanceView")); !slices.Equal(got, []string{"ProvisioningState/creating"}) {
			t.Errorf("statuses of a new instance: %v", got)
		}
		<-time.After(time.Hour)
		i = w.get(first)
		w.want(i, "properties.provisioningState", "Succeeded")
		w.want(i, "etag", `"1"`)
		w.must("POST", first+"/deallocate", "")
		if got := states(w.get(first + "/instanceView")); !slices.Equal(got,
			[]string{"ProvisioningState/updating", "PowerState/deallocating"}) {
			t.Errorf("statuses while it is deallocated: %v", got)
		}
		<-time.After(time.Hour)
		w.must("PATCH", set, `{"sku":{"capacity":0}}`)
		w.want(w.get(first), "properties.provisioningState", "Deleting")
		<-time.After(time.Hour)
		w.refused("GET", first, "", 404, "NotFound")
	})
}

func TestAPutReplacesTagsAndKeepsWhatItDoesNotName(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 1, tags: behaviour.Object{"a": "1", "b": "2"}})
	w.must("PUT", set, `{"location":"eastus","tags":{"b":"3"}}`)
	doc := w.get(set)
	w.want(doc, "tags", behaviour.Object{"b": "3"})
	w.want(doc, "sku.capacity", 1)
	w.must("PATCH", set, `{"tags":{"b":null,"c":"4"},"properties":{"overprovision":null}}`)
	doc = w.get(set)
	w.want(doc, "tags", behaviour.Object{"c": "4"})
	w.want(doc, "properties.virtualMachineProfile.osProfile.adminUsername", "azureuser")
}

func TestOperationsThatFail(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, body, action string
		capacity                         int
		states                           string
	}{
		{"no capacity in the region", "PATCH", set, `{"sku":{"capacity":3}}`, "", 3, "Succeeded/running Succeeded/running Failed/"},
		{"scale in", "PATCH", set, `{"sku":{"capacity":1}}`, "", 2, "Succeeded/running Succeeded/running"},
		{"delete", "POST", set + "/delete", `{"instanceIds":["1"]}`, "delete", 2, "Succeeded/running Succeeded/running"},
		{"deallocate", "POST", set + "/deallocate", `{"instanceIds":["1"]}`, "deallocate", 2, "Succeeded/running Failed/running"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newSubscription(t,
				core.Options{Faults: []core.Fault{{Method: tt.method, Type: "Microsoft.Compute/virtualMachineScaleSets",
					Action: tt.action, Fault: "operation", Code: "OverconstrainedAllocationRequest", Message: "No room."}}})
			w.scaleSet(model{capacity: 2})
			w.do(tt.method, tt.path, tt.body)
			doc := w.get(set)
			w.want(doc, "properties.provisioningState", "Failed")
			w.want(doc, "sku.capacity", tt.capacity)
			var got []string
			w.Look(func(subscription behaviour.World) {
				for _, i := range subscription.List(azure.ID(set), "Microsoft.Compute/virtualMachineScaleSets/virtualMachines") {
					got = append(got, behaviour.Text(i, "properties.provisioningState")+"/"+vm.PowerOf(i))
				}
			})
			if s := strings.Join(got, " "); s != tt.states {
				t.Errorf("instances %q, want %q", s, tt.states)
			}
		})
	}
}

func TestDeletingInstancesHasItsOwnLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSubscription(t, core.Options{Latency: 1})
		<-time.After(time.Hour)
		w.scaleSet(model{capacity: 2})
		<-time.After(time.Hour)
		w.must("POST", set+"/delete", `{"instanceIds":["1"]}`)
		w.want(w.get(set), "sku.capacity", 1)
		<-time.After(6 * time.Second) // this would delete the scale set itself
		w.want(w.get(set+"/virtualMachines/1"), "properties.provisioningState", "Deleting")
		<-time.After(time.Hour)
		w.refused("GET", set+"/virtualMachines/1", "", 404, "NotFound")
		w.want(w.get(set), "properties.provisioningState", "Succeeded")
	})
}

func TestInstanceDuringDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSubscription(t, core.Options{Latency: 1})
		<-time.After(time.Hour)
		w.scaleSet(model{capacity: 2})
		<-time.After(time.Hour)
		w.must("PATCH", set, `{"sku":{"capacity":1}}`)
		w.refused("PUT", set+"/virtualMachines/1", `{"location":"eastus"}`, 409, "OperationNotAllowed")
		w.refused("POST", set+"/virtualMachines/1/start", "", 409, "OperationNotAllowed")
		w.must("DELETE", set, "")
		w.refused("PUT", set, model{capacity: 3}.json(), 409, "OperationNotAllowed")
		<-time.After(time.Hour)
		w.refused("GET", set, "", 404, "ResourceNotFound")
	})
}

func TestCapacityDuringDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSubscription(t, core.Options{Latency: 1})
		<-time.After(time.Hour)
		w.scaleSet(model{capacity: 3})
		<-time.After(time.Hour)
		w.must("DELETE", first, "")
		w.must("PATCH", set, `{"sku":{"capacity":4}}`)
		<-time.After(time.Hour)
		w.want(w.get(set), "sku.capacity", 4)
		if got := w.instanceIDs(); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
			t.Errorf("instances %v, want 1 to 4", got)
		}
	})
}

func TestRepeatedPutChangesNothing(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 2})
	before := w.get(set)
	w.scaleSet(model{capacity: 2})
	if after := w.get(set); !behaviour.Equal(before, after) {
		t.Errorf("the same PUT made of %v\n%v", before, after)
	}
	w.want(w.get(first), "properties.latestModelApplied", true)
	w.want(w.get(first), "etag", `"1"`)
}

func TestScaleSetsRefuse(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 1})
	other := group + "/providers/Microsoft.Compute/virtualMachineScaleSets/other"
	with := func(change func(doc behaviour.Object)) string {
		doc := model{capacity: 1}.object()
		change(doc)
		return text(doc)
	}
	const profile = "properties.virtualMachineProfile"
	for _, tt := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"unknown size", other, model{size: "Standard_D3s_v9"}.json(), 400, "InvalidParameter"},
		{"more than 1000", other, model{capacity: 1001}.json(), 400, "InvalidParameter"},
		{"more than 100 in one placement group", other,
			model{capacity: 101, extra: behaviour.Object{"singlePlacementGroup": true}}.json(), 400, "InvalidParameter"},
		{"negative", set, `{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":-1}}`, 400, "InvalidParameter"},
		{"no room in the subnet", other, model{capacity: 4, subnet: vnet + "/subnets/tiny"}.json(), 400, "SubnetIsFull"},
		{"no such subnet", other, model{capacity: 1, subnet: vnet + "/subnets/none"}.json(), 400, "InvalidResourceReference"},
		{"no such pool", other, model{capacity: 1, pools: []string{pool}}.json(), 400, "InvalidResourceReference"},
		{"no such zone", other, model{capacity: 1, zones: []string{"4"}}.json(), 400, "AvailabilityZoneNotSupported"},
		{"no model", other, `{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":1},"properties":{}}`, 400, "InvalidParameter"},
		{"no interface", other, with(func(d behaviour.Object) { behaviour.Remove(d, profile+".networkProfile") }), 400, "InvalidParameter"},
		{"long Windows names", other, with(func(d behaviour.Object) {
			behaviour.Set(d, profile+".storageProfile.imageReference",
				behaviour.Object{"publisher": "MicrosoftWindowsServer", "offer": "WindowsServer", "sku": "2022-datacenter"})
		}), 400, "InvalidParameter"},
		{"another orchestration", set, `{"location":"eastus","properties":{"orchestrationMode":"Flexible"}}`, 409,
			"PropertyChangeNotAllowed"},
		{"an instance that is not there", set + "/virtualMachines/9", `{"tags":{}}`, 400, "InvalidParameter"},
		{"an instance that cannot be", set + "/virtualMachines/x", `{"tags":{}}`, 400, "InvalidParameter"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := subscription{TB: t, Azure: w.With(t)}
			w.refused("PUT", tt.path, tt.body, tt.status, tt.code)
		})
	}
	if n := len(w.list(group + "/providers/Microsoft.Compute/virtualMachineScaleSets")); n != 1 {
		t.Errorf("%d scale sets after the refusals, want 1", n)
	}
	if n := len(w.list(group + "/providers/Microsoft.Compute/disks")); n != 1 {
		t.Errorf("%d disks after the refusals, want 1", n)
	}
	w.refused("GET", set+"/virtualMachines/9", "", 404, "NotFound")
	w.refused("GET", set+"/virtualMachines/9x", "", 400, "InvalidParameter")
	w.refused("GET", other+"/virtualMachines/9", "", 404, "ResourceNotFound")
	w.refused("GET", first+"/networkInterfaces/none", "", 404, "NotFound")
}

func TestADeletedScaleSetLeavesNothing(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 3, address: behaviour.Object{"publicIPAddressConfiguration": behaviour.Object{"name": "pub"}}})
	if n := len(w.list(set + "/publicIPAddresses")); n != 3 {
		t.Errorf("%d public addresses, want 3", n)
	}
	w.must("DELETE", set, "")
	w.refused("GET", set, "", 404, "ResourceNotFound")
	if n := len(w.list(group + "/providers/Microsoft.Compute/disks")); n != 0 {
		t.Errorf("%d disks are left", n)
	}
	if used := behaviour.Array(w.get(subnet), "properties.ipConfigurations"); len(used) != 0 {
		t.Errorf("addresses in use: %v", used)
	}
	w.must("DELETE", vnet, "")
}

// Addresses of the SKU Basic are dynamic, and those of others are static.
func TestAllocationOfInstanceAddresses(t *testing.T) {
	for sku, want := range map[string]string{"Basic": "Dynamic", "Standard": "Static"} {
		w := newSubscription(t, core.Options{})
		w.scaleSet(model{capacity: 1, address: behaviour.Object{"publicIPAddressConfiguration": behaviour.Object{"name": "pub",
			"sku": behaviour.Object{"name": sku}}}})
		for _, address := range w.list(set + "/publicIPAddresses") {
			if got := behaviour.Text(address, "properties.publicIPAllocationMethod"); got != want {
				t.Errorf("an address of the SKU %s is %s, want %s", sku, got, want)
			}
		}
	}
}

func TestInstancePublicAddresses(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 2, address: behaviour.Object{"publicIPAddressConfiguration": behaviour.Object{"name": "pub"}}})
	iface := w.get(first + "/networkInterfaces/nic")
	id := behaviour.Text(behaviour.Objects(iface, "properties.ipConfigurations")[0], "properties.publicIPAddress.id")
	if want := first + "/networkInterfaces/nic/ipConfigurations/ip/publicIPAddresses/pub"; id != want {
		t.Fatalf("public address %q, want %q", id, want)
	}
	a, b := w.get(id), w.get(strings.Replace(id, "/0/", "/1/", 1))
	if x, y := behaviour.Text(a, "properties.ipAddress"), behaviour.Text(b, "properties.ipAddress"); x == "" || x == y {
		t.Errorf("public addresses %q and %q", x, y)
	}
	w.must("PUT", first, text(behaviour.Object{"properties": behaviour.Object{
		"networkProfileConfiguration": behaviour.At(model{}.object(), "properties.virtualMachineProfile.networkProfile")}}))
	w.refused("GET", id, "", 404, "NotFound")
}

func TestInstancesGetARuleOfANATPool(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", balance, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[
		{"name":"f","properties":{"subnet":{"id":"`+subnet+`"}}}],"inboundNatPools":[{"name":"ssh","properties":{"protocol":"tcp",
		"frontendIPConfiguration":{"id":"`+balance+`/frontendIPConfigurations/f"},"frontendPortRangeStart":50000,
		"frontendPortRangeEnd":50009,"backendPort":22}}]}}`)
	m := model{capacity: 2, address: behaviour.Object{
		"loadBalancerInboundNatPools": []any{behaviour.Ref(balance + "/inboundNatPools/ssh")}}}
	w.scaleSet(m)
	rules := func(want ...string) behaviour.Object {
		t.Helper()
		doc := w.get(balance)
		var names []string
		for _, rule := range behaviour.Objects(doc, "properties.inboundNatRules") {
			port, _ := behaviour.Int(rule, "properties.frontendPort")
			names = append(names, behaviour.Text(rule, "name")+" "+strconv.Itoa(port))
		}
		if !slices.Equal(names, want) {
			t.Fatalf("rules %q, want %q", names, want)
		}
		return doc
	}
	doc := rules("ssh.0 50000", "ssh.1 50001")
	w.want(behaviour.Named(doc, "properties.inboundNatRules", "ssh.0"), "properties.backendIPConfiguration.id",
		first+"/networkInterfaces/nic/ipConfigurations/ip")
	w.want(w.get(balance+"/inboundNatRules/ssh.1"), "properties.backendPort", float64(22))
	config := behaviour.Objects(w.get(first+"/networkInterfaces/nic"), "properties.ipConfigurations")[0]
	if id := behaviour.Text(behaviour.Objects(config, "properties.loadBalancerInboundNatRules")[0], "id"); id !=
		balance+"/inboundNatRules/ssh.0" {
		t.Errorf("the interface has the rule %q", id)
	}
	// A client that writes the load balancer back, or leaves the rules out, changes none of them.
	w.must("PUT", balance, text(doc))
	behaviour.Set(doc, "properties.inboundNatRules", []any{})
	w.must("PUT", balance, text(doc))
	doc = rules("ssh.0 50000", "ssh.1 50001")
	if n := len(behaviour.Array(behaviour.Named(doc, "properties.frontendIPConfigurations", "f"), "properties.inboundNatRules")); n != 2 {
		t.Errorf("the frontend lists %d rules, want 2", n)
	}
	w.must("DELETE", first, "")
	rules("ssh.1 50001")
	m.capacity = 2
	w.must("PUT", set, text(m.object()))
	rules("ssh.1 50001", "ssh.2 50000")
	w.must("DELETE", set, "")
	rules()
	w.must("DELETE", balance, "")
}

func TestDualStackInstances(t *testing.T) {
	w := newSubscription(t, core.Options{})
	m := model{capacity: 1, subnet: vnet + "/subnets/dual"}.object()
	config := behaviour.Objects(m, "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations")[0]
	behaviour.Set(config, "properties.ipConfigurations", []any{
		behaviour.Object{"name": "v4", "properties": behaviour.Object{"primary": true, "subnet": behaviour.Ref(vnet + "/subnets/dual")}},
		behaviour.Object{"name": "v6",
			"properties": behaviour.Object{"privateIPAddressVersion": "IPv6", "subnet": behaviour.Ref(vnet + "/subnets/dual")}},
	})
	w.must("PUT", set, text(m))
	addresses := behaviour.Objects(w.get(first+"/networkInterfaces/nic"), "properties.ipConfigurations")
	w.want(addresses[0], "properties.privateIPAddress", "10.0.241.4")
	w.want(addresses[1], "properties.privateIPAddress", "fd00:0:0:1::4")
	w.want(addresses[1], "properties.primary", false)
}

func TestPoolHasOneFamilyOfAScaleSet(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", balance, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[
		{"name":"f","properties":{"subnet":{"id":"`+subnet+`"}}}],"backendAddressPools":[{"name":"nodes"},{"name":"nodes-IPv6"}]}}`)
	configs := func(v4, v6 string) behaviour.Object {
		m := model{subnet: vnet + "/subnets/dual"}.object()
		address := func(name, version, pool string) behaviour.Object {
			p := behaviour.Object{"privateIPAddressVersion": version, "primary": version == "IPv4",
				"subnet": behaviour.Ref(vnet + "/subnets/dual")}
			if pool != "" {
				p["loadBalancerBackendAddressPools"] = []any{behaviour.Ref(azure.ID(pool))}
			}
			return behaviour.Object{"name": name, "properties": p}
		}
		profile := behaviour.Sub(m, "properties.virtualMachineProfile.networkProfile")
		behaviour.Set(behaviour.Objects(profile, "networkInterfaceConfigurations")[0], "properties.ipConfigurations",
			[]any{address("v4", "IPv4", v4), address("v6", "IPv6", v6)})
		return profile
	}
	modelOf := func(v4, v6 string) string {
		m := model{capacity: 1}.object()
		behaviour.Set(m, "properties.virtualMachineProfile.networkProfile", configs(v4, v6))
		return text(m)
	}
	instanceOf := func(v4, v6 string) string {
		return text(behaviour.Object{"location": "eastus", "properties": behaviour.Object{"networkProfileConfiguration": configs(v4, v6)}})
	}
	const mixed = "AllNicIpConfigurationsOfLbBackendPoolOnVMScaleSetMustHaveSamePrivateIpAddressVersion"
	w.refused("PUT", set, modelOf(pool, pool), 400, mixed)
	w.must("PUT", set, modelOf(pool, pool+"-IPv6"))
	w.refused("PUT", first, instanceOf("", pool), 400, mixed) // the model has IPv4 in the pool
	w.must("PUT", set, modelOf("", ""))
	w.must("PUT", first, instanceOf("", pool))
	w.refused("PUT", set, modelOf(pool, ""), 400, mixed) // the instance has IPv6 in the pool
	w.must("PUT", set, modelOf("", pool))
}

func TestFlexibleScaleSet(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.balancer()
	w.scaleSet(model{capacity: 3, pools: []string{pool}, zones: []string{"1", "2"},
		extra: behaviour.Object{"orchestrationMode": "Flexible"}})
	machines := func() []behaviour.Object {
		return w.list(group + "/providers/Microsoft.Compute/virtualMachines?$filter='virtualMachineScaleSet/id' eq '" + set +
			"'&$expand=instanceView")
	}
	all := machines()
	if len(all) != 3 {
		t.Fatalf("%d machines, want 3", len(all))
	}
	for _, m := range all {
		name := behaviour.Text(m, "name")
		if !strings.HasPrefix(name, "np_") || len(name) != len("np_")+8 {
			t.Errorf("a machine is called %q", name)
		}
		iface := w.get(behaviour.Text(behaviour.Objects(m, "properties.networkProfile.networkInterfaces")[0], "id"))
		w.want(iface, "properties.virtualMachine.id", m["id"])
		w.want(iface, "name", "nic-"+strings.TrimPrefix(name, "np_"))
		if got := states(behaviour.Sub(m, "properties.instanceView")); !slices.Contains(got, "PowerState/running") {
			t.Errorf("statuses of %s: %v", name, got)
		}
	}
	if n := len(behaviour.Array(w.get(pool), "properties.backendIPConfigurations")); n != 3 {
		t.Errorf("%d addresses in the pool, want 3", n)
	}
	w.must("POST", set+"/delete", `{"instanceIds":["`+behaviour.Text(all[0], "name")+`"]}`)
	w.want(w.get(set), "sku.capacity", 2)
	w.must("DELETE", behaviour.Text(all[1], "id"), "")
	w.want(w.get(set), "sku.capacity", 1)
	w.must("PATCH", set, `{"sku":{"capacity":2}}`)
	if n := len(machines()); n != 2 {
		t.Errorf("%d machines, want 2", n)
	}
	w.must("DELETE", set, "")
	for _, kind := range []string{"Microsoft.Compute/virtualMachines", "Microsoft.Compute/disks", "Microsoft.Network/networkInterfaces"} {
		if left := w.list(group + "/providers/" + kind); len(left) != 0 {
			t.Errorf("%s are left: %v", kind, left)
		}
	}
}

// The machines of a flexible scale set have the custom data and the extensions of its model.
func TestFlexibleMachinesBoot(t *testing.T) {
	w := newSubscription(t, core.Options{Boots: true})
	w.scaleSet(model{capacity: 1, extra: behaviour.Object{"orchestrationMode": "Flexible",
		"virtualMachineProfile.extensionProfile": behaviour.Object{"extensions": []any{behaviour.Object{"name": "monitor",
			"properties": behaviour.Object{"publisher": "p", "type": "t", "typeHandlerVersion": "1.0"}}}}}})
	machines := w.list(group + "/providers/Microsoft.Compute/virtualMachines")
	if len(machines) != 1 {
		t.Fatalf("%d machines, want 1", len(machines))
	}
	id := behaviour.Text(machines[0], "id")
	w.want(w.get(id+"/extensions/monitor"), "properties.provisioningState", "Succeeded")
	w.Look(func(in behaviour.World) {
		doc, _ := in.Get(azure.ID(id))
		if g, runs := vm.GuestOf(doc); vm.CustomData(doc) == "" || !runs || g.State != vm.GuestBooting {
			t.Errorf("the machine does not boot: %+v", g)
		}
	})
}

// The link to the next page of a list has the default port and an unencoded query. A client has to
// encode it.
func TestNextLinkOfCompute(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.scaleSet(model{capacity: 3})
	const filter = "properties/latestModelApplied eq true"
	page := w.get(set + "/virtualMachines?$top=2&api-version=2025-04-01&$filter=" + url.QueryEscape(filter))
	token := regexp.MustCompile(`skiptoken=[^&]+`)
	if got := token.ReplaceAllString(behaviour.Text(page, "nextLink"), "skiptoken=T"); got != "http://azure:80"+set+
		"/virtualMachines?$filter="+filter+"&$skiptoken=T&$top=2&api-version=2025-04-01" {
		t.Errorf("nextLink %s", got)
	}
	if last := w.list(behaviour.Text(page, "nextLink")); len(last) != 1 {
		t.Errorf("the last page has %v", last)
	}
	link := behaviour.Text(w.get(vnet+"/subnets?$top=1&api-version=2025-05-01"), "nextLink")
	if got := token.ReplaceAllString(link, "skiptoken=T"); got != "http://azure"+vnet+
		"/subnets?%24skiptoken=T&%24top=1&api-version=2025-05-01" {
		t.Errorf("nextLink %s", got)
	}
}
