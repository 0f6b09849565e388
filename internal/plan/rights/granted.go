package rights

import (
	"slices"
	"strings"
)

// Permission is one entry of the permissions at a scope: Actions without NotActions. In both, *
// stands for any text.
type Permission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// Allows reports whether the permission allows an action.
func (p Permission) Allows(action string) bool {
	matches := func(pattern string) bool { return match(strings.ToLower(pattern), strings.ToLower(action)) }
	return slices.ContainsFunc(p.Actions, matches) && !slices.ContainsFunc(p.NotActions, matches)
}

// Allowed reports whether any permission allows an action. NotActions of one permission do not limit
// another.
func Allowed(granted []Permission, action string) bool {
	return slices.ContainsFunc(granted, func(p Permission) bool { return p.Allows(action) })
}

// Missing returns the needs that the permissions do not cover. Needs and permissions have the same
// scope.
func Missing(needs []Need, granted []Permission) []Need {
	var missing []Need
	for _, n := range needs {
		if !Allowed(granted, n.Action) {
			missing = append(missing, n)
		}
	}
	return missing
}

// match reports whether a text matches a pattern in which * stands for any text, including none.
func match(pattern, text string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == text
	}
	text, fits := strings.CutPrefix(text, first)
	for fits {
		middle, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(text, middle)
		}
		var found bool
		if _, text, found = strings.Cut(text, middle); !found {
			return false
		}
		rest = after
	}
	return false
}
