package loadbalancer_test

import (
	"errors"
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

// TestAnotherClustersPublicIPStaysAsItIs checks that a public IP of another cluster is used as it is,
// though that cluster has a Service of the same name. It gets no tags and is not recreated for IP
// tags; a Service that asks for tags gets a problem.
func TestAnotherClustersPublicIPStaysAsItIs(t *testing.T) {
	const id = azure.ID(network + "publicIPAddresses/theirs")
	for name, mayChange := range map[string]bool{"IP tags for good": false, "IP tags that may change": true} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			w.put(id, parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"k8s-azure-service":"default/web","k8s-azure-cluster-name":"another"},
				"properties":{"publicIPAddressVersion":"IPv4","publicIPAllocationMethod":"Static","ipAddress":"20.9.0.1"}}`))
			s := service("web", tcp(80, 30080))
			s.Annotations = map[string]string{key.PublicIPName.Name: "theirs", key.IPTags.Name: "RoutingPreference=Internet",
				key.PublicIPTags.Name: "team=x"}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: s}}}
			in.Config.IPTagsMayChange = mayChange
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, asked := range []string{key.IPTags.Name, key.PublicIPTags.Name} {
				if !slices.ContainsFunc(rounds[0].problems, func(p plan.Problem) bool {
					return p.Warning && p.Reason == problem.Unheeded && strings.Contains(p.Message, asked)
				}) {
					t.Errorf("%s is not reported: %v", asked, rounds[0].problems)
				}
			}
			in.Have = w.snapshot()
			if status, err := loadbalancer.Status(in); err != nil || len(status["default/web"]) != 1 ||
				status["default/web"][0].IP != "20.9.0.1" {
				t.Errorf("status %v, %v", status, err)
			}
			in.Services[0].Gone = true
			gone, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range append(rounds, gone...) {
				for _, step := range r.plan.Steps {
					if step.ID.Equal(id) {
						t.Errorf("it is written: %v", r.plan)
					}
				}
			}
		})
	}
}

// TestIPv6OnlyAmongSeveralIsReported checks that an IPv6-only Service gets exactly that problem where no load balancer
// has IPv4 yet. It does not get the problem that there is no room for it.
func TestIPv6OnlyAmongSeveralIsReported(t *testing.T) {
	w := newSubscription(2)
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true}
	two(&in.Config)
	s := service("web", tcp(80, 30080))
	s.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol}
	in.Services = []loadbalancer.Service{{Service: s}}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if found := rounds[0].problems; len(found) != 1 || found[0].Reason != problem.Family {
		t.Errorf("found %v", found)
	}
}

// TestProbesOfOddServices checks what blocks a probe that gets no answer.
func TestProbesOfOddServices(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*v1.Service)
		probes  string // as "name:protocol/port"
		refused string
	}{
		"policy Local without a port for the nodes' health": {
			edit:   func(s *v1.Service) { s.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal },
			probes: "TCP-80:Tcp/30080",
		},
		"policy Local with it": {
			edit: func(s *v1.Service) {
				s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
			},
			probes: "TCP-32000:Http/32000",
		},
		"policy Local with PROXY protocol of a private link that it has not": {
			edit: func(s *v1.Service) {
				s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
				s.Annotations = map[string]string{key.LinkProxyProtocol.Name: "true"}
			},
			probes: "TCP-32000:Http/32000",
		},
		"policy Local with a port that is to be probed": {
			edit: func(s *v1.Service) {
				s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
				s.Annotations = map[string]string{key.PortProbePort.For(80): "15021"}
			},
			probes: "TCP-80:Tcp/15021",
		},
		"a port that is there for UDP, too": {
			edit: func(s *v1.Service) {
				s.Spec.Ports = []v1.ServicePort{udp(443, 30443), tcp(443, 30444), tcp(80, 30080)}
				s.Annotations = map[string]string{key.PortProbePort.For(80): "443"}
			},
			probes: "TCP-443:Tcp/30444 TCP-80:Tcp/30444",
		},
		"a port that is there for UDP alone": {
			edit: func(s *v1.Service) {
				s.Spec.Ports = []v1.ServicePort{udp(443, 30443), tcp(80, 30080)}
				s.Annotations = map[string]string{key.PortProbePort.For(80): "443"}
			},
			probes: "TCP-80:Tcp/30443",
		},
		"port 0": {
			edit:    func(s *v1.Service) { s.Annotations = map[string]string{key.PortProbePort.For(80): "0"} },
			refused: key.PortProbePort.For(80) + `: "0" is no port`,
		},
		"port 65535": {
			edit:   func(s *v1.Service) { s.Annotations = map[string]string{key.PortProbePort.For(80): "65535"} },
			probes: "TCP-80:Tcp/65535",
		},
		"port 65536": {
			edit:    func(s *v1.Service) { s.Annotations = map[string]string{key.PortProbePort.For(80): "65536"} },
			refused: key.PortProbePort.For(80) + `: "65536" is no port`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("web", tcp(80, 30080))
			c.edit(s)
			rounds, err := w.commit(loadbalancer.Input{Config: config(), Nodes: machines(2),
				Services: []loadbalancer.Service{{Service: s}}})
			if err != nil {
				t.Fatal(err)
			}
			refusals := slices.DeleteFunc(slices.Clone(rounds[0].problems), func(p plan.Problem) bool { return p.Warning })
			if reported := fmt.Sprint(refusals); c.refused == "" && len(refusals) > 0 || !strings.Contains(reported, c.refused) {
				t.Errorf("found %v", reported)
			}
			var probes []string
			for _, p := range children(sub(w.docs[azure.ID(lbID).Key()], "properties"), "probes") {
				probes = append(probes,
					fmt.Sprintf("%s:%v/%v", strings.TrimPrefix(nameOf(p), base(s)+"-"), at(p, "properties", "protocol"),
						sub(p, "properties")["port"]))
			}
			if got := strings.Join(probes, " "); got != c.probes {
				t.Errorf("probes are %q, want %q", got, c.probes)
			}
		})
	}
}

// TestTheLastSecurityRuleFits checks Azure's limit of 1,000 security rules. The last rule fits. One more is refused until
// another Service goes, which may be in the same commit.
func TestTheLastSecurityRuleFits(t *testing.T) {
	w := newSubscription(2) // with one rule
	w.trusting = true
	group := w.docs[azure.ID(nsgID).Key()]
	rules := sub(group, "properties")["securityRules"].([]any)
	for i := len(rules); i < 999; i++ {
		one := parse(string(text(rules[0])))
		one["name"] = fmt.Sprintf("theirs-%d", i)
		sub(one, "properties")["priority"] = 1000 + i
		rules = append(rules, one)
	}
	sub(group, "properties")["securityRules"] = rules
	w.put(nsgID, group)
	fits, late := service("fits", tcp(80, 30080)), service("late", tcp(81, 30081))
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	for _, c := range []struct {
		service  *v1.Service
		services []loadbalancer.Service
		refused  bool
	}{
		{fits, []loadbalancer.Service{{Service: fits}}, false},
		{late, []loadbalancer.Service{{Service: fits}, {Service: late}}, true},
		{late, []loadbalancer.Service{{Service: fits, Gone: true}, {Service: late}}, false},
	} {
		in.Services = c.services
		rounds, err := w.commit(in)
		if err != nil {
			t.Fatal(err)
		}
		found := rounds[len(rounds)-1].problems
		if c.refused != (len(found) == 1 && found[0].Reason == problem.Limit) || !c.refused && len(found) > 0 {
			t.Errorf("%s: found %v", c.service.Name, found)
		}
		if n := len(children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules")); n != 1000 {
			t.Errorf("%s: there are %d rules", c.service.Name, n)
		}
	}
}

// TestNeedsOfOtherServicesAtNodesAreNotReported checks that what another Service needs at the nodes'
// addresses is not reported as unused.
func TestNeedsOfOtherServicesAtNodesAreNotReported(t *testing.T) {
	w := newSubscription(2)
	near, web := service("near", tcp(80, 30080)), service("web", tcp(81, 30081))
	near.Annotations = map[string]string{key.DisableFloatingIP.Name: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: near}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Services, in.Others = []loadbalancer.Service{{Service: web}}, []*v1.Service{near}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rounds {
		if len(r.problems) > 0 {
			t.Errorf("found %v", r.problems)
		}
	}
}

// TestANameThatIsNoServicesIsNotLeft checks that a foreign frontend without a Service in its name is
// no leftover, though its name has the same length and beginning.
func TestANameThatIsNoServicesIsNotLeft(t *testing.T) {
	w := newSubscription(2)
	web := service("web", tcp(80, 30080))
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	lb := w.docs[azure.ID(lbID).Key()]
	frontends := sub(lb, "properties")["frontendIPConfigurations"].([]any)
	one := parse(string(text(frontends[0])))
	one["name"] = "applicationgatewayoftheteamshops"
	delete(one, "id")
	sub(lb, "properties")["frontendIPConfigurations"] = append(frontends, one)
	w.put(lbID, lb)
	if got := left(t, w, web); len(got) != 1 || !strings.Contains(got[0], "security-rules") {
		t.Errorf("left is %v", got)
	}
}

// TestADenialAtNodesIsNotKeptForADenialElsewhere checks that a denial at the nodes goes with the Service that asked for
// packets to arrive there. Another Service wants everything else denied at its own address, and its IPv6 packets arrive
// at the nodes.
func TestADenialAtNodesIsNotKeptForADenialElsewhere(t *testing.T) {
	w := newSubscription(2)
	goes, stays := service("goes", tcp(80, 30080)), service("stays", tcp(81, 30081))
	for _, s := range []*v1.Service{goes, stays} {
		s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
		s.Annotations = map[string]string{key.Internal.Name: "true", key.DenyAllElse.Name: "true",
			key.AllowedIPRanges.Name: "10.9.0.0/16,fd09::/64"}
	}
	goes.Annotations[key.DisableFloatingIP.Name] = "true"
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: goes}, {Service: stays}}}
	in.Config.PoolByIP = true
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil {
		t.Fatal(err)
	}
	stays.Status.LoadBalancer.Ingress = status["default/stays"]
	in.Services, in.Others = []loadbalancer.Service{{Service: goes, Gone: true}}, []*v1.Service{stays}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if got, want := ruledTo(w, "Deny"), []string{stays.Status.LoadBalancer.Ingress[0].IP}; !slices.Equal(got, want) {
		t.Errorf("denied is %v, want %v", got, want)
	}
}

// TestALabelsOwnerLeavesItsTag checks the tag that says which Service named a public IP. It goes with that Service, also
// where unwanted tags are removed. Then the remaining Service may name the public IP.
func TestALabelsOwnerLeavesItsTag(t *testing.T) {
	for name, system := range map[string][]string{"no system tags": nil, "system tags": {"cost"}, "system tags like kaz's": {"k8s-azure"}} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			goes, stays := service("goes", tcp(80, 30080)), service("stays", tcp(81, 30081))
			stays.Annotations = map[string]string{key.PublicIPName.Name: "kubernetes-" + base(goes)}
			goes.Annotations = map[string]string{key.DNSLabel.Name: "first"}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
				Services: []loadbalancer.Service{{Service: goes}}}
			in.Config.SystemTags = system
			commit := func(services ...loadbalancer.Service) {
				t.Helper()
				in.Services = services
				rounds, err := w.commit(in)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range rounds[len(rounds)-1].problems {
					if !p.Warning {
						t.Errorf("%v", p)
					}
				}
			}
			commit(loadbalancer.Service{Service: goes})
			commit(loadbalancer.Service{Service: goes}, loadbalancer.Service{Service: stays})
			commit(loadbalancer.Service{Service: goes, Gone: true}, loadbalancer.Service{Service: stays})
			stays.Annotations = with(stays.Annotations, key.DNSLabel.Name, "second")
			commit(loadbalancer.Service{Service: stays})
			ip := w.docs[azure.ID(network+"publicIPAddresses/kubernetes-"+base(goes)).Key()]
			if label, owner := at(ip, "properties", "dnsSettings", "domainNameLabel"),
				at(ip, "tags", "k8s-azure-dns-label-service"); label != "second" || owner != "default/stays" {
				t.Errorf("it is named %q by %q", label, owner)
			}
		})
	}
}

// TestASharedPublicIPKeepsItsFamily checks that a shared public IP is not recreated for a Service that asks for another
// family. That Service is refused. The other Services keep their address, whether they have a rule there or not.
func TestASharedPublicIPKeepsItsFamily(t *testing.T) {
	for name, annotations := range map[string][]string{
		"with a rule":    nil,
		"without a rule": {key.NoRule.For(81), "true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			own, guest, near := service("own", tcp(80, 30080)), service("guest", tcp(81, 30081)), service("near", tcp(82, 30082))
			guest.Annotations = with(map[string]string{key.PublicIPName.Name: "kubernetes-" + base(own)}, annotations...)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
				Services: []loadbalancer.Service{{Service: own}, {Service: near}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			in.Services = append(in.Services, loadbalancer.Service{Service: guest})
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			own.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol}
			in.Services, in.Others = []loadbalancer.Service{{Service: own}}, []*v1.Service{guest, near}
			rounds, err := w.commit(in)
			if err != nil || writes(rounds) > 0 {
				t.Errorf("%v, %v", err, rounds[0].plan)
			}
			if found := rounds[0].problems; len(found) != 1 || found[0].Warning || found[0].Reason != problem.Address ||
				!strings.Contains(found[0].Message, "has IPv4") {
				t.Errorf("found %v", found)
			}
		})
	}
}

// TestTheLongestNameOfAnOwnPool checks that the name of a Service's own pool may have up to 80 characters.
func TestTheLongestNameOfAnOwnPool(t *testing.T) {
	for length, refused := range map[int]bool{80: false, 81: true} {
		w := newSubscription(2)
		s := service(strings.Repeat("n", length-len("default-")), tcp(80, 30080))
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
		in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Services: []loadbalancer.Service{{Service: s}},
			Endpoints: map[string][]string{}}
		two(&in.Config)
		rounds, err := w.commit(in)
		if err != nil {
			t.Fatal(err)
		}
		if found := rounds[0].problems; refused != (len(found) == 1 && !found[0].Warning &&
			strings.Contains(found[0].Message, "81 characters")) || !refused && len(found) > 0 {
			t.Errorf("%d characters: found %v", length, found)
		}
	}
}

// TestAPoolOfInterfacesWithAddressesStays checks a pool of network interfaces where Azure shows their addresses, too. It
// counts as a pool of interfaces and is not emptied.
func TestAPoolOfInterfacesWithAddressesStays(t *testing.T) {
	w := newSubscription(2)
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	lb := w.docs[azure.ID(lbID).Key()]
	pool := children(sub(lb, "properties"), "backendAddressPools")[0]
	sub(pool, "properties")["loadBalancerBackendAddresses"] = parse(`{"all":[
		{"name":"one","properties":{"ipAddress":"10.0.0.4","networkInterfaceIPConfiguration":{"id":"` + vmss + `/virtualMachines/0/networkInterfaces/nic/ipConfigurations/ipconfig"}}},
		{"name":"two","properties":{"ipAddress":"10.0.0.5","networkInterfaceIPConfiguration":{"id":"` + vmss +
		`/virtualMachines/1/networkInterfaces/nic/ipConfigurations/ipconfig"}}}]}`)["all"]
	w.put(lbID, lb)
	if rounds, err := w.commit(in); err != nil || writes(rounds) > 0 {
		t.Errorf("%v, %v", err, rounds[0].plan)
	}
}

// TestTheLastPrivateLinkMayBeShared checks two Services at one address with one private link service. It counts once
// among the eight that a load balancer may have.
func TestTheLastPrivateLinkMayBeShared(t *testing.T) {
	w := newSubscription(2)
	linked := map[string]string{key.Internal.Name: "true", key.LinkCreate.Name: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	for i := range 7 {
		s := service(fmt.Sprintf("a%d", i), tcp(80, int32(30080+i)))
		s.Annotations = linked
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		s := service(fmt.Sprintf("b%d", i), tcp(int32(80+i), int32(31080+i)))
		s.Annotations = with(linked, key.IPv4.Name, "10.0.77.1")
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	rounds, err := w.commit(in)
	if err != nil || len(rounds[0].problems) > 0 {
		t.Errorf("%v, found %v", err, rounds[0].problems)
	}
	in.Have = w.snapshot()
	if links := in.Have.List("", "Microsoft.Network/privateLinkServices"); len(links) != 8 {
		t.Errorf("there are %d private link services", len(links))
	}
}

// TestAPublicIPThatIsHeldIsNotMadeAnew checks that a public IP is not recreated if another Service comes to it, or a
// foreign outbound rule uses its frontend. Azure would refuse because of the rule. A Service with other IP tags is served
// and gets a warning. It cannot have an address of another family.
func TestAPublicIPThatIsHeldIsNotMadeAnew(t *testing.T) {
	for name, c := range map[string]struct {
		edit    func(*v1.Service)
		comes   bool // another Service, instead of the outbound rule
		refused bool
		wants   string
	}{
		"IP tags of an address that another comes to": {
			edit:  func(s *v1.Service) { s.Annotations = map[string]string{key.IPTags.Name: "RoutingPreference=Internet"} },
			comes: true, wants: key.IPTags.Name,
		},
		"another family where another comes": {edit: func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol} },
			comes: true, refused: true, wants: "has IPv4"},
		"IP tags": {edit: func(s *v1.Service) { s.Annotations = map[string]string{key.IPTags.Name: "RoutingPreference=Internet"} },
			wants: key.IPTags.Name},
		"another family": {edit: func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol} },
			refused: true, wants: "has IPv4"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			web, near := service("web", tcp(80, 30080)), service("near", tcp(81, 30081))
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
				Services: []loadbalancer.Service{{Service: web}, {Service: near}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			before := at(w.docs[azure.ID(network+"publicIPAddresses/kubernetes-"+base(web)).Key()], "properties", "ipAddress")
			holder := `outbound rule "theirs"`
			if c.comes {
				guest := service("guest", tcp(82, 30082))
				guest.Annotations = map[string]string{key.PublicIPName.Name: "kubernetes-" + base(web)}
				in.Services = append(in.Services, loadbalancer.Service{Service: guest})
				holder = "Service default/guest"
			} else {
				lb := w.docs[azure.ID(lbID).Key()]
				sub(lb, "properties")["outboundRules"] = []any{parse(`{"name":"theirs","properties":{"protocol":"All","backendAddressPool":{"id":"` + lbID + `/backendAddressPools/kubernetes"},
					"frontendIPConfigurations":[{"id":"` + lbID + `/frontendIPConfigurations/` + base(web) + `"}]}}`)}
				w.put(lbID, lb)
			}
			c.edit(web)
			rounds, err := w.commit(in)
			if err != nil || !c.comes && writes(rounds) > 0 {
				t.Errorf("%v, %v", err, rounds[0].plan)
			}
			if after := at(w.docs[azure.ID(network+"publicIPAddresses/kubernetes-"+base(web)).Key()], "properties",
				"ipAddress"); after != before {
				t.Errorf("the address was %v and is %v", before, after)
			}
			found := rounds[0].problems
			if len(found) != 1 || found[0].Warning == c.refused || found[0].Object != "default/web" {
				t.Fatalf("found %v", found)
			}
			for _, want := range []string{c.wants, holder, "allowed "} {
				if !strings.Contains(found[0].Message, want) {
					t.Errorf("got %q, and not %q", found[0].Message, want)
				}
			}
		})
	}
}

// TestForeignPrivateLinkKeepsPoolsOfInterfaces checks that a foreign private link service in front of
// a load balancer keeps its pools of interfaces as a managed one does.
func TestForeignPrivateLinkKeepsPoolsOfInterfaces(t *testing.T) {
	w := newSubscription(2)
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{key.Internal.Name: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	w.put(azure.ID(network+"privateLinkServices/theirs"),
		parse(`{"location":"westeurope","properties":{"loadBalancerFrontendIpConfigurations":[{"id":"`+innerID+
			`/frontendIPConfigurations/`+base(web)+`"}],
		"ipConfigurations":[{"name":"one","properties":{"primary":true,"privateIPAllocationMethod":"Dynamic","subnet":{"id":"`+vnetID+
			`/subnets/n"}}}]}}`))
	in.Config.PoolByIP = true
	if rounds, err := w.commit(in); err != nil || writes(rounds) > 0 {
		t.Errorf("%v, %v", err, rounds[0].plan)
	}
}

// TestAPrivateLinkHasNoNodesAddress checks that a private link service cannot have the address of a node. No Service can
// have it.
func TestAPrivateLinkHasNoNodesAddress(t *testing.T) {
	for address, refused := range map[string]bool{"10.0.0.4": true, "10.0.0.77": false} {
		w := newSubscription(2)
		web := service("web", tcp(80, 30080))
		web.Annotations = map[string]string{key.Internal.Name: "true", key.LinkCreate.Name: "true", key.LinkAddresses.Name: address}
		in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
			Services: []loadbalancer.Service{{Service: web}}}
		rounds, err := w.commit(in)
		if err != nil {
			t.Fatal(err)
		}
		found := rounds[0].problems
		if refused != (len(found) == 1 && !found[0].Warning && strings.Contains(found[0].Message, "in use by a node")) || !refused &&
			len(found) > 0 {
			t.Errorf("%s: found %v", address, found)
		}
	}
}

// TestAnInternalFrontendKeepsItsZones checks that an internal frontend keeps its zones, also if it has none, whatever
// address it gets. Azure changes no zones of a frontend.
func TestAnInternalFrontendKeepsItsZones(t *testing.T) {
	w := newSubscription(2)
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{key.Internal.Name: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	in.Config.Zones = nil
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Config.Zones = []string{"1", "2", "3"}
	web.Annotations = with(web.Annotations, key.IPv4.Name, "10.0.77.1")
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	fe := children(sub(w.docs[azure.ID(innerID).Key()], "properties"), "frontendIPConfigurations")[0]
	if at(fe, "properties", "privateIPAddress") != "10.0.77.1" || fe["zones"] != nil {
		t.Errorf("the frontend is %v", fe)
	}
}

// TestSharersOfAPrivateAddressChangeItTogether checks that two Services at one private address get another address
// together, in one commit.
func TestSharersOfAPrivateAddressChangeItTogether(t *testing.T) {
	w := newSubscription(2)
	own, guest := service("own", tcp(80, 30080)), service("guest", tcp(81, 30081))
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: own}, {Service: guest}}}
	for _, address := range []string{"10.0.77.1", "10.0.77.2"} {
		for _, s := range []*v1.Service{own, guest} {
			s.Annotations = map[string]string{key.Internal.Name: "true", key.IPv4.Name: address}
		}
		rounds, err := w.commit(in)
		if err != nil || len(rounds[0].problems) > 0 {
			t.Fatalf("%v, found %v", err, rounds[0].problems)
		}
		in.Have = w.snapshot()
		status, err := loadbalancer.Status(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*v1.Service{own, guest} {
			if got := status["default/"+s.Name]; len(got) != 1 || got[0].IP != address {
				t.Errorf("%s has %v, want %s", s.Name, got, address)
			}
			s.Status.LoadBalancer.Ingress = status["default/"+s.Name]
		}
	}
}

// TestAFrontendWithoutRulesOutlivesItsGuest checks that a frontend stays when a guest leaves it, though its owner has no
// rule at the moment.
func TestAFrontendWithoutRulesOutlivesItsGuest(t *testing.T) {
	for name, internal := range map[string]bool{"internal": true, "external": false} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			own, guest, near := service("own", tcp(80, 30080)), service("guest", tcp(81, 30081)), service("near", tcp(82, 30082))
			own.Annotations = map[string]string{key.NoRule.For(80): "true", key.IPv4.Name: "10.0.77.1", key.Internal.Name: "true"}
			guest.Annotations = map[string]string{key.Internal.Name: "true", key.IPv4.Name: "10.0.77.1"}
			at := innerID
			if !internal {
				at = lbID
				own.Annotations = map[string]string{key.NoRule.For(80): "true"}
				guest.Annotations = map[string]string{key.PublicIPName.Name: "kubernetes-" + base(own)}
			}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
			for _, s := range []*v1.Service{own, near, guest} {
				in.Services = append(in.Services, loadbalancer.Service{Service: s})
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
			}
			in.Services, in.Others = []loadbalancer.Service{{Service: guest, Gone: true}}, []*v1.Service{own, near}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(children(sub(w.docs[azure.ID(at).Key()], "properties"), "frontendIPConfigurations"),
				func(fe object) bool { return nameOf(fe) == base(own) }) {
				t.Error("its frontend is gone")
			}
		})
	}
}

