package merge

import (
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/live"
)

// replacedBy are the names, in lower case, of the cluster's listeners at the gateway that have other listeners for their hosts in a
// document, and of what is nothing without them: Azure takes one listener for a host at a port, and a rule for each listener.
func replacedBy(g live.Gateway, want network.ApplicationGateway) map[string]bool {
	stated := names(want)
	at := sitesOf(g.Sites(want))
	gone := map[string]bool{}
	for name, sites := range g.Sites(g.Properties) {
		if g.Mine(name) && !stated[name] && slices.ContainsFunc(sites, func(s live.Site) bool { return at[s] }) {
			gone[name] = true
		}
	}
	refers := references(g.Properties)
	for again := len(gone) > 0; again; {
		again = false
		for name, ids := range refers {
			if !gone[name] && g.Mine(name) && !stated[name] && mentions(ids, gone) {
				gone[name], again = true, true
			}
		}
		for _, listener := range listenersOf(g.Properties, gone) {
			if !gone[listener] {
				gone[listener], again = true, true
			}
		}
	}
	return gone
}

func sitesOf(byListener map[string][]live.Site) map[live.Site]bool {
	all := map[live.Site]bool{}
	for _, sites := range byListener {
		for _, s := range sites {
			all[s] = true
		}
	}
	return all
}

func mentions(ids []azure.ID, names map[string]bool) bool {
	return slices.ContainsFunc(ids, func(id azure.ID) bool { return names[strings.ToLower(id.Name())] })
}

// listenersOf returns the names, in lower case, of the listeners of rules.
func listenersOf(p network.ApplicationGateway, rules map[string]bool) (all []string) {
	for _, r := range p.Rules {
		if rules[strings.ToLower(r.Name)] {
			all = append(all, strings.ToLower(r.Properties.Listener.To().Name()))
		}
	}
	for _, r := range p.StreamRules {
		if rules[strings.ToLower(r.Name)] {
			all = append(all, strings.ToLower(r.Properties.Listener.To().Name()))
		}
	}
	return all
}

// Spared are the names, in lower case, of the listeners that the cluster takes over, with their rules, for hosts that refused objects alone
// ask for: all has the layout with these, and decided the one without them.
func (o Ownership) Spared(g live.Gateway, all, decided network.ApplicationGateway) map[string]bool {
	asked, served := sitesOf(g.Sites(all)), sitesOf(g.Sites(decided))
	spared := map[string]bool{}
	for name, sites := range g.Sites(g.Properties) {
		is := func(in map[live.Site]bool) bool {
			return slices.ContainsFunc(sites, func(s live.Site) bool { return in[s] })
		}
		if g.Mine(name) && !o.Prefix.Has(name) && is(asked) && !is(served) {
			spared[name] = true
		}
	}
	return withRules(g.Properties, spared)
}

// Besides returns which names belong to the cluster in a gateway without the listeners that have a host which is not the cluster's, and
// their rules. It matters where the cluster takes what others have made.
func (o Ownership) Besides(g live.Gateway, foreign func(host string) bool) live.Mine {
	mine, kept := g.Mine, map[string]bool{}
	for name, sites := range g.Sites(g.Properties) {
		if !o.Prefix.Has(name) && slices.ContainsFunc(sites, func(s live.Site) bool { return foreign(s.Host) }) {
			kept[name] = true
		}
	}
	if len(kept) == 0 {
		return mine
	}
	kept = withRules(g.Properties, kept)
	return func(name string) bool { return mine(name) && (o.Prefix.Has(name) || !kept[strings.ToLower(name)]) }
}

// withRules adds to the names of listeners those of their rules.
func withRules(p network.ApplicationGateway, listeners map[string]bool) map[string]bool {
	all := maps.Clone(listeners)
	add := func(rule string, listener *azure.Reference) {
		if listeners[strings.ToLower(listener.To().Name())] {
			all[strings.ToLower(rule)] = true
		}
	}
	for _, r := range p.Rules {
		add(r.Name, r.Properties.Listener)
	}
	for _, r := range p.StreamRules {
		add(r.Name, r.Properties.Listener)
	}
	return all
}
