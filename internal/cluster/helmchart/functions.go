package helmchart

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"time"
)

// draw replaces randomness and the clock. A chart is rendered with two draws in which all values differ. A text that differs
// between them depends on such a value. A function has no effect if the template does not use its result, such as a default
// password.
type draw struct {
	// other are the functions that give their second value.
	other map[string]bool
	// called are the functions that were called.
	called map[string]bool
}

// pick notes the call of a function, and chooses its value.
func pick[T any](d draw, name string, first, second T) T {
	d.called[name] = true
	if d.other[name] {
		return second
	}
	return first
}

// pair is a certificate with its key, as templates see it.
type pair struct{ Cert, Key string }

// functions replace those of Helm that are random, read the clock, the time zone or the order of a map.
func (d draw) functions() template.FuncMap {
	all := template.FuncMap{
		"keys":   sortedKeys,
		"values": sortedValues,
		"uuidv4": func() string {
			return pick(d, "uuidv4", "00000000-0000-4000-8000-000000000000", "11111111-1111-4111-9111-111111111111")
		},
		"randBytes": func(n int) string {
			letter := pick(d, "randBytes", "\x00", "\x01")
			return base64.StdEncoding.EncodeToString([]byte(repeat(letter, n)))
		},
		"randInt": func(least, end int) int { return pick(d, "randInt", least, max(least, end-1)) },
		"shuffle": func(text string) string {
			sorted := slices.Sorted(slices.Values([]rune(text)))
			reversed := slices.Clone(sorted)
			slices.Reverse(reversed)
			return pick(d, "shuffle", string(sorted), string(reversed))
		},
		"now": d.now,
		"ago": func(any) string { return pick(d, "ago", "1h0m0s", "2h0m0s") },
		"date": func(layout string, at any) string {
			return d.timeOf(at).UTC().Format(layout)
		},
		"htmlDate": func(at any) string { return d.timeOf(at).UTC().Format(time.DateOnly) },
		"dateInZone": func(layout string, at any, zone string) string {
			return d.timeOf(at).In(location(zone)).Format(layout)
		},
		"htmlDateInZone": func(at any, zone string) string { return d.timeOf(at).In(location(zone)).Format(time.DateOnly) },
	}
	for name, letters := range map[string]string{"randAlphaNum": "ab", "randAlpha": "ab", "randAscii": "ab", "randNumeric": "12"} {
		all[name] = func(n int) string { return repeat(pick(d, name, letters[:1], letters[1:]), n) }
	}
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
		"genSignedCertWithKey"} {
		all[name] = func(...any) pair { return pick(d, name, pair{"first", "first"}, pair{"second", "second"}) }
	}
	for _, name := range []string{"genPrivateKey", "encryptAES", "bcrypt", "htpasswd"} {
		all[name] = func(...any) string { return pick(d, name, "first", "second") }
	}
	return all
}

// mostRepeated bounds a random text.
const mostRepeated = 1 << 16

func repeat(letter string, n int) string { return strings.Repeat(letter, min(max(n, 0), mostRepeated)) }

// now has two times that differ in each of their parts.
func (d draw) now() time.Time {
	return pick(d, "now", time.Date(2001, 1, 1, 1, 1, 1, 1, time.UTC), time.Date(2032, 10, 20, 20, 30, 40, 50, time.UTC))
}

// timeOf is the time that a value stands for, as the functions for dates take it.
func (d draw) timeOf(v any) time.Time {
	switch v := v.(type) {
	case time.Time:
		return v
	case *time.Time:
		return *v
	case int64:
		return time.Unix(v, 0)
	case int:
		return time.Unix(int64(v), 0)
	case int32:
		return time.Unix(int64(v), 0)
	default:
		return d.now()
	}
}

func location(zone string) *time.Location {
	if found, err := time.LoadLocation(zone); err == nil && zone != "Local" {
		return found
	}
	return time.UTC
}

func sortedKeys(all ...map[string]any) []string {
	var names []string
	for _, m := range all {
		names = append(names, slices.Sorted(maps.Keys(m))...)
	}
	return names
}

func sortedValues(m map[string]any) []any {
	all := []any{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all = append(all, m[key])
	}
	return all
}

// stable renders templates and refuses those that do not give the same text each time.
func stable(render func(template.FuncMap) (map[string]string, error)) (map[string]string, error) {
	with := func(other map[string]bool) (texts map[string]string, called map[string]bool, err error) {
		d := draw{other, map[string]bool{}}
		texts, err = render(d.functions())
		return texts, d.called, err
	}
	first, called, err := with(nil)
	if err != nil || len(called) == 0 {
		return first, err
	}
	second, _, err := with(called)
	if err != nil {
		return nil, err
	}
	name := differs(first, second)
	if name == "" {
		return first, nil
	}
	var guilty []string
	for _, function := range slices.Sorted(maps.Keys(called)) {
		texts, _, err := with(map[string]bool{function: true})
		if err != nil || texts[name] != first[name] {
			guilty = append(guilty, function)
		}
	}
	return nil, fmt.Errorf("template %s gives another text each time, by the function %s: set the values that make it not call "+
		"the function, such as the password, or the name of a Secret that exists", name, strings.Join(guilty, " and "))
}

// differs is the first template, by name, with different texts, "" for none.
func differs(a, b map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] != b[name] {
			return name
		}
	}
	return ""
}