// TestServicesExchangeTheirKinds checks two Services that exchange their kinds in one commit. The two load balancers
// cannot both wait for each other.
func TestServicesExchangeTheirKinds(t *testing.T) {
	w := newSubscription(2)
	a, b := service("a", tcp(80, 30080)), service("b", tcp(81, 30081))
	inner := map[string]string{key.Internal.Name: "true"}
	b.Annotations = inner
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: a}, {Service: b}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	a.Annotations, b.Annotations = inner, nil
	rounds, err := w.commit(in)
	if err != nil || len(rounds[0].problems) > 0 {
		t.Fatalf("%v, found %v", err, rounds[0].problems)
	}
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil || len(status["default/a"]) != 1 || len(status["default/b"]) != 1 ||
		!strings.HasPrefix(status["default/a"][0].IP, "10.") || strings.HasPrefix(status["default/b"][0].IP, "10.") {
		t.Errorf("%v, status %v", err, status)
	}
}

// TestAnotherClustersPrivateLinkStays checks that a private link service without a tag of this cluster
// stays, though it names a Service of that name.
func TestAnotherClustersPrivateLinkStays(t *testing.T) {
	for name, tags := range map[string]string{
		"another cluster's": `"k8s-azure-cluster-name":"another","k8s-azure-owner-service":"default/web"`,
		"no cluster's":      `"k8s-azure-owner-service":"default/web"`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			web := service("web", tcp(80, 30080))
			web.Annotations = map[string]string{key.Internal.Name: "true"}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			id := azure.ID(network + "privateLinkServices/theirs")
			w.put(id, parse(`{"location":"westeurope","tags":{`+tags+`},"properties":{
				"loadBalancerFrontendIpConfigurations":[{"id":"`+network+`loadBalancers/theirs/frontendIPConfigurations/one"}],
				"ipConfigurations":[{"name":"one","properties":{"primary":true,"privateIPAllocationMethod":"Dynamic","subnet":{"id":"`+vnetID+`/subnets/n"}}}]}}`))
			if rounds, err := w.commit(in); err != nil || writes(rounds) > 0 {
				t.Errorf("%v, %v", err, rounds[0].plan)
			}
			in.Services[0].Gone = true
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if w.docs[id.Key()] == nil {
				t.Error("it is gone")
			}
		})
	}
}

