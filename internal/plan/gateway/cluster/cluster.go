// Package cluster has the Kubernetes objects that routes refer to, and resolves references to Services and Secrets. Layer L1.
package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/pfx"
	"kaz/internal/plan/gateway/readiness"
	"kaz/internal/plan/gateway/route"
)

// Objects are objects of a cluster, by namespace and name.
type Objects struct {
	services map[name]*corev1.Service
	secrets  map[name]*corev1.Secret
	slices   map[name][]*discovery.EndpointSlice // by Service
	pods     map[string][]*corev1.Pod            // by namespace, in the order of their names
	made     map[name]made
}

type name struct{ namespace, name string }

// made is the result of reading a certificate from a Secret.
type made struct {
	secret      *corev1.Secret
	certificate route.Certificate
	err         error
}

// New returns the objects of a cluster.
func New(services []*corev1.Service, endpoints []*discovery.EndpointSlice, secrets []*corev1.Secret, pods []*corev1.Pod) *Objects {
	o := &Objects{
		services: map[name]*corev1.Service{}, secrets: map[name]*corev1.Secret{}, slices: map[name][]*discovery.EndpointSlice{},
		pods: map[string][]*corev1.Pod{}, made: map[name]made{},
	}
	for _, s := range services {
		o.services[name{s.Namespace, s.Name}] = s
	}
	for _, s := range secrets {
		o.secrets[name{s.Namespace, s.Name}] = s
	}
	for _, e := range endpoints {
		of := name{e.Namespace, e.Labels[discovery.LabelServiceName]}
		o.slices[of] = append(o.slices[of], e)
	}
	for _, all := range o.slices {
		slices.SortFunc(all, func(a, b *discovery.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	}
	for _, p := range pods {
		o.pods[p.Namespace] = append(o.pods[p.Namespace], p)
	}
	for _, all := range o.pods {
		slices.SortFunc(all, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	}
	return o
}

// After takes over the certificates that were made of the same Secrets before: making one takes milliseconds. A Secret is never changed in
// place.
func (o *Objects) After(before *Objects) *Objects {
	if before == nil {
		return o
	}
	for key, m := range before.made {
		if s, ok := o.secrets[key]; ok && s == m.secret {
			o.made[key] = m
		}
	}
	return o
}

// Certificate returns the certificate of a Secret.
func (o *Objects) Certificate(namespace, secret string) (route.Certificate, error) {
	key := name{namespace, secret}
	if known, ok := o.made[key]; ok {
		return known.certificate, known.err
	}
	s, ok := o.secrets[key]
	m := made{secret: s}
	if !ok {
		m.err = fmt.Errorf("secret %s/%s does not exist", namespace, secret)
	} else if m.certificate, m.err = pfx.Encode(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); m.err != nil {
		m.err = fmt.Errorf("secret %s/%s: %w", namespace, secret, m.err)
	}
	m.certificate.Namespace, m.certificate.Secret = namespace, secret
	o.made[key] = m
	return m.certificate, m.err
}

// Port is a port of a Service with its ready backends.
type Port struct {
	Namespace, Service string
	Port               int32  // of the Service
	Name               string // of the Service's port
	Target             int32  // of the backends
	Pool               network.GatewayPool
	Left               int           // ready backends that the pool has no room for
	Probe              *corev1.Probe // of the pods, nil for none
	Protocol           string        // appProtocol, "" for none
	// Missing says why there are no backends, nil if there could be some.
	Missing error
	// NoService says that the Service itself does not exist.
	NoService bool
}

const (
	mostAddresses = 1200 // of a pool
	plainPort     = 80   // of what does not exist
)

// Port resolves a reference to a port of a Service. What does not exist has no backends.
func (o *Objects) Port(namespace, service string, port networking.ServiceBackendPort) Port {
	p := Port{Namespace: namespace, Service: service, Port: port.Number, Target: plainPort, Pool: emptyPool()}
	s, ok := o.services[name{namespace, service}]
	if !ok {
		p.NoService, p.Missing = true, fmt.Errorf("service %s/%s does not exist", namespace, service)
		return p
	}
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		p.Target = cmp.Or(port.Number, externalPort(s, port.Name), plainPort)
		p.Pool.Addresses = append(p.Pool.Addresses, network.GatewayAddress{FQDN: strings.TrimSuffix(s.Spec.ExternalName, ".")})
		return p
	}
	found, ok := portOf(s, port)
	if !ok {
		p.Missing = fmt.Errorf("service %s/%s has no TCP port %s; it has %s", namespace, service,
			cmp.Or(port.Name, fmt.Sprint(port.Number)), portsOf(s))
		return p
	}
	p.Port, p.Name = found.Port, found.Name
	if found.AppProtocol != nil {
		p.Protocol = *found.AppProtocol
	}
	o.resolve(&p, s, found)
	p.Probe = o.readiness(s, p.Target)
	return p
}

func emptyPool() network.GatewayPool {
	return network.GatewayPool{Addresses: []network.GatewayAddress{}}
}

func externalPort(s *corev1.Service, name string) int32 {
	for _, p := range s.Spec.Ports {
		if name != "" && p.Name == name {
			return p.Port
		}
	}
	return 0
}

// portOf finds a port by its number or name, or else by its target.
func portOf(s *corev1.Service, want networking.ServiceBackendPort) (corev1.ServicePort, bool) {
	tests := []func(p corev1.ServicePort) bool{
		func(p corev1.ServicePort) bool {
			return want.Name == "" && p.Port == want.Number || want.Name != "" && p.Name == want.Name
		},
		func(p corev1.ServicePort) bool {
			return want.Name == "" && p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal == want.Number ||
				want.Name != "" && p.TargetPort.Type == intstr.String && p.TargetPort.StrVal == want.Name
		},
	}
	for _, is := range tests {
		for _, p := range s.Spec.Ports {
			if (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP) && is(p) {
				return p, true
			}
		}
	}
	return corev1.ServicePort{}, false
}

func portsOf(s *corev1.Service) string {
	var ports []string
	for _, p := range s.Spec.Ports {
		ports = append(ports, strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.Port, cmp.Or(p.Protocol, corev1.ProtocolTCP))))
	}
	if len(ports) == 0 {
		return "none"
	}
	return strings.Join(ports, ", ")
}

