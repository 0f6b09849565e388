package compute_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

func (w subscription) newInterface(name string) string {
	w.Helper()
	id := group + "/providers/Microsoft.Network/networkInterfaces/" + name
	w.must("PUT", id, `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"`+subnet+`"}}}]}}`)
	return id
}

// machineBody returns the body of a virtual machine after change.
func machineBody(nic string, change func(doc behaviour.Object)) string {
	doc := behaviour.Object{"location": "eastus", "properties": behaviour.Object{
		"hardwareProfile": behaviour.Object{"vmSize": "Standard_D2s_v3"},
		"osProfile":       behaviour.Object{"adminUsername": "azureuser", "adminPassword": "not to be seen"},
		"storageProfile": behaviour.Object{"imageReference": behaviour.Object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts",
			"sku": "server", "version": "latest"}},
		"networkProfile": behaviour.Object{"networkInterfaces": []any{behaviour.Object{"id": nic}}},
	}}
	if change != nil {
		change(doc)
	}
	return text(doc)
}

func (w subscription) disk(name string, gib int, zone string) string {
	w.Helper()
	id := group + "/providers/Microsoft.Compute/disks/" + name
	zones := ""
	if zone != "" {
		zones = `"zones":["` + zone + `"],`
	}
	w.must("PUT", id,
		fmt.Sprintf(`{"location":"eastus",%s"sku":{"name":"Premium_LRS"},"properties":{"creationData":{"createOption":"Empty"},
			"diskSizeGB":%d}}`, zones, gib))
	return id
}

func TestAVirtualMachineOwnsItsInterfaceAndItsDisk(t *testing.T) {
	w := newSubscription(t, core.Options{})
	nic := w.newInterface("nic")
	w.must("PUT", machine, machineBody(nic, nil))
	doc := w.get(machine)
	w.want(doc, "etag", `"2"`)
	w.want(doc, "properties.osProfile.adminPassword", nil)
	w.want(doc, "properties.osProfile.computerName", "vm")
	w.want(doc, "properties.storageProfile.imageReference.exactVersion", "24.04.202601090")
	w.want(doc, "properties.storageProfile.osDisk.deleteOption", "Detach")
	w.want(w.get(nic), "properties.virtualMachine.id", machine)
	osDisk := behaviour.Text(doc, "properties.storageProfile.osDisk.managedDisk.id")
	w.want(w.get(osDisk), "managedBy", machine)
	w.refused("DELETE", nic, "", 400, "NicInUse")
	w.refused("DELETE", osDisk, "", 409, "OperationNotAllowed")
	w.refused("PUT", group+"/providers/Microsoft.Compute/virtualMachines/other", machineBody(nic, nil), 400, "NicInUse")

	w.must("DELETE", machine, "")
	w.want(w.get(osDisk), "managedBy", nil)
	w.want(w.get(osDisk), "properties.diskState", "Unattached")
	w.want(w.get(nic), "properties.virtualMachine", nil)
	w.must("DELETE", nic, "")
	w.must("DELETE", osDisk, "")
}

func TestDeleteOptions(t *testing.T) {
	w := newSubscription(t, core.Options{})
	nic := w.newInterface("nic")
	data := w.disk("data", 8, "")
	w.must("PUT", machine, machineBody(nic, func(doc behaviour.Object) {
		behaviour.Set(doc, "properties.storageProfile.osDisk",
			behaviour.Object{"name": "os", "createOption": "FromImage", "deleteOption": "Delete"})
		behaviour.Set(doc, "properties.storageProfile.dataDisks",
			[]any{behaviour.Object{"lun": 0, "createOption": "Attach", "deleteOption": "Delete",
				"managedDisk": behaviour.Object{"id": data}}})
		behaviour.Set(doc, "properties.networkProfile.networkInterfaces",
			[]any{behaviour.Object{"id": nic, "properties": behaviour.Object{"deleteOption": "Delete"}}})
	}))
	w.must("DELETE", machine, "")
	for _, id := range []string{nic, data, group + "/providers/Microsoft.Compute/disks/os"} {
		w.refused("GET", id, "", 404, "ResourceNotFound")
	}
}