// TestADenialAtAFurtherAddressIsBoths checks that a denial of two Services at one further address stays when one of them
// goes. This also holds if their packets arrive at the nodes' own addresses.
func TestADenialAtAFurtherAddressIsBoths(t *testing.T) {
	w := newSubscription(2)
	goes, stays := service("goes", tcp(80, 30080)), service("stays", tcp(81, 30081))
	for _, s := range []*v1.Service{goes, stays} {
		s.Annotations = map[string]string{
			key.DisableFloatingIP.Name: "true", key.AdditionalIPs.Name: "8.1.1.1", key.DenyAllElse.Name: "true",
			key.AllowedIPRanges.Name: "10.9.0.0/16",
		}
	}
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: goes}, {Service: stays}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	before := ruledTo(w, "Deny")
	if !slices.Contains(before, "8.1.1.1") {
		t.Fatalf("denied is %v", before)
	}
	in.Services, in.Others = []loadbalancer.Service{{Service: goes, Gone: true}}, []*v1.Service{stays}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if after := ruledTo(w, "Deny"); !slices.Equal(after, before) {
		t.Errorf("denied is %v, and was %v", after, before)
	}
}

// TestAPresetLoadBalancerWithoutFrontends checks that a load balancer without frontends, or one that
// does not exist, needs no deletion.
func TestAPresetLoadBalancerWithoutFrontends(t *testing.T) {
	for name, body := range map[string]string{"it is not there": "",
		"it is empty": `{"location":"westeurope","sku":{"name":"Standard"},"properties":{"backendAddressPools":[{"name":"kubernetes"}]}}`} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			if body != "" {
				w.put(lbID, parse(body))
			}
			web := service("web", tcp(80, 30080))
			web.Annotations = map[string]string{key.Internal.Name: "true"}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
			in.Config.PresetExternal = true
			for _, gone := range []bool{false, true} {
				in.Services[0].Gone = gone
				rounds, err := w.commit(in)
				if err != nil || len(rounds[0].problems) > 0 {
					t.Errorf("gone %v: %v, found %v", gone, err, rounds[0].problems)
				}
			}
		})
	}
}

