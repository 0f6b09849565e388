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
	"kaz/internal/plan/loadbalancer/problem"
)

const (
	lb2ID  = network + "loadBalancers/lb2"
	inner2 = lb2ID + "-internal"
)

// moving is a story of the Service web, which shares its address with guest, and of a neighbour,
// with two load balancers.
type moving struct {
	*subscription
	t                *testing.T
	in               loadbalancer.Input
	web, guest, near *v1.Service
	internal         bool
}

// newMoving has all three served by the first load balancer; without it guest does not come.
func newMoving(t *testing.T, internal, shared bool) *moving {
	m := &moving{subscription: newSubscription(2), t: t, internal: internal}
	m.in = loadbalancer.Input{Config: config(), Nodes: addressed(machines(3))}
	m.in.Nodes[2].Spec.ProviderID = strings.Replace(m.in.Nodes[2].Spec.ProviderID, "/np/", "/np2/", 1)
	m.in.Config.PoolByIP = true
	m.in.Config.Balancers = []loadbalancer.Balancer{
		{Name: "kubernetes", AllowPlacement: true, PrimaryVMSet: "np"},
		{Name: "lb2", AllowPlacement: true, PrimaryVMSet: "np2"},
	}
	m.web, m.guest, m.near = service("web", tcp(80, 30080)), service("guest", tcp(81, 30081)), service("near", tcp(82, 30082))
	m.web.UID, m.guest.UID, m.near.UID = "3d2c1b0a-1111-2222-3333-4444555566aa5", "3d2c1b0a-1111-2222-3333-4444555566ba5",
		"3d2c1b0a-1111-2222-3333-4444555566ca5"
	for _, s := range []*v1.Service{m.web, m.near} {
		s.Annotations = map[string]string{key.Balancers.Name: "kubernetes"}
	}
	if internal {
		for _, s := range []*v1.Service{m.web, m.guest, m.near} {
			s.Annotations = with(s.Annotations, key.Internal.Name, "true")
		}
	}
	m.commits(m.web, m.near)
	if shared {
		m.guest.Spec.LoadBalancerIP = m.web.Status.LoadBalancer.Ingress[0].IP
		m.commits(m.guest)
	}
	return m
}

// commits brings about some of the Services, while the others are there, and returns what
// was found. Their status is as the controller leaves it, and a second commit is empty.
func (m *moving) commits(some ...*v1.Service) []plan.Problem {
	m.t.Helper()
	m.in.Services, m.in.Others = nil, nil
	for _, s := range []*v1.Service{m.web, m.guest, m.near} {
		if slices.Contains(some, s) {
			m.in.Services = append(m.in.Services, loadbalancer.Service{Service: s, Gone: s.DeletionTimestamp != nil})
		} else {
			m.in.Others = append(m.in.Others, s)
		}
	}
	rounds, err := m.commit(m.in)
	if err != nil {
		m.t.Fatal(err)
	}
	if again, err := m.commit(m.in); err != nil || writes(again) > 0 {
		m.t.Fatalf("a second commit is not empty: %v, %v", err, again[0].plan)
	}
	m.in.Have = m.snapshot()
	status, err := loadbalancer.Status(m.in)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range some {
		s.Status.LoadBalancer.Ingress = status[s.Namespace+"/"+s.Name]
	}
	return rounds[0].problems
}

// are checks at which load balancer the rules of Services are, by their names, and that
// each has the address that web had.
func (m *moving) are(want map[string]string) {
	m.t.Helper()
	got := map[string]string{}
	for _, id := range []string{lbID, innerID, lb2ID, inner2} {
		for _, r := range children(sub(m.docs[azure.ID(id).Key()], "properties"), "loadBalancingRules") {
			for _, s := range []*v1.Service{m.web, m.guest, m.near} {
				if strings.HasPrefix(r["name"].(string), base(s)) {
					got[s.Name] += strings.TrimSuffix(azure.ID(id).Name(), "-internal")
				}
			}
		}
	}
	if !maps.Equal(got, want) {
		m.t.Errorf("rules are at %v, want %v", got, want)
	}
}

