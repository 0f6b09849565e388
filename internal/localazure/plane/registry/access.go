package registry

import (
	"net/url"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// access is the allowed actions with a repository, or with the registry's catalogue.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// The actions with repositories.
const (
	pull   = "pull"
	push   = "push"
	remove = "delete"
)

// caller is the authenticated client of a request. Its zero value is an anonymous client.
type caller struct {
	name      string
	admin     bool
	principal *behaviour.Principal
}

// allowedActions returns the actions that the caller is allowed to do.
func (s *Service) allowedActions(h caller, a account) []string {
	if h.admin {
		return []string{pull, push, remove}
	}
	if h.principal == nil {
		if a.anonymous {
			return []string{pull}
		}
		return nil
	}
	var all []string
	s.World(func(w behaviour.World) {
		for _, right := range []struct{ action, permission string }{
			{pull, "pull/read"}, {push, "push/write"}, {remove, "artifacts/delete"},
		} {
			if w.Allowed(h.principal, "Microsoft.ContainerRegistry/registries/"+right.permission, a.id) {
				all = append(all, right.action)
			}
		}
	})
	return all
}

// grant returns the part of the requested access that the caller is allowed.
func grant(asked []access, may []string) []access {
	var granted []access
	for _, a := range asked {
		var actions []string
		for _, action := range a.Actions {
			switch {
			case action == "*" && a.Type == "registry":
				if slices.Contains(may, pull) {
					actions = append(actions, action)
				}
			case action == "*":
				actions = append(actions, may...)
			case slices.Contains(may, action), slices.Contains(may, pull) && action == "metadata_read":
				actions = append(actions, action)
			}
		}
		if len(actions) > 0 {
			granted = append(granted, access{a.Type, a.Name, actions})
		}
	}
	return granted
}

// parseScopes parses scopes such as "repository:a/b:pull,push", several to a value. It ignores others.
func parseScopes(form url.Values) []access {
	var all []access
	for _, value := range form["scope"] {
		for scope := range strings.FieldsSeq(value) {
			kind, rest, _ := strings.Cut(scope, ":")
			last := strings.LastIndexByte(rest, ':')
			if last <= 0 || kind != "repository" && kind != "registry" {
				continue
			}
			all = append(all, access{kind, rest[:last], strings.Split(rest[last+1:], ",")})
		}
	}
	return all
}

// needs is the access that a request to a registry needs.
type needs struct {
	access
	repository, reference string
	part                  string // "manifests", "blobs", "uploads", "tags", "referrers", "_catalog", "" for the base
}

// permits reports whether the granted access is enough.
func (n needs) permits(granted []access) bool {
	for _, action := range n.Actions {
		if !slices.ContainsFunc(granted, func(a access) bool {
			return a.Type == n.Type && a.Name == n.Name && (slices.Contains(a.Actions, action) || slices.Contains(a.Actions, "*"))
		}) {
			return false
		}
	}
	return true
}

func (n needs) scope() string {
	if n.Type == "" {
		return ""
	}
	return n.Type + ":" + n.Name + ":" + strings.Join(n.Actions, ",")
}
