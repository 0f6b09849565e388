package loadbalancer_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// copiedInput is an input that shares nothing with another one that a decision could change.
func copiedInput(in loadbalancer.Input) loadbalancer.Input {
	next := in
	next.Services, next.Others, next.Nodes = nil, nil, nil
	for _, s := range in.Services {
		next.Services = append(next.Services,
			loadbalancer.Service{Service: s.DeepCopy(), Gone: s.Gone, Groups: append([]key.Note(nil), s.Groups...)})
	}
	for _, s := range in.Others {
		next.Others = append(next.Others, s.DeepCopy())
	}
	for _, n := range in.Nodes {
		next.Nodes = append(next.Nodes, n.DeepCopy())
	}
	next.DeletedNodes = append([]azure.ID(nil), in.DeletedNodes...)
	next.RejectedAddresses, next.Endpoints, next.Namespaces = maps.Clone(in.RejectedAddresses), maps.Clone(in.Endpoints),
		maps.Clone(in.Namespaces)
	return next
}

// TestDesiredIsPure checks that a decision changes nothing in its input and remembers nothing. The same input gives the
// same decision again, whatever was decided in between.
func TestDesiredIsPure(t *testing.T) {
	in, w := crowd(t, 12, 6)
	in.Complete = true
	in.Services[3].Annotations = map[string]string{key.Internal.Name: "true", key.InternalSubnet.Name: "missing"}
	in.Services[5].Annotations = map[string]string{key.SourceRanges.Name: "10.0.0.0/8", key.DNSLabel.Name: "web"}
	in.Services[7].Annotations = map[string]string{key.PublicIPTags.Name: "a=b", key.IPTags.Name: "RoutingPreference=Internet"}
	fresh := withHave(in, w)
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	gone := withHave(in, w)
	gone.Services = nil
	for i, s := range in.Services {
		gone.Services = append(gone.Services, loadbalancer.Service{Service: s.Service, Gone: i%2 == 0})
	}
	gone.Nodes[2].Labels = map[string]string{v1.LabelNodeExcludeBalancers: "true"}
	forgotten := withHave(in, w) // rules and addresses of Services that do not exist any more
	forgotten.Services = in.Services[:2]
	for _, in := range []loadbalancer.Input{fresh, withHave(in, w), gone, forgotten} {
		before := copiedInput(in)
		first, problems := decidedText(t, in)
		decidedText(t, fresh)
		again, problemsAgain := decidedText(t, in)
		if d := cmp.Diff(first, again); d != "" {
			t.Error("the second decision differs:\n" + d)
		}
		if d := cmp.Diff(problems, problemsAgain); d != "" {
			t.Error("the second decision has other problems:\n" + d)
		}
		sameInput := cmp.Options{cmp.AllowUnexported(plan.Snapshot{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(plan.Snapshot{}, "views")}
		if d := cmp.Diff(before, in, sameInput); d != "" {
			t.Error("the decision changed its input:\n" + d)
		}
	}
}

// decidedText is a decision as text, with its problems.
func decidedText(t *testing.T, in loadbalancer.Input) (string, []plan.Problem) {
	t.Helper()
	g, problems, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Diff(in.Have, g)
	if err != nil {
		t.Fatal(err)
	}
	return p.String() + "\n" + cmp.Diff([]string(nil), g.Pending), problems
}
