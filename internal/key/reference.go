package key

import (
	"fmt"
	"strings"
)

// introduction is the text before the tables. Its values are the naming rules of resource groups and
// of other resources, the common prefix and the retired annotations.
var introduction = strings.ReplaceAll(`<!-- Generated from internal/key by "go test ./internal/key -update". -->
# Annotations of Services

This page lists the annotations of Services of type LoadBalancer that the cloud-controller-manager reads.

A value that is not allowed causes an event on the Service. The Service is then left unchanged, except
for the warnings below. Other Services are not affected. Blanks around a value do not matter, but around
"true". Nor does the case of words like "true", but that of 'azure-load-balancer-internal'.
[Doubtful values](../../reference/annotation-values.md) lists how such values are read. Where a name is wanted, an id is not allowed.

* The name of a resource group has %s.
* The name of a subnet, a public IP or a private link service has %s.

Each name in the tables starts with '%s', which is left out. PORT in a name stands for a port of the
Service in decimal. [examples.md](examples.md) shows most annotations in use.

## Warnings

Some values are not allowed, but earlier implementations accepted them. They cause an event on the Service,
which is served nevertheless:

* In place of true or false, another word counts as false. In place of a probe's protocol, it counts as tcp.
* A 'spec.loadBalancerIP' of an IP family that the Service does not have is ignored. So is one that is no IP
  address, unless the Service has IPv6.
* An invalid address range is left out, also in spec.loadBalancerSourceRanges. Only the other ranges and the
  service tags may then connect, and not even the virtual network.
* An invalid pair in 'azure-pip-tags' or 'azure-pip-ip-tags' is left out. So is a pair with the name of a
  tag that records the Services of a public IP. If that would cost an existing public IP its address, the
  Service is refused.
* A path without a leading /, an invalid subscription id or domain name, and an unknown routing preference
  are passed to Azure unchanged.
* An additional IP that is the address of another Service is accepted. There is no warning if a rule for
  all ports, or a rule that kaz does not manage, forwards its packets.

Annotations without effect cause an event, too:

* a name that begins with 'azure-' or 'port_' and is not in these tables
* a name of these tables in another case, without its domain or with another domain
* a port that the Service does not have
* an invalid address of an IP family that the Service does not have
* public IP annotations at an internal Service, and high-availability ports at an external one
* tags that a public IP of another owner does not have
* IP tags that a public IP does not have and cannot get
* a load balancer that is not configured, next to a configured one or if there is only one
* a subnet, or a property of a private link service, without the switch that it belongs to

There is no event for annotations that only earlier versions knew: %s.
`, "'", "`")

// Reference returns the content of docs/resources/service/annotations.md.
func Reference() string {
	var b strings.Builder
	fmt.Fprintf(&b, introduction, groupForm.rule, resourceForm.rule, service, strings.Join(retiredNames(), " and "))
	for _, g := range ServiceGroups() {
		fmt.Fprintf(&b, "\n## %s\n\n| annotation | what it does | allowed | default |\n|---|---|---|---|\n", g.Title)
		for _, e := range g.Entries {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimPrefix(e.Name, service), e.Doc, e.Allowed, inDefault(e.Default))
		}
	}
	return b.String()
}

// retiredNames returns the retired annotations for the reference.
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
