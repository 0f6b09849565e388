// Package parameter reads the parameters of StorageClasses and VolumeAttributesClasses by a table of their keys. Layer L1,
// pure.
package parameter

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/key/spelling"
)

// Key is one row of a table: a key that users write, and what its value does to a P. Letter case in keys does not matter.
type Key[P any] struct {
	Name string
	Read func(into *P, value string) error
	// Alias is another name of the key, "" for none.
	Alias string
	// Mutable says that a VolumeAttributesClass can set it.
	Mutable bool
}

func (k Key[P]) is(key string) bool {
	return strings.EqualFold(k.Name, key) || k.Alias != "" && strings.EqualFold(k.Alias, key)
}

// Error is a parameter that is not allowed.
type Error struct{ Key, Value, Allowed string }

func (e *Error) Error() string {
	return fmt.Sprintf("parameter %s: %q is not allowed: %s", e.Key, e.Value, e.Allowed)
}

// Read reads values by a table. The error is an [Error].
func Read[P any](into *P, table []Key[P], values map[string]string) error {
	read := map[string]string{} // the key as the user wrote it, by the name in the table
	for _, key := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(table, func(k Key[P]) bool { return k.is(key) })
		if i < 0 {
			known := names(table)
			return &Error{key, values[key], "the key is not known; known keys are " + strings.Join(known, ", ") +
				spelling.Hint(key, slices.Concat(known, aliases(table)), spelling.Loose(key))}
		}
		k := table[i]
		if other, twice := read[k.Name]; twice && values[other] != values[key] {
			return &Error{key, values[key], fmt.Sprintf("%s is also set, to %q", other, values[other])}
		}
		read[k.Name] = key
		if err := k.Read(into, values[key]); err != nil {
			return &Error{k.Name, values[key], err.Error()}
		}
	}
	return nil
}

func names[P any](table []Key[P]) []string {
	all := make([]string, len(table))
	for i, k := range table {
		all[i] = k.Name
	}
	return all
}

func aliases[P any](table []Key[P]) []string {
	var all []string
	for _, k := range table {
		if k.Alias != "" {
			all = append(all, k.Alias)
		}
	}
	return all
}

// Mutable returns the rows that a VolumeAttributesClass can set.
func Mutable[P any](table []Key[P]) []Key[P] {
	return slices.DeleteFunc(slices.Clone(table), func(k Key[P]) bool { return !k.Mutable })
}

// Text reads any text.
func Text[P any](field func(*P) *string) func(*P, string) error {
	return func(p *P, value string) error {
		*field(p) = value
		return nil
	}
}

// Ignored reads a key that has no effect.
func Ignored[P any](*P, string) error { return nil }

// OneOf reads one of the allowed texts, or nothing.
func OneOf[P any](field func(*P) *string, allowed ...string) func(*P, string) error {
	return func(p *P, value string) error {
		if value != "" && !slices.Contains(allowed, value) {
			return fmt.Errorf("want %s", strings.Join(allowed, ", "))
		}
		*field(p) = value
		return nil
	}
}

// OneOfFold is OneOf where letter case does not matter. The field gets the allowed text.
func OneOfFold[P any](field func(*P) *string, allowed ...string) func(*P, string) error {
	read := OneOf(field, allowed...)
	return func(p *P, value string) error {
		if i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, value) }); i >= 0 {
			value = allowed[i]
		}
		return read(p, value)
	}
}

// Number reads a whole number from least on.
func Number[P any](field func(*P) **int64, least int64) func(*P, string) error {
	return func(p *P, value string) error {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 32)
		if err != nil || n < least {
			return fmt.Errorf("want a whole number from %d on", least)
		}
		*field(p) = &n
		return nil
	}
}

// Boolean reads true or false, in the spellings of [strconv.ParseBool].
func Boolean[P any](field func(*P) **bool) func(*P, string) error {
	return func(p *P, value string) error {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		*field(p) = &b
		return nil
	}
}

// Lenient reads true or false in any letter case. Any other value leaves the default: classes have such values, and the driver
// that they were written for takes them.
func Lenient[P any](field func(*P) **bool) func(*P, string) error {
	return func(p *P, value string) error {
		for _, b := range []bool{true, false} {
			if strings.EqualFold(value, strconv.FormatBool(b)) {
				*field(p) = &b
			}
		}
		return nil
	}
}

// Pairs splits KEY=VALUE pairs with a separator, "" for a comma. An element that is no pair is returned as bad.
func Pairs(text, separator string) (pairs map[string]string, bad string) {
	if separator == "" {
		separator = ","
	}
	pairs = map[string]string{}
	for pair := range strings.SplitSeq(text, separator) {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, pair
		}
		pairs[key] = strings.TrimSpace(value)
	}
	return pairs, ""
}

// Lookup returns a value by a key in any letter case.
func Lookup(values map[string]string, key string) string {
	if v, ok := values[key]; ok {
		return v
	}
	for k, v := range values {
		if strings.EqualFold(k, key) {
			return v
		}
	}
	return ""
}

// Known returns the values that have their keys in a table.
func Known[P any](table []Key[P], values map[string]string) map[string]string {
	known := map[string]string{}
	for key, value := range values {
		if slices.ContainsFunc(table, func(k Key[P]) bool { return k.is(key) }) {
			known[key] = value
		}
	}
	return known
}
