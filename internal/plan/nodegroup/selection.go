package nodegroup

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// Selection says which scale sets are node groups. Its parts are the flags --nodes and --node-group-auto-discovery.
type Selection struct {
	Named       []Named
	Discoveries []Discovery
}

// Named is a node group that a flag names.
type Named struct {
	Name string
	Limits
}

// Limits is the least and the greatest size of a group.
type Limits struct{ Min, Max int }

// Discovery selects scale sets by their tags.
type Discovery struct {
	Tags map[string]string
	// Any says that this selector is enough by itself. A scale set must match all selectors without Any.
	Any      bool
	Min, Max *int
}

// ParseSelection reads the values of --nodes and of --node-group-auto-discovery. It returns all problems at once.
func ParseSelection(named, discoveries []string) (s Selection, err error) {
	for _, value := range named {
		n, wrong := ParseNamed(value)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("--nodes %w", wrong))
		}
		same := func(other Named) bool { return wrong == nil && strings.EqualFold(other.Name, n.Name) }
		if i := slices.IndexFunc(s.Named, same); i >= 0 && s.Named[i].Limits != n.Limits {
			err = errors.Join(err, fmt.Errorf("--nodes %q: another one gives %s the limits %d to %d: name each scale set once",
				value, s.Named[i].Name, s.Named[i].Min, s.Named[i].Max))
		}
		s.Named = append(s.Named, n)
	}
	for _, value := range discoveries {
		d, wrong := ParseDiscovery(value)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("--node-group-auto-discovery %w", wrong))
		}
		s.Discoveries = append(s.Discoveries, d)
	}
	return s, err
}

// NoScaleSet is the reason of a name in --nodes that no scale set has.
const NoScaleSet = "the resource group has no scale set of this name"

