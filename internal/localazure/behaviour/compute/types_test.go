package compute_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/compute"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	here    = "~/providers/Microsoft.Compute/"
	plainVM = `{"location":"eastus","properties":{"hardwareProfile":{"vmSize":"Standard_D2s_v3"},"storageProfile":{"imageReference":{
		"publisher":"Canonical","offer":"0001-com-ubuntu-server-jammy","sku":"22_04-lts","version":"latest"},
		"osDisk":{"createOption":"fromimage","diskSizeGB":"64","deleteOption":"delete"},
		"dataDisks":[{"lun":"0","createOption":"empty","diskSizeGB":"8","caching":"readonly"}]},
		"osProfile":{"computerName":"m","adminUsername":"u","linuxConfiguration":{"disablePasswordAuthentication":"true"}},
		"networkProfile":{"networkInterfaces":[{"id":"` + behaviourtest.Group + `/providers/Microsoft.Network/networkInterfaces/n",
		"properties":{"primary":"true"}}]}}}`
	plainNIC = `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":"` + behaviourtest.Group +
		`/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}}}]}}`
	plainVNet = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
		"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`
)

func startAll(t *testing.T) *behaviourtest.Azure {
	a := behaviourtest.Start(t, resources.Provider(), network.Provider(), compute.Provider(), identity.Provider())
	a.Run(
		exchange{Do: "PUT ~/providers/Microsoft.Network/virtualNetworks/v", Body: plainVNet, Status: 201},
		exchange{Do: "PUT ~/providers/Microsoft.Network/networkInterfaces/n", Body: plainNIC, Status: 201},
		exchange{Do: "PUT " + here + "virtualMachines/m", Body: plainVM, Status: 201},
	)
	return a
}

// A machine's values are converted, and completed by Azure's defaults.
func TestValuesOfAMachineAreConvertedAndCompleted(t *testing.T) {
	a := startAll(t)
	a.Run(exchange{Do: "GET " + here + "virtualMachines/m", Has: has{
		"properties.storageProfile.osDisk.createOption":                         "FromImage",
		"properties.storageProfile.osDisk.diskSizeGB":                           64,
		"properties.storageProfile.osDisk.deleteOption":                         "Delete",
		"properties.storageProfile.osDisk.caching":                              "ReadWrite",
		"properties.storageProfile.dataDisks.0.lun":                             0,
		"properties.storageProfile.dataDisks.0.createOption":                    "Empty",
		"properties.storageProfile.dataDisks.0.caching":                         "ReadOnly",
		"properties.osProfile.linuxConfiguration.disablePasswordAuthentication": true,
		"properties.osProfile.linuxConfiguration.enableVMAgentPlatformUpdates":  false,
		"properties.networkProfile.networkInterfaces.0.properties.primary":      true,
	}})
}

