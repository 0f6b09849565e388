package rights

import (
	"slices"
	"strings"
)

// Permission is one entry of the permissions at a scope: Actions without NotActions, and the same for
// data. In all of them, * stands for any text.
type Permission struct {
	Actions        []string `json:"actions"`
	NotActions     []string `json:"notActions"`
	DataActions    []string `json:"dataActions"`
	NotDataActions []string `json:"notDataActions"`
}

// Allows reports whether the permission allows an action.
func (p Permission) Allows(action string) bool {
	return allows(p.Actions, p.NotActions, action)
}

// AllowsData reports whether the permission allows an action on data.
func (p Permission) AllowsData(action string) bool {
	return allows(p.DataActions, p.NotDataActions, action)
}

func allows(actions, not []string, action string) bool {
	matches := func(pattern string) bool { return match(strings.ToLower(pattern), strings.ToLower(action)) }
	return slices.ContainsFunc(actions, matches) && !slices.ContainsFunc(not, matches)
}

// Allowed reports whether any permission allows an action. NotActions of one permission do not limit
// another.
func Allowed(granted []Permission, action string) bool {
	return slices.ContainsFunc(granted, func(p Permission) bool { return p.Allows(action) })
}

// AllowedData is [Allowed] for an action on data.
func AllowedData(granted []Permission, action string) bool {
	return slices.ContainsFunc(granted, func(p Permission) bool { return p.AllowsData(action) })
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
