package spec_test

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/testkit/page"
)

var update = flag.Bool("update", false, "write the golden files")

// value is a doubtful value of an annotation, or of a field of the Service's spec.
type value struct {
	key, text string
	// other is how cloud-provider-azure reads it, by its source. It is the reading that kaz must have
	// where the other one serves the Service.
	other  string
	serves bool // the other one does, and that is kept
}

const (
	prefix   = "service.beta.kubernetes.io/"
	internal = "azure-load-balancer-internal"
	ranges   = "azure-allowed-ip-ranges"
	address  = "spec.loadBalancerIP"
)

// values are the rows of the page: for each key values in odd case, with blanks around them, empty ones, lists with blanks,
// and garbage.
func values() []value {
	t := &table{}
	switches(t)
	placements(t)
	addresses(t)
	publicIPProperties(t)
	probes(t)
	accesses(t)
	links(t)
	return t.rows
}

// table collects rows.
type table struct{ rows []value }

// add adds a row. serves says that cloud-provider-azure serves the value, and that kaz must read it alike.
func (t *table) add(key, text, other string, serves bool) {
	t.rows = append(t.rows, value{key, text, other, serves})
}

// each adds a row for each text.
func (t *table) each(key, other string, serves bool, texts ...string) {
	for _, text := range texts {
		t.add(key, text, other, serves)
	}
}

func switches(t *table) {
	t.each(internal, "external", true, "True", "TRUE", " true ", "", "1", "yes", "false ")
	t.add(internal, "true", "internal", true)
	for _, key := range []struct{ name, on, off string }{
		{"azure-disable-load-balancer-floating-ip", "fixed", "floating"},
		{"port_80_no_lb_rule", "no rule", "a rule"},
		{"port_80_no_probe_rule", "no probe", "a probe"},
		{"azure-load-balancer-disable-tcp-reset", "no reset", "reset"},
		{"azure-load-balancer-enable-high-availability-ports", "all ports", "each port"},
		{"azure-deny-all-except-load-balancer-source-ranges", "all else denied", "the network allowed"},
		{"azure-disable-load-balancer-nsg-rule", "no rules", "rules"},
	} {
		t.each(key.name, key.on, true, "true", "True", "TRUE")
		t.each(key.name, key.off, true, " true ", "true\n", "", "yes")
	}
	for _, key := range []struct{ name, on, off string }{
		{"azure-pls-create", "a link", "no link"}, {"azure-pls-proxy-protocol", "PROXY", "plain"},
	} {
		t.each(key.name, key.on, true, "true", "True", " true ", "TRUE\n")
		t.each(key.name, key.off, true, "", "yes", "false")
	}
}

func placements(t *table) {
	t.add("azure-load-balancer-internal-subnet", " ", "the configured subnet", true)
	t.add("azure-load-balancer-internal-subnet", "", "the configured subnet", true)
	t.add("azure-load-balancer-internal-subnet", " s ", "a subnet that does not exist", false)
	t.add("azure-load-balancer-internal-subnet", "/subscriptions/x/subnets/s", "a subnet that does not exist", false)
	t.add("azure-load-balancer-configurations", " LB1 , lb2", "lb1 lb2", true)
	t.add("azure-load-balancer-configurations", "", "refused, if several are configured", false)
	t.add("azure-load-balancer-configurations", "lb1,", "lb1", true)
	t.add("azure-load-balancer-resource-group", " g ", "g", true)
	t.add("azure-load-balancer-resource-group", "G", "G", true)
	t.add("azure-load-balancer-resource-group", "", "the cluster's", true)
	t.add("azure-load-balancer-resource-group", "a/b", "a group that Azure refuses", false)
}

