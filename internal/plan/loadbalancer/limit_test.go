package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

// TestRulesPerNode checks Azure's limit of 300 rules for a node. A Service beyond it gets a problem;
// the Services that have their rules stay and may change.
func TestRulesPerNode(t *testing.T) {
	const most = 300
	for _, byIP := range []bool{false, true} {
		if byIP && testing.Short() {
			continue // the other kind of pool shows it, too
		}
		t.Run(fmt.Sprintf("PoolByIP=%v", byIP), func(t *testing.T) {
			in, w := crowd(t, most-1, 2)
			in.Config.PoolByIP = byIP
			in.Complete = true
			refused := func(what string, want ...string) {
				t.Helper()
				rounds, err := w.commit(in)
				if err != nil {
					t.Fatal(what, err)
				}
				got := map[string]bool{}
				for _, p := range rounds[len(rounds)-1].problems {
					if p.Warning { // warnings of the steps before do not count
						continue
					}
					if p.Reason != problem.Limit || !strings.Contains(p.Message, "300") ||
						!strings.Contains(p.Message, "multipleStandardLoadBalancerConfigurations") {
						t.Errorf("%s: %v", what, p)
					}
					got[p.Object] = true
				}
				for _, name := range want {
					if !got["default/"+name] {
						t.Errorf("%s: %s is not refused", what, name)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s: refused are %v, want %v", what, got, want)
				}
			}
			refused("all but one")
			one := func(name string, ports ...v1.ServicePort) loadbalancer.Service {
				return loadbalancer.Service{Service: service(name, ports...)}
			}
			crowded := in.Services
			for _, s := range crowded {
				in.Others = append(in.Others, s.Service)
			}
			inside := one("inside", tcp(80, 31000))
			inside.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
			in.Services = []loadbalancer.Service{one("two-ports", tcp(80, 31000), tcp(81, 31001))}
			refused("two where there is room for one", "two-ports")
			in.Services = []loadbalancer.Service{one("a", tcp(80, 31000)), one("b", tcp(80, 31000)), inside}
			refused("three where there is room for one", "b", "inside")

			changed := one("web-7", tcp(81, 30007))
			grown := one("web-8", tcp(80, 30008), tcp(81, 31008))
			in.Others = in.Others[:0]
			for _, s := range crowded {
				if s.Name != "web-7" && s.Name != "web-8" {
					in.Others = append(in.Others, s.Service)
				}
			}
			in.Services = []loadbalancer.Service{changed, grown}
			refused("one changes, one grows", "web-8")

			leaves := crowded[9]
			leaves.Gone = true
			in.Services = []loadbalancer.Service{leaves, one("c", tcp(80, 31000))}
			refused("one leaves, one comes")
		})
	}
}

// TestRulesPerNodeOfAnAdoptedCluster checks that a cluster stays as it is if another controller filled it up to the limit
// or beyond.
func TestRulesPerNodeOfAnAdoptedCluster(t *testing.T) {
	in, w := crowd(t, 250, 2)
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	// Foreign rules that lead to the nodes beyond the limit that kaz keeps.
	lb := w.docs[azure.ID(lbID).Key()]
	rules := sub(lb, "properties")["loadBalancingRules"].([]any)
	for i := range 60 {
		copied := parse(string(text(rules[0])))
		copied["name"] = fmt.Sprintf("mine-%d", i)
		sub(copied, "properties")["frontendPort"] = 9000 + i
		rules = append(rules, copied)
	}
	sub(lb, "properties")["loadBalancingRules"] = rules
	w.put(lbID, lb)
	rounds, err := w.commit(in)
	if err != nil || writes(rounds) > 0 || len(rounds[0].problems) > 0 {
		t.Errorf("%v, %d writes, problems %v", err, writes(rounds), rounds[0].problems)
	}
}

// TestRulesPerNodeAmongSeveral checks that a Service goes to the load balancer that has room for it, among several.
func TestRulesPerNodeAmongSeveral(t *testing.T) {
	in, w := crowd(t, 601, 0)
	in.Config.PoolByIP = true
	for i := range 2 {
		in.Config.Balancers = append(in.Config.Balancers,
			loadbalancer.Balancer{Name: fmt.Sprintf("lb%d", i), AllowPlacement: true, PrimaryVMSet: fmt.Sprintf("np%d", i)})
	}
	in.Nodes = addressed(machines(2))
	for i, n := range in.Nodes {
		n.Spec.ProviderID = strings.Replace(n.Spec.ProviderID, "/np/", fmt.Sprintf("/np%d/", i), 1)
	}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	last := rounds[len(rounds)-1].problems
	if len(last) != 1 || last[0].Reason != problem.Limit {
		t.Errorf("problems %v, want one Service for which there is no room", last)
	}
}

// TestRulesPerNodeWhileTheyMove checks Services that go from one load balancer of the nodes to the other. At no time do
// more rules lead to a node than Azure takes, whichever of the two is written first.
func TestRulesPerNodeWhileTheyMove(t *testing.T) {
	const each = 150
	many := func(name string, internal bool, dual bool) loadbalancer.Service {
		s := service(name)
		s.Spec.Ports = nil
		for i := range int32(each) {
			s.Spec.Ports = append(s.Spec.Ports, tcp(1000+i, 30000+i))
		}
		if internal {
			s.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-internal": "true"}
		}
		if dual {
			s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
		}
		return loadbalancer.Service{Service: s}
	}
	type kinds []bool // of the Services, internal as true
	for name, c := range map[string]struct {
		steps      []kinds
		byIP, dual bool
	}{
		"one of two":         {steps: []kinds{{false, false}, {false, true}, {false, false}}},
		"one of two, by IP":  {steps: []kinds{{false, false}, {false, true}, {false, false}}, byIP: true},
		"both":               {steps: []kinds{{false, false}, {true, true}, {false, false}}},
		"they change places": {steps: []kinds{{false, true}, {true, false}}},
		"two families":       {steps: []kinds{{false, false}, {true, false}, {true, true}}, dual: true},
	} {
		t.Run(name, func(t *testing.T) {
			in, w := crowd(t, 0, 2)
			in.Config.PoolByIP, in.Complete = c.byIP, true
			w.trusting = true // it is about more rules than are decided quickly twice
			count := func() [2]int {
				var n [2]int
				for i, id := range []string{lbID, lbID + "-internal"} {
					if doc, ok := w.docs[azure.ID(id).Key()]; ok {
						rules, _ := sub(doc, "properties")["loadBalancingRules"].([]any)
						n[i] = len(rules)
					}
				}
				return n
			}
			most := 300
			if c.dual {
				most *= 2 // each family has its own
			}
			for _, step := range c.steps {
				in.Services = nil
				for i, internal := range step {
					in.Services = append(in.Services, many(string(rune('a'+i)), internal, c.dual))
				}
				for range 5 {
					r, err := w.decide(in)
					if err != nil || slices.ContainsFunc(r.problems, func(p plan.Problem) bool { return !p.Warning }) {
						t.Fatal(err, r.problems)
					}
					if r.plan.Empty() {
						break
					}
					was := count()
					if err := w.apply(r.plan); err != nil {
						t.Fatal(err)
					}
					is := count()
					if is[0]+was[1] > most || was[0]+is[1] > most {
						t.Errorf("%v: rules were %v and are %v after one round, in which either may be first", step, was, is)
					}
				}
				want := [2]int{}
				for _, internal := range step {
					n := each
					if c.dual {
						n *= 2
					}
					if internal {
						want[1] += n
					} else {
						want[0] += n
					}
				}
				if got := count(); got != want {
					t.Errorf("%v: rules are %v, want %v", step, got, want)
				}
			}
		})
	}
}

// TestPlacedServicesStayWhileOthersMove checks that a Service at a full load balancer stays there, with its address and
// private link service. This holds whatever it changes while other Services come.
func TestPlacedServicesStayWhileOthersMove(t *testing.T) {
	in, w := crowd(t, 0, 2)
	in.Complete = true
	w.trusting = true // it is about more rules than are decided quickly twice
	many := func(name string, n int32) *v1.Service {
		s := service(name)
		for i := range n {
			s.Spec.Ports = append(s.Spec.Ports, tcp(1000+i, 30000+i))
		}
		return s
	}
	a, b, web := many("a", 150), many("b", 149), asksForLink("web", 80)
	bare := service("bare", tcp(80, 30080))
	bare.Annotations = map[string]string{key.Internal.Name: "true", "service.beta.kubernetes.io/port_80_no_lb_rule": "true"}
	for _, s := range []*v1.Service{a, b, web, bare} {
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	stand := func() (names []string) {
		for _, fe := range children(sub(w.docs[azure.ID(innerID).Key()], "properties"), "frontendIPConfigurations") {
			names = append(names, nameOf(fe))
		}
		return names
	}
	was := stand()
	if len(was) != 2 || len(w.links()) != 1 {
		t.Fatalf("there are frontends %v and private link services %v", was, w.links())
	}
	b.Annotations = map[string]string{key.Internal.Name: "true"}
	web.Spec.Ports = []v1.ServicePort{tcp(81, 30081)}
	for range 5 {
		r, err := w.decide(in)
		if err != nil {
			t.Fatal(err)
		}
		if r.plan.Empty() {
			break
		}
		for _, s := range r.plan.Steps {
			if s.Op == plan.Delete && s.ID.Is(privateLinks) {
				t.Errorf("%s goes: %s", s.ID.Name(), s.Why)
			}
		}
		if err := w.apply(r.plan); err != nil {
			t.Fatal(err)
		}
		for _, name := range was {
			if !slices.Contains(stand(), name) {
				t.Errorf("frontend %s is gone", name)
			}
		}
	}
	if got := stand(); len(got) != 3 {
		t.Errorf("in the end there are frontends %v", got)
	}
}

// TestJoiningAServiceThatComesLater checks that a Service that joins one that is placed later is
// placed later, too: until then there is no frontend.
func TestJoiningAServiceThatComesLater(t *testing.T) {
	in, w := crowd(t, 0, 2)
	in.Complete = true
	w.trusting = true // it is about more rules than are decided quickly twice
	many := func(name string, n, from int32) *v1.Service {
		s := service(name)
		for i := range n {
			s.Spec.Ports = append(s.Spec.Ports, tcp(from+i, 20000+from+i))
		}
		return s
	}
	a, b, host, guest := many("a", 150, 1000), many("b", 148, 2000), many("host", 1, 80), many("guest", 1, 81)
	a.Annotations = map[string]string{key.Internal.Name: "true"}
	b.Annotations = map[string]string{key.Internal.Name: "true"}
	guest.Annotations = map[string]string{key.PublicIPName.Name: "kubernetes-" + baseOf(host)}
	for _, s := range []*v1.Service{host, a, b} {
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Services = append(in.Services, loadbalancer.Service{Service: guest})
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	name := "kubernetes-" + baseOf(b)
	w.put(azure.ID(network+"publicIPAddresses/"+name),
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"k8s-azure-service":"default/b","k8s-azure-cluster-name":"kubernetes"},
		"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4"}}`))
	b.Annotations = nil
	guest.Annotations = map[string]string{key.PublicIPName.Name: name}
	for range 5 {
		r, err := w.decide(in)
		if err != nil {
			t.Fatal(err)
		}
		if r.plan.Empty() {
			break
		}
		if err := w.apply(r.plan); err != nil {
			t.Fatal(err)
		}
		lb := sub(w.docs[azure.ID(lbID).Key()], "properties")
		for _, rule := range children(lb, "loadBalancingRules") {
			at := at(rule, "properties", "frontendIPConfiguration", "id")
			if !slices.ContainsFunc(children(lb, "frontendIPConfigurations"),
				func(fe object) bool { return strings.EqualFold(fe["id"].(string), at) }) {
				t.Errorf("rule %s refers to %s, which is not there", nameOf(rule), at)
			}
		}
	}
	if rules := children(sub(w.docs[azure.ID(lbID).Key()], "properties"), "loadBalancingRules"); len(rules) != 150 {
		t.Errorf("there are %d rules in the end", len(rules))
	}
}
