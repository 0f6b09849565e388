// Package merge decides what of an application gateway's document a cluster owns, and writes the cluster's children into it. Layer L1.
package merge

import (
	"regexp"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/layout"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/naming"
)

// Ownership says which children of a gateway belong to the cluster.
type Ownership struct {
	Prefix naming.Prefix
	// Exclusive says that no other writer has children at the gateway. Certificates, rewrite rule sets and what only a person
	// can make stay.
	Exclusive bool
	// AGIC also takes the children that the Application Gateway Ingress Controller has made.
	AGIC bool
}

// ownerTag is the tag with the identity of the cluster that has a prefix.
func (o Ownership) ownerTag() string { return "kaz-" + strings.TrimSuffix(string(o.Prefix), "-") }

// agic matches the names that AGIC gives to children that one document replaces as a whole. Others give such names, too, so that they count
// only where AGIC's tag is.
var agic = regexp.MustCompile(`^(?i:(pool-.+-bp-\d+|bp-.+|pb-.+|fp-\d+|(fl|url|rr|sslr-fl)-[0-9a-f]{32}|sslr-fl-.+|pr-.+|` +
	`defaultaddresspool|defaulthttpsetting|defaultprobe-https?))$`)

const agicTag = "managed-by-k8s-ingress"

// Mine returns the names that belong to the cluster in a gateway's document.
func (o Ownership) Mine(tags azure.Tags) live.Mine {
	_, byAGIC := tags.Get(agicTag)
	return func(name string) bool {
		return o.Prefix.Has(name) || o.Exclusive || o.AGIC && byAGIC && agic.MatchString(name)
	}
}

// Other returns the identity of another cluster that uses the prefix at a gateway, "" for none.
func (o Ownership) Other(tags azure.Tags, identity string) string {
	owner, ok := tags.Get(o.ownerTag())
	if !ok || owner == identity {
		return ""
	}
	return owner
}

// Missing says which objects a layout lacks.
type Missing struct {
	// Undecided says that there are objects about which nothing is decided yet. No child is removed but what others replace.
	Undecided bool
	// Refused says that there are objects that Azure refuses. What was made for them stays.
	Refused bool
}

// Node returns the gateway with the children of a layout. AGIC's tag stays until nothing of AGIC is left to be taken over.
func (o Ownership) Node(g live.Gateway, l layout.Result, identity string, missing Missing) plan.Node {
	tags := azure.Tags{o.ownerTag(): identity}
	if o.AGIC && missing == (Missing{}) {
		tags[agicTag] = azure.DropTag
	}
	want := azure.Resource[network.ApplicationGateway]{ID: g.ID, Tags: tags, Properties: l.Gateway}
	stated, held := names(l.Gateway), heldByOthers(g)
	goes := func(string) bool { return true }
	if missing.Undecided {
		replaced := replacedBy(g, l.Gateway)
		goes = func(name string) bool { return replaced[name] }
	}
	ours := func(whole live.Mine) func(string) bool {
		return func(name string) bool {
			name = strings.ToLower(name)
			return stated[name] || goes(name) && !held[name] && whole(name)
		}
	}
	mine, made := ours(g.Mine), ours(o.Prefix.Has)
	node := plan.Wanted(want, "serve the cluster's Ingresses")
	node.PatchTags = true
	return node.Owning(
		azure.Named[azure.Child[network.GatewayPort]](mine), azure.Named[azure.Child[network.GatewayPool]](mine),
		azure.Named[azure.Child[network.GatewaySettings]](mine), azure.Named[azure.Child[network.GatewayProbe]](mine),
		azure.Named[azure.Child[network.GatewayListener]](mine), azure.Named[azure.Child[network.GatewayPathMap]](mine),
		azure.Named[azure.Child[network.GatewayRule]](mine), azure.Named[azure.Child[network.GatewayRedirect]](mine),
		azure.Named[azure.Child[network.GatewayCertificate]](made), azure.Named[azure.Child[network.GatewayRewriteSet]](made),
		azure.Named[azure.Child[network.GatewayDistribution]](made), azure.Named[azure.Child[network.GatewayTrustedRoot]](made),
		azure.Named[azure.Child[network.GatewayStreamListener]](mine), azure.Named[azure.Child[network.GatewayStreamSettings]](mine),
		azure.Named[azure.Child[network.GatewayStreamRule]](mine),
	)
}

// names are the names of a layout's children, in lower case.
func names(g network.ApplicationGateway) map[string]bool {
	all := map[string]bool{}
	add(all, g.Ports)
	add(all, g.Pools)
	add(all, g.Settings)
	add(all, g.Probes)
	add(all, g.Listeners)
	add(all, g.PathMaps)
	add(all, g.Rules)
	add(all, g.Redirects)
	add(all, g.Certificates)
	add(all, g.RewriteSets)
	add(all, g.Distributions)
	add(all, g.TrustedRoots)
	add(all, g.StreamListeners)
	add(all, g.StreamSettings)
	add(all, g.StreamRules)
	return all
}

func add[P any](names map[string]bool, children []azure.Child[P]) {
	for _, c := range children {
		names[strings.ToLower(c.Name)] = true
	}
}

// heldByOthers are the names, in lower case, of the cluster's children that children of others refer to, and of what these need. Azure
// refuses a document without them.
func heldByOthers(g live.Gateway) map[string]bool {
	refers := references(g.Properties)
	var others []azure.ID
	for name, ids := range refers {
		if !g.Mine(name) {
			others = append(others, ids...)
		}
	}
	held := map[string]bool{}
	for len(others) > 0 {
		name := strings.ToLower(others[0].Name())
		inside := others[0].Under(g.ID)
		others = others[1:]
		if inside && g.Mine(name) && !held[name] {
			held[name] = true
			others = append(others, refers[name]...)
		}
	}
	return held
}

// references returns what the children of a gateway refer to, by their names in lower case.
func references(p network.ApplicationGateway) map[string][]azure.ID {
	all := map[string][]azure.ID{}
	refersOf(p.Ports, all)
	refersOf(p.Pools, all)
	refersOf(p.Settings, all)
	refersOf(p.Probes, all)
	refersOf(p.Listeners, all)
	refersOf(p.PathMaps, all)
	refersOf(p.Rules, all)
	refersOf(p.Redirects, all)
	refersOf(p.Distributions, all)
	refersOf(p.StreamListeners, all)
	refersOf(p.StreamSettings, all)
	refersOf(p.StreamRules, all)
	return all
}

// refersOf notes what the children in a list refer to.
func refersOf[P any](children []azure.Child[P], all map[string][]azure.ID) {
	for _, c := range children {
		name := strings.ToLower(c.Name)
		all[name] = append(all[name], azure.References(c.Properties)...)
	}
}
