package compute_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/core"
)

const (
	ubuntu18    = `"offer":"UbuntuServer","sku":"18.04-LTS"`
	ubuntu22    = `"offer":"0001-com-ubuntu-server-jammy","sku":"22_04-lts"`
	machinePath = behaviourtest.Group + "/providers/Microsoft.Compute/virtualMachines/m"
)

// matches fails the test unless the text at a path of a document matches a pattern.
func matches(t *testing.T, doc behaviour.Object, path, pattern string) {
	t.Helper()
	if got := behaviour.Text(doc, path); !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(got) {
		t.Errorf("%s is %q, want a match of %s", path, got, pattern)
	}
}

// The OS disk of a machine has the name that depends on its image. Data disks are counted from 2.
func TestNamesOfDisks(t *testing.T) {
	a := startAll(t)
	m := a.Run(exchange{Do: "GET " + here + "virtualMachines/m"})
	matches(t, m, "properties.storageProfile.osDisk.name", "m_OsDisk_1_[0-9a-f]{32}")
	matches(t, behaviour.Objects(m, "properties.storageProfile.dataDisks")[0], "name", "m_disk2_[0-9a-f]{32}")
	old := strings.Replace(machineWith("n2", `"priority":"Regular"`), ubuntu22, ubuntu18, 1)
	m = a.Run(
		exchange{Do: "PUT ~/providers/Microsoft.Network/networkInterfaces/n2", Body: plainNIC, Status: 201},
		exchange{Do: "PUT " + here + "virtualMachines/o", Body: old, Status: 201},
		exchange{Do: "GET " + here + "virtualMachines/o"},
	)
	matches(t, m, "properties.storageProfile.osDisk.name", "o_disk1_[0-9a-f]{32}")
}

// The OS disk of an instance is named after the scale set and the instance. A name beyond 80 characters is shortened.
func TestNamesOfDisksOfInstances(t *testing.T) {
	w := newSubscription(t, core.Options{})
	for name, pattern := range map[string]string{
		"np":                 "np_np_0_OsDisk_1_[0-9a-f]{32}",
		"testParentResource": "testParentResource_testParentResource_0_OS__1_[0-9a-f]{32}",
	} {
		path := group + "/providers/Microsoft.Compute/virtualMachineScaleSets/" + name
		w.must("PUT", path, model{capacity: 1}.json())
		matches(t, w.must("GET", path+"/virtualMachines/0", "").Body, "properties.storageProfile.osDisk.name", pattern)
	}
}

// An action on the instance "*" is one on all instances.
func TestActionOnAllInstances(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", set, model{capacity: 2}.json())
	w.must("POST", set+"/virtualMachines/%2A/poweroff?skipShutdown=false", "")
	for _, instance := range []string{"0", "1"} {
		if got := states(w.get(set + "/virtualMachines/" + instance + "/instanceView")); !slices.Contains(got, "PowerState/stopped") {
			t.Errorf("instance %s: %v", instance, got)
		}
	}
	w.refused("POST", set+"/virtualMachines/*/unknown", "", 404, "InvalidResourceType")
}

// The first answer for a disk says so in older API versions. The time from which a disk bursts is shown later.
func TestDiskIsAccepted(t *testing.T) {
	a := startAll(t)
	a.Run(
		exchange{Do: "GET " + here + "virtualMachines/m?$expand=instanceView", Has: has{
			"properties.instanceView.vmAgent.extensionHandlers.#": 0}},
		exchange{Do: "PUT " + here + "disks/b?api-version=2021-12-01", Status: 202, Body: `{"location":"eastus","sku":{"name":"Premium_LRS"},
			"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":1024,"burstingEnabled":true}}`,
			Has: has{"properties.provisioningState": "Updating", "properties.isArmResource": true, "properties.faultDomain": nil}},
		exchange{Do: "PUT " + here + "disks/b?api-version=2021-12-01", Status: 202, Body: `{"location":"eastus","sku":{"name":"Premium_LRS"},
			"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":2048,"burstingEnabled":true}}`, Has: has{
			"properties.isArmResource": true, "properties.faultDomain": 0, "properties.colocationConstraints": has{}}},
	)
	disk := a.Run(exchange{Do: "GET " + here + "disks/b?api-version=2021-12-01", Has: has{"properties.isArmResource": nil}})
	matches(t, disk, "properties.burstingEnabledTime", ".+")
}

