package loadbalancer

import (
	"crypto/md5" //nolint:gosec // names of rules in running clusters are made with it; nothing is kept secret by it
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// longestBase and longestName leave room for suffixes within Azure's 80 characters.
const (
	longestBase = 32
	longestName = 75
)

// baseName starts the name of everything that belongs to a Service: "a" and its
// UID without dashes. The cut loses the UID's last digit; it has always been so.
func baseName(s *v1.Service) string {
	return shorten("a"+strings.ReplaceAll(string(s.UID), "-", ""), longestBase)
}

func shorten(s string, most int) string { return s[:min(len(s), most)] }

// ruleName names a port's rule and its own probe.
func ruleName(base string, protocol v1.Protocol, port int32) string {
	return shorten(base+"-"+string(protocol)+"-"+strconv.Itoa(int(port)), longestName)
}

func publicIPName(cluster, base string) string { return shorten(cluster+"-"+base, longestName) }

// ownerBase is the base name at the start of a name, in lower case. Base names
// have no dash in them.
func ownerBase(name string) string {
	base, _, _ := strings.Cut(name, "-")
	return strings.ToLower(base)
}

// The names of security group rules say which of them are managed.
const (
	managedRulePrefix = "k8s-azure-lb"
	denyRuleName      = managedRulePrefix + "_deny-all_IPv4"
)

// allowRuleName names the rule that lets sources in at ports. Services with the
// same three share the rule.
func allowRuleName(protocol string, sources, ports []string) string {
	text := protocol + "_" + strings.Join(slices.Sorted(slices.Values(sources)), ",") +
		"_" + strings.Join(slices.Sorted(slices.Values(ports)), ",")
	sum := md5.Sum([]byte(text)) //nolint:gosec // see the import
	return managedRulePrefix + "_allow_IPv4_" + hex.EncodeToString(sum[:])
}
