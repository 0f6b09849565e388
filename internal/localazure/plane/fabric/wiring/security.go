package wiring

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// security compiles the security groups of a network into its router's ruleset.
type security struct {
	*index
	rules *builder
}

// addInterfaces adds a chain for each interface and direction, and for each group one for each subnet in which the group
// is used. A packet that may pass returns from the chain.
func (g security) addInterfaces(n *network) {
	outbound := g.rules.set("outbound", "map", "type ifname : verdict")
	inbound := g.rules.set("inbound", "map", "type ifname : verdict")
	for _, c := range n.interfaces {
		if c.attachment == nil {
			continue
		}
		own := g.group(c.subnet, c.doc.NetworkSecurityGroup)
		subnets := g.group(c.subnet, c.subnet.doc.NetworkSecurityGroup)
		var out, in []string
		for _, group := range []string{own, subnets} {
			if group != "" {
				out = append(out, "jump "+group+"_out")
				in = append([]string{"jump " + group + "_in"}, in...)
			}
		}
		if len(in) == 0 {
			// Public addresses of the Standard SKU are closed until a group opens them.
			in = []string{`iifname "up" drop`}
		} else {
			g.rules.chain("out_"+c.link(), out...)
			outbound[quoted(c.link())] = "jump out_" + c.link()
		}
		g.rules.chain("in_"+c.link(), in...)
		inbound[quoted(c.link())] = "jump in_" + c.link()
	}
}

func quoted(name string) string { return `"` + name + `"` }

// group adds the chains of a security group for a subnet and returns the prefix of their names, "" for no group.
func (g security) group(s *resolvedSubnet, ref *reference) string {
	doc := g.docs.groups[ref.key()]
	if doc == nil {
		return ""
	}
	name := "sg_" + hash(doc.ID.Key()+" "+s.id.Key(), 10)
	if _, made := g.rules.Chains[name+"_in"]; made {
		return name
	}
	rules := slices.Concat(doc.Properties.SecurityRules, doc.Properties.DefaultSecurityRules)
	slices.SortStableFunc(rules, func(x, y child[securityRule]) int {
		return cmp.Compare(x.Properties.Priority, y.Properties.Priority)
	})
	var in, out []string
	for _, rule := range rules {
		lines := g.lines(s, rule.Properties)
		if strings.EqualFold(rule.Properties.Direction, "Inbound") {
			in = append(in, lines...)
		} else {
			out = append(out, lines...)
		}
	}
	g.rules.chain(name+"_in", append(in, "drop")...)
	g.rules.chain(name+"_out", append(out, "drop")...)
	return name
}

// peers are the addresses at one end of a rule's traffic.
type peers struct {
	all      bool
	not      bool // all addresses outside of the ranges
	prefixes []netip.Prefix
}

// lines returns a rule in the syntax of nft: one line, or one for each family.
func (g security) lines(s *resolvedSubnet, r securityRule) []string {
	verdict := "return"
	if strings.EqualFold(r.Access, "Deny") {
		verdict = "drop"
	}
	source := g.peers(s, append([]string{r.Source}, r.Sources...), r.SourceGroups)
	dest := g.peers(s, append([]string{r.Dest}, r.Dests...), r.DestGroups)
	what := traffic(r)
	if source.all && dest.all {
		return []string{joined(what, verdict)}
	}
	var lines []string
	for _, ip := range []string{"ip", "ip6"} {
		from, ok1 := source.match(ip, "saddr")
		to, ok2 := dest.match(ip, "daddr")
		if !ok1 || !ok2 {
			continue
		}
		if from == "" && to == "" {
			from = map[string]string{"ip": "meta nfproto ipv4", "ip6": "meta nfproto ipv6"}[ip]
		}
		lines = append(lines, joined(from, to, what, verdict))
	}
	return lines
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// match returns the expression for the family, and whether any address of the family matches.
func (w peers) match(ip, field string) (string, bool) {
	if w.all {
		return "", true
	}
	var texts []string
	for _, p := range w.prefixes {
		if family(p.Addr()) != ip {
			continue
		}
		if p.Bits() == 0 {
			return "", !w.not
		}
		texts = append(texts, p.String())
	}
	switch {
	case len(texts) == 0:
		return "", w.not
	case w.not:
		return fmt.Sprintf("%s %s != { %s }", ip, field, strings.Join(texts, ", ")), true
	}
	return fmt.Sprintf("%s %s { %s }", ip, field, strings.Join(texts, ", ")), true
}

// peers reads one end of a rule. Tags of services that are not part of the local Azure match no address.
func (g security) peers(s *resolvedSubnet, texts []string, groups []reference) peers {
	var w peers
	for _, text := range texts {
		if p, ok := parsePrefix(text); ok {
			w.prefixes = append(w.prefixes, p)
			continue
		}
		// A tag has no other address beside it.
		tag, _, _ := strings.Cut(strings.ToLower(text), ".")
		switch tag {
		case "*":
			return peers{all: true}
		case "internet":
			return peers{not: true, prefixes: s.prefixes}
		case "virtualnetwork":
			w.prefixes = append(w.prefixes, s.prefixes...)
		case "azureloadbalancer":
			w.prefixes = append(w.prefixes, single(Platform), single(Gateway6))
		case "azurecloud":
			w.prefixes = append(w.prefixes, PublicRanges()...)
		case "azureplatformdns":
			w.prefixes = append(w.prefixes, single(Platform))
		case "azureplatformimds":
			w.prefixes = append(w.prefixes, single(Metadata))
		}
	}
	for _, group := range groups {
		w.prefixes = append(w.prefixes, g.groups[group.key()]...)
	}
	w.prefixes = merged(w.prefixes)
	return w
}

// traffic returns the expression for a rule's protocol and ports.
func traffic(r securityRule) string {
	source := ports("sport", append([]string{r.SourcePort}, r.SourcePorts...))
	dest := ports("dport", append([]string{r.DestPort}, r.DestPorts...))
	switch strings.ToLower(r.Protocol) {
	case "tcp", "udp":
		if source == "" && dest == "" {
			return "meta l4proto " + strings.ToLower(r.Protocol)
		}
		return joined("meta l4proto "+strings.ToLower(r.Protocol), source, dest)
	case "icmp":
		return "meta l4proto { icmp, ipv6-icmp }"
	case "esp", "ah":
		return "meta l4proto " + strings.ToLower(r.Protocol)
	}
	if source == "" && dest == "" {
		return ""
	}
	return joined("meta l4proto { tcp, udp, sctp }", source, dest)
}

// ports returns the expression for ports, "" for all of them.
func ports(field string, texts []string) string {
	type span struct{ from, to int }
	var spans []span
	for _, text := range texts {
		if text == "" {
			continue
		}
		if text == "*" {
			return ""
		}
		var s span
		from, to, isRange := strings.Cut(text, "-")
		if !isRange {
			to = from
		}
		if _, err := fmt.Sscan(from+" "+to, &s.from, &s.to); err != nil || s.from > s.to {
			continue
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var kept []span
	for _, s := range spans {
		if n := len(kept); n > 0 && s.from <= kept[n-1].to+1 {
			kept[n-1].to = max(kept[n-1].to, s.to)
			continue
		}
		kept = append(kept, s)
	}
	var out []string
	for _, s := range kept {
		if s.from == s.to {
			out = append(out, fmt.Sprint(s.from))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", s.from, s.to))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return fmt.Sprintf("th %s { %s }", field, strings.Join(out, ", "))
}
