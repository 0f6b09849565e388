package nodemanager_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/cloudprovider"
	"kaz/internal/nodemanager"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

type runtimeObject = runtime.Object

const period = 5 * time.Minute

// in runs a test in its own cluster and bubble.
func in(t *testing.T, machines int, test func(t *testing.T, w *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newCluster(t, machines)) })
}

func TestANewNodeIsInitialized(t *testing.T) {
	in(t, 2, func(t *testing.T, w *cluster) {
		vm := w.machines[1]
		name := w.register(t, vm)
		w.client.ClearActions()
		w.start(t, w.of(t, vm))
		node := w.node(t, name)
		if isNew(node) {
			t.Error("the taint is there still")
		}
		if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "node.kubernetes.io/not-ready" {
			t.Errorf("taints of others: %v", node.Spec.Taints)
		}
		want, err := nodes.ProviderID(vm.ID)
		if err != nil || node.Spec.ProviderID != want {
			t.Errorf("provider id %s, want %s", node.Spec.ProviderID, want)
		}
		labels := map[string]string{
			"kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "Standard_D2s_v5",
			"topology.kubernetes.io/region": "westeurope", "topology.kubernetes.io/zone": "westeurope-" + vm.Zones[0],
		}
		if diff := cmp.Diff(labels, node.Labels); diff != "" {
			t.Errorf("labels: %s", diff)
		}
		if got := texts(node.Status.Addresses); len(got) != 2 || got[0] != "Hostname "+name ||
			!strings.HasPrefix(got[1], "InternalIP 10.240.") {
			t.Errorf("addresses: %v", got)
		}
		if got := w.services.questions(); !slices.Equal(got, []string{"/metadata/instance", "/metadata/loadbalancer"}) {
			t.Errorf("asked %v", got)
		}
		if got := w.writes(); !slices.Equal(got, []string{"patch status", "update"}) {
			t.Errorf("wrote %v: the taint must go last", got)
		}
		if events := w.eventTexts(); len(events) > 0 {
			t.Error(events)
		}
	})
}

// TestANodeThatComesLater checks that the Node may be created after the start of the process.
func TestANodeThatComesLater(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		w.start(t, w.of(t, w.machines[0]))
		pass(3 * time.Hour)
		name := w.register(t, w.machines[0])
		synctest.Wait()
		if isNew(w.node(t, name)) {
			t.Fatal("not initialized at once")
		}
		// The node is deleted and registered again.
		if err := w.client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.register(t, w.machines[0], func(n *corev1.Node) { n.UID = "another" })
		synctest.Wait()
		if isNew(w.node(t, name)) {
			t.Error("not initialized again")
		}
	})
}