func TestMachinesRefuse(t *testing.T) {
	w := newSubscription(t, core.Options{})
	nic := w.newInterface("nic")
	for _, tt := range []struct {
		name   string
		change func(doc behaviour.Object)
		status int
		code   string
	}{
		{"unknown size", func(d behaviour.Object) { behaviour.Set(d, "properties.hardwareProfile.vmSize", "Standard_X1") }, 400,
			"InvalidParameter"},
		{"no size", func(d behaviour.Object) { behaviour.Remove(d, "properties.hardwareProfile") }, 400, "InvalidParameter"},
		{"no interface", func(d behaviour.Object) { behaviour.Remove(d, "properties.networkProfile") }, 400, "InvalidParameter"},
		{"no such interface", func(d behaviour.Object) {
			behaviour.Set(d, "properties.networkProfile.networkInterfaces", []any{behaviour.Object{"id": nic + "x"}})
		}, 400, "InvalidResourceReference"},
		{"no such availability set", func(d behaviour.Object) {
			behaviour.Set(d, "properties.availabilitySet", behaviour.Ref(group+"/providers/Microsoft.Compute/availabilitySets/none"))
		}, 400, "InvalidResourceReference"},
		{"no such scale set", func(d behaviour.Object) { behaviour.Set(d, "properties.virtualMachineScaleSet", behaviour.Ref(set)) }, 400,
			"InvalidResourceReference"},
		{"no such region", func(d behaviour.Object) { d["location"] = "atlantis" }, 400, "LocationNotAvailableForResourceType"},
		{"no such zone", func(d behaviour.Object) { d["zones"] = []any{"9"} }, 400, "AvailabilityZoneNotSupported"},
		{"no such disk", func(d behaviour.Object) {
			behaviour.Set(d, "properties.storageProfile.dataDisks",
				[]any{behaviour.Object{"lun": 0, "createOption": "Attach", "managedDisk": behaviour.Object{"id": disk}}})
		}, 404, "NotFound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := subscription{TB: t, Azure: w.With(t)}
			w.refused("PUT", machine, machineBody(nic, tt.change), tt.status, tt.code)
		})
	}
}

// entry is a data disk in a machine's list.
func entry(lun int, id string) behaviour.Object {
	return behaviour.Object{"lun": lun, "createOption": "Attach", "managedDisk": behaviour.Object{"id": id}}
}

func list(entries ...behaviour.Object) string {
	all := make([]any, len(entries))
	for i, e := range entries {
		all[i] = e
	}
	return text(behaviour.Object{"location": "eastus",
		"properties": behaviour.Object{"storageProfile": behaviour.Object{"dataDisks": all}}})
}

// owner is a machine with data disks: a virtual machine or an instance. Both behave the same.
type owner struct{ name, path, managedBy, method string }

func owners() []owner {
	return []owner{
		{"virtual machine", machine, machine, "PATCH"},
		{"instance", first, set + "/virtualMachines/np_0", "PUT"},
	}
}

