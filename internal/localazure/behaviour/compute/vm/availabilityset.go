package vm

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

func availabilitySets() behaviour.Type {
	style := behaviour.Plain("Microsoft.Compute availability sets")
	style.Created, style.RawNextLink = 200, true
	return behaviour.Type{
		Name:    schema.Namespace + "availabilitySets",
		Style:   style,
		Where:   behaviour.Located,
		NoState: true,
		Own:     []string{"properties.virtualMachines", "properties.virtualMachineScaleSetMigrationInfo"},
		Fill:    fillAvailabilitySet,
		Show:    showAvailabilitySet,
		InUse: func(c *behaviour.Call, _ []behaviour.Referrer) error {
			if len(machinesIn(c)) == 0 {
				return nil
			}
			return behaviour.Conflict("OperationNotAllowed",
				"Availability Set '%s' cannot be deleted. Before deleting an Availability Set please ensure that it does not "+
					"contain any VM.", c.ID.Name())
		},
		Views: map[string]func(c *behaviour.Call) (any, error){
			"vmSizes": func(*behaviour.Call) (any, error) { return behaviour.Object{"value": SizeList()}, nil },
		},
	}
}

func fillAvailabilitySet(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	if c.Old != nil {
		schema.KeepRest(c)
		if err := schema.CheckUnchanged(c, "properties.platformFaultDomainCount", "properties.platformUpdateDomainCount"); err != nil {
			return err
		}
	}
	if err := schema.CheckZones(c); err != nil {
		return err
	}
	if behaviour.Bool(c.Doc, "properties.managed") { // the SKU, in the api-version of 2016
		behaviour.Default(c.Doc, "sku.name", "Aligned")
	}
	behaviour.Remove(c.Doc, "properties.managed")
	behaviour.Default(c.Doc, "sku.name", "Classic")
	behaviour.Default(c.Doc, "properties.platformUpdateDomainCount", 5)
	behaviour.Default(c.Doc, "properties.platformFaultDomainCount", 3)
	for _, limit := range []struct {
		field string
		most  int
	}{{"platformUpdateDomainCount", 20}, {"platformFaultDomainCount", 3}} {
		if n, ok := behaviour.Int(c.Doc, "properties."+limit.field); !ok || n < 1 || n > limit.most {
			return behaviour.Invalid("InvalidParameter", "The specified value %v of %s is out of range. It must be between 1 and %d.",
				behaviour.At(c.Doc, "properties."+limit.field), limit.field, limit.most).At(limit.field)
		}
	}
	return nil
}

// showAvailabilitySet adds the scale set to which Azure would migrate the set, and on reads the machines of the set.
func showAvailabilitySet(c *behaviour.Call, view behaviour.Object) {
	behaviour.Set(view, "properties.virtualMachineScaleSetMigrationInfo.defaultVirtualMachineScaleSetInfo", behaviour.Object{
		"constrainedMaximumCapacity":    true,
		"defaultVirtualMachineScaleSet": behaviour.Ref(schema.GroupOf(c.ID).Resource(schema.ScaleSetType, c.ID.Name())),
	})
	if c.Verb == behaviour.Get || c.Verb == behaviour.List {
		behaviour.Set(view, "properties.virtualMachines", behaviour.Refs(machinesIn(c)))
	}
}

func machinesIn(c *behaviour.Call) []azure.ID {
	var ids []azure.ID
	for _, r := range c.Referrers(c.ID) {
		if r.Path == "properties.availabilitySet" && r.Resource.Is(schema.MachineType) {
			ids = append(ids, r.Resource)
		}
	}
	slices.SortFunc(ids, func(a, b azure.ID) int { return strings.Compare(a.Key(), b.Key()) })
	return ids
}
