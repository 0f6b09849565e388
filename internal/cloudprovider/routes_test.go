package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	framework "k8s.io/cloud-provider"
	routecontroller "k8s.io/cloud-provider/controllers/route"
	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
	_ "k8s.io/controller-manager/pkg/features/register" // the feature gates of the route controller

	"kaz/internal/arm/cache"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/routes"
	"kaz/internal/testkit"
)

const routeTableID = testkit.Group + "/providers/" + network.RouteTables + "/rt"

// routeProvider is a cluster of Nodes with pod CIDRs on a local Azure.
type routeProvider struct {
	*testkit.Azure
	t       *testing.T
	cloud   *cloudprovider.Cloud
	routes  framework.Routes
	client  *fake.Clientset
	factory informers.SharedInformerFactory
}

func newRouteProvider(t *testing.T, o core.Options, edit ...func(*cloudprovider.Config)) *routeProvider {
	t.Helper()
	w := &routeProvider{Azure: testkit.NewAzure(t, o, 1), t: t, client: fake.NewClientset()}
	c := cloudprovider.Config{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		Routes: routes.Config{
			Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Table: "rt",
			Location: testkit.Location, ClusterGroup: testkit.ResourceGroup,
		},
	}
	for _, e := range edit {
		e(&c)
	}
	w.cloud = cloudprovider.New(c, w.Client)
	t.Cleanup(w.cloud.Close)
	w.routes, _ = w.cloud.Routes()
	return w
}

// watch passes the informers to the provider.
func (w *routeProvider) watch() *routeProvider {
	w.factory = informers.NewSharedInformerFactory(w.client, 0)
	w.cloud.SetInformers(w.factory)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	w.t.Cleanup(func() { cancel(); w.factory.Shutdown() })
	return w
}

// node creates the i-th Node.
func (w *routeProvider) node(i int, edit ...func(*corev1.Node)) *corev1.Node {
	w.t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node%d", i), UID: types.UID(fmt.Sprint(i))},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{fmt.Sprintf("10.%d.%d.0/24", 100+i/256, i%256)}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
			Address: fmt.Sprintf("10.240.%d.%d", i/250, 4+i%250)}}},
	}
	for _, e := range edit {
		e(node)
	}
	node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	node, err := w.client.CoreV1().Nodes().Create(w.t.Context(), node, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return node
}

// create creates the routes of a Node like the framework.
func (w *routeProvider) create(n *corev1.Node) error {
	var errs []error
	for _, cidr := range n.Spec.PodCIDRs {
		errs = append(errs, w.routes.CreateRoute(w.t.Context(), testkit.ClusterName, string(n.UID), &framework.Route{
			TargetNode: types.NodeName(n.Name), TargetNodeAddresses: n.Status.Addresses, DestinationCIDR: cidr,
		}))
	}
	return errors.Join(errs...)
}

// table returns the existing routes as "name prefix hop".
func (w *routeProvider) table(id azure.ID) []string {
	table, _ := testkit.Read[network.RouteTable](w.Azure, id)
	var list []string
	for _, r := range table.Properties.Routes {
		list = append(list, fmt.Sprintf("%s %s %s", r.Name, r.Properties.AddressPrefix, r.Properties.NextHopIPAddress))
	}
	slices.Sort(list)
	return list
}

// writesOf counts the writes of a route table.
func (w *routeProvider) writesOf(table string) int {
	n := 0
	for _, line := range w.Writes() {
		if line == "PUT "+table {
			n++
		}
	}
	return n
}

func (w *routeProvider) list() []string {
	w.t.Helper()
	list, err := w.routes.ListRoutes(w.t.Context(), testkit.ClusterName)
	if err != nil {
		w.t.Fatal(err)
	}
	var text []string
	for _, r := range list {
		text = append(text, fmt.Sprintf("%s %s %s", r.Name, r.TargetNode, r.DestinationCIDR))
	}
	slices.Sort(text)
	return text
}

