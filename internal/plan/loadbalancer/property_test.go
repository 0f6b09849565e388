package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

var names = []string{"a", "b", "c", "d", "e"}

func genService(t *rapid.T, name string) *v1.Service {
	var ports []v1.ServicePort
	for _, p := range rapid.SliceOfNDistinct(rapid.Int32Range(80, 84), 1, 3, rapid.ID).Draw(t, "ports") {
		if rapid.Bool().Draw(t, "tcp") {
			ports = append(ports, tcp(p, 30000+p))
		}
		if len(ports) == 0 || rapid.Bool().Draw(t, "udp") {
			ports = append(ports, udp(p, 31000+p))
		}
	}
	s := service(name, ports...)
	if rapid.Bool().Draw(t, "local") {
		s.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = rapid.Int32Range(32000, 32002).Draw(t, "health check port")
	}
	s.Spec.LoadBalancerSourceRanges = rapid.SampledFrom([][]string{nil, {"10.0.0.0/8"}, {"0.0.0.0/0"}, {"10.0.0.1/8"},
		{"10.0.0.0/9", "10.128.0.0/9"}}).Draw(t, "ranges")
	s.Annotations = rapid.SampledFrom([]map[string]string{
		nil,
		{"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "10"},
		{"service.beta.kubernetes.io/azure-allowed-service-tags": "AzureCloud"},
		{"service.beta.kubernetes.io/port_80_no_probe_rule": "true"},
		{"service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges": "true"},
		{"service.beta.kubernetes.io/azure-additional-public-ips": "8.1.1.1"},
		{"service.beta.kubernetes.io/azure-pip-ip-tags": "RoutingPreference=Internet"},
		{"service.beta.kubernetes.io/azure-dns-label-name": "web"},
		{"service.beta.kubernetes.io/azure-pip-prefix-id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/publicIPPrefixes/p"},
		{"service.beta.kubernetes.io/azure-pip-name": "pool"},
		{"service.beta.kubernetes.io/azure-load-balancer-ipv4": "20.200.0.1"},
	}).Draw(t, "annotations")
	s.Annotations = maps.Clone(s.Annotations)
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	if rapid.IntRange(0, 2).Draw(t, "no floating IP") == 0 { // several of them meet at the nodes
		s.Annotations["service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip"] = "true"
	}
	s.Spec.IPFamilies = rapid.SampledFrom([][]v1.IPFamily{nil, nil, {v1.IPv4Protocol}, {v1.IPv4Protocol, v1.IPv6Protocol},
		{v1.IPv6Protocol, v1.IPv4Protocol}, {v1.IPv6Protocol}}).Draw(t, "families")
	if rapid.IntRange(0, 2).Draw(t, "internal") == 0 {
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] = "true"
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-internal-subnet"] = rapid.SampledFrom([]string{"", "",
			"apps"}).Draw(t, "subnet")
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-ipv4"] = rapid.SampledFrom([]string{"", "", "10.0.0.200"}).Draw(t,
			"private address")
		s.Annotations["service.beta.kubernetes.io/azure-pls-create"] = rapid.SampledFrom([]string{"", "", "true"}).Draw(t, "private link")
		s.Annotations["service.beta.kubernetes.io/azure-load-balancer-enable-high-availability-ports"] = rapid.SampledFrom([]string{"",
			"", "true"}).Draw(t, "all ports")
	}
	return s
}

// isInternal reports whether a Service asks for a private address.
func isInternal(s *v1.Service) bool {
	return s.Annotations["service.beta.kubernetes.io/azure-load-balancer-internal"] == "true"
}

// isFixed reports whether a Service asks for packets to arrive at the nodes' own addresses.
func isFixed(s *v1.Service) bool {
	return s.Annotations["service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip"] == "true"
}

