package autoscale_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kaz/internal/autoscale"
	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestNodes has the scenario S6: instances have the spelling of their nodes.
func TestNodes(t *testing.T) {
	scenario(t, "S6 spelling", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool")
		defer w.stop()
		ids := w.well(pool)
		spelled := strings.Replace(ids[0], "/resourceGroups/rg/", "/resourceGroups/RG/", 1)
		r, err := w.NodeGroupForNode(t.Context(), &externalgrpc.NodeGroupForNodeRequest{
			Node: &externalgrpc.ExternalGrpcNode{ProviderID: spelled, Name: "n"},
		})
		if err != nil || r.NodeGroup.Id != pool {
			t.Fatalf("group %v, %v", r, err)
		}
		if all := w.well(pool); !slices.Contains(all, spelled) || slices.Contains(all, ids[0]) || len(all) != 2 {
			t.Errorf("instances %v", all)
		}
		for _, other := range []string{"", "aws:///i-1", "azure:///subscriptions/x", ids[0][:len(ids[0])-1] + "0/x"} {
			r, err := w.NodeGroupForNode(t.Context(), &externalgrpc.NodeGroupForNodeRequest{Node: &externalgrpc.ExternalGrpcNode{ProviderID: other}})
			if err != nil || r.NodeGroup.Id != "" {
				t.Errorf("%q: %v, %v", other, r, err)
			}
		}
	})
	scenario(t, "a node that no list has yet", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool")
		defer w.stop()
		w.patch(pool, map[string]any{"sku": map[string]any{"capacity": 3}})
		ids := w.well(pool)
		joined := ids[0][:strings.LastIndexByte(ids[0], '/')+1] + "2"
		if _, err := w.NodeGroupForNode(t.Context(), &externalgrpc.NodeGroupForNodeRequest{Node: &externalgrpc.ExternalGrpcNode{ProviderID: joined}}); err != nil {
			t.Fatal(err)
		}
		pass(45 * time.Second)
		want(t, "target", w.target(pool), 3)
	})
}

// TestTemplateNodeInfo has the scenario S34: both generations of clients read the same answer.
func TestTemplateNodeInfo(t *testing.T) {
	scenario(t, "S34", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 0, "0:10:pool")
		defer w.stop()
		r, err := w.NodeGroupTemplateNodeInfo(t.Context(), &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: pool})
		if err != nil {
			t.Fatal(err)
		}
		for generation, text := range map[string][]byte{"until 1.34": r.NodeInfo, "since 1.35": r.NodeBytes} {
			var node corev1.Node
			if err := node.Unmarshal(text); err != nil || node.Status.Allocatable.Cpu().IsZero() {
				t.Errorf("%s: %v, %v", generation, node.Status.Allocatable, err)
			}
		}
		seen := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: w.providerID(0)}}
		seen.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1234m")}
		seen.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		w.Provider.Observe(seen)
		r, err = w.NodeGroupTemplateNodeInfo(t.Context(), &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: pool})
		if err != nil {
			t.Fatal(err)
		}
		var node corev1.Node
		if err := node.Unmarshal(r.NodeBytes); err != nil || node.Status.Allocatable.Cpu().String() != "1234m" {
			t.Errorf("after a node was seen: %v, %v", node.Status.Allocatable, err)
		}
	})
	scenario(t, "S35", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 0)
		w.hide(func(q azure.Query, _ azure.Document) bool { return q.Type == "Microsoft.Compute/skus" }, "0:10:pool")
		defer w.stop()
		r, err := w.NodeGroupTemplateNodeInfo(t.Context(), &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: pool})
		wantCode(t, "template", err, codes.Unimplemented)
		if r != nil {
			t.Error("an answer")
		}
	})
}

// providerID returns the provider id of an instance of the pool.
func (w *fleet) providerID(n int) string {
	return fmt.Sprintf("azure://%s/virtualMachines/%d", strings.Replace(string(setID(pool)), "/resourceGroups/RG/", "/resourceGroups/rg/", 1), n)
}

