package rights

// The features of the cluster-autoscaler-provider.
const (
	// NodeGroups reads and grows scale sets and deletes their machines.
	NodeGroups Feature = "node-groups"
	// FlexibleGroups lists the machines of Flexible scale sets.
	FlexibleGroups Feature = "flexible-node-groups"
	// Deallocation switches machines off and on instead of deleting them.
	Deallocation Feature = "deallocated-machines"
	// GroupSizes reads the sizes of machines and the quotas.
	GroupSizes Feature = "sizes-and-quotas"
)

// NodeGroupFeatures returns the features of the cluster-autoscaler-provider, in the order of the reference.
func NodeGroupFeatures() []Feature {
	return []Feature{NodeGroups, FlexibleGroups, Deallocation, GroupSizes}
}

func nodeGroups() []Need {
	const set = compute + "virtualMachineScaleSets/"
	return []Need{
		{compute + "skus/read", Subscription, GroupSizes, "describe the nodes of groups that had none", true},
		{compute + "locations/usages/read", Subscription, GroupSizes, "ask for as many machines as the quotas allow", true},
		{set + "read", Machines, NodeGroups, "find node groups", false},
		{set + "write", Machines, NodeGroups, "grow scale sets", false},
		{set + "delete/action", Machines, NodeGroups, "delete machines", false},
		{instance + "read", Machines, NodeGroups, "list the machines of scale sets", false},
		{compute + "virtualMachines/read", Machines, FlexibleGroups, "list the machines of Flexible scale sets", false},
		{set + "deallocate/action", Machines, Deallocation, "switch machines off", false},
		{set + "start/action", Machines, Deallocation, "switch machines on", false},
	}
}