func addresses(t *table) {
	t.add(address, "", "any address", true)
	t.add(address, "foo", "any address", true)
	t.add(address, "fd00::5", "any address", true)
	t.add(address, "20.1.2.3", "20.1.2.3", true)
	t.add(address, " 20.1.2.3 ", "an address that no public IP has", false)
	t.add(address, "10.1.2.3", "an address that no public IP has", false)
	t.add("azure-load-balancer-ipv4", " 20.1.2.3 ", "an address that no public IP has", false)
	t.add("azure-load-balancer-ipv4", "", "any address", true)
	t.add("azure-load-balancer-ipv4", "foo", "refused", false)
	t.add("azure-load-balancer-ipv6", " 2603:1020::5 ", "an address that no public IP has", false)
	t.add("azure-load-balancer-ipv6", "2603:1020::A", "2603:1020::a", false) // compared as texts there
	t.add("azure-load-balancer-ipv6", "", "any address", true)
	t.add("azure-load-balancer-ipv6", "foo", "refused", false)
	for _, key := range []string{"azure-pip-name", "azure-pip-name-ipv6"} {
		t.add(key, "", "no name", true)
		t.add(key, "P", "P", true)
		t.add(key, " p ", "a name that no public IP has", false)
		t.add(key, "a/b", "a name that no public IP has", false)
	}
	const prefixID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPPrefixes/p"
	for _, key := range []string{"azure-pip-prefix-id", "azure-pip-prefix-id-ipv6"} {
		t.add(key, "", "no prefix", true)
		t.add(key, prefixID, prefixID, true)
		t.add(key, " "+prefixID+" ", "an id that Azure refuses", false)
		t.add(key, "p", "an id that Azure refuses", false)
	}
	t.add("azure-additional-public-ips", "", "refused", false)
	t.add("azure-additional-public-ips", " 20.0.0.1 , 20.0.0.2", "20.0.0.1 20.0.0.2", true)
	t.add("azure-additional-public-ips", "20.0.0.1,", "refused", false)
	t.add("azure-additional-public-ips", "foo", "refused", false)
}

func publicIPProperties(t *table) {
	t.add("azure-pip-tags", "", "none", true)
	t.add("azure-pip-tags", " a = b , C = D ", "C=D a=b", true)
	t.add("azure-pip-tags", "a=b,c", "a=b", true)
	t.add("azure-pip-tags", "a=b=c", "none", true)
	t.add("azure-pip-tags", "=b", "none", true)
	t.add("azure-pip-ip-tags", "", "none", true)
	t.add("azure-pip-ip-tags", " RoutingPreference = Internet ", "RoutingPreference=Internet", true)
	t.add("azure-pip-ip-tags", "RoutingPreference", "none", true)
	t.add("azure-pip-ip-tags", "a=b,a=c", "a=c", true)
	t.add("azure-dns-label-name", "", "the label is removed", true)
	t.add("azure-dns-label-name", "web", "web", true)
	t.add("azure-dns-label-name", " web ", "a label that Azure refuses", false)
	t.add("azure-dns-label-name", "Web", "a label that Azure refuses", false)
	t.add("azure-dns-label-name", "w_b", "a label that Azure refuses", false)
	t.add("azure-load-balancer-tcp-idle-timeout", " 5 ", "5", true)
	t.each("azure-load-balancer-tcp-idle-timeout", "refused", false, "five", "", "5m", "3", "101")
}

func probes(t *table) {
	for _, key := range []string{"azure-load-balancer-health-probe-protocol", "port_80_health-probe_protocol"} {
		t.each(key, "Http", true, "http", "HTTP", " http ")
		t.each(key, "Https", true, "https", "Https")
		t.each(key, "Tcp", true, "", "tcp", "grpc")
	}
	t.add("port_80_health-probe_protocol with http for all ports", "", "Tcp", true)
	for _, key := range []string{"azure-load-balancer-health-probe-request-path", "port_80_health-probe_request-path"} {
		t.add(key, "/Ready", "/Ready", true)
		t.add(key, "", "no path, which Azure refuses", false)
		t.add(key, " /ready ", "the same with its blanks, if Azure accepts them", false)
		t.add(key, "ready", "ready", true)
	}
	for _, key := range []string{"azure-load-balancer-health-probe-interval", "port_80_health-probe_interval"} {
		t.add(key, " 9 ", "9", true)
		t.each(key, "refused", false, "", "nine", "9s", "4", "60")
	}
	for _, key := range []string{"azure-load-balancer-health-probe-num-of-probe", "port_80_health-probe_num-of-probe"} {
		t.add(key, " 3 ", "3", true)
		t.each(key, "refused", false, "", "three", "1", "24")
	}
	t.each("port_80_health-probe_port", "30080", true, "", "80")
	t.add("port_80_health-probe_port", "8080", "8080", true)
	t.each("port_80_health-probe_port", "refused", false, " 80 ", "http", "70000")
	t.add("port_80_health-probe_port", "0", "a port that Azure refuses", false)
}

