package loadbalancer_test

import (
	"crypto/md5"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

// predecessor is a model of the implementation that a cluster had before kaz, and may have again. For one Service after
// the other, it compares what Azure has with what the Service needs, and writes. It is written from what is known of that
// implementation and shares nothing with the planner. So each of them judges the other: kaz has nothing to do after the
// model, and the model has nothing to write after kaz.
type predecessor struct {
	loadbalancer.Config
	services  []*v1.Service // those that are there, in the order in which they came
	machines  []machine
	endpoints map[string][]string
	at        map[string]string // which of several load balancers, by the Service's name
	azure     *subscription
	writes    []string
}

const (
	notePrefix   = "service.beta.kubernetes.io/"
	serviceTag   = "k8s-azure-service"
	clusterTag   = "k8s-azure-cluster-name"
	dnsTag       = "k8s-azure-dns-label-service"
	ownerTag     = "k8s-azure-owner-service"
	sharedProbe  = "cluster-service-shared-health-probe"
	managedRules = "k8s-azure-lb"
)

var legacyTags = map[string]string{serviceTag: "service", clusterTag: "kubernetes-cluster-name", dnsTag: "kubernetes-dns-label-service"}

func noted(s *v1.Service, key string) string { return strings.TrimSpace(s.Annotations[notePrefix+key]) }

func switched(s *v1.Service, key string) bool { return strings.EqualFold(noted(s, key), "true") }

func keyOf(s *v1.Service) string { return s.Namespace + "/" + s.Name }

func baseOf(s *v1.Service) string {
	return ("a" + strings.ReplaceAll(string(s.UID), "-", ""))[:32]
}

func internal(s *v1.Service) bool { return switched(s, "azure-load-balancer-internal") }

func local(s *v1.Service) bool {
	return s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal && s.Spec.HealthCheckNodePort > 0
}

func subnetOf(s *v1.Service) string {
	if !internal(s) {
		return ""
	}
	return noted(s, "azure-load-balancer-internal-subnet")
}

func firstText(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func number(text string, otherwise float64) float64 {
	if n, err := strconv.Atoi(text); err == nil {
		return float64(n)
	}
	return otherwise
}

// --- names and ids

func (p *predecessor) network(group, kind, name string) azure.ID {
	return azure.ID("/subscriptions/" + p.NetworkSubscription + "/resourceGroups/" + group + "/providers/Microsoft.Network/" + kind +
		"/" + name)
}

func (p *predecessor) balancerID(name string, inside bool) azure.ID {
	if inside {
		name += "-internal"
	}
	return p.network(p.LoadBalancerResourceGroup, "loadBalancers", name)
}

// balancerNames are the load balancers that it reads.
func (p *predecessor) balancerNames() []string {
	if len(p.Balancers) == 0 {
		return []string{p.LoadBalancerName}
	}
	var names []string
	for _, b := range p.Balancers {
		names = append(names, b.Name)
	}
	return names
}

func (p *predecessor) balancerIDs() (ids []azure.ID) {
	for _, name := range p.balancerNames() {
		ids = append(ids, p.balancerID(name, false), p.balancerID(name, true))
	}
	return ids
}

func (p *predecessor) subnetID(name string) azure.ID {
	return p.network(p.VirtualNetworkResourceGroup, "virtualNetworks", p.VirtualNetwork+"/subnets/"+firstText(name, p.Subnet))
}

// part is what a Service has in one IP family.
type part struct {
	s         *v1.Service
	six, dual bool
	balancer  azure.ID
	frontend  string   // its own, or the one of the Service that had the address first
	own       bool     // whether the frontend is its own
	ip        azure.ID // public IP
}

func (f part) suffix() string {
	if f.dual && f.six {
		return "-IPv6"
	}
	return ""
}

// value is an annotation that has one form for each family.
func (f part) value(key, key6 string) string {
	switch {
	case f.six && (f.dual || noted(f.s, key6) != ""):
		return noted(f.s, key6)
	default:
		return noted(f.s, key)
	}
}

// pinned is the address that the Service asks for.
func (f part) pinned() string {
	if f.six {
		if a := noted(f.s, "azure-load-balancer-ipv6"); a != "" {
			return a
		}
	} else if a := noted(f.s, "azure-load-balancer-ipv4"); a != "" {
		return a
	}
	if a, err := netip.ParseAddr(f.s.Spec.LoadBalancerIP); err == nil && a.Is4() == !f.six {
		return a.String()
	}
	return ""
}

func cut75(name string) string {
	if len(name) <= 75 {
		return name
	}
	name = name[:75]
	last := name[74]
	if letter := last >= 'a' && last <= 'z' || last >= 'A' && last <= 'Z'; !letter {
		return name[:74] + "_"
	}
	return name
}

func (f part) frontendName() string {
	name := baseOf(f.s)
	if sub := subnetOf(f.s); sub != "" {
		name += "-" + sub
	}
	return cut75(name) + f.suffix()
}

func (f part) ruleName(protocol v1.Protocol, port int32) string {
	tail := fmt.Sprintf("-%s-%d", protocol, port)
	name := baseOf(f.s)
	if sub := subnetOf(f.s); sub != "" {
		room := 75 - len(name) - len(tail) - 1
		name += "-" + sub[:min(len(sub), room)]
	}
	return name + tail + f.suffix()
}

func familiesOf(s *v1.Service) []bool {
	if len(s.Spec.IPFamilies) == 0 {
		return []bool{false}
	}
	var six []bool
	for _, f := range s.Spec.IPFamilies {
		six = append(six, f == v1.IPv6Protocol)
	}
	return six
}

func (p *predecessor) parts(s *v1.Service) []part {
	var parts []part
	all := familiesOf(s)
	for _, six := range all {
		f := part{s: s, six: six, dual: len(all) == 2}
		if !internal(s) {
			f.ip = p.publicIPOf(f)
		}
		f.balancer = p.balancerOf(f)
		f.frontend, f.own = f.frontendName(), true
		for _, fe := range p.list(f.balancer, "frontendIPConfigurations") {
			if !strings.HasPrefix(nameOf(fe), baseOf(s)) && f.shares(fe) {
				f.frontend, f.own = nameOf(fe), false
			}
		}
		parts = append(parts, f)
	}
	return parts
}

// shares reports whether a frontend has the address that the Service asks for.
func (f part) shares(fe object) bool {
	if internal(f.s) {
		return f.pinned() != "" && at(fe, "properties", "privateIPAddress") == f.pinned()
	}
	return f.ip != "" && strings.EqualFold(at(fe, "properties", "publicIPAddress", "id"), string(f.ip))
}

// balancerOf is where the Service is, else where it is to come.
func (p *predecessor) balancerOf(f part) azure.ID {
	for _, id := range p.balancerIDs() {
		if strings.HasSuffix(string(id), "-internal") != internal(f.s) {
			continue
		}
		for _, fe := range p.list(id, "frontendIPConfigurations") {
			if f.shares(fe) || f.pinned() == "" && strings.HasPrefix(nameOf(fe), baseOf(f.s)) && p.at[f.s.Name] == "" {
				return id
			}
		}
	}
	return p.balancerID(firstText(p.at[f.s.Name], p.balancerNames()[0]), internal(f.s))
}

func (p *predecessor) ipGroup(s *v1.Service) string {
	return firstText(noted(s, "azure-load-balancer-resource-group"), p.ResourceGroup)
}

func (p *predecessor) publicIPOf(f part) azure.ID {
	if name := f.value("azure-pip-name", "azure-pip-name-ipv6"); name != "" {
		return p.network(p.ipGroup(f.s), "publicIPAddresses", name)
	}
	prefix := f.value("azure-pip-prefix-id", "azure-pip-prefix-id-ipv6")
	if pin := f.pinned(); pin != "" && prefix == "" {
		for _, ip := range p.publicIPs(p.ipGroup(f.s)) {
			if at(p.azure.docs[ip.Key()], "properties", "ipAddress") == pin {
				return ip
			}
		}
		return ""
	}
	name := p.ClusterName + "-" + baseOf(f.s)
	if prefix != "" {
		name += "-" + azure.ID(prefix).Name()
	}
	return p.network(p.ipGroup(f.s), "publicIPAddresses", name[:min(len(name), 75)]+f.suffix())
}

func (p *predecessor) publicIPs(groups ...string) (ids []azure.ID) {
	for _, key := range slices.Sorted(maps.Keys(p.azure.docs)) {
		id := azure.ID(key)
		if id.Is("Microsoft.Network/publicIPAddresses") &&
			slices.ContainsFunc(groups, func(g string) bool { return strings.EqualFold(g, id.Group()) }) {
			ids = append(ids, azure.ID(p.azure.docs[key]["id"].(string)))
		}
	}
	return ids
}

func (p *predecessor) poolName(f part) string {
	switch {
	case len(p.Balancers) > 0 && local(f.s) && f.six:
		return strings.ToLower(f.s.Namespace + "-" + f.s.Name + "-ipv6")
	case len(p.Balancers) > 0 && local(f.s):
		return strings.ToLower(f.s.Namespace + "-" + f.s.Name)
	case f.six:
		return p.ClusterName + "-IPv6"
	}
	return p.ClusterName
}

// --- documents

func nameOf(o object) string { return o["name"].(string) }

// at is a field of a document as text, "" where there is none.
func at(o object, path ...string) string {
	for _, key := range path[:len(path)-1] {
		next, ok := o[key].(object)
		if !ok {
			return ""
		}
		o = next
	}
	v := o[path[len(path)-1]]
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// see is a document to be read only, doc one to be changed and written.
func (p *predecessor) see(id azure.ID) object { return p.azure.docs[id.Key()] }

func (p *predecessor) doc(id azure.ID) object {
	if o := p.azure.docs[id.Key()]; o != nil {
		return copied(o).(object)
	}
	return nil
}

func copied(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for k, x := range v {
			out[k] = copied(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = copied(x)
		}
		return out
	}
	return v
}

func (p *predecessor) list(id azure.ID, kind string) []object {
	return children(sub(p.see(id), "properties"), kind)
}

func (p *predecessor) write(id azure.ID, o object, why string, args ...any) {
	p.writes = append(p.writes, id.Name()+": "+fmt.Sprintf(why, args...))
	p.azure.put(azure.ID(firstText(at(o, "id"), string(id))), copied(o).(object))
}

func (p *predecessor) erase(id azure.ID, why string) {
	p.writes = append(p.writes, id.Name()+": deleted, "+why)
	delete(p.azure.docs, id.Key())
	p.azure.stale = true
}

func setList(o object, kind string, list []object) {
	anys := make([]any, len(list))
	for i, c := range list {
		anys[i] = c
	}
	sub(o, "properties")[kind] = anys
}

func named(list []object, name string) object {
	for _, o := range list {
		if strings.EqualFold(nameOf(o), name) {
			return o
		}
	}
	return nil
}

func ref(id azure.ID) object { return object{"id": string(id)} }

func anys[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// --- what a Service asks for

func (p *predecessor) rules(f part) (rules, probes []object) {
	if internal(f.s) && switched(f.s, "azure-load-balancer-enable-high-availability-ports") {
		return p.allPorts(f)
	}
	for _, port := range f.s.Spec.Ports {
		if switched(f.s, fmt.Sprintf("port_%d_no_lb_rule", port.Port)) {
			continue
		}
		name := f.ruleName(port.Protocol, port.Port)
		props := p.rule(f, map[v1.Protocol]string{v1.ProtocolTCP: "Tcp", v1.ProtocolUDP: "Udp", v1.ProtocolSCTP: "All"}[port.Protocol])
		props["frontendPort"], props["backendPort"] = float64(port.Port), float64(port.Port)
		if !p.floats(f) {
			props["backendPort"] = float64(port.NodePort)
		}
		if probe := p.probe(f, port); probe != nil && !switched(f.s, fmt.Sprintf("port_%d_no_probe_rule", port.Port)) {
			props["probe"] = ref(f.balancer.Child("probes", nameOf(probe)))
			if named(probes, nameOf(probe)) == nil {
				probes = append(probes, probe)
			}
		}
		rules = append(rules, object{"name": name, "properties": props})
	}
	return rules, probes
}

func (p *predecessor) allPorts(f part) (rules, probes []object) {
	props := p.rule(f, "All")
	props["frontendPort"], props["backendPort"] = 0.0, 0.0
	props["enableFloatingIP"] = !f.six
	name := f.ruleName(f.s.Spec.Ports[0].Protocol, f.s.Spec.Ports[0].Port)
	for _, port := range f.s.Spec.Ports {
		if probe := p.probe(f, port); probe != nil {
			if !local(f.s) && p.SharedProbe == nil {
				probe["name"] = name
			}
			props["probe"] = ref(f.balancer.Child("probes", nameOf(probe)))
			probes = []object{probe}
			break
		}
	}
	return []object{{"name": name, "properties": props}}, probes
}

func (p *predecessor) floats(f part) bool {
	return !switched(f.s, "azure-disable-load-balancer-floating-ip") && (!internal(f.s) || !f.six)
}

func (p *predecessor) rule(f part, protocol string) object {
	props := object{
		"protocol": protocol, "enableFloatingIP": p.floats(f), "loadDistribution": "Default",
		"disableOutboundSnat":     p.DisableOutboundSNAT,
		"idleTimeoutInMinutes":    number(noted(f.s, "azure-load-balancer-tcp-idle-timeout"), 4),
		"frontendIPConfiguration": ref(f.balancer.Child("frontendIPConfigurations", f.frontend)),
		"backendAddressPool":      ref(f.balancer.Child("backendAddressPools", p.poolName(f))),
	}
	if f.s.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
		props["loadDistribution"] = "SourceIP"
	}
	if protocol != "Udp" {
		props["enableTcpReset"] = !switched(f.s, "azure-load-balancer-disable-tcp-reset")
	}
	return props
}

// probe is the probe of a port, nil for none.
func (p *predecessor) probe(f part, port v1.ServicePort) object {
	s := f.s
	behindProxy := switched(s, "azure-pls-create") && switched(s, "azure-pls-proxy-protocol")
	own := fmt.Sprintf("port_%d_health-probe_", port.Port)
	switch {
	case !local(s) && p.SharedProbe != nil:
		return probeOf(sharedProbe, "Http", p.SharedProbe.Port, p.SharedProbe.Path, 5, 2)
	case local(s) && !behindProxy && (port.Protocol != v1.ProtocolTCP || noted(s, own+"port") == ""):
		health := fmt.Sprintf("port_%d_health-probe_", s.Spec.HealthCheckNodePort)
		return probeOf(f.ruleName(v1.ProtocolTCP, s.Spec.HealthCheckNodePort), "Http", s.Spec.HealthCheckNodePort, "/healthz",
			probeNumber(s, health, "interval", 5), probeNumber(s, health, "num-of-probe", 2))
	case port.Protocol != v1.ProtocolTCP:
		return nil
	}
	app := ""
	if port.AppProtocol != nil {
		app = *port.AppProtocol
	}
	protocol := map[string]string{"http": "Http", "https": "Https"}[strings.ToLower(
		firstText(noted(s, own+"protocol"), app, noted(s, "azure-load-balancer-health-probe-protocol")))]
	return probeOf(f.ruleName(port.Protocol, port.Port), firstText(protocol, "Tcp"), probePort(s, port, noted(s, own+"port")),
		firstText(noted(s, own+"request-path"), noted(s, "azure-load-balancer-health-probe-request-path"), "/"),
		probeNumber(s, own, "interval", 5), probeNumber(s, own, "num-of-probe", 2))
}

func probeNumber(s *v1.Service, own, what string, otherwise float64) float64 {
	return number(firstText(noted(s, own+what), noted(s, "azure-load-balancer-health-probe-"+what)), otherwise)
}

func probePort(s *v1.Service, port v1.ServicePort, asked string) int32 {
	if asked == "" {
		return port.NodePort
	}
	for _, other := range s.Spec.Ports {
		if strings.EqualFold(other.Name, asked) || strconv.Itoa(int(other.Port)) == asked {
			return other.NodePort
		}
	}
	return int32(number(asked, 0))
}

func probeOf(name, protocol string, port int32, path string, interval, threshold float64) object {
	props := object{"protocol": protocol, "port": float64(port), "intervalInSeconds": interval, "probeThreshold": threshold}
	if protocol != "Tcp" {
		props["requestPath"] = path
	}
	return object{"name": name, "properties": props}
}

// --- one Service after the other

// ensure brings a Service about. What it had to write is added to writes.
func (p *predecessor) ensure(s *v1.Service) {
	wanted := p.parts(s)
	for _, f := range wanted {
		if f.ip != "" {
			p.ensurePublicIP(f)
		}
	}
	p.cleanElsewhere(s, wanted)
	p.ensureBalancer(s, wanted[0].balancer)
	p.members()
	p.securityRules(s, true, nil)
	for _, f := range p.parts(s) {
		p.ensureLink(f)
	}
	p.releasePublicIPs(s, wanted)
	for _, f := range wanted {
		if f.ip != "" {
			p.ensurePublicIP(f)
		}
	}
}

// remove takes a Service away.
func (p *predecessor) remove(s *v1.Service) {
	addresses := p.addresses(s)
	were := p.parts(s)
	p.services = slices.DeleteFunc(p.services, func(o *v1.Service) bool { return keyOf(o) == keyOf(s) })
	p.securityRules(s, false, addresses)
	p.cleanElsewhere(s, nil)
	p.dropShared(were)
	p.members()
	p.releasePublicIPs(s, nil)
}

// dropShared takes away the frontends that a Service was the last one at, those of
// Services that had the address first and are gone.
func (p *predecessor) dropShared(were []part) {
	for _, f := range were {
		lb := p.doc(f.balancer)
		fes := children(sub(lb, "properties"), "frontendIPConfigurations")
		fe := named(fes, f.frontend)
		if fe == nil || referred(lb, fe, baseOf(f.s)) {
			continue
		}
		setList(lb, "frontendIPConfigurations", slices.DeleteFunc(fes, func(o object) bool { return nameOf(o) == f.frontend }))
		if len(fes) > 1 {
			p.write(f.balancer, lb, "frontend %s goes with %s", f.frontend, keyOf(f.s))
			continue
		}
		p.leave(f.balancer)
		p.erase(f.balancer, "no frontend is left")
	}
}

func (p *predecessor) ensureBalancer(s *v1.Service, id azure.ID) {
	lb := p.doc(id)
	if lb == nil {
		lb = object{"location": p.Location, "sku": object{"name": "Standard"}, "properties": object{}}
		if p.EdgeZone != nil {
			lb["extendedLocation"] = object{"name": p.EdgeZone.Name, "type": p.EdgeZone.Type}
		}
	}
	var dirty []string
	wanted := p.parts(s)
	p.frontends(s, lb, wanted, &dirty)
	pools := children(sub(lb, "properties"), "backendAddressPools")
	var rules, probes []object
	for _, f := range wanted {
		if named(pools, p.poolName(f)) == nil {
			pools = append(pools, object{"name": p.poolName(f), "properties": object{}})
			dirty = append(dirty, "pool "+p.poolName(f))
		}
		r, h := p.rules(f)
		rules = append(rules, r...)
		for _, probe := range h {
			if named(probes, nameOf(probe)) == nil {
				probes = append(probes, probe)
			}
		}
	}
	setList(lb, "backendAddressPools", pools)
	merge(lb, "loadBalancingRules", baseOf(s), rules, sameRule, &dirty)
	merge(lb, "probes", baseOf(s), probes, sameProbe, &dirty)
	dropSharedProbe(lb, &dirty)
	p.tagFrame(lb, &dirty)
	if dirty != nil {
		p.write(id, lb, "%s for %s", dirty, keyOf(s))
	}
}

// dropSharedProbe removes the shared probe when no rule refers to it.
func dropSharedProbe(lb object, dirty *[]string) {
	props := sub(lb, "properties")
	used := slices.ContainsFunc(children(props, "loadBalancingRules"), func(r object) bool {
		return strings.HasSuffix(strings.ToLower(at(r, "properties", "probe", "id")), "/"+sharedProbe)
	})
	probes := children(props, "probes")
	if !used && named(probes, sharedProbe) != nil {
		setList(lb, "probes", slices.DeleteFunc(probes, func(o object) bool { return nameOf(o) == sharedProbe }))
		*dirty = append(*dirty, "the shared probe goes")
	}
}

func owned(o object, base string) bool {
	return strings.HasPrefix(strings.ToUpper(nameOf(o)), strings.ToUpper(base))
}

// merge replaces what a Service has in a list, where it is not the same.
func merge(lb object, kind, base string, want []object, same func(have, want object) bool, dirty *[]string) {
	var kept []object
	have := children(sub(lb, "properties"), kind)
	for _, o := range have {
		w := named(want, nameOf(o))
		if w == nil && !owned(o, base) || w != nil && same(sub(o, "properties"), sub(w, "properties")) {
			kept = append(kept, o)
			continue
		}
		*dirty = append(*dirty, kind+" "+nameOf(o)+" goes")
	}
	for _, w := range want {
		if named(kept, nameOf(w)) == nil {
			kept = append(kept, w)
			*dirty = append(*dirty, kind+" "+nameOf(w))
		}
	}
	setList(lb, kind, kept)
}

// compared is a field that is compared: absent means the second value.
type compared struct {
	path   string
	absent string
}

func sameFields(have, want object, fields []compared) bool {
	for _, f := range fields {
		path := strings.Split(f.path, ".")
		if !strings.EqualFold(firstText(at(have, path...), f.absent), firstText(at(want, path...), f.absent)) {
			return false
		}
	}
	return true
}

var ruleFields = []compared{
	{"protocol", ""}, {"frontendPort", ""}, {"backendPort", ""}, {"enableFloatingIP", "false"}, {"loadDistribution", ""},
	{"disableOutboundSnat", "false"}, {"frontendIPConfiguration.id", ""}, {"backendAddressPool.id", ""}, {"probe.id", ""},
}

func sameRule(have, want object) bool {
	if want["protocol"] == "Tcp" && !sameFields(have, want, []compared{{"enableTcpReset", "false"}}) {
		return false
	}
	idle := at(have, "idleTimeoutInMinutes")
	return sameFields(have, want, ruleFields) && (idle == "" || idle == at(want, "idleTimeoutInMinutes"))
}

func sameProbe(have, want object) bool {
	return sameFields(have, want,
		[]compared{{"protocol", ""}, {"port", ""}, {"requestPath", ""}, {"intervalInSeconds", ""}, {"probeThreshold", ""}})
}

// frontends drops and makes the frontends of a Service.
func (p *predecessor) frontends(s *v1.Service, lb object, wanted []part, dirty *[]string) {
	have := children(sub(lb, "properties"), "frontendIPConfigurations")
	zones := map[string]any{}
	var kept []object
	for _, fe := range have {
		i := slices.IndexFunc(wanted, func(f part) bool { return f.own && f.frontend == nameOf(fe) })
		switch {
		case strings.HasPrefix(nameOf(fe), baseOf(s)) && (i < 0 || p.stale(fe, wanted[i])) && !referred(lb, fe, baseOf(s)):
			zones[nameOf(fe)] = fe["zones"]
			*dirty = append(*dirty, "frontend "+nameOf(fe)+" goes")
		default:
			kept = append(kept, fe)
		}
	}
	for _, f := range wanted {
		if !f.own || named(kept, f.frontend) != nil {
			continue
		}
		fe := p.frontend(f)
		if z, replaced := zones[f.frontend]; replaced {
			delete(fe, "zones")
			if z != nil {
				fe["zones"] = z
			}
		}
		kept = append(kept, fe)
		*dirty = append(*dirty, "frontend "+f.frontend)
	}
	setList(lb, "frontendIPConfigurations", kept)
}

func (p *predecessor) stale(fe object, f part) bool {
	if !internal(f.s) {
		return !strings.EqualFold(at(fe, "properties", "publicIPAddress", "id"), string(f.ip))
	}
	if name := subnetOf(f.s); name != "" && !strings.EqualFold(at(fe, "properties", "subnet", "id"), string(p.subnetID(name))) {
		return true
	}
	return f.pinned() != "" && f.pinned() != at(fe, "properties", "privateIPAddress")
}

// referred reports whether foreign rules use a frontend.
func referred(lb, fe object, base string) bool {
	tail := strings.ToLower("/frontendIPConfigurations/" + nameOf(fe) + `"`)
	for _, kind := range []string{"loadBalancingRules", "outboundRules", "inboundNatRules", "inboundNatPools"} {
		for _, o := range children(sub(lb, "properties"), kind) {
			if !owned(o, base) && strings.Contains(strings.ToLower(string(text(o))), tail) {
				return true
			}
		}
	}
	return false
}

func (p *predecessor) frontend(f part) object {
	if !internal(f.s) {
		return object{"name": f.frontend, "properties": object{"publicIPAddress": ref(f.ip)}}
	}
	props := object{"subnet": ref(p.subnetID(subnetOf(f.s))), "privateIPAllocationMethod": "Dynamic"}
	if pin := f.pinned(); pin != "" {
		props["privateIPAllocationMethod"], props["privateIPAddress"] = "Static", pin
	}
	if f.six {
		props["privateIPAddressVersion"] = "IPv6"
	}
	fe := object{"name": f.frontend, "properties": props}
	if len(p.Zones) > 0 && p.EdgeZone == nil {
		fe["zones"] = anys(p.Zones)
	}
	return fe
}

// cleanElsewhere takes a Service out of the load balancers where it is not wanted. One
// that loses its last frontend is deleted.
func (p *predecessor) cleanElsewhere(s *v1.Service, wanted []part) {
	for _, id := range p.balancerIDs() {
		lb := p.doc(id)
		if lb == nil || slices.ContainsFunc(wanted, func(f part) bool { return f.balancer.Equal(id) }) {
			continue
		}
		var dirty []string
		merge(lb, "loadBalancingRules", baseOf(s), nil, sameRule, &dirty)
		merge(lb, "probes", baseOf(s), nil, sameProbe, &dirty)
		dropSharedProbe(lb, &dirty)
		props := sub(lb, "properties")
		before := children(props, "frontendIPConfigurations")
		p.frontends(s, lb, nil, &dirty)
		left := children(props, "frontendIPConfigurations")
		for _, fe := range before {
			if named(left, nameOf(fe)) == nil {
				p.removeLinks(id.Child("frontendIPConfigurations", nameOf(fe)))
			}
		}
		p.dropLocalPools(s, lb)
		preset := p.PresetExternal && !strings.HasSuffix(string(id), "-internal") || p.PresetInternal &&
			strings.HasSuffix(string(id), "-internal")
		switch {
		case dirty == nil:
		case len(left) > 0:
			p.write(id, lb, "%s without %s", dirty, keyOf(s))
		case !preset:
			p.leave(id)
			p.erase(id, "no frontend is left")
		}
	}
}

func (p *predecessor) dropLocalPools(s *v1.Service, lb object) {
	if len(p.Balancers) > 0 && local(s) {
		pools := children(sub(lb, "properties"), "backendAddressPools")
		own := strings.ToLower(s.Namespace + "-" + s.Name)
		setList(lb, "backendAddressPools",
			slices.DeleteFunc(pools, func(o object) bool { return nameOf(o) == own || nameOf(o) == own+"-ipv6" }))
	}
}

// addresses are where a Service can be reached, in the order of the frontends.
func (p *predecessor) addresses(s *v1.Service) []string {
	var out []string
	parts := p.parts(s)
	for _, fe := range p.list(parts[0].balancer, "frontendIPConfigurations") {
		if !slices.ContainsFunc(parts, func(f part) bool { return f.frontend == nameOf(fe) }) {
			continue
		}
		address := at(fe, "properties", "privateIPAddress")
		if id := at(fe, "properties", "publicIPAddress", "id"); id != "" {
			address = at(p.see(azure.ID(id)), "properties", "ipAddress")
		}
		out = append(out, address)
	}
	return append(out, further(s)...)
}

func further(s *v1.Service) []string {
	if v := noted(s, "azure-additional-public-ips"); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// --- tags

// pairs reads "k=v,k2=v2"; what has not exactly one "=" is skipped.
func pairs(text string) azure.Tags {
	tags := azure.Tags{}
	for one := range strings.SplitSeq(text, ",") {
		if kv := strings.Split(one, "="); len(kv) == 2 {
			tags[strings.TrimSpace(kv[0])] = strings.TrimSpace(kv[1])
		}
	}
	return tags
}

func tagOf(o object, name string) string {
	tags, _ := o["tags"].(object)
	for _, k := range []string{name, legacyTags[name]} {
		for have, v := range tags {
			if strings.EqualFold(have, k) {
				return v.(string)
			}
		}
	}
	return ""
}

// tagFrame tags a load balancer or a security group: only where tags are configured.
func (p *predecessor) tagFrame(o object, dirty *[]string) {
	if len(p.Tags) > 0 {
		p.tag(o, p.Tags, nil, dirty)
	}
}

// tag adds and changes tags, and removes unknown ones where a list of the ones to keep is given.
func (p *predecessor) tag(o object, want azure.Tags, keep []string, dirty *[]string) {
	have, _ := o["tags"].(object)
	for k, v := range want {
		old := ""
		for name, value := range have {
			if strings.EqualFold(name, k) {
				k, old = name, value.(string)
			}
		}
		if !strings.EqualFold(old, v) {
			sub(o, "tags")[k] = v
			*dirty = append(*dirty, "tag "+k)
		}
	}
	if len(p.SystemTags) == 0 {
		return
	}
	for name := range have {
		_, wanted := want.Get(name)
		survives := slices.ContainsFunc(append(slices.Clone(p.SystemTags), keep...), func(prefix string) bool {
			return strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix))
		})
		if !wanted && !survives {
			delete(have, name)
			*dirty = append(*dirty, "tag "+name+" goes")
		}
	}
}

// --- public IPs

func (p *predecessor) ensurePublicIP(f part) {
	ip := p.doc(f.ip)
	var dirty []string
	if ip == nil {
		ip = p.publicIP(f)
		dirty = append(dirty, "made")
	}
	if at(ip, "sku", "name") != "Standard" {
		sub(ip, "sku")["name"] = "Standard"
		dirty = append(dirty, "SKU")
	}
	managed := tagOf(ip, serviceTag) != ""
	if managed && (at(ip, "properties", "publicIPAddressVersion") == "IPv6") != f.six {
		ip = p.publicIP(f)
		dirty = append(dirty, "made for the other family")
	}
	if label, set := f.s.Annotations[notePrefix+"azure-dns-label-name"]; set {
		p.label(f, ip, label, managed, &dirty)
	}
	if managed {
		names := strings.Split(tagOf(ip, serviceTag), ",")
		if !slices.ContainsFunc(names, func(n string) bool { return strings.TrimSpace(n) == keyOf(f.s) }) {
			sub(ip, "tags")[serviceTag] = tagOf(ip, serviceTag) + "," + keyOf(f.s)
			dirty = append(dirty, "binds")
		}
		want := maps.Clone(p.Tags)
		if want == nil {
			want = azure.Tags{}
		}
		maps.Copy(want, pairs(noted(f.s, "azure-pip-tags")))
		for own := range legacyTags {
			if has := tagOf(ip, own); has != "" && want[own] != "" { // what is said already goes before what is asked for
				want[own] = has
			}
		}
		keep := slices.Concat(slices.Collect(maps.Keys(legacyTags)), slices.Collect(maps.Values(legacyTags)))
		p.tag(ip, want, keep, &dirty)
		if asked, set := ipTags(f.s); set && !slices.Equal(asked, ipTagsOf(ip)) {
			dirty = append(dirty, "IP tags")
			sub(ip, "properties")["ipTags"] = ipTagList(asked)
		}
	}
	if at(ip, "properties", "provisioningState") == "Failed" {
		dirty = append(dirty, "failed")
	}
	if dirty != nil {
		p.write(f.ip, ip, "%s for %s", dirty, keyOf(f.s))
	}
}

func (p *predecessor) label(f part, ip object, label string, managed bool, dirty *[]string) {
	props := sub(ip, "properties")
	switch label {
	case "":
		if props["dnsSettings"] != nil {
			delete(props, "dnsSettings")
			*dirty = append(*dirty, "no DNS label")
		}
	case at(ip, "properties", "dnsSettings", "domainNameLabel"):
		if managed && tagOf(ip, dnsTag) == "" {
			sub(ip, "tags")[dnsTag] = keyOf(f.s)
			*dirty = append(*dirty, "DNS tag")
		}
	default:
		props["dnsSettings"] = object{"domainNameLabel": label}
		if managed {
			sub(ip, "tags")[dnsTag] = keyOf(f.s)
		}
		*dirty = append(*dirty, "DNS label")
	}
}

// ipTags are the IP tags that are asked for, sorted as type=value.
func ipTags(s *v1.Service) (tags []string, set bool) {
	v, set := s.Annotations[notePrefix+"azure-pip-ip-tags"]
	for k, v := range pairs(v) {
		tags = append(tags, k+"="+v)
	}
	slices.Sort(tags)
	return tags, set
}

func ipTagsOf(ip object) (tags []string) {
	for _, t := range children(sub(ip, "properties"), "ipTags") {
		tags = append(tags, at(t, "ipTagType")+"="+at(t, "tag"))
	}
	slices.Sort(tags)
	return tags
}

func ipTagList(tags []string) []any {
	list := []any{}
	for _, t := range tags {
		k, v, _ := strings.Cut(t, "=")
		list = append(list, object{"ipTagType": k, "tag": v})
	}
	return list
}

func (p *predecessor) publicIP(f part) object {
	version := "IPv4"
	if f.six {
		version = "IPv6"
	}
	ip := object{
		"location": p.Location, "sku": object{"name": "Standard"},
		"tags":       object{serviceTag: keyOf(f.s), clusterTag: p.ClusterName},
		"properties": object{"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version},
	}
	switch {
	case p.EdgeZone != nil:
		ip["extendedLocation"] = object{"name": p.EdgeZone.Name, "type": p.EdgeZone.Type}
	case len(p.Zones) > 0:
		ip["zones"] = anys(p.Zones)
	}
	if prefix := f.value("azure-pip-prefix-id", "azure-pip-prefix-id-ipv6"); prefix != "" {
		sub(ip, "properties")["publicIPPrefix"] = object{"id": prefix}
	}
	return ip
}

// releasePublicIPs lets go of the public IPs that list the Service and are not wanted.
func (p *predecessor) releasePublicIPs(s *v1.Service, wanted []part) {
	for _, id := range p.publicIPs(p.ipGroup(s), p.ResourceGroup) {
		ip := p.see(id)
		var names []string
		for n := range strings.SplitSeq(tagOf(ip, serviceTag), ",") {
			names = append(names, strings.TrimSpace(n))
		}
		if !slices.Contains(names, keyOf(s)) || slices.ContainsFunc(wanted, func(f part) bool { return f.ip.Equal(id) }) {
			continue
		}
		names = slices.DeleteFunc(names, func(n string) bool { return n == keyOf(s) })
		if len(names) == 0 {
			if p.azure.referrer(id) == "" { // else Azure refuses, and that is swallowed
				p.erase(id, keyOf(s)+" needs it no more")
			}
			continue
		}
		ip = p.doc(id)
		sub(ip, "tags")[serviceTag] = strings.Join(names, ",")
		if tagOf(ip, dnsTag) == keyOf(s) {
			delete(sub(ip, "tags"), dnsTag)
		}
		p.write(id, ip, "unbinds %s", keyOf(s))
	}
}

// --- security rules

// ruleSet is the security rules as they are changed for one Service.
type ruleSet struct {
	rules []object
}

func managedRule(r object) bool {
	priority := number(at(r, "properties", "priority"), 0)
	return strings.HasPrefix(nameOf(r), managedRules) && priority >= 500 && priority <= 4096
}

func manyOf(r object, one, many string) []string {
	var out []string
	if v := at(r, "properties", one); v != "" {
		out = append(out, v)
	}
	list, _ := sub(r, "properties")[many].([]any)
	for _, v := range list {
		out = append(out, v.(string))
	}
	return out
}

func setMany(r object, one, many string, values []string) {
	props := sub(r, "properties")
	delete(props, one)
	props[many] = []any{}
	slices.Sort(values)
	switch values = slices.Compact(values); len(values) {
	case 0:
	case 1:
		props[one] = values[0]
	default:
		props[many] = anys(values)
	}
}

func destinations(r object) []string {
	return manyOf(r, "destinationAddressPrefix", "destinationAddressPrefixes")
}

func setDestinations(r object, values []string) {
	setMany(r, "destinationAddressPrefix", "destinationAddressPrefixes", values)
}

func (rs *ruleSet) free(from, step int) float64 {
	for n := from; ; n += step {
		if !slices.ContainsFunc(rs.rules, func(r object) bool { return at(r, "properties", "priority") == strconv.Itoa(n) }) {
			return float64(n)
		}
	}
}

// add lets (or keeps) sources in at destinations.
func (rs *ruleSet) add(name string, to []string, props func() object) {
	if len(to) == 0 {
		return
	}
	r := named(rs.rules, name)
	if r == nil {
		r = object{"name": name, "properties": props()}
		rs.rules = append(rs.rules, r)
	}
	setDestinations(r, append(destinations(r), to...))
}

func (rs *ruleSet) allow(six bool, protocol string, sources, ports, to []string) {
	slices.Sort(sources)
	slices.Sort(ports)
	ports = slices.Compact(ports)
	sum := md5.Sum([]byte(protocol + "_" + strings.Join(sources, ",") + "_" + strings.Join(ports, ",")))
	rs.add(fmt.Sprintf("%s_allow_%s_%x", managedRules, familyName(six), sum), to, func() object {
		r := object{"properties": object{
			"priority": rs.free(500, 1), "direction": "Inbound", "access": "Allow", "protocol": protocol,
			"sourcePortRange": "*", "destinationPortRanges": anys(ports),
		}}
		setMany(r, "sourceAddressPrefix", "sourceAddressPrefixes", sources)
		return sub(r, "properties")
	})
}

func (rs *ruleSet) deny(six bool, to []string) {
	rs.add(managedRules+"_deny-all_"+familyName(six), to, func() object {
		return object{
			"priority": rs.free(4095, -1), "direction": "Inbound", "access": "Deny", "protocol": "*", "sourceAddressPrefix": "*",
			"sourcePortRange": "*", "destinationPortRange": "*",
		}
	})
}

func familyName(six bool) string {
	if six {
		return "IPv6"
	}
	return "IPv4"
}

// destined are the addresses that packets to a Service carry, by family.
func (p *predecessor) destined(s *v1.Service, addresses []string) map[bool][]string {
	all := slices.Clone(addresses)
	if switched(s, "azure-disable-load-balancer-floating-ip") {
		all = further(s)
		for _, six := range familiesOf(s) {
			for _, m := range p.machines {
				if p.joins(m) {
					all = append(all, m.address(six))
				}
			}
		}
	}
	out := map[bool][]string{}
	for _, a := range all {
		out[strings.Contains(a, ":")] = append(out[strings.Contains(a, ":")], a)
	}
	return out
}

var securityProtocols = map[v1.Protocol]string{v1.ProtocolTCP: "Tcp", v1.ProtocolUDP: "Udp", v1.ProtocolSCTP: "*"}

func portsOf(s *v1.Service, protocol string) (ports []string) {
	for _, port := range s.Spec.Ports {
		n := port.Port
		if switched(s, "azure-disable-load-balancer-floating-ip") {
			n = port.NodePort
		}
		if securityProtocols[port.Protocol] == protocol {
			ports = append(ports, strconv.Itoa(int(n)))
		}
	}
	return ports
}

// ranges are the sources that may come in, by family, and whether one was unreadable.
func ranges(s *v1.Service) (good map[bool][]string, bad bool) {
	entries := slices.Clone(s.Spec.LoadBalancerSourceRanges)
	for _, key := range []string{"azure-allowed-ip-ranges", "load-balancer-source-ranges"} {
		if v, set := s.Annotations[notePrefix+key]; set { // an empty one is an entry that cannot be read
			entries = append(entries, strings.Split(v, ",")...)
		}
	}
	var prefixes []netip.Prefix
	for _, e := range entries {
		n, err := netip.ParsePrefix(strings.TrimSpace(e))
		if err != nil || n != n.Masked() {
			bad = true
			continue
		}
		prefixes = append(prefixes, n)
	}
	good = map[bool][]string{}
	for _, n := range aggregated(prefixes) {
		six := n.Addr().Is6()
		good[six] = append(good[six], n.String())
	}
	return good, bad
}

// aggregated leaves out what is contained and joins halves.
func aggregated(in []netip.Prefix) []netip.Prefix {
	for {
		var out []netip.Prefix
		for i, a := range in {
			inside := slices.ContainsFunc(slices.Concat(out, in[i+1:]),
				func(b netip.Prefix) bool { return b.Bits() <= a.Bits() && b.Contains(a.Addr()) })
			if !inside {
				out = append(out, a)
			}
		}
		joined := false
		for i, a := range out {
			for j, b := range out[:i] {
				if wide := netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked(); a.Bits() > 0 && a.Bits() == b.Bits() &&
					wide.Contains(b.Addr()) {
					out[j], joined = wide, true
				}
			}
		}
		if !joined {
			return out
		}
		in = out
	}
}

// securityRules is the security group's pass for one Service: its destinations are removed from all
// managed rules and put where they belong. Destinations without a Service go.
func (p *predecessor) securityRules(s *v1.Service, wanted bool, were []string) {
	id := p.network(p.SecurityGroupResourceGroup, "networkSecurityGroups", p.SecurityGroupName)
	nsg := p.doc(id)
	rs := &ruleSet{rules: children(sub(nsg, "properties"), "securityRules")}
	before := ruleTexts(rs.rules)
	if wanted {
		were = p.addresses(s)
	}
	to := p.destined(s, were)
	p.strip(rs, s, slices.Concat(to[false], to[true]))
	if wanted && !switched(s, "azure-disable-load-balancer-nsg-rule") {
		admit(rs, s, to)
	}
	p.collect(rs)
	var dirty []string
	for name, now := range ruleTexts(rs.rules) {
		if before[name] != now {
			dirty = append(dirty, fmt.Sprintf("%s was %s", now, before[name]))
		}
	}
	for name := range before {
		if named(rs.rules, name) == nil {
			dirty = append(dirty, name+" goes")
		}
	}
	setList(nsg, "securityRules", rs.rules)
	p.tagFrame(nsg, &dirty)
	if dirty != nil {
		p.write(id, nsg, "%s for %s", dirty, keyOf(s))
	}
}

// ruleTexts are rules as they are compared, by name.
func ruleTexts(rules []object) map[string]string {
	out := map[string]string{}
	for _, r := range rules {
		props := maps.Clone(sub(r, "properties"))
		for k, v := range props {
			if list, is := v.([]any); is && len(list) == 0 || k == "provisioningState" {
				delete(props, k)
			}
		}
		out[nameOf(r)] = nameOf(r) + string(text(props))
	}
	return out
}

// strip takes destinations out of the managed rules, but for ports that others need.
func (p *predecessor) strip(rs *ruleSet, s *v1.Service, to []string) {
	for _, r := range rs.rules {
		if !managedRule(r) {
			continue
		}
		ports := manyOf(r, "destinationPortRange", "destinationPortRanges")
		rest := slices.DeleteFunc(destinations(r), func(d string) bool {
			return slices.Contains(to, d) && !p.needed(s, d, at(r, "properties", "protocol"), ports)
		})
		if len(rest) != len(destinations(r)) {
			setDestinations(r, rest)
		}
	}
}

// needed reports whether other Services have all the ports at a destination.
func (p *predecessor) needed(s *v1.Service, destination, protocol string, ports []string) bool {
	var others []string
	for _, o := range p.services {
		to := p.destined(o, p.addresses(o))
		if keyOf(o) != keyOf(s) && slices.Contains(slices.Concat(to[false], to[true]), destination) {
			others = append(others, portsOf(o, protocol)...)
		}
	}
	for _, port := range ports {
		if !slices.Contains(others, port) {
			return false
		}
	}
	return true
}

// admit adds the rules of a Service.
func admit(rs *ruleSet, s *v1.Service, to map[bool][]string) {
	good, bad := ranges(s)
	var tags []string
	if v := noted(s, "azure-allowed-service-tags"); v != "" {
		tags = strings.Split(v, ",")
	}
	limited := bad || len(good) > 0
	if !limited && tags == nil && !internal(s) {
		tags = []string{"Internet"}
	}
	for _, six := range []bool{false, true} {
		for _, protocol := range []string{"Tcp", "Udp", "*"} {
			ports := portsOf(s, protocol)
			if ports == nil {
				continue
			}
			for _, tag := range tags {
				rs.allow(six, protocol, []string{strings.TrimSpace(tag)}, ports, to[six])
			}
			if good[six] != nil {
				rs.allow(six, protocol, slices.Clone(good[six]), ports, to[six])
			}
		}
		if bad || len(good) > 0 && switched(s, "azure-deny-all-except-load-balancer-source-ranges") {
			rs.deny(six, to[six])
		}
	}
}

// collect removes the destinations that no Service has, and the rules without any.
func (p *predecessor) collect(rs *ruleSet) {
	known := map[string]bool{}
	for _, s := range p.services {
		for _, a := range slices.Concat(p.addresses(s), further(s)) {
			known[a] = true
		}
	}
	for _, m := range p.machines {
		known[m.address(false)], known[m.address(true)] = true, true
	}
	rs.rules = slices.DeleteFunc(rs.rules, func(r object) bool {
		if !managedRule(r) {
			return false
		}
		have := destinations(r)
		rest := slices.DeleteFunc(slices.Clone(have), func(d string) bool { return !known[d] })
		if len(rest) != len(have) {
			setDestinations(r, rest)
		}
		return len(rest) == 0
	})
}
