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

// TestUnusedOpeningsAtNodesAreRemoved checks an allow rule at the nodes' own addresses that no Service needs. It is
// removed though no existing Service is at the nodes, but only if all Services are known.
func TestUnusedOpeningsAtNodesAreRemoved(t *testing.T) {
	for name, complete := range map[string]bool{"all are known": true, "some are known": false} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			near, web := service("near", tcp(80, 30080)), service("web", tcp(81, 30081))
			near.Annotations = map[string]string{key.DisableFloatingIP.Name: "true"}
			in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
				Services: []loadbalancer.Service{{Service: near}, {Service: web}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			lb := w.docs[azure.ID(lbID).Key()]
			for _, kind := range []string{"frontendIPConfigurations", "loadBalancingRules", "probes"} { // deleted by hand
				list := sub(lb, "properties")[kind].([]any)
				sub(lb, "properties")[kind] = slices.DeleteFunc(list,
					func(c any) bool { return strings.HasPrefix(nameOf(c.(object)), base(near)) })
			}
			w.put(lbID, lb)
			in.Services, in.Complete = []loadbalancer.Service{{Service: web}}, complete
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			open := slices.ContainsFunc(ruledTo(w, "Allow"), func(to string) bool { return strings.HasPrefix(to, "10.0.0.") })
			if open == complete {
				t.Errorf("let in is %v", ruledTo(w, "Allow"))
			}
		})
	}
}

// TestAGroupOverItsLimitServesOn checks a security group with more than Azure's default limit, which may have been
// raised. Its Services are served on, and a Service that would add rules is refused.
func TestAGroupOverItsLimitServesOn(t *testing.T) {
	w := newSubscription(2)
	web, late := service("web", tcp(80, 30080)), service("late", tcp(80, 31080))
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	group := w.docs[azure.ID(nsgID).Key()]
	full := children(sub(parse(crowded(4001)), "properties"), "securityRules")[0]
	sub(group, "properties")["securityRules"] = append(sub(group, "properties")["securityRules"].([]any), full)
	w.put(nsgID, group)
	in.Services = append(in.Services, loadbalancer.Service{Service: late})
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if found := rounds[len(rounds)-1].problems; len(found) != 1 || found[0].Object != "default/late" ||
		found[0].Reason != problem.Limit {
		t.Errorf("found %v", found)
	}
}

// TestTheAddressOfAForeignFrontendStays checks that the address of a foreign frontend stays a
// destination of a rule where it was put by hand.
func TestTheAddressOfAForeignFrontendStays(t *testing.T) {
	w := newSubscription(2)
	web, near := service("web", tcp(80, 30080)), service("near", tcp(81, 30081))
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	addForeignParts(w)
	alsoTo(w, "20.99.0.1", "20.99.0.2")
	in.Services = append(in.Services, loadbalancer.Service{Service: near})
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if to := ruledTo(w, "Allow"); !slices.Contains(to, "20.99.0.1:80") || slices.Contains(to, "20.99.0.2:80") {
		t.Errorf("let in is %v", to)
	}
}

// alsoTo adds destinations to the first managed rule.
func alsoTo(w *subscription, addresses ...string) {
	group := w.docs[azure.ID(nsgID).Key()]
	for _, r := range children(sub(group, "properties"), "securityRules") {
		if !strings.HasPrefix(nameOf(r), "k8s-azure-lb_") {
			continue
		}
		p := sub(r, "properties")
		var all []any
		for _, to := range append(destinations(r), addresses...) {
			all = append(all, to)
		}
		delete(p, "destinationAddressPrefix")
		p["destinationAddressPrefixes"] = all
		break
	}
	w.put(nsgID, group)
}

