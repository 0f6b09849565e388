package units

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/graph"
)

var port = regexp.MustCompile(`^\$\{([^}]*)\}$`)

// extensions adds a unit for the resources of each extension.
func (b *builder) extensions() error {
	for _, e := range b.d.Extensions {
		if len(e.Spec.Resources) == 0 {
			continue
		}
		u := b.unit("extension-" + e.Metadata.Name)
		for i, r := range e.Spec.Resources {
			where := fmt.Sprintf("Extension %s: spec.resources[%d]", e.Metadata.Name, i)
			body := object{}
			for key, value := range r {
				switch key {
				case "type", "apiVersion", "name":
					continue
				case "dependsOn", "condition", "copy", "scope", "resources":
					return fmt.Errorf("%s.%s: is not allowed: an order follows from ports such as ${subnet.nodes}", where, key)
				}
				replaced, err := b.replace(value)
				if err != nil {
					return fmt.Errorf("%s.%s: %w", where, key, err)
				}
				body[key] = replaced
			}
			u.Add(graph.Resource{
				Symbol: fmt.Sprintf("resource-%d", i), Type: fmt.Sprint(r["type"]), Version: fmt.Sprint(r["apiVersion"]),
				Name: fmt.Sprint(r["name"]),
				Body: body,
			})
		}
	}
	return nil
}

// replace puts references where a value names a port.
func (b *builder) replace(value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		all := object{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			item, err := b.replace(value[key])
			if err != nil {
				return nil, err
			}
			all[key] = item
		}
		return all, nil
	case []any:
		all := []any{}
		for _, item := range value {
			replaced, err := b.replace(item)
			if err != nil {
				return nil, err
			}
			all = append(all, replaced)
		}
		return all, nil
	case string:
		m := port.FindStringSubmatch(value)
		if m == nil {
			return value, nil
		}
		ref, has := b.ports[m[1]]
		if !has {
			return nil, fmt.Errorf("%q: there is no port %q: want one of %s", value, m[1],
				strings.Join(slices.Sorted(maps.Keys(b.ports)), ", "))
		}
		return ref, nil
	default:
		return value, nil
	}
}

// patch applies the patches in their order.
func (b *builder) patch() error {
	for _, p := range b.d.Patches {
		found := false
		for _, u := range b.units {
			for _, r := range u.Resources {
				if !selects(p.Spec.Target, u, r) {
					continue
				}
				merged, ok := merge(r.Body, p.Spec.Merge).(object)
				if !ok {
					continue
				}
				r.Body, found = merged, true
			}
		}
		if !found {
			var all []string
			for _, u := range b.units {
				all = append(all, u.Name)
			}
			return fmt.Errorf("TemplatePatch %s: spec.target: no resource has unit %q, symbol %q and type %q: the units are %s",
				p.Metadata.Name,
				p.Spec.Target.Unit, p.Spec.Target.Symbol, p.Spec.Target.Type, strings.Join(all, ", "))
		}
	}
	return nil
}

// selects reports whether a patch is for a resource.
func selects(t definition.Target, u *graph.Unit, r *graph.Resource) bool {
	return (t.Unit == "" || t.Unit == u.Name) && (t.Symbol == "" || t.Symbol == r.Symbol) &&
		(t.Type == "" || strings.EqualFold(t.Type, r.Type))
}

// merge applies a JSON merge patch (RFC 7386).
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged := object{}
	if had, ok := target.(map[string]any); ok {
		maps.Copy(merged, had)
	}
	for key, change := range changes {
		if change == nil {
			delete(merged, key)
		} else {
			merged[key] = merge(merged[key], change)
		}
	}
	return merged
}