// TestNothingIsHalfDone checks that a node keeps its taint while its metadata is slow, incomplete,
// wrong or missing, and is initialized afterwards.
func TestNothingIsHalfDone(t *testing.T) {
	instance := func(status int, body string) func(string) (int, string) {
		return func(path string) (int, string) {
			if strings.HasSuffix(path, "/metadata/instance") {
				return status, body
			}
			return 0, ""
		}
	}
	document := func(change func(compute, network map[string]any)) string {
		c := map[string]any{
			"name": "nodes0_0", "osProfile": map[string]any{"computerName": "nodes0-000000"}, "location": "westeurope", "zone": "1",
			"vmSize":     "Standard_D2s_v5",
			"resourceId": string(testkit.Nodes) + "/virtualMachines/0",
		}
		n := map[string]any{"interface": []any{map[string]any{"ipv4": map[string]any{"ipAddress": []any{map[string]any{"privateIpAddress": "10.240.0.4"}}}}}}
		change(c, n)
		text, err := json.Marshal(map[string]any{"compute": c, "network": n})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		fault func(string) (int, string)
		event string
	}{
		"absent":          {instance(http.StatusInternalServerError, "starting"), "unavailable (500): starting"},
		"slow":            {instance(hang, ""), "deadline exceeded"},
		"throttled":       {instance(http.StatusTooManyRequests, ""), "throttled (429)"},
		"no such machine": {instance(http.StatusNotFound, ""), "not found (404)"},
		"cut":             {instance(http.StatusOK, `{"compute":{`), "invalid instance metadata"},
		"a foreign page":  {instance(http.StatusOK, "<html>"), "invalid instance metadata"},
		"no network":      {instance(http.StatusOK, `{"compute":{}}`), `has no "network"`},
		"no resource id": {instance(http.StatusOK, document(func(c, _ map[string]any) { delete(c, "resourceId") })),
			"resourceId is empty"},
		"no size": {instance(http.StatusOK, document(func(c, _ map[string]any) { c["vmSize"] = "" })),
			"vmSize is empty"},
		"no location": {instance(http.StatusOK, document(func(c, _ map[string]any) { c["location"] = "" })),
			"location is empty"},
		"a zone that is none": {instance(http.StatusOK, document(func(c, _ map[string]any) { c["zone"] = "x" })), `zone "x"`},
		"no interface": {instance(http.StatusOK, document(func(_, n map[string]any) { n["interface"] = []any{} })),
			"no interface"},
		"no addresses": {instance(http.StatusOK,
			document(func(_, n map[string]any) { n["interface"] = []any{map[string]any{}} })), "has no address"},
		"that of another machine": {instance(http.StatusOK,
			document(func(c, _ map[string]any) { c["name"], c["osProfile"] = "o", map[string]any{} })), `is that of the machine "o"`},
		"an address that is none": {instance(http.StatusOK,
			strings.Replace(document(func(_, _ map[string]any) {}), "10.240.0.4", "10.240.0", 1)), "no IPv4 address"},
		"an id of something else": {instance(http.StatusOK,
			document(func(c, _ map[string]any) { c["resourceId"] = string(testkit.LoadBalancer) })), "of no virtual machine"},
		"a size that is no label": {instance(http.StatusOK, document(func(c, _ map[string]any) { c["vmSize"] = "a b" })),
			"cannot be a label"},
		"a number in place of texts": {instance(http.StatusOK, document(func(c, _ map[string]any) { c["zone"] = 1 })), "compute.zone"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *cluster) {
				node := w.register(t, w.machines[0])
				before := w.node(t, node)
				w.services.set(c.fault)
				w.client.ClearActions()
				w.start(t, w.of(t, w.machines[0]))
				pass(20 * time.Minute)
				if diff := cmp.Diff(before, w.node(t, node)); diff != "" {
					t.Errorf("changed: %s", diff)
				}
				if got := w.writes(); len(got) > 0 {
					t.Errorf("wrote %v", got)
				}
				if events := w.eventTexts(); len(events) != 1 || !strings.Contains(events[0], c.event) {
					t.Errorf("events %q, want one with %q", events, c.event)
				}
				w.services.set(nil)
				// The longest delay between attempts, and the slowest last attempt.
				pass(30*time.Second + 44*time.Second)
				if isNew(w.node(t, node)) {
					t.Error("does not recover")
				}
			})
		})
	}
}

// TestAHiccupIsNoEvent checks that a short failure causes no Event.
func TestAHiccupIsNoEvent(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		name := w.register(t, w.machines[0])
		w.services.set(func(string) (int, string) { return http.StatusInternalServerError, "" })
		w.start(t, w.of(t, w.machines[0]))
		pass(4 * time.Second) // one round with all its attempts
		w.services.set(nil)
		pass(2 * time.Second)
		if isNew(w.node(t, name)) || len(w.eventTexts()) > 0 {
			t.Error("not initialized, or an event")
		}
	})
}