// TestAnOlderControllersRuleIsItsServicesAlone checks that a rule that an older controller wrote for
// one Service goes with a commit of that Service, not of another one.
func TestAnOlderControllersRuleIsItsServicesAlone(t *testing.T) {
	w := newSubscription(2)
	own, web := service("own", tcp(80, 30080)), service("web", tcp(81, 30081))
	group := w.docs[azure.ID(nsgID).Key()]
	name := base(own) + "-TCP-80-Internet"
	sub(group, "properties")["securityRules"] = append(sub(group, "properties")["securityRules"].([]any),
		parse(`{"name":"`+name+`","properties":{"priority":600,"direction":"Inbound","access":"Allow","protocol":"Tcp",
		"sourceAddressPrefix":"Internet","sourcePortRange":"*","destinationAddressPrefix":"20.99.0.1","destinationPortRange":"80"}}`))
	w.put(nsgID, group)
	is := func() bool {
		return slices.ContainsFunc(children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules"),
			func(r object) bool { return nameOf(r) == name })
	}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Others: []*v1.Service{own},
		Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil || !is() {
		t.Errorf("%v, it is there %v", err, is())
	}
	in.Services, in.Others = []loadbalancer.Service{{Service: own}}, []*v1.Service{web}
	if _, err := w.commit(in); err != nil || is() {
		t.Errorf("%v, it is there %v", err, is())
	}
}

// TestAGuestLeavesALabelledPublicIP checks a guest that leaves a public IP, whether it had a rule there or not. The label
// that the owner has set stays. The guest's name in the tag goes: else the public IP would never go.
func TestAGuestLeavesALabelledPublicIP(t *testing.T) {
	for name, annotations := range map[string][]string{"with a rule": nil, "without a rule": {key.NoRule.For(81), "true"}} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			own, guest := service("own", tcp(80, 30080)), service("guest", tcp(81, 30081))
			own.Annotations = map[string]string{key.DNSLabel.Name: "shop"}
			guest.Annotations = with(map[string]string{key.PublicIPName.Name: "kubernetes-" + base(own)}, annotations...)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
			for _, s := range []*v1.Service{own, guest} {
				in.Services = append(in.Services, loadbalancer.Service{Service: s})
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
			}
			id := azure.ID(network + "publicIPAddresses/kubernetes-" + base(own))
			if tag := at(w.docs[id.Key()], "tags", "k8s-azure-service"); tag != "default/own,default/guest" {
				t.Fatalf("the tag is %q", tag)
			}
			in.Services, in.Others = []loadbalancer.Service{{Service: guest, Gone: true}}, []*v1.Service{own}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if label, tag := at(w.docs[id.Key()], "properties", "dnsSettings", "domainNameLabel"),
				at(w.docs[id.Key()], "tags", "k8s-azure-service"); label != "shop" || tag != "default/own" {
				t.Errorf("the label is %q, the tag %q", label, tag)
			}
			in.Services, in.Others = []loadbalancer.Service{{Service: own, Gone: true}}, nil
			if _, err := w.commit(in); err != nil || w.docs[id.Key()] != nil {
				t.Errorf("%v, left is %v", err, w.docs[id.Key()])
			}
		})
	}
}

// TestAnOutboundRuleKeepsAllItsFrontends checks that a foreign outbound rule keeps each of the
// frontends that it names.
func TestAnOutboundRuleKeepsAllItsFrontends(t *testing.T) {
	w := newSubscription(2)
	own, web := service("own", tcp(80, 30080)), service("web", tcp(81, 30081))
	own.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: own}, {Service: web}}}
	in.Config.PoolByIP = true
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	lb := w.docs[azure.ID(lbID).Key()]
	fe := lbID + `/frontendIPConfigurations/` + base(own)
	sub(lb, "properties")["outboundRules"] = []any{parse(`{"name":"theirs","properties":{"protocol":"All","backendAddressPool":{"id":"` +
		lbID + `/backendAddressPools/kubernetes"},
		"frontendIPConfigurations":[{"id":"` + fe + `"},{"id":"` + fe + `-IPv6"}]}}`)}
	w.put(lbID, lb)
	in.Services, in.Others = []loadbalancer.Service{{Service: own, Gone: true}}, []*v1.Service{web}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, c := range children(sub(w.docs[azure.ID(lbID).Key()], "properties"), "frontendIPConfigurations") {
		left = append(left, strings.TrimPrefix(nameOf(c), base(own)))
	}
	if !slices.Contains(left, "") || !slices.Contains(left, "-IPv6") {
		t.Errorf("left are %v", left)
	}
}

