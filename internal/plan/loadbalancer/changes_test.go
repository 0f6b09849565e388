package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// becomes commits Services beside others and returns their problems. A second commit of them writes
// nothing.
func (w *subscription) becomes(t *testing.T, others []*v1.Service, services ...*v1.Service) []string {
	t.Helper()
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Others: others, Complete: true}
	for _, s := range services {
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.commit(in)
	if err != nil || writes(again) > 0 {
		t.Errorf("looked at again: %v, %v", again, err)
	}
	var reported []string
	for _, p := range rounds[len(rounds)-1].problems {
		reported = append(reported, p.Object+" "+p.Reason+": "+p.Message)
	}
	return reported
}

// asking is a Service with annotations instead of those that it has.
func asking(s *v1.Service, annotations ...string) *v1.Service {
	s = s.DeepCopy()
	s.Annotations = with(nil, annotations...)
	return s
}

// TestAllPortsBecomeOnesOfUDP checks a rule for all ports, which has the name of the first port's rule. If that port is
// UDP, a setting that only TCP has does not stay.
func TestAllPortsBecomeOnesOfUDP(t *testing.T) {
	w, s := newSubscription(2), service("web", udp(53, 30053), tcp(80, 30080))
	w.becomes(t, nil, asking(s, key.Internal.Name, "true", key.HAPorts.Name, "true"))
	w.becomes(t, nil, asking(s, key.Internal.Name, "true"))
	for _, r := range children(sub(w.docs[azure.ID(innerID).Key()], "properties"), "loadBalancingRules") {
		p := sub(r, "properties")
		if got, want := p["enableTcpReset"], p["protocol"] == "Tcp"; got != want {
			t.Errorf("rule of %s: enableTcpReset %v, want %v", p["protocol"], got, want)
		}
	}
}

// TestTagsThatTakeThePlaceOfOlderWords checks that older tag names, which users may also use for tags
// of their own, still name the Services of a public IP. A Service that asks for such a tag keeps it,
// and the tag goes with the Service.
func TestTagsThatTakeThePlaceOfOlderWords(t *testing.T) {
	for name, had := range map[string]object{
		"older words":             {"service": "default/web", "kubernetes-cluster-name": "kubernetes"},
		"without the cluster":     {"k8s-azure-service": "default/web"},
		"nothing but the Service": {"service": "default/web"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newSubscription(2), service("web", tcp(80, 30080))
			w.becomes(t, nil, s)
			id := azure.ID(network + "publicIPAddresses/kubernetes-" + base(s))
			w.docs[id.Key()]["tags"] = had
			s = asking(s, key.PublicIPTags.Name, "service=shop,kubernetes-cluster-name=all")
			w.becomes(t, nil, s)
			if got := at(w.docs[id.Key()], "tags", "service"); got != "shop" {
				t.Errorf("tag service is %q", got)
			}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
				Services: []loadbalancer.Service{{Service: s, Gone: true}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if _, left := w.docs[id.Key()]; left {
				t.Error("the public IP is left when its Service is gone")
			}
		})
	}
}

// TestALabelGoesToAnotherService checks a DNS label that goes from one Service to another at the same public IP. The
// first Service takes it away, and then the second may set it.
func TestALabelGoesToAnotherService(t *testing.T) {
	w, host, guest := newSubscription(2), service("host", tcp(80, 30080)), service("guest", tcp(81, 30081))
	id := azure.ID(network + "publicIPAddresses/kubernetes-" + base(host))
	asks := func(s *v1.Service, annotations ...string) *v1.Service {
		if s == guest {
			annotations = append(annotations, key.PublicIPName.Name, id.Name())
		}
		return asking(s, annotations...)
	}
	const label = "service.beta.kubernetes.io/azure-dns-label-name"
	w.becomes(t, nil, asks(host, label, "web"))
	w.becomes(t, []*v1.Service{asks(host, label, "web")}, asks(guest))

	// While the first Service exists it keeps the address, and the message names the Service and what
	// its user has to do.
	reported := strings.Join(w.becomes(t, []*v1.Service{asks(host)}, asks(guest, label, "web")), "\n")
	for _, words := range []string{"default/guest DNSLabelInUse", label, `"web"`, "Service default/host", `until its annotation is ""`} {
		if !strings.Contains(reported, words) {
			t.Errorf("got %q, without %q", reported, words)
		}
	}
	w.becomes(t, []*v1.Service{asks(guest)}, asks(host, label, ""))
	for _, step := range []string{"it comes", "it stays"} {
		if reported := w.becomes(t, []*v1.Service{asks(host)}, asks(guest, label, "web")); len(reported) > 0 {
			t.Errorf("%s: reported %q", step, reported)
		}
		ip := w.docs[id.Key()]
		if name, owner := at(ip, "properties", "dnsSettings", "domainNameLabel"),
			at(ip, "tags", "k8s-azure-dns-label-service"); name != "web" || owner != "default/guest" {
			t.Errorf("%s: it is named %q by %q", step, name, owner)
		}
		w.becomes(t, []*v1.Service{asks(guest, label, "web")}, asks(host))
	}
}