func TestAddressesFollowTheMachine(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		name := w.register(t, w.machines[0])
		w.start(t, w.of(t, w.machines[0]))
		first := w.node(t, name).Status.Addresses
		w.writes()
		w.services.questions()

		t.Log("nothing changes")
		pass(period + time.Second)
		if got := w.writes(); len(got) > 0 {
			t.Errorf("wrote %v", got)
		}
		if got := w.services.questions(); len(got) != 2 {
			t.Errorf("asked %v", got)
		}

		t.Log("the order changes, by hand")
		w.change(t, name, func(n *corev1.Node) { slices.Reverse(n.Status.Addresses) })
		w.writes()
		pass(period + time.Second)
		if got := w.writes(); len(got) > 0 {
			t.Errorf("wrote %v for another order", got)
		}

		t.Log("an address is wrong")
		w.change(t, name, func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.9.9.9" })
		w.writes()
		pass(period + time.Second)
		if got := w.writes(); !slices.Equal(got, []string{"patch status"}) {
			t.Errorf("wrote %v", got)
		}
		if diff := cmp.Diff(first, w.node(t, name).Status.Addresses); diff != "" {
			t.Error(diff)
		}

		t.Log("the metadata says nothing for a while: what is known stays")
		w.services.set(func(string) (int, string) { return http.StatusServiceUnavailable, "" })
		pass(time.Hour)
		if got := w.writes(); len(got) > 0 {
			t.Errorf("wrote %v", got)
		}
		if events := w.eventTexts(); len(events) != 1 || !strings.Contains(events[0], "NodeAddressUpdateFailed") {
			t.Errorf("events %q", events)
		}
		w.services.set(nil)
		pass(2 * period)
		if diff := cmp.Diff(first, w.node(t, name).Status.Addresses); diff != "" {
			t.Error(diff)
		}
	})
}

func (w *cluster) change(t *testing.T, name string, f func(*corev1.Node)) {
	t.Helper()
	node := w.node(t, name)
	f(node)
	if _, err := w.client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// TestOutsideAddresses checks that the load balancer metadata, which has the external addresses, is
// optional.
func TestOutsideAddresses(t *testing.T) {
	balancer := func(status int, body string) func(string) (int, string) {
		return func(path string) (int, string) {
			if strings.HasSuffix(path, "/metadata/loadbalancer") {
				return status, body
			}
			return 0, ""
		}
	}
	in(t, 1, func(t *testing.T, w *cluster) {
		inside := w.inside(t, 0)
		answer := fmt.Sprintf(`{"loadbalancer":{"publicIpAddresses":[{"frontendIpAddress":"20.1.2.3","privateIpAddress":%q}]}}`, inside)
		w.services.set(balancer(http.StatusOK, answer))
		name := w.register(t, w.machines[0])
		w.start(t, w.of(t, w.machines[0]))
		want := []string{"Hostname " + name, "InternalIP " + inside, "ExternalIP 20.1.2.3"}
		expect := func(what string) {
			t.Helper()
			if got := texts(w.node(t, name).Status.Addresses); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		expect("behind a balancer")
		w.services.set(balancer(http.StatusInternalServerError, ""))
		pass(time.Hour)
		expect("the balancer's part fails: what is known stays")
		w.services.set(balancer(http.StatusNotFound, ""))
		pass(2 * period)
		want = want[:2]
		expect("no balancer any more")
		if events := w.eventTexts(); len(events) > 0 {
			t.Error(events)
		}
	})
	in(t, 1, func(t *testing.T, w *cluster) {
		w.services.set(balancer(http.StatusInternalServerError, ""))
		name := w.register(t, w.machines[0])
		w.start(t, w.of(t, w.machines[0]))
		pass(5 * time.Second)
		if isNew(w.node(t, name)) {
			t.Error("a node waits for addresses that it can do without")
		}
		inside := w.inside(t, 0)
		w.services.set(balancer(http.StatusOK,
			fmt.Sprintf(`{"loadbalancer":{"publicIpAddresses":[{"frontendIpAddress":"20.1.2.3","privateIpAddress":%q}]}}`, inside)))
		pass(time.Minute) // earlier than the period
		if got := texts(w.node(t, name).Status.Addresses); len(got) != 3 || got[2] != "ExternalIP 20.1.2.3" {
			t.Error(got)
		}
	})
}

func (w *cluster) inside(t *testing.T, machine int) string {
	t.Helper()
	m, err := w.metadata(t, w.machines[machine].ID).Instance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.services.questions()
	return m.Network.Interfaces[0].IPv4.Addresses[0].Private
}

func TestProvidedNodeIPs(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		const key = "alpha.kubernetes.io/provided-node-ip"
		inside := w.inside(t, 0)
		name := w.register(t, w.machines[0], func(n *corev1.Node) { n.Annotations = map[string]string{key: inside + ", fd00::4"} })
		w.start(t, w.of(t, w.machines[0]))
		pass(time.Hour)
		if !isNew(w.node(t, name)) {
			t.Error("initialized though the kubelet uses an address that is not there")
		}
		if events := w.eventTexts(); len(events) != 1 ||
			!strings.Contains(events[0],
				`Warning MachineContradiction initialize node nodes0-000000: the kubelet of node nodes0-000000 uses the address "fd00::4"`) {
			t.Errorf("events %q", events)
		}
		w.change(t, name, func(n *corev1.Node) { n.Annotations[key] = inside })
		pass(30 * time.Second)
		if isNew(w.node(t, name)) {
			t.Error("not initialized")
		}
	})
}