// Images, galleries and groups of machines are stored with what Azure adds.
func TestTypesOfTheTable(t *testing.T) {
	a := startAll(t)
	vm := behaviourtest.Group + "/providers/Microsoft.Compute/virtualMachines/m"
	image := `{"location":"eastus","properties":{"sourceVirtualMachine":{"id":"` + vm + `"}}}`
	ppg := behaviourtest.Group + "/providers/Microsoft.Compute/proximityPlacementGroups/p"
	a.Run(
		exchange{Do: "PUT " + here + "images/i", Body: image, Status: 409, Code: "OperationNotAllowed"},
		exchange{Do: "POST " + here + "virtualMachines/m/capture", Body: `{"vhdPrefix":"a","destinationContainerName":"b","overwriteVhds":true}`,
			Status: 409, Code: "OperationNotAllowed"},
		exchange{Do: "POST " + here + "virtualMachines/m/powerOff", Status: 202},
		exchange{Do: "POST " + here + "virtualMachines/m/generalize"},
		exchange{Do: "POST " + here + "virtualMachines/m/capture", Body: `{"vhdPrefix":"a","destinationContainerName":"b","overwriteVhds":true}`,
			Status: 202},
		exchange{Do: "PUT " + here + "images/i", Body: image, Status: 201},
		exchange{Do: "GET " + here + "images/i", Has: has{
			"properties.storageProfile.osDisk.osType": "Linux", "properties.storageProfile.osDisk.osState": "Generalized",
			"properties.storageProfile.dataDisks.#": 1, "properties.storageProfile.zoneResilient": false, "properties.hyperVGeneration": "V1",
			"properties.provisioningState": "Succeeded", "etag": nil,
		}},
		exchange{Do: "PUT " + here + "galleries/g", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + here + "galleries/g/images/d", Body: `{"location":"eastus","properties":{"osType":"linux","osState":"generalized",
			"identifier":{"publisher":"p","offer":"o","sku":"s"}}}`, Status: 201},
		exchange{Do: "PUT " + here + "galleries/g/images/d/versions/1.0.0", Status: 201, Body: `{"location":"eastus","properties":{
			"publishingProfile":{"targetRegions":[{"name":"East US"}]},"storageProfile":{"source":{"id":"` + behaviourtest.Group +
			`/providers/Microsoft.Compute/images/i"}}}}`},
		exchange{Do: "GET " + here + "galleries/g/images/d/versions/1.0.0?$expand=ReplicationStatus", Has: has{
			"properties.storageProfile.osDiskImage.hostCaching": "ReadWrite", "properties.storageProfile.osDiskImage.sizeInGB": 64,
			"properties.storageProfile.dataDiskImages.0.sizeInGB": 8, "properties.replicationStatus.summary.0.progress": 100}},
		exchange{Do: "GET " + here + "galleries/g/images/d", Has: has{"properties.osType": "Linux", "properties.osState": "Generalized",
			"properties.hyperVGeneration": "V1"}},
		exchange{Do: "GET " + here + "galleries/g/images/d/versions", Has: has{"value.#": 1,
			"value.0.properties.publishingProfile.targetRegions.0.regionalReplicaCount": 1,
			"value.0.properties.publishingProfile.storageAccountType":                   "Standard_LRS"}},
		exchange{Do: "PUT " + here + "proximityPlacementGroups/p", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + here + "availabilitySets/a", Body: `{"location":"eastus","properties":{"proximityPlacementGroup":{"id":"` + ppg + `"}}}`},
		exchange{Do: "GET " + here + "proximityPlacementGroups/p", Has: has{"properties.proximityPlacementGroupType": "Standard",
			"properties.availabilitySets.#": 1, "properties.virtualMachines.#": 0}},
		exchange{Do: "PUT " + here + "hostGroups/h", Body: `{"location":"eastus","properties":{"platformFaultDomainCount":"2"}}`, Status: 201,
			Has: has{"properties.platformFaultDomainCount": 2}},
		exchange{Do: "PUT " + here + "disks/u", Body: `{"location":"eastus","sku":{"name":"ultrassd_lrs"},"properties":{"maxShares":"2",
			"creationData":{"createOption":"empty"},"diskSizeGB":"8"}}`, Status: 202},
		exchange{Do: "GET " + here + "disks/u", Has: has{"sku.name": "UltraSSD_LRS", "properties.creationData.logicalSectorSize": 4096,
			"properties.diskIOPSReadOnly": 500, "properties.diskMBpsReadOnly": 100}},
		exchange{Do: "PUT " + here + "hostGroups/h/hosts/o", Body: `{"location":"eastus","sku":{"name":"DSv3-Type1"}}`, Status: 201},
		exchange{Do: "GET " + here + "hostGroups/h", Has: has{"properties.hosts.#": 1}},
		exchange{Do: "GET " + here + "hostGroups/h/hosts/o?$expand=instanceView", Has: has{
			"properties.instanceView.statuses.0.code": "ProvisioningState/succeeded"}},
		exchange{Do: "GET " + here + "nothings/x", Status: 404, Code: "InvalidResourceType"},
	)
}

