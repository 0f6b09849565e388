package ipam_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/ipam"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// cluster has Nodes and a controller that assigns their blocks.
type cluster struct {
	t      *testing.T
	client *fake.Clientset
	uids   int
}

func newCluster(t *testing.T) *cluster { return &cluster{t: t, client: fake.NewClientset()} }

// run starts a controller, waits until it has read the Nodes, and returns a function that stops it.
func (c *cluster) run(config ipam.Config, tags ipam.Tags) (stop func()) {
	c.t.Helper()
	factory := informers.NewSharedInformerFactory(c.client, 0)
	controller, err := ipam.New(config, c.client, factory.Core().V1().Nodes(), tags, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	factory.Start(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx) })
	<-time.After(time.Second) // it checks ten times a second whether the informer has synced
	synctest.Wait()
	return func() { cancel(); running.Wait(); factory.Shutdown() }
}

func (c *cluster) node(name string, edit ...func(*corev1.Node)) {
	c.t.Helper()
	c.uids++
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(c.uids))},
		Spec: corev1.NodeSpec{ProviderID: "azure://" + name}}
	for _, e := range edit {
		e(n)
	}
	if _, err := c.client.CoreV1().Nodes().Create(c.t.Context(), n, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func having(cidrs ...string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.PodCIDR, n.Spec.PodCIDRs = cidrs[0], cidrs }
}

func (c *cluster) remove(name string) {
	c.t.Helper()
	if err := c.client.CoreV1().Nodes().Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) cidrs(name string) string {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	if len(n.Spec.PodCIDRs) > 0 && n.Spec.PodCIDR != n.Spec.PodCIDRs[0] {
		c.t.Errorf("%s: podCIDR %s of %v", name, n.Spec.PodCIDR, n.Spec.PodCIDRs)
	}
	return strings.Join(n.Spec.PodCIDRs, " ")
}

// noOverlap checks the blocks of all Nodes and returns how many Nodes have one.
func (c *cluster) noOverlap(reserved ...string) int {
	c.t.Helper()
	list, err := c.client.CoreV1().Nodes().List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	owner := map[netip.Prefix]string{}
	for _, r := range reserved {
		owner[netip.MustParsePrefix(r)] = "reserved"
	}
	served := 0
	for _, n := range list.Items {
		if len(n.Spec.PodCIDRs) > 0 {
			served++
		}
		for _, text := range n.Spec.PodCIDRs {
			block := netip.MustParsePrefix(text)
			for other, name := range owner {
				if other.Overlaps(block) {
					c.t.Errorf("%s of %s overlaps %s of %s", block, n.Name, other, name)
				}
			}
			owner[block] = n.Name
		}
	}
	return served
}

func (c *cluster) events() []string {
	c.t.Helper()
	list, err := c.client.CoreV1().Events("").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var all []string
	for _, e := range list.Items {
		all = append(all, e.InvolvedObject.Name+" "+e.Reason+": "+e.Message)
	}
	slices.Sort(all)
	return all
}

func (c *cluster) wantEvent(start string) {
	c.t.Helper()
	if all := c.events(); !slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, start) }) {
		c.t.Errorf("no event %q among %q", start, all)
	}
}

func config(t *testing.T, f ipam.Flags) ipam.Config {
	t.Helper()
	if f.AllocatorType == "" {
		f.AllocatorType = ipam.RangeAllocator
	}
	c, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNodesGetBlocksAndARestartKeepsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		settings := config(t, ipam.Flags{ClusterCIDR: "10.244.0.0/16,fd00::/48", ServiceClusterIPRange: "10.244.0.0/20"})
		c.node("former", having("192.168.7.0/24"))
		stop := c.run(settings, nil)
		for i := range 50 {
			c.node(fmt.Sprintf("node%d", i))
		}
		stop()
		c.wantEvent("former PodCIDROutsideClusterCIDR")
		if got := c.cidrs("node0"); got != "10.244.16.0/24 fd00::/64" {
			t.Error(got)
		}
		stop = c.run(settings, nil)
		defer stop()
		for i := range 50 {
			c.node(fmt.Sprintf("later%d", i))
		}
		if served := c.noOverlap("10.244.0.0/20"); served != 101 {
			t.Errorf("%d nodes have blocks", served)
		}
	})
}

func TestNodeWithoutRoomGetsItWhenAnotherGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.run(config(t, ipam.Flags{ClusterCIDR: "10.244.0.0/23"}), nil)()
		for _, name := range []string{"a", "b", "late"} {
			c.node(name)
		}
		<-time.After(10 * time.Minute)
		c.wantEvent("late CIDRNotAvailable: pod CIDR of node late: no free block of size /24 in 10.244.0.0/23")
		if n := len(c.events()); n != 1 {
			t.Errorf("%d events", n)
		}
		before := time.Now()
		c.remove("a")
		if got := c.cidrs("late"); got != "10.244.0.0/24" || time.Since(before) > 0 {
			t.Errorf("%q after %v", got, time.Since(before))
		}
	})
}

func TestSizesThatTagsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		tags, down := map[string]string{}, false
		var mu sync.Mutex
		read := func(_ context.Context, id string) (azure.Tags, error) {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return nil, &azure.Error{Kind: azure.Throttled}
			}
			if id == "azure://denied" {
				return nil, &azure.Error{Kind: azure.Denied}
			}
			return azure.Tags{"kubernetesNodeCIDRMaskIPV4": tags[id]}, nil
		}
		set := func(id, mask string, broken bool) {
			mu.Lock()
			defer mu.Unlock()
			tags[id], down = mask, broken
		}
		defer c.run(config(t,
			ipam.Flags{AllocatorType: ipam.CloudAllocator, ClusterCIDR: "10.0.0.0/16", ServiceClusterIPRange: "10.0.0.0/20"}), read)()

		set("azure://small", "26", false)
		set("azure://huge", "8", false)
		c.node("usual")
		c.node("small")
		c.node("huge")
		c.node("denied")
		c.node("unknown", func(n *corev1.Node) { n.Spec.ProviderID = "" })
		<-time.After(time.Second)
		for name, want := range map[string]string{"usual": "/24", "small": "/26", "denied": "/24", "huge": "", "unknown": ""} {
			if got := c.cidrs(name); !strings.HasSuffix(got, want) || (got == "") != (want == "") {
				t.Errorf("%s: %q", name, got)
			}
		}
		c.wantEvent("huge CIDRNotAvailable: pod CIDR of node huge: a /8 is no part of 10.0.0.0/16")
		c.wantEvent("usual InvalidNodeCIDRMask")

		set("azure://huge", "20", true) // corrected, while Azure does not answer
		<-time.After(2 * time.Minute)
		if got := c.cidrs("huge"); got != "" {
			t.Errorf("a size was made up: %s", got)
		}
		set("azure://huge", "20", false)
		<-time.After(time.Minute)
		if got := c.cidrs("huge"); !strings.HasSuffix(got, "/20") {
			t.Errorf("after the tag was put right: %q", got)
		}
		unknown, err := c.client.CoreV1().Nodes().Get(t.Context(), "unknown", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		unknown.Spec.ProviderID = "azure://small"
		if _, err := c.client.CoreV1().Nodes().Update(t.Context(), unknown, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := c.cidrs("unknown"); !strings.HasSuffix(got, "/26") {
			t.Errorf("once its machine is known: %q", got)
		}
		for i := range 40 { // the default size changes while nodes arrive
			set("azure://n", []string{"24", "26", "28", "22"}[i/10], false)
			c.node(fmt.Sprintf("n%d", i), func(n *corev1.Node) { n.Spec.ProviderID = "azure://n" })
		}
		if served := c.noOverlap("10.0.0.0/20"); served != 45 {
			t.Errorf("%d nodes have blocks", served)
		}
	})
}

func TestNodesThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		fail, writes := map[string]error{}, map[string][]string{}
		var mu sync.Mutex
		c.client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			p := a.(clienttesting.PatchAction)
			writes[p.GetName()] = append(writes[p.GetName()], string(p.GetPatch()))
			err := fail[p.GetName()]
			return err != nil, nil, err
		})
		set := func(name string, err error) {
			mu.Lock()
			defer mu.Unlock()
			fail[name] = err
		}
		defer c.run(config(t, ipam.Flags{ClusterCIDR: "10.244.0.0/16"}), nil)()

		set("slow", apierrors.NewServerTimeout(corev1.Resource("nodes"), "patch", 1))
		c.node("slow")
		<-time.After(10 * time.Second)
		c.wantEvent("slow CIDRAssignmentFailed")
		set("slow", nil)
		<-time.After(time.Minute)
		if got := c.cidrs("slow"); got != "10.244.0.0/24" {
			t.Errorf("after the server came back: %q", got)
		}
		if all := slices.Compact(writes["slow"]); len(all) != 1 {
			t.Errorf("one node was offered several blocks: %q", all)
		}

		// Another writer was faster, and the informer does not know yet.
		set("taken", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), "taken", nil))
		c.client.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if name := a.(clienttesting.GetAction).GetName(); name != "taken" {
				return false, nil, nil
			}
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "taken", UID: "2"}}
			having("10.244.99.0/24")(n)
			return true, n, nil
		})
		c.node("taken")
		for range 120 {
			c.node(fmt.Sprintf("more%d", len(writes)))
		}
		for name := range writes {
			if strings.HasPrefix(name, "more") && c.cidrs(name) == "10.244.99.0/24" {
				t.Errorf("%s got the block of another node", name)
			}
		}
	})
}

func TestAnotherNodeOfTheSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.run(config(t, ipam.Flags{ClusterCIDR: "10.244.0.0/16"}), nil)()
		c.node("a")
		first := c.cidrs("a")
		c.remove("a")
		c.node("a")
		if second := c.cidrs("a"); second == "" || second == first {
			t.Errorf("first %q, then %q: a block rests before it is used again", first, second)
		}
	})
}

func TestWrongWays(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	settings := config(t, ipam.Flags{AllocatorType: ipam.CloudAllocator, ClusterCIDR: "10.244.0.0/16"})
	if _, err := ipam.New(settings, fake.NewClientset(), factory.Core().V1().Nodes(), nil, nil); err == nil {
		t.Error("sizes by tags, but no way to read tags")
	}
	settings.Tagged = false
	tags := func(context.Context, string) (azure.Tags, error) { return nil, errors.ErrUnsupported }
	if _, err := ipam.New(settings, fake.NewClientset(), factory.Core().V1().Nodes(), tags, nil); err == nil {
		t.Error("a way to read tags that is not used")
	}
}
