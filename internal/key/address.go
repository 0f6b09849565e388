package key

// Annotations of Services: the load balancer and the network.
var (
	Internal = Annotation[bool]{
		Name: service + "azure-load-balancer-internal", parse: parseExact, warnText: warnExact,
		Doc:     "Gives the Service an address in the virtual network instead of a public one.",
		Allowed: "true or false, true in lower case",
	}
	InternalSubnet = Annotation[string]{
		Name: service + "azure-load-balancer-internal-subnet", parse: resourceForm.parse,
		Doc: "Subnet of an internal Service's address, instead of the configured subnet. It is part of the frontend's name, so a " +
			"change changes the address.",
		Allowed: "the name of a subnet of the cluster's virtual network",
	}
	Balancers = Annotation[[]string]{
		Name: service + "azure-load-balancer-configurations", parse: parseNames,
		Doc:     "Load balancers that may serve the Service, if several are configured.",
		Allowed: "names of configured load balancers, separated by commas",
	}
	PublicIPGroup = Annotation[string]{
		Name: service + "azure-load-balancer-resource-group", parse: groupForm.parse,
		Doc:     "Resource group of the public IP, instead of the cluster's. The load balancer's resource group does not change.",
		Allowed: "the name of a resource group",
	}
)

// Annotations of Services: addresses. Each IP family has its own annotation.
var (
	IPv4 = Annotation[string]{
		Name: service + "azure-load-balancer-ipv4", parse: parseWord,
		Doc:     "The IPv4 address to use. It takes precedence over spec.loadBalancerIP.",
		Allowed: "an IPv4 address of an existing public IP, or in the subnet",
	}
	IPv6 = Annotation[string]{
		Name: service + "azure-load-balancer-ipv6", parse: parseWord,
		Doc:     "The IPv6 address to use. It takes precedence over spec.loadBalancerIP.",
		Allowed: "an IPv6 address of an existing public IP, or in the subnet",
	}
	PublicIPName = Annotation[string]{
		Name: service + "azure-pip-name", parse: resourceForm.parse,
		Doc:     "An existing public IP to use.",
		Allowed: "the name of a public IP in the resource group of the public IPs",
	}
	PublicIPNameIPv6 = Annotation[string]{
		Name: service + "azure-pip-name-ipv6", parse: resourceForm.parse,
		Doc:     "An existing IPv6 public IP to use.",
		Allowed: "the name of a public IP in the resource group of the public IPs",
	}
	PublicIPPrefix = Annotation[string]{
		Name: service + "azure-pip-prefix-id", parse: parsePrefix,
		Doc:     "The prefix from which a new public IP takes its address. It is part of the public IP's name.",
		Allowed: "the id of a public IP prefix: /subscriptions/.../publicIPPrefixes/NAME",
	}
	PublicIPPrefixIPv6 = Annotation[string]{
		Name: service + "azure-pip-prefix-id-ipv6", parse: parsePrefix,
		Doc:     "The prefix from which a new IPv6 public IP takes its address.",
		Allowed: "the id of a public IP prefix: /subscriptions/.../publicIPPrefixes/NAME",
	}
	AdditionalIPs = Annotation[[]string]{
		Name: service + "azure-additional-public-ips", parse: parseList,
		Doc: "Additional addresses of the Service. The security group allows them and the status shows them. Forwarding their " +
			"packets to the nodes is up to you.",
		Allowed: "IP addresses, separated by commas",
	}
	IPTags = Annotation[Pairs]{
		Name: service + "azure-pip-ip-tags", parse: parseLastPairs, warn: warnIPTags,
		Doc: "IP tags of the public IP. Unless the configuration lets them change, a change replaces the public IP, which gets " +
			"a new address. The change is refused if the tags are invalid or the Service names its public IP. The new public IP " +
			"has the same name, so the old one is deleted first: if Azure then rejects a type or value, the old address is " +
			"lost. Try new tags at a new Service first.",
		Allowed: "Type=Value pairs, separated by commas",
	}
	DNSLabel = Annotation[string]{
		Name: service + "azure-dns-label-name", parse: parseLabel,
		Doc: "DNS label of the public IP. An empty value removes the label; without the annotation the label does not change.",
		Allowed: "3 to 63 lower-case letters, digits and dashes, a letter first and no dash last, that no other public IP in the " +
			"region has and no other Service has set at this public IP",
	}
)

// Annotations of Services: the destination of packets at the nodes.
var (
	DisableFloatingIP = Annotation[bool]{
		Name: service + "azure-disable-load-balancer-floating-ip", parse: parseSwitch, warnText: warnSwitch,
		Doc: "Packets arrive at the addresses and node ports of the nodes, instead of the address and port of the Service; with " +
			"high-availability ports, at the Service's ports of the nodes. Security rules then allow and deny the nodes' " +
			"addresses: a rule that denies everything else applies to all ports of the nodes.",
		Allowed: allowedSwitch,
	}
	HAPorts = Annotation[bool]{
		Name: service + "azure-load-balancer-enable-high-availability-ports", parse: parseSwitch, warnText: warnSwitch,
		Doc:     "One rule for all ports and protocols. External Services ignore it.",
		Allowed: allowedSwitch,
	}
)

func addressKeys() []annotation {
	return []annotation{
		IPv4, IPv6, PublicIPName, PublicIPNameIPv6, PublicIPPrefix, PublicIPPrefixIPv6, AdditionalIPs, PublicIPTags, IPTags, DNSLabel,
	}
}
