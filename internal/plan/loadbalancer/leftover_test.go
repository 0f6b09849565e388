package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
)

// left is what there is of Services that are not among all, as "key uid".
func left(t *testing.T, w *subscription, all ...*v1.Service) []string {
	t.Helper()
	services, err := leftover.Find(config(), w.snapshot(), all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range services {
		names = append(names, s.Key()+" "+string(s.UID))
	}
	return names
}

func TestLeftovers(t *testing.T) {
	web, inner, guest := service("web", tcp(80, 30080)), service("inner", tcp(80, 30081)), service("guest", tcp(81, 30082))
	inner.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
	guest.Annotations = map[string]string{"service.beta.kubernetes.io/azure-pip-name": "kubernetes-" + base(web)}
	successor := web.DeepCopy()
	successor.UID = "99999999-1111-2222-3333-444455556666"
	other := func(w *subscription) {
		ip := w.docs[strings.ToLower(network+"publicIPAddresses/kubernetes-"+base(web))]
		ip["tags"].(object)["k8s-azure-cluster-name"] = "another"
	}
	nobodys := func(w *subscription) {
		delete(w.docs, azure.ID(lbID).Key())
		ip := w.docs[strings.ToLower(network+"publicIPAddresses/kubernetes-"+base(web))]
		delete(ip["tags"].(object), "k8s-azure-cluster-name")
	}
	uid := func(s *v1.Service) string { return strings.TrimPrefix(base(s), "a") }
	for name, c := range map[string]struct {
		has, there []*v1.Service
		change     func(*subscription)
		want       []string
	}{
		"all are there": {has: []*v1.Service{web, inner}, there: []*v1.Service{web, inner},
			want: []string{"(deleted)/security-rules "}},
		"one is not": {has: []*v1.Service{web, inner}, there: []*v1.Service{inner},
			want: []string{"default/web " + uid(web)}},
		"one without a public IP": {has: []*v1.Service{web, inner}, there: []*v1.Service{web},
			want: []string{"(deleted)/" + base(inner) + " " + uid(inner)}},
		"another has its name":      {has: []*v1.Service{web}, there: []*v1.Service{successor}, want: []string{"default/web " + uid(web)}},
		"it is another cluster's":   {has: []*v1.Service{web}, change: other, want: []string{"(deleted)/security-rules "}},
		"no cluster is named":       {has: []*v1.Service{web}, change: nobodys, want: []string{"(deleted)/security-rules "}},
		"nothing was there":         {},
		"there is no security rule": {has: []*v1.Service{inner}, there: []*v1.Service{inner}},
		"a guest": {has: []*v1.Service{web, guest}, there: []*v1.Service{web}, want: []string{
			"(deleted)/" + base(guest) + " " + uid(guest), "default/guest "}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
			for _, s := range c.has {
				in.Services = append(in.Services, loadbalancer.Service{Service: s})
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
			}
			if c.change != nil {
				c.change(w)
			}
			got := left(t, w, c.there...)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("leftovers (-want +got):\n%s", d)
			}
		})
	}
}

// TestLeftoversAreTakenAway checks that leftovers of Services that are gone are removed as if the Services had been
// deleted. Nothing else is removed.
func TestLeftoversAreTakenAway(t *testing.T) {
	web, inner, stays := service("web", tcp(80, 30080)), service("inner", tcp(80, 30081)), service("stays", udp(53, 30053))
	inner.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
	w := newSubscription(2)
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: stays}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	want := ids(w)
	in.Services = []loadbalancer.Service{{Service: web}, {Service: inner}, {Service: stays}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	found, err := leftover.Find(config(), w.snapshot(), []*v1.Service{stays})
	if err != nil {
		t.Fatal(err)
	}
	in.Services, in.Others = found, []*v1.Service{stays}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, ids(w)); d != "" {
		t.Errorf("Azure (-before +after):\n%s", d)
	}
	if rest := left(t, w, stays); len(rest) > 1 {
		t.Errorf("still left: %v", rest)
	}
	in.Services, in.Others = []loadbalancer.Service{{Service: stays}}, nil
	if rounds, err := w.commit(in); err != nil || writes(rounds) > 0 {
		t.Errorf("the Service that stays was touched: %v %v", err, rounds)
	}
}

