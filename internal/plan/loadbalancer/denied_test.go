package loadbalancer_test

import (
	"fmt"
	"maps"
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

// ruledTo are the destinations of managed security rules that allow or deny, as "address" or
// "address:ports", sorted.
func ruledTo(w *subscription, access string) (all []string) {
	for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
		if !strings.HasPrefix(nameOf(r), "k8s-azure-lb_") || at(r, "properties", "access") != access {
			continue
		}
		for _, to := range destinations(r) {
			if access == "Allow" {
				to = fmt.Sprint(to, ":", strings.Join(manyOf(r, "destinationPortRange", "destinationPortRanges"), ","))
			}
			all = append(all, to)
		}
	}
	slices.Sort(all)
	return all
}

// with is a map with more keys, each followed by its value.
func with(all map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, all)
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// TestADenialGoesWithItsCause checks D4: all other traffic is denied as long as a Service at the address asks for that.
// Another Service at the address is no reason.
func TestADenialGoesWithItsCause(t *testing.T) {
	where := map[string]map[string]string{
		"nodes":   {key.DisableFloatingIP.Name: "true"},
		"address": {},
		"further": {key.AdditionalIPs.Name: "8.1.1.1"},
	}
	const mistyped, denying = "10.9.0.0/16,10.0.0.1/8", "10.8.0.0/16,10.0.0.1/8"
	beside := map[string]struct {
		annotations []string
		refused     bool
		unknown     bool
		stays       bool
	}{
		"content":      {},
		"denying, too": {annotations: []string{key.AllowedIPRanges.Name, denying}, stays: true},
		"refused":      {annotations: []string{key.IdleTimeout.Name, "soon"}, refused: true},
		"refused and denying": {annotations: []string{key.IdleTimeout.Name, "soon", key.AllowedIPRanges.Name, denying}, refused: true,
			stays: true},
		"not known": {unknown: true, stays: true},
	}
	for at, annotations := range where {
		for state, c := range beside {
			for _, gone := range []bool{false, true} {
				if c.unknown && at == "further" { // nothing in Azure shows this Service
					continue
				}
				t.Run(fmt.Sprint(at, "/", state, "/gone ", gone), func(t *testing.T) {
					w := newSubscription(2)
					a, b := service("a", tcp(80, 30080)), service("b", tcp(81, 30081))
					a.Annotations, b.Annotations = with(annotations, key.AllowedIPRanges.Name, mistyped), with(annotations)
					if at == "address" {
						b.Spec.LoadBalancerIP = "20.1.0.2"
					}
					in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2))}
					play := func(services ...loadbalancer.Service) {
						in.Services = services
						if _, err := w.commit(in); err != nil {
							t.Fatal(err)
						}
					}
					play(loadbalancer.Service{Service: a})
					denied := ruledTo(w, "Deny")
					if len(denied) == 0 {
						t.Fatal("nothing is denied")
					}
					in.Others = []*v1.Service{a}
					play(loadbalancer.Service{Service: b})
					in.Others = nil
					a.Annotations = with(a.Annotations, key.AllowedIPRanges.Name, "10.9.0.0/16")
					b.Annotations = with(b.Annotations, c.annotations...)
					changed := []loadbalancer.Service{{Service: a, Gone: gone}}
					switch {
					case c.refused:
						changed = append(changed, loadbalancer.Service{Service: b})
					case !c.unknown:
						in.Others = []*v1.Service{b}
					}
					in.Complete = !c.unknown
					play(changed...)
					if !c.stays {
						denied = nil
					} else if at == "further" {
						denied = []string{"8.1.1.1"} // the other address was a's alone
					}
					if got := ruledTo(w, "Deny"); !slices.Equal(got, denied) {
						t.Errorf("denied is %v, want %v", got, denied)
					}
				})
			}
		}
	}
}

