package check

import "slices"

// The occasions of a check.
const (
	install = "install" // of kaz's components into a cluster
	swap    = "switch"  // from another cloud provider or driver to kaz
	upgrade = "upgrade" // of kaz or of Kubernetes
)

// Occasions returns what a check can be made before.
func Occasions() []string { return []string{install, swap, upgrade} }

// area is a subject of the check. judge has all reads that it needs.
type area struct {
	name    string
	before  []string
	needs   []Source
	healthy string // why of an area without a fault
	judge   func(*Facts, *list)
}

// areas are in the order of the output.
func areas() []area {
	always, existing := Occasions(), []string{swap, upgrade}
	return []area{
		{"network", always, []Source{Paths}, "the API server, the token endpoint and Azure answer", paths},
		{"azure.json", always, []Source{AzureJSON}, "it can be read and has no mistake", config},
		{"identity", always, []Source{AzureJSON, SignIn}, "it gets a token", identity},
		{"rights", always, []Source{AzureJSON, SignIn, Components, Rights}, "no needed right is missing", granted},
		{"clock", always, []Source{Clock}, "it agrees with Azure's", clock},
		{"versions", []string{upgrade}, []Source{Components, APIServer}, "they are at most one minor version apart", versions},
		{"nodes", existing, []Source{Nodes, Machines}, "each Node has its machine, and each machine its Node", machines},
		{"services", existing, []Source{Services, LoadBalancers, PublicIPs, Events},
			"each Service has an address, which a frontend has", services},
		{"volumes", existing, []Source{Nodes, Volumes, Attachments, Disks}, "each volume has its disk, and each disk its volume", volumes},
		{"shares", existing, []Source{Volumes, Shares}, "each volume of Azure Files has its share", shares},
		{"node groups", existing, []Source{Components, Machines}, "each has its scale set, within its limits", nodeGroups},
		{"gateways", existing, []Source{Components, Gateways}, "each runs, and each pool with backends has a healthy one", gateways},
		{"DNS zones", existing, []Source{Components, Zones}, "each is there, with room for records", zones},
		{"operations", existing, []Source{Machines, LoadBalancers, PublicIPs, Disks}, "Azure has finished the last one of each resource",
			operations},
		{"waits", existing, []Source{Claims, Classes, Pending, Events}, "no claim and no pod waits for long", waits},
		{"quotas", always, []Source{Usages}, "at most 90 % of each are used", quotas},
		{"orphans", existing, []Source{Services, LoadBalancers, PublicIPs, Present},
			"each frontend and public IP of a Service has its Service", orphans},
	}
}

func selected(before string) []area {
	return slices.DeleteFunc(areas(), func(a area) bool { return before != "" && !slices.Contains(a.before, before) })
}

// Needs returns the reads that the check for an occasion needs, "" for a check of all areas.
func Needs(before string) map[Source]bool {
	needs := map[Source]bool{}
	for _, a := range selected(before) {
		for _, s := range a.needs {
			needs[s] = true
		}
	}
	return needs
}
