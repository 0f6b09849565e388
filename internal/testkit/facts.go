package testkit

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// Facts describes what Azure has for a Service, in words that do not depend on the cluster. It has kinds of addresses and
// node ports in place of numbers.
func (e Env) Facts(t *testing.T, s *corev1.Service) []string {
	t.Helper()
	f := facts{service: s, base: baseOf(s), cluster: e.ClusterName, ownPools: e.OwnPools, addresses: map[string]bool{}}
	for _, in := range s.Status.LoadBalancer.Ingress {
		f.addresses[in.IP] = true
	}
	for _, lb := range listOf[network.LoadBalancer](t, e, network.LoadBalancers) {
		f.balancer(t, e, lb)
	}
	rest := len(f.lines)
	for _, r := range view[network.SecurityGroup](t, e, e.SecurityGroup).Properties.SecurityRules {
		f.securityRule(r)
	}
	slices.Sort(f.lines[rest:]) // their order does not matter
	for _, doc := range e.list(t, azure.Query{Scope: e.Group, Type: network.PrivateLinkServices}) {
		link, err := azure.Decode[network.PrivateLinkService](doc)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(doc), f.base) {
			f.link(link)
		}
	}
	return f.lines
}

// Names returns the names of a Service's parts of load balancers and of its public IPs, with zones
// and tags. BASE stands for the common part of the names.
func (e Env) Names(t *testing.T, s *corev1.Service) []string {
	t.Helper()
	f := facts{service: s, base: baseOf(s)}
	for _, lb := range listOf[network.LoadBalancer](t, e, network.LoadBalancers) {
		p := lb.Properties
		addNames(&f, "frontend", p.FrontendIPConfigurations)
		addNames(&f, "rule", p.LoadBalancingRules)
		addNames(&f, "probe", p.Probes)
	}
	for _, ip := range listOf[network.PublicIPAddress](t, e, network.PublicIPAddresses) {
		if strings.Contains(ip.Name, f.base) {
			f.add("public IP %s%s for %s", f.anonymous(ip.Name), inZones(ip.Zones), ip.Tags["k8s-azure-service"])
		}
	}
	return f.lines
}

func addNames[P any](f *facts, what string, children []azure.Child[P]) {
	for _, c := range children {
		if strings.HasPrefix(c.Name, f.base) {
			f.add("%s %s%s", what, f.anonymous(c.Name), inZones(c.Zones))
		}
	}
}

func inZones(zones []string) string {
	if len(zones) == 0 {
		return ""
	}
	return " in zones " + strings.Join(slices.Sorted(slices.Values(zones)), " ")
}

// Guard returns the rules of the security group by priority. Destinations are Services by their
// addresses, and "nodes".
func (e Env) Guard(t *testing.T, services map[string]*corev1.Service) []string {
	t.Helper()
	owners := map[string]string{}
	for name, s := range services {
		for _, in := range s.Status.LoadBalancer.Ingress {
			owners[in.IP] = strings.TrimPrefix(owners[in.IP]+"+"+name, "+")
		}
	}
	rules := view[network.SecurityGroup](t, e, e.SecurityGroup).Properties.SecurityRules
	slices.SortFunc(rules, func(a, b azure.Child[network.SecurityRule]) int {
		return cmp.Or(strings.Compare(a.Properties.Direction, b.Properties.Direction), int(a.Properties.Priority-b.Properties.Priority))
	})
	var lines []string
	for _, r := range rules {
		line := fmt.Sprintf("%d %s", r.Properties.Priority, r.Name)
		if strings.HasPrefix(r.Name, "k8s-azure-lb_") {
			line = fmt.Sprintf("%d %s to %s", r.Properties.Priority, rule(r, portsOf(r.Properties)), destinations(r.Properties, owners))
		}
		lines = append(lines, line)
	}
	return lines
}

// probes returns the names of all probes, with the Service's name in place of the common part.
func (e Env) probes(t *testing.T, services map[string]*corev1.Service) []string {
	t.Helper()
	var names []string
	for _, lb := range listOf[network.LoadBalancer](t, e, network.LoadBalancers) {
		for _, p := range lb.Properties.Probes {
			name := p.Name
			for _, s := range services {
				name = strings.ReplaceAll(name, baseOf(s), s.Name)
			}
			names = append(names, name)
		}
	}
	return names
}