// Dedicated hosts, capacity reservations and their groups show the machines that refer to them. A reservation is for one size.
func TestMachinesOfHostsAndReservations(t *testing.T) {
	a := startAll(t)
	group := behaviourtest.Group + "/providers/Microsoft.Compute/"
	a.Run(
		exchange{Do: "PUT " + here + "hostGroups/h", Body: `{"location":"eastus","properties":{"platformFaultDomainCount":1}}`, Status: 201},
		exchange{Do: "PUT " + here + "hostGroups/h/hosts/o", Body: `{"location":"eastus","sku":{"name":"DSv3-Type1"}}`, Status: 201},
		exchange{Do: "PUT " + here + "capacityReservationGroups/c", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + here + "capacityReservationGroups/c/capacityReservations/r",
			Body: `{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":1}}`, Status: 201},
		exchange{Do: "PUT " + here + "capacityReservationGroups/c/capacityReservations/other",
			Body: `{"location":"eastus","sku":{"name":"Standard_D4s_v3","capacity":1}}`, Status: 201},
		exchange{Do: "PUT ~/providers/Microsoft.Network/networkInterfaces/n2", Body: plainNIC, Status: 201},
		exchange{Do: "PUT ~/providers/Microsoft.Network/networkInterfaces/n3", Body: plainNIC, Status: 201},
		exchange{Do: "PUT " + here + "virtualMachines/hosted", Status: 201, Body: machineWith("n2", `"host":{"id":"`+group+`hostGroups/h/hosts/o"}`)},
		exchange{Do: "PUT " + here + "virtualMachines/reserved", Status: 201,
			Body: machineWith("n3", `"capacityReservation":{"capacityReservationGroup":{"id":"`+group+`capacityReservationGroups/c"}}`)},
		exchange{Do: "GET " + here + "hostGroups/h/hosts/o", Has: has{"properties.virtualMachines.#": 1,
			"properties.virtualMachines.0.id": group + "virtualMachines/hosted"}},
		exchange{Do: "GET " + here + "capacityReservationGroups/c", Has: has{"properties.virtualMachinesAssociated.#": 1,
			"properties.virtualMachinesAssociated.0.id": group + "virtualMachines/reserved", "properties.capacityReservations.#": 2}},
		exchange{Do: "GET " + here + "capacityReservationGroups/c/capacityReservations/r", Has: has{
			"properties.virtualMachinesAssociated.0.id": group + "virtualMachines/reserved"}},
		exchange{Do: "GET " + here + "capacityReservationGroups/c/capacityReservations/other", Has: has{
			"properties.virtualMachinesAssociated.#": 0}},
	)
}

// machineWith is a machine with another network interface and more properties.
func machineWith(nic, more string) string {
	body := strings.Replace(plainVM, "networkInterfaces/n\"", "networkInterfaces/"+nic+"\"", 1)
	return strings.Replace(body, `"properties":{`, `"properties":{`+more+",", 1)
}

// A script that runs on a machine ends with an output. A machine that is off runs no script.
func TestRunCommand(t *testing.T) {
	a := startAll(t)
	got := a.Request("POST", here+"virtualMachines/m/runCommand", `{"commandId":"RunShellScript","script":["true"]}`)
	if got.Status != 202 {
		t.Fatalf("runCommand: %d %v", got.Status, got.Body)
	}
	a.Run(
		exchange{Do: "GET " + got.Header.Get("Azure-AsyncOperation"), Has: has{"status": "Succeeded",
			"properties.output.value.0.code": "ProvisioningState/succeeded"}},
		exchange{Do: "GET " + got.Header.Get("Location"), Has: has{"value.0.level": "Info"}},
		exchange{Do: "POST " + here + "virtualMachines/m/deallocate", Status: 202},
		exchange{Do: "POST " + here + "virtualMachines/m/runCommand", Body: `{"commandId":"RunShellScript"}`, Status: 409,
			Code: "OperationNotAllowed"},
	)
}

