package key

import (
	"fmt"
	"strings"
)

// Reference is docs/resources/service/annotations.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from internal/key by "go test ./internal/key -update". -->
# Annotations of Services

What the annotations of a Service of type LoadBalancer mean to the cloud-controller-manager. A value that is
not allowed is an event on the Service, which is then left as it is but for what is said below; other Services are not affected.
Blanks around a value do not matter, nor does the case of words like "true". Names are names alone, no ids.
That of a resource group has ` + groupForm.rule + `.
That of a subnet, a public IP or a private link service has ` + resourceForm.rule + `.

Some values that are not allowed are a warning, an event on the Service beside which it is served, as it always has been:

* where true or false is allowed, another word counts as false, and where a probe's protocol is, as tcp
* an address range that is none is left out, there or in spec.loadBalancerSourceRanges, and then nobody but the other ranges and
  the service tags is let in, not even the virtual network
* a pair in ` + "`azure-pip-tags` or `azure-pip-ip-tags`" + ` that is none, or whose name says whom a public IP serves, is left out; but where that would cost a public IP that is
  there its address, the Service is refused
* a path without its /, a subscription or a domain name that is none, and a routing preference that Azure does not know are taken as they are
* so is a further address that is another Service's, unless a rule there for all ports or one of somebody's own brings the packets

So is what nobody heeds: a name that begins with
` + "`azure-`" + ` or ` + "`port_`" + ` and is not in these tables, one of theirs in another case, without its domain or in another one, a port that the Service does not have, a
wrong address of a family that it does not have, what is about public IPs at an internal Service, high-availability ports at an external one,
tags that a public IP of somebody else has not, IP tags that one has not and that it cannot get, a load balancer that is not configured
beside one that is or where there is one alone, and a subnet or a private link's properties without the switch that they belong to. Not told is of what other versions knew: ` + strings.Join(retiredNames(), " and ") + `.

Every name begins with ` + "`" + service + "`" + `, which the tables leave out. PORT in a name is a port of the
Service in decimal. [examples.md](examples.md) shows most of them at work.
`)
	for _, g := range ServiceGroups() {
		fmt.Fprintf(&b, "\n## %s\n\n| annotation | what it does | allowed | default |\n|---|---|---|---|\n", g.Title)
		for _, e := range g.Entries {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimPrefix(e.Name, service), e.Doc, e.Allowed, inDefault(e.Default))
		}
	}
	return b.String()
}

// retiredNames are the retired keys as the reference writes them.
func retiredNames() (names []string) {
	for _, name := range retired {
		names = append(names, "`"+strings.TrimPrefix(name, service)+"`")
	}
	return names
}

func inDefault(text string) string {
	switch text {
	case "", "[]":
		return "none"
	}
	return "`" + text + "`"
}
