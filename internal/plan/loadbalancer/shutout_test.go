package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// TestAServiceWithoutAllowedSourcesIsWarned checks that a Service without an allowed source at one of
// its addresses is served as it asks, and gets a warning.
func TestAServiceWithoutAllowedSourcesIsWarned(t *testing.T) {
	const internal = "service.beta.kubernetes.io/azure-load-balancer-internal"
	six, four := []v1.IPFamily{v1.IPv6Protocol}, []v1.IPFamily{v1.IPv4Protocol}
	both := []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	for name, c := range map[string]struct {
		families    []v1.IPFamily
		annotations map[string]string
		spec        []string
		wants       []string // in the only warning; none for no warning
	}{
		"annotation": {four, map[string]string{key.AllowedIPRanges.Name: "fd00::/64"}, nil,
			[]string{"InvalidAllowedIPRanges", key.AllowedIPRanges.Name + `: "fd00::/64"`, "IPv4",
				"nothing from the Internet can reach the Service"}},
		"older key": {four, map[string]string{key.SourceRanges.Name: "fd00::/64"}, nil,
			[]string{"InvalidAllowedIPRanges", key.SourceRanges.Name + `: "fd00::/64"`, "IPv4"}},
		"spec": {four, nil, []string{"fd00::/64"},
			[]string{"InvalidSourceRanges", `spec.loadBalancerSourceRanges: "fd00::/64"`, "IPv4"}},
		"no families": {nil, nil, []string{"fd00::/64"}, []string{"InvalidSourceRanges", "IPv4"}},
		"one of two":  {both, nil, []string{"10.0.0.0/8"}, []string{"InvalidSourceRanges", "none is of the family IPv6"}},
		"IPv6":        {six, nil, []string{"10.0.0.0/8"}, []string{"InvalidSourceRanges", "none is of the family IPv6"}},
		"internal": {four, map[string]string{internal: "true"}, []string{"fd00::/64"},
			[]string{"InvalidSourceRanges", "nothing from outside of the virtual network"}},
		"no source at all": {four, map[string]string{internal: "true", key.DenyAllElse.Name: "true"}, []string{"fd00::/64"},
			[]string{"InvalidSourceRanges", ": nothing can reach the Service"}},
		"several keys": {four, map[string]string{key.SourceRanges.Name: "fd00::/64", key.AllowedIPRanges.Name: "fd01::/64"}, nil,
			[]string{key.AllowedIPRanges.Name + `: "fd01::/64" and annotation ` + key.SourceRanges.Name + `: "fd00::/64"`}},
		"many ranges": {four, map[string]string{key.SourceRanges.Name: "fd00::/64,fd01::/64,fd02::/64,fd03::/64,fd04::/64,fd05::/64"},
			nil, []string{`"fd04::/64", ...: none`}},
		"each family":    {both, nil, []string{"10.0.0.0/8", "fd00::/64"}, nil},
		"the one family": {four, nil, []string{"10.0.0.0/8", "fd00::/64"}, nil},
		"tags, too": {both,
			map[string]string{key.AllowedServiceTags.Name: "AzureCloud", key.AllowedIPRanges.Name: "fd00::/64"}, nil, nil},
		"range as a tag": {both, map[string]string{key.AllowedServiceTags.Name: "10.0.0.0/8"}, nil,
			[]string{"InvalidAllowedIPRanges", key.AllowedServiceTags.Name + `: "10.0.0.0/8"`, "none is of the family IPv6"}},
		"address as one": {four, map[string]string{key.AllowedServiceTags.Name: "fd00::4"}, nil,
			[]string{"InvalidAllowedIPRanges", "none is of the family IPv4"}},
		"ranges as both": {both,
			map[string]string{key.AllowedServiceTags.Name: "10.0.0.0/8", key.AllowedIPRanges.Name: "fd00::/64"}, nil, nil},
		"tags of any":     {both, map[string]string{key.AllowedServiceTags.Name: "10.0.0.0/8,AzureCloud"}, nil, nil},
		"no ranges":       {both, nil, nil, nil},
		"no rules at all": {both, map[string]string{key.DisableSecurityRules.Name: "true"}, []string{"10.0.0.0/8"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("web", tcp(80, 30080))
			s.Annotations, s.Spec.IPFamilies, s.Spec.LoadBalancerSourceRanges = c.annotations, c.families, c.spec
			in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}}
			if len(c.families) == 1 && c.families[0] == v1.IPv6Protocol { // Azure wants IPv4 beside it
				in.Services = append(in.Services, loadbalancer.Service{Service: service("four", tcp(81, 30081))})
			}
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			found := rounds[0].problems
			if len(c.wants) == 0 && len(found) > 0 || len(c.wants) > 0 &&
				(len(found) != 1 || !found[0].Warning || found[0].Object != "default/web") {
				t.Fatalf("warned of %v", found)
			}
			for _, want := range c.wants {
				if text := found[0].Reason + " " + found[0].Message; !strings.Contains(text, want) {
					t.Errorf("warned %q, and not of %q", text, want)
				}
			}
			in.Have = w.snapshot()
			if status, err := loadbalancer.Status(in); err != nil || len(status["default/web"]) != max(1, len(c.families)) {
				t.Errorf("served at %v, %v", status, err)
			}
		})
	}
}

// TestARefusedServiceIsNotWarnedOfAllowedSources checks that a refused Service, which keeps its state,
// gets no warning of its allowed sources.
func TestARefusedServiceIsNotWarnedOfAllowedSources(t *testing.T) {
	w := newSubscription(2)
	s := service("web", tcp(80, 30080))
	s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
	s.Annotations = map[string]string{
		key.AllowedIPRanges.Name: "192.168.0.0/16", key.DenyAllElse.Name: "true", key.DisableFloatingIP.Name: "true",
	}
	r, err := w.decide(loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}})
	if err != nil || len(r.problems) != 1 || r.problems[0].Warning ||
		!strings.Contains(r.problems[0].Message, "are both set, allowed is one of them") {
		t.Errorf("found %v, %v", r.problems, err)
	}
	s.Annotations[key.AllowedIPRanges.Name] = "192.168.0.1/16"
	r, err = w.decide(loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}})
	reported := map[string]bool{}
	for _, p := range r.problems {
		reported[p.Reason] = true
	}
	if err != nil || !reported["InvalidAllowedIPRanges"] || !reported["InvalidSourceRanges"] || !reported["NodesDenied"] {
		t.Errorf("where nothing is refused: %v, %v", r.problems, err)
	}
}

// TestAddressesAmongServiceTagsAreOfTheirFamily checks addresses among service tags, which Azure accepts there. Azure has
// no rule with both families, so each address is allowed at the Service's address of its own family.
func TestAddressesAmongServiceTagsAreOfTheirFamily(t *testing.T) {
	w := newSubscription(2)
	s := service("web", tcp(80, 30080))
	s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
	s.Annotations = map[string]string{key.AllowedServiceTags.Name: "AzureCloud,10.0.0.0/8,192.0.2.1,fd00::/8"}
	if _, err := w.commit(loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
		to, err := netip.ParseAddr(at(r, "properties", "destinationAddressPrefix"))
		if err != nil {
			continue // a foreign rule
		}
		got = append(got, fmt.Sprint(at(r, "properties", "sourceAddressPrefix"), " to IPv4: ", to.Is4()))
	}
	slices.Sort(got)
	want := []string{"10.0.0.0/8 to IPv4: true", "192.0.2.1 to IPv4: true", "AzureCloud to IPv4: false", "AzureCloud to IPv4: true",
		"fd00::/8 to IPv4: false"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
