package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/testkit"
)

// secrecy answers reads of one resource group as Azure does if the group may not be read, or does not exist.
type secrecy struct {
	status atomic.Int32 // 0 for none
	asked  atomic.Int32
}

func (x *secrecy) over(way http.RoundTripper) http.RoundTripper { return secretWay{x, way} }

type secretWay struct {
	secrecy *secrecy
	way     http.RoundTripper
}

var secrets = map[int32]string{
	http.StatusForbidden: `{"error":{"code":"AuthorizationFailed","message":"The client does not have authorization to perform action 'Microsoft.Network/publicIPAddresses/read'."}}`,
	http.StatusNotFound:  `{"error":{"code":"ResourceGroupNotFound","message":"Resource group 'far' could not be found."}}`,
}

func (w secretWay) RoundTrip(r *http.Request) (*http.Response, error) {
	status := w.secrecy.status.Load()
	if status == 0 || !strings.HasPrefix(strings.ToLower(r.URL.Path), strings.ToLower(string(far))+"/") {
		return w.way.RoundTrip(r)
	}
	w.secrecy.asked.Add(1)
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: int(status), Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(secrets[status])),
		ContentLength: int64(len(secrets[status])),
	}, nil
}

// forEachSecrecy plays with a group that may not be read and with one that is not there.
func forEachSecrecy(t *testing.T, play func(t *testing.T, w *serviceCluster, x *secrecy, status int32)) {
	for status := range secrets {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := &secrecy{}
				w := mixed(t, core.Options{Latency: 1})
				w.Client = w.ClientOver(x.over)
				play(t, w, x, status)
			})
		})
	}
}

// reportedOnce checks that a Service got one event about a problem, in these words.
func (w *serviceCluster) reportedOnce(name string, words ...string) {
	w.t.Helper()
	reported := slices.DeleteFunc(w.events.list(name), func(e string) bool { return !strings.HasPrefix(e, "SyncLoadBalancerFailed") })
	if len(reported) != 1 {
		w.t.Errorf("%s got %d times: %q", name, len(reported), reported)
		return
	}
	for _, want := range words {
		if !strings.Contains(reported[0], want) {
			w.t.Errorf("%s got %q, and not %q", name, reported[0], want)
		}
	}
}

// reportedFar checks that a Service got one event about the group that it names.
func (w *serviceCluster) reportedFar(name string) {
	w.t.Helper()
	w.reportedOnce(name, prefix+"load-balancer-resource-group", `"far"`, "allowed is")
}

// askedSeldom waits for hours, and checks that Azure is asked for what it hides, and not often.
func askedSeldom(t *testing.T, asked *atomic.Int32) {
	t.Helper()
	// A Service is tried again four times an hour, and compared twice. Its address, the load balancer and a read past
	// the cache each need the hidden resource.
	const hours, perHour, sooner = 4, (4 + 2) * 3, 4 * 3
	before := asked.Load()
	<-time.After(hours * time.Hour)
	if n := asked.Load() - before; n == 0 || n > hours*perHour+sooner {
		t.Errorf("asked %d times in %d hours", n, hours)
	}
}

// truth is what is in Azure, whatever may be read.
func (w *serviceCluster) truth() map[string]string {
	w.t.Helper()
	all := w.Snapshot()
	maps.Copy(all, testkit.Snapshot(w.t, w.OtherClient(), far))
	return all
}

// same checks that Azure is as it was.
func (w *serviceCluster) same(when string, before map[string]string) {
	w.t.Helper()
	if d := cmp.Diff(before, w.truth()); d != "" {
		w.t.Errorf("%s Azure is not as it was (-before +after):\n%s", when, d)
	}
}

// editRule changes the idle timeout of a rule with this end of its name.
func (w *serviceCluster) editRule(suffix string) {
	w.t.Helper()
	other := w.OtherClient()
	doc, err := other.Get(w.t.Context(), testkit.LoadBalancer)
	if err != nil {
		w.t.Fatal(err)
	}
	var lb map[string]any
	if err := json.Unmarshal(doc, &lb); err != nil {
		w.t.Fatal(err)
	}
	edited := 0
	for _, r := range lb["properties"].(map[string]any)["loadBalancingRules"].([]any) {
		if rule := r.(map[string]any); strings.HasSuffix(rule["name"].(string), suffix) {
			rule["properties"].(map[string]any)["idleTimeoutInMinutes"] = 30
			edited++
		}
	}
	text, err := json.Marshal(lb)
	if err == nil {
		_, err = other.Put(w.t.Context(), azure.Write{ID: testkit.LoadBalancer, Body: text})
	}
	if err != nil || edited != 1 {
		w.t.Fatalf("%d rules edited: %v", edited, err)
	}
}

