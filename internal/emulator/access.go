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

// assignments are all role assignments: of the subscription, and of the tenant.
func (t *transaction) assignments() []*entry {
	return slices.Concat(t.store.list(azure.SubscriptionID(t.options.Subscription), roleAssignments), t.store.list("", roleAssignments))
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
	for _, e := range t.store.list(azure.SubscriptionID(t.options.Subscription), k.Name) {
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
	if strings.EqualFold(r.kind.Name, permissionsName) {
		return nil // everybody may ask what they may do
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

// authorizeRoute asks for the right that a route names, at the subscription.
func (t *transaction) authorizeRoute(r *request, rt *route) error {
	if !t.options.AccessControl || rt.Permission == "" || r.principal == nil || r.principal.Owner {
		return nil
	}
	return t.demand(r, rt.Permission, azure.SubscriptionID(t.options.Subscription))
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

// authorizeLinks checks the right to join every resource that a write names: in
// its body, and not only as one of the fields that are Azure's own.
func (t *transaction) authorizeLinks(r *request, doc behaviour.Object) error {
	if !t.options.AccessControl || r.principal == nil || r.principal.Owner {
		return nil
	}
	sent := map[string]bool{}
	for _, ref := range references(r.id, r.body) {
		sent[ref.target] = true
	}
	for _, ref := range references(r.id, doc) {
		if !sent[ref.target] {
			continue
		}
		to := azure.ID(ref.target)
		k := t.kinds.of(to.Type())
		if k == nil || to.Subscription() == "" || k.Name == roleDefinitions {
			continue
		}
		join := k.Name + "/join/action"
		if strings.EqualFold(k.Name, "Microsoft.ManagedIdentity/userAssignedIdentities") {
			join = k.Name + "/assign/action"
		}
		if t.allowed(r.principal, join, to) {
			continue
		}
		return gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
			"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, it does not have permission to perform action(s) '%s' on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.",
			r.principal.ApplicationID, r.principal.ObjectID, t.actionOf(r), r.id, join, t.spelling(to, r.body))
	}
	return nil
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