// The answer to a PUT of a copy says of which disk it is, before the copy is made.
func TestCopyOfADiskIsAccepted(t *testing.T) {
	a := startAll(t)
	const empty = `{"location":"eastus","properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}`
	source := a.Run(exchange{Do: "PUT " + here + "disks/a", Body: empty, Status: 202}, exchange{Do: "GET " + here + "disks/a"})
	a.Run(
		exchange{Do: "PUT " + here + "disks/c", Status: 202, Body: `{"location":"eastus","properties":{"creationData":{"createOption":"Copy",
			"sourceResourceId":"` + behaviourtest.Group + `/providers/Microsoft.Compute/disks/a"}}}`, Has: has{
			"properties.creationData.sourceUniqueId": behaviour.Text(source, "properties.uniqueId"),
			"properties.publicNetworkAccess":         "Enabled", "properties.isArmResource": nil}},
	)
}

// A restore point says what its machine was, and has a restore point of each disk. Its copy says the same.
func TestRestorePointsDescribeTheirMachine(t *testing.T) {
	a := startAll(t)
	const first, second = here + "restorePointCollections/first/restorePoints/p", here + "restorePointCollections/second/restorePoints/c"
	collection := func(source string) string {
		return `{"location":"eastus","properties":{"source":{"id":"` + source + `"}}}`
	}
	collections := behaviourtest.Group + "/providers/Microsoft.Compute/restorePointCollections/"
	m := a.Run(exchange{Do: "GET " + here + "virtualMachines/m"})
	said := has{
		"properties.sourceMetadata.vmId": behaviour.Text(m, "properties.vmId"), "properties.sourceMetadata.location": "eastus",
		"properties.sourceMetadata.hardwareProfile.vmSize": "Standard_D2s_v3", "properties.sourceMetadata.hyperVGeneration": "V1",
		"properties.sourceMetadata.osProfile.computerName":                m["properties"].(has)["osProfile"].(has)["computerName"],
		"properties.sourceMetadata.storageProfile.osDisk.osType":          "Linux",
		"properties.sourceMetadata.storageProfile.osDisk.diskSizeGB":      64,
		"properties.sourceMetadata.storageProfile.dataDisks.0.diskSizeGB": 8,
		"properties.consistencyMode":                                      "FileSystemConsistent",
	}
	for _, x := range []struct{ point, source, body string }{
		{first, machinePath, `{}`},
		{second, collections + "first", `{"properties":{"sourceRestorePoint":{"id":"` + collections + `first/restorePoints/p"}}}`},
	} {
		point := a.Run(
			exchange{Do: "PUT " + strings.Split(x.point, "/restorePoints/")[0], Body: collection(x.source), Status: 201},
			exchange{Do: "PUT " + x.point, Body: x.body, Status: 201, Has: has{
				"properties.sourceMetadata.storageProfile.osDisk.diskRestorePoint": nil, "properties.sourceMetadata.location": "eastus"}},
			exchange{Do: "GET " + x.point + "?api-version=2022-03-01", Has: said},
		)
		matches(t, point, "properties.sourceMetadata.storageProfile.osDisk.diskRestorePoint.id",
			regexp.QuoteMeta(strings.Replace(x.point, "~", behaviourtest.Group, 1))+"/diskRestorePoints/m_OsDisk_1_[0-9a-f]{32}_[0-9a-f-]{36}")
	}
	a.Run(exchange{Do: "PUT " + here + "restorePointCollections/first/restorePoints/without", Status: 201, Body: `{"properties":{
		"excludeDisks":[{"id":"` + behaviour.Text(behaviour.Objects(m, "properties.storageProfile.dataDisks")[0], "managedDisk.id") + `"}]}}`,
		Has: has{"properties.sourceMetadata.storageProfile.dataDisks.#": 0}})
}

