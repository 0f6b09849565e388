package nodegroups_test

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"kaz/internal/autoscale"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/shadow/nodegroups"
	"kaz/internal/testkit"
)

const pool = "pool"

// status is what cluster-autoscaler 1.36 with its own provider for Azure reports of a node group.
const status = `autoscalerStatus: Running
clusterWide:
  health:
    status: Healthy
nodeGroups:
- health:
    cloudProviderTarget: 2
    maxSize: 10
    minSize: 1
    nodeCounts:
      registered:
        ready: 2
        total: 2
    status: Healthy
  name: pool
  scaleDown:
    status: NoCandidates
time: 2026-11-29 14:29:22.999645779 +0000 UTC
`

// TestStates compares the node groups of kaz with those of the cluster-autoscaler in charge. joined is how many machines are Nodes.
func TestStates(t *testing.T) {
	for _, test := range []struct {
		name, status string
		tags         map[string]string
		flag         string
		joined       int
		want         map[string]string
	}{
		{"as the autoscaler in charge has it", status, map[string]string{"min": "1", "max": "10"}, "", 2, map[string]string{pool: ""}},
		{"no autoscaler in charge", "", map[string]string{"min": "0", "max": "3"}, "", 2, map[string]string{pool: ""}},
		{"other limits", status, map[string]string{"min": "2", "max": "5"}, "", 2,
			map[string]string{pool: "its least size is 1, and kaz shows 2\nits greatest size is 10, and kaz shows 5"}},
		{"another target", strings.Replace(status, "Target: 2", "Target: 4", 1), map[string]string{"min": "1", "max": "10"}, "", 2,
			map[string]string{pool: "its target size is 4, and kaz shows 2"}},
		{"a tag that kaz does not read", status, map[string]string{"min": "one", "max": "10"}, "", 2,
			map[string]string{pool: `refused: the tag min: "one" is not a whole number`}},
		{"a scale set that no flag selects", status, nil, "0:3:other", 2, map[string]string{
			"other": "refused: the resource group has no scale set of this name", pool: "it is no node group any more: no flag selects it",
		}},
		{"a new node group", strings.Replace(status, "name: pool", "name: old", 1), map[string]string{"min": "1", "max": "10"}, "", 2,
			map[string]string{pool: "it becomes a node group, from 1 to 10", "old": "it is no node group any more: no flag selects it"}},
		{"a machine that is no Node", status, map[string]string{"min": "1", "max": "10"}, "", 1, map[string]string{
			pool: "cluster-autoscaler removes azure://ID/virtualMachines/1 after its --max-node-provision-time: it is no Node",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := testkit.NewAzure(t, core.Options{}, 0)
				set := a.AddScaleSet(pool, testkit.Uniform, 2)
				tag(t, a, set, test.tags)
				var objects []runtime.Object
				if test.status != "" {
					objects = append(objects, &corev1.ConfigMap{
						ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-autoscaler-status"},
						Data:       map[string]string{"status": test.status},
					})
				}
				for _, vm := range testkit.List[struct{}](a, set, compute.ScaleSetInstances)[:test.joined] {
					objects = append(objects, &corev1.Node{
						ObjectMeta: metav1.ObjectMeta{Name: vm.Name}, Spec: corev1.NodeSpec{ProviderID: "azure://" + string(vm.ID)},
					})
				}
				if diff := cmp.Diff(test.want, differences(t, a, test.flag, objects)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// tag gives a scale set tags, and that of the discovery.
func tag(t *testing.T, a *testkit.Azure, set azure.ID, tags map[string]string) {
	t.Helper()
	all := azure.Tags{"scaled": "yes"}
	maps.Copy(all, tags)
	if tags == nil {
		all = nil
	}
	body, _, err := azure.Overlay(nil, azure.Resource[struct{}]{Tags: all})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := azure.Do(t.Context(), a.Client, azure.Request{Verb: azure.Patch, ID: set, Body: body}); err != nil {
		t.Fatal(err)
	}
}

// differences plays a round.
func differences(t *testing.T, a *testkit.Azure, flag string, objects []runtime.Object) map[string]string {
	t.Helper()
	var named []string
	if flag != "" {
		named = []string{flag}
	}
	selection, err := nodegroup.ParseSelection(named, []string{"label:scaled=yes"})
	if err != nil {
		t.Fatal(err)
	}
	a.Forget()
	verdicts, err := nodegroups.Source(fake.NewClientset(objects...), autoscale.Config{
		Azure: struct {
			azure.Reader
			azure.Writer
		}{a.Client.Fresh(), a.Client},
		ResourceGroup: testkit.Group, Location: testkit.Location, Selection: selection, Log: slog.New(slog.DiscardHandler),
	}).Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if writes := a.Writes(); len(writes) > 0 {
		t.Errorf("written: %q", writes)
	}
	found := map[string]string{}
	for _, v := range verdicts {
		text := strings.Join(v.Writes, "\n")
		if v.Refused != "" {
			text = "refused: " + v.Refused
		}
		found[v.Object] = strings.ReplaceAll(text, string(testkit.Group.Resource(compute.ScaleSets, pool)), "ID")
	}
	return found
}