func TestDataDisks(t *testing.T) {
	for _, o := range owners() {
		t.Run(o.name, func(t *testing.T) {
			w := newSubscription(t, core.Options{})
			w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
			w.scaleSet(model{capacity: 1})
			a, b := w.disk("a", 8, ""), w.disk("b", 200, "")
			w.must(o.method, o.path, list(entry(3, a)))
			attached := behaviour.Objects(w.get(o.path), "properties.storageProfile.dataDisks")
			w.want(attached[0], "name", "a")
			w.want(attached[0], "diskSizeGB", 8)
			w.want(attached[0], "caching", "None")
			w.want(attached[0], "toBeDetached", false)
			w.want(w.get(a), "managedBy", o.managedBy)
			w.want(w.get(a), "properties.diskState", "Attached")

			w.refused(o.method, o.path, list(entry(3, a), entry(3, b)), 400, "InvalidParameter")
			w.refused(o.method, o.path, list(entry(3, a), entry(64, b)), 400, "InvalidParameter")
			w.refused(o.method, o.path, list(entry(3, a), entry(4, disk)), 404, "NotFound")
			w.refused("DELETE", a, "", 409, "OperationNotAllowed")
			zonal := w.disk("zonal", 8, "1")
			w.refused(o.method, o.path, list(entry(3, a), entry(4, zonal)), 400, "BadRequest")
			five := []behaviour.Object{entry(3, a)}
			for lun := range 4 {
				five = append(five, entry(lun+10, w.disk(fmt.Sprint("more", lun), 4, "")))
			}
			w.refused(o.method, o.path, list(five...), 409, "OperationNotAllowed")
			w.want(w.get(b), "managedBy", nil)

			w.must(o.method, o.path, list(entry(3, a), entry(1, b)))
			gone := entry(3, a)
			gone["toBeDetached"] = true
			w.must(o.method, o.path, list(gone, entry(1, b)))
			w.want(w.get(a), "managedBy", nil)
			w.want(w.get(a), "properties.diskState", "Unattached")
			w.must(o.method, o.path, list())
			w.want(w.get(b), "managedBy", nil)
			if left := behaviour.Array(w.get(o.path), "properties.storageProfile.dataDisks"); len(left) != 0 {
				t.Errorf("disks %v are left", left)
			}
		})
	}
}

func TestAttachAndDetachByAction(t *testing.T) {
	for _, o := range owners() {
		t.Run(o.name, func(t *testing.T) {
			w := newSubscription(t, core.Options{Throttle: true})
			w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
			w.scaleSet(model{capacity: 1})
			a, b := w.disk("a", 8, ""), w.disk("b", 8, "")
			w.must("POST", o.path+"/attachDetachDataDisks", `{"dataDisksToAttach":[{"diskId":"`+a+`"},{"diskId":"`+b+`","lun":5}]}`)
			attached := behaviour.Objects(w.get(o.path), "properties.storageProfile.dataDisks")
			w.want(attached[0], "lun", 0)
			w.want(attached[1], "lun", 5)
			got := w.must("POST", o.path+"/attachDetachDataDisks", `{"dataDisksToDetach":[{"diskId":"`+a+`"}]}`)
			if left := got.Header.Get("x-ms-ratelimit-remaining-resource"); o.path == machine &&
				left != "Microsoft.Compute/AttachDetachVMDisksResource;10,Microsoft.Compute/AttachDetachVMDisksSubscriptionMaximum;1498" {
				t.Errorf("Azure's limits are %s", left)
			}
			if got.Header.Get("Azure-AsyncOperation") == "" || got.Header.Get("Location") != "" {
				t.Errorf("the reply has the headers %v, want Azure-AsyncOperation without Location", got.Header)
			}
			accepted := behaviour.Objects(got.Body, "dataDisks")
			w.want(accepted[0], "toBeDetached", true)
			left := behaviour.Objects(w.get(o.path), "properties.storageProfile.dataDisks")
			if len(left) != 1 || behaviour.Text(left[0], "name") != "b" {
				t.Errorf("the machine has %v", left)
			}
			w.want(w.get(a), "managedBy", nil)
			w.refused("POST", o.path+"/attachDetachDataDisks", `{"dataDisksToDetach":[{"diskId":"`+a+`"}]}`, 400, "InvalidParameter")
		})
	}
}

func TestADiskBelongsToOneMachine(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
	w.scaleSet(model{capacity: 2})
	a := w.disk("a", 8, "")
	w.must("PATCH", machine, list(entry(0, a)))
	w.refused("PUT", first, list(entry(0, a)), 409, "ConflictingUserInput")
	w.must("DELETE", machine, "")
	w.must("PUT", first, list(entry(0, a)))
	w.must("DELETE", first, "")
	w.want(w.get(a), "properties.diskState", "Unattached")

	shared := group + "/providers/Microsoft.Compute/disks/shared"
	w.must("PUT", shared,
		`{"location":"eastus","sku":{"name":"Premium_LRS"},"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":256,
			"maxShares":2}}`)
	w.must("PATCH", set, `{"sku":{"capacity":3}}`)
	for n := 1; n <= 3; n++ {
		path := fmt.Sprintf("%s/virtualMachines/%d", set, n)
		if n == 3 {
			w.refused("PUT", path, list(entry(0, shared)), 409, "ConflictingUserInput")
			continue
		}
		w.must("PUT", path, list(entry(0, shared)))
	}
	w.want(w.get(shared), "managedByExtended", []any{set + "/virtualMachines/np_1", set + "/virtualMachines/np_2"})
	w.must("PUT", set+"/virtualMachines/1", list())
	w.want(w.get(shared), "managedBy", set+"/virtualMachines/np_2")
}