// A group of capacity reservations is made by an operation and deleted at once. A reservation spreads over three fault domains.
func TestCapacityReservationsAreOperations(t *testing.T) {
	a := startAll(t)
	status, header, body := a.Send("PUT", here+"capacityReservationGroups/g", `{"location":"eastus"}`)
	if status != 201 || header.Get("Azure-AsyncOperation") == "" || behaviour.Text(body, "properties.provisioningState") != "Creating" {
		t.Errorf("PUT of a group: %d %v %v", status, header, body)
	}
	a.Run(
		exchange{Do: "GET " + here + "capacityReservationGroups/g", Has: has{"properties.reservationType": "Targeted"}},
		exchange{Do: "PUT " + here + "capacityReservationGroups/g/capacityReservations/r", Status: 201, Has: has{
			"properties.platformFaultDomainCount": 3}, Body: `{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":1}}`},
		exchange{Do: "PUT " + here + "capacityReservationGroups/empty", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "DELETE " + here + "capacityReservationGroups/empty", Status: 200},
		exchange{Do: "GET " + here + "capacityReservationGroups/empty", Status: 404, Code: "ResourceNotFound"},
	)
}

// Regions of a version of an image have the names that people read.
func TestRegionsOfAnImage(t *testing.T) {
	a := startAll(t)
	a.Run(
		exchange{Do: "PUT " + here + "galleries/g", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + here + "galleries/g/images/d", Body: `{"location":"eastus","properties":{"osType":"Linux","osState":"Specialized",
			"identifier":{"publisher":"p","offer":"o","sku":"s"}}}`, Status: 201},
		exchange{Do: "PUT " + here + "galleries/g/images/d/versions/1.0.0", Status: 201, Body: `{"location":"eastus","properties":{
			"publishingProfile":{"targetRegions":[{"name":"eastus2"}]},"storageProfile":{"source":{"id":"` + machinePath + `"}}}}`,
			Has: has{"properties.publishingProfile.targetRegions.0.name": "East US 2"}},
	)
}

// A disk from an image is for the operating system and the processors of the image.
func TestDiskFromAnImage(t *testing.T) {
	a := startAll(t)
	const image = "/Subscriptions/s/Providers/Microsoft.Compute/Locations/eastus/Publishers/Canonical/ArtifactTypes/VMImage/Offers/" +
		"0001-com-ubuntu-server-jammy/Skus/22_04-lts-arm64/Versions/22.04.202001010"
	a.Run(exchange{Do: "PUT " + here + "disks/d", Status: 202, Has: has{"properties.osType": "Linux",
		"properties.supportedCapabilities.architecture": "Arm64", "properties.hyperVGeneration": "V2"}, Body: `{"location":"eastus",
		"properties":{"creationData":{"createOption":"FromImage","imageReference":{"id":"` + image + `"}}}}`})
}

// Applications of a gallery are written and deleted at once.
func TestApplicationsOfAGallery(t *testing.T) {
	a := startAll(t)
	const app = here + "galleries/g/applications/a"
	a.Run(
		exchange{Do: "PUT " + here + "galleries/g", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + app, Body: `{"location":"eastus","properties":{"supportedOSType":"Windows"}}`, Status: 201,
			Has: has{"properties.supportedOSType": "Windows", "properties.provisioningState": nil}},
		exchange{Do: "PATCH " + app, Body: `{"tags":{"a":"b"}}`, Has: has{"tags.a": "b", "properties.provisioningState": nil}},
		exchange{Do: "DELETE " + app},
		exchange{Do: "GET " + app, Status: 404, Code: "NotFound"},
	)
}

// A placement group shows empty lists of what it places, but not in the answer to a write.
func TestEmptyPlacementGroup(t *testing.T) {
	a := startAll(t)
	const group = here + "proximityPlacementGroups/p"
	a.Run(
		exchange{Do: "PUT " + group, Body: `{"location":"eastus"}`, Status: 201, Has: has{"properties.availabilitySets": nil}},
		exchange{Do: "GET " + group, Has: has{"properties.availabilitySets.#": 0, "properties.virtualMachineScaleSets.#": 0}},
	)
}
