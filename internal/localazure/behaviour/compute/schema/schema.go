// Package schema has what the types of Microsoft.Compute share: names of types and fields, states, and checks of
// requests. Layer L2.
package schema

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
)

const (
	Namespace             = "Microsoft.Compute/"
	ScaleSetType          = Namespace + "virtualMachineScaleSets"
	InstanceType          = ScaleSetType + "/virtualMachines"
	InstanceInterfaceType = InstanceType + "/networkInterfaces"
	InstanceAddressType   = InstanceInterfaceType + "/ipConfigurations"
	InstancePublicIPType  = InstanceAddressType + "/publicIPAddresses"
	MachineType           = Namespace + "virtualMachines"
	DiskType              = Namespace + "disks"
	InterfaceType         = "Microsoft.Network/networkInterfaces"
	NetworkAddress        = "Microsoft.Network/publicIPAddresses"
)

// Runtime is the member of a stored document that clients never see: the power state of the machine and the version of
// its model.
const Runtime = "runtime"

// The values of provisioningState.
const (
	Creating  = "Creating"
	Updating  = "Updating"
	Deleting  = "Deleting"
	Succeeded = "Succeeded"
	Failed    = "Failed"
)

func State(doc behaviour.Object) string {
	return behaviour.Text(doc, "properties.provisioningState")
}

func SetState(doc behaviour.Object, s string) {
	behaviour.Set(doc, "properties.provisioningState", s)
}

// KeepRest copies what the document of a PUT leaves out from the stored document, as the compute provider does. Arrays
// and tags are replaced whole. A PATCH is merged already.
func KeepRest(c *behaviour.Call) {
	if c.Verb != behaviour.Patch {
		Keep(c.Doc, c.Old)
	}
}

func Keep(doc, old behaviour.Object) {
	for key, was := range old {
		is, ok := doc[key]
		if !ok {
			doc[key] = behaviour.Clone(was)
			continue
		}
		into, isObject := is.(behaviour.Object)
		from, wasObject := was.(behaviour.Object)
		if isObject && wasObject && key != "tags" && key != "userAssignedIdentities" {
			Keep(into, from)
		}
	}
}

// ShowUserData leaves the user data at a path only in a view that a request asks them for.
func ShowUserData(c *behaviour.Call, view behaviour.Object, path string) {
	if !c.Expands("userData") {
		behaviour.Remove(view, path)
	}
}

// Required refuses a document without a value at a path. name is the provider's name for the value.
func Required(doc behaviour.Object, path, name string) error {
	if v := behaviour.At(doc, path); v == nil || v == "" {
		return behaviour.Invalid("InvalidParameter", "Required parameter '%s' is missing (null).", name).At(name)
	}
	return nil
}

// nameForm matches the names that Azure allows for the network resources of a machine.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$`)

// CheckName refuses a model without a name, or with a name that its resource cannot have. what is the provider's name for it.
func CheckName(model behaviour.Object, what string) error {
	if err := Required(model, "name", what); err != nil {
		return err
	}
	if name := behaviour.Text(model, "name"); !nameForm.MatchString(name) {
		return behaviour.Invalid("InvalidParameter", "The value '%s' of parameter '%s' is invalid. The name must have 1 to 80 letters, "+
			"digits, '.', '-' and '_', begin with a letter, a digit or '_', and end with one of these.", name, what).At(what)
	}
	return nil
}

// GroupOf returns the id of the resource group of a resource.
func GroupOf(id azure.ID) azure.ID { return azure.GroupID(id.Subscription(), id.Group()) }

// Hex32 returns a GUID without dashes.
func Hex32(w behaviour.World) string { return strings.ReplaceAll(w.GUID(), "-", "") }

// Number returns the whole number at a path, 0 for none.
func Number(doc behaviour.Object, path string) int {
	n, _ := behaviour.Int(doc, path)
	return n
}

// The paths of a scale set's model and capacity.
const (
	ProfilePath  = "properties.virtualMachineProfile"
	NetworkPath  = ProfilePath + ".networkProfile"
	CapacityPath = "sku.capacity"
)

func IsFlexible(doc behaviour.Object) bool {
	return strings.EqualFold(behaviour.Text(doc, "properties.orchestrationMode"), "Flexible")
}

// CheckZones refuses zones that the region does not have.
func CheckZones(c *behaviour.Call) error {
	region, _ := catalog.FindRegion(c.Location())
	for _, zone := range behaviour.Texts(c.Doc, "zones") {
		if !ContainsFold(region.Zones, zone) {
			e := behaviour.Invalid("AvailabilityZoneNotSupported",
				"The zone(s) '%s' for resource '%s/%s' is not supported. The supported zones for location '%s' are '%s'", zone,
				c.Type.Name, c.ID.Name(), region.Name, strings.Join(region.Zones, ","))
			e.Gateway = true
			return e
		}
	}
	return nil
}

func RegionNames() []string {
	var names []string
	for _, r := range catalog.Regions() {
		names = append(names, r.Name)
	}
	return names
}

func ContainsFold(list []string, s string) bool {
	for _, x := range list {
		if strings.EqualFold(x, s) {
			return true
		}
	}
	return false
}

// CheckUnchanged refuses a change at one of the paths.
func CheckUnchanged(c *behaviour.Call, paths ...string) error {
	for _, path := range paths {
		if c.Changed(path) {
			name := path[strings.LastIndexByte(path, '.')+1:]
			return behaviour.Conflict("PropertyChangeNotAllowed", "Changing property '%s' is not allowed.",
				strings.TrimPrefix(path, "properties.")).At(name)
		}
	}
	return nil
}

func SortedKeys(o behaviour.Object) []string { return slices.Sorted(maps.Keys(o)) }

// ModelFields returns the fields of a scale set's model that its machines have unchanged.
func ModelFields() []string {
	return []string{"securityProfile", "diagnosticsProfile", "licenseType", "priority", "evictionPolicy"}
}
