package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kubetesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
)

// TestIngress has the scenarios of Ingresses that come, change and go.
func TestIngress(t *testing.T) {
	scenario(t, "I1 an Ingress is served", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10", "10.240.0.11"), class(), web("web", "a.example.com", "web", 1))...)
		w.Forget()
		w.start()
		defer w.stop()
		want(t, "writes", strings.Join(w.Writes(), ", "), "PUT gate")
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "backends", w.backends(), "10.240.0.10 10.240.0.11 10.9.9.9")
		want(t, "status", w.status("web"), w.address)
	})
	scenario(t, "I2 a cluster without Ingresses writes nothing but the tag of its prefix", func(t *testing.T) {
		w := newCluster(t, core.Options{}, class())
		w.start()
		defer w.stop()
		w.pass(time.Hour)
		want(t, "hosts", w.hosts(), "")
		want(t, "listeners", len(w.gate().Properties.Listeners), 1)
	})
	scenario(t, "the status is written after the write has ended", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.Azure = w.Restarted(core.Options{Latency: 1})
		w.config.Azure = w.Client
		w.start()
		defer w.stop()
		want(t, "status during the write", w.status("web"), "")
		for w.status("web") == "" && len(w.Writes()) < 2 {
			w.pass(time.Second)
		}
		want(t, "status", w.status("web"), w.address)
		want(t, "hosts", w.hosts(), "a.example.com")
	})
	scenario(t, "I32 and an hour without changes", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.start()
		w.stop()
		w.Forget()
		w.start() // a new process
		defer w.stop()
		w.pass(time.Hour)
		want(t, "writes", len(w.Writes()), 0)
		if n := len(w.Reads()); n > 60 {
			t.Errorf("%d reads in an hour", n)
		}
	})
	scenario(t, "100 changes at once", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(50), class())...)
		w.Azure = w.Restarted(core.Options{Latency: 1})
		w.config.Azure = w.Client
		w.start()
		defer w.stop()
		w.pass(10 * time.Minute)
		want(t, "listeners", len(w.gate().Properties.Listeners), 51)
		w.Forget()
		for n := range 50 {
			update(w, endpoints(fmt.Sprintf("web%d", n), fmt.Sprintf("10.240.2.%d", n)))
			i := web(fmt.Sprintf("web%d", n), fmt.Sprintf("b%d.example.com", n), fmt.Sprintf("web%d", n), n)
			update(w, i)
		}
		w.pass(10 * time.Minute)
		if n := w.WritesBy("PUT"); n > 2 {
			t.Errorf("%d writes for 100 changes", n)
		}
		if !strings.HasPrefix(w.hosts(), "b0.example.com") || !strings.Contains(w.backends(), "10.240.2.49") {
			t.Errorf("hosts %s, backends %s", w.hosts(), w.backends())
		}
	})
	scenario(t, "one endpoint of 100 Ingresses changes", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(90), class())...)
		w.start()
		defer w.stop()
		w.Forget()
		update(w, endpoints("web7", "10.240.2.7"))
		w.pass(5 * time.Second)
		want(t, "writes", w.WritesBy("PUT"), 1)
		if n := len(w.Reads()); n > 2 { // one to plan; the ARM client may read the gateway in place of a poll of its operation
			t.Errorf("reads %v", w.Reads())
		}
	})
	scenario(t, "I17 a pod that is not ready or terminating is no backend", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10", "10.240.0.11", "10.240.0.12"), class(),
			web("web", "a.example.com", "web", 1))...)
		w.start()
		defer w.stop()
		e := endpoints("web", "10.240.0.10", "10.240.0.11", "10.240.0.12")
		e.Endpoints[0].Conditions.Ready = new(false)
		e.Endpoints[1].Conditions.Terminating = new(true)
		update(w, e)
		w.pass(5 * time.Second)
		want(t, "backends", w.backends(), "10.240.0.12 10.9.9.9")
	})
	scenario(t, "I42 an Ingress leaves the class", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.start()
		defer w.stop()
		i := web("web", "a.example.com", "web", 1)
		i.Status.LoadBalancer.Ingress = []networking.IngressLoadBalancerIngress{{IP: w.address}}
		i.Spec.IngressClassName = new("nginx")
		update(w, i)
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "")
		want(t, "status", w.status("web"), "")
	})
	scenario(t, "I61 the winner of a conflict goes", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(append(service("one", "10.240.0.1"), service("two", "10.240.0.2")...), class(),
			web("older", "a.example.com", "one", 1), web("newer", "a.example.com", "two", 2))...)
		w.start()
		defer w.stop()
		want(t, "backends", w.backends(), "10.240.0.1 10.9.9.9")
		want(t, "events of the newer one", w.events.with("default/newer Conflict: "), 1)
		w.Forget()
		remove(w, "older")
		w.pass(5 * time.Second)
		want(t, "backends", w.backends(), "10.240.0.2 10.9.9.9")
		want(t, "writes", w.WritesBy("PUT"), 1)
	})
	scenario(t, "I63 all Ingresses are deleted", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(40), class())...)
		w.start()
		defer w.stop()
		w.Forget()
		for n := range 40 {
			remove(w, fmt.Sprintf("web%d", n))
		}
		w.pass(5 * time.Second)
		want(t, "hosts", w.hosts(), "")
		want(t, "writes", w.WritesBy("PUT"), 1)
	})
}

