package testkit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

const (
	denyRest    = "azure-deny-all-except-load-balancer-source-ranges"
	serviceTags = "azure-allowed-service-tags"
	rangesToo   = "azure-allowed-ip-ranges"
	noGuard     = "azure-disable-load-balancer-nsg-rule"
	moreIPs     = "azure-additional-public-ips"
)

// admits6 is the fact of a security rule that allows TCP port 80 over IPv6.
func admits6(from string) string { return "security rule: allow Tcp 80 over IPv6 from " + from }

const denied = "security rule: deny * * from *"

// accessScenarios are about the allowed clients of one Service.
func accessScenarios() []Scenario {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	has := func(rules ...string) []string { return append([]string{own, forwards(80)}, rules...) }
	within := func(rules ...string) []string { return append([]string{inside, forwards(80)}, rules...) }
	both := []string{"public", "public6"}
	return []Scenario{
		{Name: "012 internal with ranges", Turns: []Turn{
			{Service: allow(with(web(), internal, "true"), "10.9.0.0/16"), Addresses: private, Has: within(admits("10.9.0.0/16", 80))},
			{Service: with(web(), internal, "true"), Addresses: []string{"kept"}, Has: within(), Guard: []string{}},
		}},
		{Name: "013 internal and open", Turns: []Turn{
			{Service: allow(with(web(), internal, "true"), "0.0.0.0/0"), Addresses: private, Has: within(admits("0.0.0.0/0", 80))},
		}},
		{Name: "041 access", Turns: []Turn{
			{
				Service:   with(allow(web(), "10.0.0.0/8"), denyRest, "true", serviceTags, "AzureCloud"),
				Addresses: public, Has: has(admits("10.0.0.0/8", 80), admits("AzureCloud", 80), denied),
			},
			{Service: allow(web(), "10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"), Addresses: public, Has: has(admits("10.0.0.0/7", 80))},
			{Service: allow(web(), "10.0.0.1/8"), Addresses: public, Has: has(denied)},
			{Service: web(), Addresses: []string{"kept"}, Has: has(admits("Internet", 80))},
		}},
		{Name: "042 ranges in two places", Turns: []Turn{
			{Service: with(allow(web(), "10.0.0.0/8"), rangesToo, "10.9.0.0/16"), Refused: rangesToo},
			{Service: with(web(), rangesToo, "10.9.0.0/16"), Addresses: public, Has: has(admits("10.9.0.0/16", 80))},
			{Service: with(allow(web(), "10.0.0.0/8"), rangesToo, "10.9.0.0/16"), Refused: rangesToo, Has: has(admits("10.9.0.0/16", 80))},
		}},
		{Name: "047 ranges of one family", Turns: []Turn{
			{Service: allow(families(web(), v4, v6), "10.9.0.0/16"), Addresses: both, Has: has(admits("10.9.0.0/16", 80), own6, forwards6)},
			{
				Service: allow(families(web(), v4, v6), "10.9.0.0/16", "2001:db8::/32"), Addresses: both,
				Has: has(admits("10.9.0.0/16", 80), own6, forwards6, admits6("2001:db8::/32")),
			},
		}},
		{Name: "050 further addresses", Turns: []Turn{
			{
				Service: with(web(), moreIPs, "8.1.1.1, 8.1.1.2"), Addresses: []string{"public", "8.1.1.1", "8.1.1.2"},
				Has: has(admits("Internet", 80)), Guard: []string{"500 allow Tcp 80 from Internet to web"},
			},
			{Service: web(), Addresses: []string{"kept"}, Has: has(admits("Internet", 80))},
		}},
		{Name: "051 no security rules", Turns: []Turn{
			{Service: web(), Addresses: public, Has: has(admits("Internet", 80))},
			{Service: with(web(), noGuard, "true"), Addresses: []string{"kept"}, Has: has(), Guard: []string{}},
			{Service: web(), Addresses: []string{"kept"}, Has: has(admits("Internet", 80))},
		}},
	}
}

