package key_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/key"
)

var update = flag.Bool("update", false, "write the pages of annotations anew")

const service = "service.beta.kubernetes.io/"

func TestReferenceIsUpToDate(t *testing.T) {
	for file, want := range map[string]string{
		"../../docs/resources/service/annotations.md": key.Reference(), "../../docs/resources/ingress/annotations.md": key.GatewayReference(),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(have), want); d != "" {
			t.Error("run with -update (-file +table):\n" + d)
		}
	}
}

func TestEveryKeyIsWrittenOnceAndExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range key.ServiceEntries() {
		if seen[e.Name] || e.Doc == "" || e.Allowed == "" || !strings.HasPrefix(e.Name, service) {
			t.Errorf("%+v", e)
		}
		seen[e.Name] = true
	}
}

func TestNumbers(t *testing.T) {
	for value, want := range map[string]struct {
		minutes int32
		why     string
	}{
		"4": {4, ""}, "100": {100, ""}, " 20\t": {20, ""}, "+5": {5, ""},
		"3": {4, "out of range"}, "101": {4, "out of range"}, "-4": {4, "out of range"}, "99999999999": {4, "out of range"},
		"": {4, "not a whole number"}, "x": {4, "not a whole number"}, "4.5": {4, "not a whole number"}, "4m": {4, "not a whole number"},
	} {
		got, err := key.IdleTimeout.Read(map[string]string{key.IdleTimeout.Name: value})
		if got != want.minutes || (err == nil) != (want.why == "") {
			t.Errorf("%q: %d, %v", value, got, err)
		}
		if err == nil {
			continue
		}
		wrong, ok := errors.AsType[*key.Error](err)
		if !ok || wrong.Value != value || wrong.Cause.Error() != want.why || !strings.Contains(err.Error(), "from 4 to 100") ||
			!strings.Contains(err.Error(), key.IdleTimeout.Name) {
			t.Errorf("%q: the error is %v", value, err)
		}
	}
	if got, err := key.IdleTimeout.Read(nil); got != 4 || err != nil {
		t.Errorf("absent: %d, %v", got, err)
	}
}

// TestLimitsOfNumbers checks that each numeric key accepts its limits and nothing beyond.
func TestLimitsOfNumbers(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most int
		read        func(map[string]string) error
	}{
		{key.ProbeInterval.Name, 5, 119, failing(key.ProbeInterval.Read)},
		{key.ProbeCount.Name, 2, 119, failing(key.ProbeCount.Read)},
		{key.PortProbeInterval.For(80), 5, 119,
			func(a map[string]string) error { _, _, err := key.PortProbeInterval.Lookup(a, 80); return err }},
		{key.PortProbeCount.For(80), 2, 119, func(a map[string]string) error { _, _, err := key.PortProbeCount.Lookup(a, 80); return err }},
		{key.LinkAddressCount.Name, 1, 8, failing(key.LinkAddressCount.Read)},
	} {
		for value, good := range map[int]bool{c.least - 1: false, c.least: true, c.most: true, c.most + 1: false} {
			if err := c.read(map[string]string{c.name: fmt.Sprint(value)}); (err == nil) != good {
				t.Errorf("%s=%d: %v", c.name, value, err)
			}
		}
	}
}

func failing[T any](read func(map[string]string) (T, error)) func(map[string]string) error {
	return func(a map[string]string) error { _, err := read(a); return err }
}

// TestPrefixes checks that a prefix is named by its id only.
func TestPrefixes(t *testing.T) {
	const ofNetwork = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/"
	for value, good := range map[string]bool{
		"": true, " \t": true, ofNetwork + "publicIPPrefixes/p": true, " " + ofNetwork + "publicipprefixes/p ": true,
		ofNetwork + "publicIPAddresses/p": false, ofNetwork + "publicIPPrefixes/": false, "p": false, "/p": false,
	} {
		for _, a := range []key.Annotation[string]{key.PublicIPPrefix, key.PublicIPPrefixIPv6} {
			if got, err := a.Read(map[string]string{a.Name: value}); (err == nil) != good || good && got != strings.TrimSpace(value) {
				t.Errorf("%s=%q: %q, %v", a.Name, value, got, err)
			}
		}
	}
}

