package testkit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// Env is a cluster on a local Azure: either the cloud provider in the test's process, or all programs
// of `kaz local up`.
type Env struct {
	// Azure reads the current state.
	Azure azure.Reader
	// Ids of the cluster's resources.
	Group         azure.ID
	SecurityGroup azure.ID
	ScaleSets     []azure.ID
	ClusterName   string
	// SharedProbe says that all Services share one probe.
	SharedProbe bool
	// OwnPools says that there are several load balancers, in which Services with policy Local have
	// their own pools.
	OwnPools bool
	// Serve applies a Service, waits until it is served, and returns it as stored in Kubernetes, with
	// its address in the status.
	Serve func(ctx context.Context, service *corev1.Service) (*corev1.Service, error)
	// Remove deletes a Service and waits until it is gone.
	Remove func(ctx context.Context, service *corev1.Service) error
}

// tcp, and the functions below, return ports of the scenarios' Services.
func tcp(port, nodePort int32) corev1.ServicePort {
	return corev1.ServicePort{Name: fmt.Sprintf("tcp-%d", port), Protocol: corev1.ProtocolTCP, Port: port, NodePort: nodePort}
}

func dns() corev1.ServicePort {
	return corev1.ServicePort{Name: "udp-53", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053}
}

// NewService returns a Service of type LoadBalancer with the given ports.
func NewService(name string, ports ...corev1.ServicePort) *corev1.Service {
	s := &corev1.Service{}
	s.Namespace, s.Name = corev1.NamespaceDefault, name
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	s.Spec.Selector = map[string]string{"app": name}
	s.Spec.Ports = ports
	return s
}

// ExternalService plays the life of external Services: one is created, then another, ports change,
// both are deleted, and Azure is as before.
func ExternalService(t *testing.T, e Env) {
	t.Helper()
	ctx := t.Context()
	before := e.resources(t)

	web := e.serve(t, NewService("web", tcp(80, 30080), dns()))
	e.checkService(t, web, map[string]int32{"TCP-80": 30080, "UDP-53": 0})
	e.checkMembers(t)

	api := e.serve(t, NewService("api", tcp(443, 30443)))
	if address(api) == address(web) {
		t.Errorf("two Services share the address %s", address(api))
	}
	e.checkService(t, api, map[string]int32{"TCP-443": 30443})
	e.checkService(t, web, map[string]int32{"TCP-80": 30080, "UDP-53": 0})

	changed := web.DeepCopy()
	changed.Spec.Ports = []corev1.ServicePort{tcp(80, 30081), tcp(8080, 30088)}
	again := e.serve(t, changed)
	if address(again) != address(web) {
		t.Errorf("the address became %s from %s when ports changed", address(again), address(web))
	}
	e.checkService(t, again, map[string]int32{"TCP-80": 30081, "TCP-8080": 30088})

	for _, s := range []*corev1.Service{again, api} {
		if err := e.Remove(ctx, s); err != nil {
			t.Fatalf("remove %s: %v", s.Name, err)
		}
	}
	if d := cmp.Diff(before, e.resources(t)); d != "" {
		t.Errorf("Azure is not as it was before the Services (-before +after):\n%s", d)
	}
}

func (e Env) serve(t *testing.T, s *corev1.Service) *corev1.Service {
	t.Helper()
	served, err := e.Serve(t.Context(), s)
	if err != nil {
		t.Fatalf("serve %s: %v", s.Name, err)
	}
	if address(served) == "" {
		t.Fatalf("%s has no address: %+v", s.Name, served.Status)
	}
	return served
}

func address(s *corev1.Service) string {
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		return ""
	}
	return s.Status.LoadBalancer.Ingress[0].IP
}