// TestWhatIsDeniedAtNodes checks D36. Nothing is denied at the nodes' own addresses where packets for a Service arrive:
// the nodes could not reach each other any more. A denial there stays if the user chose it. Both are reported.
func TestWhatIsDeniedAtNodes(t *testing.T) {
	const inside, fixed = "azure-load-balancer-internal", "azure-disable-load-balancer-floating-ip"
	both, six, four := []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}, []v1.IPFamily{v1.IPv6Protocol}, []v1.IPFamily{v1.IPv4Protocol}
	slip, asked := "10.9.0.0/16,fd09::/64,10.0.0.1/8", "10.9.0.0/16,fd09::/64"
	const own, own6 = "10.0.9.1", "fd00::9:2"
	for name, c := range map[string]struct {
		families    []v1.IPFamily
		annotations []string // without what all begin with, and set to true
		ranges      string
		further     string
		denied      []string
		allowed     []string
		wants       []string // in the warning; none for no warning
	}{
		"dual": {both, []string{inside}, asked, "", []string{own}, []string{own + ":80", "fd00::4:30080", "fd00::5:30080"},
			[]string{"NotDenied", "IPv6", "Everything else is denied at its IPv4 address", key.DenyAllElse.Name}},
		"slip": {both, []string{inside}, slip, "", []string{own}, []string{own + ":80", "fd00::4:30080", "fd00::5:30080"},
			[]string{"NotDenied", "IPv6"}},
		"IPv6 only": {six, []string{inside}, asked, "", nil, []string{"fd00::4:30080", "fd00::5:30080"},
			[]string{"NotDenied", "nothing is denied at all"}},
		"further": {
			six, []string{inside}, asked, "fd77::1", []string{"fd77::1"}, []string{"fd00::4:30080", "fd00::5:30080", "fd77::1:80"},
			[]string{"NotDenied", "Everything else is denied at the addresses of annotation " + key.AdditionalIPs.Name},
		},
		"chosen": {
			both, []string{inside, fixed}, asked, "", []string{"10.0.0.4", "10.0.0.5", "fd00::4", "fd00::5"},
			[]string{"10.0.0.4:30080", "10.0.0.5:30080", "fd00::4:30080", "fd00::5:30080"},
			[]string{"NodesDenied", key.DisableFloatingIP.Name, "everything else to the nodes' own addresses is denied", "on all ports"},
		},
		"chosen, external": {four, []string{fixed}, slip, "", []string{"10.0.0.4", "10.0.0.5"},
			[]string{"10.0.0.4:30080", "10.0.0.5:30080"}, []string{"NodesDenied"}},
		"IPv4":    {four, []string{inside}, asked, "", []string{own}, []string{own + ":80"}, nil},
		"no deny": {four, []string{fixed}, "", "", nil, []string{"10.0.0.4:30080", "10.0.0.5:30080"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("web", tcp(80, 30080))
			s.Spec.IPFamilies = c.families
			s.Annotations = map[string]string{key.DenyAllElse.Name: "true"}
			for _, a := range c.annotations {
				s.Annotations["service.beta.kubernetes.io/"+a] = "true"
			}
			if c.ranges != "" {
				s.Annotations[key.AllowedIPRanges.Name] = c.ranges
			}
			if c.further != "" {
				s.Annotations[key.AdditionalIPs.Name] = c.further
			}
			in := loadbalancer.Input{Config: config(), Complete: true, Nodes: addressed(machines(2)),
				Services: []loadbalancer.Service{{Service: s}}}
			in.Config.PoolByIP = true
			if slices.Equal(c.families, six) { // Azure wants IPv4 beside it
				beside := service("zz", tcp(81, 30081))
				beside.Annotations = map[string]string{key.Internal.Name: "true"}
				in.Services = append(in.Services, loadbalancer.Service{Service: beside})
			}
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := ruledTo(w, "Deny"); !slices.Equal(got, c.denied) {
				t.Errorf("denied is %v, want %v", got, c.denied)
			}
			if got := ruledTo(w, "Allow"); !slices.Equal(got, c.allowed) {
				t.Errorf("allowed is %v, want %v", got, c.allowed)
			}
			found := slices.DeleteFunc(slices.Clone(rounds[0].problems),
				func(p plan.Problem) bool { return p.Reason == problem.AllowedIPRanges })
			if len(c.wants) == 0 && len(found) > 0 || len(c.wants) > 0 &&
				(len(found) != 1 || !found[0].Warning || found[0].Object != "default/web") {
				t.Fatalf("warned of %v", found)
			}
			for _, want := range c.wants {
				if text := found[0].Reason + " " + found[0].Message; !strings.Contains(text, want) {
					t.Errorf("warned %q, and not of %q", text, want)
				}
			}
		})
	}
}