// many returns Ingresses with a host and a Service each.
func many(n int) (all []runtime.Object) {
	for i := range n {
		name := fmt.Sprintf("web%d", i)
		all = append(append(all, service(name, fmt.Sprintf("10.240.1.%d", i))...), web(name, fmt.Sprintf("a%d.example.com", i), name, i))
	}
	return all
}

// update writes an object in place of the one with the same name.
func update(w *cluster, o runtime.Object) {
	w.t.Helper()
	resource := map[string]string{"*v1.Ingress": "ingresses", "*v1.EndpointSlice": "endpointslices", "*v1.Secret": "secrets"}[fmt.Sprintf("%T", o)]
	gv := networking.SchemeGroupVersion
	switch resource {
	case "endpointslices":
		gv.Group = "discovery.k8s.io"
	case "secrets":
		gv.Group = ""
	}
	if err := w.kube.Tracker().Update(gv.WithResource(resource), o, "default"); err != nil {
		w.t.Fatal(err)
	}
}

// losing returns a function that ends all watches of Ingresses, after which lists of them are empty: that of an API server that has lost
// its data.
func (w *cluster) losing() (lose func()) {
	var mu sync.Mutex
	var open []watch.Interface
	lost := false
	w.kube.PrependWatchReactor("ingresses", func(a kubetesting.Action) (bool, watch.Interface, error) {
		one, err := w.kube.Tracker().Watch(a.GetResource(), a.GetNamespace())
		mu.Lock()
		defer mu.Unlock()
		open = append(open, one)
		return true, one, err
	})
	w.kube.PrependReactor("list", "ingresses", func(kubetesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		return lost, &networking.IngressList{}, nil
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		lost = true
		for _, one := range open {
			gone := apierrors.NewResourceExpired("compacted").Status()
			one.(*watch.RaceFreeFakeWatcher).Error(&gone)
		}
	}
}

func create(w *cluster, i *networking.Ingress) {
	w.t.Helper()
	if _, err := w.kube.NetworkingV1().Ingresses("default").Create(w.t.Context(), i, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func remove(w *cluster, name string) {
	w.t.Helper()
	if err := w.kube.NetworkingV1().Ingresses("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// TestShared has the scenarios of a gateway that others write, too.
func TestShared(t *testing.T) {
	scenario(t, "I27 foreign children survive byte for byte", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		before := map[string]string{}
		lists := []string{"httpListeners", "backendAddressPools", "backendHttpSettingsCollection", "frontendPorts"}
		for _, list := range lists {
			before[list] = w.raw(list, "other")
		}
		w.start()
		defer w.stop()
		for n := range 20 {
			update(w, endpoints("web", fmt.Sprintf("10.240.3.%d", n)))
			w.pass(3 * time.Second)
		}
		want(t, "writes", w.WritesBy("PUT") >= 20, true)
		for _, list := range lists {
			if now := withoutEtag(w.raw(list, "other")); now != withoutEtag(before[list]) {
				t.Errorf("%s has changed:\n%s\nwas\n%s", list, now, before[list])
			}
		}
		want(t, "tag", w.gate().Tags["team"], "web")
	})
	scenario(t, "I26 another writer comes between", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.config.Azure = &between{Azure: w.config.Azure.(fullAzure), act: func() { w.editByPerson("10.9.9.10") }}
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		want(t, "backends", w.backends(), "10.240.0.10 10.9.9.10")
	})
	scenario(t, "I31 a stopped gateway is not started", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		_, err := azure.Do(t.Context(), w.OtherClient(), azure.Request{Verb: azure.Post, ID: gatewayID, Action: "stop"})
		if err != nil {
			t.Fatal(err)
		}
		w.Forget()
		w.start()
		defer w.stop()
		w.pass(10 * time.Minute)
		want(t, "writes", len(w.Writes()), 0)
		if _, err := azure.Do(t.Context(), w.OtherClient(), azure.Request{Verb: azure.Post, ID: gatewayID, Action: "start"}); err != nil {
			t.Fatal(err)
		}
		w.pass(5 * time.Minute)
		want(t, "hosts", w.hosts(), "a.example.com")
		want(t, "status", w.status("web"), w.address)
	})
	scenario(t, "I35 an empty list of Ingresses empties no gateway", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.start()
		w.stop()
		kept := w.kube
		w.kube = newKube(class())
		w.config.Kube = w.kube
		w.Forget()
		w.start()
		defer w.stop()
		w.pass(20 * time.Second)
		want(t, "writes while the list is new", len(w.Writes()), 0)
		want(t, "hosts", w.hosts(), "a.example.com")
		w.pass(2 * time.Minute) // a second list is empty, too
		want(t, "hosts", w.hosts(), "")
		_ = kept
	})
	for _, again := range []bool{false, true} {
		scenario(t, fmt.Sprintf("I35 a watch loses all Ingresses, made again: %t", again), func(t *testing.T) {
			w := newCluster(t, core.Options{}, append(many(3), class())...)
			lose := w.losing()
			w.start()
			defer w.stop()
			if again {
				for n := range 3 {
					name := fmt.Sprintf("web%d", n)
					remove(w, name)
					create(w, web(name, fmt.Sprintf("a%d.example.com", n), name, n))
				}
				w.pass(time.Minute)
			}
			before := w.hosts()
			want(t, "hosts at first", before, "a0.example.com a1.example.com a2.example.com")
			lose()
			w.pass(20 * time.Second)
			want(t, "hosts while the list is new", w.hosts(), before)
			w.pass(2 * time.Minute) // a second list is empty, too
			want(t, "hosts at last", w.hosts(), "")
		})
	}
	scenario(t, "another cluster has the prefix", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.start()
		w.stop()
		w.Forget()
		w.config.Identity = "another-cluster"
		w.start()
		defer w.stop()
		w.pass(10 * time.Minute)
		want(t, "writes", len(w.Writes()), 0)
	})
	scenario(t, "I60 others refer to a pool of the cluster", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), web("web", "a.example.com", "web", 1))...)
		w.start()
		defer w.stop()
		pool := ""
		for _, p := range w.gate().Properties.Pools {
			if strings.HasPrefix(p.Name, "k8s-") {
				pool = p.Name
			}
		}
		w.edit(func(g object) {
			rule := childrenOf(g, "requestRoutingRules")[0].(object)["properties"].(object)
			rule["backendAddressPool"] = object{"id": string(gatewayID) + "/backendAddressPools/" + pool}
		})
		remove(w, "web")
		w.pass(time.Minute)
		want(t, "hosts", w.hosts(), "")
		want(t, "pool", w.raw("backendAddressPools", pool) != "", true)
	})
}

