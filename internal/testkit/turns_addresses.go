package testkit

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

const (
	internal = "azure-load-balancer-internal"
	subnet   = "azure-load-balancer-internal-subnet"
	address4 = "azure-load-balancer-ipv4"
	pipName  = "azure-pip-name"
	prefixID = "azure-pip-prefix-id"
	ipTags   = "azure-pip-ip-tags"
	pipTags  = "azure-pip-tags"
	dnsLabel = "azure-dns-label-name"
)

// at sets spec.loadBalancerIP.
func at(s *corev1.Service, address string) *corev1.Service {
	s.Spec.LoadBalancerIP = address
	return s
}

func internalScenarios() []Scenario {
	static := func(s *corev1.Service, address string) *corev1.Service {
		return with(s, internal, "true", address4, address)
	}
	is := func(address string) string { return "internal load balancer: " + address + " in the subnet nodes" }
	return []Scenario{
		{Name: "011 internal", Turns: []Turn{
			{
				Service: with(web(), internal, "true"), Addresses: private, Has: []string{inside, forwards(80)},
				Names: []string{"frontend BASE in zones 1 2 3", "rule BASE-TCP-80", "probe BASE-TCP-80"}, Guard: []string{},
			},
			{Service: with(api(), internal, "true"), Addresses: private, Has: []string{inside, forwards(81)}, Guard: []string{}},
		}},
		{Name: "018 external and internal by turns", Turns: []Turn{
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}},
			{Service: with(web(), internal, "true"), Addresses: private, Has: []string{inside, forwards(80)}, Guard: []string{}},
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}},
			{Service: with(api(), internal, "true"), Addresses: private, Has: []string{inside, forwards(81)}},
		}},
		{Name: "020 static private address", Turns: []Turn{
			{Service: static(web(), "10.240.9.9"), Addresses: []string{"10.240.9.9"}, Has: []string{is("10.240.9.9"), forwards(80)}},
			{Service: static(api(), "10.240.9.9"), Addresses: []string{"10.240.9.9"}, Has: []string{is("10.240.9.9"), forwards(81)}},
			{Service: static(api(), "10.240.9.10"), Addresses: []string{"10.240.9.10"}, Has: []string{is("10.240.9.10"), forwards(81)}},
			{Service: static(web(), "10.240.9.11"), Addresses: []string{"10.240.9.11"}, Has: []string{is("10.240.9.11"), forwards(80)}},
		}},
	}
}

func subnetScenarios() []Scenario {
	in := func(name string) *corev1.Service { return with(web(), internal, "true", subnet, name) }
	has := func(name string) []string {
		return []string{"internal load balancer: an address in the subnet " + name, forwards(80)}
	}
	names := func(base string) []string {
		return []string{"frontend " + base + " in zones 1 2 3", "rule " + base + "-TCP-80", "probe " + base + "-TCP-80"}
	}
	long := strings.Repeat("s1", 40)
	return []Scenario{
		{Name: "014 subnet of its own", Given: []string{"subnet apps"}, Turns: []Turn{
			{Service: in("apps"), Addresses: private, Has: has("apps"), Names: names("BASE-apps")},
			{Service: with(web(), subnet, "apps"), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}},
		}},
		{Name: "015 subnet with a long name", Given: []string{"subnet " + long}, Turns: []Turn{
			{Service: in(long), Addresses: private, Has: has(long), Names: []string{
				"frontend BASE-" + long[:41] + "_ in zones 1 2 3", "rule BASE-" + long[:35] + "-TCP-80", "probe BASE-" +
					long[:35] + "-TCP-80",
			}},
		}},
		{Name: "016 missing subnet", Turns: []Turn{
			{Service: in("nope"), Refused: `"nope" is not found`},
			{Service: in("  "), Addresses: private, Has: has("nodes"), Names: names("BASE")},
			{Service: in("nope"), Refused: `"nope" is not found`, Has: has("nodes")},
		}},
		{Name: "017 another subnet", Given: []string{"subnet apps", "subnet data"}, Turns: []Turn{
			{Service: in("apps"), Addresses: private, Has: has("apps")},
			{Service: in("data"), Addresses: private, Has: has("data"), Names: names("BASE-data")},
			{Service: with(web(), internal, "true"), Addresses: private, Has: has("nodes"), Names: names("BASE")},
			{Service: in("apps"), Addresses: private, Has: has("apps"), Names: names("BASE-apps")},
		}},
	}
}

