package compute

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core/catalog"
)

// coreLimit is the quota of cores in a region, of each family and in total, where none is given.
const coreLimit = 100000

func limitOf(w behaviour.World, quota string) int {
	if limit, given := w.Quota(quota); given {
		return limit
	}
	return coreLimit
}

// listUsages lists the usage and the quotas of a region.
func listUsages(c *behaviour.Call) (behaviour.Reply, error) {
	region, ok := catalog.FindRegion(c.Param["location"])
	if !ok {
		return behaviour.Reply{}, noLocation(c.Param["location"])
	}
	scope := azure.SubscriptionID(c.Param["subscription"])
	count := func(fullType string) int {
		n := 0
		for _, doc := range c.List(scope, fullType) {
			if behaviour.Text(doc, "location") == region.Name {
				n++
			}
		}
		return n
	}
	cores := vm.CoresIn(c.World, azure.ID(scope), region.Name)
	machines := count(schema.MachineType) + count(schema.InstanceType)
	value := []any{
		usage("availabilitySets", "Availability Sets", count(schema.Namespace+"availabilitySets"), 2500),
		usage(vm.RegionalCores, "Total Regional vCPUs", cores[vm.RegionalCores], limitOf(c, vm.RegionalCores)),
		usage(vm.SpotCores, "Total Regional Low-priority vCPUs", cores[vm.SpotCores], limitOf(c, vm.SpotCores)),
		usage("virtualMachines", "Virtual Machines", machines, 25000),
		usage("virtualMachineScaleSets", "Virtual Machine Scale Sets", count(schema.ScaleSetType), 2500),
	}
	listed := map[string]bool{}
	for _, size := range catalog.Sizes() {
		if !listed[size.Family] {
			listed[size.Family] = true
			value = append(value, usage(size.Family, size.Family+" vCPUs", cores[size.Family], limitOf(c, size.Family)))
		}
	}
	value = append(value,
		usage("StandardDiskCount", "Standard Managed Disks", count(schema.DiskType), 50000),
		usage("StandardSnapshotCount", "Standard Snapshots", count(schema.Namespace+"snapshots"), 75000))
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": value}}, nil
}

func usage(name, display string, value, limit int) behaviour.Object {
	return behaviour.Object{
		"limit": limit, "unit": "Count", "currentValue": value,
		"name": behaviour.Object{"value": name, "localizedValue": display},
	}
}
