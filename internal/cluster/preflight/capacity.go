package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/machinesize"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/plan/nodegroup"
)

// resource is a resource of the plan, nil for none.
func (c *checker) resource(unit, symbol string) (*graph.Resource, *graph.Unit) {
	u := c.p.Graph.Unit(unit)
	if u == nil {
		return nil, nil
	}
	return c.p.Graph.Resource(graph.SelfRef(unit, symbol)), u.Unit
}

// machines are machines that are alike.
type machines struct {
	at        string // the path of their fields in the definition
	size      string
	image     definition.Image
	zones     []int
	count     int // that are to be made
	premium   bool
	ephemeral bool
	spot      bool
	least     int // of GiB of memory
	osDisk    int // GiB
	disks     int // further ones
}

// most is the greatest number of machines of a pool.
func most(p definition.NodePool) int {
	if a := p.Spec.Autoscaling; a != nil {
		return max(a.Max, p.Spec.Replicas)
	}
	return p.Spec.Replicas
}

// groups are the machines of the definition. Machines of units that exist count as made.
func (c *checker) groups() []machines {
	spec := c.p.Definition.Cluster.Spec.ControlPlane
	members := machines{at: "Cluster: spec.controlPlane.", size: spec.VMSize, image: spec.Image, zones: spec.Zones, least: 4, disks: 1,
		premium: strings.HasPrefix(spec.OSDisk.Type, "Premium") || strings.HasPrefix(spec.EtcdDisk.Type, "Premium")}
	for i := range spec.Replicas {
		if _, there := c.state.Generations()[i]; !there {
			members.count++
		}
	}
	all := []machines{members}
	for _, p := range c.p.Definition.Pools {
		one := machines{at: "NodePool " + p.Metadata.Name + ": spec.", size: p.Spec.VMSize, image: p.Spec.Image, zones: p.Spec.Zones,
			least: 2, disks: len(p.Spec.DataDisks), spot: p.Spec.Priority == "Spot",
			ephemeral: p.Spec.OSDisk.Ephemeral, osDisk: p.Spec.OSDisk.SizeGiB,
			premium: strings.HasPrefix(p.Spec.OSDisk.Type, "Premium") && !p.Spec.OSDisk.Ephemeral}
		unit := naming.PoolUnit(p.Metadata.Name)
		if p.Spec.Backend == "StandaloneVM" {
			for i := range p.Spec.Replicas {
				if !c.exists(unit, fmt.Sprintf("%d-machine", i)) {
					one.count++
				}
			}
		} else if !c.exists(unit, "scale-set") {
			one.count = p.Spec.Replicas
		}
		all = append(all, one)
	}
	return all
}

func (c *checker) exists(unit, symbol string) bool {
	r, u := c.resource(unit, symbol)
	if r == nil {
		return false
	}
	return c.state.Has(emit.ID(c.p.Names, r, u))
}