// TestWarningsOfValues checks that values which Azure accepts cause no warning, and other values do.
func TestWarningsOfValues(t *testing.T) {
	const subscription = "0aBcDeF0-1111-2222-3333-444455556666"
	for name, values := range map[string]map[string]bool{
		key.ProbePath.Name:        {"": false, "/": false, "/a?x=%20y": false, "nopath": true, "/a b": true, "/a#b": true, "/a\x01": true},
		key.PortProbePath.For(80): {"/a": false, "a": true, "/a#b": true},
		key.LinkFQDNs.Name: {"a.example b.example.": false, "_x.example": false, "A.Example": false, "a..example": true,
			"a b_.example c": true, "-a.example": true},
		key.LinkVisibility.Name:   {"*": false, subscription: false, subscription + " *": false, "mine": true, subscription + "0": true},
		key.LinkAutoApproval.Name: {subscription: false, "mine": true},
		key.IPTags.Name: {"RoutingPreference=Internet": false, "routingpreference=INTERNET": false,
			"RoutingPreference=internal": true, "FirstPartyUsages=/x": true, "Other=x": false},
	} {
		for value, doubted := range values {
			if got := key.Warnings(map[string]string{name: value}, []int32{80}); (len(got) > 0) != doubted {
				t.Errorf("%s=%q: the warnings are %v", name, value, got)
			}
		}
	}
}

// TestAzureNamesOfLists checks that each item of a list is returned alone, as Azure's errors mention
// it.
func TestAzureNamesOfLists(t *testing.T) {
	for a, want := range map[string][]string{
		key.LinkAddresses.Name: {"10.0.0.1", "10.0.0.2"}, key.LinkFQDNs.Name: {"a.example", "b.example"},
		key.LinkVisibility.Name: {"one", "two"}, key.LinkAutoApproval.Name: {"one", "two"},
		key.AllowedServiceTags.Name: {"AzureCloud", "Storage"},
	} {
		between := "  "
		if a == key.AllowedServiceTags.Name {
			between = ", "
		}
		var got []string
		for _, said := range key.AzureNames(map[string]string{a: strings.Join(want, between)}) {
			if said.Key != a || said.Allowed == "" {
				t.Errorf("said is %+v", said)
			}
			got = append(got, said.Value)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", a, got)
		}
	}
}

// TestOptionsOfAPrivateLink checks that all keys that configure a private link service are in
// LinkOptions.
func TestOptionsOfAPrivateLink(t *testing.T) {
	for _, e := range key.ServiceEntries() {
		if !strings.HasPrefix(e.Name, service+"azure-pls-") {
			continue
		}
		want := e.Name != key.LinkCreate.Name && e.Name != key.LinkGroup.Name // the existing service keeps these
		if _, value, is := key.FirstLinkOption(map[string]string{e.Name: "x"}); is != want || is && value != "x" {
			t.Errorf("%s is an option %v, want %v", e.Name, is, want)
		}
	}
}

func TestSwitches(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": true, " TRUE ": false, "": false, "false": false, "yes": false,
		"1": false} {
		if got, err := key.DisableTCPReset.Read(map[string]string{key.DisableTCPReset.Name: value}); got != want || err != nil {
			t.Errorf("%q: %v, %v", value, got, err)
		}
		internal, err := key.Internal.Read(map[string]string{key.Internal.Name: value})
		if internal != (value == "true") || err != nil {
			t.Errorf("internal %q: %v, %v", value, internal, err)
		}
		link, err := key.LinkCreate.Read(map[string]string{key.LinkCreate.Name: value})
		if link != (want || value == " TRUE ") || err != nil {
			t.Errorf("private link service %q: %v, %v", value, link, err)
		}
	}
}

