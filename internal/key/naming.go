package key

import "strings"

// Said is an annotation as a Service has it.
type Said struct{ Key, Value, Allowed string }

// Naming are the annotations of a Service whose values are names, ids and addresses of
// things in Azure: what Azure speaks of when it refuses them. Lists are taken apart.
func Naming(annotations map[string]string) []Said {
	var all []Said
	for _, n := range naming {
		for item := range strings.SplitSeq(annotations[n.entry.Name], n.between) {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, Said{n.entry.Name, item, n.entry.Allowed})
			}
		}
	}
	return all
}

// naming says of each such key what is between the items of its list; a line break never
// is in one that has no list.
var naming = []struct {
	entry   Entry
	between string
}{
	{InternalSubnet.entry(), "\n"}, {PublicIPGroup.entry(), "\n"}, {IPv4.entry(), "\n"}, {IPv6.entry(), "\n"},
	{PublicIPName.entry(), "\n"}, {PublicIPNameIPv6.entry(), "\n"}, {PublicIPPrefix.entry(), "\n"}, {PublicIPPrefixIPv6.entry(), "\n"},
	{DNSLabel.entry(), "\n"}, {AllowedServiceTags.entry(), ","},
	{LinkName.entry(), "\n"}, {LinkGroup.entry(), "\n"}, {LinkSubnet.entry(), "\n"}, {LinkAddresses.entry(), " "}, {LinkFQDNs.entry(), " "},
	{LinkVisibility.entry(), " "}, {LinkAutoApproval.entry(), " "},
}