// size is what Azure says about a size of machines.
type size struct {
	ResourceType string `json:"resourceType"`
	Name         string `json:"name"`
	Family       string `json:"family"`
	LocationInfo []struct {
		Zones []string `json:"zones"`
	} `json:"locationInfo"`
	Restrictions []restriction `json:"restrictions"`
	Capabilities []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"capabilities"`
}

// restriction is why a subscription may not use a size.
type restriction struct {
	Type string `json:"type"` // Location or Zone
	Info struct {
		Zones []string `json:"zones"`
	} `json:"restrictionInfo"`
}

func (s size) capability(name string) string {
	for _, c := range s.Capabilities {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (s size) number(name string) float64 {
	n, err := strconv.ParseFloat(s.capability(name), 64)
	if err != nil {
		return 0
	}
	return n
}

// zones are the zones in which the subscription may use the size.
func (s size) zones() []string {
	var all []string
	for _, info := range s.LocationInfo {
		all = append(all, info.Zones...)
	}
	for _, r := range s.Restrictions {
		if r.Type == "Zone" {
			all = slices.DeleteFunc(all, func(zone string) bool { return slices.Contains(r.Info.Zones, zone) })
		}
	}
	slices.Sort(all)
	return all
}

func (s size) restricted() bool {
	return slices.ContainsFunc(s.Restrictions, func(r restriction) bool { return r.Type == "Location" })
}

// catalog reads the sizes of the location.
func (c *checker) catalog(ctx context.Context) (map[string]size, bool) {
	if c.offered != nil {
		return c.offered, true
	}
	location := c.p.Definition.Cluster.Spec.Azure.Location
	docs, err := c.Azure.List(ctx, azure.Query{
		Scope: c.subscription(), Type: "Microsoft.Compute/skus", Filter: "location eq '" + location + "'",
	})
	if err != nil {
		c.unread("sizes", err)
		return nil, false
	}
	all := map[string]size{}
	for _, doc := range docs {
		var s size
		if json.Unmarshal(doc, &s) == nil && s.ResourceType == "virtualMachines" {
			all[strings.ToLower(s.Name)] = s
		}
	}
	c.offered = all
	return all, true
}

// sizes checks that the sizes are offered, where, and with what the definition needs.
func (c *checker) sizes(ctx context.Context) {
	all, ok := c.catalog(ctx)
	if !ok {
		return
	}
	location := c.p.Definition.Cluster.Spec.Azure.Location
	for _, m := range c.groups() {
		s, offered := all[strings.ToLower(m.size)]
		if !offered || s.restricted() {
			why := "is not offered in"
			if offered {
				why = "is not available to the subscription in"
			}
			c.Add("sizes", "choose another size, such as "+strings.Join(alike(all, m.size), ", "), "%svmSize: %s %s %s", m.at, m.size, why,
				location)
			continue
		}
		offeredZones := s.zones()
		for _, zone := range m.zones {
			if !slices.Contains(offeredZones, strconv.Itoa(zone)) {
				c.Add("zones", fmt.Sprintf("choose zones of [%s], or another size", strings.Join(offeredZones, ", ")),
					"%svmSize: %s is not offered in zone %d of %s", m.at, m.size, zone, location)
			}
		}
		c.capabilities(m, s)
	}
}

func (c *checker) capabilities(m machines, s size) {
	const remedy = "choose a larger size, or one with this capability"
	at := m.at + "vmSize: " + m.size
	if n := s.number("vCPUs"); n < 2 {
		c.Add("sizes", remedy, "%s has %v processors, and kubeadm needs 2", at, n)
	}
	if n := s.number("MemoryGB"); n < float64(m.least) {
		c.Add("sizes", remedy, "%s has %v GiB of memory, want at least %d", at, n, m.least)
	}
	if most := s.capability("MaxDataDiskCount"); most != "" && s.number("MaxDataDiskCount") < float64(m.disks) {
		c.Add("sizes", "choose a larger size, or fewer disks", "%s takes %s data disks, and each machine has %d", at, most, m.disks)
	}
	if m.premium && s.capability("PremiumIO") != "True" {
		c.Add("sizes", "choose a disk type such as StandardSSD_LRS, or a size with an s, such as Standard_D4s_v5",
			"%s takes no premium disks", at)
	}
	c.network(at, m, s)
	if m.ephemeral {
		c.ephemeral(at, m, s)
	}
}

// network checks that accelerated networking is asked for where the size has it.
func (c *checker) network(at string, m machines, s size) {
	planned, known := machinesize.Find(m.size)
	says := s.capability("AcceleratedNetworkingEnabled")
	switch has := says == "True"; {
	case planned.Accelerated && says == "False":
		c.Add("sizes", "choose another size", "%s has no accelerated networking here, and the template asks for it", at)
	case has && !planned.Accelerated && known:
		c.Warn("sizes", "choose another size if the network must be fast", "%s has accelerated networking, and the template does not ask "+
			"for it", at)
	case has && !known:
		c.Warn("sizes", "choose a size of an earlier series, or use a newer version of kaz", "%s is not known to this version of kaz: "+
			"its machines get no accelerated networking", at)
	}
}

// ephemeral checks that an OS disk on the host fits where it is to be. If the template names no placement, Azure takes the first that the
// size has.
func (c *checker) ephemeral(at string, m machines, s size) {
	if s.capability("EphemeralOSDiskSupported") != "True" {
		c.Add("sizes", "set osDisk.ephemeral to false, or choose a size with a local disk, such as Standard_D4ds_v5",
			"%s takes no ephemeral disks", at)
		return
	}
	const gib, mibPerGiB = 1 << 30, 1 << 10
	placement := machinesize.Placement(m.size, m.osDisk)
	for _, p := range []struct {
		name string
		room float64
	}{
		{"CacheDisk", s.number("CachedDiskBytes") / gib},
		{"ResourceDisk", s.number("MaxResourceVolumeMB") / mibPerGiB},
		{"NvmeDisk", s.number("NvmeDiskSizeInMiB") / mibPerGiB},
	} {
		if placement != p.name && (placement != "" || p.room == 0) {
			continue
		}
		if p.room < float64(m.osDisk) {
			c.Add("sizes", "choose a larger size, or a smaller disk",
				"%s has room for an ephemeral disk of %v GiB at the placement %s, and osDisk.sizeGiB is %d", at, p.room, p.name, m.osDisk)
		}
		return
	}
}

// alike are up to three sizes with names that begin alike.
func alike(all map[string]size, name string) []string {
	var found []string
	for length := len(name); length > len("Standard_") && len(found) < 3; length-- {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			s := all[key]
			if strings.HasPrefix(key, strings.ToLower(name[:length])) && !slices.Contains(found,
				s.Name) && !s.restricted() && len(found) < 3 {
				found = append(found, s.Name)
			}
		}
	}
	return found
}

func (c *checker) usages(ctx context.Context, provider string) nodegroup.Usages {
	scope := c.subscription() + azure.ID("/providers/"+provider+"/locations/"+c.p.Definition.Cluster.Spec.Azure.Location)
	docs, err := c.Azure.List(ctx, azure.Query{Scope: scope, Type: provider + "/locations/usages"})
	var all nodegroup.Usages
	if err == nil {
		all, err = nodegroup.ReadUsages(docs)
	}
	if err != nil {
		c.unread("quota", err)
	}
	return all
}

// quota checks that the cores, machines and addresses that are to be made fit into what is left.
func (c *checker) quota(ctx context.Context) {
	sizes, ok := c.catalog(ctx)
	if !ok {
		return
	}
	need := map[string]int{}
	for _, m := range c.groups() {
		s := sizes[strings.ToLower(m.size)]
		cores := m.count * int(s.number("vCPUs"))
		need["virtualMachines"] += m.count
		if m.spot {
			need["lowPriorityCores"] += cores
			continue
		}
		need["cores"] += cores
		if s.Family != "" {
			need[s.Family] += cores
		}
	}
	c.compare(c.usages(ctx, "Microsoft.Compute"), need)
	addresses := map[string]int{}
	for _, u := range c.p.Graph.Units {
		for _, r := range u.Resources {
			if c.state.Has(emit.ID(c.p.Names, r.Resource, u.Unit)) {
				continue
			}
			switch r.Type {
			case "Microsoft.Network/publicIPAddresses":
				addresses["PublicIPAddresses"]++
				addresses["StandardSkuPublicIpAddresses"]++
			case "Microsoft.Network/loadBalancers":
				addresses["LoadBalancers"]++
			case "Microsoft.Network/natGateways":
				addresses["NatGateways"]++
			}
		}
	}
	c.compare(c.usages(ctx, "Microsoft.Network"), addresses)
}

func (c *checker) compare(have nodegroup.Usages, need map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(need)) {
		u, known := have[strings.ToLower(name)]
		if known && need[name] > 0 && u.Exceeded(int64(need[name])) {
			c.Add("quota", "ask for a higher quota in the Azure portal (Subscription, Usage + quotas), or choose fewer or smaller machines",
				"%s: the limit is %v, %v are used, and the cluster needs %d more", name, u.Limit, u.Used, need[name])
		}
	}
}
