package loadbalancer

import (
	"crypto/md5" //nolint:gosec // names of rules in running clusters are made with it; nothing is kept secret by it
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"

	v1 "k8s.io/api/core/v1"
)

// longestBase and longestName leave room for suffixes within Azure's 80 characters.
const (
	longestBase = 32
	longestName = 75
)

// suffixIPv6 ends the names of what has IPv6 beside a sibling that has IPv4.
const suffixIPv6 = "-IPv6"

// baseName starts the name of everything that belongs to a Service: "a" and its
// UID without dashes. The cut loses the UID's last digit; it has always been so. A leftover
// of which nothing but a key is known has nothing that is named so, and shares no name with
// what somebody else calls "a".
func baseName(s *v1.Service) string {
	if s.UID == "" {
		return Nobody
	}
	return shorten("a"+strings.ReplaceAll(string(s.UID), "-", ""), longestBase)
}

func shorten(s string, most int) string { return s[:min(len(s), most)] }

// names makes the names of what belongs to one address of a Service.
type names struct {
	base   string
	subnet string // that an internal Service names, "" for none
	suffix string // of IPv6 beside IPv4
}

// frontend names the address's own frontend. One that had to be cut ends in a
// letter or an underscore.
func (n names) frontend() string {
	if n.subnet == "" {
		return n.base + n.suffix
	}
	name := n.base + "-" + n.subnet
	if len(name) > longestName {
		name = name[:longestName]
		if last := rune(name[longestName-1]); !unicode.IsLetter(last) && last != '_' {
			name = name[:longestName-1] + "_"
		}
	}
	return name + n.suffix
}

// rule names a port's rule and its own probe. A long subnet is cut, never the port.
func (n names) rule(protocol v1.Protocol, port int32) string {
	end := "-" + string(protocol) + "-" + strconv.Itoa(int(port))
	if n.subnet == "" {
		return shorten(n.base+end, longestName) + n.suffix
	}
	room := max(longestName-len(n.base)-len(end)-1, 0)
	return n.base + "-" + shorten(n.subnet, room) + end + n.suffix
}

// publicIPName names the public IP that is made for a Service. prefix is the name of
// the prefix it is taken from, "" for none.
func publicIPName(cluster, base, prefix, suffix string) string {
	name := cluster + "-" + base
	if prefix != "" {
		name += "-" + prefix
	}
	return shorten(name, longestName) + suffix
}

// ownerBase is the base name at the start of a name, in lower case. Base names
// have no dash in them.
func ownerBase(name string) string {
	base, _, _ := strings.Cut(name, "-")
	return strings.ToLower(base)
}

// looksOwned reports whether a name starts as those of Services do.
func looksOwned(name string) bool {
	base := ownerBase(name)
	return len(base) == longestBase && base[0] == 'a' && strings.Trim(base[1:], "0123456789abcdef") == ""
}

// The names of security group rules say which of them are managed.
const managedRulePrefix = "k8s-azure-lb"

func denyRuleName(family v1.IPFamily) string {
	return managedRulePrefix + "_deny-all_" + string(family)
}

// allowRuleName names the rule that lets sources in at ports. Services with the
// same of both share the rule.
func allowRuleName(family v1.IPFamily, protocol string, sources, ports []string) string {
	text := protocol + "_" + strings.Join(slices.Sorted(slices.Values(sources)), ",") +
		"_" + strings.Join(slices.Sorted(slices.Values(ports)), ",")
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return managedRulePrefix + "_allow_" + string(family) + "_" + hex.EncodeToString(sum[:])
}