// genConfig is a cluster with pools of interfaces, pools of addresses or several load
// balancers.
func genConfig(t *rapid.T) loadbalancer.Config {
	c := config()
	switch rapid.IntRange(0, 3).Draw(t, "kind of cluster") {
	case 1:
		c.PoolByIP = true
	case 2:
		c.PoolByIP = true
		c.Balancers = []loadbalancer.Balancer{
			{Name: "kubernetes", AllowPlacement: true, PrimaryVMSet: "np"},
			{Name: "lb2", AllowPlacement: rapid.Bool().Draw(t, "placement"), PrimaryVMSet: "np2"},
		}
	}
	return c
}

func genCommit(t *rapid.T, c loadbalancer.Config) loadbalancer.Input {
	in := loadbalancer.Input{Config: c, Nodes: addressed(machines(3))}
	if rapid.Bool().Draw(t, "shared probe") {
		in.Config.SharedProbe = &loadbalancer.SharedProbe{Port: 10256, Path: "/healthz"}
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "of") {
		in.Services = append(in.Services, loadbalancer.Service{Service: genService(t, name), Gone: rapid.Bool().Draw(t, "gone")})
		if len(c.Balancers) > 0 && rapid.Bool().Draw(t, "chooses") {
			s := in.Services[len(in.Services)-1]
			s.Annotations["service.beta.kubernetes.io/azure-load-balancer-configurations"] = rapid.SampledFrom([]string{"kubernetes",
				"lb2"}).Draw(t, "load balancer")
			in.Endpoints = map[string][]string{s.Key(): {"np000000"}}
		}
	}
	return in
}