// TestRefusals has the scenarios of what Azure refuses.
func TestRefusals(t *testing.T) {
	refuse := func(w *cluster, target string, when func(body string) bool) {
		w.config.Azure = &refusing{fullAzure: w.config.Azure.(fullAzure), target: target, when: when}
	}
	scenario(t, "I24 Azure names a child", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(20), class())...)
		name := ""
		refuse(w, "name", func(body string) bool { return strings.Contains(body, "a7.example.com") })
		_ = name
		w.start()
		defer w.stop()
		w.pass(10 * time.Second)
		want(t, "listeners", len(w.gate().Properties.Listeners), 20)
		want(t, "events", w.events.with("default/web7 FailedApplyingAppGwConfig: "), 1)
		want(t, "other events", w.events.with("FailedApplyingAppGwConfig: "), 1)
		want(t, "writes", w.config.Azure.(*refusing).tried.Load(), 2)
		want(t, "status of another", w.status("web8"), w.address)
		want(t, "status", w.status("web7"), "")
	})
	scenario(t, "I25 Azure names nothing", func(t *testing.T) {
		w := newCluster(t, core.Options{}, append(many(64), class())...)
		refuse(w, "", func(body string) bool { return strings.Contains(body, "a7.example.com") })
		w.start()
		defer w.stop()
		w.pass(10 * time.Second)
		want(t, "listeners", len(w.gate().Properties.Listeners), 64)
		want(t, "events", w.events.with("default/web7 FailedApplyingAppGwConfig: "), 1)
		want(t, "other events", w.events.with("FailedApplyingAppGwConfig: "), 1)
		if n := w.config.Azure.(*refusing).tried.Load(); n > 8 {
			t.Errorf("%d writes until the culprit was found, want at most 8", n)
		}
	})
}