func TestAttachDuringDetach(t *testing.T) {
	for _, o := range owners() {
		t.Run(o.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSubscription(t, core.Options{Latency: 1})
				<-time.After(time.Hour)
				w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
				w.scaleSet(model{capacity: 1})
				a := w.disk("a", 8, "")
				<-time.After(time.Hour)
				w.must(o.method, o.path, list(entry(0, a)))
				<-time.After(time.Hour)
				w.must(o.method, o.path, list())
				w.want(w.get(a), "managedBy", o.managedBy)
				w.want(behaviour.Objects(w.get(o.path), "properties.storageProfile.dataDisks")[0], "toBeDetached", true)
				w.refused(o.method, o.path, list(entry(0, a)), 409, "AttachDiskWhileBeingDetached")
				<-time.After(time.Hour)
				w.must(o.method, o.path, list(entry(0, a)))
			})
		})
	}
}

func TestAvailabilitySet(t *testing.T) {
	w := newSubscription(t, core.Options{})
	as := group + "/providers/Microsoft.Compute/availabilitySets/as"
	if got := w.must("PUT", as, `{"location":"eastus","sku":{"name":"Aligned"}}`); got.Status != 200 {
		t.Errorf("create: %d", got.Status)
	}
	for n := range 4 {
		path := fmt.Sprintf("%s/providers/Microsoft.Compute/virtualMachines/vm%d", group, n)
		w.must("PUT", path, machineBody(w.newInterface(fmt.Sprint("nic", n)), func(d behaviour.Object) {
			behaviour.Set(d, "properties.availabilitySet", behaviour.Ref(azure.ID(as)))
		}))
		w.want(w.get(path+"/instanceView"), "platformFaultDomain", n%3)
	}
	if n := len(behaviour.Array(w.get(as), "properties.virtualMachines")); n != 4 {
		t.Errorf("%d machines in the set, want 4", n)
	}
	w.refused("DELETE", as, "", 409, "OperationNotAllowed")
	w.refused("PUT", as, `{"location":"eastus","properties":{"platformFaultDomainCount":2}}`, 409, "PropertyChangeNotAllowed")
	w.refused("PUT", as+"2", `{"location":"eastus","properties":{"platformFaultDomainCount":4}}`, 400, "InvalidParameter")
}

func TestDisks(t *testing.T) {
	w := newSubscription(t, core.Options{})
	a := w.disk("a", 200, "")
	doc := w.get(a)
	w.want(doc, "properties.diskIOPSReadWrite", 1100)
	w.want(doc, "properties.tier", "P15")
	w.want(doc, "properties.diskSizeBytes", 200<<30)
	w.must("PATCH", a, `{"properties":{"diskSizeGB":600}}`)
	doc = w.get(a)
	w.want(doc, "properties.tier", "P30")
	w.want(doc, "properties.diskIOPSReadWrite", 5000)
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"PATCH", a, `{"properties":{"diskSizeGB":100}}`, 409, "OperationNotAllowed"},
		{"PUT", a, `{"location":"eastus","properties":{"creationData":{"createOption":"Copy"}}}`, 409, "PropertyChangeNotAllowed"},
		{"PUT", disk, `{"location":"eastus","properties":{"creationData":{"createOption":"Empty"}}}`, 400, "InvalidParameter"},
		{"PUT", disk, `{"location":"eastus","properties":{"diskSizeGB":8}}`, 400, "InvalidParameter"},
		{"PUT", disk, `{"location":"eastus","sku":{"name":"Fast"},"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":8}}`,
			400, "InvalidParameter"},
		{"PUT", disk, `{"location":"eastus","properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":70000}}`, 400,
			"InvalidParameter"},
		{"PUT", disk, `{"location":"eastus","properties":{"creationData":{"createOption":"Copy","sourceResourceId":"` + disk + `x"}}}`,
			404, "ResourceNotFound"},
		{"PATCH", disk, `{}`, 404, "ResourceNotFound"},
		{"POST", a + "/beginGetAccess", `{}`, 400, "InvalidParameter"},
	} {
		w.refused(tt.method, tt.path, tt.body, tt.status, tt.code)
	}
}