func accesses(t *table) {
	for _, key := range []string{ranges, "load-balancer-source-ranges"} {
		// Empty items lock everybody out there, which no author meant: kaz leaves them out.
		t.add(key, "", "nothing, all else denied", false)
		t.add(key, "10.0.0.0/8,", "10.0.0.0/8, all else denied", false)
		t.add(key, "10.0.0.0/8 , 192.168.0.0/16", "10.0.0.0/8 192.168.0.0/16", true)
		t.add(key, "10.0.0.1/8", "nothing, all else denied", true)
		t.add(key, "10.0.0.1", "nothing, all else denied", true)
		t.add(key, "office", "nothing, all else denied", true)
	}
	t.add("azure-allowed-service-tags", "", "an empty tag, which Azure refuses", false)
	t.add("azure-allowed-service-tags", "AzureCloud", "AzureCloud", true)
	t.add("azure-allowed-service-tags", " AzureCloud , Storage ", "AzureCloud Storage", true)
	t.add("azure-allowed-service-tags", "AzureCloud,", "an empty tag, which Azure refuses", false)
}

func links(t *table) {
	t.add("azure-pls-name", " n ", "n", true)
	t.add("azure-pls-name", "N", "N", true)
	t.add("azure-pls-name", "", "an empty name, which Azure refuses", false)
	t.add("azure-pls-name", "a/b", "a name that Azure refuses", false)
	t.add("azure-pls-resource-group", " g ", "g", true)
	t.add("azure-pls-resource-group", "", "the configured group", true)
	t.add("azure-pls-resource-group", "a/b", "a group that Azure refuses", false)
	t.each("azure-pls-ip-configuration-subnet", "the subnet of the Service", true, "", " ")
	t.add("azure-pls-ip-configuration-subnet", " s ", "a subnet that does not exist", false)
	t.add("azure-pls-ip-configuration-subnet", "a/b", "a subnet that does not exist", false)
	t.add("azure-pls-ip-configuration-ip-address-count", " 2 ", "2", true)
	t.each("azure-pls-ip-configuration-ip-address-count", "refused", false, "", "two", "0", "9")
	t.add("azure-pls-ip-configuration-ip-address", "", "none", true)
	t.add("azure-pls-ip-configuration-ip-address", "  10.0.0.5  ", "10.0.0.5", true)
	t.each("azure-pls-ip-configuration-ip-address", "refused", false, "foo", "fd00::5", "10.0.0.5,10.0.0.6")
	t.add("azure-pls-fqdns", "", "none", true)
	t.add("azure-pls-fqdns", " A.example  b.example ", "A.example b.example", true)
	t.add("azure-pls-fqdns", "a.example,b.example", "a.example,b.example", true)
	const id = "12345678-1234-1234-1234-123456789012"
	t.each("azure-pls-visibility", "none", true, "", " ")
	t.add("azure-pls-visibility", id+"  * ", "*", true)
	t.add("azure-pls-visibility", "everybody", "everybody", true)
	t.each("azure-pls-auto-approval", "none", true, "", " ")
	t.add("azure-pls-auto-approval", " "+id+"  ", id, true)
	t.add("azure-pls-auto-approval", "everybody", "everybody", true)
}

// serviceWith is an external Service with the value. It has what the key needs to have an effect.
func serviceWith(v value) spec.Service {
	s := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1", Annotations: map[string]string{}},
		Spec: v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
			Ports: []v1.ServicePort{{Port: 80, NodePort: 30080, Protocol: v1.ProtocolTCP}}},
	}
	set := func(key, text string) { s.Annotations[prefix+key] = text }
	name, _, others := strings.Cut(v.key, " with ")
	switch {
	case v.key == address:
		s.Spec.LoadBalancerIP = v.text
		return spec.Service{Service: s}
	case others, strings.HasSuffix(name, "request-path"):
		set("azure-load-balancer-health-probe-protocol", "http")
	case strings.HasPrefix(name, "azure-pls-"):
		set("azure-pls-create", "true")
		set(internal, "true")
	case strings.HasSuffix(name, "-subnet"), strings.HasSuffix(name, "-availability-ports"):
		set(internal, "true")
	case strings.HasSuffix(name, "ipv6"):
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, v1.IPv6Protocol)
	case strings.HasPrefix(name, "azure-deny-all"):
		s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
	}
	set(name, v.text)
	return spec.Service{Service: s}
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func sources(w *spec.Spec) string {
	var all []string
	for _, some := range w.Access.From[v1.IPv4Protocol] {
		all = append(all, some...)
	}
	return either(len(all) > 0, strings.Join(all, " "), "nothing") + either(w.Access.Deny, ", all else denied", "")
}

