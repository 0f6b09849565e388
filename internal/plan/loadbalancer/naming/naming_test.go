package naming_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"kaz/internal/plan/loadbalancer/naming"
)

func withUID(uid types.UID) *v1.Service { return &v1.Service{ObjectMeta: metav1.ObjectMeta{UID: uid}} }

// TestNames checks that names are those of running clusters: to change one of them would change addresses.
func TestNames(t *testing.T) {
	base := naming.Base(withUID("3d2c1b0a-1111-2222-3333-444455556666"))
	long := strings.Repeat("c", 80)
	for _, test := range []struct{ what, got, want string }{
		{"base", base, "a3d2c1b0a11112222333344445555666"},
		{"base of a short UID", naming.Base(withUID("u-1")), "au1"},
		{"rule", naming.Names{Base: base}.Rule(v1.ProtocolTCP, 80), "a3d2c1b0a11112222333344445555666-TCP-80"},
		{"rule for UDP", naming.Names{Base: base}.Rule(v1.ProtocolUDP, 65535), "a3d2c1b0a11112222333344445555666-UDP-65535"},
		{"public IP", naming.PublicIP("kubernetes", base, "", ""), "kubernetes-a3d2c1b0a11112222333344445555666"},
		{"public IP of a long cluster name", naming.PublicIP(long, base, "", ""), long[:75]},
		{"rule in a subnet", naming.Names{Base: base, Subnet: "apps", Suffix: "-IPv6"}.Rule(v1.ProtocolTCP, 80),
			"a3d2c1b0a11112222333344445555666-apps-TCP-80-IPv6"},
		{"rule in a long subnet", naming.Names{Base: base, Subnet: strings.Repeat("s", 80)}.Rule(v1.ProtocolSCTP, 65535), base + "-" +
			strings.Repeat("s", 31) + "-SCTP-65535"},
		{"frontend", naming.Names{Base: base}.Frontend(), base},
		{"frontend in a subnet", naming.Names{Base: base, Subnet: "apps"}.Frontend(), base + "-apps"},
		{"second frontend", naming.Names{Base: base, Suffix: "-IPv6"}.Frontend(), base + "-IPv6"},
		{"frontend in a long subnet", naming.Names{Base: base, Subnet: strings.Repeat("s", 80)}.Frontend(), base + "-" + strings.Repeat("s", 42)},
		{"frontend cut at a digit", naming.Names{Base: base, Subnet: strings.Repeat("1", 80), Suffix: "-IPv6"}.Frontend(), base + "-" +
			strings.Repeat("1", 41) + "_-IPv6"},
		{"frontend cut at an underscore", naming.Names{Base: base, Subnet: strings.Repeat("_", 80)}.Frontend(), base + "-" +
			strings.Repeat("_", 42)},
		{"frontend that just fits", naming.Names{Base: base, Subnet: strings.Repeat("1", 42)}.Frontend(), base + "-" + strings.Repeat("1", 42)},
		{"public IP from a prefix", naming.PublicIP("kubernetes", base, "prefix", "-IPv6"),
			"kubernetes-a3d2c1b0a11112222333344445555666-prefix-IPv6"},
		{"security rule for IPv6", naming.AllowRule(v1.IPv6Protocol, "Tcp", []string{"Internet"}, []string{"80", "443"}),
			"k8s-azure-lb_allow_IPv6_556f7044ec033071ec0dfcf7cd85bc93"},
		{"security rule", naming.AllowRule(v1.IPv4Protocol, "Tcp", []string{"Internet"}, []string{"80", "443"}),
			"k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93"},
		{"owner", naming.Owner("A3D2C1B0A11112222333344445555666-TCP-80"), base},
		{"owner of what has none", naming.Owner("aksOutboundRule"), "aksoutboundrule"},
	} {
		if test.got != test.want {
			t.Errorf("%s: %s, want %s", test.what, test.got, test.want)
		}
	}
}

// TestSecurityRuleNameIsOfSets checks that a security rule's name does not depend on the order in which sources and ports
// were written.
func TestSecurityRuleNameIsOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,3}`)).Draw(t, "sources")
		ports := rapid.SliceOf(rapid.StringMatching(`[0-9]{1,3}`)).Draw(t, "ports")
		want := naming.AllowRule(v1.IPv4Protocol, "Tcp", sources, ports)
		got := naming.AllowRule(v1.IPv4Protocol, "Tcp", rapid.Permutation(sources).Draw(t, "sources again"),
			rapid.Permutation(ports).Draw(t, "ports again"))
		if got != want {
			t.Fatal(got, want)
		}
	})
}