// The nodes of TestRoutesOfManyNodesShareAWrite come within 50 ms.
func TestRoutesOfManyNodesShareAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 400
		w := newRouteProvider(t, core.Options{Latency: 1})
		for i := range nodes {
			w.node(i)
		}
		w.watch()
		began := time.Now()
		var callers sync.WaitGroup
		for i := range nodes {
			n, err := w.client.CoreV1().Nodes().Get(t.Context(), fmt.Sprintf("node%d", i), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			callers.Go(func() {
				if err := w.create(n); err != nil {
					t.Error(err)
				}
			})
			<-time.After(50 * time.Millisecond / nodes)
		}
		callers.Wait()
		if got := len(w.table(routeTableID)); got != nodes {
			t.Errorf("%d routes for %d nodes", got, nodes)
		}
		t.Logf("%d nodes: all routes after %v of Azure's time, %d writes", nodes, time.Since(began).Round(time.Millisecond),
			w.writesOf("rt"))
		if n := w.writesOf("rt"); n > 1 {
			t.Errorf("%d writes of the table for %d nodes, want one for all", n, nodes)
		}
		if n := len(w.list()); n != nodes {
			t.Errorf("%d routes reported to Kubernetes", n)
		}
	})
}

func TestRouteInPlaceCostsNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		n := w.node(1)
		w.watch()
		if err := w.create(n); err != nil {
			t.Fatal(err)
		}
		w.Forget()
		if err := w.create(n); err != nil {
			t.Fatal(err)
		}
		if writes := w.Writes(); len(writes) > 0 {
			t.Error(writes)
		}
	})
}

func TestRoutesThatAzureHasNoRoomForAreRefusedBeforeItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{Latency: 1})
		for i := range 405 {
			w.node(i)
		}
		w.watch()
		errs := make([]error, 405)
		var callers sync.WaitGroup
		for i := range errs {
			callers.Go(func() {
				n, _ := w.client.CoreV1().Nodes().Get(t.Context(), fmt.Sprintf("node%d", i), metav1.GetOptions{})
				errs[i] = w.create(n)
			})
		}
		callers.Wait()
		refused := 0
		for _, err := range errs {
			if err == nil {
				continue
			}
			refused++
			if !strings.Contains(err.Error(), "its route table holds 400 routes, and Azure allows 400") {
				t.Error(err)
			}
		}
		if refused != 5 || len(w.table(routeTableID)) != 400 || w.writesOf("rt") > 2 {
			t.Errorf("%d refused, %d routes, %d writes", refused, len(w.table(routeTableID)), w.writesOf("rt"))
		}
	})
}

func TestRouteWritesThatGoWrong(t *testing.T) {
	put := func(f core.Fault) core.Options {
		f.Method, f.Type = "PUT", network.RouteTables
		if f.Fault == "" {
			f.Fault = core.FaultError
		}
		return core.Options{Faults: []core.Fault{f}}
	}
	for name, test := range map[string]struct {
		o    core.Options
		kind azure.Kind // of the error, Internal for success
	}{
		"changed underneath, once":    {put(core.Fault{Status: 412, Code: "PreconditionFailed", Times: 1}), 0},
		"changed underneath, forever": {put(core.Fault{Status: 412, Code: "PreconditionFailed"}), azure.Changed},
		"Azure is broken":             {put(core.Fault{Status: 500, Code: "InternalServerError"}), azure.Unavailable},
		"no rights":                   {put(core.Fault{Status: 403, Code: "AuthorizationFailed"}), azure.Denied},
		"throttled, once":             {put(core.Fault{Status: 429, Code: "TooManyRequests", RetryAfter: 7, Times: 1}), 0},
		"the reply gets lost":         {put(core.Fault{Fault: core.FaultLost, Times: 1}), 0},
		"the operation fails": {put(core.Fault{Fault: core.FaultOperation, Code: "InternalServerError"}),
			azure.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newRouteProvider(t, test.o)
				first, second := w.node(1), w.node(2)
				w.watch()
				var callers sync.WaitGroup
				for _, n := range []*corev1.Node{first, second} {
					callers.Go(func() {
						err := w.create(n)
						if (err != nil) != (test.kind != 0) || err != nil && azure.KindOf(err) != test.kind {
							t.Errorf("%s: %v", n.Name, err)
						}
					})
				}
				callers.Wait()
				if got := len(w.table(routeTableID)); test.kind == 0 && got != 2 {
					t.Errorf("%d routes", got)
				}
				if n := len(w.Writes()); n > 20 {
					t.Errorf("%d writes", n)
				}
			})
		})
	}
}

func TestOneBadRouteLeavesItsNeighboursAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{Latency: 1})
		var all []*corev1.Node
		for i := range 10 {
			all = append(all, w.node(i, func(n *corev1.Node) {
				if i == 7 {
					n.Spec.PodCIDRs = []string{"10.100.7.9/24"} // Azure requires a network address
				}
			}))
		}
		w.watch()
		var callers sync.WaitGroup
		for i, n := range all {
			callers.Go(func() {
				if err := w.create(n); (err != nil) != (i == 7) {
					t.Errorf("%s: %v", n.Name, err)
				}
			})
		}
		callers.Wait()
		if got := w.table(routeTableID); len(got) != 9 {
			t.Error(got)
		}
	})
}

func TestRouteCallersThatGiveUpAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{Latency: 1})
		n := w.node(1)
		w.watch()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := w.routes.CreateRoute(ctx, testkit.ClusterName, "", &framework.Route{
			TargetNode: types.NodeName(n.Name), TargetNodeAddresses: n.Status.Addresses, DestinationCIDR: n.Spec.PodCIDR,
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestRoutesWaitForTheNodesToBeKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		n := w.node(1)
		if _, err := w.routes.ListRoutes(t.Context(), testkit.ClusterName); err == nil {
			t.Error("routes were listed without knowing the nodes")
		}
		if err := w.create(n); err == nil {
			t.Error("a route was made without knowing the nodes")
		}
	})
}

func TestUnmanagedNodesHaveNoRouteInAzure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		n := w.node(1, func(n *corev1.Node) { n.Labels = map[string]string{"kubernetes.azure.com/managed": "False"} })
		w.watch()
		if err := w.create(n); err != nil {
			t.Error(err)
		}
		if got := w.list(); !slices.Equal(got, []string{"node1____101001024 node1 10.100.1.0/24"}) {
			t.Error(got)
		}
		if writes := w.Writes(); len(writes) > 0 {
			t.Error(writes)
		}
	})
}

func TestNextHops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		both := w.node(1, func(n *corev1.Node) {
			n.Spec.PodCIDRs = []string{"10.100.1.0/24", "fd00:0:0:1::/64"}
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "fd01::4"},
				corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: "20.1.1.1"})
		})
		silent := w.node(2, func(n *corev1.Node) {
			n.Name, n.Status.Addresses = "nodes0-000000", nil // the address comes from the machine
		})
		half := w.node(3, func(n *corev1.Node) {
			n.Name, n.Spec.PodCIDRs = "nodes0-000000x", []string{"fd00:0:0:3::/64"}
			n.Spec.ProviderID = "azure://" + string(testkit.Nodes.Child("virtualMachines", "0"))
		})
		w.watch()
		if err := errors.Join(w.create(both), w.create(silent)); err != nil {
			t.Error(err)
		}
		if err := w.create(half); err == nil || !strings.Contains(err.Error(), "no match found matching the ipfamily requested") {
			t.Errorf("a node without an IPv6 address: %v", err)
		}
		want := []string{
			"node1____101001024 10.100.1.0/24 10.240.0.5",
			"node1____fd0000164 fd00:0:0:1::/64 fd01::4",
			"nodes0-000000____101002024 10.100.2.0/24 10.240.0.4",
		}
		if got := w.table(routeTableID); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

func TestRouteOperationsAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := newRouteProvider(t, core.Options{Latency: 1}, func(c *cloudprovider.Config) { c.Registerer = registry })
		good, bad := w.node(1), w.node(2, func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"nonsense"} })
		w.watch()
		if err := w.create(good); err != nil {
			t.Error(err)
		}
		if err := w.create(bad); err == nil {
			t.Error("a route to nonsense")
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range families {
			for _, m := range f.Metric {
				labels := map[string]string{}
				for _, l := range m.Label {
					labels[l.GetName()] = l.GetValue()
				}
				got = append(got,
					fmt.Sprintf("%s %s %s %q %d %v", f.GetName(), labels["request"], labels["resource_group"], labels["source"],
						m.GetHistogram().GetSampleCount(), m.GetCounter().GetValue()))
			}
		}
		want := []string{
			`cloudprovider_azure_op_duration_seconds routes_create_route rg "" 2 0`,
			`cloudprovider_azure_op_failure_count routes_create_route rg "" 0 1`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

// generous is an Azure that reports a raised limit of routes.
type generous struct {
	*cache.Cache
	asked int
}

func (g *generous) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if q.Type != "Microsoft.Network/locations/usages" {
		return g.Cache.List(ctx, q)
	}
	g.asked++
	docs, err := g.Cache.List(ctx, q)
	return append(docs, azure.Document(`{"id":"/x","name":{"value":"RoutesPerRouteTable"},"limit":1000}`)), err
}

// TestTableThatMayHoldMore checks that a raised limit is used, and that Azure's rejections still
// reach the affected routes.
func TestTableThatMayHoldMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		var list []any
		for i := range 398 {
			list = append(list, map[string]any{"name": fmt.Sprintf("theirs-%d", i), "properties": map[string]any{
				"addressPrefix": fmt.Sprintf("172.16.%d.%d/32", i/250, i%250), "nextHopType": "VnetLocal",
			}})
		}
		w.Put(routeTableID, map[string]any{"location": testkit.Location, "properties": map[string]any{"routes": list}})
		client := &generous{Cache: w.Client}
		w.cloud = cloudprovider.New(cloudprovider.Config{Routes: routes.Config{
			Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Table: "rt", Location: "West Europe",
		}}, client)
		t.Cleanup(w.cloud.Close)
		w.routes, _ = w.cloud.Routes()
		fit, last, more := w.node(1), w.node(2), w.node(3)
		w.watch()
		if err := errors.Join(w.create(fit), w.create(last)); err != nil {
			t.Error(err)
		}
		if err := w.create(more); azure.KindOf(err) != azure.Invalid {
			t.Errorf("more than the local Azure allows: %v", err)
		}
		if client.asked != 1 || len(w.table(routeTableID)) != 400 {
			t.Errorf("asked %d times, %d routes", client.asked, len(w.table(routeTableID)))
		}
	})
}

// TestTableThatIsNearlyFull checks that a nearly full table causes one warning.
func TestTableThatIsNearlyFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{})
		var list []any
		for i := range 358 {
			list = append(list, map[string]any{"name": fmt.Sprintf("theirs-%d", i), "properties": map[string]any{
				"addressPrefix": fmt.Sprintf("172.16.%d.%d/32", i/250, i%250), "nextHopType": "VnetLocal",
			}})
		}
		w.Put(routeTableID, map[string]any{"location": testkit.Location, "properties": map[string]any{"routes": list}})
		nodes := []*corev1.Node{w.node(1), w.node(2), w.node(3)}
		w.watch()
		stop := make(chan struct{})
		w.cloud.Initialize(clients{client: w.client}, stop)
		for _, n := range nodes {
			if err := w.create(n); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Minute)
		events, err := w.client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(events.Items) != 1 || events.Items[0].InvolvedObject.Name != "node2" ||
			events.Items[0].Message != "route table rt holds 360 of the 400 routes that Azure allows" {
			t.Errorf("%+v", events.Items)
		}
		close(stop)
		synctest.Wait()
	})
}

