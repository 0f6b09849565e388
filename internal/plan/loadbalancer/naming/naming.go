// Package naming makes and reads the names of what Azure has for a Service. It also handles the tags that say which
// Services and which cluster a resource serves. The names are those of running clusters: another name would mean another
// address. Layer L1.
package naming

import (
	"crypto/md5" // names of rules in existing clusters contain it; it protects nothing
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/cluster"
)

// longestBase and LongestName leave room for suffixes within Azure's 80 characters.
const (
	longestBase = 32
	LongestName = 75
)

// UnknownNamespace is the namespace of a Service without a known name. No namespace can be
// called that, and nothing in Azure.
const UnknownNamespace = "(deleted)"

// Base starts the name of everything that belongs to a Service: "a" and its UID without dashes, cut to 32 characters.
// A Service without a UID is a leftover that is known by its key alone: nothing is named after it.
func Base(s *v1.Service) string {
	if s.UID == "" {
		return UnknownNamespace
	}
	return Shorten("a"+strings.ReplaceAll(string(s.UID), "-", ""), longestBase)
}

// Owner is the base name at the start of a name, in lower case. Base names have no dash in them.
func Owner(name string) string {
	base, _, _ := strings.Cut(name, "-")
	return strings.ToLower(base)
}

// OwnerOf is the base name of a Service in lower case. It shows the Service as the owner of whatever has that name.
func OwnerOf(s *v1.Service) string { return strings.ToLower(Base(s)) }

// IsOwned reports whether a name starts as those of Services do.
func IsOwned(name string) bool {
	base := Owner(name)
	return len(base) == longestBase && base[0] == 'a' && strings.Trim(base[1:], "0123456789abcdef") == ""
}

// Shorten cuts a name.
func Shorten(s string, most int) string { return s[:min(len(s), most)] }

// Names makes the names of what belongs to one address of a Service.
type Names struct {
	Base   string
	Subnet string // that an internal Service names, "" for none
	Suffix string // of IPv6 where there is IPv4, too
}

// Frontend names the address's own frontend. A name that had to be cut ends in a letter or an underscore.
func (n Names) Frontend() string {
	if n.Subnet == "" {
		return n.Base + n.Suffix
	}
	name := n.Base + "-" + n.Subnet
	if len(name) > LongestName {
		name = name[:LongestName]
		if last := rune(name[LongestName-1]); !unicode.IsLetter(last) && last != '_' {
			name = name[:LongestName-1] + "_"
		}
	}
	return name + n.Suffix
}

// Rule names a port's rule and its own probe. A long subnet is cut, never the port.
func (n Names) Rule(protocol v1.Protocol, port int32) string {
	start, end := n.Base, "-"+string(protocol)+"-"+strconv.Itoa(int(port))
	if n.Subnet != "" {
		start += "-" + Shorten(n.Subnet, max(LongestName-len(start)-len(end)-1, 0))
	}
	return start + end + n.Suffix
}

// PublicIP names the public IP that is made for a Service. prefix is the name of
// the prefix it is taken from, "" for none.
func PublicIP(clusterName, base, prefix, suffix string) string {
	name := clusterName + "-" + base
	if prefix != "" {
		name += "-" + prefix
	}
	return Shorten(name, LongestName) + suffix
}

// PublicIPOwner is the owner in the name of a public IP that was made for a Service, "" for another name.
func PublicIPOwner(clusterName, name string) string {
	rest, ok := strings.CutPrefix(strings.ToLower(name), strings.ToLower(clusterName)+"-")
	if !ok || !IsOwned(rest) {
		return ""
	}
	return Owner(rest)
}

// OwnPool names the pool that a Service of policy Local has to itself where there are several load balancers.
func OwnPool(s *v1.Service, family v1.IPFamily) string {
	return strings.ToLower(cluster.NameOf(s.Namespace+"-"+s.Name, family))
}

// managedRule starts the names of managed security rules.
const managedRule = "k8s-azure-lb"

// IsManagedRule reports whether a security rule's name is one of a managed rule.
func IsManagedRule(name string) bool { return cluster.HasPrefix(name, managedRule) }

// DenyRule names the rule that denies everything else at its destinations.
func DenyRule(family v1.IPFamily) string { return managedRule + "_deny-all_" + string(family) }