// readings tell what kaz makes of a key, by its name without port and address family.
var readings = map[string]func(*spec.Spec) string{
	internal: func(w *spec.Spec) string { return either(w.Internal, "internal", "external") },
	"azure-disable-load-balancer-floating-ip": func(w *spec.Spec) string { return either(w.Fixed, "fixed", "floating") },
	"no_lb_rule": func(w *spec.Spec) string { return either(len(w.Addresses[0].Rules) == 0, "no rule", "a rule") },
	"no_probe_rule": func(w *spec.Spec) string {
		return either(w.Addresses[0].Rules[0].Probe == "", "no probe", "a probe")
	},
	"azure-load-balancer-disable-tcp-reset": func(w *spec.Spec) string {
		return either(*w.Addresses[0].Rules[0].Reset, "reset", "no reset")
	},
	"azure-load-balancer-enable-high-availability-ports": func(w *spec.Spec) string { return either(w.AllPorts(), "all ports", "each port") },
	"azure-deny-all-except-load-balancer-source-ranges": func(w *spec.Spec) string {
		return either(w.Access.Deny, "all else denied", "the network allowed")
	},
	"azure-disable-load-balancer-nsg-rule": func(w *spec.Spec) string { return either(w.Access.Open, "rules", "no rules") },
	ranges:                                 sources,
	"load-balancer-source-ranges":          sources,
	"azure-allowed-service-tags":           sources,
	address:                                pinned,
	"azure-load-balancer-ip":               pinned,
	"azure-pip-name":                       func(w *spec.Spec) string { return cmp.Or(last(w).PublicIP, "no name") },
	"azure-pip-prefix-id":                  func(w *spec.Spec) string { return cmp.Or(string(last(w).Prefix), "no prefix") },
	"azure-pip-tags": func(w *spec.Spec) string {
		var all []string
		for name, value := range w.Tags {
			all = append(all, name+"="+value)
		}
		slices.Sort(all)
		return listed(all)
	},
	"azure-pip-ip-tags": func(w *spec.Spec) string {
		var all []string
		for _, tag := range w.IPTags {
			all = append(all, tag.IPTagType+"="+tag.Tag)
		}
		return listed(all)
	},
	"azure-dns-label-name":                 func(w *spec.Spec) string { return cmp.Or(*w.Label, "the label is removed") },
	"azure-load-balancer-internal-subnet":  func(w *spec.Spec) string { return cmp.Or(w.Subnet, "the configured subnet") },
	"azure-load-balancer-configurations":   func(w *spec.Spec) string { return listed(w.Service.LoadBalancersAsked()) },
	"azure-load-balancer-resource-group":   func(w *spec.Spec) string { return cmp.Or(w.Group, "the cluster's") },
	"azure-load-balancer-tcp-idle-timeout": func(w *spec.Spec) string { return fmt.Sprint(w.Addresses[0].Rules[0].IdleMinutes) },
	"health-probe-protocol":                func(w *spec.Spec) string { return probe(w).Protocol },
	"health-probe-request-path":            func(w *spec.Spec) string { return probe(w).RequestPath },
	"health-probe-interval":                func(w *spec.Spec) string { return fmt.Sprint(probe(w).IntervalInSeconds) },
	"health-probe-num-of-probe":            func(w *spec.Spec) string { return fmt.Sprint(probe(w).ProbeThreshold) },
	"health-probe-port":                    func(w *spec.Spec) string { return fmt.Sprint(probe(w).Port) },
	"azure-additional-public-ips": func(w *spec.Spec) string {
		return cmp.Or(strings.Trim(fmt.Sprint(w.Further), "[]"), "none")
	},
	"azure-pls-create":                            func(w *spec.Spec) string { return either(w.Link != nil, "a link", "no link") },
	"azure-pls-proxy-protocol":                    func(w *spec.Spec) string { return either(w.Link.Proxy, "PROXY", "plain") },
	"azure-pls-name":                              func(w *spec.Spec) string { return cmp.Or(w.Link.Name, "one after the frontend") },
	"azure-pls-resource-group":                    func(w *spec.Spec) string { return cmp.Or(w.Link.Group, "the configured group") },
	"azure-pls-ip-configuration-subnet":           func(w *spec.Spec) string { return cmp.Or(w.Link.Subnet, "the subnet of the Service") },
	"azure-pls-ip-configuration-ip-address-count": func(w *spec.Spec) string { return fmt.Sprint(w.Link.Count) },
	"azure-pls-ip-configuration-ip-address":       func(w *spec.Spec) string { return listed(w.Link.Static) },
	"azure-pls-fqdns":                             func(w *spec.Spec) string { return listed(w.Link.FQDNs) },
	"azure-pls-visibility":                        func(w *spec.Spec) string { return listed(w.Link.Visibility) },
	"azure-pls-auto-approval":                     func(w *spec.Spec) string { return listed(w.Link.Approval) },
}