// clients is a ClientBuilder for the provider.
type clients struct {
	framework.ControllerClientBuilder
	client kubernetes.Interface
}

func (c clients) Client(string) (kubernetes.Interface, error) { return c.client, nil }

func TestTagsOfTheRouteTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{}, func(c *cloudprovider.Config) { c.Routes.Tags = azure.Tags{"team": "net"} })
		n := w.node(1)
		w.watch()
		if got := w.list(); len(got) > 0 || len(w.Writes()) > 0 {
			t.Errorf("a table was made that is not needed yet: %v %v", got, w.Writes())
		}
		if err := w.create(n); err != nil {
			t.Fatal(err)
		}
		if w.writesOf("rt") != 1 {
			t.Error(w.Writes())
		}
		// Another program changes them.
		w.Put(routeTableID, map[string]any{"location": testkit.Location, "tags": map[string]string{"team": "x", "theirs": "y"}})
		w.list()
		if tags := testkit.Must[network.RouteTable](w.Azure, routeTableID).Tags; tags["team"] != "net" || tags["theirs"] != "y" {
			t.Error(tags)
		}
	})
}

func TestTagsThatCannotBeWrittenKeepNoRouteFromBeingListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{Faults: []core.Fault{
			{Method: "PUT", Type: network.RouteTables, Nth: 2, Fault: core.FaultError, Status: 403, Code: "AuthorizationFailed"},
		}}, func(c *cloudprovider.Config) { c.Routes.Tags = azure.Tags{"team": "net"} })
		w.Put(routeTableID, map[string]any{"location": testkit.Location})
		w.watch()
		w.Forget()
		for range 10 { // as often as the framework does in 100 s
			w.list()
			<-time.After(10 * time.Second)
		}
		if n := w.writesOf("rt"); n != 1 {
			t.Errorf("%d tries to write tags that Azure refuses", n)
		}
		<-time.After(5 * time.Minute)
		w.list()
		if tags := testkit.Must[network.RouteTable](w.Azure, routeTableID).Tags; tags["team"] != "net" {
			t.Error(tags)
		}
	})
}

func TestRouteTableInAnotherResourceGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{}, func(c *cloudprovider.Config) {
			c.Routes.ResourceGroup, c.Routes.Tags = "net", azure.Tags{"team": "net"}
		})
		group := azure.GroupID(testkit.Subscription, "net")
		w.Put(group, map[string]any{"location": testkit.Location})
		n := w.node(1)
		w.watch()
		if err := w.create(n); err != nil {
			t.Fatal(err)
		}
		if table := testkit.Must[network.RouteTable](w.Azure, group.Resource(network.RouteTables, "rt")); len(table.Tags) > 0 ||
			len(table.Properties.Routes) != 1 {
			t.Errorf("%+v", table)
		}
	})
}

