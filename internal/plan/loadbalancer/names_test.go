package loadbalancer

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"kaz/internal/azure"
)

func withUID(uid types.UID) *v1.Service { return &v1.Service{ObjectMeta: metav1.ObjectMeta{UID: uid}} }

// The names are those of running clusters: changing one of them would change
// addresses.
func TestNames(t *testing.T) {
	base := baseName(withUID("3d2c1b0a-1111-2222-3333-444455556666"))
	long := strings.Repeat("c", 80)
	for _, test := range []struct{ what, got, want string }{
		{"base", base, "a3d2c1b0a11112222333344445555666"},
		{"base of a short UID", baseName(withUID("u-1")), "au1"},
		{"rule", names{base: base}.rule(v1.ProtocolTCP, 80), "a3d2c1b0a11112222333344445555666-TCP-80"},
		{"rule for UDP", names{base: base}.rule(v1.ProtocolUDP, 65535), "a3d2c1b0a11112222333344445555666-UDP-65535"},
		{"public IP", publicIPName("kubernetes", base, "", ""), "kubernetes-a3d2c1b0a11112222333344445555666"},
		{"public IP of a long cluster name", publicIPName(long, base, "", ""), long[:75]},
		{"rule in a subnet", names{base: base, subnet: "apps", suffix: "-IPv6"}.rule(v1.ProtocolTCP, 80), "a3d2c1b0a11112222333344445555666-apps-TCP-80-IPv6"},
		{"rule in a long subnet", names{base: base, subnet: strings.Repeat("s", 80)}.rule(v1.ProtocolSCTP, 65535), base + "-" + strings.Repeat("s", 31) + "-SCTP-65535"},
		{"frontend", names{base: base}.frontend(), base},
		{"frontend in a subnet", names{base: base, subnet: "apps"}.frontend(), base + "-apps"},
		{"second frontend", names{base: base, suffix: "-IPv6"}.frontend(), base + "-IPv6"},
		{"frontend in a long subnet", names{base: base, subnet: strings.Repeat("s", 80)}.frontend(), base + "-" + strings.Repeat("s", 42)},
		{"frontend cut at a digit", names{base: base, subnet: strings.Repeat("1", 80), suffix: "-IPv6"}.frontend(), base + "-" + strings.Repeat("1", 41) + "_-IPv6"},
		{"frontend cut at an underscore", names{base: base, subnet: strings.Repeat("_", 80)}.frontend(), base + "-" + strings.Repeat("_", 42)},
		{"frontend that just fits", names{base: base, subnet: strings.Repeat("1", 42)}.frontend(), base + "-" + strings.Repeat("1", 42)},
		{"public IP from a prefix", publicIPName("kubernetes", base, "prefix", "-IPv6"), "kubernetes-a3d2c1b0a11112222333344445555666-prefix-IPv6"},
		{"security rule for IPv6", allowRuleName(v1.IPv6Protocol, "Tcp", []string{"Internet"}, []string{"80", "443"}), "k8s-azure-lb_allow_IPv6_556f7044ec033071ec0dfcf7cd85bc93"},
		{"security rule", allowRuleName(v1.IPv4Protocol, "Tcp", []string{"Internet"}, []string{"80", "443"}), "k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93"},
		{"owner", ownerBase("A3D2C1B0A11112222333344445555666-TCP-80"), base},
		{"owner of what has none", ownerBase("aksOutboundRule"), "aksoutboundrule"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, want %s", test.what, test.got, test.want)
		}
	}
}