// fullAzure is Azure as a controller needs it.
type fullAzure interface {
	azure.Reader
	azure.Writer
	Fresh() azure.Reader
}

// between is Azure that another writer changes before the first write.
type between struct {
	Azure fullAzure
	act   func()
}

func (b *between) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return b.Azure.Get(ctx, id)
}

func (b *between) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return b.Azure.List(ctx, q)
}

func (b *between) Fresh() azure.Reader { return b.Azure.Fresh() }

func (b *between) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if b.act != nil {
		b.act()
		b.act = nil
	}
	return b.Azure.Begin(ctx, r)
}

// refusing is Azure that refuses some documents. With the target "name", it names the listener of a7.example.com.
type refusing struct {
	fullAzure
	target string
	when   func(body string) bool
	tried  atomic.Int64
}

func (f *refusing) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if r.Verb != azure.Put || !r.ID.Is(network.ApplicationGateways) {
		return f.fullAzure.Begin(ctx, r)
	}
	f.tried.Add(1)
	if !f.when(string(r.Body)) {
		return f.fullAzure.Begin(ctx, r)
	}
	refusal := &azure.Error{Kind: azure.Invalid, Op: "PUT", ID: r.ID, Status: 400, Code: "ApplicationGatewayInvalid", Message: "Something is wrong."}
	if f.target != "" {
		g, err := azure.Decode[network.ApplicationGateway](r.Body)
		if err != nil {
			return nil, err
		}
		for _, l := range g.Properties.Listeners {
			if strings.Join(l.Properties.HostNames, "") == "a7.example.com" {
				refusal.Message = "Listener " + string(gatewayID) + "/httpListeners/" + l.Name + " is wrong."
			}
		}
	}
	return nil, refusal
}
