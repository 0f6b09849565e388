package key

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Doubts are values of a Service's annotations that are none of the allowed ones, in the
// order of the reference. Of a Service that is served they are such as have always been
// taken, whatever Azure says of them, or such as nobody heeds where they are.
func Doubts(annotations map[string]string, ports []int32) []*Error {
	var all []*Error
	if len(annotations) == 0 {
		return nil
	}
	for _, g := range serviceGroups {
		for _, k := range g.keys {
			all = append(all, k.doubts(annotations, ports)...)
		}
	}
	return all
}

// Words that are none of these have always counted as one of them.
var (
	doubtSwitch   = doubtOthers("false", "true", "false")
	doubtProtocol = doubtOthers("tcp", "tcp", "http", "https")
)

// doubtOthers doubts a word that is none of some, in any case, and not empty.
func doubtOthers(countsAs string, words ...string) func(string) error {
	return func(text string) error {
		text = strings.TrimSpace(text)
		if text == "" || slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(word, text) }) {
			return nil
		}
		return fmt.Errorf("it counts as %s", countsAs)
	}
}

func doubtPath(path string) error {
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

// doubtEach doubts the items of a list that are not as they should be.
func doubtEach(why string, is func(string) bool) func([]string) error {
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

// ipTagTypes are the types of IP tags that are known. There are more, and Azure alone knows them
// and their values.
var ipTagTypes = []string{"FirstPartyUsage", "RoutingPreference"}

// doubtKinds doubts types of IP tags that are much like a known one, and how packets come to
// a public IP.
func doubtKinds(tags Pairs) error {
	for _, kind := range slices.Sorted(maps.Keys(tags.Values)) {
		is := func(known string) bool { return strings.EqualFold(kind, known) }
		value, meant := tags.Values[kind], nearestTo(kind, ipTagTypes)
		switch {
		case is("RoutingPreference") && !strings.EqualFold(value, "Internet"):
			return fmt.Errorf("%q is no routing preference that Azure knows, it knows Internet", value)
		case meant != "" && !slices.ContainsFunc(ipTagTypes, is):
			return fmt.Errorf("%q is no type of IP tags that is known, but %s is", kind, meant)
		}
	}
	return nil
}