// A security rule's name does not depend on the order in which sources and ports
// were written.
func TestSecurityRuleNameIsOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,3}`)).Draw(t, "sources")
		ports := rapid.SliceOf(rapid.StringMatching(`[0-9]{1,3}`)).Draw(t, "ports")
		want := allowRuleName(v1.IPv4Protocol, "Tcp", sources, ports)
		got := allowRuleName(v1.IPv4Protocol, "Tcp", rapid.Permutation(sources).Draw(t, "sources again"), rapid.Permutation(ports).Draw(t, "ports again"))
		if got != want {
			t.Fatal(got, want)
		}
	})
}

func TestAggregate(t *testing.T) {
	for _, test := range []struct{ ranges, want string }{
		{"", ""},
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"10.0.0.0/8 10.1.0.0/16 10.0.0.0/8", "10.0.0.0/8"},
		{"10.1.0.0/16 10.0.0.0/16", "10.0.0.0/15"},
		{"10.2.0.0/16 10.1.0.0/16", "10.1.0.0/16 10.2.0.0/16"}, // neighbors, not halves of one range
		{"0.0.0.0/1 128.0.0.0/1", "0.0.0.0/0"},
		{"10.0.0.0/32 10.0.0.1/32 10.0.0.2/31 10.0.0.4/30", "10.0.0.0/29"},
		{"2001:db8::/32 10.0.0.0/8", "10.0.0.0/8"},
		{"0.0.0.0/0 1.1.1.1/32", "0.0.0.0/0"},
	} {
		ranges, wrong := parseRanges(strings.Fields(test.ranges))
		if got := strings.Join(aggregate(ranges, v1.IPv4Protocol), " "); got != test.want || len(wrong) > 0 {
			t.Errorf("%s: %s, want %s (%v)", test.ranges, got, test.want, wrong)
		}
	}
	_, wrong := parseRanges([]string{"10.0.0.1/8", " 10.0.0.0/8 ", "10.0.0.1", "", "x", "10.0.0.0/33", "::ffff:10.0.0.0/104"})
	if d := cmp.Diff([]string{"10.0.0.1/8", "10.0.0.1", "", "x", "10.0.0.0/33", "::ffff:10.0.0.0/104"}, wrong); d != "" {
		t.Error(d)
	}
}

// Aggregation neither lets in nor keeps out another address, and leaves nothing to
// merge.
func TestAggregateKeepsTheSameAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, rapid.Byte().Draw(t, "b") & 3, 0, rapid.Byte().Draw(t, "d") & 7})
		})
		var ranges []netip.Prefix
		for _, a := range rapid.SliceOf(address).Draw(t, "addresses") {
			ranges = append(ranges, netip.PrefixFrom(a, rapid.SampledFrom([]int{8, 15, 16, 29, 30, 31, 32}).Draw(t, "bits")).Masked())
		}
		holds := func(all []netip.Prefix, a netip.Addr) bool {
			for _, p := range all {
				if p.Contains(a) {
					return true
				}
			}
			return false
		}
		merged, wrong := parseRanges(aggregate(ranges, v1.IPv4Protocol))
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		for range 20 {
			if a := address.Draw(t, "probe"); holds(ranges, a) != holds(merged, a) {
				t.Fatalf("%s in %v is not in %v, or the other way round", a, ranges, merged)
			}
		}
		if again := aggregate(merged, v1.IPv4Protocol); len(again) != len(merged) {
			t.Fatalf("%v can still be merged to %v", merged, again)
		}
	})
}

func FuzzRanges(f *testing.F) {
	for _, seed := range []string{"10.0.0.0/8", "::/0", "10.0.0.1/8", "::ffff:10.0.0.0/104", "0.0.0.0/0", " ", "fe80::%eth0/64"} {
		f.Add(seed, "10.0.0.0/9")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		ranges, wrong := parseRanges([]string{a, b})
		if len(ranges)+len(wrong) != 2 {
			t.Fatalf("%q and %q: %v %v", a, b, ranges, wrong)
		}
		for _, text := range aggregate(ranges, v1.IPv4Protocol) {
			if p, err := netip.ParsePrefix(text); err != nil || !p.Addr().Is4() || p != p.Masked() {
				t.Errorf("%q and %q: %s", a, b, text)
			}
		}
	})
}

// D5. The value of the label that excludes counts, as it does for the rest of Kubernetes.
func TestRoles(t *testing.T) {
	c := Config{ResourceGroup: "rg", ExcludeControlPlane: true}
	labeled := func(k, v string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{k: v}}}
	}
	deleted := &v1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}}
	tainted := &v1.Node{Spec: v1.NodeSpec{Taints: []v1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}}}}
	notReady := &v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}}}
	const exclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	for _, test := range []struct {
		what string
		node *v1.Node
		want Role
	}{
		{"plain", &v1.Node{}, Receiver}, {"not ready", notReady, Receiver},
		{"excluded", labeled(exclude, "true"), Excluded}, {"excluded without a value", labeled(exclude, ""), Excluded},
		{"excluded by no truth value", labeled(exclude, "yes"), Excluded}, {"not excluded", labeled(exclude, "false"), Receiver},
		{"unmanaged", labeled("kubernetes.azure.com/managed", "False"), Excluded}, {"managed", labeled("kubernetes.azure.com/managed", "true"), Receiver},
		{"of another group", labeled("kubernetes.azure.com/resource-group", "other"), Bystander}, {"of the group", labeled("kubernetes.azure.com/resource-group", "RG"), Receiver},
		{"control plane", labeled("node-role.kubernetes.io/control-plane", ""), Bystander}, {"master", labeled("node-role.kubernetes.io/master", ""), Bystander},
		{"master of old", labeled("kubernetes.io/role", "master"), Bystander}, {"worker of old", labeled("kubernetes.io/role", "node"), Receiver},
		{"being deleted", deleted, Bystander}, {"about to be deleted", tainted, Bystander},
	} {
		if got := RoleOf(c, test.node); got != test.want {
			t.Errorf("%s: %s, want %s", test.what, got, test.want)
		}
	}
	c.ExcludeControlPlane = false
	if got := RoleOf(c, labeled("node-role.kubernetes.io/control-plane", "")); got != Receiver {
		t.Errorf("control plane that is let in: %s", got)
	}
}

func TestTags(t *testing.T) {
	c := Config{Tags: azure.Tags{"Env": "test", "team": "a"}}
	for _, test := range []struct {
		what      string
		system    []string
		own, have azure.Tags
		want      azure.Tags
	}{
		{"configured", nil, nil, nil, azure.Tags{"Env": "test", "team": "a"}},
		{"own ones win, in any case", nil, azure.Tags{"env": "mine"}, nil, azure.Tags{"env": "mine", "team": "a"}},
		{"others' stay", nil, nil, azure.Tags{"x": "y"}, azure.Tags{"Env": "test", "team": "a"}},
		{"others' go but for system ones", []string{"sys"}, nil, azure.Tags{"x": "y", "SysTem": "z", "ENV": "old"}, azure.Tags{"Env": "test", "team": "a", "x": azure.DropTag}},
	} {
		c.SystemTags = test.system
		if d := cmp.Diff(test.want, wantedTags(c, test.own, test.have)); d != "" {
			t.Errorf("%s: %s", test.what, d)
		}
	}
	if got := wantedTags(Config{}, nil, azure.Tags{"x": "y"}); got != nil {
		t.Error("without configured tags there is an opinion:", got)
	}
}

// Tags of load balancers and of the security group are the configuration's alone: where it
// has none, others' stay whatever the system tags are. Notes come and go all the same.
func TestTagsOfFrames(t *testing.T) {
	configured, system := azure.Tags{"team": "a"}, []string{"sys"}
	for _, test := range []struct {
		what        string
		c           Config
		notes, have azure.Tags
		want        azure.Tags
	}{
		{"nothing configured", Config{}, nil, azure.Tags{"x": "y"}, nil},
		{"system tags alone", Config{SystemTags: system}, nil, azure.Tags{"x": "y"}, nil},
		{"system tags alone, a note comes", Config{SystemTags: system}, azure.Tags{"kaz-c-1": "true"}, azure.Tags{"x": "y"}, azure.Tags{"kaz-c-1": "true"}},
		{"system tags alone, a note goes", Config{SystemTags: system}, azure.Tags{"kaz-c-1": azure.DropTag}, azure.Tags{"x": "y"}, azure.Tags{"kaz-c-1": azure.DropTag}},
		{"tags", Config{Tags: configured}, nil, azure.Tags{"x": "y"}, configured},
		{"both", Config{Tags: configured, SystemTags: system}, nil, azure.Tags{"x": "y", "SYS-1": "z"}, azure.Tags{"team": "a", "x": azure.DropTag}},
		{"both, other clusters' notes", Config{Tags: configured, SystemTags: system}, nil, azure.Tags{"Kaz-d-public-ips-in-far": "true"}, configured},
	} {
		if d := cmp.Diff(test.want, frameTags(test.c, test.notes, test.have)); d != "" {
			t.Errorf("%s: %s", test.what, d)
		}
	}
}