// TestWhatServesOtherServicesIsNoLeftover checks a frontend that is named after a deleted Service. It is no leftover as
// long as it serves other Services. Its public IP and the private link service at it are theirs.
func TestWhatServesOtherServicesIsNoLeftover(t *testing.T) {
	linked := map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true",
		"service.beta.kubernetes.io/azure-pls-create": "true"}
	for name, c := range map[string]struct {
		first  map[string]string          // annotations of the Service that goes
		second func(s, first *v1.Service) // how the one that stays comes to its frontend
	}{
		"a public IP by its name": {
			second: func(s, first *v1.Service) {
				s.Annotations = map[string]string{"service.beta.kubernetes.io/azure-pip-name": "kubernetes-" + base(first)}
			},
		},
		"a public IP by its address": {
			second: func(s, _ *v1.Service) { s.Spec.LoadBalancerIP = "20.1.0.2" },
		},
		"a private link service": {
			first: linked,
			second: func(s, _ *v1.Service) {
				s.Annotations, s.Spec.LoadBalancerIP = linked, "10.0.9.1"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := service("first", tcp(80, 30080)), service("second", tcp(81, 30081))
			first.Annotations = c.first
			c.second(second, first)
			w := newSubscription(2)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
			for _, services := range [][]loadbalancer.Service{{{Service: first}}, {{Service: first}, {Service: second}},
				{{Service: first, Gone: true}, {Service: second}}} {
				in.Services = services
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
			}
			before := w.clone()
			found, err := leftover.Find(config(), w.snapshot(), []*v1.Service{second})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range found {
				if s.UID != "" {
					t.Errorf("left of %s %s", s.Key(), s.UID)
				}
			}
			in.Services, in.Others = found, []*v1.Service{second}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before.docs, w.docs); d != "" {
				t.Errorf("Azure (-before +after):\n%s", d)
			}
			in.Services, in.Others = []loadbalancer.Service{{Service: second}}, nil
			if rounds, err := w.commit(in); err != nil || writes(rounds) > 0 {
				t.Errorf("the Service that stays was touched %d times: %v", writes(rounds), err)
			}
			if got := left(t, w); !strings.Contains(strings.Join(got, " "), strings.TrimPrefix(base(first), "a")) {
				t.Errorf("nothing is left of the first when the second is gone, too: %v", got)
			}
		})
	}
}

// TestANewServiceWithLeftoversLeavesAGuestInTheTag checks a Service that comes to the public IP of a guest during the
// search for leftovers. It does not replace the guest in the tag.
func TestANewServiceWithLeftoversLeavesAGuestInTheTag(t *testing.T) {
	a, b, c := service("a", tcp(80, 30080)), service("b", tcp(81, 30081)), service("c", tcp(80, 30082))
	ip := "kubernetes-" + base(a)
	for _, guest := range []*v1.Service{b, c} {
		guest.Annotations = map[string]string{"service.beta.kubernetes.io/azure-pip-name": ip}
	}
	w := newSubscription(2)
	tag := func() any {
		return w.docs[strings.ToLower(network+"publicIPAddresses/"+ip)]["tags"].(object)["k8s-azure-service"]
	}
	for _, step := range []struct {
		services []loadbalancer.Service
		others   []*v1.Service
		want     string
	}{
		{services: []loadbalancer.Service{{Service: a}}, want: "default/a"},
		{services: []loadbalancer.Service{{Service: b}}, others: []*v1.Service{a}, want: "default/a,default/b"},
		{services: []loadbalancer.Service{{Service: a, Gone: true}}, others: []*v1.Service{b, c}, want: "default/b"},
		{services: []loadbalancer.Service{{Service: c}}, others: []*v1.Service{b}, want: "default/b,default/c"},
		{services: []loadbalancer.Service{{Service: c, Gone: true}}, others: []*v1.Service{b}, want: "default/b"},
	} {
		all := step.others
		for _, s := range step.services {
			all = append(all, s.Service)
		}
		found, err := leftover.Find(config(), w.snapshot(), all)
		if err != nil {
			t.Fatal(err)
		}
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: append(step.services, found...),
			Others: step.others}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		if got := tag(); got != step.want {
			t.Errorf("the tag is %v, want %s", got, step.want)
		}
	}
	rounds, err := w.commit(loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: b}}})
	if err != nil || writes(rounds) > 0 {
		t.Errorf("the guest that stays was touched %d times: %v", writes(rounds), err)
	}
}

// TestALeftoverWithoutUIDTakesNothingOfOtherServices checks that a leftover that only a tag shows has no names in Azure.
// Foreign parts of a load balancer stay, whatever their names are.
func TestALeftoverWithoutUIDTakesNothingOfOtherServices(t *testing.T) {
	for _, name := range []string{"a", "a-mine"} {
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
		web := service("web", tcp(80, 30080))
		w := linkedSubscription(t, in, web)
		ip := azure.ID(network + "publicIPAddresses/mine")
		w.put(ip, parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","ipAddress":"1.2.3.4"}}`))
		lb := w.docs[azure.ID(lbID).Key()]
		properties := sub(lb, "properties")
		properties["frontendIPConfigurations"] = append(properties["frontendIPConfigurations"].([]any), object{
			"name": name, "id": string(azure.ID(lbID).Child("frontendIPConfigurations", name)),
			"properties": object{"publicIPAddress": ref(ip)},
		})
		w.put(lbID, lb)
		in.Others = []*v1.Service{web}
		in.Services = []loadbalancer.Service{{Gone: true,
			Service: &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"}}}}
		rounds, err := w.commit(in)
		if n := writes(rounds); err != nil || n > 0 {
			t.Errorf("%s: %v, and %v", name, err, rounds[0].plan)
		}
	}
}

// TestLeftoversThatServicesAskFor checks a public IP with a tag that names a Service without a rule. If the Service asks
// for the public IP, it belongs to that Service, whatever is at the frontend. Else it belonged to a deleted Service of
// the same name.
func TestLeftoversThatServicesAskFor(t *testing.T) {
	first, second := service("first", tcp(80, 30080)), service("second", tcp(81, 30081))
	w := newSubscription(2)
	if _, err := w.commit(loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: first}}}); err != nil {
		t.Fatal(err)
	}
	w.docs[strings.ToLower(network+"publicIPAddresses/kubernetes-"+base(first))]["tags"].(object)["k8s-azure-service"] = "default/second"
	uid := strings.TrimPrefix(base(first), "a")
	if d := cmp.Diff([]string{"default/second " + uid}, left(t, w, second)); d != "" {
		t.Errorf("not asked for (-want +got):\n%s", d)
	}
	second.Annotations = map[string]string{"service.beta.kubernetes.io/azure-pip-name": "kubernetes-" + base(first)}
	if d := cmp.Diff([]string{"(deleted)/" + base(first) + " " + uid}, left(t, w, second)); d != "" {
		t.Errorf("asked for (-want +got):\n%s", d)
	}
}