// TestAGroupThatCannotBeReadIsItsServicesAlone checks a Service that asks for an address in a group that cannot be
// read. It gets a problem. Other Services of the commit are served, before and after a restart. The refused Service
// is deleted without a trace.
func TestAGroupThatCannotBeReadIsItsServicesAlone(t *testing.T) {
	forEachSecrecy(t, func(t *testing.T, w *serviceCluster, x *secrecy, status int32) {
		x.status.Store(status)
		before := w.Snapshot()
		c := config()
		c.LoadBalancer.PoolByIP = true // one write of a scale set in ten takes a minute, whatever is wrong
		c.RepairPeriod = 30 * time.Minute
		stop := w.start(c)
		bad := w.newService("bad", 80)
		elsewhere(bad)
		w.create(bad)
		names := w.createMany(4)
		began := time.Now()
		w.allServed(names)
		if took := time.Since(began); took > 90*time.Second {
			t.Errorf("its neighbours waited for %v", took)
		}
		w.settle()
		w.reportedFar("bad")
		askedSeldom(t, &x.asked)
		w.reportedFar("bad")

		stop()
		w.events.forget()
		w.Client = w.ClientOver(x.over)
		w.start(c)
		w.create(w.newService("late", 80))
		w.served("late")
		w.settle()
		w.reportedFar("bad")
		names = append(names, "late", "bad")
		for _, name := range names {
			w.remove(name)
		}
		w.allGone(names)
		w.restored(before, w.Snapshot)
	})
}

// A served Service that asks for an address in a group that cannot be read keeps what it has. It gets what it asks
// for when the group can be read.
func TestAGroupThatCannotBeReadLeavesTheLastGoodState(t *testing.T) {
	forEachSecrecy(t, func(t *testing.T, w *serviceCluster, x *secrecy, status int32) {
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.create(w.newService("api", 81))
		w.allServed([]string{"web", "api"})
		w.settle()
		before, address := w.Snapshot(), w.address("web")
		x.status.Store(status)
		w.change("web", elsewhere)
		w.settle()
		w.reportedFar("web")
		stop()
		w.Client = w.ClientOver(x.over)
		w.start(config())
		w.settle()
		if after := w.Snapshot(); !maps.Equal(before, after) || w.address("web") != address {
			t.Errorf("the last good state is not there any more: %s", w.address("web"))
		}
		x.status.Store(0)
		w.until("it has what it asks for", func() bool { return w.address("web") != address })
	})
}

// What is in a group that cannot be read any more stays as it is, whatever comes and goes beside it. It stays when
// everything is compared, and when its Service is deleted meanwhile.
func TestNothingGoesBecauseItCannotBeRead(t *testing.T) {
	forEachSecrecy(t, func(t *testing.T, w *serviceCluster, x *secrecy, status int32) {
		before := w.everything()
		c := config()
		c.RepairPeriod = 30 * time.Minute
		stop := w.start(c)
		web := w.newService("web", 80)
		elsewhere(web)
		w.create(web)
		w.create(w.newService("api", 81))
		w.allServed([]string{"web", "api"})
		w.settle()
		good, address := w.truth(), w.address("web")
		stop()
		x.status.Store(status)
		w.Client = w.ClientOver(x.over)
		w.start(c)
		w.create(w.newService("more", 82))
		w.served("more")
		w.remove("more")
		w.allGone([]string{"more"})
		w.editRule("-TCP-81")
		<-time.After(c.RepairPeriod + time.Minute)
		w.same("after repair", good)
		w.reportedFar("web")
		w.change("web", func(s *corev1.Service) { delete(s.Annotations, prefix+"load-balancer-resource-group") })
		w.settle()
		w.same("when it asks for another group", good)
		if w.address("web") != address {
			t.Errorf("the address is %q and was %q", w.address("web"), address)
		}
		w.remove("web")
		w.settle()
		w.same("when it is deleted", good)
		if w.gone("web") {
			t.Error("the Service is gone, and its address is there")
		}
		w.remove("api")
		w.allGone([]string{"api"})
		x.status.Store(0)
		w.allGone([]string{"web"})
		w.settle()
		w.restored(before, w.everything)
	})
}

