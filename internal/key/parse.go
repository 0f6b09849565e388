package key

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// parseSwitch is true for "true" in any case and with blanks around it; every other
// text is false, as users of these annotations know it, and doubted.
func parseSwitch(text string) (bool, error) {
	return strings.EqualFold(strings.TrimSpace(text), "true"), nil
}

// parseNumber takes whole numbers from least to most.
func parseNumber(least, most int32) func(string) (int32, error) {
	return func(text string) (int32, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
		switch {
		case errors.Is(err, strconv.ErrSyntax):
			return 0, errors.New("not a whole number")
		case err != nil || n < int64(least) || n > int64(most):
			return 0, errors.New("out of range")
		}
		return int32(n), nil
	}
}

// parseWord takes one word, without the blanks around it.
func parseWord(text string) (string, error) { return strings.TrimSpace(text), nil }

// parsePrefix takes the id of a public IP prefix, or none.
func parsePrefix(text string) (string, error) {
	text = strings.TrimSpace(text)
	if id, err := azure.ParseID(text); text != "" && (err != nil || !id.Is(network.PublicIPPrefixes)) {
		return "", errors.New("")
	}
	return text, nil
}

// dnsLabel is what Azure takes as the label of a public IP.
var dnsLabel = regexp.MustCompile(`^[a-z][a-z0-9-]{1,61}[a-z0-9]$`)

// parseLabel takes a DNS label, or none.
func parseLabel(text string) (string, error) {
	label := strings.TrimSpace(text)
	if label != "" && !dnsLabel.MatchString(label) {
		return "", errors.New("no DNS label")
	}
	return label, nil
}

// form is what Azure takes as the name of a kind of thing.
type form struct {
	of   string // what the name is of
	is   *regexp.Regexp
	rule string // the same to a person
}

// Sources: Azure's "Naming rules and restrictions for Azure resources".
var (
	groupForm = form{
		of: "a resource group", is: regexp.MustCompile(`^[\p{L}\p{Nd}_.()-]{0,89}[\p{L}\p{Nd}_()-]$`),
		rule: "up to 90 letters, digits, dots, dashes, underscores and parentheses, no dot last",
	}
	resourceForm = form{
		of: "a resource", is: regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,78}[A-Za-z0-9_])?$`),
		rule: "up to 80 letters, digits, dots, dashes and underscores, a letter or digit first and no dot or dash last",
	}
)

// parse takes a name, or none. A name becomes part of an id: one that is none could lead
// elsewhere, or hide what is there from everybody.
func (f form) parse(text string) (string, error) {
	switch name := strings.TrimSpace(text); {
	case name == "" || f.is.MatchString(name):
		return name, nil
	case strings.HasPrefix(strings.ToLower(name), "/subscriptions/"):
		return "", errors.New("it is an id, and wanted is a name alone")
	}
	return "", fmt.Errorf("the name of %s has %s", f.of, f.rule)
}

// parseWords takes words between blanks.
func parseWords(text string) ([]string, error) { return strings.Fields(text), nil }

// parseNames is parseList for names whose case does not matter.
func parseNames(text string) ([]string, error) { return parseList(strings.ToLower(text)) }

// parseLastPairs is parsePairs with the blanks gone around every value; of a name that
// is there twice the last one counts.
func parseLastPairs(text string) (Pairs, error) {
	pairs, err := parsePairs()(text)
	for name, value := range pairs.Values {
		pairs.Values[name] = strings.TrimSpace(value)
	}
	return pairs, err
}

// parseList takes items between commas, without the blanks around them. Empty items are
// left out, so that an empty value is an empty list.
func parseList(text string) ([]string, error) {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// parsePairs takes name=value items between commas. An item without exactly one "=", or
// that Azure does not take, is left out and reported, not refused: that is how these keys have
// always been read. So is one of a name that is not the user's to set.
func parsePairs(taken ...string) func(string) (Pairs, error) {
	return func(text string) (Pairs, error) {
		pairs := Pairs{Values: map[string]string{}}
		items, _ := parseList(text)
		for _, item := range items {
			name, value, ok := strings.Cut(item, "=")
			name = strings.TrimSpace(name)
			// To Azure names are the same in any case; of several the last one counts.
			same := func(other string) bool { return strings.EqualFold(other, name) }
			// Azure reserves the value "null"; with blanks around it, it is an ordinary one.
			if trimmed := strings.TrimSpace(value); !strings.EqualFold(trimmed, "null") {
				value = trimmed
			}
			if !ok || name == "" || strings.Contains(value, "=") || strings.ContainsAny(name, azure.NotInTagNames) || slices.ContainsFunc(taken, same) ||
				utf8.RuneCountInString(name) > azure.LongestTagName || utf8.RuneCountInString(value) > azure.LongestTagValue {
				pairs.Skipped = append(pairs.Skipped, item)
				continue
			}
			maps.DeleteFunc(pairs.Values, func(other, _ string) bool { return same(other) })
			pairs.Values[name] = value
		}
		return pairs, nil
	}
}

// Pairs are names with values, and what could not be read as such.
type Pairs struct {
	Values  map[string]string
	Skipped []string
}

func (p Pairs) String() string {
	if len(p.Values) == 0 {
		return ""
	}
	return fmt.Sprint(p.Values)
}
