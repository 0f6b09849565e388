package emulator

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// request is an HTTP request on its way through.
type request struct {
	http      *http.Request
	method    string
	version   string // api-version
	query     url.Values
	host      string // scheme and host for absolute URLs
	body      behaviour.Object
	principal *behaviour.Principal
	auxiliary []*behaviour.Principal // who the caller is in other tenants
	challenge string                 // WWW-Authenticate of a refusal

	kind   *kind
	id     azure.ID // of the resource; for a list the scope that is listed
	list   bool
	action string // POST action, or GET view

	polled         *behaviour.Operation // the request is to its URL
	wait           time.Duration        // before the reply
	operationFault *behaviour.Error     // the operation is to fail with it
	stale          bool                 // the reply is to show the state before
	cut            bool                 // there is to be no reply

	always  http.Header // headers of any reply
	reply   reply
	refused string // error code of the reply
	// byGateway says that ARM answered without asking a provider.
	byGateway bool
	bytesIn   int
}

// reply is what goes back.
type reply struct {
	status int
	body   any // JSON value, or json.RawMessage; nil for none
	header http.Header
}

func (r *request) set(name, value string) { r.headers().Set(name, value) }

func (r *request) headers() http.Header {
	if r.reply.header == nil {
		r.reply.header = http.Header{}
	}
	return r.reply.header
}

// keep sets a header that is sent whatever the reply becomes.
func (r *request) keep(name, value string) {
	if r.always == nil {
		r.always = http.Header{}
	}
	r.always.Set(name, value)
}

// call is the behaviour's view of the request.
func (r *request) call(t *transaction) *behaviour.Call {
	return &behaviour.Call{World: t, ID: r.id, Type: r.kind.Type, Body: r.body, Query: r.query, Principal: r.principal,
		Host: r.host, Action: r.action, Notes: behaviour.Object{}}
}

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-[A-Za-z0-9.]+)?$`)

// segments cuts a path; a trailing slash is legal, an empty segment is not.
func segments(path string) ([]string, bool) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil, true
	}
	parts := strings.Split(path, "/")
	return parts, !slices.Contains(parts, "")
}

// address is what a path means by the ARM grammar.
type address struct {
	scope     azure.ID // before the last providers section
	namespace string
	types     []string
	names     []string // one less than types for a list or an action
}

func parseAddress(parts []string) (address, bool) {
	var a address
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

// address finds the resource type and id that a path is about.
func (t *transaction) address(r *request, path string) error {
	parts, ok := segments(path)
	if !ok {
		return gateway(400, "InvalidRequestUri", "The request URI is invalid: %s has an empty segment.", path)
	}
	if err := t.checkSubscription(parts); err != nil {
		return err
	}
	if len(parts) > 0 && len(parts) <= 4 && strings.EqualFold(parts[0], "subscriptions") {
		if done := t.groupAddress(r, parts); done {
			return nil
		}
	}
	a, ok := parseAddress(parts)
	if !ok {
		return gateway(404, "NotFound", "The request path %q is not known to this server.", path)
	}
	return t.resourceAddress(r, a)
}

func (t *transaction) checkSubscription(parts []string) error {
	if len(parts) > 1 && strings.EqualFold(parts[0], "subscriptions") && t.TenantOf(parts[1]) == "" {
		return gateway(404, "SubscriptionNotFound", "The subscription '%s' could not be found.", parts[1])
	}
	return nil
}

// groupAddress understands /subscriptions/s/resourceGroups[/g].
func (t *transaction) groupAddress(r *request, parts []string) bool {
	if len(parts) < 3 || !strings.EqualFold(parts[2], "resourceGroups") {
		return false
	}
	r.kind = t.groups
	if len(parts) == 3 {
		r.id, r.list = azure.SubscriptionID(parts[1]), true
		return true
	}
	r.id = t.canonical(azure.GroupID(parts[1], parts[3]))
	return true
}

func (t *transaction) resourceAddress(r *request, a address) error {
	full := a.namespace + "/" + strings.Join(a.types, "/")
	scope := t.canonicalScope(a.scope)
	if len(a.types) == len(a.names) {
		k := t.kinds.of(full)
		if k == nil {
			return t.unknownType(a, r.version)
		}
		r.kind, r.id = k, t.build(scope, k.Name, a.names)
		return checkName(r.id)
	}
	last := len(a.types) - 1
	if last > 0 {
		holder := t.kinds.of(a.namespace + "/" + strings.Join(a.types[:last], "/"))
		if holder != nil && t.isVerb(r.method, holder, a.types[last]) {
			r.kind, r.id, r.action = holder, t.build(scope, holder.Name, a.names), a.types[last]
			return checkName(r.id)
		}
	}
	k := t.kinds.of(full)
	if k == nil {
		return t.unknownType(a, r.version)
	}
	r.kind, r.list = k, true
	r.id = scope
	if last > 0 {
		r.id = t.build(scope, k.Name[:strings.LastIndexByte(k.Name, '/')], a.names)
		return checkName(r.id)
	}
	return nil
}

func checkName(id azure.ID) error {
	if _, err := azure.ParseID(string(id)); err != nil {
		return gateway(400, "InvalidResourceName", "The resource id is invalid: %v.", err)
	}
	return nil
}

// isVerb reports whether the last segment is an action or a view and not a type.
func (t *transaction) isVerb(method string, k *kind, name string) bool {
	if method == http.MethodPost {
		return true
	}
	return findView(k, name) != nil
}

func findView(k *kind, name string) func(*behaviour.Call) (any, error) {
	for n, v := range k.Views {
		if strings.EqualFold(n, name) {
			return v
		}
	}
	return nil
}

func (t *transaction) unknownType(a address, version string) error {
	if !t.kinds.namespace(a.namespace) {
		return gateway(404, "InvalidResourceNamespace", "The resource namespace '%s' is invalid.", a.namespace)
	}
	return gateway(404, "InvalidResourceType", "The resource type '%s' could not be found in the namespace '%s' for api version '%s'.",
		strings.Join(a.types, "/"), a.namespace, version)
}

// build makes an id in the spelling in which its parts were first seen.
func (t *transaction) build(scope azure.ID, fullType string, names []string) azure.ID {
	namespace, rest, _ := strings.Cut(fullType, "/")
	id := scope
	for i, segment := range strings.Split(rest, "/") {
		if i == 0 {
			id = id.Resource(namespace+"/"+segment, names[0])
		} else {
			id = id.Child(segment, names[i])
		}
		id = t.canonical(id)
	}
	return id
}

// canonical is the id in the spelling in which it is stored, if it is.
func (t *transaction) canonical(id azure.ID) azure.ID {
	if e := t.store.entries[id.Key()]; e != nil {
		return e.id
	}
	return id
}

// canonicalScope does so for a scope, whose keywords may be spelled in any case.
func (t *transaction) canonicalScope(scope azure.ID) azure.ID {
	if e := t.store.entries[scope.Key()]; e != nil {
		return e.id
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

// parseID makes the request that stands for a PUT of an id.
func (t *transaction) parseID(id azure.ID) (*request, error) {
	r := &request{method: http.MethodPut, query: url.Values{}, http: &http.Request{Header: http.Header{}}}
	if err := t.address(r, string(id)); err != nil {
		return nil, fmt.Errorf("apply %s: %w", id, err)
	}
	return r, nil
}
