package layout

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/route"
)

// Priorities of rules, of which lower ones go first. Listeners for hosts without a wildcard go before those with one, these in the order of
// their labels, and listeners for any host last. Inside its range a rule keeps its priority.
const (
	firstExact    = 10000
	firstWildcard = 16000
	labelRange    = 100
	mostLabels    = 28
	firstAny      = firstWildcard + mostLabels*labelRange
	afterAny      = 19000
	lastPriority  = 20000
)

// prioritized is a half-open range of priorities.
type prioritized struct{ first, end int32 }

// band returns the range of priorities of the listener of a host.
func band(host string) prioritized {
	switch {
	case host == "":
		return prioritized{firstAny, afterAny}
	case !isWild(host):
		return prioritized{firstExact, firstWildcard}
	}
	labels := int32(min(strings.Count(host, ".")+1, mostLabels))
	first := int32(firstWildcard) + (mostLabels-labels)*labelRange
	return prioritized{first, first + labelRange}
}

// prioritize gives each rule a priority: first those that objects ask for, then those that rules have, then the rest.
func (b *builder) prioritize() {
	taken := b.live.Priorities()
	given := map[string]int32{}
	give := func(l *listener, first int32) {
		for taken[first] {
			if first++; first > lastPriority {
				first = firstExact
			}
		}
		taken[first], given[l.ruleName(b.prefix)] = true, first
	}
	b.explicit(give, given)
	asked := maps.Clone(given)
	ordered := slices.Clone(b.listeners)
	slices.SortFunc(ordered, func(x, y *listener) int {
		return cmp.Or(int(band(x.host.host).first-band(y.host.host).first), strings.Compare(x.name, y.name))
	})
	for _, l := range ordered {
		name := l.ruleName(b.prefix)
		if have := b.live.Priority(name); given[name] == 0 && have >= b.least(l, given) && have < band(l.host.host).end && !taken[have] {
			give(l, have)
		}
	}
	for _, l := range ordered {
		if name := l.ruleName(b.prefix); asked[name] == 0 && given[name] < b.least(l, given) {
			give(l, b.least(l, given))
		}
	}
	for i := range b.result.Gateway.Rules {
		r := &b.result.Gateway.Rules[i]
		r.Properties.Priority = given[r.Name]
	}
	for i := range b.result.Gateway.StreamRules {
		r := &b.result.Gateway.StreamRules[i]
		r.Properties.Priority = given[r.Name]
	}
	for _, l := range b.listeners {
		b.checkShadow(l, given[l.ruleName(b.prefix)])
	}
}

// least returns the lowest priority that the rule of a listener may have. It leaves to others the requests for their hosts.
func (b *builder) least(l *listener, given map[string]int32) int32 {
	least := band(l.host.host).first
	if l.host.host != "" && !isWild(l.host.host) {
		return least
	}
	for _, other := range b.foreign(l.private, l.port) {
		if slices.ContainsFunc(other.Hosts, func(host string) bool { return live.Covers(l.host.host, host) }) {
			least = max(least, other.Priority+1)
		}
	}
	for _, own := range b.listeners {
		if own.private == l.private && own.port == l.port && live.Covers(l.host.host, own.host.host) {
			least = max(least, given[own.ruleName(b.prefix)]+1)
		}
	}
	return least
}

func isWild(host string) bool { return strings.ContainsAny(host, "*?") }

// checkShadow notes that a listener of others, which goes first, gets the requests of a listener.
func (b *builder) checkShadow(l *listener, priority int32) {
	for _, other := range b.foreign(l.private, l.port) {
		for _, host := range other.Hosts {
			if other.Priority < priority && live.Covers(host, l.host.host) {
				b.conflict(l.first, "requests for %s go to the listener %s, which does not belong to this cluster: its rule has the "+
					"priority %d, and that of the object has %d; want a higher number there, or a lower one by the annotation "+
					"rule-priority",
					l.hostKey, other.Name, other.Priority, priority)
			}
		}
	}
}

// explicit gives the priorities that objects ask for, to older objects first. HTTPS goes before the HTTP of the same object.
func (b *builder) explicit(give func(l *listener, first int32), given map[string]int32) {
	asking := slices.DeleteFunc(slices.Clone(b.listeners), func(l *listener) bool { return l.priority == 0 })
	slices.SortStableFunc(asking, func(x, y *listener) int { return route.Compare(x.first, y.first) })
	asked := map[int32]route.Object{}
	for _, l := range asking {
		give(l, l.priority)
		got := given[l.ruleName(b.prefix)]
		other, by := asked[l.priority]
		if !by {
			asked[l.priority] = l.first
		}
		if got != l.priority && other != l.first {
			b.conflict(l.first, "rule priority %d is taken; the rule for %s gets %s", l.priority, l.hostKey, strconv.Itoa(int(got)))
		}
	}
}
