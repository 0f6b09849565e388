package key

import "strings"

// Annotations of Services: the private link service.
var (
	LinkCreate = Annotation[bool]{
		Name: service + "azure-pls-create", parse: parseTrimmed, warnText: warnTrimmed,
		Doc: "Creates a private link service for the Service's IPv4 address, which must be internal or without floating IP, " +
			"on a load balancer whose backend pools list network interfaces. An existing one does not change while the value is " +
			"neither true nor false.",
		Allowed: allowedSwitch,
	}
	LinkName = Annotation[string]{
		Name: service + "azure-pls-name", parse: resourceForm.parse,
		Doc:     "Name of the private link service. It cannot be changed.",
		Allowed: "a name that is free in its resource group",
	}
	LinkGroup = Annotation[string]{
		Name: service + "azure-pls-resource-group", parse: groupForm.parse,
		Doc:     "Resource group of the private link service, instead of the configured one. An existing one stays in its group.",
		Allowed: "the name of a resource group",
	}
	LinkSubnet = Annotation[string]{
		Name: service + "azure-pls-ip-configuration-subnet", parse: resourceForm.parse,
		Doc:     "Subnet of the private link service's addresses. Default: the subnet of the Service.",
		Allowed: "the name of a subnet of the cluster's virtual network",
	}
	LinkAddressCount = Annotation[int32]{
		Name: service + "azure-pls-ip-configuration-ip-address-count", Default: 1, parse: parseNumber(1, 8),
		Doc:     "Number of addresses of the private link service.",
		Allowed: "a whole number from 1 to 8, at least the number of static addresses",
	}
	LinkAddresses = Annotation[[]string]{
		Name: service + "azure-pls-ip-configuration-ip-address", parse: parseWords,
		Doc:     "Static addresses of the private link service. The first one is the primary.",
		Allowed: "IPv4 addresses, separated by blanks",
	}
	LinkFQDNs = Annotation[[]string]{
		Name: service + "azure-pls-fqdns", parse: parseWords, warn: warnEach("no domain name", domainName.MatchString),
		Doc:     "Domain names of the private link service.",
		Allowed: "domain names, separated by blanks",
	}
	LinkProxyProtocol = Annotation[bool]{
		Name: service + "azure-pls-proxy-protocol", parse: parseTrimmed, warnText: warnTrimmed,
		Doc:     "Passes the client's address to the nodes in a PROXY protocol header.",
		Allowed: allowedSwitch,
	}
	LinkVisibility = Annotation[[]string]{
		Name: service + "azure-pls-visibility", parse: parseWords, warn: warnEach("no subscription id", isSubscriptionOrAll),
		Doc:     "Subscriptions that can see the private link service.",
		Allowed: "subscription ids, separated by blanks, or * for all",
	}
	LinkAutoApproval = Annotation[[]string]{
		Name: service + "azure-pls-auto-approval", parse: parseWords, warn: warnEach("no subscription id", isSubscriptionOrAll),
		Doc:     "Subscriptions whose connections are approved automatically.",
		Allowed: "subscription ids, separated by blanks",
	}
)

// LinkOptions returns the annotations that configure a private link service.
func LinkOptions() []string {
	return []string{
		LinkName.Name, LinkSubnet.Name, LinkAddressCount.Name, LinkAddresses.Name, LinkFQDNs.Name,
		LinkProxyProtocol.Name, LinkVisibility.Name, LinkAutoApproval.Name,
	}
}

// LinkStays reports whether an existing private link service is kept. A value other than true and
// false keeps it, because deleting it would cut all its connections.
func LinkStays(annotations map[string]string) bool {
	text := strings.TrimSpace(annotations[LinkCreate.Name])
	return text != "" && !strings.EqualFold(text, "false")
}

// FirstLinkOption returns the first annotation that configures a private link service. Only the
// Service that owns the private link service may set these.
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
		LinkCreate, LinkName, LinkGroup, LinkSubnet, LinkAddressCount, LinkAddresses, LinkFQDNs, LinkProxyProtocol, LinkVisibility,
		LinkAutoApproval,
	}
}
