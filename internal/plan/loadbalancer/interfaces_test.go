package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// addAlone makes a machine alone with these network interfaces, the first of which is the primary
// one, each "group/name", and returns its Node.
func (w *subscription) addAlone(name, address string, interfaces ...string) *v1.Node {
	vm := compute + "virtualMachines/" + name
	var refs []string
	for i, nic := range interfaces {
		group, nic, _ := strings.Cut(nic, "/")
		id := azure.ID(strings.Replace(network, "/rg/", "/"+group+"/", 1) + "networkInterfaces/" + nic)
		refs = append(refs, fmt.Sprintf(`{"id":%q,"properties":{"primary":%v}}`, id, i == 0))
		w.put(id, parse(fmt.Sprintf(`{"location":"westeurope","properties":{"primary":%v,"virtualMachine":{"id":%q},
			"ipConfigurations":[{"name":"ipconfig","properties":{"primary":true,"privateIPAddressVersion":"IPv4","privateIPAddress":%q}}]}}`, i == 0, vm, fmt.Sprint(address, i))))
	}
	w.put(azure.ID(vm),
		parse(`{"location":"westeurope","properties":{"networkProfile":{"networkInterfaces":[`+strings.Join(refs, ",")+`]}}}`))
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.NodeSpec{ProviderID: "azure://" + vm},
		Status: v1.NodeStatus{Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: address + "0"}}},
	}
}

// interfacesInPools are the network interfaces that are in a pool, as "group/name".
func (w *subscription) interfacesInPools() map[string]bool {
	in := map[string]bool{}
	for k := range w.docs {
		if id := azure.ID(k); id.Is("Microsoft.Network/networkInterfaces") && strings.Contains(w.lower(k), "/backendaddresspools/") {
			in[id.Group()+"/"+id.Name()] = true
		}
	}
	return in
}

// TestThePrimaryInterfaceIsInAnotherGroup checks that the primary network interface of a machine joins the pool, wherever
// it is, and no other interface does.
func TestThePrimaryInterfaceIsInAnotherGroup(t *testing.T) {
	w := newSubscription(0)
	in := loadbalancer.Input{Config: config(), Complete: true, Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
	in.Nodes = []*v1.Node{w.addAlone("m0", "10.0.7.1", "far/first", "rg/second"), w.addAlone("m1", "10.0.7.2", "rg/first", "far/second")}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if got, want := w.interfacesInPools(), map[string]bool{"far/first": true, "rg/first": true}; !maps.Equal(got, want) {
		t.Errorf("in the pool are %v, want %v", got, want)
	}
}

// TestThePrimaryInterfaceMayNotBeRead checks that no other interface joins the pool instead of a machine's primary
// network interface that may not be read.
func TestThePrimaryInterfaceMayNotBeRead(t *testing.T) {
	w := newSubscription(0)
	in := loadbalancer.Input{Config: config(), Complete: true, Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
	in.Nodes = []*v1.Node{w.addAlone("m0", "10.0.7.1", "far/first", "rg/second"), w.addAlone("m1", "10.0.7.2", "rg/first", "far/second")}
	var reported []plan.Problem
	for range 3 {
		in.Have = gather(in, w.snapshot().Without(farCard("first")).Without(farCard("second"))).WithUnread(azure.ID(farGroup),
			"Microsoft.Network/networkInterfaces", azure.Denied)
		r, err := decided(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.apply(r.plan); err != nil {
			t.Fatal(err)
		}
		reported = r.problems
	}
	if got, want := w.interfacesInPools(), map[string]bool{"rg/first": true}; !maps.Equal(got, want) {
		t.Errorf("in the pool are %v, want %v", got, want)
	}
	if len(reported) != 1 || reported[0].Object != "m0" || !strings.Contains(reported[0].Message, "may not be read") {
		t.Errorf("got %v", reported)
	}
}

func farCard(name string) azure.ID {
	return azure.ID(farGroup).Resource("Microsoft.Network/networkInterfaces", name)
}

// TestAnInterfaceThatMayNotBeReadAnyMore checks that a member stays in the pool when its network interface may not be
// read any more. It gets packets as before, and other members may leave.
func TestAnInterfaceThatMayNotBeReadAnyMore(t *testing.T) {
	w := newSubscription(0)
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{key.DisableFloatingIP.Name: "true"}
	in := loadbalancer.Input{Config: config(), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	in.Nodes = []*v1.Node{w.addAlone("m0", "10.0.7.1", "far/first"), w.addAlone("m1", "10.0.7.2", "rg/first")}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	ruled := ruledTo(w, "Allow")
	if len(ruled) != 2 {
		t.Fatalf("packets are allowed to %v", ruled)
	}
	unread := func() plan.Plan {
		t.Helper()
		in.Have = gather(in, w.snapshot().Without(farCard("first"))).WithUnread(farGroup, "Microsoft.Network/networkInterfaces",
			azure.Denied)
		r, err := decided(in)
		if err != nil {
			t.Fatal(err)
		}
		return r.plan
	}
	if p := unread(); !p.Empty() {
		t.Errorf("it may not be read: %v", p)
	}
	in.Nodes[1].Labels = map[string]string{v1.LabelNodeExcludeBalancers: ""}
	if err := w.apply(unread()); err != nil {
		t.Fatal(err)
	}
	if err := w.apply(unread()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.interfacesInPools(), map[string]bool{"far/first": true}; !maps.Equal(got, want) {
		t.Errorf("excluded is m1: in the pool are %v, want %v", got, want)
	}
	if got := ruledTo(w, "Allow"); !slices.Equal(got, []string{"10.0.7.10:30080"}) {
		t.Errorf("excluded is m1: packets are allowed to %v", got)
	}
}
