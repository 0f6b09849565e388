package emulator

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Types that access control reads.
const (
	roleAssignments = "Microsoft.Authorization/roleAssignments"
	roleDefinitions = "Microsoft.Authorization/roleDefinitions"
	permissionsName = "Microsoft.Authorization/permissions"
)

// permission is one entry of a role definition's permissions.
type permission struct{ actions, notActions []string }

func (p permission) allows(action string) bool {
	return anyMatches(p.actions, action) && !anyMatches(p.notActions, action)
}

func anyMatches(patterns []string, action string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard(strings.ToLower(p), strings.ToLower(action)) })
}

// wildcard matches a pattern in which * stands for anything.
func wildcard(pattern, s string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		middle, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(s, middle)
		}
		i := strings.Index(s, middle)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(middle):], after
	}
}

// permissions are what the role assignments give a principal at a scope.
func (t *transaction) permissions(p *behaviour.Principal, scope azure.ID) []permission {
	if p.Owner {
		return []permission{{actions: []string{"*"}}}
	}
	var all []permission
	for _, e := range t.assignments() {
		doc := t.store.doc(e)
		holder := behaviour.Text(doc, "properties.principalId")
		if !strings.EqualFold(holder, p.ObjectID) && !slices.ContainsFunc(p.Groups, func(g string) bool { return strings.EqualFold(g, holder) }) {
			continue
		}
		if at := e.id.Parent(); at != "" && !scope.Under(at) {
			continue
		}
		definition := t.lookup(azure.ID(behaviour.Text(doc, "properties.roleDefinitionId")))
		for _, granted := range behaviour.Objects(definition, "properties.permissions") {
			all = append(all, permission{behaviour.Texts(granted, "actions"), behaviour.Texts(granted, "notActions")})
		}
	}
	return all
}

// assignments are all role assignments: of the subscriptions, and of the tenant.
func (t *transaction) assignments() []*entry { return t.everywhere(roleAssignments) }

// everywhere are the resources of a type in all subscriptions, and outside of them.
func (t *transaction) everywhere(fullType string) []*entry {
	all := t.store.list("", fullType)
	for _, s := range t.Subscriptions() {
		all = slices.Concat(all, t.store.list(azure.SubscriptionID(s), fullType))
	}
	return all
}

// lookup finds a document that is stored, or that its type makes up. Role
// definitions are the same ones at every scope.
func (t *transaction) lookup(id azure.ID) behaviour.Object {
	if doc, ok := t.Get(id); ok {
		return doc
	}
	k := t.kinds.of(id.Type())
	if k == nil {
		return nil
	}
	if k.Find != nil {
		doc, err := k.Find(&behaviour.Call{World: t, Verb: behaviour.Get, ID: id, Type: k.Type})
		if err == nil && doc != nil {
			return doc
		}
	}
	for _, e := range t.everywhere(k.Name) {
		if strings.EqualFold(e.id.Name(), id.Name()) {
			return t.store.doc(e)
		}
	}
	return nil
}

func (t *transaction) allowed(p *behaviour.Principal, action string, scope azure.ID) bool {
	return slices.ContainsFunc(t.permissions(p, scope), func(granted permission) bool { return granted.allows(action) })
}

// Allowed implements [behaviour.World].
func (t *transaction) Allowed(p *behaviour.Principal, action string, scope azure.ID) bool {
	return !t.options.AccessControl || p == nil || p.Owner || t.allowed(p, action, scope)
}

// authorize refuses a request that the caller has no right to make.
func (t *transaction) authorize(r *request) error {
	if !t.options.AccessControl || r.principal == nil || r.principal.Owner {
		return nil
	}
	return t.demand(r, t.actionOf(r), r.id)
}

func (t *transaction) demand(r *request, action string, scope azure.ID) error {
	if t.allowed(r.principal, action, scope) {
		return nil
	}
	return gateway(http.StatusForbidden, "AuthorizationFailed",
		"The client '%s' with object id '%s' does not have authorization to perform action '%s' over scope '%s' or the scope is invalid. If access was recently granted, please refresh your credentials.",
		r.principal.ApplicationID, r.principal.ObjectID, action, scope)
}

// authorizeRoute asks for the right that a route names, at its subscription.
func (t *transaction) authorizeRoute(r *request, rt *route, subscription string) error {
	if !t.options.AccessControl || rt.Permission == "" || r.principal == nil || r.principal.Owner {
		return nil
	}
	return t.demand(r, rt.Permission, azure.SubscriptionID(subscription))
}

// actionOf is the permission that a request needs.
func (t *transaction) actionOf(r *request) string {
	switch r.method {
	case http.MethodGet, http.MethodHead:
		if r.action != "" {
			return r.kind.Name + "/" + r.action + "/read"
		}
		return r.kind.Name + "/read"
	case http.MethodDelete:
		return r.kind.Name + "/delete"
	case http.MethodPost:
		if a, ok := findAction(r.kind, r.action); ok && a.Permission != "" {
			return a.Permission
		}
		return r.kind.Name + "/" + r.action + "/action"
	}
	return r.kind.Name + "/write"
}

// permissionsType lists what the caller may do at a scope.
func (e *Emulator) permissionsType() behaviour.Type {
	return behaviour.Type{
		Name: permissionsName, Style: behaviour.Plain("Microsoft.Authorization"), ReadOnly: true,
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			t, ok := c.World.(*transaction)
			if !ok || c.Principal == nil {
				return nil, nil
			}
			items := []behaviour.Object{}
			for _, p := range t.permissions(c.Principal, c.ID) {
				items = append(items, behaviour.Object{"actions": list(p.actions), "notActions": list(p.notActions), "dataActions": []any{}, "notDataActions": []any{}})
			}
			return items, nil
		},
	}
}

func list(texts []string) []any {
	l := make([]any, len(texts))
	for i, s := range texts {
		l[i] = s
	}
	return l
}
