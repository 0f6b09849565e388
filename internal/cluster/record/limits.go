package record

import (
	"strconv"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/units"
)

// LimitsOf are the limits of the autoscaler in the tags of a scale set, 0 for those that are no numbers.
func LimitsOf(tags map[string]string) change.Limits {
	number := func(tag string) int {
		n, err := strconv.Atoi(tags[tag])
		if err != nil {
			return 0
		}
		return n
	}
	return change.Limits{Least: number(units.LeastTag), Most: number(units.MostTag)}
}

// LimitsFor are the limits of a pool in its definition, 0 for one that is not autoscaled.
func LimitsFor(p definition.NodePool) change.Limits {
	if a := p.Spec.Autoscaling; a != nil {
		return change.Limits{Least: a.Min, Most: a.Max}
	}
	return change.Limits{}
}

// SetLimits adds limits to the tags of a scale set, unless they are nil.
func SetLimits(tags map[string]string, l *change.Limits) {
	if l != nil {
		tags[units.LeastTag], tags[units.MostTag] = strconv.Itoa(l.Least), strconv.Itoa(l.Most)
	}
}
