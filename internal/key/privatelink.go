package key

import "strings"

// Of Services: the private link service in front of them.
var (
	LinkCreate = Annotation[bool]{
		Name: service + "azure-pls-create", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "A private link service in front of the Service's IPv4 address, which must be internal or without floating IP, and at a load balancer whose backend pools list network interfaces. One that is there stays as it is while the value is neither true nor false.",
		Allowed: allowedSwitch,
	}
	LinkName = Annotation[string]{
		Name: service + "azure-pls-name", parse: resourceForm.parse,
		Doc:     "Name of the private link service. It cannot be changed.",
		Allowed: "a name that is free in its resource group",
	}
	LinkGroup = Annotation[string]{
		Name: service + "azure-pls-resource-group", parse: groupForm.parse,
		Doc:     "Resource group of the private link service, instead of the configured one. One that is there stays in its group.",
		Allowed: "the name of a resource group",
	}
	LinkSubnet = Annotation[string]{
		Name: service + "azure-pls-ip-configuration-subnet", parse: resourceForm.parse,
		Doc:     "Subnet that the private link service takes its addresses from. Without it: the Service's own one.",
		Allowed: "the name of a subnet of the cluster's virtual network",
	}
	LinkAddressCount = Annotation[int32]{
		Name: service + "azure-pls-ip-configuration-ip-address-count", Default: 1, parse: parseNumber(1, 8),
		Doc:     "How many addresses the private link service has.",
		Allowed: "a whole number from 1 to 8, at least the number of static addresses",
	}
	LinkAddresses = Annotation[[]string]{
		Name: service + "azure-pls-ip-configuration-ip-address", parse: parseWords,
		Doc:     "Static addresses of the private link service. The first one is the primary.",
		Allowed: "IPv4 addresses between blanks",
	}
	LinkFQDNs = Annotation[[]string]{
		Name: service + "azure-pls-fqdns", parse: parseWords, doubt: doubtEach("no domain name", domainName.MatchString),
		Doc:     "Names of the private link service.",
		Allowed: "domain names between blanks",
	}
	LinkProxyProtocol = Annotation[bool]{
		Name: service + "azure-pls-proxy-protocol", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Tells receivers the client's address by PROXY protocol.",
		Allowed: allowedSwitch,
	}
	LinkVisibility = Annotation[[]string]{
		Name: service + "azure-pls-visibility", parse: parseWords, doubt: doubtEach("no subscription id", isSubscriptionOrAll),
		Doc:     "Subscriptions that see the private link service.",
		Allowed: "subscription ids between blanks, or * for all",
	}
	LinkAutoApproval = Annotation[[]string]{
		Name: service + "azure-pls-auto-approval", parse: parseWords, doubt: doubtEach("no subscription id", isSubscriptionOrAll),
		Doc:     "Subscriptions whose connections need no approval.",
		Allowed: "subscription ids between blanks",
	}
)

// LinkOptions are the keys that say what a private link service is like.
func LinkOptions() []string {
	return []string{
		LinkName.Name, LinkSubnet.Name, LinkAddressCount.Name, LinkAddresses.Name, LinkFQDNs.Name,
		LinkProxyProtocol.Name, LinkVisibility.Name, LinkAutoApproval.Name,
	}
}

// LinkStays reports whether a private link service that a Service has stays. It does when it is
// asked for; and where the value is none of a switch's, as nobody can tell then whether it is,
// and those who are connected to it lose their connections when it goes.
func LinkStays(annotations map[string]string) bool {
	text := strings.TrimSpace(annotations[LinkCreate.Name])
	return text != "" && !strings.EqualFold(text, "false")
}

// FirstLinkOption is the first annotation that says what a private link service is
// like: only the Service that the link belongs to may.
func FirstLinkOption(annotations map[string]string) (name, value string, is bool) {
	for _, name := range LinkOptions() {
		if value, ok := annotations[name]; ok {
			return name, value, true
		}
	}
	return "", "", false
}

func linkKeys() []annotation {
	return []annotation{
		LinkCreate, LinkName, LinkGroup, LinkSubnet, LinkAddressCount, LinkAddresses, LinkFQDNs, LinkProxyProtocol, LinkVisibility, LinkAutoApproval,
	}
}