// TestANodeHasTakenAnAddress checks that kaz does not request the former address of an internal Service if a node has it
// by now.
func TestANodeHasTakenAnAddress(t *testing.T) {
	for taken, want := range map[string]string{"10.0.0.4": "10.0.9.1", "10.0.0.77": "10.0.0.77"} {
		w := newSubscription(2)
		web := service("web", tcp(80, 30080))
		web.Annotations = map[string]string{key.Internal.Name: "true"}
		web.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: taken}}
		in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
			Services: []loadbalancer.Service{{Service: web}}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		in.Have = w.snapshot()
		if status, err := loadbalancer.Status(in); err != nil || len(status["default/web"]) != 1 || status["default/web"][0].IP != want {
			t.Errorf("had %s: %v, status %v", taken, err, status)
		}
	}
}

// TestAllPortsAtTheNodesKeepNoOpeningOfOtherServices checks a rule for all ports with packets that arrive at the nodes'
// own addresses. It keeps no node ports of other Services open. It would if the security rules of its own Service were
// not there yet.
func TestAllPortsAtTheNodesKeepNoOpeningOfOtherServices(t *testing.T) {
	for name, c := range map[string]struct {
		annotations []string
		families    []v1.IPFamily
		theirs      []string // openings of the one with all ports
	}{
		"without floating IP": {
			annotations: []string{key.DisableFloatingIP.Name, "true"},
			theirs:      []string{"10.0.0.4:443", "10.0.0.5:443"},
		},
		"IPv6, which does not float": {
			families: []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol},
			theirs:   []string{"10.0.0.9:443", "fd00::4:443", "fd00::5:443"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			all, one := service("all", tcp(443, 30443)), service("one", tcp(80, 30080))
			all.Spec.IPFamilies = c.families
			all.Annotations = with(nil,
				append(c.annotations, key.Internal.Name, "true", key.HAPorts.Name, "true", key.IPv4.Name, "10.0.0.9",
					key.AllowedIPRanges.Name, "11.0.0.0/8,fc00:1::/32")...)
			one.Annotations = with(nil, key.DisableFloatingIP.Name, "true")
			in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
				Services: []loadbalancer.Service{{Service: all}, {Service: one}}}
			in.Config.PoolByIP = true
			brought := func(gone bool, rules int, ours ...string) {
				t.Helper()
				in.Services[len(in.Services)-1].Gone = gone
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
				wanted := slices.Sorted(slices.Values(slices.Concat(ours, c.theirs)))
				if got := ruledTo(w, "Allow"); !slices.Equal(got, wanted) {
					t.Errorf("let in is %v, want %v", got, wanted)
				}
				if got := len(children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules")); got != rules {
					t.Errorf("there are %d rules, want %d", got, rules)
				}
			}
			brought(false, rulesOfOthers(c.families)+1, "10.0.0.4:30080", "10.0.0.5:30080")
			in.Others, in.Services = []*v1.Service{all}, in.Services[1:]
			one.Annotations[key.AllowedIPRanges.Name] = "9.0.0.0/8"
			brought(false, rulesOfOthers(c.families)+1, "10.0.0.4:30080", "10.0.0.5:30080")
			brought(true, rulesOfOthers(c.families))
		})
	}
}