// TestOptions has the scenario S36.
func TestOptions(t *testing.T) {
	scenario(t, "S36", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 0)
		w.AddScaleSet("plain", testkit.Uniform, 0)
		w.tag(pool, map[string]string{optionTag + "scaledownunneededtime": "10m0s"})
		w.start("0:10:pool", "0:10:plain")
		defer w.stop()
		_, err := w.NodeGroupGetOptions(t.Context(), &externalgrpc.NodeGroupAutoscalingOptionsRequest{Id: "plain"})
		wantCode(t, "without tags", err, codes.Unimplemented)
		answers := map[string]*externalgrpc.NodeGroupAutoscalingOptions{
			"until 1.34": {ScaleDownUtilizationThreshold: .5, ScaleDownUnneededTime: &externalgrpc.Duration{Duration: 1},
				ScaleDownUnreadyTime: &externalgrpc.Duration{Duration: int64(20 * time.Minute)}},
			"since 1.35": {ScaleDownUtilizationThreshold: .5, ScaleDownUnreadyDuration: durationpb.New(20 * time.Minute)},
		}
		for generation, defaults := range answers {
			r, err := w.NodeGroupGetOptions(t.Context(), &externalgrpc.NodeGroupAutoscalingOptionsRequest{Id: pool, Defaults: defaults})
			if err != nil {
				t.Fatal(err)
			}
			o := r.NodeGroupAutoscalingOptions
			if o.ScaleDownUtilizationThreshold != .5 || o.ScaleDownUnneededTime.Duration != int64(10*time.Minute) ||
				o.ScaleDownUnneededDuration.AsDuration() != 10*time.Minute || o.ScaleDownUnreadyTime.Duration != int64(20*time.Minute) ||
				o.ScaleDownUnreadyDuration.AsDuration() != 20*time.Minute {
				t.Errorf("%s: %v", generation, o)
			}
		}
	})
}

// TestRestart has the scenarios S38, S40 and S46.
func TestRestart(t *testing.T) {
	scenario(t, "S38 the provider restarts while machines are made", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 2, "0:10:pool")
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(6 * time.Second)
		w.stop()
		w.start("0:10:pool")
		defer w.stop()
		want(t, "target", w.target(pool), 5)
		pass(10 * time.Minute)
		want(t, "target", w.target(pool), 5)
		want(t, "states", w.states(pool), "running 5")
		wantWrites(t, w)
	})
	scenario(t, "S40 the autoscaler restarts", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 2, "0:10:pool")
		defer w.stop()
		if _, err := w.Cleanup(t.Context(), &externalgrpc.CleanupRequest{}); err != nil {
			t.Fatal(err)
		}
		want(t, "states", w.states(pool), "running 2")
		if n := len(w.Reads()); n > 0 {
			t.Errorf("%d reads", n)
		}
	})
	scenario(t, "S46 the operation is gone", func(t *testing.T) {
		w := newFleet(t, core.Options{Latency: 1}, 2, "0:10:pool")
		defer w.stop()
		faults(t, w, core.Fault{Method: "GET", Type: "Microsoft.Compute/locations/operations", Fault: "error", Status: 404, Code: "NotFound"})
		if err := w.increase(pool, 1); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Minute)
		want(t, "states", w.states(pool), "running 3")
		want(t, "target", w.target(pool), 3)
	})
}

// TestFailover has the first aim of docs/performance.md: the time until another group is asked.
func TestFailover(t *testing.T) {
	scenario(t, "failure in group A", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1, Quotas: map[string]int{"standardDSv5Family": 0}}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 0)
		w.start("0:10:pool")
		defer w.stop()
		if err := w.increase(pool, 2); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for len(w.failed(pool)) == 0 {
			pass(100 * time.Millisecond)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%v", took)
		} else {
			t.Log("seen after", took)
		}
	})
}

// TestCalls has the aims of docs/performance.md that count requests.
func TestCalls(t *testing.T) {
	large := func(t *testing.T, groups, machines int, o core.Options) *fleet {
		t.Helper()
		w := &fleet{Azure: testkit.NewAzure(t, o, 0), t: t}
		var flags []string
		for n := range groups {
			name := fmt.Sprintf("pool%d", n)
			w.AddScaleSet(name, testkit.Uniform, machines)
			flags = append(flags, "0:1000:"+name)
		}
		w.start(flags...)
		return w
	}
	for seed := range uint64(3) {
		scenario(t, fmt.Sprintf("100 machines come and go, seed %d", seed), func(t *testing.T) {
			w := large(t, 5, 1, core.Options{Latency: 1, Seed: seed})
			defer w.stop()
			// cluster-autoscaler calls for the groups of a scale-up in turn or at once, and for each node that goes in a goroutine.
			called := func(do func(n int) error) (first, last time.Duration) {
				w.Forget()
				began := time.Now()
				testkit.Arrive(seed, 100, func(n int) {
					if err := do(n); err != nil {
						t.Error(err)
					}
				})
				pass(5 * time.Minute)
				return w.asked(began)
			}
			began := time.Now()
			first, last := called(func(n int) error { return w.increase(fmt.Sprintf("pool%d", n%5), 1) })
			want(t, "writes", len(w.Writes()), 5)
			minutes := time.Since(began).Minutes()
			if n := lists(w, compute.ScaleSetInstances); float64(n) > 5*(2*minutes+1) {
				t.Errorf("%d lists of instances in %.0f minutes", n, minutes)
			}
			leaving := make([][]string, 5)
			for n := range leaving {
				group := fmt.Sprintf("pool%d", n)
				w.join(group)
				leaving[n] = w.well(group)[:20]
			}
			firstDeleted, lastDeleted := called(func(n int) error { return w.delete(fmt.Sprintf("pool%d", n%5), leaving[n%5][n/5]) })
			want(t, "writes", len(w.Writes()), 5)
			want(t, "target", w.target("pool0"), 1)
			t.Logf("Azure is asked for machines %v to %v after the first call, to delete machines %v to %v", first, last, firstDeleted, lastDeleted)
			// The calls of a group are gathered for 200 ms. The first increase also reads the scale set and the quotas.
			if last > 4*time.Second || lastDeleted > 500*time.Millisecond {
				t.Errorf("Azure is asked %v and %v after the first call, want at most 4 s and 500 ms", last, lastDeleted)
			}
		})
	}
	scenario(t, "50 groups of 100 nodes, an hour", func(t *testing.T) {
		machines := 100
		if testing.Short() {
			machines = 10 // as many reads: a list of 100 is one page
		}
		w := large(t, 50, machines, core.Options{})
		defer w.stop()
		for n := range 50 {
			w.join(fmt.Sprintf("pool%d", n))
		}
		w.Forget()
		pass(time.Hour)
		reads := len(w.Reads())
		t.Log("reads", reads)
		if reads > 130 || len(w.Writes()) > 0 {
			t.Errorf("%d reads and %d writes", reads, len(w.Writes()))
		}
	})
}