// resolve finds the ready backends of a Service's port: those with IPv4, because application gateways reach no others. Of several numbers
// of a named port, the smallest counts.
func (o *Objects) resolve(p *Port, s *corev1.Service, port corev1.ServicePort) {
	if port.TargetPort.Type == intstr.Int {
		p.Target = cmp.Or(port.TargetPort.IntVal, port.Port)
	}
	byNumber := map[int32][]*discovery.EndpointSlice{}
	for _, e := range o.slices[name{s.Namespace, s.Name}] {
		for _, q := range e.Ports {
			if isPort(q, port.Name) {
				byNumber[*q.Port] = append(byNumber[*q.Port], e)
			}
		}
	}
	if len(byNumber) == 0 {
		return
	}
	numbers := make([]int32, 0, len(byNumber))
	for n := range byNumber {
		numbers = append(numbers, n)
	}
	p.Target = slices.Min(numbers)
	addresses := o.readyIn(byNumber[p.Target], discovery.AddressTypeIPv4)
	if len(addresses) == 0 && len(o.readyIn(byNumber[p.Target], discovery.AddressTypeIPv6)) > 0 {
		p.Missing = fmt.Errorf("service %s/%s has ready endpoints with IPv6 alone; application gateways reach backends by IPv4, "+
			"so want the family IPv4 in spec.ipFamilies", s.Namespace, s.Name)
		return
	}
	p.Left = max(len(addresses)-mostAddresses, 0)
	for _, a := range addresses[:len(addresses)-p.Left] {
		p.Pool.Addresses = append(p.Pool.Addresses, network.GatewayAddress{IPAddress: a.String()})
	}
}

// isPort reports whether the port of a slice is the TCP port of a Service with a name.
func isPort(p discovery.EndpointPort, name string) bool {
	return p.Port != nil && (p.Protocol == nil || *p.Protocol == corev1.ProtocolTCP) &&
		(p.Name == nil && name == "" || p.Name != nil && *p.Name == name)
}

// readyIn returns the addresses of backends that are not terminating, sorted: the ready ones, and pods that would be without the readiness
// gate.
func (o *Objects) readyIn(all []*discovery.EndpointSlice, family discovery.AddressType) []netip.Addr {
	var ready []netip.Addr
	for _, e := range all {
		if e.AddressType != family {
			continue
		}
		for _, x := range e.Endpoints {
			if x.Conditions.Terminating != nil && *x.Conditions.Terminating {
				continue
			}
			if x.Conditions.Ready != nil && !*x.Conditions.Ready && !o.belongs(e.Namespace, x.TargetRef) {
				continue
			}
			for _, text := range x.Addresses[:min(1, len(x.Addresses))] {
				if a, err := netip.ParseAddr(text); err == nil {
					ready = append(ready, a)
				}
			}
		}
	}
	slices.SortFunc(ready, netip.Addr.Compare)
	return slices.Compact(ready)
}

// belongs reports whether what an endpoint refers to is a pod that would be ready without the readiness gate.
func (o *Objects) belongs(namespace string, to *corev1.ObjectReference) bool {
	if to == nil || to.Kind != "Pod" {
		return false
	}
	pods := o.pods[namespace]
	i, found := slices.BinarySearchFunc(pods, to.Name, func(p *corev1.Pod, name string) int { return strings.Compare(p.Name, name) })
	return found && pods[i].UID == to.UID && readiness.Belongs(pods[i])
}

// readiness returns the readiness probe of the pods of a Service, or else their liveness probe: that of the container with the port in the
// first pod by name.
func (o *Objects) readiness(s *corev1.Service, port int32) *corev1.Probe {
	if len(s.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	for _, pod := range o.pods[s.Namespace] {
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		for _, c := range pod.Spec.Containers {
			if slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == port }) {
				return numbered(c, cmp.Or(c.ReadinessProbe, c.LivenessProbe))
			}
		}
	}
	return nil
}

// numbered is a probe with the number of its port instead of its name.
func numbered(c corev1.Container, p *corev1.Probe) *corev1.Probe {
	if p == nil || p.HTTPGet == nil || p.HTTPGet.Port.Type == intstr.Int {
		return p
	}
	p = p.DeepCopy()
	for _, port := range c.Ports {
		if port.Name == p.HTTPGet.Port.StrVal {
			p.HTTPGet.Port = intstr.FromInt32(port.ContainerPort)
			return p
		}
	}
	p.HTTPGet.Port = intstr.FromInt32(0)
	return p
}