// TestAContradictionIsSaidOnceAndNothingFlaps checks that a node is never updated from another
// machine.
func TestAContradictionIsSaidOnceAndNothingFlaps(t *testing.T) {
	for name, isNewNode := range map[string]bool{"a new node": true, "an initialized node": false} {
		t.Run(name, func(t *testing.T) {
			in(t, 2, func(t *testing.T, w *cluster) {
				other, err := nodes.ProviderID(w.machines[1].ID)
				if err != nil {
					t.Fatal(err)
				}
				name := w.register(t, w.machines[0], func(n *corev1.Node) {
					n.Spec.ProviderID = other
					if !isNewNode {
						n.Spec.Taints = nil
					}
				})
				w.client.ClearActions()
				w.start(t, w.of(t, w.machines[0]))
				pass(24 * time.Hour)
				if got := w.writes(); len(got) > 0 || isNew(w.node(t, name)) != isNewNode {
					t.Errorf("wrote %v", got)
				}
				if events := w.eventTexts(); len(events) != 1 || !strings.Contains(events[0], "MachineContradiction") ||
					!strings.Contains(events[0], other) {
					t.Errorf("events %q", events)
				}
			})
		})
	}
}

func TestAProviderIDThatIsThereStays(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		name := w.register(t, w.machines[0], func(n *corev1.Node) { n.Spec.ProviderID = "cellar://1" })
		w.start(t, w.of(t, w.machines[0]))
		if n := w.node(t, name); isNew(n) || n.Spec.ProviderID != "cellar://1" {
			t.Error(n.Spec)
		}
	})
}

func TestBetaLabels(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		w.config.BetaLabels = true
		name := w.register(t, w.machines[0])
		w.start(t, w.of(t, w.machines[0]))
		const zone = "failure-domain.beta.kubernetes.io/zone"
		right := w.node(t, name).Labels
		if right["beta.kubernetes.io/instance-type"] != "Standard_D2s_v5" ||
			right["failure-domain.beta.kubernetes.io/region"] != "westeurope" || right[zone] == "" {
			t.Errorf("labels %v", right)
		}
		w.change(t, name, func(n *corev1.Node) { n.Labels[zone] = "elsewhere" })
		pass(period)
		if diff := cmp.Diff(right, w.node(t, name).Labels); diff != "" {
			t.Error(diff)
		}
		w.writes()
		pass(period)
		if got := w.writes(); len(got) > 0 {
			t.Errorf("wrote %v", got)
		}
	})
}