// resources returns the ids of the group's resources, with the numbers of their elements.
func (e Env) resources(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, fullType := range []string{network.LoadBalancers, network.PublicIPAddresses} {
		for _, d := range e.list(t, azure.Query{Scope: e.Group, Type: fullType}) {
			all = append(all, string(d.ID()))
		}
	}
	rules := view[network.SecurityGroup](t, e, e.SecurityGroup).Properties.SecurityRules
	all = append(all, fmt.Sprintf("%d security rules", len(rules)))
	for _, set := range e.ScaleSets {
		all = append(all,
			fmt.Sprintf("%s in %d pools", set.Name(),
				len(poolsOf(t, view[compute.ScaleSet](t, e, set).Properties.VirtualMachineProfile.NetworkProfile))))
		for _, vm := range e.instances(t, set) {
			all = append(all, fmt.Sprintf("%s in %d pools", vm.Name, len(poolsOf(t, vm.Properties.NetworkProfileConfiguration))))
		}
	}
	slices.Sort(all)
	return all
}

// checkService compares everything in Azure that belongs to a Service with its spec. The keys of rules are its ports as
// spelled in rule names. The values are the probed node ports, or 0 without a probe.
func (e Env) checkService(t *testing.T, s *corev1.Service, rules map[string]int32) {
	t.Helper()
	base := "a" + strings.ReplaceAll(string(s.UID), "-", "")[:31]
	lbID := e.Group.Resource(network.LoadBalancers, e.ClusterName)
	lb := view[network.LoadBalancer](t, e, lbID)

	ipID := e.Group.Resource(network.PublicIPAddresses, e.ClusterName+"-"+base)
	ip := view[network.PublicIPAddress](t, e, ipID)
	wantTags := azure.Tags{"k8s-azure-service": s.Namespace + "/" + s.Name, "k8s-azure-cluster-name": e.ClusterName}
	if d := cmp.Diff(wantTags, ip.Tags); d != "" {
		t.Errorf("%s: tags of the public IP:\n%s", s.Name, d)
	}
	if ip.Properties.IPAddress != address(s) || !strings.EqualFold(ip.SKU.Name, "Standard") || len(ip.Zones) != 3 {
		t.Errorf("%s: public IP %s of SKU %+v in zones %v, the status has %s", s.Name, ip.Properties.IPAddress, ip.SKU, ip.Zones,
			address(s))
	}
	frontend, ok := named(lb.Properties.FrontendIPConfigurations, base)
	if !ok || !frontend.Properties.PublicIPAddress.ID.Equal(ipID) {
		t.Errorf("%s: frontend %+v", s.Name, frontend)
	}

	var got, probes []string
	for _, r := range lb.Properties.LoadBalancingRules {
		if strings.HasPrefix(r.Name, base) {
			got = append(got, strings.TrimPrefix(r.Name, base+"-"))
			e.checkRule(t, lbID, base, r, rules[strings.TrimPrefix(r.Name, base+"-")])
		}
	}
	for _, p := range lb.Properties.Probes {
		if strings.HasPrefix(p.Name, base) {
			probes = append(probes, fmt.Sprintf("%s %s %d", strings.TrimPrefix(p.Name, base+"-"), p.Properties.Protocol, p.Properties.Port))
		}
	}
	var want, wantProbes []string
	for name, port := range rules {
		want = append(want, name)
		if port > 0 {
			wantProbes = append(wantProbes, fmt.Sprintf("%s Tcp %d", name, port))
		}
	}
	for _, list := range []*[]string{&got, &want, &probes, &wantProbes} {
		slices.Sort(*list)
	}
	if d := cmp.Diff(want, got) + cmp.Diff(wantProbes, probes); d != "" {
		t.Errorf("%s: rules and probes:\n%s", s.Name, d)
	}
	e.checkOpenPorts(t, s)
}

func (e Env) checkRule(t *testing.T, lb azure.ID, base string, r azure.Child[network.LoadBalancingRule], probed int32) {
	t.Helper()
	p := r.Properties
	switch {
	case !p.FrontendIPConfiguration.ID.Equal(lb.Child(network.FrontendIPConfigurations, base)),
		!p.BackendAddressPool.ID.Equal(lb.Child(network.BackendAddressPools, e.ClusterName)):
		t.Errorf("rule %s leads from %s to %s", r.Name, p.FrontendIPConfiguration.ID, p.BackendAddressPool.ID)
	case p.EnableFloatingIP == nil || !*p.EnableFloatingIP || p.BackendPort != p.FrontendPort:
		t.Errorf("rule %s is without floating IP: %+v", r.Name, p)
	case probed > 0 != (p.Probe != nil):
		t.Errorf("rule %s has the probe %+v", r.Name, p.Probe)
	}
}

