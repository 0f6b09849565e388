package nodegroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/plan/poolnode"
)

// pods is how many pods a node can have if no tag says it. It is AKS' default for Azure CNI.
const pods = 110

// The device resources of nodes.
const (
	nvidia = corev1.ResourceName("nvidia.com/gpu")
	amd    = corev1.ResourceName("amd.com/gpu")
	xilinx = corev1.ResourceName("xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_2_1-0")
)

// spotLabel is the label, and the key of the taint, of nodes that Azure can evict.
const spotLabel = "kubernetes.azure.com/scalesetpriority"

// GPULabel is the label of nodes with GPUs.
const GPULabel = "kubernetes.azure.com/accelerator"

// Template returns a node as the group's next machine will be. seen is a node that the group had, nil if none is known. The
// next node has its resources, its labels, and those of its taints that last. Without seen, the size and the scale set
// describe the node.
func (g Group) Template(size Size, known bool, seen *corev1.Node) (*corev1.Node, []string, error) {
	described, warnings := ReadTags(g.set.Tags)
	var node *corev1.Node
	switch {
	case seen != nil:
		node = likeSeen(seen)
	case !known:
		return nil, warnings, fmt.Errorf("node group %s: the size %s is not known in %s, and no node of the group has been seen",
			g.Name, g.Size(), g.set.Location)
	default:
		node = g.fromSize(size)
	}
	node.Name = g.Name + "-template"
	node.Labels[corev1.LabelHostname] = node.Name
	node.Spec.ProviderID = ""
	maps.Copy(node.Labels, described.Labels)
	maps.Copy(node.Labels, poolnode.Own(g.set.Tags))
	for _, t := range described.Taints {
		if !slices.ContainsFunc(node.Spec.Taints, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
			node.Spec.Taints = append(node.Spec.Taints, t)
		}
	}
	maps.Copy(node.Status.Capacity, described.Resources)
	maps.Copy(node.Status.Allocatable, described.Resources)
	node.Status.Conditions = ready()
	return node, warnings, nil
}

// likeSeen returns a node like one that was seen, without what is its own.
func likeSeen(seen *corev1.Node) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
	node.Status.Capacity, node.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	maps.Copy(node.Labels, seen.Labels)
	maps.Copy(node.Status.Capacity, seen.Status.Capacity)
	maps.Copy(node.Status.Allocatable, seen.Status.Allocatable)
	for _, t := range seen.Spec.Taints {
		if lasting(t.Key) {
			node.Spec.Taints = append(node.Spec.Taints, t)
		}
	}
	return node
}

// lasting reports whether the next node of the group will have a taint too, as far as its key says.
func lasting(key string) bool {
	for _, passing := range []string{
		"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler",
		"DeletionCandidateOfClusterAutoscaler", "startup-taint.cluster-autoscaler.kubernetes.io/",
		"ignore-taint.cluster-autoscaler.kubernetes.io/",
	} {
		if strings.HasPrefix(key, passing) {
			return false
		}
	}
	return !strings.HasSuffix(key, "/agent-not-ready")
}

func ready() []corev1.NodeCondition {
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
}