// TestPresetPoolsAreOpen checks row 79 and D24 for a Service with pools that kaz does not fill. Its sources are allowed
// like others where packets arrive at the nodes' own addresses. No Service loses its rules when the pools become such.
func TestPresetPoolsAreOpen(t *testing.T) {
	for name, addresses := range map[string]bool{"interfaces": false, "addresses": true} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			fixed := map[string]string{key.DisableFloatingIP.Name: "true"}
			a, b, inner := service("a", tcp(80, 30080)), service("b", tcp(81, 30081)), service("inner", tcp(82, 30082))
			a.Annotations, b.Annotations = fixed, fixed
			inner.Annotations = with(fixed, key.Internal.Name, "true", key.AllowedIPRanges.Name, "10.9.0.0/16")
			in := loadbalancer.Input{
				Config: config(), Complete: true, Nodes: addressed(machines(2)),
				Services: []loadbalancer.Service{{Service: a}, {Service: inner}},
			}
			in.Config.PoolByIP = addresses
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			in.Config.PresetExternal, in.Config.PresetInternal = true, true
			whole := w.snapshot()
			in.Have = gather(in, whole)
			if p, _ := decide(t, in); !p.Empty() {
				t.Errorf("pools that kaz does not fill from now on are written for:\n%s", p)
			}
			in.Services = append(in.Services, loadbalancer.Service{Service: b})
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			want := []string{"10.0.0.4:30080", "10.0.0.4:30081", "10.0.0.4:30082", "10.0.0.5:30080", "10.0.0.5:30081", "10.0.0.5:30082"}
			if got := ruledTo(w, "Allow"); !slices.Equal(got, want) {
				t.Errorf("allowed is %v, want %v", got, want)
			}
		})
	}
}

// TestAllPortsAtNodes checks D35: packets of a rule for all ports keep their port, wherever they arrive.
func TestAllPortsAtNodes(t *testing.T) {
	for name, families := range map[string][]v1.IPFamily{"chosen": {v1.IPv4Protocol}, "both families": {v1.IPv4Protocol, v1.IPv6Protocol}} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("a", tcp(80, 30080), udp(53, 30053))
			s.Spec.IPFamilies = families
			s.Annotations = map[string]string{key.Internal.Name: "true", key.HAPorts.Name: "true",
				key.AllowedIPRanges.Name: "10.9.0.0/16,fd09::/64"}
			want := []string{"10.0.9.1:53", "10.0.9.1:80", "fd00::4:53", "fd00::4:80", "fd00::5:53", "fd00::5:80"}
			if len(families) == 1 {
				s.Annotations[key.DisableFloatingIP.Name] = "true"
				want = []string{"10.0.0.4:53", "10.0.0.4:80", "10.0.0.5:53", "10.0.0.5:80"}
			}
			in := loadbalancer.Input{Config: config(), Complete: true, Nodes: addressed(machines(2)),
				Services: []loadbalancer.Service{{Service: s}}}
			in.Config.PoolByIP = true
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if got := ruledTo(w, "Allow"); !slices.Equal(got, want) {
				t.Errorf("allowed is %v, want %v", got, want)
			}
		})
	}
}

// TestANodesAddressBelongsToNoService checks that an address of a node belongs to the node, also if a Service names it. A
// Service that comes or goes with the address takes nothing from the Services that are reached there.
func TestANodesAddressBelongsToNoService(t *testing.T) {
	const node = "10.0.0.4"
	for name, of := range map[string]map[string]string{
		"further": {key.AdditionalIPs.Name: node},
		"asked":   {key.Internal.Name: "true", key.IPv4.Name: node},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			near := service("near", tcp(80, 30361))
			near.Annotations = map[string]string{key.DisableFloatingIP.Name: "true"}
			in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
				Services: []loadbalancer.Service{{Service: near}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			open := func() []string {
				return slices.DeleteFunc(ruledTo(w, "Allow"), func(at string) bool { return !strings.HasSuffix(at, ":30361") })
			}
			before := open()
			if !slices.Contains(before, node+":30361") {
				t.Fatalf("allowed is %v", before)
			}
			web := service("web", tcp(81, 30081))
			web.Annotations = of
			in.Others = []*v1.Service{near}
			for _, gone := range []bool{false, true} {
				in.Services = []loadbalancer.Service{{Service: web, Gone: gone}}
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
				if after := open(); !slices.Equal(after, before) {
					t.Errorf("gone %v: allowed is %v, and was %v", gone, after, before)
				}
			}
		})
	}
}