// others puts something of a user at web's frontend.
func (m *moving) others(kind, more string) {
	id := azure.ID(lbID)
	if m.internal {
		id = innerID
	}
	lb := m.docs[id.Key()]
	p := sub(lb, "properties")
	fe := `{"id":"` + string(id.Child("frontendIPConfigurations", base(m.web))) + `"}`
	pool := `{"id":"` + string(id.Child("backendAddressPools", "kubernetes")) + `"}`
	p[kind] = append(p[kind].([]any),
		parse(`{"name":"theirs","properties":{`+strings.NewReplacer("FRONTEND", fe, "POOL", pool).Replace(more)+`}}`))
	m.put(id, lb)
}

var theirs = map[string]struct{ what, kind, more string }{
	"outbound rule": {"outbound rule", "outboundRules", `"protocol":"All","frontendIPConfigurations":[FRONTEND],"backendAddressPool":POOL`},
	"NAT rule": {"inbound NAT rule", "inboundNatRules",
		`"protocol":"Tcp","frontendPort":2222,"backendPort":22,"frontendIPConfiguration":FRONTEND`},
	"rule": {"rule", "loadBalancingRules",
		`"protocol":"Tcp","frontendPort":99,"backendPort":99,"frontendIPConfiguration":FRONTEND,"backendAddressPool":POOL`},
}

func reported(t *testing.T, found []plan.Problem, object string, warning bool, words ...string) {
	t.Helper()
	found = slices.DeleteFunc(found, func(p plan.Problem) bool { return p.Reason == problem.NotJoined || p.Reason == problem.NoNodes })
	if len(found) != 1 || found[0].Object != object || found[0].Warning != warning || found[0].Reason != problem.Conflict {
		t.Fatalf("found %v", found)
	}
	for _, want := range words {
		if !strings.Contains(found[0].Message, want) {
			t.Errorf("got %q, and not %q", found[0].Message, want)
		}
	}
}

// TestASharedFrontendDoesNotMove checks that an address leaves a load balancer with its frontend only,
// which cannot go while another Service uses it. A Service that asks for another load balancer is
// refused and keeps what it has, and other Services are served. It moves when the frontend has no
// other Service.
func TestASharedFrontendDoesNotMove(t *testing.T) {
	for _, internal := range []bool{false, true} {
		for _, alone := range []bool{true, false} {
			t.Run("", func(t *testing.T) {
				m := newMoving(t, internal, true)
				had := m.web.Status.LoadBalancer.Ingress[0].IP
				m.web.Annotations[key.Balancers.Name], m.near.Annotations[key.Balancers.Name] = "lb2", "lb2"
				commit := []*v1.Service{m.web, m.near}
				if !alone {
					commit = append(commit, m.guest) // the guest asks for no move
				}
				reported(t, m.commits(commit...), "default/web", false, "annotation "+key.Balancers.Name+`: "lb2"`,
					`the rule "a3d2c1b0a1111222233334444555566b-TCP-81" of Service default/guest`, `allowed is "kubernetes"`)
				m.are(map[string]string{"web": "kubernetes", "guest": "kubernetes", "near": "lb2"})

				m.guest.DeletionTimestamp = &metav1.Time{}
				m.commits(m.guest)
				if found := m.commits(m.web); len(found) > 0 {
					t.Errorf("found %v", found)
				}
				m.are(map[string]string{"web": "lb2", "near": "lb2"})
				if got := m.web.Status.LoadBalancer.Ingress[0].IP; got != had {
					t.Errorf("the address became %s from %s", got, had)
				}
			})
		}
	}
}