// TestRouteController runs the framework's controller: nodes are created, changed and deleted.
func TestRouteController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 200
		w := newRouteProvider(t, core.Options{Latency: 1})
		// Foreign routes, one of them in the range of the pods.
		w.Put(routeTableID, map[string]any{"location": testkit.Location, "properties": map[string]any{"routes": []any{
			map[string]any{"name": "firewall",
				"properties": map[string]any{"addressPrefix": "0.0.0.0/0", "nextHopType": "VirtualAppliance",
					"nextHopIpAddress": "10.0.0.1"}},
			map[string]any{"name": "vpn",
				"properties": map[string]any{"addressPrefix": "10.100.255.0/24", "nextHopType": "VirtualAppliance",
					"nextHopIpAddress": "10.0.0.2"}},
		}}})
		w.Forget()
		for i := range nodes {
			w.node(i)
		}
		w.watch()
		stop := w.controller()
		defer stop()

		began := time.Now()
		w.eventually("routes", 30*time.Second, func() bool { return w.reachable() == nodes })
		took, latency := time.Since(began), w.writeLatency()
		if n := w.writesOf("rt"); n > 3 || took > 2*latency+2*time.Second { // to list the routes and to read
			t.Errorf("%d writes for %d new nodes, which took %v, where one write takes %v", n, nodes, took, latency)
		}
		t.Logf("%d new nodes: all reachable after %v, with %d writes of at most %v each", nodes, took, w.writesOf("rt"),
			latency.Round(time.Millisecond))
		w.Forget()
		for i := range 50 {
			if err := w.client.CoreV1().Nodes().Delete(t.Context(), fmt.Sprintf("node%d", i), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		moved, err := w.client.CoreV1().Nodes().Get(t.Context(), "node99", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		moved.Status.Addresses[0].Address = "10.240.9.9"
		if _, err := w.client.CoreV1().Nodes().UpdateStatus(t.Context(), moved, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("routes of deleted nodes gone, that of a moved node changed", time.Minute, func() bool {
			table := w.table(routeTableID)
			return len(table) == nodes-50+2 && slices.Contains(table, "node99____1010099024 10.100.99.0/24 10.240.9.9")
		})
		<-time.After(time.Minute) // the last write ends
		if n := w.writesOf("rt"); n > 3 {
			t.Errorf("%d writes for 50 deleted nodes and a moved one", n)
		}
		w.Forget()
		quiet := time.Hour
		if testing.Short() {
			quiet = 5 * time.Minute // thirty periods
		}
		<-time.After(quiet)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("nothing happened in %v and yet written: %v", quiet, writes)
		}
	})
}

// writeLatency returns the duration of the slowest write of the route table, from the request until
// Azure finished it.
func (w *routeProvider) writeLatency() (longest time.Duration) {
	var sent time.Time
	for _, r := range w.Requests() {
		switch {
		case r.Method == "PUT" && r.Name() == "rt":
			sent = r.At
		case !r.IsPoll():
			continue
		}
		longest = max(longest, r.At.Add(r.Took).Sub(sent))
	}
	return longest
}

func TestNetworkStaysUnavailableWhenAzureFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newRouteProvider(t, core.Options{Faults: []core.Fault{{
			Method: "PUT", Type: network.RouteTables, Fault: core.FaultError, Status: 409, Code: "SomethingIsWrong", Times: 40,
		}}})
		w.node(1)
		w.watch()
		stop := w.controller()
		defer stop()
		w.eventually("the condition", time.Minute, func() bool { return w.condition("node1") == corev1.ConditionTrue })
		w.eventually("the route, when Azure works again", time.Hour, func() bool { return w.condition("node1") == corev1.ConditionFalse })
	})
}

func (w *routeProvider) controller() (stop func()) {
	w.t.Helper()
	_, pods, err := net.ParseCIDR("10.100.0.0/15")
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := routecontroller.New(w.routes, w.client, w.factory.Core().V1().Nodes(), testkit.ClusterName, []*net.IPNet{pods})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		c.Run(ctx, 10*time.Second, controllersmetrics.NewControllerManagerMetrics("test"))
	})
	return func() { cancel(); running.Wait(); synctest.Wait() }
}

func (w *routeProvider) eventually(what string, within time.Duration, is func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(within)
	for !is() {
		if time.Now().After(deadline) {
			w.t.Fatalf("no %s after %v", what, within)
		}
		<-time.After(time.Second)
	}
}

func (w *routeProvider) condition(node string) corev1.ConditionStatus {
	n, err := w.client.CoreV1().Nodes().Get(w.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeNetworkUnavailable {
			return c.Status
		}
	}
	return ""
}

// reachable counts the Nodes with an available network.
func (w *routeProvider) reachable() int {
	list, err := w.client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	count := 0
	for _, n := range list.Items {
		if w.condition(n.Name) == corev1.ConditionFalse {
			count++
		}
	}
	return count
}