// rulesOfOthers is the user's rule, and one for each family.
func rulesOfOthers(families []v1.IPFamily) int { return 1 + max(1, len(families)) }

// TestAllowedSourcesOfAPortThatTwoServicesHaveAtTheNodes checks two Services that serve all ports at
// the same nodes, with a port in common. Sources that one of them allowed are removed when it changes
// them or is deleted, though the other Service has the port. They stay if the other Service has not
// got what it asks for, because they may be its own.
func TestAllowedSourcesOfAPortThatTwoServicesHaveAtTheNodes(t *testing.T) {
	const old, theirs, next = "9.0.0.0/8", "11.0.0.0/8", "10.9.0.0/16"
	for name, c := range map[string]struct {
		gone  bool
		other func(s *v1.Service) // a change before the commit that no write follows
		want  []string
	}{
		"lets in others": {want: []string{next, theirs}},
		"is gone":        {gone: true, want: []string{theirs}},
		"lets in others, the other is to come": {other: func(s *v1.Service) { s.Annotations[key.AllowedIPRanges.Name] = "12.0.0.0/8" },
			want: []string{next, theirs, old}},
		"is gone, the other's ports are refused": {
			gone: true, want: []string{theirs, old},
			other: func(s *v1.Service) {
				s.Spec.Ports = []v1.ServicePort{tcp(8443, 31443)}
				s.Annotations[key.IdleTimeout.Name] = "soon"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			one, other := service("one", tcp(443, 30443)), service("other", tcp(443, 31443))
			for s, from := range map[*v1.Service]string{one: old, other: theirs} {
				s.Annotations = with(nil, key.DisableFloatingIP.Name, "true", key.Internal.Name, "true", key.HAPorts.Name, "true",
					key.AllowedIPRanges.Name, from)
			}
			in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
				Services: []loadbalancer.Service{{Service: one}, {Service: other}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if c.other != nil {
				c.other(other)
			}
			one.Annotations[key.AllowedIPRanges.Name] = next
			in.Services, in.Others = []loadbalancer.Service{{Service: one, Gone: c.gone}}, []*v1.Service{other}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
				if slices.Equal(manyOf(r, "destinationPortRange", "destinationPortRanges"), []string{"443"}) {
					got = append(got, manyOf(r, "sourceAddressPrefix", "sourceAddressPrefixes")...)
				}
			}
			slices.Sort(got)
			if slices.Sort(c.want); !slices.Equal(got, c.want) {
				t.Errorf("let in is %v, want %v", got, c.want)
			}
		})
	}
}