// TestAFrontendOfWhichAUsersRulesTellDoesNotMove checks that foreign parts at a frontend keep it, too.
func TestAFrontendOfWhichAUsersRulesTellDoesNotMove(t *testing.T) {
	for name, c := range theirs {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t, false, false)
			m.others(c.kind, c.more)
			m.web.Annotations[key.Balancers.Name] = "lb2"
			reported(t, m.commits(m.web), "default/web", false, "annotation "+key.Balancers.Name+`: "lb2"`, `the `+c.what+
				` "theirs" of an unknown owner`)
			m.are(map[string]string{"web": "kubernetes", "near": "kubernetes"})

			p := sub(m.docs[azure.ID(lbID).Key()], "properties")
			p[c.kind] = slices.DeleteFunc(p[c.kind].([]any), func(o any) bool { return o.(object)["name"] == "theirs" })
			m.commits(m.web)
			m.are(map[string]string{"web": "lb2", "near": "kubernetes"})
		})
	}
}

// TestSharersMoveTogether checks a Service that the configuration or a label leads to another load balancer. It is served
// at its old place, with a warning, as long as other Services keep its frontend there. When all of them are led to the
// other load balancer, they move together.
func TestSharersMoveTogether(t *testing.T) {
	two := &metav1.LabelSelector{MatchLabels: map[string]string{"lb": "two"}}
	one := &metav1.LabelSelector{MatchLabels: map[string]string{"lb": "one"}}
	for _, internal := range []bool{false, true} {
		t.Run("", func(t *testing.T) {
			m := newMoving(t, internal, true)
			had := m.web.Status.LoadBalancer.Ingress[0].IP
			m.in.Config.Balancers[0].ServiceSelector, m.in.Config.Balancers[1].ServiceSelector = one, two
			delete(m.web.Annotations, key.Balancers.Name)
			m.web.Labels, m.guest.Labels, m.near.Labels = two.MatchLabels, one.MatchLabels, one.MatchLabels
			m.web.Spec.Ports = append(m.web.Spec.Ports, tcp(443, 30443))
			reported(t, m.commits(m.web, m.guest, m.near), "default/web", true, "lb2", "kubernetes", "Service default/guest")
			m.are(map[string]string{"web": "kuberneteskubernetes", "guest": "kubernetes", "near": "kubernetes"})

			m.guest.Labels = two.MatchLabels
			if found := m.commits(m.guest, m.web); len(found) > 0 {
				t.Errorf("found %v", found)
			}
			m.are(map[string]string{"web": "lb2lb2", "guest": "lb2", "near": "kubernetes"})
			for _, s := range []*v1.Service{m.web, m.guest} {
				if got := s.Status.LoadBalancer.Ingress[0].IP; got != had {
					t.Errorf("the address of %s became %s from %s", s.Name, got, had)
				}
			}
		})
	}
}

// TestSharersComeBackTogether checks that Services that share an address also come back together when
// several load balancers are given up. A Service that is not of the commit keeps the others at their
// places until then.
func TestSharersComeBackTogether(t *testing.T) {
	for name, c := range map[string]struct {
		left int // of two load balancers, 0 for one that is none of several
		byIP bool
	}{
		"one of two": {1, true}, "none of several": {0, true}, "none of several, with other pools": {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t, false, false)
			m.web.Annotations[key.Balancers.Name] = "lb2"
			m.commits(m.web)
			had := m.web.Status.LoadBalancer.Ingress[0].IP
			m.guest.Spec.LoadBalancerIP = had
			m.commits(m.guest)
			m.are(map[string]string{"web": "lb2", "guest": "lb2", "near": "kubernetes"})

			delete(m.web.Annotations, key.Balancers.Name)
			m.in.Config.Balancers, m.in.Config.PoolByIP = m.in.Config.Balancers[:c.left], c.byIP
			reported(t, m.commits(m.web), "default/web", true, "lb2", "Service default/guest")
			m.are(map[string]string{"web": "lb2", "guest": "lb2", "near": "kubernetes"})
			m.commits(m.web, m.guest, m.near)
			m.are(map[string]string{"web": "kubernetes", "guest": "kubernetes", "near": "kubernetes"})
			for _, s := range []*v1.Service{m.web, m.guest} {
				if got := s.Status.LoadBalancer.Ingress[0].IP; got != had {
					t.Errorf("the address of %s became %s from %s", s.Name, got, had)
				}
			}
		})
	}
}

