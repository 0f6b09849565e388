// Package compute has the behaviour of Microsoft.Compute: virtual machines, scale
// sets with their instances and interfaces, disks, snapshots, availability sets,
// SSH keys and the catalogue of sizes. Layer L2.
package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Provider is Microsoft.Compute.
func Provider() behaviour.Provider {
	return behaviour.Provider{
		Types: []behaviour.Type{
			scaleSets(), instances(), instanceInterfaces(), instanceAddresses(), instancePublicIPs(),
			scaleSetInterfaces(), scaleSetPublicIPs(),
			scaleSetExtensions(), virtualMachines(), machineExtensions(), availabilitySets(), disks(), snapshots(), sshPublicKeys(),
		},
		Routes: skuRoutes(),
	}
}

const (
	provider       = "Microsoft.Compute/"
	scaleSetType   = provider + "virtualMachineScaleSets"
	instanceType   = scaleSetType + "/virtualMachines"
	interfaceType  = instanceType + "/networkInterfaces"
	addressType    = interfaceType + "/ipConfigurations"
	publicIPType   = addressType + "/publicIPAddresses"
	machineType    = provider + "virtualMachines"
	diskType       = provider + "disks"
	networkIface   = "Microsoft.Network/networkInterfaces"
	networkAddress = "Microsoft.Network/publicIPAddresses"
)

// runtime is the member of a stored document that clients never see: what the
// machine does at the moment, which model it was made from.
const runtime = "runtime"

// values of provisioningState.
const (
	creating  = "Creating"
	updating  = "Updating"
	deleting  = "Deleting"
	succeeded = "Succeeded"
	failed    = "Failed"
)

func state(doc behaviour.Object) string {
	return behaviour.Text(doc, "properties.provisioningState")
}

func setState(doc behaviour.Object, s string) {
	behaviour.Set(doc, "properties.provisioningState", s)
}

// keepRest adds to the document of a PUT what it leaves out: the compute provider
// changes what a request names and leaves the rest. Arrays and tags are replaced
// whole. A PATCH has been merged already.
func keepRest(c *behaviour.Call) {
	if c.Verb != behaviour.Patch {
		keep(c.Doc, c.Old)
	}
}

func keep(doc, old behaviour.Object) {
	for key, was := range old {
		is, ok := doc[key]
		if !ok {
			doc[key] = behaviour.Clone(was)
			continue
		}
		into, isObject := is.(behaviour.Object)
		from, wasObject := was.(behaviour.Object)
		if isObject && wasObject && key != "tags" && key != "userAssignedIdentities" {
			keep(into, from)
		}
	}
}

// required refuses a document without a value at a path; name is how the provider
// calls it.
func required(doc behaviour.Object, path, name string) error {
	if v := behaviour.At(doc, path); v == nil || v == "" {
		return behaviour.Invalid("InvalidParameter", "Required parameter '%s' is missing (null).", name).At(name)
	}
	return nil
}

// groupOf is the id of the resource group of a resource.
func groupOf(id azure.ID) azure.ID { return azure.GroupID(id.Subscription(), id.Group()) }

// hex32 is a GUID without its dashes.
func hex32(w behaviour.World) string { return strings.ReplaceAll(w.GUID(), "-", "") }

// number is the whole number at a path, 0 when there is none.
func number(doc behaviour.Object, path string) int {
	n, _ := behaviour.Int(doc, path)
	return n
}

// each walks over the objects of an array at a path.
func each(doc behaviour.Object, path string, f func(o behaviour.Object)) {
	for _, o := range behaviour.Objects(doc, path) {
		f(o)
	}
}

// first returns the first of the texts that is not empty.
func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
