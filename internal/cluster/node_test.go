package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/poolnode"
)

// joining is the part of a boot file that says how kubelet registers its node.
type joining struct {
	NodeRegistration struct {
		Taints           []struct{ Key, Value, Effect string }
		KubeletExtraArgs []struct{ Name, Value string } `yaml:"kubeletExtraArgs"`
	} `yaml:"nodeRegistration"`
}

// registered reads what the nodes of a boot file register: their flags, and their taints.
func registered(t *testing.T, boot []byte) (map[string]string, []corev1.Taint) {
	t.Helper()
	var j joining
	if err := yaml.Unmarshal([]byte(joinFile(t, boot)), &j); err != nil {
		t.Fatal(err)
	}
	flags := map[string]string{}
	for _, arg := range j.NodeRegistration.KubeletExtraArgs {
		flags[arg.Name] = arg.Value
	}
	var taints []corev1.Taint
	for _, one := range j.NodeRegistration.Taints {
		taints = append(taints, corev1.Taint{Key: one.Key, Value: one.Value, Effect: corev1.TaintEffect(one.Effect)})
	}
	return flags, taints
}

// joinFile is the configuration of kubeadm join in a boot file of either format.
func joinFile(t *testing.T, boot []byte) string {
	t.Helper()
	var cloud struct {
		Files []struct{ Path, Content string } `yaml:"write_files"`
	}
	var ignition struct {
		Storage struct {
			Files []struct {
				Path     string
				Contents struct{ Source string }
			}
		}
	}
	if boot[0] != '{' {
		if err := yaml.Unmarshal(boot, &cloud); err != nil {
			t.Fatal(err)
		}
	} else if err := json.Unmarshal(boot, &ignition); err != nil {
		t.Fatal(err)
	}
	for _, f := range ignition.Storage.Files {
		text, err := url.PathUnescape(strings.TrimPrefix(f.Contents.Source, "data:,"))
		if err != nil {
			t.Fatal(err)
		}
		cloud.Files = append(cloud.Files, struct{ Path, Content string }{f.Path, text})
	}
	for _, f := range cloud.Files {
		if strings.HasSuffix(f.Path, "/kubeadm-join.yaml") && f.Content != "" {
			return f.Content
		}
	}
	t.Fatal("the boot file has no configuration of kubeadm join")
	return ""
}

// scaleSets are the scale sets of a plan's template, by their pool.
func scaleSets(t *testing.T, p Plan) map[string]azure.Resource[compute.ScaleSetModel] {
	t.Helper()
	all := map[string]azure.Resource[compute.ScaleSetModel]{}
	var visit func(template map[string]any)
	visit = func(template map[string]any) {
		resources, _ := template["resources"].([]any)
		for _, item := range resources {
			r := item.(map[string]any)
			properties, _ := r["properties"].(map[string]any)
			if inner, ok := properties["template"].(map[string]any); ok {
				visit(inner)
			}
			if r["type"] != "Microsoft.Compute/virtualMachineScaleSets" {
				continue
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			set, err := azure.Decode[compute.ScaleSetModel](azure.Document(text))
			if err != nil {
				t.Fatal(err)
			}
			set.ID = azure.ID("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/" + set.Name)
			all[set.Tags[poolnode.PoolTag]] = set
		}
	}
	visit(p.Template(emit.Options{}).Main)
	return all
}

// odd is a pool with all that a template can get wrong.
func odd() definition.NodePool {
	var p definition.NodePool
	text := `{"metadata": {"name": "odd"}, "spec": {"backend": "VMSSUniform", "vmSize": "Standard_D4s_v5", "priority": "Spot",
		"spot": {"evictionPolicy": "Delete", "maxPrice": "-1"}, "image": {"publisher": "a", "offer": "b", "sku": "c", "version": "latest"},
		"bootFormat": "CloudInit", "osDisk": {"sizeGiB": 128, "type": "Premium_LRS", "ephemeral": true}, "maxPods": 40,
		"upgrade": {"maxSurge": "1", "maxUnavailable": "0"}, "labels": {"example.com/team_a": "x_y", "team_b": "", "plain": "1"},
		"taints": ["example.com/team_a=x_y:NoSchedule", "lonely:NoExecute"]}}`
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		panic(err)
	}
	return p
}

// TestTemplateIsNode checks that the node that a boot file registers is the one that the autoscaler expects of the scale set: the same
// labels, taints and number of pods, and no reservation that kubelet does not make.
func TestTemplateIsNode(t *testing.T) {
	size := nodegroup.Size{Name: "Standard_D4s_v5", VCPUs: 4, MemoryBytes: 16 << 30, DataDisks: 8}
	all := planExamples()
	all["flatcar"] = []string{"ha.yaml", "flatcar.yaml"}
	for name, files := range all {
		d := example(t, files...)
		d.Pools = append(d.Pools, odd())
		for i, pool := range d.Pools {
			if pool.Spec.Backend != "StandaloneVM" {
				d.Pools[i].Spec.Autoscaling = &definition.Autoscaling{Min: 0, Max: 5}
			}
		}
		p := plan(t, d)
		sets := scaleSets(t, p)
		for _, pool := range d.Pools {
			set, has := sets[pool.Metadata.Name]
			if !has {
				continue
			}
			t.Run(name+"/"+pool.Metadata.Name, func(t *testing.T) {
				flags, taints := registered(t, p.Boot.Pools[pool.Metadata.Name])
				g, err := nodegroup.Selection{Named: []nodegroup.Named{{Name: set.Name, Limits: nodegroup.Limits{Max: 10}}}}.Read(set)
				if err != nil {
					t.Fatal(err)
				}
				node, warnings, err := g.Template(size, true, nil)
				if err != nil || len(warnings) > 0 {
					t.Fatal(err, warnings)
				}
				if diff := cmp.Diff(flags["node-labels"], written(node.Labels)); diff != "" {
					t.Errorf("labels (-node +template):\n%s", diff)
				}
				if diff := cmp.Diff(sortedTaints(taints), sortedTaints(node.Spec.Taints)); diff != "" {
					t.Errorf("taints (-node +template):\n%s", diff)
				}
				for _, list := range []corev1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
					if pods := list[corev1.ResourcePods]; fmt.Sprint(pods.Value()) != flags["max-pods"] {
						t.Errorf("the template has %d pods, and the node %s", pods.Value(), flags["max-pods"])
					}
				}
				if cpu := node.Status.Allocatable[corev1.ResourceCPU]; cpu.Cmp(resource.MustParse("4")) != 0 || flags["kube-reserved"] != "" {
					t.Errorf("the template has %s CPUs for pods, and the node reserves %q of 4", &cpu, flags["kube-reserved"])
				}
				if memory := node.Status.Allocatable[corev1.ResourceMemory]; memory.Value() != 16<<30-100<<20 {
					t.Errorf("the template has %s of memory for pods, and the node keeps 100Mi of 16Gi free", &memory)
				}
			})
		}
	}
}

// written are labels as the flag of kubelet has them, without those that kubelet, the cloud-node-manager and the driver of disks set.
func written(labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		domain, _, _ := strings.Cut(key, "/")
		known := strings.HasSuffix(domain, "kubernetes.io") || domain == "topology.disk.csi.azure.com"
		if !known {
			all = append(all, key+"="+labels[key])
		}
	}
	return strings.Join(all, ",")
}

func sortedTaints(taints []corev1.Taint) []string {
	var all []string
	for _, t := range taints {
		all = append(all, t.ToString())
	}
	return slices.Sorted(slices.Values(all))
}
