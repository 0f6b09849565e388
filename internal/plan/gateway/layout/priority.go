package layout

import (
	"slices"
	"strconv"
	"strings"

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
	case !strings.ContainsAny(host, "*?"):
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
	ordered := slices.Clone(b.listeners)
	slices.SortFunc(ordered, func(x, y *listener) int { return strings.Compare(x.name, y.name) })
	b.explicit(give, given)
	for _, l := range ordered {
		name := l.ruleName(b.prefix)
		have, in := b.live.Priority(name), band(l.host.host)
		if given[name] == 0 && have >= in.first && have < in.end && !taken[have] {
			give(l, have)
		}
	}
	for _, l := range ordered {
		if given[l.ruleName(b.prefix)] == 0 {
			give(l, band(l.host.host).first)
		}
	}
	for i := range b.result.Gateway.Rules {
		r := &b.result.Gateway.Rules[i]
		r.Properties.Priority = given[r.Name]
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