// TestOpeningsAtNodesGoThoughTheirRulesHaveGoneBefore checks that a Service that has left the nodes' own addresses leaves
// no rule there. This also holds if the security group could not be written and the load balancer no longer shows the old
// place. It holds with Services that kaz does not serve, too.
func TestOpeningsAtNodesGoThoughTheirRulesHaveGoneBefore(t *testing.T) {
	gone, floats := func(s *loadbalancer.Service) { s.Gone = true },
		func(s *loadbalancer.Service) { delete(s.Annotations, key.DisableFloatingIP.Name) }
	all := []string{key.Internal.Name, "true", key.HAPorts.Name, "true", key.AllowedIPRanges.Name, "10.9.0.0/16"}
	for name, c := range map[string]struct {
		more   []string // annotations
		change func(s *loadbalancer.Service)
	}{
		"it is gone": {nil, gone}, "it floats": {nil, floats}, "all ports, it is gone": {all, gone}, "all ports, it floats": {all, floats},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			web, foreign := service("web", tcp(80, 30080), udp(53, 30053)), service("foreign", tcp(81, 30081))
			web.Annotations = with(nil, key.DisableFloatingIP.Name, "true")
			foreign.Annotations = with(web.Annotations)
			web.Annotations = with(web.Annotations, c.more...)
			in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2))}
			in.Services = []loadbalancer.Service{{Service: foreign}, {Service: web}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			in.Services = in.Services[1:]
			c.change(&in.Services[0])
			group := w.docs[azure.ID(nsgID).Key()]
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			w.put(nsgID, group) // as if Azure had refused it
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			got := slices.DeleteFunc(ruledTo(w, "Allow"), func(to string) bool { return !strings.HasPrefix(to, "10.0.0.") })
			if want := []string{"10.0.0.4:30081", "10.0.0.5:30081"}; !slices.Equal(got, want) {
				t.Errorf("let in is %v, want %v", got, want)
			}
		})
	}
}

// TestAddressesThatAreNoServicesAreClosedWhenLeft checks that the addresses in a Service's status are
// closed when the Service has left them. This also holds for a foreign public IP without a Service,
// and where the load balancer was written and the security group was not.
func TestAddressesThatAreNoServicesAreClosedWhenLeft(t *testing.T) {
	for name, c := range map[string]struct {
		asks  map[string]string
		fails bool // to write the security group at first
	}{
		"further addresses": {with(nil, key.AdditionalIPs.Name, "20.9.9.8,20.9.9.9"), false},
		"a foreign address": {with(nil, key.PublicIPName.Name, "outbound"), true},
	} {
		for _, complete := range []bool{true, false} {
			t.Run(fmt.Sprint(name, "/complete ", complete), func(t *testing.T) {
				w := newSubscription(2)
				for name, more := range map[string]string{
					"outbound": `"ipAddress":"20.9.9.7"`, "orphan": `"ipAddress":"20.9.9.8"`,
					"firewall": `"ipAddress":"20.9.9.9","natGateway":{"id":"` + network + `natGateways/n"}`,
				} {
					w.put(network+"publicIPAddresses/"+azure.ID(name), parse(`{"location":"westeurope","sku":{"name":"Standard"},
						"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4",`+more+`}}`))
				}
				w.put(lbID, parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[
					{"name":"outbound","properties":{"publicIPAddress":{"id":"`+network+`publicIPAddresses/outbound"}}}]}}`))
				s := service("web", tcp(80, 30080))
				s.Annotations = c.asks
				in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: complete,
					Services: []loadbalancer.Service{{Service: s}}}
				commit := func() []round {
					t.Helper()
					rounds, err := w.commit(in)
					if err != nil {
						t.Fatal(err)
					}
					return rounds
				}
				commit()
				in.Have = w.snapshot()
				status, err := loadbalancer.Status(in)
				if err != nil {
					t.Fatal(err)
				}
				s.Status.LoadBalancer.Ingress = status["default/web"]
				s.Annotations = nil
				group := w.docs[azure.ID(nsgID).Key()]
				rounds := commit()
				if c.fails {
					w.put(nsgID, group)
					rounds = append(rounds, commit()...)
				}
				for _, r := range rounds {
					if len(r.problems) > 0 {
						t.Errorf("found %v", r.problems)
					}
				}
				if got := ruledTo(w, "Allow"); len(got) != 1 || strings.HasPrefix(got[0], "20.9.9.") {
					t.Errorf("let in is %v", got)
				}
			})
		}
	}
}