// addressed gives nodes their own addresses, as they have them in their status: one of each
// family.
func addressed(nodes []*v1.Node) []*v1.Node {
	for i, n := range nodes {
		n.Status.Addresses = []v1.NodeAddress{
			{Type: v1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", i+4)},
			{Type: v1.NodeInternalIP, Address: fmt.Sprintf("fd00::%d", i+4)},
		}
	}
	return nodes
}

// addressOf is a node's own address in a family.
func addressOf(n *v1.Node, six bool) string {
	i := slices.IndexFunc(n.Status.Addresses, func(a v1.NodeAddress) bool { return strings.Contains(a.Address, ":") == six })
	return n.Status.Addresses[i].Address
}

// addOwn puts public IPs into the subscription that Services may name.
func addOwn(w *subscription) {
	for _, name := range []string{"n", "apps"} { // what private links need of them stays
		id := azure.ID(vnetID).Child("subnets", name)
		sub(w.docs[id.Key()], "properties")["privateLinkServiceNetworkPolicies"] = "Disabled"
		w.put(id, w.docs[id.Key()])
	}
	w.put(network+"publicIPAddresses/pool",
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.100.0.1"}}`))
	w.put(network+"publicIPAddresses/other",
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.200.0.1"}}`))
}

// addForeign puts into the subscription what others may have in the shared documents.
func addForeign(t *rapid.T, w *subscription) {
	const theirs = network + "publicIPAddresses/theirs"
	w.put(theirs,
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"9.9.9.9"}}`))
	fe := `{"id":"` + lbID + `/frontendIPConfigurations/theirs"}`
	lb := parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"x":"y"},"kind":"odd","properties":{
		"frontendIPConfigurations":[{"name":"theirs","zones":["1"],"properties":{"publicIPAddress":{"id":"` + theirs + `"},"gatewayLoadBalancer":{"id":"/subscriptions/s/g"}}}],
		"backendAddressPools":[{"name":"pool","properties":{"drainPeriodInSeconds":60.5}}],
		"loadBalancingRules":[{"name":"rule","properties":{"protocol":"Tcp","frontendPort":1.0,"backendPort":2,"odd":[{"x":null}],"frontendIPConfiguration":` + fe + `,"probe":{"id":"` + lbID + `/probes/probe"}}}],
		"probes":[{"name":"probe","properties":{"protocol":"Http","port":1,"requestPath":"/","odd":{}}}],
		"outboundRules":[{"name":"aksOutboundRule","properties":{"protocol":"All","frontendIPConfigurations":[` + fe + `]}}],
		"inboundNatRules":[{"name":"nat","properties":{"protocol":"Tcp","frontendPort":22,"frontendIPConfiguration":` + fe + `}}]}}`)
	for _, list := range []string{"loadBalancingRules", "probes", "inboundNatRules"} {
		if rapid.Bool().Draw(t, "no "+list) {
			delete(sub(lb, "properties"), list)
		}
	}
	w.put(lbID, lb)
	nsg := w.docs[azure.ID(nsgID).Key()]
	rules := sub(nsg, "properties")["securityRules"].([]any)
	for i, dst := range rapid.SliceOfN(rapid.SampledFrom([]string{`"destinationAddressPrefix":"20.1.0.2"`,
		`"destinationAddressPrefixes":["20.1.0.3","8.8.8.8"]`, `"destinationAddressPrefix":"*","odd":1`}), 0, 4).Draw(t, "rules") {
		prefix := rapid.SampledFrom([]string{"theirs", "k8s-azure-lb-like"}).Draw(t, "rule name")
		priority := rapid.SampledFrom([]int{100, 300}).Draw(t, "priority") + i
		rules = append(rules,
			parse(fmt.Sprintf(`{"name":"%s-%d","properties":{"priority":%d,"direction":"Inbound","access":"Deny","protocol":"*","sourceAddressPrefix":"*","sourcePortRange":"*","destinationPortRange":"1-9",%s}}`, prefix, i, priority, dst)))
	}
	sub(nsg, "properties")["securityRules"] = rules
	w.put(nsgID, nsg)
}

// foreign is what only its owner may change, as text.
func foreign(w *subscription) map[string]string {
	w.settle()
	out := map[string]string{}
	for _, id := range []string{lbID, nsgID, network + "publicIPAddresses/theirs"} {
		o := parse(string(text(w.docs[azure.ID(id).Key()])))
		for kind, list := range sub(o, "properties") {
			children, _ := list.([]any)
			for _, c := range children {
				name := c.(object)["name"].(string)
				if !ours(name) {
					out[id+"/"+kind+"/"+name] = string(text(c))
				}
			}
			if _, isList := list.([]any); !isList {
				out[id+"/"+kind] = string(text(list))
			}
		}
		delete(o, "properties")
		delete(o, "etag")
		out[id] = string(text(o))
	}
	return out
}

// ours reports whether a sub-resource belongs to one of the Services, to the cluster
// or to the managed rules.
func ours(name string) bool {
	if strings.HasPrefix(name, "default-") || name == "kubernetes" || name == "kubernetes-IPv6" ||
		name == "cluster-service-shared-health-probe" || strings.HasPrefix(name, "k8s-azure-lb_") {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(name, "a"+strings.ReplaceAll(string(service(n).UID), "-", "")[:31])
	})
}

// state is all of Azure without etags and without empty lists, which mean the same
// as no list.
func state(w *subscription) map[string]any {
	w.settle()
	out := map[string]any{}
	for k, o := range w.docs {
		c := parse(string(text(o)))
		delete(c, "etag")
		out[k] = withoutEmpty(c)
	}
	return out
}

func withoutEmpty(x any) any {
	switch x := x.(type) {
	case object:
		for k, v := range x {
			if list, ok := v.([]any); ok && len(list) == 0 {
				delete(x, k)
				continue
			}
			x[k] = withoutEmpty(v)
		}
	case []any:
		for i := range x {
			x[i] = withoutEmpty(x[i])
		}
	}
	return x
}