func publicScenarios() []Scenario {
	mine := "public IP mine"
	there := with(web(), pipName, "theirs", "azure-load-balancer-resource-group", "addresses")
	return []Scenario{
		{Name: "025 own address", Given: []string{"public IP mine"}, Turns: []Turn{
			{Service: at(web(), "${mine}"), Addresses: public, Has: []string{mine, forwards(80), admits("Internet", 80)}},
			{Service: with(api(), address4, "${mine}"), Addresses: public,
				Has: []string{mine, forwards(81), admits("Internet", 80), admits("Internet", 81)}},
			{Service: web(), Refused: "cannot change while",
				Has: []string{mine, forwards(80), admits("Internet", 80), admits("Internet", 81)}},
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}},
		}},
		{Name: "026 own public IP", Given: []string{"public IP mine"}, Turns: []Turn{
			{Service: with(web(), pipName, "mine"), Addresses: public, Has: []string{mine, forwards(80), admits("Internet", 80)}},
			{Service: with(api(), pipName, "mine"), Addresses: public,
				Has: []string{mine, forwards(81), admits("Internet", 80), admits("Internet", 81)}},
			{Service: with(NewService("third", tcp(80, 30082)), pipName, "mine"), Refused: "port 80"},
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
		}},
		{Name: "027 missing public IP", Turns: []Turn{
			{Service: with(web(), pipName, "nope"), Refused: `"nope" is not found`},
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}},
			{Service: with(web(), pipName, "nope"), Refused: `"nope" is not found`,
				Has: []string{own, forwards(80), admits("Internet", 80)}},
		}},
		{Name: "028 address that is not public", Turns: []Turn{
			{Service: at(web(), "10.0.0.1"), Refused: "non-public"},
			{Service: with(api(), address4, "100.64.0.1"), Refused: "non-public"},
		}},
		{Name: "029 address without a public IP", Given: []string{"public IP mine"}, Turns: []Turn{
			{Service: at(web(), "8.8.8.8"), Refused: "8.8.8.8"},
			{Service: at(web(), "${mine}"), Addresses: public, Has: []string{mine, forwards(80), admits("Internet", 80)}},
			{Service: at(web(), "8.8.8.8"), Refused: "8.8.8.8", Has: []string{mine, forwards(80), admits("Internet", 80)}},
		}},
		{Name: "030 managed to own public IP", Given: []string{"public IP theirs in the resource group addresses"}, Turns: []Turn{
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}, Names: ownNames("c-BASE")},
			{Service: there, Addresses: public, Has: []string{
				"public IP theirs of the resource group addresses", forwards(80), admits("Internet", 80),
			}, Names: ownNames("")},
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}, Names: ownNames("c-BASE")},
		}},
	}
}

// ownNames returns the names of a Service with TCP port 80 and its public IP.
func ownNames(publicIP string) []string {
	names := []string{"frontend BASE", "rule BASE-TCP-80", "probe BASE-TCP-80"}
	if publicIP != "" {
		names = append(names, publicIPName(publicIP))
	}
	return names
}

// publicIPName is what [Env.Names] returns for the public IP of the Service "web".
func publicIPName(name string) string {
	return "public IP " + strings.Replace(name, "c-", ClusterName+"-", 1) + " in zones 1 2 3 for default/web"
}

func prefixScenarios() []Scenario {
	from := func(s *corev1.Service, name string) *corev1.Service {
		return with(s, prefixID, "${group}/providers/Microsoft.Network/publicIPPrefixes/"+name)
	}
	return []Scenario{
		{Name: "033 prefix", Given: []string{"public IP prefix ours", "public IP prefix more"}, Turns: []Turn{
			{Service: from(web(), "ours"), Addresses: public, Has: []string{own + " out of ours", forwards(80), admits("Internet", 80)},
				Names: ownNames("c-BASE-ours")},
			{Service: from(web(), "more"), Addresses: public, Has: []string{own + " out of more", forwards(80), admits("Internet", 80)},
				Names: ownNames("c-BASE-more")},
			{Service: web(), Addresses: public, Has: []string{own, forwards(80), admits("Internet", 80)}, Names: ownNames("c-BASE")},
			{Service: from(web(), "nope"), Refused: "nope", Has: []string{own, forwards(80), admits("Internet", 80)},
				Names: ownNames("c-BASE")},
		}},
		{Name: "034 prefix with IPv6 alone", Given: []string{"public IPv6 prefix ours6"}, Turns: []Turn{
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
			{
				Service: from(families(web(), corev1.IPv6Protocol), "ours6"), Addresses: []string{"public6"},
				Has: []string{own6 + " out of ours6", forwards6, admits6("Internet")}, Names: ownNames("c-BASE-ours6"),
			},
			{Service: web(), Gone: true},
		}},
	}
}

