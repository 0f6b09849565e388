package registry

import (
	"net/url"
	"slices"
	"strings"

	"kaz/internal/emulator/behaviour"
)

// access is what may be done with a repository, or with the registry's catalogue.
type access struct {
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Actions []string `json:"actions"`
}

// Actions with repositories.
const (
	pull   = "pull"
	push   = "push"
	remove = "delete"
)

// holder is somebody who has proved who they are, or nobody.
type holder struct {
	name      string
	admin     bool
	principal *behaviour.Principal
}

// may are the actions that a holder has a right to.
func (s *Service) may(h holder, a account) []string {
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

// grant is the part of what was asked for that somebody may do.
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

// parseScopes reads scopes such as "repository:a/b:pull,push", several to a value.
// What is none it leaves out.
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

// needs is what a request to a registry asks for.
type needs struct {
	access
	repository, reference string
	part                  string // "manifests", "blobs", "uploads", "tags", "referrers", "_catalog", "" for the base
}

// permits reports whether what was granted is enough.
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
