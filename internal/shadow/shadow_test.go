package shadow

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	framework "k8s.io/cloud-provider"

	"kaz/internal/plan/routes"
	plan "kaz/internal/plan/shadow"
)

// TestRun decides once a minute for three minutes, and counts rounds with a fault.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rounds := 0
		var lines []string
		report := Run(t.Context(), []Source{{"things", func(context.Context) ([]plan.Verdict, error) {
			if rounds++; rounds == 2 {
				return nil, errors.New("429")
			}
			<-time.After(10 * time.Second)
			return []plan.Verdict{{Object: "a"}, {Object: "b", Writes: []string{"PUT"}}}, nil
		}}}, Options{For: 3 * time.Minute, Every: time.Minute, Say: func(line string) { lines = append(lines, line) }})
		if report.Rounds != 4 || report.Kinds[0].Unread != 1 || report.Writes() != 1 || report.Ended.Sub(report.Began) != 3*time.Minute {
			t.Errorf("%+v", report)
		}
		want := "things 1 of 2 agree"
		if !slices.Equal(lines, []string{want, "things not read", want, want}) {
			t.Errorf("%q", lines)
		}
	})
}

// TestRunShows shows the report so far every two minutes. The last one is the result.
func TestRunShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown []int
		report := Run(t.Context(), []Source{{"things", func(context.Context) ([]plan.Verdict, error) { return nil, nil }}},
			Options{For: 4 * time.Minute, Every: time.Minute, Say: func(string) {}, ShowEvery: 2 * time.Minute,
				Show: func(r *plan.Report) { shown = append(shown, r.Rounds) }})
		if !slices.Equal(shown, []int{1, 3}) || report.Rounds != 5 {
			t.Errorf("shown after rounds %v, and %d rounds", shown, report.Rounds)
		}
	})
}

// TestRunInterrupted ends in the middle of the second round, which does not count.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	report := Run(ctx, []Source{{"things", func(context.Context) ([]plan.Verdict, error) {
		if rounds++; rounds == 2 {
			cancel()
		}
		return nil, ctx.Err()
	}}}, Options{For: time.Hour, Say: func(string) {}})
	if report.Rounds != 1 || report.Unknown() {
		t.Errorf("%+v", report)
	}
}

// TestNodeWrites compares Nodes with what is said of their machines.
func TestNodeWrites(t *testing.T) {
	machine := &framework.InstanceMetadata{
		ProviderID: "azure:///m", InstanceType: "Standard_D2s_v5", Zone: "eastus-1", Region: "eastus",
		AdditionalLabels: map[string]string{"topology.disk.csi.azure.com/zone": "eastus-1"},
		NodeAddresses:    []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "m"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.4"}},
	}
	for _, test := range []struct {
		name   string
		change func(n *corev1.Node)
		want   []string
	}{
		{"the same, addresses in another order", func(n *corev1.Node) { slices.Reverse(n.Status.Addresses) }, nil},
		{"labels of others", func(n *corev1.Node) { n.Labels["mine"] = "x" }, nil},
		{"another zone", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "0" },
			[]string{`label topology.kubernetes.io/zone is "0", and kaz sets "eastus-1"`}},
		{"another id", func(n *corev1.Node) { n.Spec.ProviderID = "azure:///n" }, []string{`providerID is "azure:///n", and kaz gives "azure:///m"`}},
		{"no address", func(n *corev1.Node) { n.Status.Addresses = n.Status.Addresses[:1] },
			[]string{"addresses are Hostname m, and kaz sets Hostname m, InternalIP 10.0.0.4"}},
	} {
		n := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
				corev1.LabelInstanceTypeStable: "Standard_D2s_v5", corev1.LabelTopologyZone: "eastus-1", corev1.LabelTopologyRegion: "eastus",
				"topology.disk.csi.azure.com/zone": "eastus-1",
			}},
			Spec:   corev1.NodeSpec{ProviderID: "azure:///m"},
			Status: corev1.NodeStatus{Addresses: slices.Clone(machine.NodeAddresses)},
		}
		test.change(n)
		if got := nodeWrites(n, machine); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestRouteVerdicts compares ranges of Nodes with routes. Nodes that others manage, and those without a range, have none.
func TestRouteVerdicts(t *testing.T) {
	nodes := []routes.Node{
		{Name: "a", CIDRs: []string{"10.244.0.0/24", "fd00::/64"}}, {Name: "b", CIDRs: []string{"10.244.1.0/24"}},
		{Name: "others", CIDRs: []string{"10.244.2.0/24"}, Unmanaged: true}, {Name: "new"},
	}
	got := routeVerdicts(nodes, []routes.Route{
		{Name: "a", Node: "a", CIDR: "10.244.0.0/24"}, {Name: "b", Node: "b", CIDR: "10.244.1.0/24"}, {Name: "gone", Node: "gone", CIDR: "10.244.9.0/24"},
	})
	want := []plan.Verdict{
		{Object: "a", Writes: []string{"create or change the route to fd00::/64"}}, {Object: "b"},
		{Object: "gone", Writes: []string{"remove the route gone to 10.244.9.0/24, if --cluster-cidr has it: there is no such Node"}},
	}
	if !slices.EqualFunc(got, want, func(a, b plan.Verdict) bool { return a.Object == b.Object && slices.Equal(a.Writes, b.Writes) }) {
		t.Errorf("%+v", got)
	}
}