// A rolling upgrade brings all instances to the model, and can be looked up afterwards.
func TestRollingUpgrade(t *testing.T) {
	a := startAll(t)
	const set = here + "virtualMachineScaleSets/s"
	model := `{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":"2"},"properties":{"upgradePolicy":{"mode":"manual"},
		"virtualMachineProfile":{"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"0001-com-ubuntu-server-jammy",
		"sku":"22_04-lts","version":"latest"}},"osProfile":{"computerNamePrefix":"s","adminUsername":"u"},
		"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,"ipConfigurations":[{"name":"c",
		"properties":{"subnet":{"id":"` + behaviourtest.Group + `/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}}}]}}]}}}}`
	a.Run(
		exchange{Do: "PUT " + set, Body: model, Status: 201, Has: has{"sku.capacity": 2, "properties.upgradePolicy.mode": "Manual",
			"properties.upgradePolicy.rollingUpgradePolicy.maxBatchInstancePercent": 20}},
		exchange{Do: "GET " + set + "/rollingUpgrades/latest", Status: 404, Code: "NotFound"},
		exchange{Do: "POST " + set + "/rollingUpgrades/cancel", Status: 409, Code: "OperationNotAllowed"},
		exchange{Do: "PATCH " + set, Body: `{"tags":{"a":"b"},"properties":{"virtualMachineProfile":{"licenseType":"RHEL_BYOS"}}}`},
		exchange{Do: "GET " + set + "/virtualMachines/0", Has: has{"properties.latestModelApplied": false}},
		exchange{Do: "POST " + set + "/osRollingUpgrade", Status: 202},
		exchange{Do: "GET " + set + "/rollingUpgrades/latest", Has: has{"properties.runningStatus.code": "Completed",
			"properties.progress.successfulInstanceCount": 2, "type": "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades"}},
		exchange{Do: "GET " + set + "/virtualMachines/0", Has: has{"properties.latestModelApplied": true}},
	)
}

// Every type that has an identity gets its principal, and a user-assigned identity must exist.
func TestManagedIdentities(t *testing.T) {
	a := startAll(t)
	user := behaviourtest.Group + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u"
	made := a.Run(exchange{Do: "PUT ~/providers/Microsoft.ManagedIdentity/userAssignedIdentities/u", Body: `{"location":"eastus"}`, Status: 201})
	with := func(identity string) string {
		return `{"location":"eastus","properties":{},"identity":` + identity + `}`
	}
	first := a.Run(exchange{Do: "PUT " + here + "diskEncryptionSets/e", Body: with(`{"type":"SystemAssigned"}`), Status: 202})
	principal := behaviourtest.At(first, "identity.principalId")
	if principal == nil {
		t.Errorf("no principal: %v", first)
	}
	a.Run(
		exchange{Do: "PUT " + here + "diskEncryptionSets/e", Status: 202,
			Body: with(`{"type":"SystemAssigned, UserAssigned","userAssignedIdentities":{"` + user + `":{}}}`),
			Has:  has{"identity.principalId": principal}},
		exchange{Do: "PUT " + here + "diskEncryptionSets/e", Body: with(`{"type":"UserAssigned","userAssignedIdentities":{"` + user + `x":{}}}`),
			Status: 400, Code: "FailedIdentityOperation"},
		exchange{Do: "PATCH " + here + "diskEncryptionSets/e", Body: `{"identity":{"type":"None"}}`, Status: 202, Has: has{"identity": nil}},
	)
	shown := a.Run(exchange{Do: "PATCH " + here + "virtualMachines/m", Body: `{"identity":{"type":"UserAssigned","userAssignedIdentities":{"` + user + `":{}}}}`})
	users, _ := behaviourtest.At(shown, "identity.userAssignedIdentities").(map[string]any)
	if got := behaviourtest.At(users[user], "clientId"); got == nil || got != behaviourtest.At(made, "properties.clientId") {
		t.Errorf("client id %v of %v", got, shown)
	}
}