// Missing returns the names in --nodes for which has returns false: no scale set has them.
func (s Selection) Missing(has func(name string) bool) []string {
	var names []string
	for _, n := range s.Named {
		if !has(n.Name) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ParseNamed reads a value of --nodes: MIN:MAX:NAME.
func ParseNamed(value string) (Named, error) {
	const want = "must be MIN:MAX:NAME, such as 1:10:pool"
	parts := strings.SplitN(value, ":", 3)
	if len(parts) != 3 || strings.TrimSpace(parts[2]) == "" {
		return Named{}, fmt.Errorf("%q: %s", value, want)
	}
	least, err := parseSize(parts[0])
	if err != nil {
		return Named{}, fmt.Errorf("%q: the least size %w; %s", value, err, want)
	}
	most, err := parseSize(parts[1])
	if err != nil {
		return Named{}, fmt.Errorf("%q: the greatest size %w; %s", value, err, want)
	}
	limits := Limits{least, most}
	if err := limits.check(); err != nil {
		return Named{}, fmt.Errorf("%q: %w", value, err)
	}
	return Named{Name: strings.TrimSpace(parts[2]), Limits: limits}, nil
}

func parseSize(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	if n < 0 {
		return 0, fmt.Errorf("%d is below 0", n)
	}
	return n, nil
}

func (l Limits) check() error {
	if l.Max < l.Min {
		return fmt.Errorf("the greatest size %d is below the least size %d", l.Max, l.Min)
	}
	return nil
}

// ParseDiscovery reads a value of --node-group-auto-discovery: label:KEY=VALUE,... with min=N and max=N if tags of scale
// sets do not have them, or the same with label-any.
func ParseDiscovery(value string) (Discovery, error) {
	const want = "must be label:KEY=VALUE,...[,min=N][,max=N] or label-any:KEY=VALUE,..."
	kind, list, found := strings.Cut(value, ":")
	if !found || strings.Contains(list, ":") || kind != "label" && kind != "label-any" {
		return Discovery{}, fmt.Errorf("%q: %s", value, want)
	}
	d := Discovery{Tags: map[string]string{}, Any: kind == "label-any"}
	for pair := range strings.SplitSeq(list, ",") {
		key, text, _ := strings.Cut(pair, "=")
		key, text = strings.TrimSpace(key), strings.TrimSpace(text)
		if key == "" || text == "" {
			return Discovery{}, fmt.Errorf("%q: %q is not KEY=VALUE; %s", value, pair, want)
		}
		limit := map[string]**int{"min": &d.Min, "max": &d.Max}[key]
		if limit == nil {
			d.Tags[key] = text
			continue
		}
		n, err := parseSize(text)
		if err != nil {
			return Discovery{}, fmt.Errorf("%q: %s %w", value, key, err)
		}
		*limit = &n
	}
	if len(d.Tags) == 0 {
		return Discovery{}, fmt.Errorf("%q: names no tag of scale sets; %s", value, want)
	}
	if d.Min != nil && d.Max != nil && *d.Max < *d.Min {
		return Discovery{}, fmt.Errorf("%q: max=%d is below min=%d", value, *d.Max, *d.Min)
	}
	return d, nil
}

// Select returns the limits of a scale set that is a node group. For another scale set the error says why it is no node
// group.
func (s Selection) Select(name string, tags azure.Tags) (Limits, error) {
	for _, n := range s.Named {
		if strings.EqualFold(n.Name, name) {
			return n.Limits, nil
		}
	}
	if len(s.Discoveries) == 0 {
		return Limits{}, fmt.Errorf("no --nodes names it")
	}
	matching, err := s.discover(tags)
	if err != nil {
		return Limits{}, err
	}
	return limits(matching, tags)
}

// Wants reports whether a scale set is to be a node group: a flag names it, or it has the tags of a selector.
func (s Selection) Wants(name string, tags azure.Tags) bool {
	if slices.ContainsFunc(s.Named, func(n Named) bool { return strings.EqualFold(n.Name, name) }) {
		return true
	}
	if len(s.Discoveries) == 0 {
		return false
	}
	_, err := s.discover(tags)
	return err == nil
}

// discover returns the selectors by which a scale set is a node group: all of the kind label, or one of label-any.
func (s Selection) discover(tags azure.Tags) ([]Discovery, error) {
	var matching []Discovery
	var missing string
	together, each := true, 0
	for _, d := range s.Discoveries {
		lacks := d.lacks(tags)
		if !d.Any {
			each++
			together = together && lacks == ""
		}
		if lacks == "" {
			matching = append(matching, d)
		} else {
			missing = cmp.Or(missing, lacks)
		}
	}
	if each == 0 || !together {
		matching = slices.DeleteFunc(matching, func(d Discovery) bool { return !d.Any })
	}
	if len(matching) == 0 {
		return nil, fmt.Errorf("no --nodes names it, and it lacks the tag %s of --node-group-auto-discovery", missing)
	}
	return matching, nil
}

// lacks returns the first tag of a selector that a scale set does not have, "" if it has all.
func (d Discovery) lacks(tags azure.Tags) string {
	for _, key := range slices.Sorted(maps.Keys(d.Tags)) {
		if value, ok := tags.Get(key); !ok || value != d.Tags[key] {
			return key + "=" + d.Tags[key]
		}
	}
	return ""
}

// limits returns the limits of a scale set that selectors match. The tags min and max of the scale set come first. Without a
// tag, the limit is the largest min or the smallest max of the selectors.
func limits(matching []Discovery, tags azure.Tags) (Limits, error) {
	var least, most *int
	for _, d := range matching {
		if d.Min != nil && (least == nil || *d.Min > *least) {
			least = d.Min
		}
		if d.Max != nil && (most == nil || *d.Max < *most) {
			most = d.Max
		}
	}
	for key, limit := range map[string]**int{"min": &least, "max": &most} {
		text, ok := tags.Get(key)
		if !ok {
			continue
		}
		n, err := parseSize(strings.TrimSpace(text))
		if err != nil {
			return Limits{}, fmt.Errorf("the tag %s: %w", key, err)
		}
		*limit = &n
	}
	if least == nil || most == nil {
		return Limits{}, fmt.Errorf("it needs the tags min and max, or min= and max= in --node-group-auto-discovery")
	}
	l := Limits{*least, *most}
	return l, l.check()
}