func listed(all []string) string { return cmp.Or(strings.Join(all, " "), "none") }

// last is the address of the IPv6 family, if the Service has both.
func last(w *spec.Spec) spec.Address { return w.Addresses[len(w.Addresses)-1] }

func pinned(w *spec.Spec) string { return cmp.Or(last(w).Pinned, "any address") }

func probe(w *spec.Spec) network.Probe { return w.Addresses[0].Probes[0].Properties }

// readingOf returns the reading of a row's key. Keys of a port, of a family and of all ports are read alike.
func readingOf(key string) func(*spec.Spec) string {
	name, _, _ := strings.Cut(key, " with ")
	if rest, is := strings.CutPrefix(name, "port_80_"); is {
		name = strings.ReplaceAll(rest, "health-probe_", "health-probe-")
	}
	name = strings.TrimPrefix(name, "azure-load-balancer-health-probe-")
	for _, short := range []string{name, "health-probe-" + name, strings.TrimSuffix(name, "-ipv6"), strings.TrimRight(name, "v46")} {
		if reading, ok := readings[short]; ok {
			return reading
		}
	}
	return nil
}

// TestEveryKeyHasDoubtfulValues checks that the page leaves no annotation out: each has an empty value, one with blanks, and
// garbage or another spelling.
func TestEveryKeyHasDoubtfulValues(t *testing.T) {
	texts := map[string][]string{}
	for _, v := range values() {
		texts[v.key] = append(texts[v.key], v.text)
	}
	for _, e := range key.ServiceEntries() {
		name := strings.ReplaceAll(strings.TrimPrefix(e.Name, prefix), "PORT", "80")
		empty := slices.Contains(texts[name], "")
		blanks := slices.ContainsFunc(texts[name], func(text string) bool { return strings.ContainsAny(text, " \n") })
		const least = 3
		if !empty || !blanks || len(texts[name]) < least {
			t.Errorf("%s: values %q, want an empty one, one with blanks, and another one", name, texts[name])
		}
	}
}

// TestDoubtfulValues checks that no Service changes when kaz takes it over: what
// cloud-provider-azure serves is read alike. It compares the page with what kaz makes of each value.
func TestDoubtfulValues(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| key | value | cloud-provider-azure | kaz | event |\n|---|---|---|---|---|\n")
	all := values()
	slices.SortStableFunc(all, func(a, b value) int { return strings.Compare(a.key, b.key) })
	for _, v := range all {
		w, found := spec.Read(serviceWith(v), cluster.Config{})
		got := "refused"
		if !found.Blocking() {
			got = readingOf(v.key)(w)
		}
		if v.serves && got != v.other {
			t.Errorf("%s: %q is %q for cloud-provider-azure, and %q for kaz", v.key, v.text, v.other, got)
		}
		events := ""
		if len(found) > 0 {
			events = "`" + string(found[0].Reason) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%q` | %s | %s | %s |\n", v.key, v.text, v.other, got, events)
	}
	b.WriteString("\n")
	page.Part{File: "../../../../docs/reference/annotation-values.md", Name: "table",
		Hint: "go test ./internal/plan/loadbalancer/spec -run TestDoubtfulValues -update"}.Check(t, b.String(), *update)
}
