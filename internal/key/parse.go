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

// parseSwitch returns true for "true" in any case. Every other text is false, also with blanks around
// it, as in cloud-provider-azure; warnSwitch then warns.
func parseSwitch(text string) (bool, error) { return strings.EqualFold(text, "true"), nil }

// parseTrimmed returns true for "true" in any case, also with blanks around it, as cloud-provider-azure does for private link
// services; warnTrimmed warns of other texts.
func parseTrimmed(text string) (bool, error) {
	return strings.EqualFold(strings.TrimSpace(text), "true"), nil
}

// parseExact returns true for "true" alone, as cloud-provider-azure does where a Service's kind of
// address depends on it; warnExact then warns.
func parseExact(text string) (bool, error) { return text == "true", nil }

// parseNumber parses whole numbers from least to most.
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

// parseWord removes the blanks around a text.
func parseWord(text string) (string, error) { return strings.TrimSpace(text), nil }

// parsePrefix parses the id of a public IP prefix, or an empty text.
func parsePrefix(text string) (string, error) {
	text = strings.TrimSpace(text)
	if id, err := azure.ParseID(text); text != "" && (err != nil || !id.Is(network.PublicIPPrefixes)) {
		return "", errors.New("")
	}
	return text, nil
}

// dnsLabel matches what Azure accepts as the label of a public IP.
var dnsLabel = regexp.MustCompile(`^[a-z][a-z0-9-]{1,61}[a-z0-9]$`)

// parseLabel parses a DNS label, or an empty text.
func parseLabel(text string) (string, error) {
	label := strings.TrimSpace(text)
	if label != "" && !dnsLabel.MatchString(label) {
		return "", errors.New("no DNS label")
	}
	return label, nil
}

// form describes the names that Azure accepts for a kind of resource.
type form struct {
	of   string // the kind of resource
	is   *regexp.Regexp
	rule string // the pattern in words
}

// Sources: Azure's "AzureNames rules and restrictions for Azure resources".
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

// parse parses a name, or an empty text. Names become part of resource ids, where an invalid name
// could lead to another resource.
func (f form) parse(text string) (string, error) {
	switch name := strings.TrimSpace(text); {
	case name == "" || f.is.MatchString(name):
		return name, nil
	case strings.HasPrefix(strings.ToLower(name), "/subscriptions/"):
		return "", errors.New("it is an id; want a name")
	}
	return "", fmt.Errorf("the name of %s has %s", f.of, f.rule)
}

// parseWords splits words at blanks.
func parseWords(text string) ([]string, error) { return strings.Fields(text), nil }

// parseNames is like parseList for names in any letter case.
func parseNames(text string) ([]string, error) { return parseList(strings.ToLower(text)) }

// parseLastPairs is like parsePairs, and always removes the blanks around values.
func parseLastPairs(text string) (Pairs, error) {
	pairs, err := parsePairs()(text)
	for name, value := range pairs.Values {
		pairs.Values[name] = strings.TrimSpace(value)
	}
	return pairs, err
}

// parseList splits items at commas and removes the blanks around them. Empty items are left out, so
// that an empty text is an empty list.
func parseList(text string) ([]string, error) {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items, nil
}

// parsePairs parses name=value items between commas. It skips items that are malformed, that Azure
// does not accept, or that have a reserved name. The caller warns of them; earlier implementations
// skipped them too.
func parsePairs(taken ...string) func(string) (Pairs, error) {
	return func(text string) (Pairs, error) {
		pairs := Pairs{Values: map[string]string{}}
		items, _ := parseList(text)
		for _, item := range items {
			name, value, ok := strings.Cut(item, "=")
			name = strings.TrimSpace(name)
			// Azure ignores the case of names; the last of several equal names counts.
			same := func(other string) bool { return strings.EqualFold(other, name) }
			// Azure reserves the value "null", but accepts it with blanks around it.
			if trimmed := strings.TrimSpace(value); !strings.EqualFold(trimmed, "null") {
				value = trimmed
			}
			if !ok || name == "" || strings.Contains(value, "=") || strings.ContainsAny(name, azure.NotInTagNames) ||
				slices.ContainsFunc(taken, same) ||
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

// Pairs are names with values, and the items that were skipped.
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