// guarded is a service cluster with an Azure that checks what the controller's identity may do. The identity may do all that it
// needs, except read the subnet "apps".
func guarded(t *testing.T) (*serviceCluster, *identity) {
	t.Helper()
	w := newServiceCluster(t, core.Options{}, 2)
	err := testkit.Prepare(t.Context(), w.Client, testkit.Group, testkit.VNet, []string{"subnet apps"})
	var state bytes.Buffer
	if err == nil {
		err = w.Save(&state)
	}
	principal := &identity{t: t}
	if err == nil {
		w.Emulator, err = core.New(core.Options{Latency: 1, Providers: providers.All(), Authenticator: principal, AccessControl: true})
	}
	if err == nil {
		err = w.Load(&state)
	}
	if err != nil {
		t.Fatal(err)
	}
	principal.azure = &testkit.SignIn{Emulator: w.Emulator}
	principal.mayInGroup("Microsoft.Network/privateLinkServices/*")
	principal.may(testkit.VNet.Child("subnets", "nodes"), readSubnet)
	w.Client = w.ClientOver(principal.over)
	return w, principal
}

const (
	joinSubnet = "Microsoft.Network/virtualNetworks/subnets/join/action"
	readSubnet = "Microsoft.Network/virtualNetworks/subnets/read"
)

// identity is the controller's identity, and counts the requests that Azure denies.
type identity struct {
	t      *testing.T
	azure  *testkit.SignIn
	way    http.RoundTripper
	denied atomic.Int32
}

// Authenticate implements [core.Authenticator]: each caller is the controller.
func (i *identity) Authenticate(string) (*behaviour.Principal, error) {
	const id = "aaaaaaaa-0000-4000-8000-000000000001"
	return &behaviour.Principal{ObjectID: id, ApplicationID: id}, nil
}

// may gives the identity a role at a scope, in place of its earlier role there.
func (i *identity) may(scope azure.ID, actions ...string) {
	i.t.Helper()
	principal, err := i.Authenticate("")
	if err != nil {
		i.t.Fatal(err)
	}
	i.azure.Grant(i.t, principal.ObjectID, scope, actions...)
}

// mayInGroup allows these actions and all that the identity needs in the cluster's group, except for private link
// services.
func (i *identity) mayInGroup(actions ...string) {
	i.t.Helper()
	i.may(testkit.Group,
		append(actions, "Microsoft.Compute/*", "Microsoft.Network/loadBalancers/*", "Microsoft.Network/networkInterfaces/*",
			"Microsoft.Network/networkSecurityGroups/*",
			"Microsoft.Network/publicIPAddresses/*", "Microsoft.Network/virtualNetworks/read",
			"Microsoft.Network/virtualNetworks/joinLoadBalancer/action",
			joinSubnet, "Microsoft.Network/virtualNetworks/subnets/write")...)
}

// mayRead sets whether the identity may read the subnet "apps".
func (i *identity) mayRead(yes bool) {
	i.t.Helper()
	actions := []string{joinSubnet}
	if yes {
		actions = append(actions, readSubnet)
	}
	i.may(testkit.VNet.Child("subnets", "apps"), actions...)
}

func (i *identity) over(way http.RoundTripper) http.RoundTripper {
	i.way = way
	return i
}

func (i *identity) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer token")
	resp, err := i.way.RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusForbidden {
		i.denied.Add(1)
	}
	return resp, err
}

// namesApps are the annotations by which Services name the subnet "apps".
var namesApps = map[string]func(*corev1.Service){
	"load-balancer-internal-subnet": annotated("load-balancer-internal", "true", "load-balancer-internal-subnet", "apps"),
	"pls-ip-configuration-subnet": annotated("load-balancer-internal", "true", "pls-create", "true",
		"pls-ip-configuration-subnet", "apps"),
}

// forEachName plays with a Service that names the subnet, "web", by each annotation.
func forEachName(t *testing.T, play func(t *testing.T, w *serviceCluster, principal *identity, web *corev1.Service, reported func())) {
	for annotation, names := range namesApps {
		t.Run(annotation, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, principal := guarded(t)
				web := w.newService("web", 80)
				names(web)
				play(t, w, principal, web, func() {
					t.Helper()
					w.reportedOnce("web", prefix+annotation, `"apps"`, "may not be read", "allowed is the name of a subnet", "to do: ",
						readSubnet)
				})
			})
		})
	}
}

