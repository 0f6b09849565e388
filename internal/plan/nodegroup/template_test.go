package nodegroup_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
)

// groupOf returns the node group of a scale set's document.
func groupOf(t *testing.T, document string) nodegroup.Group {
	t.Helper()
	g, err := readGroup(t, document)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func readGroup(t *testing.T, document string) (nodegroup.Group, error) {
	t.Helper()
	set, err := azure.Decode[compute.ScaleSetModel](azure.Document(document))
	if err != nil {
		t.Fatal(err)
	}
	set.Name, set.ID = "pool", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
	return nodegroup.Selection{Named: []nodegroup.Named{{Name: "pool", Limits: nodegroup.Limits{Max: 10}}}}.Read(set)
}

const plain = `{"location":"westeurope","sku":{"name":"Standard_D4s_v5","capacity":3},
	"properties":{"overprovision":false,"virtualMachineProfile":{"storageProfile":{"osDisk":{"diskSizeGB":128}}}}}`

func d4() nodegroup.Size {
	return nodegroup.Size{Name: "Standard_D4s_v5", Family: "standardDSv5Family", VCPUs: 4, MemoryBytes: 16 << 30, DataDisks: 8}
}

// TestTemplate has the scenarios S1, S5, S35, S43 and S44.
func TestTemplate(t *testing.T) {
	t.Run("S1 reserved resources", func(t *testing.T) {
		node := template(t, plain, d4(), nil)
		check(t, node, "cpu 4 3860m", "memory 16Gi 14034Mi", "pods 110 110", "ephemeral-storage 128Gi 128Gi",
			"attachable-volumes-csi-disk.csi.azure.com 8 8")
		for key, value := range map[string]string{
			"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": "0",
			"node.kubernetes.io/instance-type": "Standard_D4s_v5", "topology.kubernetes.io/region": "westeurope",
		} {
			if node.Labels[key] != value {
				t.Errorf("label %s is %q, want %q", key, node.Labels[key], value)
			}
		}
	})
	t.Run("S5 tags", func(t *testing.T) {
		const prefix = "k8s.io_cluster-autoscaler_node-template_"
		tags := map[string]string{
			prefix + "label_k8s.io_foo~2bar": "v", prefix + "taint_x": "y:NoSchedule", prefix + "taint_z": "NoSchedule",
			prefix + "resources_hugepages-2Mi": "1Gi", prefix + "resources_cpu": "much", "costcenter": "12 / a", "poolName": "p",
		}
		g := groupOf(t, withTags(plain, tags))
		node, warnings, err := g.Template(d4(), true, nil)
		if err != nil {
			t.Fatal(err)
		}
		if node.Labels["k8s.io/foo_bar"] != "v" || node.Labels["agentpool"] != "p" || node.Labels["costcenter"] != "" {
			t.Errorf("labels %v", node.Labels)
		}
		if want := []corev1.Taint{{Key: "x", Value: "y", Effect: "NoSchedule"}}; !slices.Equal(node.Spec.Taints, want) {
			t.Errorf("taints %v", node.Spec.Taints)
		}
		check(t, node, "hugepages-2Mi 1Gi 1Gi", "cpu 4 3860m")
		if len(warnings) != 2 || !strings.Contains(warnings[0], `"much" is not a quantity`) || !strings.Contains(warnings[1], "VALUE:EFFECT") {
			t.Errorf("warnings %q", warnings)
		}
	})
	t.Run("S35 unknown size", func(t *testing.T) {
		if _, _, err := groupOf(t, plain).Template(nodegroup.Size{}, false, nil); err == nil || !strings.Contains(err.Error(), "Standard_D4s_v5") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("as the last node", func(t *testing.T) {
		seen := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"kubernetes.io/hostname": "n1", "team": "a"}},
			Spec: corev1.NodeSpec{ProviderID: "azure:///x", Taints: []corev1.Taint{
				{Key: "dedicated", Value: "a", Effect: "NoSchedule"}, {Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"},
				{Key: "ToBeDeletedByClusterAutoscaler", Effect: "NoSchedule"},
			}},
			Status: corev1.NodeStatus{
				Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")},
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3500m"), "memory": resource.MustParse("12Gi")},
			},
		}
		node := template(t, plain, nodegroup.Size{}, seen)
		check(t, node, "cpu 4 3500m", "memory 16Gi 12Gi")
		if node.Labels["team"] != "a" || node.Labels["kubernetes.io/hostname"] == "n1" || node.Spec.ProviderID != "" || len(node.Spec.Taints) != 1 {
			t.Errorf("%v %v", node.Labels, node.Spec)
		}
	})
	t.Run("S43 zones", func(t *testing.T) {
		g := groupOf(t, strings.Replace(plain, `"location"`, `"zones":["3","1","2"],"location"`, 1))
		node, _, err := g.Template(d4(), true, nil)
		if err != nil || node.Labels["topology.kubernetes.io/zone"] != "westeurope-1" {
			t.Errorf("zone %q, %v", node.Labels["topology.kubernetes.io/zone"], err)
		}
		if len(g.Warnings) != 1 || !strings.Contains(g.Warnings[0], "use a scale set for each zone") {
			t.Errorf("warnings %q", g.Warnings)
		}
	})
	for _, test := range []struct {
		size nodegroup.Size
		want string
	}{
		{nodegroup.Size{Name: "Standard_ND96isr_H100_v5", VCPUs: 96, MemoryBytes: 1 << 40, GPUs: 8}, "nvidia.com/gpu 8 8"},
		{nodegroup.Size{Name: "Standard_ND96isr_MI300X_v5", VCPUs: 96, MemoryBytes: 1 << 40, GPUs: 8}, "amd.com/gpu 8 8"},
		{nodegroup.Size{Name: "Standard_NP20s", VCPUs: 20, MemoryBytes: 1 << 38, GPUs: 2},
			"xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_2_1-0 2 2"},
	} {
		t.Run("S44 "+test.size.Name, func(t *testing.T) {
			node := template(t, plain, test.size, nil)
			check(t, node, test.want)
			if hasLabel := node.Labels[nodegroup.GPULabel] != ""; hasLabel == strings.Contains(test.want, "xilinx") {
				t.Errorf("labels %v", node.Labels)
			}
		})
	}
	t.Run("Arm, Windows, Spot, ephemeral", func(t *testing.T) {
		const special = `{"location":"West Europe","sku":{"name":"Standard_D4ps_v5"},"properties":{"virtualMachineProfile":{
			"priority":"Spot","osProfile":{"windowsConfiguration":{}},"storageProfile":{"osDisk":{"diffDiskSettings":{"option":"Local"}}}}}}`
		node := template(t, special, nodegroup.Size{Name: "Standard_D4ps_v5", VCPUs: 4, MemoryBytes: 16 << 30, Arm: true, LocalBytes: 150 << 30}, nil)
		check(t, node, "ephemeral-storage 150Gi 150Gi")
		for key, value := range map[string]string{
			"kubernetes.io/arch": "arm64", "kubernetes.io/os": "windows", "kubernetes.azure.com/scalesetpriority": "spot",
			"storageprofile": "ephemeral", "topology.kubernetes.io/region": "westeurope",
		} {
			if node.Labels[key] != value {
				t.Errorf("label %s is %q, want %q", key, node.Labels[key], value)
			}
		}
		if len(node.Spec.Taints) != 1 {
			t.Errorf("taints %v", node.Spec.Taints)
		}
	})
}

func template(t *testing.T, document string, size nodegroup.Size, seen *corev1.Node) *corev1.Node {
	t.Helper()
	node, _, err := groupOf(t, document).Template(size, true, seen)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// check compares resources, given as "NAME CAPACITY ALLOCATABLE".
func check(t *testing.T, node *corev1.Node, want ...string) {
	t.Helper()
	for _, w := range want {
		f := strings.Fields(w)
		capacity, allocatable := node.Status.Capacity[corev1.ResourceName(f[0])], node.Status.Allocatable[corev1.ResourceName(f[0])]
		if capacity.Cmp(resource.MustParse(f[1])) != 0 || allocatable.Cmp(resource.MustParse(f[2])) != 0 {
			t.Errorf("%s %v %v, want %s", f[0], &capacity, &allocatable, w)
		}
	}
}

func withTags(document string, tags map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, fmt.Sprintf("%q:%q", key, tags[key]))
	}
	return strings.Replace(document, `"location"`, `"tags":{`+strings.Join(all, ",")+`},"location"`, 1)
}