func tagScenarios() []Scenario {
	rest := func(publicIP string) []string { return []string{publicIP, forwards(80), admits("Internet", 80)} }
	byHand := azure.Tags{"k8s-azure-service": "default/web", "k8s-azure-cluster-name": ClusterName, "made": "by-hand"}
	prod := func(c *loadbalancer.Config) { c.Tags = azure.Tags{"env": "prod"} }
	return []Scenario{
		{Name: "035 IP tags", Turns: []Turn{
			{Service: with(web(), ipTags, "RoutingPreference=Internet"), Addresses: public,
				Has: rest(own + " with the IP tags RoutingPreference=Internet")},
			{Service: web(), Addresses: []string{"kept"}, Has: rest(own + " with the IP tags RoutingPreference=Internet")},
			{Service: with(web(), ipTags, ""), Addresses: public, Has: rest(own)},
		}},
		{Name: "036 IP tags in place", Config: func(c *loadbalancer.Config) { c.IPTagsMayChange = true }, Turns: []Turn{
			{Service: with(web(), ipTags, "FirstPartyUsage=/A"), Addresses: public,
				Has: rest(own + " with the IP tags FirstPartyUsage=/A")},
			{Service: with(web(), ipTags, "FirstPartyUsage=/B"), Addresses: []string{"kept"},
				Has: rest(own + " with the IP tags FirstPartyUsage=/B")},
			{Service: with(web(), ipTags, "RoutingPreference=Internet"), Refused: "ipTags",
				Has: rest(own + " with the IP tags FirstPartyUsage=/B")},
		}},
		{Name: "037 DNS label", Turns: []Turn{
			{Service: with(web(), dnsLabel, "kaz-web"), Addresses: public, Has: rest(own + " with the DNS label kaz-web")},
			{Service: with(web(), dnsLabel, "kaz-www"), Addresses: []string{"kept"}, Has: rest(own + " with the DNS label kaz-www")},
			{Service: with(at(api(), "${web}"), dnsLabel, "kaz-api"), Refused: "default/web"},
			{Service: with(web(), dnsLabel, ""), Addresses: []string{"kept"}, Has: rest(own)},
		}},
		{Name: "038 tags that cannot be read", Turns: []Turn{
			{Service: with(web(), pipTags, "a=b,bad,c=d=e"), Addresses: public, Has: rest(own + " with the tags a=b")},
			{Service: with(web(), pipTags, "a=z"), Addresses: []string{"kept"}, Has: rest(own + " with the tags a=z")},
		}},
		{Name: "039 foreign tags", Given: []string{"tag env=prod"}, Config: prod, Turns: []Turn{
			{Service: with(web(), pipTags, "a=b"), Addresses: public, Has: rest(own + " with the tags a=b env=prod")},
			{Service: web(), Tagged: byHand, Addresses: []string{"kept"}, Has: rest(own + " with the tags env=prod made=by-hand")},
		}},
		{Name: "039 system tags", Given: []string{"tag env=prod"}, Config: func(c *loadbalancer.Config) {
			prod(c)
			c.SystemTags = []string{"system-"}
		}, Turns: []Turn{
			{Service: with(web(), pipTags, "a=b"), Addresses: public, Has: rest(own + " with the tags a=b env=prod")},
			{Service: web(), Tagged: byHand, Addresses: []string{"kept"}, Has: rest(own + " with the tags env=prod")},
		}},
		{Name: "040 older tags", Turns: []Turn{
			{Service: web(), Addresses: public, Has: rest(own)},
			{
				Service: web(), Tagged: azure.Tags{"service": "default/web", "kubernetes-cluster-name": ClusterName},
				Addresses: []string{"kept"},
				Has:       rest(own + " with the tags kubernetes-cluster-name=kubernetes service=default/web"),
			},
		}},
	}
}

func sharingScenarios() []Scenario {
	return []Scenario{
		{Name: "031 shared public IP", Turns: []Turn{
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
			{Service: at(web(), "${api}"), Addresses: public,
				Has: []string{"public IP of default/api,default/web", forwards(80), admits("Internet", 80), admits("Internet", 81)}},
			{Service: at(NewService("third", tcp(80, 30082)), "${api}"), Refused: "port 80"},
			{Service: api(), Gone: true, Guard: []string{"501 allow Tcp 80 from Internet to web"}},
			{Service: at(web(), "${web}"), Addresses: []string{"kept"},
				Has: []string{"public IP of default/web", forwards(80), admits("Internet", 80)}},
		}},
	}
}

