package spec_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// values are the rows of the page. An internal Service is one with the other annotation true.
func values() []value {
	var all []value
	add := func(key, text, other string, serves bool) { all = append(all, value{key, text, other, serves}) }
	for _, text := range []string{"True", "TRUE", " true ", "", "1", "yes", "false "} {
		add(internal, text, "external", true)
	}
	add(internal, "true", "internal", true)
	for _, text := range []string{"true", "True", "TRUE"} {
		add("azure-disable-load-balancer-floating-ip", text, "fixed", true)
		add("port_80_no_lb_rule", text, "no rule", true)
		add("azure-load-balancer-disable-tcp-reset", text, "no reset", true)
	}
	for _, text := range []string{" true ", "true\n", "", "yes"} {
		add("azure-disable-load-balancer-floating-ip", text, "floating", true)
		add("port_80_no_lb_rule", text, "a rule", true)
		add("azure-load-balancer-disable-tcp-reset", text, "reset", true)
	}
	// Empty items lock everybody out there, which no author meant: kaz leaves them out.
	add(ranges, "", "nothing, all else denied", false)
	add(ranges, "10.0.0.0/8,", "10.0.0.0/8, all else denied", false)
	add(ranges, "10.0.0.0/8 , 192.168.0.0/16", "10.0.0.0/8 192.168.0.0/16", true)
	add(ranges, "10.0.0.1/8", "nothing, all else denied", true)
	add(ranges, "office", "nothing, all else denied", true)
	add("load-balancer-source-ranges", "", "nothing, all else denied", false)
	add("azure-allowed-service-tags", "", "an empty tag, which Azure refuses", false)
	add("azure-allowed-service-tags", "AzureCloud", "AzureCloud", true)
	add(address, "foo", "any address", true)
	add(address, "fd00::5", "any address", true)
	add(address, "20.1.2.3", "20.1.2.3", true)
	add(address, "10.1.2.3", "an address that no public IP has", false)
	add("azure-load-balancer-ipv4", " 20.1.2.3 ", "an address that no public IP has", false)
	add("azure-load-balancer-ipv4", "", "any address", true)
	add("azure-pip-name", "", "no name", true)
	add("azure-pip-name", " p ", "a name that no public IP has", false)
	add("azure-load-balancer-internal-subnet", " ", "the configured subnet", true)
	add("azure-load-balancer-internal-subnet", " s ", "a subnet that does not exist", false)
	add("azure-load-balancer-resource-group", " g ", "g", true)
	add("azure-load-balancer-resource-group", "", "the cluster's", true)
	add("azure-load-balancer-tcp-idle-timeout", " 5 ", "5", true)
	add("azure-load-balancer-tcp-idle-timeout", "five", "refused", false)
	add("azure-load-balancer-tcp-idle-timeout", "", "refused", false)
	add("azure-load-balancer-health-probe-interval", " 9 ", "9", true)
	add("azure-load-balancer-health-probe-request-path", "", "no path, which Azure refuses", false)
	add("azure-additional-public-ips", "", "refused", false)
	add("azure-additional-public-ips", " 20.0.0.1 , 20.0.0.2", "20.0.0.1 20.0.0.2", true)
	return all
}

// serviceWith is an external Service with the value; one with a subnet is internal.
func serviceWith(v value) spec.Service {
	s := &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1", Annotations: map[string]string{}},
		Spec: v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, IPFamilies: []v1.IPFamily{v1.IPv4Protocol},
			Ports: []v1.ServicePort{{Port: 80, NodePort: 30080, Protocol: v1.ProtocolTCP}}},
	}
	switch {
	case v.key == address:
		s.Spec.LoadBalancerIP = v.text
		return spec.Service{Service: s}
	case strings.HasSuffix(v.key, "-request-path"):
		s.Annotations[prefix+"azure-load-balancer-health-probe-protocol"] = "http"
	case strings.HasSuffix(v.key, "-subnet"):
		s.Annotations[prefix+internal] = "true"
	}
	s.Annotations[prefix+v.key] = v.text
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

// readings tell what kaz makes of a key.
var readings = map[string]func(*spec.Spec) string{
	internal: func(w *spec.Spec) string { return either(w.Internal, "internal", "external") },
	"azure-disable-load-balancer-floating-ip": func(w *spec.Spec) string { return either(w.Fixed, "fixed", "floating") },
	"port_80_no_lb_rule":                      func(w *spec.Spec) string { return either(len(w.Addresses[0].Rules) == 0, "no rule", "a rule") },
	"azure-load-balancer-disable-tcp-reset": func(w *spec.Spec) string {
		return either(*w.Addresses[0].Rules[0].Reset, "reset", "no reset")
	},
	ranges:                        sources,
	"load-balancer-source-ranges": sources,
	"azure-allowed-service-tags":  sources,
	address: func(w *spec.Spec) string {
		return either(w.Addresses[0].Pinned != "", w.Addresses[0].Pinned, "any address")
	},
	"azure-load-balancer-ipv4": func(w *spec.Spec) string {
		return either(w.Addresses[0].Pinned != "", w.Addresses[0].Pinned, "any address")
	},
	"azure-pip-name": func(w *spec.Spec) string {
		return either(w.Addresses[0].PublicIP != "", w.Addresses[0].PublicIP, "no name")
	},
	"azure-load-balancer-internal-subnet": func(w *spec.Spec) string {
		return either(w.Subnet != "", w.Subnet, "the configured subnet")
	},
	"azure-load-balancer-resource-group":   func(w *spec.Spec) string { return either(w.Group != "", w.Group, "the cluster's") },
	"azure-load-balancer-tcp-idle-timeout": func(w *spec.Spec) string { return fmt.Sprint(w.Addresses[0].Rules[0].IdleMinutes) },
	"azure-load-balancer-health-probe-interval": func(w *spec.Spec) string {
		return fmt.Sprint(w.Addresses[0].Probes[0].Properties.IntervalInSeconds)
	},
	"azure-load-balancer-health-probe-request-path": func(w *spec.Spec) string { return w.Addresses[0].Probes[0].Properties.RequestPath },
	"azure-additional-public-ips": func(w *spec.Spec) string {
		return either(len(w.Further) > 0, strings.Trim(fmt.Sprint(w.Further), "[]"), "none")
	},
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
			got = readings[v.key](w)
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
