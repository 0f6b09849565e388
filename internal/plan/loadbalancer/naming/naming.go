// Package naming makes and reads the names of what Azure has for a Service. The
// names are those of running clusters: another name is another address. Layer L1.
package naming

import (
	"crypto/md5" // names of rules in existing clusters contain it; it protects nothing
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"

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

// OwnerOf is the base name of a Service in lower case, by which it is the owner of what has it.
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

// Frontend names the address's own frontend. One that had to be cut ends in a letter or an underscore.
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

// AllowRule names the rule that lets sources in at ports. Services with the same of both share the rule.
func AllowRule(family v1.IPFamily, protocol string, sources, ports []string) string {
	text := protocol + "_" + strings.Join(slices.Sorted(slices.Values(sources)), ",") +
		"_" + strings.Join(slices.Sorted(slices.Values(ports)), ",")
	sum := md5.Sum([]byte(text))
	return managedRule + "_allow_" + string(family) + "_" + hex.EncodeToString(sum[:])
}