// TestSharersStayTogetherBetweenRounds checks two load balancers that would wait for each other. Addresses leave in one
// round and come in the next. Services that share an address stay together then, and keep it.
func TestSharersStayTogetherBetweenRounds(t *testing.T) {
	for _, internal := range []bool{false, true} {
		t.Run("", func(t *testing.T) {
			m := newMoving(t, internal, true)
			had := m.web.Status.LoadBalancer.Ingress[0].IP
			m.near.Annotations[key.Balancers.Name] = "lb2"
			m.commits(m.near)
			m.are(map[string]string{"web": "kubernetes", "guest": "kubernetes", "near": "lb2"})

			for i, value := range []string{"one", "two"} {
				m.in.Config.Balancers[i].ServiceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"lb": value}}
			}
			delete(m.web.Annotations, key.Balancers.Name)
			delete(m.near.Annotations, key.Balancers.Name)
			m.near.Labels, m.web.Labels, m.guest.Labels = map[string]string{"lb": "one"}, map[string]string{"lb": "two"},
				map[string]string{"lb": "two"}
			if found := m.commits(m.web, m.guest, m.near); len(found) > 0 {
				t.Errorf("found %v", found)
			}
			m.are(map[string]string{"web": "lb2", "guest": "lb2", "near": "kubernetes"})
			for _, s := range []*v1.Service{m.web, m.guest} {
				if got := s.Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != had {
					t.Errorf("the address of %s became %v from %s", s.Name, got, had)
				}
			}
		})
	}
}

// TestAnAddressGoesFromOneLoadBalancerToAnother checks a Service that takes over the address of a Service at another load
// balancer. It gets the address when the other Service has released it. Two Services that swap their addresses get them
// in the round after.
func TestAnAddressGoesFromOneLoadBalancerToAnother(t *testing.T) {
	const mine, yours = "mine", "yours"
	for _, internal := range []bool{false, true} {
		asks := func(s *v1.Service, name string) { // for an address, or for a load balancer where it has none
			inner := s.Annotations[key.Internal.Name]
			s.Annotations = map[string]string{}
			switch {
			case internal && name != "":
				s.Annotations[key.IPv4.Name] = map[string]string{mine: "10.0.0.98", yours: "10.0.0.99"}[name]
			case name != "":
				s.Annotations[key.PublicIPName.Name] = name
			}
			if inner != "" {
				s.Annotations[key.Internal.Name] = inner
			}
		}
		for name, change := range map[string]func(m *moving){
			"its owner goes to its own": func(m *moving) { asks(m.web, yours); asks(m.near, "") },
			"its owner is gone":         func(m *moving) { asks(m.web, yours); m.near.DeletionTimestamp = &metav1.Time{} },
			"its owner is of the other kind": func(m *moving) {
				asks(m.web, yours)
				m.near.Annotations = map[string]string{}
				if !internal {
					m.near.Annotations[key.Internal.Name] = "true"
				}
			},
			"they change places": func(m *moving) { asks(m.web, yours); asks(m.near, mine) },
		} {
			t.Run(fmt.Sprint(name, "/internal ", internal), func(t *testing.T) {
				m := newMoving(t, internal, false)
				for i, name := range []string{mine, yours} {
					m.put(azure.ID(network+"publicIPAddresses/"+name),
						parse(fmt.Sprintf(`{"location":"westeurope","sku":{"name":"Standard"},
						"properties":{"publicIPAddressVersion":"IPv4","publicIPAllocationMethod":"Static","ipAddress":"20.9.0.%d"}}`, i+1)))
				}
				m.near.Annotations[key.Balancers.Name] = "lb2"
				m.commits(m.near)
				asks(m.web, mine)
				asks(m.near, yours)
				m.commits(m.web, m.near)
				m.are(map[string]string{"web": "kubernetes", "near": "lb2"})
				yours := m.near.Status.LoadBalancer.Ingress[0].IP

				change(m)
				if found := m.commits(m.web, m.near); len(found) > 0 {
					t.Errorf("found %v", found)
				}
				if got := m.web.Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != yours {
					t.Errorf("the address is %v and not %s", got, yours)
				}
			})
		}
	}
}
