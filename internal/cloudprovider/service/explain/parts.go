package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/security"
)

// Part is one thing in Azure that a Service has or is to have.
type Part struct {
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	ID      azure.ID  `json:"id"`
	Current string    `json:"current,omitempty"` // "" for a part that is not there
	Desired string    `json:"desired,omitempty"` // "" for one that is to go
	State   PartState `json:"state"`

	content string     // all that makes a difference
	refers  []azure.ID // to other parts
}

// PartState compares a part as it is with the part as it is wanted.
type PartState string

const (
	UpToDate PartState = "upToDate"
	ToCreate PartState = "toCreate"
	ToDelete PartState = "toDelete"
	ToChange PartState = "toChange"
)

const securityRule = "security rule"

// kinds are in the order in which packets meet them.
var kinds = []string{"public IP", "frontend", "rule", "probe", "pool", securityRule, "private link service"}

// partsOf compares what belongs to a Service, with its addresses, before and after a commit.
func partsOf(s *corev1.Service, addresses []string, have, after plan.Snapshot) []Part {
	parts := find(s, addresses, have)
	for _, p := range find(s, addresses, after) {
		i := slices.IndexFunc(parts, func(had Part) bool { return had.ID.Equal(p.ID) })
		switch {
		case i < 0:
			p.Current, p.Desired, p.State = "", p.Current, ToCreate
			parts = append(parts, p)
		case parts[i].content == p.content:
			parts[i].Desired, parts[i].State, parts[i].refers = p.Current, UpToDate, p.refers
		default:
			parts[i].Desired, parts[i].State, parts[i].refers = p.Current, ToChange, p.refers
		}
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	return parts
}

// search collects what belongs to a Service. That includes what the rules of the Service refer to, whatever else uses
// it.
type search struct {
	service   *corev1.Service
	addresses []string
	base      string
	refers    map[string]bool // by id key
	all       []Part
}

func find(service *corev1.Service, addresses []string, in plan.Snapshot) []Part {
	s := search{service: service, addresses: slices.Clone(addresses), base: naming.OwnerOf(service), refers: map[string]bool{}}
	for _, lb := range views[network.LoadBalancer](in, network.LoadBalancers) {
		s.balancer(lb)
	}
	for _, ip := range views[network.PublicIPAddress](in, network.PublicIPAddresses) {
		if !s.refers[ip.ID.Key()] && !strings.Contains(ip.ID.Key(), "-"+s.base) {
			continue
		}
		p := ip.Properties
		s.addresses = append(s.addresses, cmp.Or(p.IPAddress, address.OfPublicIP(ip.ID)))
		text := cmp.Or(p.IPAddress, "a new "+p.PublicIPAddressVersion+" address")
		if p.PublicIPPrefix != nil {
			text += " of the prefix " + p.PublicIPPrefix.ID.Name()
		}
		if p.DNSSettings != nil && p.DNSSettings.DomainNameLabel != "" {
			text += ", DNS label " + p.DNSSettings.DomainNameLabel
		}
		s.add("public IP", ip.ID, text, ip)
	}
	for _, group := range views[network.SecurityGroup](in, network.SecurityGroups) {
		for _, r := range group.Properties.SecurityRules {
			if text := s.securityText(r); text != "" {
				s.add(securityRule, group.ID.Child("securityRules", r.Name), text, text)
			}
		}
	}
	for _, link := range views[network.PrivateLinkService](in, network.PrivateLinkServices) {
		p := link.Properties
		if slices.ContainsFunc(p.LoadBalancerFrontendIPConfigurations, func(r azure.Reference) bool { return s.refers[r.ID.Key()] }) {
			s.add("private link service", link.ID, counted(len(p.IPConfigurations), "address"), link,
				ids(p.LoadBalancerFrontendIPConfigurations)...)
		}
	}
	return s.all
}

// views are the documents of a type, without what differs with each write.
func views[P any](in plan.Snapshot, fullType string) []azure.Resource[P] {
	all, _ := plan.Views[P](in, "", fullType) // everywhere: the decision has read them, or made them
	for i := range all {
		all[i].Etag = ""
	}
	return all
}

func (s *search) add(kind string, id azure.ID, text string, content any, refers ...azure.ID) {
	name := id.Name()
	if parent := id.Parent(); parent.Namespace() != "Microsoft.Resources" {
		name = parent.Name() + "/" + name
	}
	whole, _ := json.Marshal(content) // it was read from JSON
	s.all = append(s.all, Part{Kind: kind, Name: name, ID: id, Current: text, State: ToDelete, content: string(whole), refers: refers})
}

func (s *search) balancer(lb azure.Resource[network.LoadBalancer]) {
	for _, r := range lb.Properties.LoadBalancingRules {
		if p := r.Properties; naming.Owner(r.Name) == s.base {
			for _, ref := range []*azure.Reference{p.FrontendIPConfiguration, p.Probe, p.BackendAddressPool} {
				s.refers[ref.To().Key()] = true
			}
			s.add("rule", lb.ID.Child("loadBalancingRules", r.Name), ruleText(p), p,
				p.FrontendIPConfiguration.To(), p.Probe.To(), p.BackendAddressPool.To())
		}
	}
	for _, f := range lb.Properties.FrontendIPConfigurations {
		id, p := lb.ID.Child(network.FrontendIPConfigurations, f.Name), f.Properties
		if naming.Owner(f.Name) != s.base && !s.refers[id.Key()] {
			continue
		}
		s.refers[id.Key()], s.refers[p.PublicIPAddress.To().Key()] = true, true
		s.addresses = append(s.addresses, cmp.Or(p.PrivateIPAddress, address.OfFrontend(lb.ID, f.Name)))
		text := p.PrivateIPAddress
		switch {
		case p.PublicIPAddress != nil:
			text = "public IP " + p.PublicIPAddress.ID.Name()
		case p.Subnet != nil:
			text = cmp.Or(text, "an address") + " in the subnet " + p.Subnet.ID.Name()
		}
		s.add("frontend", id, text, p, p.PublicIPAddress.To())
	}
	var probes []network.Probe
	for _, p := range lb.Properties.Probes {
		if s.refers[lb.ID.Child(network.Probes, p.Name).Key()] {
			probes = append(probes, p.Properties)
		}
		if id := lb.ID.Child(network.Probes, p.Name); naming.Owner(p.Name) == s.base || s.refers[id.Key()] {
			s.add("probe", id, probeText(p.Properties), p.Properties)
		}
	}
	for _, p := range lb.Properties.BackendAddressPools {
		if id := lb.ID.Child(network.BackendAddressPools, p.Name); s.refers[id.Key()] {
			members := max(len(p.Properties.BackendIPConfigurations), len(p.Properties.LoadBalancerBackendAddresses))
			s.add("pool", id, poolText(members, probes), p.Properties.LoadBalancerBackendAddresses)
		}
	}
}

// poolText says how many members a pool has, and when a new one gets requests: when the probes of the Service have succeeded.
func poolText(members int, probes []network.Probe) string {
	if members == 0 {
		return "no members yet"
	}
	text, seconds := counted(members, "member"), 0
	for _, p := range probes {
		seconds = max(seconds, int(p.IntervalInSeconds*p.ProbeThreshold))
	}
	if seconds == 0 {
		return text
	}
	return fmt.Sprintf("%s; a new one gets requests when its probes have succeeded, up to %d s later", text, seconds)
}

func ids(refs []azure.Reference) (all []azure.ID) {
	for _, r := range refs {
		all = append(all, r.ID)
	}
	return all
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func ruleText(r network.LoadBalancingRule) string {
	words := []string{fmt.Sprintf("%s %d to %d", r.Protocol, r.FrontendPort, r.BackendPort)}
	if r.FrontendPort == 0 {
		words[0] = "all ports"
	}
	add := func(is bool, text string) {
		if is {
			words = append(words, text)
		}
	}
	add(ptr.Deref(r.EnableFloatingIP, false), "floating IP")
	add(r.IdleTimeoutInMinutes != nil, fmt.Sprintf("idle %d min", ptr.Deref(r.IdleTimeoutInMinutes, 0)))
	add(!ptr.Deref(r.EnableTCPReset, true) && strings.EqualFold(r.Protocol, "Tcp"), "no TCP reset")
	add(strings.EqualFold(r.LoadDistribution, "SourceIP"), "each client at one node")
	add(r.Probe == nil, "no probe")
	add(r.Probe != nil, "probe "+r.Probe.To().Name())
	return strings.Join(words, ", ")
}

func probeText(p network.Probe) string {
	path := p.RequestPath
	if path != "" && !strings.HasPrefix(path, "/") {
		path = " " + path // else it would be read as a part of the port
	}
	return fmt.Sprintf("%s %d%s every %d s, %d in a row", p.Protocol, p.Port, path, p.IntervalInSeconds, p.ProbeThreshold)
}

// securityText is what a rule means to the Service, "" for nothing.
func (s *search) securityText(r azure.Child[network.SecurityRule]) string {
	p := r.Properties
	to := security.Listed(p.DestinationAddressPrefix, p.DestinationAddressPrefixes)
	ports := security.Listed(p.DestinationPortRange, p.DestinationPortRanges)
	mine := slices.DeleteFunc(slices.Clone(to), func(a string) bool { return !slices.Contains(s.addresses, a) })
	if len(mine) == 0 {
		if !strings.HasPrefix(r.Name, "k8s-azure-lb") || !slices.ContainsFunc(s.service.Spec.Ports, func(p corev1.ServicePort) bool {
			return p.NodePort > 0 && slices.Contains(ports, strconv.Itoa(int(p.NodePort)))
		}) {
			return ""
		}
		mine = []string{counted(len(to), "node")}
	}
	verb := "lets in"
	if strings.EqualFold(p.Access, "Deny") {
		verb = "keeps out"
	}
	text := fmt.Sprintf("%s %s %s to %s from %s (%d)", verb, p.Protocol, strings.Join(ports, ","), strings.Join(mine, ","),
		strings.Join(security.Listed(p.SourceAddressPrefix, p.SourceAddressPrefixes), ","), p.Priority)
	return plan.Shown(text, func(id azure.ID) string { // that has the address when Azure has chosen it
		if id.Is(network.PublicIPAddresses) {
			return "the public IP is created"
		}
		return "the load balancer is written"
	})
}