func TestWaitRoutes(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		w.config.WaitRoutes = true
		name := w.register(t, w.machines[0], func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		})
		w.client.ClearActions()
		w.start(t, w.of(t, w.machines[0]))
		node := w.node(t, name)
		at := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeNetworkUnavailable })
		if isNew(node) || len(node.Status.Conditions) != 2 || at < 0 {
			t.Fatalf("conditions %v", node.Status.Conditions)
		}
		if c := node.Status.Conditions[at]; c.Status != corev1.ConditionTrue || c.Reason != "NodeInitialization" ||
			c.Message != "Waiting for cloud routes" {
			t.Errorf("condition %v", c)
		}
		if got := w.writes(); !slices.Equal(got, []string{"patch status", "patch status", "update"}) {
			t.Errorf("wrote %v", got)
		}
		// The route controller's status is kept.
		w.change(t, name, func(n *corev1.Node) { n.Status.Conditions[at].Status = corev1.ConditionFalse })
		pass(2 * period)
		if got := w.node(t, name).Status.Conditions[at].Status; got != corev1.ConditionFalse {
			t.Error(got)
		}
	})
}

func TestWritesThatFail(t *testing.T) {
	resource := schema.GroupResource{Resource: "nodes"}
	for name, c := range map[string]struct {
		verb  string
		times int
		err   error
		wait  time.Duration
	}{
		"others write too":      {"update", 5, apierrors.NewConflict(resource, "n", errors.New("changed")), time.Second},
		"the server is away":    {"update", 2, apierrors.NewServiceUnavailable("away"), 10 * time.Second},
		"addresses are refused": {"patch", 2, apierrors.NewInternalError(errors.New("away")), 10 * time.Second},
		"reading fails":         {"get", 2, apierrors.NewInternalError(errors.New("away")), 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, 1, func(t *testing.T, w *cluster) {
				node := w.register(t, w.machines[0])
				w.refuse(c.verb, c.times, c.err)
				w.start(t, w.of(t, w.machines[0]))
				pass(c.wait)
				n := w.node(t, node)
				if isNew(n) || n.Spec.ProviderID == "" || len(n.Status.Addresses) != 2 {
					t.Errorf("not initialized: %+v", n.Spec)
				}
			})
		})
	}
}

// TestManyNodesOfOneProcess checks that slow machines do not delay others.
func TestManyNodesOfOneProcess(t *testing.T) {
	const count = 20
	in(t, count, func(t *testing.T, w *cluster) {
		broken := "/vm" + string(w.machines[3].ID) + "/"
		w.services.set(func(path string) (int, string) {
			if strings.HasPrefix(path, broken) {
				return hang, ""
			}
			return 0, ""
		})
		var members []nodemanager.Member
		for _, vm := range w.machines {
			w.register(t, vm)
			members = append(members, w.of(t, vm))
		}
		begin := time.Now()
		changes, stop := w.start(t, members...)
		for i, vm := range w.machines {
			if got := isNew(w.node(t, nodes.NodeName(vm))); got != (i == 3) {
				t.Errorf("%s: new is %v", vm.ID, got)
			}
		}
		if took := time.Since(begin); took > listed {
			t.Errorf("waited %s", took)
		}

		t.Log("the list changes: one goes, one is asked for at the right place")
		w.services.set(nil)
		w.services.questions()
		members = members[1:]
		members[2] = w.of(t, w.machines[3])
		changes <- members
		synctest.Wait()
		if isNew(w.node(t, nodes.NodeName(w.machines[3]))) {
			t.Error("not initialized by its new member")
		}
		if got := w.services.questions(); len(got) != 2 {
			t.Errorf("members that stayed were disturbed: %v", got)
		}
		stop()
	})
}