// AllowRule names the rule that allows sources at ports. Services with the same sources and ports share the rule.
func AllowRule(family v1.IPFamily, protocol string, sources, ports []string) string {
	text := protocol + "_" + strings.Join(slices.Sorted(slices.Values(sources)), ",") +
		"_" + strings.Join(slices.Sorted(slices.Values(ports)), ",")
	sum := md5.Sum([]byte(text))
	return managedRule + "_allow_" + string(family) + "_" + hex.EncodeToString(sum[:])
}

// The tags by which a public IP, or a private link service, names what it serves; and their
// older names, which are read only.
const (
	ServicesTag    = key.TagServices
	ClusterTag     = key.TagCluster
	LabelTag       = "k8s-azure-dns-label-service"
	LinkOwnerTag   = "k8s-azure-owner-service"
	OldServicesTag = "service"
	OldClusterTag  = "kubernetes-cluster-name"
	oldLabelTag    = "kubernetes-dns-label-service"
	NoteTags       = "kaz-" // starts the names of tags in which kaz notes something, of any cluster
)

// WantedTags is the configured tags with own ones over them. Where system tags are
// configured, tags that are neither wanted nor system tags are dropped.
func WantedTags(c cluster.Config, own, have azure.Tags) azure.Tags {
	if len(c.Tags)+len(own) == 0 && len(c.SystemTags) == 0 {
		return nil
	}
	tags := azure.Tags{}
	AddTags(tags, own)
	AddTags(tags, c.Tags)
	if len(c.SystemTags) > 0 {
		for name := range have {
			isOf := func(prefix string) bool { return cluster.HasPrefix(name, prefix) }
			if _, wanted := tags.Get(name); !wanted && !slices.ContainsFunc(c.SystemTags, isOf) {
				tags[name] = azure.DropTag
			}
		}
	}
	return tags
}

// WantedTagsOfShared is WantedTags for a load balancer or the security group. Without configured tags, all their tags
// stay; so do notes, which may belong to another cluster that shares the security group.
func WantedTagsOfShared(c cluster.Config, notes, have azure.Tags) azure.Tags {
	switch {
	case len(c.Tags) == 0:
		c.SystemTags = nil
	case len(c.SystemTags) > 0:
		c.SystemTags = slices.Concat(c.SystemTags, []string{NoteTags})
	}
	return WantedTags(c, notes, have)
}

// AddTags adds tags of names that are not there yet.
func AddTags(to, tags azure.Tags) {
	for name, value := range tags {
		if _, there := to.Get(name); !there {
			to[name] = value
		}
	}
}

// ServicesIn is what a public IP's tag names, in its order. Other software uses tags of these names too, so a tag that
// names no Service does not count.
func ServicesIn(tags azure.Tags) []string {
	text, _ := current(tags, ServicesTag, OldServicesTag)
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	isKey := func(text string) bool { // NAMESPACE/NAME
		namespace, name, _ := strings.Cut(text, "/")
		return len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Label(name)) == 0
	}
	if !slices.ContainsFunc(names, isKey) {
		return nil
	}
	return names
}

// current is the value of a tag, or of the one with its older name.
func current(tags azure.Tags, name, older string) (string, bool) {
	if text, ok := tags.Get(name); ok {
		return text, ok
	}
	return tags.Get(older)
}

// ClusterIn is the name of the cluster to which a tag assigns a resource.
func ClusterIn(tags azure.Tags) (string, bool) { return current(tags, ClusterTag, OldClusterTag) }

// IsOfOther reports whether a tag assigns a resource to another cluster.
func IsOfOther(tags azure.Tags, clusterName string) bool {
	name, ok := ClusterIn(tags)
	return ok && !strings.EqualFold(name, clusterName)
}

// LabelOwner is the Service that has named a public IP in DNS, "" for none.
func LabelOwner(tags azure.Tags) string {
	name, _ := current(tags, LabelTag, oldLabelTag)
	return strings.TrimSpace(name)
}

// DropLabel drops tags that name the owner of a DNS label.
func DropLabel(to, have azure.Tags) {
	for _, name := range []string{LabelTag, oldLabelTag} {
		if _, there := have.Get(name); there {
			to[name] = azure.DropTag
		}
	}
}