// Machines can be made from specialized images without users, are listed by location, and have further actions.
func TestFurtherOfMachines(t *testing.T) {
	a := startAll(t)
	specialized := behaviourtest.Group + "/providers/Microsoft.Compute/galleries/g/images/s"
	disk := behaviourtest.Group + "/providers/Microsoft.Compute/disks/d"
	const image = `"publisher":"Canonical","offer":"0001-com-ubuntu-server-jammy","sku":"22_04-lts","version":"latest"`
	machine := strings.Replace(strings.Replace(plainVM, image, `"id":"`+specialized+`"`, 1), "networkInterfaces/n", "networkInterfaces/n2", 1)
	profile := machine[strings.Index(machine, `"osProfile"`):strings.Index(machine, `"networkProfile"`)]
	a.Run(
		exchange{Do: "PUT ~/providers/Microsoft.Network/networkInterfaces/n2", Body: plainNIC, Status: 201},
		exchange{Do: "PUT " + here + "disks/d", Body: `{"location":"eastus","properties":{"creationData":{"createOption":"Empty"},
			"diskSizeGB":32}}`, Status: 202},
		exchange{Do: "PUT " + here + "galleries/g", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + here + "galleries/g/images/s", Body: `{"location":"eastus","properties":{"osType":"Linux","osState":"Specialized",
			"identifier":{"publisher":"p","offer":"o","sku":"s"}}}`, Status: 201},
		exchange{Do: "PUT " + here + "galleries/g/images/s/versions/1.0.0", Body: `{"location":"eastus","properties":{"storageProfile":{
			"osDiskImage":{"source":{"id":"` + disk + `"}}}}}`, Status: 201},
		exchange{Do: "PUT " + here + "virtualMachines/m2", Body: strings.Replace(machine, profile, "", 1), Status: 201},
		exchange{Do: "GET " + here + "virtualMachines/m2", Has: has{"properties.osProfile": nil}},
		exchange{Do: "GET ~~/providers/Microsoft.Compute/locations/eastus/virtualMachines", Has: has{"value.#": 2}},
		exchange{Do: "GET ~~/providers/Microsoft.Compute/locations/westus/virtualMachines", Has: has{"value.#": 0}},
		exchange{Do: "GET ~~/providers/Microsoft.Compute/locations/eastus/sharedGalleries", Has: has{"value.#": 0}},
		exchange{Do: "GET ~~/providers/Microsoft.Compute/locations/eastus/publishers/Canonical/artifacttypes/vmimage/offers/" +
			"0001-com-ubuntu-server-jammy/skus/22_04-lts/versions?$expand=properties", Has: has{
			"value.0.properties.osDiskImage.operatingSystem": "Linux"}},
		exchange{Do: "GET ~~/providers/Microsoft.Compute/locations/eastus/runCommands/RunShellScript", Has: has{"osType": "Linux"}},
		exchange{Do: "PUT " + here + "restorePointCollections/r", Body: `{"location":"eastus","properties":{"source":{"id":"` +
			behaviourtest.Group + `/providers/Microsoft.Compute/virtualMachines/m"}}}`, Status: 201,
			Has: has{"properties.source.location": "eastus"}},
		exchange{Do: "PUT " + here + "diskAccesses/a", Body: `{"location":"eastus"}`, Status: 202},
		exchange{Do: "GET " + here + "diskAccesses/a/privateLinkResources", Has: has{"value.0.properties.groupId": "disks"}},
	)
}

// The data disks of a scale set's model have a caching and a kind of storage.
func TestDataDisksOfAModel(t *testing.T) {
	a := startAll(t)
	subnet := behaviourtest.Group + "/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
	const model = "properties.virtualMachineProfile.storageProfile.dataDisks.0."
	a.Run(
		exchange{Do: "PUT " + here + "virtualMachineScaleSets/s", Status: 201, Body: `{"location":"eastus","sku":{"name":"Standard_D2s_v3",
			"capacity":1},"properties":{"virtualMachineProfile":{"storageProfile":{"imageReference":{"publisher":"Canonical",
			"offer":"0001-com-ubuntu-server-jammy","sku":"22_04-lts","version":"latest"},"dataDisks":[{"lun":0,"createOption":"Empty",
			"diskSizeGB":4}]},"osProfile":{"computerNamePrefix":"p","adminUsername":"u","adminPassword":"Secret-12345"},
			"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,"ipConfigurations":[{"name":"c",
			"properties":{"subnet":{"id":"` + subnet + `"}}}]}}]}}}}`},
		exchange{Do: "GET " + here + "virtualMachineScaleSets/s",
			Has: has{model + "caching": "None", model + "managedDisk.storageAccountType": "Premium_LRS"}},
		exchange{Do: "GET " + here + "virtualMachineScaleSets/s/osUpgradeHistory", Has: has{"value.#": 0}},
	)
}