func familyScenarios() []Scenario {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	both := []string{"public", "public6"}
	has4 := []string{own, forwards(80), admits("Internet", 80)}
	has6 := []string{own6, forwards6, admits6("Internet")}
	hasBoth := append(slices.Clip(has4), has6...)
	return []Scenario{
		{Name: "068 dual stack", Turns: []Turn{
			{Service: families(web(), v4, v6), Addresses: both, Has: hasBoth, Names: append(ownNames("c-BASE"),
				"frontend BASE-IPv6", "rule BASE-TCP-80-IPv6", "probe BASE-TCP-80-IPv6", publicIPName("c-BASE-IPv6"))},
			{Service: families(web(), v4), Addresses: []string{"kept"}, Has: has4, Names: ownNames("c-BASE")},
			{Service: families(web(), v4, v6), Addresses: []string{"kept", "public6"}, Has: hasBoth},
		}},
		{Name: "037 DNS label of two families", Turns: []Turn{
			{Service: with(families(web(), v4, v6), dnsLabel, "kaz-web"), Addresses: both, Has: slices.Concat(
				[]string{own + " with the DNS label kaz-web", own6 + " with the DNS label kaz-web"}, has4[1:], has6[1:],
			)},
			{Service: with(families(web(), v4, v6), dnsLabel, ""), Addresses: []string{"kept", "kept"}, Has: hasBoth},
		}},
		{Name: "070 IPv6", Turns: []Turn{
			{Service: families(web(), v6), Refused: "IPv6 frontends alone"},
			{Service: api(), Addresses: public, Has: []string{own, forwards(81), admits("Internet", 81)}},
			{Service: families(web(), v6), Addresses: []string{"public6"}, Has: has6, Names: ownNames("c-BASE")},
			{Service: families(web(), v4, v6), Addresses: []string{"public6", "public"}, Has: hasBoth},
		}},
		{Name: "071 internal IPv6", Given: []string{"dual stack"}, Turns: []Turn{
			{Service: with(families(web(), v6), internal, "true"), Refused: "IPv6 frontends alone"},
			{Service: with(api(), internal, "true"), Addresses: private, Has: []string{inside, forwards(81)}},
			{Service: with(families(web(), v6), internal, "true"), Addresses: []string{"private6"}, Has: []string{
				"internal load balancer: an IPv6 address in the subnet nodes",
				"rule Tcp 80 to node port of 80 over IPv6, probe Tcp node port of 80 every 5 s",
			}},
			{Service: web(), Gone: true},
		}},
	}
}

func linkScenarios() []Scenario {
	linked := func(pairs ...string) *corev1.Service {
		return with(web(), append([]string{internal, "true", "azure-pls-create", "true"}, pairs...)...)
	}
	return []Scenario{
		// Azure supports no private link services with pools of addresses.
		{Name: "089 private link", Config: func(c *loadbalancer.Config) { c.PoolByIP = false }, Turns: []Turn{
			{Service: linked(), Addresses: private, Has: []string{inside, forwards(80), "private link service pls-BASE with 1 addresses"}},
			{
				Service: linked("azure-pls-ip-configuration-ip-address-count", "3", "azure-pls-ip-configuration-ip-address",
					"10.240.7.7", "azure-pls-visibility", "*"),
				Addresses: private, Has: []string{inside, forwards(80), "private link service pls-BASE with 3 addresses, 10.240.7.7 first"},
			},
			{Service: linked("azure-pls-name", "another"), Refused: "another"},
			{Service: with(web(), internal, "true"), Addresses: private, Has: []string{inside, forwards(80)}},
			{Service: with(api(), "azure-pls-create", "true"), Refused: "an internal address, or one without floating IP"},
			{Service: with(api(), noFloat, "true", "azure-pls-create", "true", "azure-pls-proxy-protocol", "true"), Addresses: public,
				Has: []string{
					own, "rule Tcp 81 to node port of 81, probe Tcp node port of 81 every 5 s",
					"security rule: allow Tcp node port of 81 from Internet",
					"private link service pls-BASE with 1 addresses",
				}},
		}, Leaves: "privateLinkServiceNetworkPolicies"},
	}
}
