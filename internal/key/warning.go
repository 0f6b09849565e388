package key

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Warnings returns the annotation values of a Service that are not documented as allowed, in the
// order of the reference. A Service with such values is still served.
func Warnings(annotations map[string]string, ports []int32) []*Error {
	var all []*Error
	if len(annotations) == 0 {
		return nil
	}
	for _, g := range serviceGroups {
		for _, k := range g.keys {
			all = append(all, k.warnings(annotations, ports)...)
		}
	}
	return all
}

// Other words count as the first argument, as in earlier implementations.
var (
	warnSwitch   = warnSpelling(parseSwitch)
	warnTrimmed  = warnSpelling(parseTrimmed)
	warnExact    = warnSpelling(parseExact)
	warnProtocol = warnOthers("tcp", "tcp", "http", "https")
)

// warnSpelling warns of texts that count as false and are not said to: "true" in a spelling that does
// not count, too.
func warnSpelling(is func(string) (bool, error)) func(string) error {
	return func(text string) error {
		on, err := is(text)
		if plain := strings.TrimSpace(text); on || plain == "" || strings.EqualFold(plain, "false") {
			return err
		}
		return errors.New("it counts as false")
	}
}

// warnOthers warns of every text but the given words, in any case, and the empty text.
func warnOthers(countsAs string, words ...string) func(string) error {
	return func(text string) error {
		text = strings.TrimSpace(text)
		if text == "" || slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, text) }) {
			return nil
		}
		return fmt.Errorf("it counts as %s", countsAs)
	}
}

func warnPath(path string) error {
	switch {
	case path == "":
		return nil
	case !strings.HasPrefix(path, "/"):
		return fmt.Errorf("it does not begin with /")
	case strings.ContainsFunc(path, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '#' }):
		return fmt.Errorf("it has a blank or a #")
	}
	return nil
}

// warnEach warns of list items for which is returns false.
func warnEach(why string, is func(string) bool) func([]string) error {
	return func(items []string) error {
		for _, item := range items {
			if !is(item) {
				return fmt.Errorf("%q is %s", item, why)
			}
		}
		return nil
	}
}

var (
	domainName   = regexp.MustCompile(`^(?i:[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)(?i:\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\.?$`)
	subscription = regexp.MustCompile(`^(?i:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$`)
)

func isSubscriptionOrAll(text string) bool { return text == "*" || subscription.MatchString(text) }

// ipTagTypes are the known types of IP tags. Azure has more and does not publish them.
var ipTagTypes = []string{"FirstPartyUsage", "RoutingPreference"}

// warnIPTags warns of types that look like misspelled known types, and of unknown routing
// preferences.
func warnIPTags(tags Pairs) error {
	for _, kind := range slices.Sorted(maps.Keys(tags.Values)) {
		is := func(known string) bool { return strings.EqualFold(kind, known) }
		value, meant := tags.Values[kind], nearestTo(kind, ipTagTypes)
		switch {
		case is("RoutingPreference") && !strings.EqualFold(value, "Internet"):
			return fmt.Errorf("%q is an unknown routing preference, known is Internet", value)
		case meant != "" && !slices.ContainsFunc(ipTagTypes, is):
			return fmt.Errorf("%q is an unknown type of IP tags, known is %s", kind, meant)
		}
	}
	return nil
}