// ids are the resources and security rules that there are.
func ids(w *subscription) []string {
	var all []string
	for key, doc := range w.docs {
		all = append(all, key)
		rules, _ := sub(doc, "properties")["securityRules"].([]any)
		for _, r := range rules {
			all = append(all, key+"/"+r.(object)["name"].(string))
		}
	}
	slices.Sort(all)
	return all
}

// TestAFrontendThatItsOwnerHasLeftGoesWithItsLastGuest checks that a Service that goes elsewhere
// leaves its frontend to the Services that share its address. The frontend goes with the last of them,
// also in a commit without the first Service.
func TestAFrontendThatItsOwnerHasLeftGoesWithItsLastGuest(t *testing.T) {
	inner := with(nil, key.Internal.Name, "true")
	for name, c := range map[string]struct {
		before, after map[string]string
		now           map[string]string // also of the guest that goes elsewhere
		there         string            // load balancer that has the frontend
	}{
		"the owner is internal by now":            {after: inner, there: lbID},
		"the owner is external by now":            {before: inner, there: innerID},
		"the owner is in another subnet by now":   {before: inner, after: with(inner, key.InternalSubnet.Name, "apps"), there: innerID},
		"the owner has a foreign address":         {after: with(nil, key.PublicIPName.Name, "mine"), there: lbID},
		"the guest goes to an address of its own": {after: inner, now: with(nil, key.PublicIPName.Name, "mine"), there: lbID},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			w.put(network+"publicIPAddresses/mine",
				parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9"}}`))
			owner, guest, neighbour := service("owner", tcp(80, 30080)), service("guest", tcp(81, 30081)),
				service("neighbour", tcp(82, 30082))
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
			commit := func(gone bool, s *v1.Service, others ...*v1.Service) []round {
				t.Helper()
				in.Services, in.Others = []loadbalancer.Service{{Service: s, Gone: gone}}, others
				rounds, err := w.commit(in)
				if err != nil {
					t.Fatal(err)
				}
				in.Have = w.snapshot()
				status, err := loadbalancer.Status(in)
				if err != nil || len(status[in.Services[0].Key()]) != 1 && !gone {
					t.Fatalf("status %v, %v: %v", status, err, rounds[0].problems)
				}
				s.Status.LoadBalancer.Ingress = status[in.Services[0].Key()]
				return rounds
			}
			if name == "the owner has a foreign address" { // the first Service at the address has the frontend
				neighbour.Annotations = c.after
			}
			commit(false, neighbour)
			owner.Annotations = c.before
			commit(false, owner, neighbour)
			guest.Annotations, guest.Spec.LoadBalancerIP = c.before, owner.Status.LoadBalancer.Ingress[0].IP
			commit(false, guest, owner, neighbour)
			owner.Annotations = c.after
			commit(false, owner, guest, neighbour)
			has := func() bool {
				return slices.ContainsFunc(children(sub(w.docs[azure.ID(c.there).Key()], "properties"), "frontendIPConfigurations"),
					func(fe object) bool { return nameOf(fe) == base(owner) })
			}
			if !has() {
				t.Fatal("the guest has no frontend any more")
			}
			rest := []*v1.Service{neighbour}
			if guest.Annotations = c.now; c.now != nil {
				rest = append(rest, guest)
			}
			commit(c.now == nil, guest, owner, neighbour)
			if has() {
				t.Error("the frontend is still there")
			}
			for _, ip := range w.docs {
				if tags, _ := ip["tags"].(object); c.now == nil &&
					strings.Contains(fmt.Sprint(tags["k8s-azure-service"]), "default/guest") {
					t.Errorf("public IP %v is still there", ip["name"])
				}
			}
			if n := writes(commit(false, owner, rest...)); n > 0 {
				t.Errorf("%d writes for the owner after that", n)
			}
		})
	}
}

// base is the name by which all of a Service begins.
func base(s *v1.Service) string { return ("a" + strings.ReplaceAll(string(s.UID), "-", ""))[:32] }