// TestWarningsOfWords checks that an unknown word counts as the default and causes a warning.
func TestWarningsOfWords(t *testing.T) {
	seen := map[string]int{}
	for allowed, values := range map[string]map[string]string{ // by what the value counts as, "" for allowed values
		"true or false": {"true": "", " TRUE ": "false", "False": "", "false\t": "", "": "", " ": "", "yes": "false", "1": "false",
			"treu": "false", "true,": "false", "\"true\"": "false"},
		"tcp, http or https": {"tcp": "", " HTTPS ": "", "Http": "", "": "", "htpp": "tcp", "grpc": "tcp", "http2": "tcp", "http:": "tcp"},
	} {
		for _, e := range key.ServiceEntries() {
			if e.Allowed != allowed {
				continue
			}
			seen[allowed]++
			name := strings.Replace(e.Name, "PORT", "80", 1)
			for value, counts := range values {
				if value == " TRUE " && strings.HasPrefix(e.Name, service+"azure-pls-") {
					counts = "" // it counts as true
				}
				got := key.Warnings(map[string]string{name: value}, []int32{80})
				if counts == "" && len(got) > 0 {
					t.Errorf("%s=%q is doubted: %v", name, value, got)
				}
				if counts != "" &&
					(len(got) != 1 ||
						got[0].Error() != fmt.Sprintf("%s: %q is not allowed (it counts as %s), allowed is %s", name, value, counts,
							allowed)) {
					t.Errorf("%s=%q: the warnings are %v", name, value, got)
				}
			}
		}
	}
	if d := cmp.Diff(map[string]int{"true or false": 9, "tcp, http or https": 2}, seen); d != "" {
		t.Errorf("keys that take words (-want +got):\n%s", d)
	}
}

func TestTexts(t *testing.T) {
	got, err := key.IPTags.Read(map[string]string{key.IPTags.Name: "A= x ,B=y,A=z,bad,c=d=e"})
	if d := cmp.Diff(key.Pairs{Values: map[string]string{"A": "z", "B": "y"}, Skipped: []string{"bad", "c=d=e"}}, got); d != "" ||
		err != nil {
		t.Errorf("IP tags: %v\n%s", err, d)
	}
	if got, _ := key.Balancers.Read(map[string]string{key.Balancers.Name: " LB1, lb2 ,"}); !slices.Equal(got, []string{"lb1", "lb2"}) {
		t.Errorf("load balancers: %q", got)
	}
	if got, _ := key.LinkAddresses.Read(map[string]string{key.LinkAddresses.Name: " 10.0.0.1  10.0.0.2"}); !slices.Equal(got,
		[]string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("addresses of a link: %q", got)
	}
}