// TestCommits checks commits of random Services that come, change and go, also when steps fail on the way. Each commit is
// at rest when it is done, and foreign parts are byte for byte as they were. When the last Service is gone, Azure is as
// it was before the first.
func TestCommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSubscription(3)
		w.trusting = true // TestNeedsAreEnough
		addOwn(w)
		shared := rapid.Bool().Draw(t, "shared with others")
		if shared {
			addForeign(t, w)
		}
		before, theirs := state(w), map[string]string{}
		if shared {
			theirs = foreign(w)
		}
		c, conf := cluster{}, genConfig(t)
		unsure := map[string]bool{}
		for range rapid.IntRange(1, 4).Draw(t, "commits") {
			in := c.know(genCommit(t, conf))
			for range rapid.IntRange(0, 2).Draw(t, "failures") {
				interrupt(t, w, in)
			}
			settle(t, w, in)
			if shared {
				if d := cmp.Diff(theirs, foreign(w)); d != "" {
					t.Fatal("foreign parts changed:\n" + d)
				}
			}
			checkServed(t, w, in)
			c.tell(t, w, in)
			c.checkDenied(t, w, in, unsure)
		}
		gone := loadbalancer.Input{Config: conf, Nodes: addressed(machines(3)), Complete: true}
		for _, name := range slices.Sorted(maps.Keys(c)) {
			gone.Services = append(gone.Services, loadbalancer.Service{Service: c[name].Service, Gone: true})
		}
		settle(t, w, gone)
		after := state(w)
		if shared { // the pools may stay, and the nodes in them
			dropPool(before)
			dropPool(after)
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Fatal("something is left behind (-before +after):\n" + d)
		}
	})
}

// cluster is the Services as Kubernetes has them, by name.
type cluster map[string]loadbalancer.Service

// know completes a commit with what a controller knows: the status of its Services,
// and the others.
func (c cluster) know(in loadbalancer.Input) loadbalancer.Input {
	of := map[string]bool{}
	for i, s := range in.Services {
		of[s.Name] = true
		if was, ok := c[s.Name]; ok {
			in.Services[i].Status = was.Status
		}
		c[s.Name] = in.Services[i]
	}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if !of[name] && !c[name].Gone {
			in.Others = append(in.Others, c[name].Service)
		}
	}
	in.Complete = true
	return in
}

// tell writes the status of a commit's Services.
func (c cluster) tell(t *rapid.T, w *subscription, in loadbalancer.Input) {
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range in.Services {
		if ingress, ok := status[s.Key()]; ok {
			s.Status.LoadBalancer.Ingress = ingress
		}
	}
}

// dropPool removes the cluster's pool and its members from a state.
func dropPool(state map[string]any) {
	for key, o := range state {
		if strings.Contains(key, "/virtualmachinescalesets/") {
			delete(state, key)
		}
		if key == azure.ID(lbID).Key() {
			p := sub(o.(object), "properties")
			p["backendAddressPools"] = slices.DeleteFunc(p["backendAddressPools"].([]any),
				func(x any) bool { return strings.HasPrefix(x.(object)["name"].(string), "kubernetes") })
		}
	}
}

// interrupt begins a commit of which some steps fail, and with them those that wait
// for them.
func interrupt(t *rapid.T, w *subscription, in loadbalancer.Input) {
	in.Have = w.snapshot()
	g, _, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Diff(in.Have, g)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[int]bool{}
	for i, s := range p.Steps {
		failed[i] = rapid.Bool().Draw(t, "step fails") || slices.ContainsFunc(s.After, func(j int) bool { return failed[j] })
		if failed[i] {
			continue
		}
		if err := w.step(p, s); err != nil {
			t.Fatalf("%s: %v\n%v", s, err, p)
		}
	}
}

func settle(t *rapid.T, w *subscription, in loadbalancer.Input) {
	before := state(w)
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatalf("%v\n%v", err, rounds[len(rounds)-1].plan)
	}
	rounds = slices.DeleteFunc(rounds, func(r round) bool { return r.plan.Empty() })
	if most := mostRounds(before, rounds); len(rounds) > most {
		var plans []string
		for _, r := range rounds {
			plans = append(plans, r.plan.String())
		}
		t.Fatalf("%d rounds, want %d at most:\n%s", len(rounds), most, strings.Join(plans, "\n"))
	}
	again, err := w.commit(in)
	if err != nil || writes(again) > 0 {
		t.Fatalf("not at rest: %v\n%v", err, again[len(again)-1].plan)
	}
}