// asked returns when the first and the last write reached Azure, since a time.
func (w *fleet) asked(since time.Time) (first, last time.Duration) {
	for _, r := range w.Requests() {
		if r.Method == http.MethodGet || r.IsPoll() {
			continue
		}
		last = r.At.Sub(since).Round(time.Millisecond)
		if first == 0 {
			first = last
		}
	}
	return first, last
}

// lists counts the lists of a type.
func lists(w *fleet, fullType string) int {
	n := 0
	for _, r := range w.Requests() {
		if r.Method == "GET" && strings.HasSuffix(strings.ToLower(r.Path), strings.ToLower(fullType[strings.LastIndexByte(fullType, '/'):])) {
			n++
		}
	}
	return n
}

// TestSpeed has the scenario S41: the answers of a group of 1,000 machines.
func TestSpeed(t *testing.T) {
	w := largeGroup(t)
	r, err := w.NodeGroupNodes(t.Context(), &externalgrpc.NodeGroupNodesRequest{Id: pool})
	if err != nil {
		t.Fatal(err)
	}
	if size := proto.Size(r); len(r.Instances) != 1000 || size > 1<<20 {
		t.Errorf("%d instances in %d bytes", len(r.Instances), size)
	}
	begin := time.Now()
	const calls = 10
	for range calls {
		w.instances(pool)
	}
	if each := time.Since(begin) / calls; each > 20*time.Millisecond {
		t.Errorf("Nodes took %v", each)
	}
}

// largeGroup returns a fleet, in real time, with a group of 1,000 machines that are nodes.
func largeGroup(t testing.TB) *fleet {
	t.Helper()
	w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0)}
	w.t = t
	w.AddScaleSet(pool, testkit.Uniform, 0)
	w.patch(pool, map[string]any{"properties": map[string]any{"singlePlacementGroup": false}, "sku": map[string]any{"capacity": 1000}})
	selection, err := selectionOf("0:1000:pool")
	if err != nil {
		t.Fatal(err)
	}
	provider := autoscale.New(autoscale.Config{
		Azure: fresh{w.Client.Fresh(), w.Client}, ResourceGroup: testkit.Group, Location: testkit.Location,
		Selection: selection, Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(provider.Close)
	provider.Refresh(t.Context())
	w.Server = &autoscale.Server{Provider: provider}
	w.join(pool)
	return w
}

// BenchmarkNodes measures NodeGroupNodes of 1,000 machines. The aim is 20 ms.
func BenchmarkNodes(b *testing.B) {
	w := largeGroup(b)
	for b.Loop() {
		w.instances(pool)
	}
}

// BenchmarkGetOptions measures the call that the autoscaler makes most often. The aim is 1 ms at p99.
func BenchmarkGetOptions(b *testing.B) {
	w := largeGroup(b)
	for b.Loop() {
		_, _ = w.NodeGroupGetOptions(b.Context(), &externalgrpc.NodeGroupAutoscalingOptionsRequest{Id: pool})
	}
}

// BenchmarkNodeGroupForNode measures the call that the autoscaler makes for each node.
func BenchmarkNodeGroupForNode(b *testing.B) {
	w := largeGroup(b)
	node := &externalgrpc.NodeGroupForNodeRequest{Node: &externalgrpc.ExternalGrpcNode{ProviderID: w.well(pool)[500]}}
	for b.Loop() {
		_, _ = w.NodeGroupForNode(b.Context(), node)
	}
}