// TestNames checks that names follow Azure's naming rules, because they become part of ids.
func TestNames(t *testing.T) {
	long := strings.Repeat("n", 100)
	groups := []key.Annotation[string]{key.PublicIPGroup, key.LinkGroup}
	others := []key.Annotation[string]{key.InternalSubnet, key.LinkSubnet, key.LinkName, key.PublicIPName, key.PublicIPNameIPv6}
	for value, want := range map[string]struct {
		group, other bool
		why          string
	}{
		"": {group: true, other: true}, " \t": {group: true, other: true}, "kaz": {group: true, other: true},
		" kaz-1.a_b ": {group: true, other: true},
		"k_":          {group: true, other: true}, long[:80]: {group: true, other: true},
		long[:81]: {group: true, why: "has up to 80 letters"}, long[:90]: {group: true, why: "has up to 80 letters"},
		long[:91]: {why: "has up to "},
		"(old)":   {group: true, why: "has up to 80"}, "straße-ost": {group: true, why: "has up to 80"},
		"-k": {group: true, why: "has up to 80"},
		"k-": {group: true, why: "has up to 80"}, "k.": {why: "has up to "}, ".": {why: "has up to "}, "..": {why: "has up to "},
		"no/group": {why: "has up to "}, "a%2fb": {why: "has up to "}, "../kaz": {why: "has up to "}, "kaz?x=1": {why: "has up to "},
		"kaz#": {why: "has up to "},
		`a\b`:  {why: "has up to "}, "a b": {why: "has up to "}, "a\nb": {why: "has up to "}, "a\x00": {why: "has up to "},
		"\xff": {why: "has up to "}, "/kaz": {why: "has up to "},
		"/subscriptions/s/resourceGroups/kaz": {why: "it is an id; want a name"},
		"/SUBSCRIPTIONS/s/resourceGroups/kaz": {why: "it is an id; want a name"},
	} {
		check := func(a key.Annotation[string], good bool) {
			got, err := a.Read(map[string]string{a.Name: value})
			if good && (err != nil || got != strings.TrimSpace(value)) || !good &&
				(err == nil || got != "" || !strings.Contains(err.Error(), want.why)) {
				t.Errorf("%s=%q: %q, %v", a.Name, value, got, err)
			}
		}
		for _, a := range groups {
			check(a, want.group)
		}
		for _, a := range others {
			check(a, want.other)
		}
	}
}

func TestDNSLabels(t *testing.T) {
	longest := strings.Repeat("a", 63)
	for value, good := range map[string]bool{
		"": true, " ": true, "web": true, " web-1\t": true, longest: true,
		"we": false, longest + "a": false, "Web": false, "1web": false, "web-": false, "-web": false, "w.b": false, "w_b": false,
		"a web": false,
	} {
		got, err := key.DNSLabel.Read(map[string]string{key.DNSLabel.Name: value})
		if (err == nil) != good || good && got != strings.TrimSpace(value) {
			t.Errorf("%q: %q, %v", value, got, err)
		}
	}
}

func TestPortsHaveTheirOwnKeys(t *testing.T) {
	annotations := map[string]string{service + "port_80_health-probe_interval": "9", service + "port_8080_no_lb_rule": "true"}
	if v, ok, err := key.PortProbeInterval.Lookup(annotations, 80); v != 9 || !ok || err != nil {
		t.Error(v, ok, err)
	}
	if _, ok, _ := key.PortProbeInterval.Lookup(annotations, 8080); ok {
		t.Error("port 8080 has the interval of port 80")
	}
	if v, ok, err := key.NoRule.Lookup(annotations, 8080); !v || !ok || err != nil {
		t.Error(v, ok, err)
	}
	_, _, err := key.PortProbeInterval.Lookup(map[string]string{service + "port_80_health-probe_interval": "4"}, 80)
	if err == nil || !strings.Contains(err.Error(), "port_80_health-probe_interval") {
		t.Error("the error does not name the port's own key:", err)
	}
}

func TestTags(t *testing.T) {
	for value, want := range map[string]key.Pairs{
		"":                        {Values: map[string]string{}},
		"a=b, c = d ":             {Values: map[string]string{"a": "b", "c": "d"}},
		"a=b,bad,c=d=e":           {Values: map[string]string{"a": "b"}, Skipped: []string{"bad", "c=d=e"}},
		"a=,=b":                   {Values: map[string]string{"a": ""}, Skipped: []string{"=b"}},
		"a= null,b=null,c=NULL d": {Values: map[string]string{"a": " null", "b": "null", "c": "NULL d"}},
		"k8s-azure-service=a/b, K8s-Azure-Cluster-Name = c,service=d": {
			Values: map[string]string{"service": "d"}, Skipped: []string{"k8s-azure-service=a/b", "K8s-Azure-Cluster-Name = c"},
		}, // reserved by kaz
		"a<b=c,d=e": {Values: map[string]string{"d": "e"}, Skipped: []string{"a<b=c"}},
		// Azure counts characters, without the blanks around.
		"a=" + strings.Repeat("ü", 256): {Values: map[string]string{"a": strings.Repeat("ü", 256)}},
		"a=   " + strings.Repeat("v", 256) +
			"   ,b=c": {Values: map[string]string{"a": strings.Repeat("v", 256), "b": "c"}},
		"a=" + strings.Repeat("v", 257) +
			",b=c": {Values: map[string]string{"b": "c"}, Skipped: []string{"a=" + strings.Repeat("v", 257)}},
		strings.Repeat("é", 512) + "=b," + strings.Repeat("n", 513) +
			"=c,d=": {Values: map[string]string{strings.Repeat("é", 512): "b", "d": ""},
			Skipped: []string{strings.Repeat("n", 513) + "=c"}},
		// one tag to Azure
		"Team=x,owner=y,team=z": {Values: map[string]string{"team": "z", "owner": "y"}},
	} {
		got, err := key.PublicIPTags.Read(map[string]string{key.PublicIPTags.Name: value})
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%q: %v\n%s", value, err, d)
		}
	}
}

