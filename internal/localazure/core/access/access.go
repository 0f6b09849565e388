// Package access decides what a principal may do in the local Azure: by the role
// assignments that are stored there. Layer L2: azure, behaviour, document, kind, store.
package access

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/store"
)

// Types that access control reads.
const (
	roleAssignments = "Microsoft.Authorization/roleAssignments"
	roleDefinitions = "Microsoft.Authorization/roleDefinitions"
	denyAssignments = "Microsoft.Authorization/denyAssignments"
)

// Control is access control in one transaction.
type Control struct {
	// Enforced is false for an Azure in which every principal may do everything.
	Enforced bool
	// SeveralTenants says that subscriptions trust different tenants.
	SeveralTenants bool
	Kinds          kind.Table
	Docs           *store.Transaction
	World          behaviour.World
}

// Permission is one entry of a role definition's permissions.
type Permission struct{ Actions, NotActions, DataActions, NotDataActions []string }

func (p Permission) allows(action string) bool {
	return anyMatches(p.Actions, action) && !anyMatches(p.NotActions, action)
}

func (p Permission) allowsData(action string) bool {
	return anyMatches(p.DataActions, action) && !anyMatches(p.NotDataActions, action)
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

// Permissions are what the role assignments give a principal at a scope.
func (a *Control) Permissions(p *behaviour.Principal, scope azure.ID) []Permission {
	if p.Owner {
		return []Permission{{Actions: []string{"*"}}}
	}
	return a.granted(p, func(at azure.ID) bool { return at == "" || scope.Under(at) })
}

// granted are the permissions of the role assignments at some scopes.
func (a *Control) granted(p *behaviour.Principal, is func(at azure.ID) bool) []Permission {
	var all []Permission
	for _, e := range a.everywhere(roleAssignments) {
		doc := a.Docs.Doc(e)
		holder := behaviour.Text(doc, "properties.principalId")
		if !strings.EqualFold(holder, p.ObjectID) &&
			!slices.ContainsFunc(p.Groups, func(g string) bool { return strings.EqualFold(g, holder) }) {
			continue
		}
		if !is(e.ID.Parent()) {
			continue
		}
		definition := a.lookup(azure.ID(behaviour.Text(doc, "properties.roleDefinitionId")))
		for _, granted := range behaviour.Objects(definition, "properties.permissions") {
			all = append(all, Permission{behaviour.Texts(granted, "actions"), behaviour.Texts(granted, "notActions"),
				behaviour.Texts(granted, "dataActions"), behaviour.Texts(granted, "notDataActions")})
		}
	}
	return all
}

// everywhere are the resources of a type in all subscriptions, and outside of them.
func (a *Control) everywhere(fullType string) []*store.Entry {
	all := a.Docs.Entries("", fullType)
	for _, s := range a.World.Subscriptions() {
		all = slices.Concat(all, a.Docs.Entries(azure.SubscriptionID(s), fullType))
	}
	return all
}

// lookup finds a document that is stored, or that its type makes up. Role definitions
// are the same at every scope.
func (a *Control) lookup(id azure.ID) behaviour.Object {
	if doc, ok := a.Docs.Get(id); ok {
		return doc
	}
	k := a.Kinds.Of(id.Type())
	if k == nil {
		return nil
	}
	if k.Find != nil {
		doc, err := k.Find(&behaviour.Call{World: a.World, Verb: behaviour.Get, ID: id, Type: k.Type})
		if err == nil && doc != nil {
			return doc
		}
	}
	for _, e := range a.everywhere(k.Name) {
		if strings.EqualFold(e.ID.Name(), id.Name()) {
			return a.Docs.Doc(e)
		}
	}
	return nil
}

// denies finds a deny assignment that keeps a principal from an action. It counts for owners, too.
func (a *Control) denies(p *behaviour.Principal, action string, scope azure.ID) (at *store.Entry, denied bool) {
	if p == nil || p.Azure {
		return nil, false
	}
	for _, e := range a.everywhere(denyAssignments) {
		doc, where := a.Docs.Doc(e), e.ID.Parent()
		if !scope.Equal(where) && (behaviour.At(doc, "properties.doNotApplyToChildScopes") == true || !scope.Under(where)) {
			continue
		}
		if slices.ContainsFunc(behaviour.Objects(doc, "properties.excludePrincipals"), func(o behaviour.Object) bool {
			return strings.EqualFold(behaviour.Text(o, "id"), p.ObjectID) || slices.Contains(p.Groups, behaviour.Text(o, "id"))
		}) {
			continue
		}
		for _, refused := range behaviour.Objects(doc, "properties.permissions") {
			covered := Permission{Actions: behaviour.Texts(refused, "actions"), NotActions: behaviour.Texts(refused, "notActions")}
			if covered.allows(action) {
				return e, true
			}
		}
	}
	return nil, false
}

// unlimited reports whether a principal needs no role assignment. A request without a principal has no rights.
func (a *Control) unlimited(p *behaviour.Principal) bool { return !a.Enforced || p != nil && p.Owner }

// Allowed implements [behaviour.World].
func (a *Control) Allowed(p *behaviour.Principal, action string, scope azure.ID) bool {
	if _, denied := a.denies(p, action, scope); denied {
		return false
	}
	return a.unlimited(p) ||
		p != nil && slices.ContainsFunc(a.Permissions(p, scope), func(granted Permission) bool { return granted.allows(action) })
}

// AllowedData implements [behaviour.World].
func (a *Control) AllowedData(p *behaviour.Principal, action string, scope azure.ID) bool {
	return a.unlimited(p) ||
		p != nil && slices.ContainsFunc(a.Permissions(p, scope), func(granted Permission) bool { return granted.allowsData(action) })
}

// AllowedBelow reports whether a role assignment below a scope lets a principal do an action there. A list of the
// scope then has what the principal may read.
func (a *Control) AllowedBelow(p *behaviour.Principal, action string, scope azure.ID) bool {
	if p == nil {
		return false
	}
	below := a.granted(p, func(at azure.ID) bool { return at != "" && at.Under(scope) })
	return slices.ContainsFunc(below, func(granted Permission) bool { return granted.allows(action) })
}

// Authorize refuses a request for which its caller has no right.
func (a *Control) Authorize(p *behaviour.Principal, action string, scope azure.ID) error {
	if at, denied := a.denies(p, action, scope); denied {
		return behaviour.Gateway(http.StatusForbidden, "DenyAssignmentAuthorizationFailed",
			"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, the access is denied "+
				"because of the deny assignment with name '%s' and Id '%s' at scope '%s'.", p.ApplicationID, p.ObjectID, action, scope,
			behaviour.Text(a.Docs.Doc(at), "properties.denyAssignmentName"), at.ID.Name(), at.ID.Parent())
	}
	if a.Allowed(p, action, scope) {
		return nil
	}
	application, object := p.IDs()
	return behaviour.Gateway(http.StatusForbidden, "AuthorizationFailed",
		"The client '%s' with object id '%s' does not have authorization to perform action '%s' over scope '%s' or the scope is "+
			"invalid. If access was recently granted, please refresh your credentials.",
		application, object, action, scope)
}

// ActionOf is the action that a request needs the right to. Name is the name of the POST
// action or of the view, "" for a request to the resource itself.
func ActionOf(method string, k *kind.Kind, name string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		if name != "" {
			return behaviour.TypeInActions(k.Name) + "/" + name + "/read"
		}
		return behaviour.TypeInActions(k.Name) + "/read"
	case http.MethodDelete:
		return behaviour.TypeInActions(k.Name) + "/delete"
	case http.MethodPost:
		if a, _, ok := k.Action(name); ok && a.Permission != "" {
			return a.Permission
		}
		return behaviour.TypeInActions(k.Name) + "/" + name + "/action"
	}
	return behaviour.TypeInActions(k.Name) + "/write"
}
