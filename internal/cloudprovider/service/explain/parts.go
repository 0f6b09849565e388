package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/naming"
)

// Part is one thing in Azure that a Service has or is to have.
type Part struct {
	Kind  string    `json:"kind"`
	Name  string    `json:"name"`
	ID    azure.ID  `json:"id"`
	Is    string    `json:"is,omitempty"`    // "" for a part that is not there
	Shall string    `json:"shall,omitempty"` // "" for one that is to go
	State PartState `json:"state"`
}

// PartState compares what is with what is wanted.
type PartState string

// The states of parts.
const (
	UpToDate PartState = "upToDate"
	ToCreate PartState = "toCreate"
	ToDelete PartState = "toDelete"
	ToChange PartState = "toChange"
)

var marks = map[PartState]string{UpToDate: "=", ToCreate: "+", ToDelete: "-", ToChange: "~"}

func writeParts(b *strings.Builder, parts []Part) {
	if len(parts) == 0 {
		return
	}
	b.WriteString("  in Azure (= up to date, + to create, - to delete, ~ to change):\n")
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		fmt.Fprintf(w, "  %s %s\t%s\t%s\n", marks[p.State], p.Kind, p.Name, cmp.Or(p.Is, p.Shall))
		if p.State == ToChange && p.Is != p.Shall {
			fmt.Fprintf(w, "  \t\t-> %s\n", p.Shall)
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
}

// state is documents by the keys of their ids, as Azure has them or will have them.
type state map[string]located

// located is a document with its id, which one that is to be made does not tell.
type located struct {
	id  azure.ID
	doc azure.Document
}

// explainedTypes are the types of resources that a Service has, or has parts of.
func explainedTypes() []string {
	return []string{network.PublicIPAddresses, network.LoadBalancers, network.SecurityGroups, network.PrivateLinkServices}
}

// documents is what a snapshot has of what can be a Service's.
func documents(have plan.Snapshot) state {
	const everywhere = azure.ID("")
	w := state{}
	for _, fullType := range explainedTypes() {
		for _, doc := range have.List(everywhere, fullType) {
			w[doc.ID().Key()] = located{doc.ID(), doc}
		}
	}
	return w
}

// outcome is what the steps of a plan make of a snapshot.
func outcome(have plan.Snapshot, p plan.Plan) state {
	w := documents(have)
	for _, s := range p.Steps {
		switch {
		case !slices.ContainsFunc(explainedTypes(), s.ID.Is), s.Op == plan.Act:
		case s.Op == plan.Delete:
			delete(w, s.ID.Key())
		default:
			w[s.ID.Key()] = located{s.ID, s.Body}
		}
	}
	return w
}

// each views the documents of a type, in the order of their ids.
func each[P any](w state, fullType string, do func(id azure.ID, view azure.Resource[P])) {
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if w[key].id.Is(fullType) {
			view, _ := azure.Decode[P](w[key].doc) // the decision has read it, or made it
			view.Etag = ""                         // differs with each write
			do(w[key].id, view)
		}
	}
}

// found is a part as it is in one state.
type found struct {
	kind, name string
	id         azure.ID
	text       string
	content    string // all that makes a difference
}

// partsOf compares what belongs to a Service, with its addresses, in two states.
func partsOf(s *corev1.Service, addresses []string, is, after state) []Part {
	before, later := find(s, addresses, is), find(s, addresses, after)
	var all []Part
	for _, f := range before {
		p := Part{Kind: f.kind, Name: f.name, ID: f.id, Is: f.text, State: ToDelete}
		if i := slices.IndexFunc(later, f.same); i >= 0 {
			p.Shall, p.State = later[i].text, UpToDate
			if later[i].content != f.content {
				p.State = ToChange
			}
		}
		all = append(all, p)
	}
	for _, f := range later {
		if !slices.ContainsFunc(before, f.same) {
			all = append(all, Part{Kind: f.kind, Name: f.name, ID: f.id, Shall: f.text, State: ToCreate})
		}
	}
	slices.SortStableFunc(all, func(a, b Part) int { return slices.Index(kinds(), a.Kind) - slices.Index(kinds(), b.Kind) })
	return all
}

func (f found) same(other found) bool { return f.id.Equal(other.id) }