// placed returns the load balancers, each with the names of the Services that have rules in it.
func (e Env) placed(t *testing.T, services map[string]*corev1.Service) []string {
	t.Helper()
	var lines []string
	for _, lb := range listOf[network.LoadBalancer](t, e, network.LoadBalancers) {
		line := []string{lb.Name + ":"}
		for _, name := range slices.Sorted(maps.Keys(services)) {
			if slices.ContainsFunc(lb.Properties.LoadBalancingRules, func(r azure.Child[network.LoadBalancingRule]) bool {
				return strings.HasPrefix(r.Name, baseOf(services[name]))
			}) {
				line = append(line, name)
			}
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

func destinations(r network.SecurityRule, owners map[string]string) string {
	var all []string
	for _, a := range bothOf(r.DestinationAddressPrefixes, r.DestinationAddressPrefix) {
		owner, ok := owners[a]
		if ip, err := netip.ParseAddr(a); !ok && err == nil && ip.IsPrivate() {
			owner = "nodes"
		}
		all = append(all, cmp.Or(owner, a))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func baseOf(s *corev1.Service) string { return "a" + strings.ReplaceAll(string(s.UID), "-", "")[:31] }

func listOf[P any](t *testing.T, e Env, fullType string) []azure.Resource[P] {
	t.Helper()
	var all []azure.Resource[P]
	for _, doc := range e.list(t, azure.Query{Scope: e.Group, Type: fullType}) {
		r, err := azure.Decode[P](doc)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

type facts struct {
	service   *corev1.Service
	base      string
	cluster   string
	ownPools  bool
	addresses map[string]bool
	lines     []string
}

func (f *facts) add(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(f.lines, line) {
		f.lines = append(f.lines, line)
	}
}

func (f *facts) balancer(t *testing.T, e Env, lb azure.Resource[network.LoadBalancer]) {
	t.Helper()
	frontends, six := map[string]bool{}, map[string]bool{}
	for _, r := range lb.Properties.LoadBalancingRules {
		if strings.HasPrefix(r.Name, f.base) {
			frontends[r.Properties.FrontendIPConfiguration.ID.Name()] = true
		}
	}
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		if frontends[fe.Name] {
			six[fe.Name] = f.frontend(t, e, fe.Properties)
		}
	}
	for _, r := range lb.Properties.LoadBalancingRules {
		if strings.HasPrefix(r.Name, f.base) {
			f.rule(lb, r.Properties, six[r.Properties.FrontendIPConfiguration.ID.Name()])
		}
	}
}

// frontend describes a frontend and reports whether its address is an IPv6 address.
func (f *facts) frontend(t *testing.T, e Env, fe network.FrontendIPConfiguration) bool {
	t.Helper()
	if fe.PublicIPAddress != nil {
		ip := view[network.PublicIPAddress](t, e, fe.PublicIPAddress.ID)
		f.add("%s", f.publicIP(e, ip))
		return strings.EqualFold(ip.Properties.PublicIPAddressVersion, string(corev1.IPv6Protocol))
	}
	six := strings.EqualFold(fe.PrivateIPAddressVersion, string(corev1.IPv6Protocol))
	how := "an address"
	if six {
		how = "an IPv6 address"
	}
	if strings.EqualFold(fe.PrivateIPAllocationMethod, "Static") {
		how = fe.PrivateIPAddress
	}
	f.add("internal load balancer: %s in the subnet %s", how, fe.Subnet.ID.Name())
	return six
}

func (f *facts) publicIP(e Env, ip azure.Resource[network.PublicIPAddress]) string {
	family := strings.ToLower(ip.Properties.PublicIPAddressVersion)
	text := "public IP of its own (" + strings.Replace(family, "ip", "IP", 1) + ")"
	if !strings.Contains(ip.Name, f.base) {
		text = "public IP " + ip.Name
		if owners := ip.Tags["k8s-azure-service"]; owners != "" {
			text = "public IP of " + owners
		}
		if group := ip.ID.Group(); !strings.EqualFold(group, e.Group.Group()) {
			text += " of the resource group " + group
		}
	}
	if p := ip.Properties.PublicIPPrefix; p != nil {
		text += " out of " + p.ID.Name()
	}
	if d := ip.Properties.DNSSettings; d != nil && d.DomainNameLabel != "" {
		text += " with the DNS label " + d.DomainNameLabel
	}
	var ipTags, tags []string
	for _, tag := range ip.Properties.IPTags {
		ipTags = append(ipTags, tag.IPTagType+"="+tag.Tag)
	}
	for name, value := range ip.Tags {
		if !strings.HasPrefix(name, "k8s-azure-") {
			tags = append(tags, name+"="+value)
		}
	}
	if len(ipTags) > 0 {
		text += " with the IP tags " + strings.Join(ipTags, " ")
	}
	if slices.Sort(tags); len(tags) > 0 {
		text += " with the tags " + strings.Join(tags, " ")
	}
	return text
}

// link describes a private link service, with its addresses and the primary one marked.
func (f *facts) link(link azure.Resource[network.PrivateLinkService]) {
	var given []string
	for _, c := range link.Properties.IPConfigurations {
		switch p := c.Properties; {
		case !strings.EqualFold(p.PrivateIPAllocationMethod, "Static"):
		case p.Primary != nil && *p.Primary:
			given = append(given, p.PrivateIPAddress+" first")
		default:
			given = append(given, p.PrivateIPAddress)
		}
	}
	about := fmt.Sprintf("private link service %s with %d addresses", f.anonymous(link.Name), len(link.Properties.IPConfigurations))
	f.add("%s", strings.Join(append([]string{about}, given...), ", "))
}

// anonymous replaces the part of a name that differs between Services.
func (f *facts) anonymous(name string) string { return strings.ReplaceAll(name, f.base, "BASE") }

func (f *facts) rule(lb azure.Resource[network.LoadBalancer], r network.LoadBalancingRule, six bool) {
	text := fmt.Sprintf("rule %s %d to %s", r.Protocol, r.FrontendPort, f.port(r.BackendPort))
	all, tcp := strings.EqualFold(r.Protocol, "All"), strings.EqualFold(r.Protocol, "Tcp")
	if all {
		text = "rule for all ports"
	}
	is := func(b *bool) bool { return b != nil && *b }
	pool := r.BackendAddressPool.ID.Name()
	for _, o := range []struct {
		is   bool
		text string
	}{
		{six, " over IPv6"},
		{is(r.EnableFloatingIP), ", floating IP"},
		{*r.IdleTimeoutInMinutes != 4, fmt.Sprintf(", idle timeout %d min", *r.IdleTimeoutInMinutes)},
		{(all || tcp) && !is(r.EnableTCPReset), ", no TCP reset"},
		{strings.EqualFold(r.LoadDistribution, "SourceIP"), ", by client"},
		{is(r.DisableOutboundSNAT), ", no outbound SNAT"},
		{pool != f.pool(six), ", pool " + pool},
	} {
		if o.is {
			text += o.text
		}
	}
	if r.Probe == nil {
		f.add("%s, no probe", text)
		return
	}
	probe, _ := named(lb.Properties.Probes, r.Probe.ID.Name())
	p := probe.Properties
	text += fmt.Sprintf(", probe %s %s%s every %d s", p.Protocol, f.port(p.Port), p.RequestPath, p.IntervalInSeconds)
	if n := p.ProbeThreshold; n != 2 {
		text += fmt.Sprintf(", %d in a row", n)
	}
	f.add("%s", text)
}

// pool returns the default pool of a rule, which the description omits. It is the cluster's pool, unless ownPools is set
// and the Service has the policy Local. Then it is the Service's own pool.
func (f *facts) pool(six bool) string {
	name, suffix := f.cluster, "-IPv6"
	if f.ownPools && f.service.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		name, suffix = f.service.Namespace+"-"+f.service.Name, "-ipv6"
	}
	if six {
		name += suffix
	}
	return name
}

// port describes a port by its kind.
func (f *facts) port(n int32) string {
	if n == f.service.Spec.HealthCheckNodePort && n > 0 {
		return "health check node port"
	}
	for _, p := range f.service.Spec.Ports {
		if p.NodePort == n && n > 0 {
			return "node port of " + strconv.Itoa(int(p.Port))
		}
	}
	return strconv.Itoa(int(n))
}

func (f *facts) securityRule(r azure.Child[network.SecurityRule]) {
	to, ports := bothOf(r.Properties.DestinationAddressPrefixes, r.Properties.DestinationAddressPrefix), portsOf(r.Properties)
	mine := slices.ContainsFunc(to, func(a string) bool { return f.addresses[a] })
	for i, p := range ports {
		if n, err := strconv.ParseInt(p, 10, 32); err == nil && f.port(int32(n)) != p {
			ports[i], mine = f.port(int32(n)), true
		}
	}
	if mine {
		f.add("security rule: %s", rule(r, ports))
	}
}

// rule describes a security rule, without priority and destination.
func rule(r azure.Child[network.SecurityRule], ports []string) string {
	over := ""
	if strings.Contains(r.Name, "_IPv6") {
		over = " over IPv6"
	}
	p := r.Properties
	sources := slices.Sorted(slices.Values(bothOf(p.SourceAddressPrefixes, p.SourceAddressPrefix)))
	return fmt.Sprintf("%s %s %s%s from %s", strings.ToLower(p.Access), p.Protocol, strings.Join(ports, " "), over,
		strings.Join(sources, " "))
}

func portsOf(r network.SecurityRule) []string {
	return slices.SortedFunc(slices.Values(bothOf(r.DestinationPortRanges, r.DestinationPortRange)), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
}

// bothOf returns the values of a plural field and its singular variant.
func bothOf(many []string, one *string) []string {
	if one == nil || *one == "" {
		return many
	}
	return append(slices.Clone(many), *one)
}