// TestAllowedSourcesAtNodesIncludeNewNodes checks nodes that come while a Service is refused, or while only others are
// decided. The Service's sources are allowed at the new nodes as at the old ones, because its packets arrive there by
// now.
func TestAllowedSourcesAtNodesIncludeNewNodes(t *testing.T) {
	for name, addresses := range map[string]bool{"pools of interfaces": false, "pools of addresses": true} {
		for state, c := range map[string]struct{ refused, alone, closed bool }{
			"refused":                   {refused: true},
			"refused, and alone":        {refused: true, alone: true},
			"not of the commit":         {},
			"allows no source to nodes": {closed: true},
		} {
			t.Run(name+"/"+state, func(t *testing.T) {
				w := newSubscription(3)
				near, web := service("near", tcp(80, 30080), tcp(443, 30443), udp(53, 30053)), service("web", tcp(81, 30081))
				near.Annotations = with(nil, key.DisableFloatingIP.Name, "true")
				if c.closed {
					near.Annotations[key.DisableSecurityRules.Name] = "true"
				}
				in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
					Services: []loadbalancer.Service{{Service: near}, {Service: web}}}
				in.Config.PoolByIP = addresses
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
				in.Nodes = addressed(machines(3))[1:]
				if c.refused {
					near.Annotations[key.IdleTimeout.Name] = "soon"
				} else {
					in.Services, in.Others = in.Services[1:], []*v1.Service{near}
				}
				if c.alone {
					in.Services, in.Others = in.Services[:1], []*v1.Service{web}
				}
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
				want := []string{"10.0.0.5:30053", "10.0.0.5:30080,30443", "10.0.0.6:30053", "10.0.0.6:30080,30443"}
				if c.closed {
					want = nil
				}
				got := slices.DeleteFunc(ruledTo(w, "Allow"), func(to string) bool { return strings.HasPrefix(to, "20.") })
				if !slices.Equal(got, want) {
					t.Errorf("let in is %v, want %v", got, want)
				}
			})
		}
	}
}