// TestASubnetThatMayNotBeReadIsItsServicesAlone checks a Service that names a subnet that may not be read. It gets a
// problem, in kaz explain, too. Other Services of the commit are served. The refused Service is served when the
// subnet may be read.
func TestASubnetThatMayNotBeReadIsItsServicesAlone(t *testing.T) {
	forEachName(t, func(t *testing.T, w *serviceCluster, principal *identity, web *corev1.Service, reported func()) {
		before := w.Snapshot()
		c := config()
		c.RepairPeriod = 30 * time.Minute
		stop := w.start(c)
		w.create(w.newService("sound", 82))
		w.inside("inmost", 83)
		w.allServed([]string{"sound", "inmost"})
		w.settle() // the pools are filled: a scale set's write can take minutes
		stop()
		w.create(web)
		w.inside("inner", 81)
		names := append(w.createMany(3), "inner")
		for _, s := range w.explainAll().Services {
			want := explain.Pending
			switch s.Service {
			case "default/web":
				want = explain.Refused
			case "default/sound", "default/inmost":
				want = explain.Settled
			}
			if s.State != want || (want == explain.Refused) != (len(s.Problems) == 1) {
				t.Errorf("explained: %s is %v, %v", s.Service, s.State, s.Problems)
			}
		}
		w.start(c)
		began := time.Now()
		w.allServed(names)
		if took := time.Since(began); took > 90*time.Second {
			t.Errorf("its neighbours waited for %v", took)
		}
		w.settle()
		reported()
		askedSeldom(t, &principal.denied)
		reported()
		principal.mayRead(true)
		w.served("web")
		names = append(names, "web", "sound", "inmost")
		for _, name := range names {
			w.remove(name)
		}
		w.allGone(names)
		w.restored(opened(before), func() map[string]string { return opened(w.Snapshot()) })
	})
}

// TestConnectionsThatMayNotBeRead checks that a private link service goes when its connections have ended. If the
// controller may not read the connections, the private link service stays with its Service, and the Service gets a
// problem. Other Services come and go. Both go when the controller may read the connections.
func TestConnectionsThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const links, connections = "Microsoft.Network/privateLinkServices",
			"Microsoft.Network/privateLinkServices/privateEndpointConnections"
		w, principal := guarded(t)
		before := w.Snapshot()
		w.start(config())
		principal.mayInGroup(links+"/read", links+"/write", links+"/delete")
		w.inside("web", 80, "pls-create", "true")
		w.served("web")
		link, endpoint := w.linkOf("web"), testkit.Group.Resource(privateEndpoints, "theirs")
		err := w.Do(func(azure behaviour.World) error {
			return azure.Apply(behaviour.Itself(), endpoint, object{"location": testkit.Location, "properties": object{
				"subnet": ref(testkit.VNet.Child("subnets", "nodes")),
				"privateLinkServiceConnections": []any{object{"name": "link",
					"properties": object{"privateLinkServiceId": string(link.ID)}}},
			}})
		})
		if err != nil {
			t.Fatal(err)
		}
		w.touched("web") // and read again
		w.remove("web")
		w.settle()
		w.reportedOnce("web", link.ID.Name(), "may not be read", "to do: ", connections+"/read")
		w.create(w.newService("api", 81))
		w.served("api")
		w.remove("api")
		w.allGone([]string{"api"})
		askedSeldom(t, &principal.denied)
		w.reportedOnce("web", connections+"/read")
		if w.gone("web") || len(w.links()) != 1 {
			t.Error("the Service is gone, or its private link service is")
		}
		principal.mayInGroup(links + "/*")
		w.allGone([]string{"web"})
		if err := w.Do(func(azure behaviour.World) error { azure.Delete(endpoint); return nil }); err != nil {
			t.Fatal(err)
		}
		w.restored(opened(before), func() map[string]string { return opened(w.Snapshot()) })
	})
}

// What a Service has in a subnet that may not be read any more stays, whatever comes and goes beside it. It stays
// when everything is compared, and goes with the Service.
func TestASubnetThatMayNotBeReadAnyMore(t *testing.T) {
	forEachName(t, func(t *testing.T, w *serviceCluster, principal *identity, web *corev1.Service, reported func()) {
		before := w.Snapshot()
		c := config()
		c.RepairPeriod = 30 * time.Minute
		principal.mayRead(true)
		stop := w.start(c)
		w.create(web)
		w.create(w.newService("api", 81))
		w.allServed([]string{"web", "api"})
		w.settle()
		good, address := w.Snapshot(), w.address("web")
		stop()
		principal.mayRead(false)
		w.Client = w.ClientOver(principal.over)
		w.start(c)
		w.create(w.newService("more", 82))
		w.served("more")
		w.remove("more")
		w.allGone([]string{"more"})
		<-time.After(c.RepairPeriod + time.Minute)
		reported()
		w.restored(good, w.Snapshot)
		if w.address("web") != address {
			t.Errorf("the address is %q and was %q", w.address("web"), address)
		}
		w.remove("web")
		w.allGone([]string{"web"})
		w.remove("api")
		w.allGone([]string{"api"})
		w.restored(opened(before), func() map[string]string { return opened(w.Snapshot()) })
	})
}
