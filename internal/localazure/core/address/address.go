// Package address finds the resource, the list or the action that a path of the
// resource manager means, by the grammar of ARM ids. Layer L2: azure, behaviour, kind.
package address

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
)

// Target is what a request is about.
type Target struct {
	Kind   *kind.Kind // nil for a path that is to no type
	ID     azure.ID   // of the resource; for a list the scope that is listed
	List   bool
	Action string // POST action, or GET view
	// Element is the name of an element in the list of a view, "" for the view.
	Element string
}

// Request is what the meaning of a path depends on.
type Request struct{ Method, Path, Version string }

// Resolver finds the targets of requests.
type Resolver struct {
	Kinds kind.Table
	// TenantOf is the tenant of a subscription, "" for a subscription that is not there.
	TenantOf func(subscription string) string
	// Stored returns the id of a stored resource as it is spelled there, "" for none.
	Stored func(id azure.ID) azure.ID
}

// Segments cuts a path. Empty segments do not count, as in Azure: clients send "//" where they join paths.
func Segments(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" })
}

// Subscription is the subscription that a path begins with, "" for none.
func Subscription(parts []string) string {
	if len(parts) < 2 || !strings.EqualFold(parts[0], "subscriptions") {
		return ""
	}
	return parts[1]
}

// Resolve returns the target of a request.
func (r Resolver) Resolve(q Request) (Target, error) {
	parts := Segments(q.Path)
	if err := r.CheckSubscription(Subscription(parts)); err != nil {
		return Target{}, err
	}
	if t, ok := r.group(q.Method, parts); ok {
		return t, nil
	}
	a, ok := parse(parts)
	if !ok {
		return Target{}, behaviour.Gateway(404, "NotFound", "The request path %q is not known to this server.", q.Path)
	}
	return r.resource(q, a)
}

// CheckSubscription refuses a subscription that is not there; "" is none.
func (r Resolver) CheckSubscription(name string) error {
	if name != "" && r.TenantOf(name) == "" {
		return behaviour.Gateway(404, "SubscriptionNotFound", "The subscription '%s' could not be found.", name)
	}
	return nil
}

// group understands /subscriptions/s/resourceGroups[/g[/action]].
func (r Resolver) group(method string, parts []string) (t Target, ok bool) {
	const list, one, action = 3, 4, 5
	if len(parts) < list || len(parts) > action || Subscription(parts) == "" || !strings.EqualFold(parts[2], "resourceGroups") {
		return t, false
	}
	t.Kind = r.Kinds.Of("Microsoft.Resources/resourceGroups")
	if len(parts) == action {
		if _, _, known := t.Kind.Action(parts[one]); !known || method != http.MethodPost {
			return t, false
		}
		t.Action = parts[one]
	}
	if len(parts) == list {
		t.ID, t.List = azure.SubscriptionID(parts[1]), true
		return t, true
	}
	t.ID = r.spelled(azure.GroupID(parts[1], parts[3]))
	return t, true
}

// parsed is a path by the ARM grammar.
type parsed struct {
	scope     azure.ID // before the last providers section
	namespace string
	types     []string
	names     []string // as many as types, less the last one for a list or an action
}

func parse(parts []string) (parsed, bool) {
	var a parsed
	last := -1
	for i, p := range parts {
		if strings.EqualFold(p, "providers") && i%2 == 0 {
			last = i
		}
	}
	if last < 0 {
		return a, false
	}
	if last > 0 {
		a.scope = azure.ID("/" + strings.Join(parts[:last], "/"))
	}
	rest := parts[last+1:]
	if len(rest) < 2 {
		return a, false
	}
	a.namespace = rest[0]
	for i, p := range rest[1:] {
		if i%2 == 0 {
			a.types = append(a.types, p)
		} else {
			a.names = append(a.names, p)
		}
	}
	return a, true
}