const (
	kindAddress  = "public IP"
	kindFrontend = "frontend"
	kindRule     = "rule"
	kindProbe    = "probe"
	kindPool     = "pool"
	kindSecurity = "security rule"
	kindLink     = "private link service"
)

// kinds are in the order in which packets meet them.
func kinds() []string {
	return []string{kindAddress, kindFrontend, kindRule, kindProbe, kindPool, kindSecurity, kindLink}
}

// find is what belongs to a Service in one state.
func find(service *corev1.Service, addresses []string, w state) []found {
	s := search{service: service, addresses: slices.Clone(addresses),
		base: strings.ToLower(framework.DefaultLoadBalancerName(service)), refers: map[string]bool{}}
	each(w, network.LoadBalancers, s.balancer)
	each(w, network.PublicIPAddresses, s.publicIP)
	each(w, network.SecurityGroups, s.group)
	each(w, network.PrivateLinkServices, s.link)
	return s.all
}

// search collects what belongs to a Service. What its rules refer to is the Service's, whatever
// else uses it.
type search struct {
	service   *corev1.Service
	addresses []string
	base      string
	refers    map[string]bool
	all       []found
}

func (s *search) add(kind, name string, id azure.ID, text string, content any) {
	whole, _ := json.Marshal(content) // it was read from JSON
	s.all = append(s.all, found{kind: kind, name: name, id: id, text: text, content: string(whole)})
}

func (s *search) refer(refs ...*azure.Reference) {
	for _, r := range refs {
		if r != nil {
			s.refers[r.ID.Key()] = true
		}
	}
}

// mine reports whether a name begins as those of the Service do, or its rules refer
// to the id.
func (s *search) mine(name string, id azure.ID) bool {
	return naming.Owner(name) == s.base || s.refers[id.Key()]
}

func (s *search) balancer(of azure.ID, lb azure.Resource[network.LoadBalancer]) {
	in := func(name string) string { return of.Name() + "/" + name }
	for _, r := range lb.Properties.LoadBalancingRules {
		if naming.Owner(r.Name) != s.base {
			continue
		}
		p := r.Properties
		s.refer(p.FrontendIPConfiguration, p.Probe, p.BackendAddressPool)
		s.add(kindRule, in(r.Name), of.Child("loadBalancingRules", r.Name), ruleText(p), p)
	}
	for _, f := range lb.Properties.FrontendIPConfigurations {
		if id := of.Child(network.FrontendIPConfigurations, f.Name); s.mine(f.Name, id) {
			s.refers[id.Key()] = true
			s.refer(f.Properties.PublicIPAddress)
			s.addresses = append(s.addresses, cmp.Or(f.Properties.PrivateIPAddress, address.OfFrontend(of, f.Name)))
			s.add(kindFrontend, in(f.Name), id, frontendText(f.Properties), f.Properties)
		}
	}
	for _, p := range lb.Properties.Probes {
		if id := of.Child(network.Probes, p.Name); s.mine(p.Name, id) {
			s.add(kindProbe, in(p.Name), id, probeText(p.Properties), p.Properties)
		}
	}
	for _, p := range lb.Properties.BackendAddressPools {
		if id := of.Child(network.BackendAddressPools, p.Name); s.refers[id.Key()] {
			members := max(len(p.Properties.BackendIPConfigurations), len(p.Properties.LoadBalancerBackendAddresses))
			text := counted(members, "member")
			if members == 0 {
				text = "no members yet"
			}
			s.add(kindPool, in(p.Name), id, text, p.Properties.LoadBalancerBackendAddresses)
		}
	}
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
	if r.EnableFloatingIP != nil && *r.EnableFloatingIP {
		words = append(words, "floating IP")
	}
	if r.IdleTimeoutInMinutes != nil {
		words = append(words, fmt.Sprintf("idle %d min", *r.IdleTimeoutInMinutes))
	}
	if r.EnableTCPReset != nil && !*r.EnableTCPReset && strings.EqualFold(r.Protocol, "Tcp") {
		words = append(words, "no TCP reset")
	}
	if strings.EqualFold(r.LoadDistribution, "SourceIP") {
		words = append(words, "each client at one node")
	}
	if r.Probe == nil {
		return strings.Join(append(words, "no probe"), ", ")
	}
	return strings.Join(append(words, "probe "+r.Probe.ID.Name()), ", ")
}