// Azure makes no users with some names, and takes no ECDSA keys.
func TestRefusedUsers(t *testing.T) {
	a := startAll(t)
	keys := func(data string) string {
		return `"linuxConfiguration":{"ssh":{"publicKeys":[{"path":"/home/u/.ssh/authorized_keys","keyData":"` + data + `"}]},`
	}
	with := func(old, now string) string {
		return strings.Replace(strings.Replace(plainVM, old, now, 1), "networkInterfaces/n", "networkInterfaces/n2", 1)
	}
	profile := strings.Replace(`{"location":"eastus","sku":{"name":"Standard_D2s_v3","capacity":0},"properties":{
		"virtualMachineProfile":{"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"0001-com-ubuntu-server-jammy",
		"sku":"22_04-lts","version":"latest"}},"osProfile":{"computerNamePrefix":"p","adminUsername":"Admin",
		"adminPassword":"Secret-12345"},"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,
		"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":"SUBNET"}}}]}}]}}}}`, "SUBNET", behaviourtest.Group+
		"/providers/Microsoft.Network/virtualNetworks/v/subnets/s", 1)
	a.Run(
		exchange{Do: "PUT ~/providers/Microsoft.Network/networkInterfaces/n2", Body: plainNIC, Status: 201},
		exchange{Do: "PUT " + here + "virtualMachines/m2", Body: with(`"adminUsername":"u"`, `"adminUsername":"Admin"`), Status: 400,
			Code: "InvalidParameter"},
		exchange{Do: "PUT " + here + "virtualMachineScaleSets/s", Body: profile, Status: 400, Code: "InvalidParameter"},
		exchange{Do: "PUT " + here + "virtualMachines/m2", Body: with(`"linuxConfiguration":{`, keys("ecdsa-sha2-nistp256 AAAA")),
			Status: 400, Code: "InvalidParameter"},
		exchange{Do: "PUT " + here + "virtualMachines/m2", Body: with(`"linuxConfiguration":{`, keys("ssh-ed25519 AAAA")), Status: 201},
	)
}

func TestSharedGalleries(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), compute.Provider())
	gallery := here + "galleries/g"
	share := func(body string) {
		t.Helper()
		if reply := a.Request("POST", gallery+"/share", body); reply.Status != 202 {
			t.Fatalf("POST share %s: %d %v", body, reply.Status, reply.Body)
		}
	}
	a.Run(exchange{Do: "PUT " + gallery, Body: `{"location":"eastus","properties":{"sharingProfile":{"permissions":"Groups"}}}`, Status: 201})
	share(`{"operationType":"Add","groups":[{"type":"Subscriptions","ids":["s1","s2"]},{"type":"AADTenants","ids":["t1"]}]}`)
	share(`{"operationType":"Remove","groups":[{"type":"Subscriptions","ids":["S1"]}]}`)
	a.Run(
		exchange{Do: "GET " + gallery, Has: has{"properties.sharingProfile.groups": nil}},
		exchange{Do: "GET " + gallery + "?$expand=SharingProfile/Groups", Has: has{"properties.sharingProfile.groups.#": 2,
			"properties.sharingProfile.groups.0.ids.#": 1, "properties.sharingProfile.groups.0.ids.0": "s2"}},
		exchange{Do: "POST " + gallery + "/share", Body: `{"operationType":"Lend"}`, Status: 400, Code: "InvalidParameter"},
	)
	share(`{"operationType":"Reset"}`)
	a.Run(exchange{Do: "GET " + gallery + "?$expand=SharingProfile/Groups", Has: has{"properties.sharingProfile.groups": nil}})
}

func TestDisksOfImages(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), compute.Provider())
	disk := here + "disks/d"
	a.Run(
		exchange{Do: "PUT " + disk, Status: 202, Body: `{"location":"eastus","properties":{"creationData":{"createOption":"FromImage",
			"imageReference":{"id":"~~/Providers/Microsoft.Compute/Locations/eastus/Publishers/Canonical/ArtifactTypes/VMImage/Offers/x/Skus/y-gen2/Versions/1"}}}}`},
		exchange{Do: "GET " + disk, Has: has{"properties.hyperVGeneration": "V2", "properties.supportedCapabilities.acceleratedNetwork": true}},
	)
	reply := a.Request("POST", disk+"/beginGetAccess", `{"access":"Read","durationInSeconds":300,"getSecureVMGuestStateSAS":true}`)
	_, _, signed := a.Send("GET", reply.Header.Get("Location"), "")
	if signed["accessSAS"] == nil || signed["securityDataAccessSAS"] == nil || signed["securityMetadataAccessSAS"] != nil {
		t.Errorf("the signed URLs are %v", signed)
	}
}