func (r Resolver) resource(q Request, a parsed) (Target, error) {
	full := a.namespace + "/" + strings.Join(a.types, "/")
	scope := r.scope(a.scope)
	k := r.Kinds.Of(full)
	if len(a.types) == len(a.names) {
		if k == nil {
			return r.element(q, a, scope)
		}
		t := Target{Kind: k, ID: r.build(scope, k.Name, a.names)}
		return t, checkName(t.ID)
	}
	last := len(a.types) - 1
	if last > 0 {
		holder := r.Kinds.Of(a.namespace + "/" + strings.Join(a.types[:last], "/"))
		if holder != nil && holder.Star && a.names[last-1] == "*" && q.Method == http.MethodPost {
			t := Target{Kind: holder.Parent, ID: r.build(scope, holder.Parent.Name, a.names[:last-1]), Action: a.types[last]}
			return t, checkName(t.ID)
		}
		if holder != nil && (q.Method == http.MethodPost || holder.View(a.types[last]) != nil) {
			t := Target{Kind: holder, ID: r.build(scope, holder.Name, a.names), Action: a.types[last]}
			return t, checkName(t.ID)
		}
	}
	if k == nil {
		return Target{}, r.unknownType(a, q.Version)
	}
	t := Target{Kind: k, ID: scope, List: true}
	if last > 0 {
		t.ID = r.build(scope, k.Name[:strings.LastIndexByte(k.Name, '/')], a.names)
		return t, checkName(t.ID)
	}
	return t, nil
}

// element understands a path below a view, such as .../privateLinkResources/blob: an element of its list.
func (r Resolver) element(q Request, a parsed, scope azure.ID) (Target, error) {
	last := len(a.types) - 1
	if last > 0 && (q.Method == http.MethodGet || q.Method == http.MethodHead) {
		holder := r.Kinds.Of(a.namespace + "/" + strings.Join(a.types[:last], "/"))
		if holder != nil && holder.View(a.types[last]) != nil {
			t := Target{Kind: holder, ID: r.build(scope, holder.Name, a.names[:last]), Action: a.types[last], Element: a.names[last]}
			return t, checkName(t.ID)
		}
	}
	return Target{}, r.unknownType(a, q.Version)
}

func checkName(id azure.ID) error {
	if _, err := azure.ParseID(string(id)); err != nil {
		return behaviour.Gateway(400, "InvalidResourceName", "The resource id is invalid: %v.", err)
	}
	return nil
}

func (r Resolver) unknownType(a parsed, version string) error {
	if !r.Kinds.Namespace(a.namespace) {
		return behaviour.UnknownNamespace(a.namespace)
	}
	return behaviour.UnknownType(a.namespace, strings.Join(a.types, "/"), version)
}

// build makes an id in the spelling in which its parts were first seen.
func (r Resolver) build(scope azure.ID, fullType string, names []string) azure.ID {
	namespace, rest, _ := strings.Cut(fullType, "/")
	id := scope
	for i, segment := range strings.Split(rest, "/") {
		if i == 0 {
			id = id.Resource(namespace+"/"+segment, names[0])
		} else {
			id = id.Child(segment, names[i])
		}
		id = r.spelled(id)
	}
	return id
}

// spelled is the id in the spelling in which it is stored, if it is.
func (r Resolver) spelled(id azure.ID) azure.ID {
	if stored := r.Stored(id); stored != "" {
		return stored
	}
	return id
}

// scope is a scope in the spelling in which it is stored, or with its keywords in their
// usual spelling.
func (r Resolver) scope(scope azure.ID) azure.ID {
	if stored := r.Stored(scope); stored != "" {
		return stored
	}
	subscription, group := scope.Subscription(), scope.Group()
	switch {
	case scope == "":
		return ""
	case group != "" && scope.Is("Microsoft.Resources/resourceGroups"):
		return azure.GroupID(subscription, group)
	case subscription != "" && scope.Is("Microsoft.Resources/subscriptions"):
		return azure.SubscriptionID(subscription)
	}
	return scope
}