// TestAForeignFrontendOutlivesItsGuest checks that a foreign frontend stays when the last Service
// leaves that shared it.
func TestAForeignFrontendOutlivesItsGuest(t *testing.T) {
	w := newSubscription(2)
	web, guest := service("web", tcp(80, 30080)), service("guest", tcp(81, 30081))
	guest.Annotations = map[string]string{key.PublicIPName.Name: "theirs"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	w.put(network+"publicIPAddresses/theirs", parse(ownIP(network+"publicIPAddresses/theirs", "20.99.0.1")))
	lb := w.docs[azure.ID(lbID).Key()]
	sub(lb, "properties")["frontendIPConfigurations"] = append(sub(lb, "properties")["frontendIPConfigurations"].([]any),
		parse(`{"name":"theirs","properties":{"publicIPAddress":{"id":"`+network+`publicIPAddresses/theirs"}}}`))
	w.put(lbID, lb)
	in.Services = append(in.Services, loadbalancer.Service{Service: guest})
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Services[1].Gone = true
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	p := sub(w.docs[azure.ID(lbID).Key()], "properties")
	if !slices.ContainsFunc(children(p, "frontendIPConfigurations"), func(c object) bool { return nameOf(c) == "theirs" }) {
		t.Error("it is gone")
	}
	if slices.ContainsFunc(children(p, "loadBalancingRules"), func(c object) bool { return strings.HasPrefix(nameOf(c), base(guest)) }) {
		t.Error("the guest's rule is there")
	}
}

// TestPortsTakenByForeignRules checks that a foreign NAT pool at a frontend takes its ports from the
// first to the last.
func TestPortsTakenByForeignRules(t *testing.T) {
	for port, refused := range map[int32]bool{999: false, 1000: true, 1010: true, 1011: false} {
		w := newSubscription(2)
		web := service("web", tcp(80, 30080))
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		lb := w.docs[azure.ID(lbID).Key()]
		sub(lb, "properties")["inboundNatPools"] = []any{parse(`{"name":"theirs","properties":{"protocol":"Tcp","frontendPortRangeStart":1000,"frontendPortRangeEnd":1010,"backendPort":22,
			"frontendIPConfiguration":{"id":"` + lbID + `/frontendIPConfigurations/` + base(web) + `"}}}`)}
		w.put(lbID, lb)
		web.Spec.Ports = append(web.Spec.Ports, tcp(port, 31000))
		rounds, err := w.commit(in)
		if err != nil {
			t.Fatal(err)
		}
		found := rounds[0].problems
		if refused != (len(found) == 1 && found[0].Reason == problem.Conflict && !found[0].Warning) || !refused &&
			len(found) > 0 {
			t.Errorf("port %d: found %v", port, found)
		}
	}
}

// TestARuleBeforeTheManagedOnesIsForeign checks that a rule before the priorities of managed ones is
// foreign, whatever its name is.
func TestARuleBeforeTheManagedOnesIsForeign(t *testing.T) {
	for priority, stays := range map[int]bool{499: true, 500: false} {
		w := newSubscription(2)
		group := w.docs[azure.ID(nsgID).Key()]
		sub(group, "properties")["securityRules"] = append(sub(group, "properties")["securityRules"].([]any),
			parse(fmt.Sprintf(`{"name":"k8s-azure-lb_mine","properties":{"priority":%d,
			"direction":"Inbound","access":"Allow","protocol":"Tcp","sourceAddressPrefix":"*","sourcePortRange":"*","destinationAddressPrefix":"20.99.0.1","destinationPortRange":"80"}}`, priority)))
		w.put(nsgID, group)
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
			Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		is := slices.ContainsFunc(children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules"),
			func(r object) bool { return nameOf(r) == "k8s-azure-lb_mine" })
		if is != stays {
			t.Errorf("priority %d: it is there %v", priority, is)
		}
	}
}

// TestAllPortsStayOpenAtNodes checks that openings of a Service for all ports at the nodes stay when another Service
// leaves the nodes.
func TestAllPortsStayOpenAtNodes(t *testing.T) {
	w := newSubscription(2)
	all, goes := service("all", tcp(80, 30080)), service("goes", tcp(80, 31080))
	all.Annotations = map[string]string{key.Internal.Name: "true", key.HAPorts.Name: "true", key.DisableFloatingIP.Name: "true",
		key.AllowedIPRanges.Name: "10.9.0.0/16"}
	goes.Annotations = map[string]string{key.DisableFloatingIP.Name: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: all}, {Service: goes}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Services, in.Others = []loadbalancer.Service{{Service: goes, Gone: true}}, []*v1.Service{all}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"10.0.0.4:80", "10.0.0.5:80"} {
		if to := ruledTo(w, "Allow"); !slices.Contains(to, node) {
			t.Errorf("let in is %v, want %s", to, node)
		}
	}
}