// TestUnknowns checks that an unknown key is reported with the key that may be meant.
func TestUnknowns(t *testing.T) {
	for _, e := range key.ServiceEntries() {
		known := strings.Replace(e.Name, "PORT", "80", 1)
		if got := key.Unknowns(map[string]string{known: "x"}, []int32{80}); len(got) > 0 {
			t.Errorf("%s is served, and is taken for %+v", known, got)
		}
		at := len(known) - 3
		for _, wrong := range []string{known + "s", known[:at] + known[at+1:], known[:at] + "x" + known[at+1:],
			known[:at] + known[at+1:at+2] + known[at:at+1] + known[at+2:]} {
			got := key.Unknowns(map[string]string{wrong: "x"}, []int32{80})
			if wrong == known || !strings.HasPrefix(wrong, service+"azure-") && !strings.HasPrefix(wrong, service+"port_") {
				continue
			}
			if len(got) != 1 || got[0].Name != wrong || got[0].Value != "x" || got[0].Nearest != known || got[0].Port != "" {
				t.Errorf("%s is taken for %+v, want %s", wrong, got, known)
			}
		}
	}
	for name, want := range map[string]string{
		service + "load-balancer-source-range":                    service + "load-balancer-source-ranges",
		service + "Azure-Load-Balancer-Internal":                  service + "azure-load-balancer-internal",
		"Service.beta.kubernetes.io/azure-load-balancer-internal": service + "azure-load-balancer-internal",
		"service.kubernetes.io/azure-load-balancer-internal":      service + "azure-load-balancer-internal",
		"azure-load-balancer-internal":                            service + "azure-load-balancer-internal",
		service + "Azure-Load-Balancer-Configurations":            "", // is read in any case
		service + "aws-load-balancer-internal":                    "",
		"service.kubernetes.io/topology-mode":                     "",
		"networking.gke.io/load-balancer-type":                    "",
		"service.kubernetes.io/load-balancer-cleanup":             "",
		"kubectl.kubernetes.io/last-applied-configuration":        "",
		"external-dns.alpha.kubernetes.io/hostname":               "",
		service + "load-balancer-source-ranges":                   "",
		"example.com/load-balancer-source-ranges":                 "",
	} {
		got := key.Unknowns(map[string]string{name: "x"}, []int32{80})
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0].Nearest != want) {
			t.Errorf("%s is taken for %+v, want %q", name, got, want)
		}
	}
	for name, port := range map[string]string{"port_http_no_lb_rule": "http", "port_080_no_lb_rule": "080",
		"port_8080_no_lb_rule": "8080", "port_80_no_lb_rule": ""} {
		got := key.Unknowns(map[string]string{service + name: "x"}, []int32{80, 443})
		if port == "" && len(got) > 0 || port != "" && (len(got) != 1 || got[0].Port != port) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, name := range []string{service + "azure-", service + "port_", service + "port_80", service + "port_80_", service +
		"azure-make-it-fast"} {
		if got := key.Unknowns(map[string]string{name: "x"}, []int32{80}); len(got) != 1 || got[0].Nearest != "" || got[0].Port != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// FuzzNames checks that an accepted name is a single segment of an id.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{"", "kaz", " (old).1 ", "straße", "no/group", "a%2fb", "../kaz", "kaz?x=1", "kaz#", "k\n",
		"/subscriptions/s/resourceGroups/kaz", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, a := range []key.Annotation[string]{key.PublicIPGroup, key.LinkGroup, key.InternalSubnet, key.LinkSubnet, key.LinkName,
			key.PublicIPName, key.PublicIPNameIPv6} {
			name, err := a.Read(map[string]string{a.Name: value})
			if err != nil || name == "" {
				continue
			}
			id, err := azure.ParseID(string(azure.GroupID("s", name).Resource("Microsoft.Network/publicIPAddresses", name)))
			if err != nil || id.Name() != name || id.Group() != name || id.Subscription() != "s" {
				t.Errorf("%s=%q is taken as the name %q, with which there is the id %q: %v", a.Name, value, name, id, err)
			}
		}
	})
}

