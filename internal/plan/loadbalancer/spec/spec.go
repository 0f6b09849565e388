// Package spec reads what a Service asks for from its object and validates it. It
// knows nothing of Azure's documents or of other Services. Layer L1.
package spec

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
)

// Service is one Service of a commit.
type Service struct {
	*v1.Service
	// Gone says that the Service is being deleted, or is no load balancer any more.
	Gone bool
	// Groups are the resource groups that the Service is known to have asked for before. Nothing else shows an address
	// that was made there and is not used yet, or a private link service. Invalid names are left out.
	Groups []key.Note
}

// Key is the Service's "namespace/name".
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// KeyOf is the "namespace/name" of a Service.
func KeyOf(s *v1.Service) string { return s.Namespace + "/" + s.Name }

// GroupsOf are the resource groups of a kind in notes.
func GroupsOf(of key.Kind, lists ...[]key.Note) (groups []string) {
	for _, n := range slices.Concat(lists...) {
		if n.Of == of && key.IsGroup(n.Group) {
			groups = append(groups, n.Group)
		}
	}
	return groups
}

// Families are the Service's IP families. An object that did not come through an API server may omit them.
func (s Service) Families() []v1.IPFamily {
	if len(s.Spec.IPFamilies) == 0 {
		return []v1.IPFamily{v1.IPv4Protocol}
	}
	return s.Spec.IPFamilies
}

// IsLocal reports whether nodes without an endpoint must not get packets.
func (s Service) IsLocal() bool {
	return s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
}

// KnownAddresses are the addresses in the Service's status, and its additional ones.
func (s Service) KnownAddresses() (all []string) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		all = append(all, in.IP)
	}
	further, _ := key.AdditionalIPs.Read(s.Annotations)
	return append(all, further...)
}

// LoadBalancersAsked are the load balancers that the Service names. The case of the key does not matter.
func (s Service) LoadBalancersAsked() []string {
	for _, name := range slices.Sorted(maps.Keys(s.Annotations)) {
		if strings.EqualFold(name, key.Balancers.Name) {
			asked, _ := key.Balancers.Read(map[string]string{key.Balancers.Name: s.Annotations[name]})
			return asked
		}
	}
	return nil
}

// asksNodes reports whether the nodes say if they have endpoints of the Service.
// They do not understand PROXY protocol, which a private link's probes speak. Here cloud-provider-azure reads the annotation
// without removing blanks, and the probes in place must stay.
func (s Service) asksNodes() bool {
	proxied := strings.EqualFold(s.Annotations[key.LinkProxyProtocol.Name], "true")
	return s.IsLocal() && s.Spec.HealthCheckNodePort > 0 && (!key.LinkStays(s.Annotations) || !proxied)
}

var protocols = map[v1.Protocol]string{v1.ProtocolTCP: "Tcp", v1.ProtocolUDP: "Udp", v1.ProtocolSCTP: "*"}

// Protocol is a port's protocol as Azure writes it in rules.
func Protocol(p v1.ServicePort) string { return protocols[ProtocolOf(p)] }

// ProtocolOf is the port's protocol. An object that did not come through an API server may omit it.
func ProtocolOf(p v1.ServicePort) v1.Protocol { return cmp.Or(p.Protocol, v1.ProtocolTCP) }

// AtNodes reports whether packets for a Service arrive at the nodes' own addresses, not at the Service's.
func AtNodes(s *v1.Service) bool {
	w := Outline(Service{Service: s})
	return slices.ContainsFunc(w.Service.Families(), func(family v1.IPFamily) bool { return !w.Floats(family) })
}

// Outline is a Service's spec with its names and kind alone, without validation. It is enough for
// a Service that is gone.
func Outline(s Service) *Spec {
	internal, _ := key.Internal.Read(s.Annotations)
	fixed, _ := key.DisableFloatingIP.Read(s.Annotations)
	return &Spec{Service: s, Owner: naming.OwnerOf(s.Service), Internal: internal, Fixed: fixed}
}

// WithAccess is the outline of a Service with its access, without validation.
func WithAccess(s Service) *Spec {
	r := reader{Spec: Outline(s)}
	r.access()
	return r.Spec
}

