package vm

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// The quotas of vCPUs that do not depend on the size of machines.
const (
	RegionalCores = "cores"
	SpotCores     = "lowPriorityCores"
)

// Quotas returns the names of all quotas of vCPUs: those of all sizes, and those of the families of sizes.
func Quotas() []string {
	var families []string
	for _, size := range catalog.Sizes() {
		families = append(families, size.Family)
	}
	slices.Sort(families)
	return append([]string{RegionalCores, SpotCores}, slices.Compact(families)...)
}

// quotasOf returns the quotas that count the vCPUs of a machine.
func quotasOf(family, priority string) []string {
	if strings.EqualFold(priority, "Spot") || strings.EqualFold(priority, "Low") {
		return []string{SpotCores}
	}
	return []string{family, RegionalCores}
}

// CoresIn returns the vCPUs of the machines in a region by quota. Deallocated machines have none.
func CoresIn(w behaviour.World, subscription azure.ID, region string) map[string]int {
	cores := map[string]int{}
	for fullType, sizePath := range map[string]string{
		schema.MachineType: "properties.hardwareProfile.vmSize", schema.InstanceType: "sku.name",
	} {
		for _, doc := range w.List(subscription, fullType) {
			size, ok := catalog.FindSize(behaviour.Text(doc, sizePath))
			if !ok || behaviour.Text(doc, "location") != region || PowerOf(doc) == Deallocated {
				continue
			}
			for _, quota := range quotasOf(size.Family, behaviour.Text(doc, "properties.priority")) {
				cores[quota] += size.VCPUs
			}
		}
	}
	return cores
}

// CheckQuota refuses n more machines of a size in a region if they exceed a quota that is given.
func CheckQuota(w behaviour.World, subscription azure.ID, region, sizeName, priority string, n int) error {
	size, ok := catalog.FindSize(sizeName)
	if !ok || n <= 0 {
		return nil
	}
	for _, quota := range quotasOf(size.Family, priority) {
		limit, given := w.Quota(quota)
		if !given {
			continue
		}
		used, more := CoresIn(w, subscription, region)[quota], n*size.VCPUs
		if used+more <= limit {
			continue
		}
		name := map[string]string{RegionalCores: "Total Regional Cores", SpotCores: "LowPriorityCores"}[quota]
		if name == "" {
			name = quota + " Cores"
		}
		return behaviour.Conflict("OperationNotAllowed", "Operation could not be completed as it results in exceeding approved %s "+
			"quota. Additional details - Deployment Model: Resource Manager, Location: %s, Current Limit: %d, Current Usage: %d, "+
			"Additional Required: %d, (Minimum) New Limit Required: %d.", name, region, limit, used, more, used+more)
	}
	return nil
}