func TestStopsInTheMiddle(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		name := w.register(t, w.machines[0])
		w.services.set(func(string) (int, string) { return hang, "" })
		_, stop := w.start(t, w.of(t, w.machines[0]))
		begin := time.Now()
		stop()
		if took := time.Since(begin); took > 0 {
			t.Errorf("took %s to stop", took)
		}
		if !isNew(w.node(t, name)) || len(w.eventTexts()) > 0 {
			t.Error("stopping is no failure and no success")
		}
	})
}

// TestFromAzure reads Azure's API, with its order of addresses.
func TestFromAzure(t *testing.T) {
	in(t, 3, func(t *testing.T, w *cluster) {
		cloud := cloudprovider.New(cloudprovider.Config{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
			Location: testkit.Location}, w.Client)
		t.Cleanup(cloud.Close)
		instances, _ := cloud.InstancesV2()
		name := w.register(t, w.machines[2], func(n *corev1.Node) { n.Labels["kubernetes.azure.com/managed"] = "false" })
		w.start(t, nodemanager.Member{Node: name, Source: nodemanager.FromAzure{Instances: instances}})
		node := w.node(t, name)
		want, _ := nodes.ProviderID(w.machines[2].ID)
		if isNew(node) || node.Spec.ProviderID != want || node.Labels["topology.kubernetes.io/region"] != "westeurope" {
			t.Errorf("%+v %v", node.Spec, node.Labels)
		}
		if got := texts(node.Status.Addresses); len(got) != 2 || got[1] != "Hostname "+name {
			t.Errorf("addresses %v", got)
		}
		w.writes()

		t.Log("the machine goes: the node is the cloud-controller-manager's to remove")
		if err := w.Client.Delete(t.Context(), w.machines[2].ID); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour)
		if got := w.writes(); len(got) > 0 || len(w.eventTexts()) > 0 {
			t.Errorf("wrote %v", got)
		}
	})
	in(t, 1, func(t *testing.T, w *cluster) {
		cloud := cloudprovider.New(cloudprovider.Config{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
			Location: testkit.Location}, w.Client)
		t.Cleanup(cloud.Close)
		instances, _ := cloud.InstancesV2()
		ghost := azure.Resource[compute.Instance]{Properties: compute.Instance{OSProfile: &compute.OSProfile{ComputerName: "nodes0-00000z"}}}
		name := w.register(t, ghost)
		w.start(t, nodemanager.Member{Node: name, Source: nodemanager.FromAzure{Instances: instances}})
		pass(time.Hour)
		if events := w.eventTexts(); !isNew(w.node(t, name)) || len(events) != 1 || !strings.Contains(events[0], "instance not found") {
			t.Errorf("events %q", events)
		}
	})
}

func TestMetrics(t *testing.T) {
	in(t, 1, func(t *testing.T, w *cluster) {
		registry := prometheus.NewRegistry()
		var err error
		if w.config.Metrics, err = nodemanager.NewMetrics(registry); err != nil {
			t.Fatal(err)
		}
		if _, err := nodemanager.NewMetrics(registry); err != nil {
			t.Errorf("a second time: %v", err)
		}
		w.services.set(func(string) (int, string) { return http.StatusNotFound, "" })
		w.register(t, w.machines[0])
		w.start(t, w.of(t, w.machines[0]))
		w.services.set(nil)
		pass(period + 2*time.Second)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				key := f.GetName()
				for _, l := range m.GetLabel() {
					key += " " + l.GetValue()
				}
				got[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
		want := map[string]float64{
			"kaz_node_manager_operations_total initialize failed":   1,
			"kaz_node_manager_operations_total initialize ok":       1,
			"kaz_node_manager_operations_total update_addresses ok": 1,
			"kaz_node_manager_describe_duration_seconds ok":         2,
			"kaz_node_manager_describe_duration_seconds not found":  1,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBadPeriod(t *testing.T) {
	w := nodemanager.Config{Period: 0}
	if _, err := nodemanager.New(w); err == nil || !strings.Contains(err.Error(), "node status update frequency 0s: must be more than 0") {
		t.Error(err)
	}
}