// denyScenarios are about Services that deny all other clients.
func denyScenarios() []Scenario {
	has := func(rules ...string) []string { return append([]string{own, forwards(80)}, rules...) }
	return []Scenario{
		{Name: "044 everything else denied", Turns: []Turn{
			{Service: with(allow(web(), "10.9.0.0/16"), denyRest, "true"), Addresses: public, Has: has(admits("10.9.0.0/16", 80), denied),
				Guard: []string{
					"500 allow Tcp 80 from 10.9.0.0/16 to web", "4095 deny * * from * to web",
				}},
			{Service: allow(api(), "10.9.0.0/16"), Addresses: public, Has: []string{own, forwards(81), admits("10.9.0.0/16", 81)},
				Guard: []string{
					"500 allow Tcp 80 from 10.9.0.0/16 to web", "501 allow Tcp 81 from 10.9.0.0/16 to api", "4095 deny * * from * to web",
				}},
		}},
		{Name: "045 denied without ranges", Turns: []Turn{
			{Service: with(web(), denyRest, "true"), Addresses: public, Has: has(admits("Internet", 80))},
		}},
	}
}

// guardScenarios are about the security group that all Services share with others.
func guardScenarios() []Scenario {
	other := NewService("api", tcp(80, 30081))
	has := []string{own, forwards(80), admits("Internet", 80)}
	ranges := make([]string, 4001)
	for i := range ranges {
		ranges[i] = fmt.Sprintf("10.9.%d.%d/32", i/128, i%128*2)
	}
	return []Scenario{
		{Name: "004 two at one port", Turns: []Turn{
			{Service: web(), Addresses: public, Has: has},
			{Service: other, Addresses: public, Has: has, Guard: []string{"500 allow Tcp 80 from Internet to api, web"}},
			{Service: web(), Gone: true, Guard: []string{"500 allow Tcp 80 from Internet to api"}},
		}},
		{Name: "048 priorities of others",
			Given: []string{"security rule 500 Inbound", "security rule 501 Outbound", "security rule 4095 Inbound"}, Turns: []Turn{
				{
					Service: with(allow(web(), "10.9.0.0/16"), denyRest, "true"), Addresses: public,
					Has: []string{own, forwards(80), admits("10.9.0.0/16", 80), denied},
					Guard: []string{
						"500 somebodys-500-Inbound", "502 allow Tcp 80 from 10.9.0.0/16 to web", "4094 deny * * from * to web",
						"4095 somebodys-4095-Inbound", "501 somebodys-501-Outbound",
					},
				},
			}},
		{Name: "049 limits of the security group", Turns: []Turn{
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
			{Service: allow(web(), ranges...), Refused: "4000", Guard: []string{"500 allow Tcp 81 from Internet to api"}},
			{Service: web(), Addresses: public, Has: has},
		}},
		{Name: "052 no floating IP", Turns: []Turn{
			{Service: with(web(), noFloat, "true"), Addresses: public, Has: hasUnfloating(80),
				Guard: []string{"500 allow Tcp 30080 from Internet to nodes"}},
			// The other load balancer has no nodes here.
			{Service: with(api(), noFloat, "true", "azure-load-balancer-configurations", ClusterName), Addresses: public,
				Has: hasUnfloating(81), Guard: []string{
					"500 allow Tcp 30080 from Internet to nodes", "501 allow Tcp 30081 from Internet to nodes",
				}},
			{Service: web(), Addresses: []string{"kept"}, Has: has},
		}},
	}
}

// hasUnfloating returns the facts of a Service without floating IP.
func hasUnfloating(port int) []string {
	return []string{
		own, fmt.Sprintf("rule Tcp %d to node port of %[1]d, probe Tcp node port of %[1]d every 5 s", port),
		fmt.Sprintf("security rule: allow Tcp node port of %d from Internet", port),
	}
}