// FuzzUnknowns checks that the search for the nearest key never fails and returns a supported key.
func FuzzUnknowns(f *testing.F) {
	for _, seed := range []string{"azure-load-balancer-internl", "port_80_no_lb_rule", "port__", "port_PORT_no_lb_rule", "azure-\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, s := range key.Unknowns(map[string]string{service + name: ""}, []int32{80}) {
			if s.Nearest == "" {
				continue
			}
			port := ""
			if rest, ok := strings.CutPrefix(s.Nearest, service+"port_"); ok {
				port, _, _ = strings.Cut(rest, "_")
			}
			if !slices.ContainsFunc(key.ServiceEntries(),
				func(e key.Entry) bool { return strings.Replace(e.Name, "PORT", port, 1) == s.Nearest }) {
				t.Errorf("%q: %+v", name, s)
			}
		}
	})
}

// FuzzValues checks that parsers never panic and that accepted values are within the documented
// limits.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{"", "true", "4", "100", "-1", "a=b,c", "10.0.0.0/8, ::/0", "http", "\x00", "4\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if n, err := key.IdleTimeout.Read(map[string]string{key.IdleTimeout.Name: value}); err == nil && (n < 4 || n > 100) {
			t.Errorf("%q is %d minutes", value, n)
		}
		if n, _, err := key.PortProbeCount.Lookup(map[string]string{service + "port_1_health-probe_num-of-probe": value},
			1); err == nil && n < 0 {
			t.Errorf("%q is %d probes", value, n)
		}
		ranges, err := key.AllowedIPRanges.Read(map[string]string{key.AllowedIPRanges.Name: value})
		if err != nil || slices.ContainsFunc(ranges, func(r string) bool { return r == "" || strings.TrimSpace(r) != r }) {
			t.Errorf("%q is the list %q: %v", value, ranges, err)
		}
		pairs, err := key.PublicIPTags.Read(map[string]string{key.PublicIPTags.Name: value})
		if err != nil {
			t.Errorf("%q: %v", value, err)
		}
		for name, v := range pairs.Values {
			if name == "" || strings.ContainsAny(name+v, "=,") {
				t.Errorf("%q has the pair %q=%q", value, name, v)
			}
		}
	})
}

// TestAPrivateLinkStays checks that only an explicit "false" or a missing annotation deletes the
// private link service.
func TestAPrivateLinkStays(t *testing.T) {
	for value, want := range map[string]bool{"true": true, " TRUE ": true, "ture": true, "yes": true, "0": true, "false": false,
		" False": false, "": false, "  ": false} {
		if got := key.LinkStays(map[string]string{key.LinkCreate.Name: value}); got != want {
			t.Errorf("%q: it stays %v, want %v", value, got, want)
		}
	}
	if key.LinkStays(nil) {
		t.Error("it stays where nothing is said of it")
	}
}
