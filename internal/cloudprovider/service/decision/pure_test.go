package decision_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/nodes"
	"kaz/internal/reconcile"
	"kaz/internal/testkit"
)

// A decision depends on its input alone, and does not change it: the same input gives the same
// decision twice, whatever the decision asks.
func TestDecideIsPure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newBasis(t)
		web, inner := w.service(1, "web"), w.service(2, "inner")
		inner.Annotations = map[string]string{key.Internal.Name: "true"}
		elsewhere := w.service(3, "elsewhere")
		elsewhere.Annotations = map[string]string{key.PublicIPGroup.Name: "far"}
		all := []loadbalancer.Service{{Service: web}, {Service: inner}, {Service: elsewhere}}

		c := w.commit(t, w.cluster, all)
		w.decides(t, "new Services", c, decision.ConfirmServices{})
		c.Confirmed = decision.UIDs(all)
		w.decides(t, "Services with a resource group of their own", c, decision.RecordGroups{})
		zoneless := w.cluster
		zoneless.Zones = func(context.Context) ([]string, error) { return nil, errors.New("not now") }
		unknown := w.commit(t, zoneless, all)
		unknown.Confirmed = c.Confirmed
		d := w.decides(t, "zones that are not known", unknown, nil)
		if !slices.ContainsFunc(d.Problems, func(p plan.Problem) bool { return p.Reason == problem.Zones }) ||
			slices.ContainsFunc(d.Graph.Nodes(), func(n plan.Node) bool { return n.ID.Is(network.PublicIPAddresses) }) {
			t.Errorf("without zones: %v, %v", d.Problems, d.Graph.Nodes())
		}

		c.Services = c.Services[:2]
		w.decides(t, "Services that exist", c, nil)
		w.converge(t, c)
		if d := w.decides(t, "Services that are served", c, nil); len(d.Deferred.Nodes()) == 0 {
			t.Error("no member of a pool is deferred")
		}

		c = w.commit(t, w.cluster, []loadbalancer.Service{{Service: web, Gone: true}, {Service: inner, Gone: true}})
		w.decides(t, "the last Services of load balancers", c, decision.RemoveBalancers{})
		c.Removing = map[string]bool{}
		c.WithMembers = true
		for _, lb := range testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers) {
			c.Removing[lb.ID.Key()] = true
		}
		d = w.decides(t, "load balancers that may go", c, nil)
		if len(d.Deferred.Nodes()) == 0 {
			t.Error("no deletion of a public IP is deferred")
		}
	})
}

type basis struct {
	*testkit.Azure
	cluster decision.Cluster
}

func newBasis(t *testing.T) *basis {
	w := &basis{Azure: testkit.NewAzure(t, core.Options{}, 2)}
	given := []string{"public IP taken in the resource group far"}
	if err := testkit.Prepare(t.Context(), w.Client, testkit.Group, testkit.VNet, given); err != nil {
		t.Fatal(err)
	}
	var all []*corev1.Node
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		id, err := nodes.ProviderID(vm.ID)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes.NodeName(vm)}, Spec: corev1.NodeSpec{ProviderID: id}})
	}
	w.cluster = decision.Cluster{
		Config: loadbalancer.Config{
			ClusterName: testkit.ClusterName, LoadBalancerName: testkit.ClusterName,
			Location: testkit.Location, Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
			NetworkSubscription: testkit.Subscription, LoadBalancerResourceGroup: testkit.ResourceGroup,
			SecurityGroupName: testkit.SecurityGroup.Name(), SecurityGroupResourceGroup: testkit.ResourceGroup,
			Zones: []string{"1", "2", "3"}, VirtualNetwork: testkit.VNet.Name(), VirtualNetworkResourceGroup: testkit.ResourceGroup,
			Subnet: "nodes", PrivateLinkResourceGroup: testkit.ResourceGroup,
		},
		Nodes:    func() []*corev1.Node { return all },
		Services: func() []*corev1.Service { return nil },
		Foreign:  func() bool { return false },
		Deleted:  &decision.DeletedNodes{}, NameConfirmed: &atomic.Bool{},
	}
	return w
}

func (w *basis) service(n int, name string) *corev1.Service {
	s := testkit.NewService(name, corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: 30080 + int32(n)})
	s.UID = types.UID(fmt.Sprintf("3d2c1b0a-1111-2222-3333-%012x", n<<4))
	return s
}

func (w *basis) commit(t *testing.T, c decision.Cluster, services []loadbalancer.Service) decision.Commit {
	t.Helper()
	return decision.Commit{Target: c.Target(t.Context(), services)}
}

func (w *basis) converge(t *testing.T, c decision.Commit) {
	t.Helper()
	if out, err := reconcile.Converge(t.Context(), w.Client, c); err != nil || out.Decision.Ask != nil {
		t.Fatalf("asked %v: %v", out.Decision.Ask, err)
	}
}

// decides decides twice and compares the results. The ask of the decision must have the type of want.
func (w *basis) decides(t *testing.T, what string, c decision.Commit, want reconcile.Ask) reconcile.Decision {
	t.Helper()
	have, err := reconcile.Gather(t.Context(), w.Client, c.Needs)
	if err != nil {
		t.Fatal(err)
	}
	before, documents := copied(c), shapeOf(have)
	first, err := c.Decide(have)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Decide(have)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := shape(t, first), shape(t, again); a != b {
		t.Errorf("%s: decided was\n%s\nand then\n%s", what, a, b)
	}
	if !reflect.DeepEqual(before, c) || documents != shapeOf(have) {
		t.Errorf("%s: the decision has changed its input", what)
	}
	if reflect.TypeOf(first.Ask) != reflect.TypeOf(want) {
		t.Errorf("%s: asked is %T (%v), want %T", what, first.Ask, first.Ask, want)
	}
	return first
}

// copied is a deep copy.
func copied(c decision.Commit) decision.Commit {
	c.Services = slices.Clone(c.Services)
	for i, s := range c.Services {
		c.Services[i].Service, c.Services[i].Groups = s.DeepCopy(), slices.Clone(s.Groups)
	}
	c.Nodes = slices.Clone(c.Nodes)
	for i, n := range c.Nodes {
		c.Nodes[i] = n.DeepCopy()
	}
	c.Config.Zones = slices.Clone(c.Config.Zones)
	c.Confirmed, c.Removing = maps.Clone(c.Confirmed), maps.Clone(c.Removing)
	return c
}

// shapeOf is all documents of a snapshot that decisions are made of.
func shapeOf(have plan.Snapshot) string {
	var b strings.Builder
	for _, fullType := range []string{network.LoadBalancers, network.PublicIPAddresses, network.SecurityGroups, network.Subnets,
		compute.ScaleSets, compute.ScaleSetInstances, network.Interfaces} {
		for _, d := range have.List("", fullType) {
			b.Write(d)
		}
	}
	return fmt.Sprint(have.Len(), b.String())
}

func shape(t *testing.T, d reconcile.Decision) string {
	t.Helper()
	var b strings.Builder
	for _, g := range []plan.Graph{d.Graph, d.Deferred} {
		for _, n := range g.Nodes() {
			want, err := json.Marshal(n.Want())
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, n.ID, n.Why, n.For, n.After, string(want))
		}
		fmt.Fprintln(&b, g.Pending)
	}
	if d.Ask != nil {
		fmt.Fprintf(&b, "%#v\n", d.Ask)
	}
	fmt.Fprintln(&b, d.Problems)
	return b.String()
}