// mostRounds is how many rounds a commit may take from a state of Azure: one, also where Azure
// chooses addresses. What Azure wants in an order of its own takes more, and
// docs/decisions/rounds.md says why.
func mostRounds(before map[string]any, rounds []round) int {
	most := 1 + renewals(rounds)
	for _, excused := range []bool{isHeldByLink(before, rounds), isSwapped(before, rounds)} {
		if excused {
			most++
		}
	}
	return most
}

// isHeldByLink reports whether the first round deletes a private link service, and the second one recreates it or writes
// its load balancer. That load balancer has had another etag since the deletion.
func isHeldByLink(before map[string]any, rounds []round) bool {
	if len(rounds) < 2 {
		return false
	}
	written := map[string]bool{}
	for _, s := range rounds[1].plan.Steps {
		written[s.ID.Key()] = s.Op != plan.Delete
	}
	return slices.ContainsFunc(rounds[0].plan.Steps, func(s plan.Step) bool {
		if s.Op != plan.Delete || !s.ID.Is("Microsoft.Network/privateLinkServices") {
			return false
		}
		refs := children(sub(before[s.ID.Key()].(object), "properties"), "loadBalancerFrontendIpConfigurations")
		return written[s.ID.Key()] ||
			slices.ContainsFunc(refs, func(ref object) bool { return written[azure.ID(ref["id"].(string)).Parent().Key()] })
	})
}

// renewals counts the rounds that delete public IPs which are made anew later. It is more
// than one where a Service with IPv6 alone waits for the IPv4 of another one.
func renewals(rounds []round) (n int) {
	made := map[string]bool{}
	for _, r := range slices.Backward(rounds) {
		some := false
		for _, s := range r.plan.Steps {
			some = some || s.Op == plan.Delete && made[s.ID.Key()]
		}
		if some {
			n++
		}
		for _, s := range r.plan.Steps {
			if s.Op == plan.Create && s.ID.Is("Microsoft.Network/publicIPAddresses") {
				made[s.ID.Key()] = true
			}
		}
	}
	return n
}

// isSwapped reports whether addresses go from one load balancer to another, and others the other way. Each load balancer
// can take its addresses only when the other has released them.
func isSwapped(before map[string]any, rounds []round) bool {
	was, moves := map[string]string{}, map[[2]string]bool{}
	at := func(balancer string, doc object, note func(frontend string)) {
		if azure.ID(balancer).Is("Microsoft.Network/loadBalancers") {
			for _, fe := range children(sub(doc, "properties"), "frontendIPConfigurations") {
				note(fe["name"].(string))
			}
		}
	}
	for key, doc := range before {
		at(key, doc.(object), func(name string) { was[name] = key })
	}
	for _, r := range rounds {
		for _, s := range r.plan.Steps {
			if s.Op != plan.Delete {
				at(s.ID.Key(), parse(string(s.Body)), func(name string) { moves[[2]string{was[name], s.ID.Key()}] = true })
			}
		}
	}
	for m := range moves {
		sameKind := strings.HasSuffix(m[0], "-internal") == strings.HasSuffix(m[1], "-internal")
		if m[0] != "" && m[0] != m[1] && sameKind && moves[[2]string{m[1], m[0]}] {
			return true
		}
	}
	return false
}

// inPlace names, by key, the Services that have anything in Azure: a frontend, a rule, or a managed public IP.
func inPlace(t *rapid.T, in loadbalancer.Input) map[string]bool {
	x, err := index.Read(in)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, service := range in.Services {
		s := spec.Outline(service)
		there[service.Key()] = len(x.FrontendsOf(s.Owner))+len(publicip.ManagedOf(x, s)) > 0
		for _, lb := range x.LoadBalancers {
			there[service.Key()] = there[service.Key()] || len(lb.RulesOf[s.Owner]) > 0
		}
	}
	return there
}