func frontendText(f network.FrontendIPConfiguration) string {
	switch {
	case f.PublicIPAddress != nil:
		return "public IP " + f.PublicIPAddress.ID.Name()
	case f.Subnet == nil:
		return f.PrivateIPAddress
	case f.PrivateIPAddress == "":
		return "an address in the subnet " + f.Subnet.ID.Name()
	}
	return f.PrivateIPAddress + " in the subnet " + f.Subnet.ID.Name()
}

func probeText(p network.Probe) string {
	path := p.RequestPath
	if path != "" && !strings.HasPrefix(path, "/") {
		path = " " + path // else it would be read as a part of the port
	}
	return fmt.Sprintf("%s %d%s every %d s, %d in a row", p.Protocol, p.Port, path, p.IntervalInSeconds, p.ProbeThreshold)
}

func (s *search) publicIP(id azure.ID, ip azure.Resource[network.PublicIPAddress]) {
	if !s.refers[id.Key()] && !strings.Contains(id.Key(), "-"+s.base) {
		return
	}
	p := ip.Properties
	text := cmp.Or(p.IPAddress, "a new "+p.PublicIPAddressVersion+" address")
	s.addresses = append(s.addresses, cmp.Or(p.IPAddress, address.OfPublicIP(id)))
	if p.PublicIPPrefix != nil {
		text += " of the prefix " + p.PublicIPPrefix.ID.Name()
	}
	if p.DNSSettings != nil && p.DNSSettings.DomainNameLabel != "" {
		text += ", DNS label " + p.DNSSettings.DomainNameLabel
	}
	s.add(kindAddress, id.Name(), id, text, ip)
}

func (s *search) group(id azure.ID, group azure.Resource[network.SecurityGroup]) {
	for _, r := range group.Properties.SecurityRules {
		if text, lets := s.securityText(r); lets {
			s.add(kindSecurity, id.Name()+"/"+r.Name, id.Child("securityRules", r.Name), text, text)
		}
	}
}

// securityText is what a rule means to the Service, if anything.
func (s *search) securityText(r azure.Child[network.SecurityRule]) (string, bool) {
	p := r.Properties
	to, ports := both(p.DestinationAddressPrefix, p.DestinationAddressPrefixes), both(p.DestinationPortRange, p.DestinationPortRanges)
	mine := slices.DeleteFunc(slices.Clone(to), func(a string) bool { return !slices.Contains(s.addresses, a) })
	if len(mine) == 0 {
		if !strings.HasPrefix(r.Name, "k8s-azure-lb") || !slices.ContainsFunc(s.service.Spec.Ports, func(p corev1.ServicePort) bool {
			return p.NodePort > 0 && slices.Contains(ports, strconv.Itoa(int(p.NodePort)))
		}) {
			return "", false
		}
		mine = []string{counted(len(to), "node")}
	}
	verb := "lets in"
	if strings.EqualFold(p.Access, "Deny") {
		verb = "keeps out"
	}
	for i, address := range mine {
		mine[i] = plan.Shown(address, brought)
	}
	slices.Sort(mine)
	return fmt.Sprintf("%s %s %s to %s from %s (%d)", verb, p.Protocol, strings.Join(ports, ","), strings.Join(mine, ","),
		strings.Join(both(p.SourceAddressPrefix, p.SourceAddressPrefixes), ","), p.Priority), true
}

// brought says when a resource has the address that Azure chooses.
func brought(id azure.ID) string {
	if id.Is(network.PublicIPAddresses) {
		return "the public IP is created"
	}
	return "the load balancer is written"
}

func both(one *string, many []string) []string {
	all := slices.Clone(many)
	if one != nil && *one != "" {
		all = append(all, *one)
	}
	slices.Sort(all)
	return all
}

func (s *search) link(id azure.ID, link azure.Resource[network.PrivateLinkService]) {
	if slices.ContainsFunc(link.Properties.LoadBalancerFrontendIPConfigurations,
		func(r azure.Reference) bool { return s.refers[r.ID.Key()] }) {
		s.add(kindLink, id.Name(), id, counted(len(link.Properties.IPConfigurations), "address"), link)
	}
}