// fromSize returns a node of which only the scale set is known.
func (g Group) fromSize(size Size) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(size.VCPUs, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(size.MemoryBytes, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI),
	}
	if bytes := g.rootBytes(size); bytes > 0 {
		capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(bytes, resource.BinarySI)
	}
	if device := deviceOf(size); device != "" {
		capacity[device] = *resource.NewQuantity(max(size.GPUs, 1), resource.DecimalSI)
	}
	if size.DataDisks > 0 {
		capacity["attachable-volumes-csi-disk.csi.azure.com"] = *resource.NewQuantity(size.DataDisks, resource.DecimalSI)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: g.labels(size)}}
	if node.Status.Capacity = capacity; poolnode.Own(g.set.Tags) != nil {
		node.Status.Allocatable = poolnode.Allocatable(capacity)
		return node
	}
	// A scale set that another program made is one of AKS, as far as its tags do not say more.
	allocatable := capacity.DeepCopy()
	allocatable[corev1.ResourceCPU] = *resource.NewMilliQuantity(size.VCPUs*1000-reservedCPU(size.VCPUs), resource.DecimalSI)
	allocatable[corev1.ResourceMemory] = *resource.NewQuantity(size.MemoryBytes-reservedMemory(size.MemoryBytes), resource.BinarySI)
	node.Status.Allocatable = allocatable
	maps.Copy(node.Labels, g.aksLabels(size))
	if g.Spot {
		node.Labels[spotLabel] = "spot"
		node.Spec.Taints = []corev1.Taint{{Key: spotLabel, Value: "spot", Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}

// rootBytes returns the size of the disk with the kubelet's directory, 0 if it is not known.
func (g Group) rootBytes(size Size) int64 {
	const gib = 1 << 30
	storage := g.set.Properties.VirtualMachineProfile.StorageProfile
	switch {
	case storage != nil && storage.OSDisk != nil && storage.OSDisk.DiskSizeGB > 0:
		return storage.OSDisk.DiskSizeGB * gib
	case ephemeral(g.set.Properties.VirtualMachineProfile):
		return size.LocalBytes
	}
	return 0
}

// deviceOf returns the device resource of a size, "" if it has no devices.
func deviceOf(size Size) corev1.ResourceName {
	name := strings.ToLower(size.Name)
	switch {
	case strings.HasPrefix(name, "standard_np"):
		return xilinx
	case size.GPUs == 0:
		return ""
	case strings.Contains(name, "_mi300"), strings.Contains(name, "ngads_v620"), strings.Contains(name, "_v620"):
		return amd
	}
	return nvidia
}

// labels returns the labels of a node of which only the scale set is known.
func (g Group) labels(size Size) map[string]string {
	region := strings.ToLower(strings.ReplaceAll(g.set.Location, " ", ""))
	architecture, system, zone, diskZone := "amd64", "linux", "0", ""
	if size.Arm {
		architecture = "arm64"
	}
	if windows(g.set.Properties.VirtualMachineProfile) {
		system = "windows"
	}
	if zones := slices.Sorted(slices.Values(g.set.Zones)); len(zones) > 0 {
		zone = region + "-" + zones[0]
		diskZone = zone
	}
	labels := map[string]string{
		corev1.LabelArchStable: architecture, "beta.kubernetes.io/arch": architecture,
		corev1.LabelOSStable: system, "beta.kubernetes.io/os": system,
		corev1.LabelInstanceTypeStable: g.Size(), corev1.LabelInstanceType: g.Size(),
		corev1.LabelTopologyRegion: region, corev1.LabelFailureDomainBetaRegion: region,
		corev1.LabelTopologyZone: zone, corev1.LabelFailureDomainBetaZone: zone,
		"topology.disk.csi.azure.com/zone": diskZone,
	}
	return labels
}

// aksLabels are further labels of a node of AKS.
func (g Group) aksLabels(size Size) map[string]string {
	labels := map[string]string{}
	for _, tag := range []string{"aks-managed-poolName", "poolName"} {
		if pool, ok := g.set.Tags.Get(tag); ok {
			labels["agentpool"], labels["kubernetes.azure.com/agentpool"] = pool, pool
			break
		}
	}
	kind := "managed"
	if ephemeral(g.set.Properties.VirtualMachineProfile) {
		kind = "ephemeral"
	}
	labels["storageprofile"], labels["kubernetes.azure.com/storageprofile"] = kind, kind
	if device := deviceOf(size); device == nvidia || device == amd {
		maker, _, _ := strings.Cut(string(device), ".")
		labels["accelerator"], labels[GPULabel] = maker, maker
	}
	return labels
}

// reservedCPU returns what AKS reserves of a machine's CPUs for the system, in millicores. A number of CPUs between two rows
// of AKS' table counts as the lower row.
func reservedCPU(cpus int64) int64 {
	reserved := int64(0)
	for _, row := range []struct{ cpus, millis int64 }{{1, 60}, {2, 100}, {4, 140}, {8, 180}, {16, 260}, {32, 420}, {64, 740}} {
		if cpus >= row.cpus {
			reserved = row.millis
		}
	}
	return reserved
}

// reservedMemory returns what AKS reserves of a machine's memory, with the eviction threshold of 100 MiB. AKS reserves 20
// MiB for each pod and 50 MiB, at most a quarter of the memory. Source: AKS' documentation of node reservations, Kubernetes
// 1.29 and later.
func reservedMemory(bytes int64) int64 {
	const mib = 1 << 20
	return min(20*mib*pods+50*mib, bytes/4) + 100*mib
}

// GPUTypes returns the values that the label of nodes with GPUs has.
func GPUTypes() []string {
	return []string{"nvidia", "amd", "nvidia-tesla-k80", "nvidia-tesla-p100", "nvidia-tesla-v100", "nvidia-tesla-a100"}
}
