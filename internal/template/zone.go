package template

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	language "kaz/internal/template/function"
)

// zonesOf are the availability zones of a location, by their logical names.
func (s *evaluator) zonesOf(location any) (map[string]string, error) {
	name, ok := location.(string)
	if !ok {
		return nil, language.Expects("a location")
	}
	if s.deployment.Azure == nil {
		return nil, errors.New("the template functions of zones need Azure")
	}
	return s.deployment.Azure.Zones(strings.ToLower(strings.ReplaceAll(name, " ", ""))), nil
}

// pickZones is pickZones(namespace, type, location, [count], [offset]).
func pickZones(s *evaluator, args []any) (any, error) {
	texts, ok := language.AllText(args[:3])
	if !ok {
		return nil, language.Expects("a namespace, a type, a location, a count and an offset")
	}
	known, err := s.zonesOf(args[2])
	if err != nil {
		return nil, err
	}
	from := []int64{1, 0} // count, offset
	for i, a := range args[3:] {
		n, ok := language.Whole(a)
		if !ok || n < 0 {
			return nil, language.Expects("a namespace, a type, a location, a count and an offset")
		}
		from[i] = n
	}
	kind, err := s.providedType("pickZones", texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	picked := []any{}
	if mappings, _ := kind["zoneMappings"].([]any); len(known) == 0 || len(mappings) == 0 {
		return picked, nil // the location or the type has no zones
	}
	names := slices.Sorted(maps.Keys(known))
	if from[0]+from[1] > int64(len(names)) {
		return nil, short.Errorf("the location '%v' has %d zones, %d from zone %d on are wanted", args[2], len(names), from[0], from[1]+1)
	}
	for _, name := range names[from[1] : from[0]+from[1]] {
		picked = append(picked, name)
	}
	return picked, nil
}

// zone is toLogicalZone or toPhysicalZone(subscription, location, zone). It is "" for a zone that the location does not have.
func zone(find func(known map[string]string, name string) string) func(*evaluator, []any) (any, error) {
	return func(s *evaluator, args []any) (any, error) { return s.zone(args, find) }
}

func (s *evaluator) zone(args []any, find func(map[string]string, string) string) (any, error) {
	name, ok := args[2].(string)
	if !ok {
		return nil, language.Expects("a subscription, a location and a zone")
	}
	known, err := s.zonesOf(args[1])
	if err != nil {
		return nil, err
	}
	return find(known, name), nil
}

// zones is zone for an array of zones.
func zones(find func(known map[string]string, name string) string) func(*evaluator, []any) (any, error) {
	return func(s *evaluator, args []any) (any, error) { return s.zones(args, find) }
}

func (s *evaluator) zones(args []any, find func(map[string]string, string) string) (any, error) {
	names, ok := args[2].([]any)
	if !ok {
		return nil, language.Expects("a subscription, a location and an array of zones")
	}
	all := []any{}
	for _, name := range names {
		found, err := s.zone([]any{args[0], args[1], name}, find)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}