func TestSnapshotsAndCopies(t *testing.T) {
	w := newSubscription(t, core.Options{})
	a := w.disk("a", 64, "")
	snapshot := group + "/providers/Microsoft.Compute/snapshots/s"
	w.must("PUT", snapshot,
		`{"location":"eastus","properties":{"incremental":true,"creationData":{"createOption":"Copy","sourceResourceId":"`+a+`"}}}`)
	doc := w.get(snapshot)
	w.want(doc, "properties.diskSizeGB", 64)
	w.want(doc, "properties.creationData.sourceUniqueId", behaviour.At(w.get(a), "properties.uniqueId"))
	other := w.disk("other", 64, "")
	w.refused("PUT", snapshot,
		`{"location":"eastus","properties":{"incremental":true,"creationData":{"createOption":"Copy","sourceResourceId":"`+other+`"}}}`,
		409, "PropertyChangeNotAllowed")
	w.must("PUT", disk, `{"location":"eastus","properties":{"creationData":{"createOption":"Copy","sourceResourceId":"`+snapshot+`"}}}`)
	w.want(w.get(disk), "properties.diskSizeGB", 64)
	w.refused("PUT", disk+"2", `{"location":"westus","properties":{"creationData":{"createOption":"Copy","sourceResourceId":"`+snapshot+
		`"}}}`, 400, "InvalidParameter")

	got := w.must("POST", snapshot+"/beginGetAccess", `{"access":"Read","durationInSeconds":3600}`)
	status := w.get(strings.TrimPrefix(got.Header.Get("Azure-AsyncOperation"), "http://azure.test"))
	if url := behaviour.Text(status, "properties.output.accessSAS"); !strings.HasPrefix(url, "https://md-") {
		t.Errorf("access to a snapshot: %v", status)
	}
	w.want(w.get(snapshot), "properties.diskState", "ActiveSAS")
	w.must("POST", snapshot+"/endGetAccess", "")
	w.want(w.get(snapshot), "properties.diskState", "Unattached")
}

// TestSnapshotsOfAnotherRegion checks that a copy of a snapshot takes its time, and is no source before.
func TestSnapshotsOfAnotherRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSubscription(t, core.Options{Latency: 1})
		const near, far = group + "/providers/Microsoft.Compute/snapshots/near", group + "/providers/Microsoft.Compute/snapshots/far"
		a := w.disk("a", 64, "")
		<-time.After(time.Minute)
		w.must("PUT", near, `{"location":"eastus","properties":{"incremental":true,"creationData":{"createOption":"Copy","sourceResourceId":"`+a+`"}}}`)
		<-time.After(time.Minute)
		w.must("PUT", far,
			`{"location":"westus","properties":{"incremental":true,"creationData":{"createOption":"CopyStart","sourceResourceId":"`+near+`"}}}`)
		<-time.After(time.Minute)
		if percent, _ := behaviour.Int(w.get(far), "properties.completionPercent"); percent < 10 || percent > 90 {
			t.Errorf("after a minute %d %% are copied", percent)
		}
		body := `{"location":"westus","properties":{"creationData":{"createOption":"Copy","sourceResourceId":"` + far + `"}}}`
		w.refused("PUT", disk, body, 409, "OperationNotAllowed")
		<-time.After(2 * time.Minute)
		w.want(w.get(far), "properties.completionPercent", 100)
		w.must("PUT", disk, body)
	})
}