// TestAFurtherAddressOfAnotherServiceIsLeft checks an address of another Service that is no longer a further address.
// Sources that were allowed there because of that are removed, and the owner's sources stay.
func TestAFurtherAddressOfAnotherServiceIsLeft(t *testing.T) {
	host, guest := service("host", tcp(80, 30080), tcp(82, 30082)), service("guest", tcp(81, 30081))
	shown := func(s *v1.Service, addresses ...string) *v1.Service {
		s = s.DeepCopy()
		for _, ip := range addresses {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: ip})
		}
		return s
	}
	const hosts, guests = "20.1.0.2", "20.1.0.3"
	for name, owner := range map[string]*v1.Service{
		"all ports":          shown(host, hosts),
		"one without a rule": shown(asking(host, key.NoRule.For(82), "true"), hosts),
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			w.becomes(t, nil, owner)
			want := ruledTo(w, "Allow")
			w.becomes(t, []*v1.Service{owner}, asking(guest, key.AdditionalIPs.Name, hosts))
			if slices.Equal(want, ruledTo(w, "Allow")) {
				t.Fatal("the further address was not opened")
			}
			w.becomes(t, []*v1.Service{owner}, shown(guest, guests, hosts))
			if got := slices.DeleteFunc(ruledTo(w, "Allow"),
				func(to string) bool { return strings.HasPrefix(to, guests) }); !slices.Equal(got, want) {
				t.Errorf("let in is %v, want %v", got, want)
			}
		})
	}
}

// TestAFurtherAddressIsNotAskedFor checks that a Service that becomes internal does not request an
// address that another Service holds so far.
func TestAFurtherAddressIsNotAskedFor(t *testing.T) {
	s := service("web", tcp(80, 30080))
	for name, c := range map[string]struct {
		before []string // annotations
		shown  []string
		then   []string
		want   string // that is asked for, "" for any
	}{
		"external before": {[]string{key.AdditionalIPs.Name, "10.0.0.50"}, []string{"20.1.0.2", "10.0.0.50"}, nil, ""},
		"in another subnet": {[]string{key.Internal.Name, "true", key.InternalSubnet.Name, "apps", key.AdditionalIPs.Name, "10.0.0.50"},
			[]string{"10.1.9.1", "10.0.0.50"}, nil, ""},
		"the address it had": {[]string{key.Internal.Name, "true"}, []string{"10.0.9.1", "10.0.0.50"},
			[]string{key.InternalSubnet.Name, "n"}, "10.0.9.1"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newSubscription(2), s.DeepCopy()
			w.becomes(t, nil, asking(s, c.before...))
			for _, ip := range c.shown {
				s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: ip})
			}
			w.becomes(t, nil, asking(s, append(c.then, key.Internal.Name, "true")...))
			frontends := children(sub(w.docs[azure.ID(innerID).Key()], "properties"), "frontendIPConfigurations")
			if len(frontends) != 1 {
				t.Fatalf("%d frontends", len(frontends))
			}
			got := sub(frontends[0], "properties")
			if ip, method := got["privateIPAddress"], got["privateIPAllocationMethod"]; c.want == "" && method != "Dynamic" ||
				c.want != "" && (method != "Static" || ip != c.want) {
				t.Errorf("it has %v, %v", ip, method)
			}
		})
	}
}

// TestAnotherPrefixOfTheSameName checks prefixes of one name in two resource groups: public IPs are
// named after the name of the prefix. Azure moves no public IP between prefixes, so the Service that
// asks for that gets a problem.
func TestAnotherPrefixOfTheSameName(t *testing.T) {
	w, s := newSubscription(2), service("web", tcp(80, 30080))
	here, there := prefix("p"), strings.Replace(prefix("p"), "/rg/", "/far/", 1)
	if reported := w.becomes(t, nil, asking(s, key.PublicIPPrefix.Name, here)); len(reported) > 0 {
		t.Errorf("got %q", reported)
	}
	reported := strings.Join(w.becomes(t, nil, asking(s, key.PublicIPPrefix.Name, there)), "\n")
	for _, words := range []string{"UnheededAnnotation", key.PublicIPPrefix.Name, there, here, "allowed is"} {
		if !strings.Contains(reported, words) {
			t.Errorf("got %q, without %q", reported, words)
		}
	}
	if reported := w.becomes(t, nil, asking(s)); len(reported) > 0 {
		t.Errorf("got %q", reported)
	}
}