// TestNewAddressesNeedZones checks that a Service that needs a new address is refused while the zones of the region are
// not known. It keeps what it has. Azure adds no zones to an address later. An address in place serves on, unless it
// would be recreated.
func TestNewAddressesNeedZones(t *testing.T) {
	annotate := func(name, value string) func(*subscription, *v1.Service, *loadbalancer.Config) {
		return func(_ *subscription, s *v1.Service, _ *loadbalancer.Config) {
			s.Annotations = with(s.Annotations, name, value)
		}
	}
	for _, c := range []struct {
		name     string
		internal bool
		change   func(*subscription, *v1.Service, *loadbalancer.Config)
		refused  bool
	}{
		{"another port", false, func(_ *subscription, s *v1.Service, _ *loadbalancer.Config) { s.Spec.Ports[0].Port = 81 }, false},
		{"a private address", false, annotate(key.Internal.Name, "true"), true},
		{"a public IP", true, annotate(key.Internal.Name, "false"), true},
		{"other IP tags", false, annotate(key.IPTags.Name, "RoutingPreference=Internet"), true},
		{"another private address", true, annotate(key.IPv4.Name, "10.0.77.1"), false},
		{"a load balancer of the SKU Basic", true, func(w *subscription, _ *v1.Service, _ *loadbalancer.Config) {
			w.docs[azure.ID(innerID).Key()]["sku"] = object{"name": "Basic"}
		}, true},
		{"a private address in an edge zone", false, func(_ *subscription, s *v1.Service, c *loadbalancer.Config) {
			s.Annotations = with(s.Annotations, key.Internal.Name, "true")
			c.EdgeZone = &azure.ExtendedLocation{Name: "microsoftlosangeles1", Type: "EdgeZone"}
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newSubscription(2)
			web := service("web", tcp(80, 30080))
			if c.internal {
				web.Annotations = map[string]string{key.Internal.Name: "true"}
			}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			in.Config.Zones, in.NoZones = nil, errors.New("not now")
			c.change(w, web, &in.Config)
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			found := rounds[0].problems
			if refused := len(found) == 1 && found[0].Reason == problem.Zones && writes(rounds) == 0; refused != c.refused ||
				!refused && len(found) > 0 {
				t.Errorf("found %v, with the plan %v", found, rounds[0].plan)
			}
		})
	}
}