// checkOpenPorts checks that a security rule allows the Internet at the Service's address for each of
// its ports.
func (e Env) checkOpenPorts(t *testing.T, s *corev1.Service) {
	t.Helper()
	open := map[string]bool{}
	for _, r := range view[network.SecurityGroup](t, e, e.SecurityGroup).Properties.SecurityRules {
		p := r.Properties
		to := p.DestinationAddressPrefixes
		if p.DestinationAddressPrefix != nil {
			to = append(to, *p.DestinationAddressPrefix)
		}
		if !slices.Contains(to, address(s)) {
			continue
		}
		if p.Access != "Allow" || p.SourceAddressPrefix == nil || *p.SourceAddressPrefix != "Internet" || p.Priority < 500 {
			t.Errorf("%s: security rule %+v", s.Name, r)
		}
		for _, port := range p.DestinationPortRanges {
			open[p.Protocol+" "+port] = true
		}
	}
	want := map[string]bool{}
	for _, p := range s.Spec.Ports {
		want[map[corev1.Protocol]string{corev1.ProtocolTCP: "Tcp", corev1.ProtocolUDP: "Udp"}[p.Protocol]+" "+fmt.Sprint(p.Port)] = true
	}
	if d := cmp.Diff(want, open); d != "" {
		t.Errorf("%s: open ports:\n%s", s.Name, d)
	}
}

// checkMembers checks that every instance, and the model of every scale set, is in the pool, and that
// the pool lists them.
func (e Env) checkMembers(t *testing.T) {
	t.Helper()
	lbID := e.Group.Resource(network.LoadBalancers, e.ClusterName)
	pool := lbID.Child(network.BackendAddressPools, e.ClusterName)
	members := 0
	for _, set := range e.ScaleSets {
		if got := poolsOf(t, view[compute.ScaleSet](t, e, set).Properties.VirtualMachineProfile.NetworkProfile); len(got) != 1 ||
			!got[0].Equal(pool) {
			t.Errorf("the model of %s is in the pools %v", set.Name(), got)
		}
		for _, vm := range e.instances(t, set) {
			members++
			if got := poolsOf(t, vm.Properties.NetworkProfileConfiguration); len(got) != 1 || !got[0].Equal(pool) {
				t.Errorf("%s is in the pools %v", vm.Name, got)
			}
		}
	}
	shown, _ := named(view[network.LoadBalancer](t, e, lbID).Properties.BackendAddressPools, e.ClusterName)
	if got := len(shown.Properties.BackendIPConfigurations); got != members {
		t.Errorf("the pool shows %d members, there are %d instances", got, members)
	}
}

func (e Env) instances(t *testing.T, set azure.ID) []azure.Resource[compute.Instance] {
	t.Helper()
	var all []azure.Resource[compute.Instance]
	for _, d := range e.list(t, azure.Query{Scope: set, Type: compute.ScaleSetInstances}) {
		vm, err := azure.Decode[compute.Instance](d)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, vm)
	}
	return all
}

func poolsOf(t *testing.T, p *compute.NetworkProfile) []azure.ID {
	t.Helper()
	var ids []azure.ID
	if p == nil {
		t.Fatal("no network profile")
	}
	for _, nic := range p.NetworkInterfaceConfigurations {
		for _, c := range nic.Properties.IPConfigurations {
			for _, ref := range c.Properties.LoadBalancerBackendAddressPools {
				ids = append(ids, ref.ID)
			}
		}
	}
	return ids
}

func named[P any](children []azure.Child[P], name string) (azure.Child[P], bool) {
	for _, c := range children {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return azure.Child[P]{}, false
}

func (e Env) list(t *testing.T, q azure.Query) []azure.Document {
	t.Helper()
	docs, err := e.Azure.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func view[P any](t *testing.T, e Env, id azure.ID) azure.Resource[P] {
	t.Helper()
	doc, err := e.Azure.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r, err := azure.Decode[P](doc)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
