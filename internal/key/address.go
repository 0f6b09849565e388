package key

// Of Services: which load balancer and which network they are at.
var (
	Internal = Annotation[bool]{
		Name: service + "azure-load-balancer-internal", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "An address in the virtual network instead of a public one.",
		Allowed: allowedSwitch,
	}
	InternalSubnet = Annotation[string]{
		Name: service + "azure-load-balancer-internal-subnet", parse: resourceForm.parse,
		Doc:     "Subnet that an internal Service has its address in, instead of the configured one. It names the frontend, so a change changes the address.",
		Allowed: "the name of a subnet of the cluster's virtual network",
	}
	Balancers = Annotation[[]string]{
		Name: service + "azure-load-balancer-configurations", parse: parseNames,
		Doc:     "Which of several configured load balancers may serve the Service.",
		Allowed: "names of configured load balancers between commas",
	}
	PublicIPGroup = Annotation[string]{
		Name: service + "azure-load-balancer-resource-group", parse: groupForm.parse,
		Doc:     "Resource group of the public IP, instead of the cluster's. The load balancer stays where it is.",
		Allowed: "the name of a resource group",
	}
)

// Of Services: which addresses they have. Each IP family has its own key.
var (
	IPv4 = Annotation[string]{
		Name: service + "azure-load-balancer-ipv4", parse: parseWord,
		Doc:     "The IPv4 address to use; it comes before spec.loadBalancerIP.",
		Allowed: "an IPv4 address: of a public IP that is there, or of the subnet",
	}
	IPv6 = Annotation[string]{
		Name: service + "azure-load-balancer-ipv6", parse: parseWord,
		Doc:     "The IPv6 address to use; it comes before spec.loadBalancerIP.",
		Allowed: "an IPv6 address: of a public IP that is there, or of the subnet",
	}
	PublicIPName = Annotation[string]{
		Name: service + "azure-pip-name", parse: resourceForm.parse,
		Doc:     "An existing public IP to use.",
		Allowed: "the name of a public IP in the public IPs' resource group",
	}
	PublicIPNameIPv6 = Annotation[string]{
		Name: service + "azure-pip-name-ipv6", parse: resourceForm.parse,
		Doc:     "An existing IPv6 public IP to use.",
		Allowed: "the name of a public IP in the public IPs' resource group",
	}
	PublicIPPrefix = Annotation[string]{
		Name: service + "azure-pip-prefix-id", parse: parsePrefix,
		Doc:     "The prefix that the public IP is taken from when it is made. It is part of the public IP's name.",
		Allowed: "the id of a public IP prefix: /subscriptions/.../publicIPPrefixes/NAME",
	}
	PublicIPPrefixIPv6 = Annotation[string]{
		Name: service + "azure-pip-prefix-id-ipv6", parse: parsePrefix,
		Doc:     "The prefix that the IPv6 public IP is taken from when it is made.",
		Allowed: "the id of a public IP prefix: /subscriptions/.../publicIPPrefixes/NAME",
	}
	AdditionalIPs = Annotation[[]string]{
		Name: service + "azure-additional-public-ips", parse: parseList,
		Doc:     "Further addresses that the Service answers at. They are let in and shown in the status; somebody else brings the packets.",
		Allowed: "IP addresses between commas",
	}
	IPTags = Annotation[Pairs]{
		Name: service + "azure-pip-ip-tags", parse: parseLastPairs, doubt: doubtKinds,
		Doc:     "IP tags of the public IP. Where the configuration does not let them change, other ones make a new public IP with another address; that is refused for a slip in them, and for a public IP that the Service names. The new one has the old one's name, so the old one goes first: if Azure then refuses a type or value that only it knows, the address is lost. Try such at a new Service first.",
		Allowed: "Type=Value pairs between commas",
	}
	DNSLabel = Annotation[string]{
		Name: service + "azure-dns-label-name", parse: parseLabel,
		Doc:     "DNS label of the public IP. Empty takes the label away; without the annotation it stays as it is.",
		Allowed: "3 to 63 lower-case letters, digits and dashes, a letter first and no dash last, that nobody else has in the region and no other Service has set at this public IP",
	}
)

// Of Services: how packets arrive at the nodes.
var (
	DisableFloatingIP = Annotation[bool]{
		Name: service + "azure-disable-load-balancer-floating-ip", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Packets arrive at the nodes' own addresses and node ports, instead of the Service's address and port; with high-availability ports at the Service's own ports of the nodes. What is let in and denied is that at the nodes' addresses: where everything else is denied, it is so on all their ports.",
		Allowed: allowedSwitch,
	}
	HAPorts = Annotation[bool]{
		Name: service + "azure-load-balancer-enable-high-availability-ports", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "One rule for all ports and protocols. Internal Services only; others ignore it.",
		Allowed: allowedSwitch,
	}
)

func addressKeys() []annotation {
	return []annotation{
		IPv4, IPv6, PublicIPName, PublicIPNameIPv6, PublicIPPrefix, PublicIPPrefixIPv6, AdditionalIPs, PublicIPTags, IPTags, DNSLabel,
	}
}
