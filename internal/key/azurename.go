package key

import "strings"

// AzureName is an annotation value that names something in Azure, with its allowed values.
type AzureName struct{ Key, Value, Allowed string }

// AzureNames returns the names, ids and addresses in a Service's annotations that Azure's error
// messages may mention. Lists are split into their items.
func AzureNames(annotations map[string]string) []AzureName {
	var all []AzureName
	for _, n := range named {
		for item := range strings.SplitSeq(annotations[n.entry.Name], n.between) {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, AzureName{n.entry.Name, item, n.entry.Allowed})
			}
		}
	}
	return all
}

// named lists these keys with the separator of their lists. A line break stands for "not a list".
var named = []struct {
	entry   Entry
	between string
}{
	{InternalSubnet.entry(), "\n"}, {PublicIPGroup.entry(), "\n"}, {IPv4.entry(), "\n"}, {IPv6.entry(), "\n"},
	{PublicIPName.entry(), "\n"}, {PublicIPNameIPv6.entry(), "\n"}, {PublicIPPrefix.entry(), "\n"}, {PublicIPPrefixIPv6.entry(), "\n"},
	{DNSLabel.entry(), "\n"}, {AllowedServiceTags.entry(), ","},
	{LinkName.entry(), "\n"}, {LinkGroup.entry(), "\n"}, {LinkSubnet.entry(), "\n"}, {LinkAddresses.entry(), " "}, {LinkFQDNs.entry(), " "},
	{LinkVisibility.entry(), " "}, {LinkAutoApproval.entry(), " "},
}