// checkServed checks that each live Service without a problem has an address in each of its families. For each port it
// has a security rule that allows the sources that it wants. Deleted Services have nothing.
func checkServed(t *rapid.T, w *subscription, in loadbalancer.Input) {
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil {
		t.Fatal(err)
	}
	there := inPlace(t, in)
	_, found, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	excused := map[string]bool{} // Services with a problem, or with a frontend that others need
	for _, p := range found {
		excused[p.Object] = excused[p.Object] || !p.Warning || p.Reason == problem.FrontendKept
	}
	for _, s := range in.Services {
		if excused[s.Key()] {
			continue
		}
		if !there[s.Key()] != s.Gone {
			t.Fatalf("%s: gone is %v, in place is %v", s.Key(), s.Gone, there[s.Key()])
		}
		if !s.Gone {
			checkAddresses(t, w, in, s, status[s.Key()])
		}
	}
}

func checkAddresses(t *rapid.T, w *subscription, in loadbalancer.Input, s loadbalancer.Service, ingress []v1.LoadBalancerIngress) {
	want := max(len(s.Spec.IPFamilies), 1)
	if s.Annotations["service.beta.kubernetes.io/azure-additional-public-ips"] != "" {
		want++
	}
	if len(ingress) != want {
		t.Fatalf("%s has the status %v, want %d addresses", s.Key(), ingress, want)
	}
	ranges := s.Spec.LoadBalancerSourceRanges
	broken := slices.Equal(ranges, []string{"10.0.0.1/8"})
	tagged := s.Annotations["service.beta.kubernetes.io/azure-allowed-service-tags"] != ""
	for _, at := range ingress {
		six := strings.Contains(at.IP, ":")
		open := tagged || len(ranges) == 0 && !isInternal(s.Service) || len(ranges) > 0 && !broken && !six
		fixed := isFixed(s.Service) || six && isInternal(s.Service)
		allPorts := isInternal(s.Service) &&
			s.Annotations["service.beta.kubernetes.io/azure-load-balancer-enable-high-availability-ports"] == "true"
		// no interface has IPv6, and not all are everywhere
		if !open || fixed && (six && !in.Config.PoolByIP || len(in.Config.Balancers) > 0) {
			continue
		}
		for _, p := range s.Spec.Ports {
			if fixed {
				port := p.NodePort
				if allPorts { // it is kept, as there is one rule for all
					port = p.Port
				}
				for _, address := range arrivesAt(in, s.Service, at.IP) {
					if !admits(w, address, p.Protocol, port) {
						t.Fatalf("%s/%d into %s at %s is not admitted", p.Protocol, port, s.Key(), address)
					}
				}
			} else if !admits(w, at.IP, p.Protocol, p.Port) {
				t.Fatalf("%s/%d into %s at %s is not admitted", p.Protocol, p.Port, s.Key(), at.IP)
			}
		}
	}
}

// arrivesAt returns the addresses at which packets for an address of a Service without floating IP arrive. They are those
// of all nodes, or the address itself where foreign rules bring the packets.
func arrivesAt(in loadbalancer.Input, s *v1.Service, address string) (all []string) {
	if address == s.Annotations["service.beta.kubernetes.io/azure-additional-public-ips"] {
		return []string{address}
	}
	for _, n := range in.Nodes {
		all = append(all, addressOf(n, strings.Contains(address, ":")))
	}
	return all
}

