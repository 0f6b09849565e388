package rights

import (
	"slices"
	"strings"
)

// Permission is one entry of what Azure says that somebody may do at a scope: the
// actions, and not those of them that NotActions names. In both, * stands for anything.
type Permission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// Allows reports whether the permission gives the right to an action.
func (p Permission) Allows(action string) bool {
	matches := func(pattern string) bool { return match(strings.ToLower(pattern), strings.ToLower(action)) }
	return slices.ContainsFunc(p.Actions, matches) && !slices.ContainsFunc(p.NotActions, matches)
}

// Allowed reports whether any of the permissions gives the right to an action. What one
// leaves out another may give.
func Allowed(granted []Permission, action string) bool {
	return slices.ContainsFunc(granted, func(p Permission) bool { return p.Allows(action) })
}

// Missing are those needs that the permissions do not cover. They are of one scope, as
// the permissions are.
func Missing(needs []Need, granted []Permission) []Need {
	var missing []Need
	for _, n := range needs {
		if !Allowed(granted, n.Action) {
			missing = append(missing, n)
		}
	}
	return missing
}

// match compares with a pattern in which * stands for any text, none included.
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