// TestReadGroup checks which scale sets cannot be node groups, and the scenario S36.
func TestReadGroup(t *testing.T) {
	const prefix = "k8s.io_cluster-autoscaler_node-template_autoscaling-options_"
	if _, err := readGroup(t, `{"properties":{}}`); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("no model: %v", err)
	}
	ephemeral := strings.Replace(plain, `"diskSizeGB":128`, `"diffDiskSettings":{"option":"Local"}`, 1)
	_, err := readGroup(t, withTags(ephemeral, map[string]string{prefix + "scaledownmode": "deallocate"}))
	if err == nil || !strings.Contains(err.Error(), "ephemeral OS disk") {
		t.Errorf("S24: %v", err)
	}
	g := groupOf(t, withTags(plain, map[string]string{
		prefix + "scaledownunneededtime": "10m0s", prefix + "scaledownunreadytime": "abc", prefix + "ScaleDownUtilizationThreshold": "0.3",
		prefix + "zeroormaxnodescaling": "true", prefix + "turbo": "1", prefix + "maxdeallocated": "5",
	}))
	o := g.Options
	if o.UnneededTime == nil || o.UnneededTime.Minutes() != 10 || o.UnreadyTime != nil || *o.Utilization != 0.3 || !*o.ZeroOrMax || o.MaxDeallocated != 5 {
		t.Errorf("options %+v", o)
	}
	if len(g.Warnings) != 2 || !strings.Contains(g.Warnings[0], `"abc" is not a duration`) || !strings.Contains(g.Warnings[1], "no such option") {
		t.Errorf("warnings %q", g.Warnings)
	}
	if groupOf(t, plain).Options.Overrides() {
		t.Error("options without tags")
	}
}