// checkDenied checks that everything else is denied where a Service wants it, and nowhere else. A Service that was
// refused when it came last keeps what it had, whatever that was. The map unsure holds such Services by name.
func (c cluster) checkDenied(t *rapid.T, w *subscription, in loadbalancer.Input, unsure map[string]bool) {
	in.Have = w.snapshot()
	_, found, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range in.Services {
		unsure[s.Name] = slices.ContainsFunc(found, func(p plan.Problem) bool {
			return p.Object == s.Key() && (!p.Warning || p.Reason == problem.FrontendKept)
		})
	}
	for _, s := range c {
		if unsure[s.Name] {
			return
		}
	}
	want := map[string]bool{}
	for _, s := range c {
		ranges := s.Spec.LoadBalancerSourceRanges
		denies := slices.Equal(ranges, []string{"10.0.0.1/8"}) || len(ranges) > 0 &&
			s.Annotations["service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges"] == "true"
		for _, at := range s.Status.LoadBalancer.Ingress {
			six := strings.Contains(at.IP, ":")
			switch {
			case s.Gone || !denies || !isFixed(s.Service) && six && isInternal(s.Service):
			case !isFixed(s.Service):
				want[at.IP] = true
			case len(in.Config.Balancers) > 0: // not all nodes are everywhere
				return
			case !six || in.Config.PoolByIP: // no interface has IPv6
				for _, address := range arrivesAt(in, s.Service, at.IP) {
					want[address] = true
				}
			}
		}
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Compact(ruledTo(w, "Deny"))); d != "" {
		t.Fatal("denied is not what is wanted (-want +got):\n" + d)
	}
}

func admits(w *subscription, address string, protocol v1.Protocol, port int32) bool {
	for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
		p := sub(r, "properties")
		to := fmt.Sprint(p["destinationAddressPrefix"], p["destinationAddressPrefixes"])
		if p["access"] == "Allow" && strings.EqualFold(p["protocol"].(string), string(protocol)) &&
			slices.Contains(strings.FieldsFunc(to, func(r rune) bool { return r == '[' || r == ']' || r == ' ' }), address) &&
			slices.Contains(p["destinationPortRanges"].([]any), any(fmt.Sprint(port))) {
			return true
		}
	}
	return false
}

// TestDesiredIsAFunctionOfItsInput checks D26: Desired does not depend on the order in which Services are given, and does
// not change its input.
func TestDesiredIsAFunctionOfItsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSubscription(3)
		conf := genConfig(t)
		settle(t, w, genCommit(t, conf))
		in := genCommit(t, conf)
		in.Have = w.snapshot()
		before := state(w)
		var plans []string
		for range 2 {
			g, _, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Diff(in.Have, g)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, p.String())
			slices.Reverse(in.Services)
		}
		if plans[0] != plans[1] {
			t.Fatal("two plans for one input:\n" + cmp.Diff(plans[0], plans[1]))
		}
		if d := cmp.Diff(before, state(w)); d != "" {
			t.Fatal("the snapshot was changed:\n" + d)
		}
	})
}

// TestNeedsAreEnough checks that what Needs names is all that is read, whatever the Services: the plan
// of that is the plan of all of Azure.
func TestNeedsAreEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newSubscription(3)
		addOwn(w)
		c, conf := cluster{}, genConfig(t)
		for range rapid.IntRange(1, 2).Draw(t, "commits") {
			in := c.know(genCommit(t, conf))
			settle(t, w, in)
			c.tell(t, w, in)
		}
		in := c.know(genCommit(t, conf))
		whole := w.snapshot()
		if d := cmp.Diff(planOf(t, in, whole), planOf(t, in, gather(in, whole))); d != "" {
			t.Fatal("(-all of Azure +what was asked for):\n" + d)
		}
	})
}

// gather is the part of a snapshot that Needs names, and names on seeing that.
func gather(in loadbalancer.Input, whole plan.Snapshot) plan.Snapshot {
	have := plan.NewSnapshot()
	for before := -1; before < have.Len(); {
		before = have.Len()
		in.Have = have
		ids, lists := loadbalancer.Needs(in)
		for _, id := range ids {
			if d, ok := whole.Get(id); ok {
				have = have.With(d)
			}
		}
		for _, q := range lists {
			have = have.With(whole.List(q.Scope, q.Type)...)
		}
	}
	return have
}

func planOf(t *rapid.T, in loadbalancer.Input, have plan.Snapshot) string {
	in.Have = have
	g, _, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Diff(have, g)
	if err != nil {
		t.Fatal(err)
	}
	return p.String()
}
