package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"kaz/internal/localazure/behaviour"
)

// operators compare the value of a field, nil for none, with the value of a condition. Texts are compared without letter case.
var operators = map[string]func(value, target any) bool{
	"equals": equals, "notEquals": unless(equals),
	"like": like, "notLike": unless(like),
	"in": in, "notIn": unless(in),
	"contains": contains, "notContains": unless(contains),
	"containsKey": containsKey, "notContainsKey": unless(containsKey),
	"match": match, "notMatch": unless(match),
	"matchInsensitively": insensitively, "notMatchInsensitively": unless(insensitively),
	"exists": func(value, target any) bool {
		return strings.EqualFold(plain(target), strconv.FormatBool(value != nil))
	},
	"less":            order(func(c int) bool { return c < 0 }),
	"lessOrEquals":    order(func(c int) bool { return c <= 0 }),
	"greater":         order(func(c int) bool { return c > 0 }),
	"greaterOrEquals": order(func(c int) bool { return c >= 0 }),
}

func unless(compare func(value, target any) bool) func(value, target any) bool {
	return func(value, target any) bool { return !compare(value, target) }
}

// plain returns a value as text: true and "true" are the same, as are 1 and "1".
func plain(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

func equals(value, target any) bool {
	return value != nil && strings.EqualFold(plain(value), plain(target))
}

// like compares with a text that can have one *.
func like(value, target any) bool {
	text := strings.ToLower(plain(value))
	before, after, wild := strings.Cut(strings.ToLower(plain(target)), "*")
	if !wild {
		return equals(value, target)
	}
	return value != nil && len(text) >= len(before)+len(after) && strings.HasPrefix(text, before) && strings.HasSuffix(text, after)
}

func in(value, target any) bool {
	list, _ := target.([]any)
	return slices.ContainsFunc(list, func(one any) bool { return equals(value, one) })
}

func contains(value, target any) bool {
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return equals(one, target) })
	}
	return value != nil && strings.Contains(strings.ToLower(plain(value)), strings.ToLower(plain(target)))
}

func containsKey(value, target any) bool {
	object, _ := value.(behaviour.Object)
	for key := range object {
		if strings.EqualFold(key, plain(target)) {
			return true
		}
	}
	return false
}

// match compares with a pattern: # is a digit, ? a letter, . any character, and others stand for themselves.
func match(value, target any) bool {
	text, pattern := []rune(plain(value)), []rune(plain(target))
	if value == nil || len(text) != len(pattern) {
		return false
	}
	for i, r := range text {
		switch p := pattern[i]; {
		case p == '#' && !unicode.IsDigit(r), p == '?' && !unicode.IsLetter(r), !strings.ContainsRune("#?.", p) && p != r:
			return false
		}
	}
	return true
}

func insensitively(value, target any) bool {
	if value == nil {
		return false
	}
	return match(strings.ToLower(plain(value)), strings.ToLower(plain(target)))
}

// order returns the operator for numbers, and for texts if one of the values is no number.
func order(holds func(compared int) bool) func(value, target any) bool {
	return func(value, target any) bool {
		if value == nil {
			return false
		}
		a, errA := strconv.ParseFloat(plain(value), 64)
		b, errB := strconv.ParseFloat(plain(target), 64)
		switch {
		case errA != nil || errB != nil:
			return holds(strings.Compare(strings.ToLower(plain(value)), strings.ToLower(plain(target))))
		case a < b:
			return holds(-1)
		case a > b:
			return holds(1)
		}
		return holds(0)
	}
}