// TestAnAddressOfAnotherGroupIsNotTaken checks that an address that a Service names is looked for in its own resource
// group only. A public IP in another group may be reserved for something else.
func TestAnAddressOfAnotherGroupIsNotTaken(t *testing.T) {
	w := newSubscription(2)
	w.put(otherGroup+"publicIPAddresses/theirs", parse(ownIP(otherGroup+"publicIPAddresses/theirs", "20.99.0.1")))
	far, web := service("far", tcp(80, 30080)), service("web", tcp(81, 30081))
	far.Annotations = map[string]string{key.PublicIPGroup.Name: "other"}
	web.Annotations = map[string]string{key.IPv4.Name: "20.99.0.1"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: far}, {Service: web}}}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if found := rounds[0].problems; len(found) != 1 || found[0].Object != "default/web" ||
		found[0].Reason != problem.Address || found[0].Warning {
		t.Errorf("found %v", found)
	}
}

// TestADenialWaitsForItsAddress checks a security group that denies all other traffic at an address. It is written when
// the address is known, though no source is allowed there.
func TestADenialWaitsForItsAddress(t *testing.T) {
	w := newSubscription(2)
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{key.Internal.Name: "true", key.AllowedIPRanges.Name: "10.0.0.1/8"} // no range
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true, Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil || len(status["default/web"]) != 1 || !slices.Equal(ruledTo(w, "Deny"), []string{status["default/web"][0].IP}) {
		t.Errorf("%v, status %v, denied is %v", err, status, ruledTo(w, "Deny"))
	}
}

// TestAMachineThatGoesIsNotWritten checks that a machine that is being deleted is not written when its load balancer
// goes. Azure would refuse it. The same holds for the network interface of a machine that is in no scale set.
func TestAMachineThatGoesIsNotWritten(t *testing.T) {
	for _, set := range []string{"np", ""} {
		for state, written := range map[string]bool{"Succeeded": true, "Deleting": false} {
			w := newSubscription(0)
			one, goes := machine{set: set}, machine{set: set, n: 1}
			in := loadbalancer.Input{Config: config(), Complete: true,
				Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
			for _, m := range []machine{one, goes} {
				m.furnish(w)
				in.Nodes = append(in.Nodes, m.node())
			}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			id := goes.id()
			if !goes.uniform() {
				id = goes.nic()
			}
			sub(w.docs[id.Key()], "properties")["provisioningState"] = state
			in.Services[0].Gone = true
			r, err := w.decide(in)
			if err != nil {
				t.Fatal(err)
			}
			if was := slices.ContainsFunc(r.plan.Steps, func(s plan.Step) bool { return s.ID.Equal(id) }); was != written {
				t.Errorf("%s, %s: it is written %v", id, state, was)
			}
		}
	}
}

// TestARuleNamesItsPoolAlike checks a rule in which Azure repeats the pool. Both fields must name the same pool, also
// when the rule changes to another pool.
func TestARuleNamesItsPoolAlike(t *testing.T) {
	w := newSubscription(2)
	web := service("web", tcp(80, 30080))
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: web}}, Endpoints: map[string][]string{"default/web": {"np000000"}}}
	two(&in.Config)
	for i, pool := range []string{"kubernetes", "default-web", "kubernetes"} {
		web.Spec.ExternalTrafficPolicy, web.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyCluster, 0
		if i == 1 {
			web.Spec.ExternalTrafficPolicy, web.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
		}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		for _, r := range children(sub(w.docs[azure.ID(lbID).Key()], "properties"), "loadBalancingRules") {
			p := sub(r, "properties")
			one, all := azure.ID(at(p, "backendAddressPool", "id")), children(p, "backendAddressPools")
			if one.Name() != pool || len(all) != 1 || !azure.ID(at(all[0], "id")).Equal(one) {
				t.Errorf("the pool is %s, want %s, and the pools are %v", one, pool, all)
			}
		}
	}
}
