package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"kaz/internal/plan/loadbalancer"
)

// left is what there is of Services that are not among all, as "key uid".
func left(t *testing.T, w *world, all ...*v1.Service) []string {
	t.Helper()
	services, err := loadbalancer.Leftovers(config(), w.snapshot(), all)
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
	other := func(w *world) {
		ip := w.docs[strings.ToLower(network+"publicIPAddresses/kubernetes-"+base(web))]
		ip["tags"].(object)["k8s-azure-cluster-name"] = "another"
	}
	uid := func(s *v1.Service) string { return strings.TrimPrefix(base(s), "a") }
	for name, c := range map[string]struct {
		has, there []*v1.Service
		change     func(*world)
		want       []string
	}{
		"all are there":             {has: []*v1.Service{web, inner}, there: []*v1.Service{web, inner}, want: []string{"(deleted)/security-rules "}},
		"one is not":                {has: []*v1.Service{web, inner}, there: []*v1.Service{inner}, want: []string{"default/web " + uid(web)}},
		"one without a public IP":   {has: []*v1.Service{web, inner}, there: []*v1.Service{web}, want: []string{"(deleted)/" + base(inner) + " " + uid(inner)}},
		"another has its name":      {has: []*v1.Service{web}, there: []*v1.Service{successor}, want: []string{"default/web " + uid(web)}},
		"it is another cluster's":   {has: []*v1.Service{web}, change: other, want: []string{"(deleted)/security-rules "}},
		"nothing was there":         {},
		"there is no security rule": {has: []*v1.Service{inner}, there: []*v1.Service{inner}},
		"a guest": {has: []*v1.Service{web, guest}, there: []*v1.Service{web}, want: []string{
			"(deleted)/" + base(guest) + " " + uid(guest), "default/guest "}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(2)
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

// What is left of Services that are gone is taken away as if they had been deleted, and
// nothing else is.
func TestLeftoversAreTakenAway(t *testing.T) {
	web, inner, stays := service("web", tcp(80, 30080)), service("inner", tcp(80, 30081)), service("stays", udp(53, 30053))
	inner.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
	w := newWorld(2)
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: stays}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	want := ids(w)
	in.Services = []loadbalancer.Service{{Service: web}, {Service: inner}, {Service: stays}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	found, err := loadbalancer.Leftovers(config(), w.snapshot(), []*v1.Service{stays})
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

// ids are the resources and security rules that there are.
func ids(w *world) []string {
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

// base is the name by which all of a Service begins.
func base(s *v1.Service) string { return ("a" + strings.ReplaceAll(string(s.UID), "-", ""))[:32] }