// Spec is what one Service asks for.
type Spec struct {
	Service   Service
	Owner     string // starts the names of what the Service has, in lower case
	Internal  bool
	Fixed     bool   // packets arrive at the nodes' own addresses
	Subnet    string // that it names, "" for the configured one
	Group     string // of its public IPs, "" for the cluster's
	Addresses []Address
	Access    Access
	Tags      azure.Tags      // of its public IPs
	IPTags    []network.IPTag // nil is no opinion
	IPTagSlip string          // what is wrong with them, "" for nothing
	// IPTagWarnings are warnings of such a slip where no public IP is lost for it.
	IPTagWarnings problem.List
	Label         *string      // in Azure's DNS; nil is no opinion
	Further       []netip.Addr // at which it answers, though other rules forward the packets
	Link          *Link        // private link service, nil for none
}

// Key is the Service's "namespace/name".
func (s *Spec) Key() string { return s.Service.Key() }

// IsIPv6Only reports whether the Service has no IPv4 address.
func (s *Spec) IsIPv6Only() bool {
	return !slices.ContainsFunc(s.Addresses, func(a Address) bool { return !a.IsIPv6() })
}

// AllPorts reports whether one rule serves all ports and protocols.
func (s *Spec) AllPorts() bool {
	all, _ := key.HAPorts.Read(s.Service.Annotations)
	return all && s.Internal
}

// Floats reports whether packets arrive at the Service's address of a family. An internal IPv6 address does
// not float: it is a second address of the nodes' interfaces.
func (s *Spec) Floats(family v1.IPFamily) bool {
	return !s.Fixed && (!s.Internal || family != v1.IPv6Protocol)
}

// Address is what a Service asks for in one IP family.
type Address struct {
	naming.Names
	Family   v1.IPFamily
	Pinned   string   // the address it must be, "" for any
	PublicIP string   // name of an existing public IP, "" for none
	Prefix   azure.ID // from which a new public IP is taken
	Asked    string   // where and how the Service names one of these, "" for nowhere
	Floating bool     // packets arrive at the address, not at the nodes' own
	Rules    []Rule
	Probes   []azure.Child[network.Probe]
}

// IsIPv6 reports whether the address is one of IPv6.
func (a Address) IsIPv6() bool { return a.Family == v1.IPv6Protocol }

// Given reports whether the Service names an existing address.
func (a Address) Given() bool { return a.PublicIP != "" || a.Pinned != "" }

// Link is the private link service that a Service asks for.
type Link struct {
	Name       string // "" for one after the frontend
	Group      string // resource group, "" for the configured one
	Subnet     string // "" for the configured one
	Count      int    // of addresses
	Static     []string
	FQDNs      []string
	Proxy      bool
	Visibility []string
	Approval   []string
	Option     string // an annotation that only the owner may have, "" for none
}

// Rule is one port of a Service at the load balancer, or all of them.
type Rule struct {
	Name         string
	Protocol     string // as Azure writes it
	Port         int32  // 0 for all
	BackendPort  int32
	Probe        string // its name, "" for none
	Distribution string
	IdleMinutes  int32
	Reset        *bool // nil where the protocol knows none
}

// Access is which sources may reach a Service.
type Access struct {
	Open bool                       // there are rules for the Service at all
	From map[v1.IPFamily][][]string // each list is the sources of one rule
	Deny bool                       // everything else, the virtual network too
}

// Opening lets sources in at ports. Its slices are sorted.
type Opening struct {
	Family   v1.IPFamily
	Protocol string
	Sources  []string
	Ports    []string
}

// Name is the name of the opening's security rule.
func (o Opening) Name() string { return naming.AllowRule(o.Family, o.Protocol, o.Sources, o.Ports) }

// Internet is Azure's name for the sources outside of the virtual network.
const Internet = "Internet"

// Openings are the allowed sources and ports of a family: the Service's own ports, or its node ports.
func (s *Spec) Openings(family v1.IPFamily, nodePort bool) (all []Opening) {
	for _, o := range s.PortsByProtocol(nodePort) {
		for _, from := range s.Access.From[family] {
			o.Family, o.Sources = family, from
			all = append(all, o)
		}
	}
	return all
}

// PortsByProtocol is the Service's own ports, or its node ports, as the packets carry them.
func (s *Spec) PortsByProtocol(nodePort bool) (all []Opening) {
	for _, protocol := range []string{"Tcp", "Udp", "*"} {
		var ports []string
		for _, p := range s.Service.Spec.Ports {
			port := p.Port
			if nodePort {
				port = p.NodePort
			}
			if Protocol(p) == protocol && port > 0 {
				ports = append(ports, strconv.Itoa(int(port)))
			}
		}
		if slices.Sort(ports); len(ports) > 0 {
			all = append(all, Opening{Protocol: protocol, Ports: slices.Compact(ports)})
		}
	}
	return all
}
