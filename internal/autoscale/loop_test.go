package autoscale_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// autoscaler makes the calls that cluster-autoscaler 1.36 was seen to make, in its order, and decides as it does in the
// cases below. It is not cluster-autoscaler: the Go module proxy does not serve that. Each pod needs a node of its own.
type autoscaler struct {
	w *fleet
	// groups are the node groups in the order of an expander's priorities.
	groups  []string
	pods    int
	backoff map[string]time.Time // until when a group is not asked
	surplus time.Time            // since when there are nodes that no pod needs
}

// The times of cluster-autoscaler's defaults.
const (
	scanInterval   = 10 * time.Second
	initialBackoff = 5 * time.Minute
	unneededTime   = 10 * time.Minute
)

func (w *fleet) autoscaler(groups ...string) *autoscaler {
	return &autoscaler{w: w, groups: groups, backoff: map[string]time.Time{}}
}

// run makes loops for a time.
func (a *autoscaler) run(d time.Duration) {
	a.w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pass(scanInterval) {
		a.loop()
	}
}

// loop is one loop. If the provider does not answer Refresh, the loop ends at once.
func (a *autoscaler) loop() {
	a.w.t.Helper()
	ctx := a.w.t.Context()
	if _, err := a.w.Refresh(ctx, &externalgrpc.RefreshRequest{}); err != nil {
		return
	}
	r, err := a.w.NodeGroups(ctx, &externalgrpc.NodeGroupsRequest{})
	if err != nil {
		a.w.t.Fatal(err)
	}
	target, nodes := map[string]int{}, map[string][]string{}
	greatest := map[string]int{}
	total := 0
	for _, g := range r.NodeGroups {
		a.look(g.Id)
		nodes[g.Id] = a.nodes(g.Id)
		target[g.Id], greatest[g.Id] = a.w.target(g.Id), int(g.MaxSize)
		total += target[g.Id]
	}
	a.scaleUp(a.pods-total, target, greatest)
	a.scaleDown(total-a.pods, nodes)
}

// look makes the calls for a group with answers that do not change a decision here.
func (a *autoscaler) look(group string) {
	a.w.t.Helper()
	ctx := a.w.t.Context()
	template, err := a.w.NodeGroupTemplateNodeInfo(ctx, &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: group})
	if err != nil {
		a.w.t.Fatal(err)
	}
	var node corev1.Node
	if err := node.Unmarshal(template.NodeBytes); err != nil || node.Status.Allocatable.Cpu().IsZero() {
		a.w.t.Errorf("%s: template %v, %v", group, node.Status.Allocatable, err)
	}
	_, err = a.w.NodeGroupGetOptions(ctx, &externalgrpc.NodeGroupAutoscalingOptionsRequest{Id: group})
	if err != nil && status.Code(err) != codes.Unimplemented {
		a.w.t.Fatal(err)
	}
}

// nodes returns the nodes of a group. Running machines are nodes. A group with an instance that has an error is not asked
// for a while, and the instance is deleted.
func (a *autoscaler) nodes(group string) (nodes []string) {
	a.w.t.Helper()
	for _, i := range a.w.instances(group) {
		switch {
		case i.Status.ErrorInfo != nil:
			a.backoff[group] = time.Now().Add(initialBackoff)
			if err := a.w.delete(group, i.Id); err != nil {
				a.w.t.Error(err)
			}
		case i.Status.InstanceState == externalgrpc.InstanceStatus_instanceRunning:
			_, err := a.w.NodeGroupForNode(a.w.t.Context(), &externalgrpc.NodeGroupForNodeRequest{
				Node: &externalgrpc.ExternalGrpcNode{ProviderID: i.Id, Name: nameOf(i.Id)},
			})
			if err != nil {
				a.w.t.Fatal(err)
			}
			nodes = append(nodes, i.Id)
		}
	}
	return nodes
}

// scaleUp asks the first group that has room and is not backed off.
func (a *autoscaler) scaleUp(missing int, target, greatest map[string]int) {
	a.w.t.Helper()
	for _, group := range a.groups {
		n := min(missing, greatest[group]-target[group])
		if n <= 0 || time.Now().Before(a.backoff[group]) {
			continue
		}
		if err := a.w.increase(group, n); err != nil {
			a.w.t.Error(err)
		}
		return
	}
}