func TestGeneratedKeysAreAPair(t *testing.T) {
	w := newSubscription(t, core.Options{})
	key := group + "/providers/Microsoft.Compute/sshPublicKeys/k"
	w.must("PUT", key, `{"location":"eastus"}`)
	pair := w.must("POST", key+"/generateKeyPair", "").Body
	block, _ := pem.Decode([]byte(strings.ReplaceAll(behaviour.Text(pair, "privateKey"), "\r\n", "\n")))
	if block == nil {
		t.Fatalf("no private key in %v", pair)
	}
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(behaviour.Text(pair, "publicKey"))
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || !strings.HasSuffix(string(blob), string(private.N.Bytes())) ||
		!strings.Contains(string(blob), "\x00\x00\x00\x07ssh-rsa\x00\x00\x00\x03\x01\x00\x01") {
		t.Errorf("public key %q does not belong to the private one: %v", fields, err)
	}
	w.want(w.get(key), "properties.publicKey", pair["publicKey"])
	w.refused("PUT", key, `{"location":"eastus","properties":{"publicKey":"mine"}}`, 400, "InvalidParameter")
}

func TestCatalogueOfSizes(t *testing.T) {
	w := newSubscription(t, core.Options{})
	sub := "/subscriptions/" + core.DefaultSubscription + "/providers/Microsoft.Compute"
	skus := w.list(sub + "/skus?$filter=location eq 'East US 2'")
	at := slices.IndexFunc(skus, func(o behaviour.Object) bool { return o["name"] == "Standard_D2s_v3" })
	if at < 0 {
		t.Fatal("Standard_D2s_v3 is not in the list")
	}
	w.want(skus[at], "family", "standardDSv3Family")
	w.want(behaviour.Objects(skus[at], "locationInfo")[0], "zones", []any{"1", "2", "3"})
	values := map[string]any{}
	for _, c := range behaviour.Objects(skus[at], "capabilities") {
		values[behaviour.Text(c, "name")] = c["value"]
	}
	for name, want := range map[string]string{"vCPUs": "2", "MemoryGB": "8", "MaxDataDiskCount": "4", "PremiumIO": "True",
		"CpuArchitectureType": "x64", "CachedDiskBytes": "53687091200", "MaxResourceVolumeMB": "16384",
		"SupportedEphemeralOSDiskPlacements": "CacheDisk,ResourceDisk"} {
		if values[name] != want {
			t.Errorf("%s is %v, want %s", name, values[name], want)
		}
	}
	w.refused("GET", sub+"/skus?$filter=location eq 'atlantis'", "", 400, "NoRegisteredProviderFound")
	if n := len(w.list(sub + "/locations/eastus/vmSizes")); n < 300 {
		t.Errorf("%d sizes in eastus", n)
	}
	w.scaleSet(model{capacity: 3})
	for _, u := range w.list(sub + "/locations/eastus/usages") {
		switch behaviour.Text(u, "name.value") {
		case "cores", "standardDSv3Family":
			w.want(u, "currentValue", 6)
		case "virtualMachines":
			w.want(u, "currentValue", 3)
		}
	}
}

// TestQuotas checks that machines beyond a quota are refused, with the text that clients look for.
func TestQuotas(t *testing.T) {
	sub := "/subscriptions/" + core.DefaultSubscription + "/providers/Microsoft.Compute"
	w := newSubscription(t, core.Options{Quotas: map[string]int{"STANDARDDSv3FAMILY": 6}})
	w.scaleSet(model{capacity: 2})
	w.refused("PATCH", set, `{"sku":{"capacity":4}}`, 409, "OperationNotAllowed")
	w.want(w.get(set), "sku.capacity", 2)
	w.must("PATCH", set, `{"sku":{"capacity":3}}`)
	w.refused("PUT", machine, machineBody(w.newInterface("nic"), nil), 409, "OperationNotAllowed")
	answer := w.do("PATCH", set, `{"sku":{"capacity":5}}`)
	if text := fmt.Sprint(answer.Body); !strings.Contains(text, "exceeding approved standardDSv3Family Cores quota") ||
		!strings.Contains(text, "Current Limit: 6, Current Usage: 6, Additional Required: 4") {
		t.Error(text)
	}
	for _, u := range w.list(sub + "/locations/eastus/usages") {
		if behaviour.Text(u, "name.value") == "standardDSv3Family" {
			w.want(u, "limit", 6)
			w.want(u, "currentValue", 6)
		}
	}
	w.must("PATCH", set, `{"sku":{"capacity":2}}`)
	w.must("PATCH", set, `{"sku":{"capacity":3}}`)
}

