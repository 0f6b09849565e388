package compute

import (
	"regexp"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core/catalog"
)

func skuRoutes() []behaviour.Route {
	const base = "/subscriptions/{subscription}/providers/Microsoft.Compute"
	return []behaviour.Route{
		{Method: "GET", Pattern: base + "/skus", Do: listSKUs, Permission: "Microsoft.Compute/skus/read"},
		{Method: "GET", Pattern: base + "/locations/{location}/vmSizes", Do: listSizes,
			Permission: "Microsoft.Compute/locations/vmSizes/read"},
		{Method: "GET", Pattern: base + "/locations/{location}/usages", Do: listUsages,
			Permission: "Microsoft.Compute/locations/usages/read"},
	}
}

var locationFilter = regexp.MustCompile(`(?i)^\s*location\s+eq\s+'([^']*)'\s*$`)

// listSKUs lists the sizes of machines and the kinds of disks by region.
func listSKUs(c *behaviour.Call) (behaviour.Reply, error) {
	regions := catalog.Regions()
	if filter := c.Query.Get("$filter"); filter != "" {
		m := locationFilter.FindStringSubmatch(filter)
		if m == nil {
			return behaviour.Reply{},
				behaviour.Invalid("InvalidParameter", "The filter expression '%s' is not supported: use location eq 'REGION'.",
					filter).At("$filter")
		}
		region, ok := catalog.FindRegion(m[1])
		if !ok {
			return behaviour.Reply{}, noLocation(m[1])
		}
		regions = []catalog.Region{region}
	}
	value := []any{}
	for _, region := range regions {
		for _, size := range catalog.Sizes() {
			value = append(value, sizeSKU(size, region))
		}
		for _, sku := range diskSKUs() {
			value = append(value, sku.in(region))
		}
		for _, name := range []string{"Classic", "Aligned"} {
			value = append(value,
				resourceSKU("availabilitySets", name, region, nil, behaviour.Object{"MaximumPlatformFaultDomainCount": 3}))
		}
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": value}}, nil
}

func noLocation(name string) error {
	e := behaviour.Invalid("NoRegisteredProviderFound",
		"No registered resource provider found for location '%s'. The supported locations are '%s'.", name,
		strings.Join(schema.RegionNames(), ", "))
	e.Gateway = true
	return e
}

// resourceSKU returns one entry of the catalogue.
func resourceSKU(resource, name string, region catalog.Region, zones []string, capabilities behaviour.Object) behaviour.Object {
	info := behaviour.Object{"location": region.Name, "zones": texts(zones)}
	if len(zones) > 0 {
		info["zoneDetails"] = []any{}
	}
	sku := behaviour.Object{
		"resourceType": resource, "name": name, "locations": []any{region.Name},
		"locationInfo": []any{info}, "restrictions": []any{}, "capabilities": []any{},
	}
	list := []any{}
	for _, key := range schema.SortedKeys(capabilities) {
		list = append(list, behaviour.Object{"name": key, "value": text(capabilities[key])})
	}
	sku["capabilities"] = list
	return sku
}

func sizeSKU(s catalog.Size, region catalog.Region) behaviour.Object {
	const gib = 1 << 30
	const mib = 1 << 20
	capabilities := behaviour.Object{
		"vCPUs": s.VCPUs, "vCPUsAvailable": s.VCPUs, "vCPUsPerCore": 2, "MemoryGB": s.MemoryGiB,
		"MaxDataDiskCount": s.DataDisks, "MaxNetworkInterfaces": s.NetworkInterfaces,
		"MaxResourceVolumeMB": s.TempGiB * 1024, "OSVhdSizeMB": 1023 * 1024,
		"UncachedDiskIOPS": s.IOPS, "UncachedDiskBytesPerSecond": s.MBps * mib,
		"PremiumIO": s.Premium, "AcceleratedNetworkingEnabled": s.Accelerated,
		"EphemeralOSDiskSupported": s.Ephemeral, "CpuArchitectureType": s.Architecture,
		"HyperVGenerations": strings.Join(s.Generations, ","), "EncryptionAtHostSupported": s.Premium,
		"LowPriorityCapable": true, "VMDeploymentTypes": "IaaS", "RdmaEnabled": false,
		"HibernationSupported": false, "CapacityReservationSupported": s.Premium,
		"DiskControllerTypes": strings.Join(s.DiskControllers(), ","),
	}
	if s.CacheGiB > 0 {
		capabilities["CachedDiskBytes"] = s.CacheGiB * gib
	}
	if s.NVMe && s.TempGiB > 0 {
		capabilities["MaxResourceVolumeMB"], capabilities["NvmeDiskSizeInMiB"] = 0, s.TempGiB*1024
	}
	var placements []string
	for _, p := range s.Placements() {
		placements = append(placements, p.Name)
	}
	if len(placements) > 0 {
		capabilities["SupportedEphemeralOSDiskPlacements"] = strings.Join(placements, ",")
	}
	sku := resourceSKU("virtualMachines", s.Name, region, region.Zones, capabilities)
	sku["tier"], sku["family"], sku["size"] = s.Tier(), s.Family, strings.TrimPrefix(s.Name, s.Tier()+"_")
	return sku
}

// diskSKU has the limits of a kind of disks.
type diskSKU struct {
	name               string
	maxGiB, iops, mbps int
	shares             int
}

func diskSKUs() []diskSKU {
	return []diskSKU{
		{"Standard_LRS", 32767, 2000, 500, 1},
		{"StandardSSD_LRS", 32767, 6000, 750, 10},
		{"StandardSSD_ZRS", 32767, 6000, 750, 10},
		{"Premium_LRS", 32767, 20000, 900, 10},
		{"Premium_ZRS", 32767, 20000, 900, 10},
		{"PremiumV2_LRS", 65536, 80000, 1200, 15},
		{"UltraSSD_LRS", 65536, 400000, 10000, 15},
	}
}

func (d diskSKU) in(region catalog.Region) behaviour.Object {
	zones := region.Zones
	if strings.HasSuffix(d.name, "_ZRS") {
		zones = nil
	}
	sku := resourceSKU("disks", d.name, region, zones, behaviour.Object{
		"MinSizeGiB": manageddisk.MinDiskGB, "MaxSizeGiB": d.maxGiB, "MaxIOps": d.iops, "MaxBandwidthMBps": d.mbps,
		"MaxValueOfMaxShares": d.shares,
	})
	sku["tier"] = manageddisk.SKUTier(d.name)
	return sku
}

func texts(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// text returns a capability's value as the catalogue spells it.
func text(v any) string {
	switch x := v.(type) {
	case string:
		return x
	case int:
		return strconv.Itoa(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		if x {
			return "True"
		}
	}
	return "False"
}

func listSizes(c *behaviour.Call) (behaviour.Reply, error) {
	if _, ok := catalog.FindRegion(c.Param["location"]); !ok {
		return behaviour.Reply{}, noLocation(c.Param["location"])
	}
	return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": vm.SizeList()}}, nil
}