// scaleDown deletes nodes that no pod has needed for a time, with a call for each. The last group goes first.
func (a *autoscaler) scaleDown(unneeded int, nodes map[string][]string) {
	a.w.t.Helper()
	if unneeded <= 0 {
		a.surplus = time.Time{}
		return
	}
	if a.surplus.IsZero() {
		a.surplus = time.Now()
	}
	if time.Since(a.surplus) < unneededTime {
		return
	}
	for _, group := range slices.Backward(a.groups) {
		for _, id := range nodes[group] {
			if unneeded--; unneeded < 0 {
				return
			}
			if err := a.w.delete(group, id); err != nil {
				a.w.t.Error(err)
			}
		}
	}
}

// TestLoop has cluster-autoscaler's loop scale groups through what goes wrong in them.
func TestLoop(t *testing.T) {
	const second = "second"
	start := func(t *testing.T, o core.Options) (*fleet, *autoscaler) {
		t.Helper()
		o.Latency = 1
		w := &fleet{Azure: testkit.NewAzure(t, o, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 0)
		w.AddScaleSet(second, testkit.Uniform, 0)
		w.start("0:10:pool", "0:10:second")
		return w, w.autoscaler(pool, second)
	}
	scenario(t, "from zero, up and down", func(t *testing.T) {
		w, a := start(t, core.Options{})
		defer w.stop()
		a.pods = 3
		a.run(5 * time.Minute)
		want(t, "after pods came", w.states(pool), "running 3")
		a.pods = 1
		a.run(15 * time.Minute)
		want(t, "after pods went", w.states(pool), "running 1")
		a.pods = 0
		a.run(15 * time.Minute)
		want(t, "without pods", w.azureCapacity(pool), 0)
		wantWrites(t, w, "PATCH pool", "POST delete", "POST delete")
	})
	scenario(t, "a failed group, then the second one", func(t *testing.T) {
		w, a := start(t, core.Options{})
		defer w.stop()
		faults(t, w, core.Fault{Method: "PATCH", Type: compute.ScaleSets, Times: 1, Fault: "operation",
			Code: "AllocationFailed", Message: "Allocation failed."})
		a.pods = 2
		begin := time.Now()
		for w.target(second) == 0 && time.Since(begin) < 15*time.Minute {
			a.run(scanInterval)
		}
		t.Log("the second group is asked after", time.Since(begin))
		a.run(4 * time.Minute)
		want(t, "second group", w.states(second), "running 2")
		want(t, "first group", w.target(pool), 0)
		want(t, "its capacity", w.azureCapacity(pool), 0)
	})
	scenario(t, "the provider restarts while machines are made", func(t *testing.T) {
		w, a := start(t, core.Options{})
		a.pods = 3
		a.run(2 * scanInterval)
		w.stop()
		w.start("0:10:pool", "0:10:second")
		defer w.stop()
		a.run(5 * time.Minute)
		want(t, "states", w.states(pool), "running 3")
		want(t, "second group", w.target(second), 0)
	})
	scenario(t, "the autoscaler restarts while machines are made", func(t *testing.T) {
		w, a := start(t, core.Options{})
		defer w.stop()
		a.pods = 3
		a.run(2 * scanInterval)
		if _, err := w.Cleanup(t.Context(), &externalgrpc.CleanupRequest{}); err != nil {
			t.Fatal(err)
		}
		a = w.autoscaler(pool, second)
		a.pods = 3
		a.run(5 * time.Minute)
		want(t, "states", w.states(pool), "running 3")
		want(t, "second group", w.target(second), 0)
		wantWrites(t, w, "PATCH pool")
	})
	scenario(t, "Spot machines are evicted", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 0)
		w.replace(pool, map[string]any{"properties": map[string]any{"virtualMachineProfile": map[string]any{
			"priority": "Spot", "evictionPolicy": "Delete",
		}}})
		w.start("0:10:pool")
		defer w.stop()
		a := w.autoscaler(pool)
		a.pods = 3
		a.run(5 * time.Minute)
		w.evict(pool, 2)
		a.run(10 * time.Minute)
		want(t, "states", w.states(pool), "running 3")
		want(t, "capacity", w.azureCapacity(pool), 3)
	})
}

// evict takes machines away as Azure does with Spot machines that it deletes.
func (w *fleet) evict(group string, n int) {
	w.t.Helper()
	for _, id := range w.well(group)[:n] {
		_, err := azure.Do(w.t.Context(), w.OtherClient(),
			azure.Request{Verb: azure.Post, ID: setID(group).Child("virtualMachines", nameOf(id)), Action: "simulateEviction"})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}