func TestExtensions(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
	const script = `{"location":"eastus","properties":{"publisher":"Microsoft.Azure.Extensions","type":"CustomScript",
		"typeHandlerVersion":"2.1","protectedSettings":{"commandToExecute":"true"}}}`
	if got := w.must("PUT", machine+"/extensions/script", script); got.Status != 201 {
		t.Errorf("create: %d", got.Status)
	}
	w.want(w.get(machine+"/extensions/script"), "properties.protectedSettings", nil)
	w.want(behaviour.Objects(w.get(machine), "resources")[0], "properties.provisioningState", "Succeeded")
	w.want(behaviour.Objects(w.get(machine+"/instanceView"), "extensions")[0], "type", "Microsoft.Azure.Extensions.CustomScript")
	w.refused("PUT", machine+"/extensions/bad", `{"properties":{}}`, 400, "InvalidParameter")
	w.must("DELETE", machine+"/extensions/script", "")
	w.want(w.get(machine), "resources", nil)

	w.scaleSet(model{capacity: 1})
	w.must("PUT", set+"/extensions/vmssCSE", script)
	w.want(w.get(set), "properties.virtualMachineProfile.extensionProfile.extensions", behaviour.At(w.get(set+"/extensions"), "value"))
	w.want(w.get(first), "properties.latestModelApplied", false)
	w.must("POST", set+"/manualupgrade", `{"instanceIds":["0"]}`)
	w.want(behaviour.Objects(w.get(first), "resources")[0], "name", "vmssCSE")
	w.want(behaviour.Objects(w.get(first+"/instanceView"), "extensions")[0], "name", "vmssCSE")
}

func TestSpotMachinesAreEvicted(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
	w.refused("POST", machine+"/simulateEviction", "", 409, "OperationNotAllowed")
	spot := machine + "2"
	w.must("PUT", spot, machineBody(w.newInterface("nic2"), func(d behaviour.Object) { behaviour.Set(d, "properties.priority", "Spot") }))
	w.must("POST", spot+"/simulateEviction", "")
	if got := states(w.get(spot + "/instanceView")); !slices.Contains(got, "PowerState/deallocated") {
		t.Errorf("statuses after the eviction: %v", got)
	}
	m := model{capacity: 2}.object()
	behaviour.Set(m, "properties.virtualMachineProfile.priority", "Spot")
	behaviour.Set(m, "properties.virtualMachineProfile.evictionPolicy", "Delete")
	w.must("PUT", set, text(m))
	w.must("POST", first+"/simulateEviction", "")
	w.want(w.get(set), "sku.capacity", 1)
}

func TestGeneralizedMachines(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
	w.refused("POST", machine+"/generalize", "", 409, "OperationNotAllowed")
	w.must("POST", machine+"/deallocate", "")
	w.must("POST", machine+"/generalize", "")
	w.refused("POST", machine+"/start", "", 409, "OperationNotAllowed")
}

// User data are shown to a request that asks for them, and to no other.
func TestUserData(t *testing.T) {
	w := newSubscription(t, core.Options{})
	nic := w.newInterface("nic")
	got := w.must("PUT", machine, machineBody(nic, func(o behaviour.Object) { behaviour.Set(o, "properties.userData", "aGVsbG8=") }))
	w.want(got.Body, "properties.userData", nil)
	w.want(w.get(machine), "properties.userData", nil)
	w.want(w.get(machine+"?$expand=userData"), "properties.userData", "aGVsbG8=")
}
