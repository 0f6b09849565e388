package compute

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute/schema"
	"kaz/internal/emulator/behaviour/compute/vm"
	"kaz/internal/emulator/catalog"
)

// coreLimit is the quota of cores in a region, of each family and in total. The emulator shows it and does not enforce
// it.
const coreLimit = 100000

// listUsages lists the usage and the quotas of a region.
func listUsages(c *behaviour.Call) (behaviour.Reply, error) {
	region, ok := catalog.FindRegion(c.Param["location"])
	if !ok {
		return behaviour.Reply{}, noLocation(c.Param["location"])
	}
	scope := azure.SubscriptionID(c.Param["subscription"])
	count := func(fullType string, in func(doc behaviour.Object)) int {
		n := 0
		for _, doc := range c.List(scope, fullType) {
			if behaviour.Text(doc, "location") == region.Name {
				n++
				if in != nil {
					in(doc)
				}
			}
		}
		return n
	}
	cores, families := 0, map[string]int{}
	add := func(sizePath string) func(behaviour.Object) {
		return func(doc behaviour.Object) {
			size, _ := catalog.FindSize(behaviour.Text(doc, sizePath))
			if vm.PowerOf(doc) != vm.Deallocated {
				cores += size.VCPUs
				families[size.Family] += size.VCPUs
			}
		}
	}
	machines := count(schema.MachineType, add("properties.hardwareProfile.vmSize")) + count(schema.InstanceType, add("sku.name"))
	value := []any{
		usage("availabilitySets", "Availability Sets", count(schema.Namespace+"availabilitySets", nil), 2500),
		usage("cores", "Total Regional vCPUs", cores, coreLimit),
		usage("virtualMachines", "Virtual Machines", machines, 25000),
		usage("virtualMachineScaleSets", "Virtual Machine Scale Sets", count(schema.ScaleSetType, nil), 2500),
	}
	listed := map[string]bool{}
	for _, size := range catalog.Sizes() {
		if !listed[size.Family] {
			listed[size.Family] = true
			value = append(value, usage(size.Family, size.Family+" vCPUs", families[size.Family], coreLimit))
		}
	}
	value = append(value,
		usage("StandardDiskCount", "Standard Managed Disks", count(schema.DiskType, nil), 50000),
		usage("StandardSnapshotCount", "Standard Snapshots", count(schema.Namespace+"snapshots", nil), 75000))
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": value}}, nil
}

func usage(name, display string, value, limit int) behaviour.Object {
	return behaviour.Object{
		"limit": limit, "unit": "Count", "currentValue": value,
		"name": behaviour.Object{"value": name, "localizedValue": display},
	}
}
