package arm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kaz/internal/arm/budget"
	"kaz/internal/arm/types"
	"kaz/internal/azure"
)

// call is a request to send, and what it is about.
type call struct {
	method string
	url    *url.URL
	body   []byte
	header http.Header
	// document demands a JSON object in the answer: front ends of Azure sometimes answer a read with success and an
	// empty body.
	document bool
	// unseen says that the caller does not need the answer of a write.
	unseen bool
	// once says that the request is not sent again if it fails.
	once bool
	// additive says that the request, like a POST, is not sent again if Azure may have seen it.
	additive bool
	// patience is how long the pages of a list wait in all because Azure throttles.
	patience time.Duration

	op      string // its name in errors
	id      azure.ID
	spelled string         // the full type as it was asked for
	subject budget.Subject // what budget and metrics count it under
	// correlation ties together the requests of one call of the client in Azure's logs.
	correlation string
}

// builder builds requests from what a caller wants.
type builder struct {
	endpoint *url.URL
	versions versionTable
	types    types.Index
}

// reply is an answer of Azure, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// resourceCall is a request for the resource id, or for an action of it.
func (b *builder) resourceCall(method string, id azure.ID, action string) (call, error) {
	t, err := typeOf(id)
	if err != nil {
		return call{}, err
	}
	path := string(id)
	op := method
	if action != "" {
		path += "/" + action
		op += " " + action
	}
	return b.call(method, op, path, t, id)
}

// typeOf is the type that decides the api-version. Beside well-formed ids it takes
// /subscriptions/S/providers/NAMESPACE, which names a resource provider.
func typeOf(id azure.ID) (string, error) {
	scope, namespace, ok := cutProvider(string(id))
	if ok && (scope == "" || azure.ID(scope).Is("Microsoft.Resources/subscriptions")) && namespace != "" {
		return "Microsoft.Resources/subscriptions/providers", nil
	}
	if _, err := azure.ParseID(string(id)); err != nil {
		// A read of a part without a name, such as VM/instanceView, follows the grammar except for its last segment.
		i := strings.LastIndexByte(string(id), '/')
		if i <= 0 || strings.HasSuffix(string(id), "/") {
			return "", err
		}
		if _, parentErr := azure.ParseID(string(id[:i])); parentErr != nil {
			return "", err
		}
		return id[:i].Type() + string(id[i:]), nil
	}
	return id.Type(), nil
}

// cutProvider cuts SCOPE/providers/NAMESPACE.
func cutProvider(id string) (scope, namespace string, ok bool) {
	i := strings.LastIndex(strings.ToLower(id), "/providers/")
	if i < 0 {
		return "", "", false
	}
	namespace = id[i+len("/providers/"):]
	return id[:i], namespace, !strings.Contains(namespace, "/")
}

// listCall is the request for the first page of a list.
func (b *builder) listCall(q azure.Query) (call, error) {
	if q.Type == "" || strings.HasPrefix(q.Type, "/") || strings.HasSuffix(q.Type, "/") {
		return call{}, fmt.Errorf("list in %q: %q is not a resource type such as Microsoft.Network/loadBalancers", q.Scope, q.Type)
	}
	if q.Scope != "" {
		if _, err := azure.ParseID(string(q.Scope)); err != nil {
			return call{}, err
		}
	}
	c, err := b.call(http.MethodGet, "LIST "+q.Type, listPath(q), q.Type, q.Scope)
	if err != nil {
		return call{}, err
	}
	c.document, c.subject.Verb, c.patience = true, "list", q.Patience
	query := c.url.Query()
	if q.Expand != "" {
		query.Set("$expand", q.Expand)
	}
	if q.Filter != "" {
		query.Set("$filter", q.Filter)
	}
	if q.Suffix != "" {
		query.Set("$recordsetnamesuffix", q.Suffix)
	}
	c.url.RawQuery = query.Encode()
	return c, nil
}

// listPath is where a list is: sub-resources stand behind their parent, the parts
// of subscriptions and groups behind those, all else behind /providers.
func listPath(q azure.Query) string {
	if q.Scope != "" {
		parent := q.Scope.Type() + "/"
		if len(q.Type) > len(parent) && strings.EqualFold(q.Type[:len(parent)], parent) {
			return string(q.Scope) + "/" + q.Type[len(parent):]
		}
	}
	switch strings.ToLower(q.Type) {
	case "microsoft.resources/subscriptions":
		return "/subscriptions"
	case "microsoft.resources/resourcegroups":
		return string(q.Scope) + "/resourceGroups"
	case "microsoft.resources/resources":
		return string(q.Scope) + "/resources"
	}
	return string(q.Scope) + "/providers/" + q.Type
}

// call is the request for a path below the endpoint.
func (b *builder) call(method, op, path, fullType string, id azure.ID) (call, error) {
	if slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." }) {
		return call{}, fmt.Errorf("%q is not an Azure resource id: it has a segment of dots", path)
	}
	version, ok := b.versions.of(fullType)
	if !ok {
		return call{}, fmt.Errorf("no api-version is known for the type %s of %q", fullType, path)
	}
	u := *b.endpoint
	u.Path += path
	u.RawQuery = url.Values{"api-version": {version}}.Encode()
	namespace, _, _ := strings.Cut(strings.ToLower(fullType), "/")
	row := b.types.Of(fullType)
	turns := ""
	if row.InTurn && method != http.MethodGet {
		turns = id.Parent().Key()
	}
	counted := ""
	if row.CountsChildren {
		counted = id.Key() // of a list
		if id.Is(fullType) {
			counted = id.Parent().Key()
		}
	}
	return call{
		method:      method,
		url:         &u,
		header:      http.Header{},
		op:          op,
		id:          id,
		spelled:     fullType,
		correlation: newUUID(),
		subject: budget.Subject{
			Verb:         strings.ToLower(method),
			FullType:     strings.ToLower(fullType),
			Subscription: strings.ToLower(id.Subscription()),
			Namespace:    namespace,
			Resource:     id.Key(),
			Shared:       row.Shared,
			CountsEach:   row.CountsEach,
			Parent:       counted,
			Turns:        turns,
		},
	}, nil
}

// follow is a read at a URL that Azure gave in answer to c.
func (d *Client) follow(c call, to *url.URL, verb string) call {
	c.method, c.url, c.body, c.header, c.document = http.MethodGet, to, nil, http.Header{}, false
	c.subject.Verb = verb
	return c
}

// Get reads one resource. It also reads parts of resources that have no name (VM/instanceView) and resource providers
// (/subscriptions/S/providers/NAMESPACE).
func (d *Client) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return reader{client: d}.Get(ctx, id)
}

// At returns a reader that reads with a priority.
func (d *Client) At(p azure.Priority) azure.Reader { return reader{d, p} }

// reader reads with a priority.
type reader struct {
	client   *Client
	priority azure.Priority
}

// Get implements [azure.Reader].
func (r reader) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	d := r.client
	c, err := d.build.resourceCall(http.MethodGet, id, "")
	if err != nil {
		return nil, invalid("GET", id, err)
	}
	c.document, c.subject.Priority = true, r.priority
	start := time.Now()
	doc, err := confirmed(ctx, d, c, d.read, func(_ azure.Document, err error) bool { return azure.IsNotFound(err) })
	d.metrics.known.Finished(c.shown(), err, time.Since(start))
	return doc, err
}

// Fresh reads past any cache. An ARM client has none; [kaz/internal/arm/cache] puts one in front.
func (d *Client) Fresh() azure.Reader { return d }

func (d *Client) read(ctx context.Context, c call) (azure.Document, error) {
	r, failure := d.send(ctx, c)
	if failure != nil {
		return nil, failure
	}
	return r.body, nil
}

// Begin sends a change and returns when Azure has accepted it. The returned operation waits for its end.
//
// A write is sent again if its answer is lost. With a precondition, Azure may refuse the second one because the first
// one succeeded. That too is an error of kind Changed, and reading again shows the outcome.
func (d *Client) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	c, err := d.build.changeCall(r)
	if err != nil {
		return nil, invalid(r.Op(), r.ID, err)
	}
	op, err := d.perform(ctx, c)
	if r.Verb == azure.Delete && azure.IsNotFound(err) {
		return azure.Done(nil), nil
	}
	return op, err
}

// checkRequest returns why a change cannot be requested, nil if it can.
func checkRequest(r azure.Request, writes bool) error {
	switch {
	case !writes && r.Verb != azure.Delete && r.Verb != azure.Post && r.Verb != azure.Get:
		return fmt.Errorf("%q is not a verb that changes something", r.Verb)
	case r.Verb == azure.Get && len(r.Header) == 0 && len(r.Parameters) == 0:
		return errors.New("a read without a header or a parameter is left to the reader")
	case r.Verb == azure.Post && (r.Action == "" || strings.ContainsAny(r.Action, "?#%\\")):
		return fmt.Errorf("%q is not the name of an action", r.Action)
	case writes && len(r.Body) == 0:
		return errors.New("the body is empty")
	case r.Create && r.IfMatch != "":
		return fmt.Errorf("a write cannot demand both that the resource is new and that it has the etag %s", r.IfMatch)
	}
	return nil
}

// changeCall is the request for a change.
func (b *builder) changeCall(r azure.Request) (call, error) {
	writes := r.Verb == azure.Put || r.Verb == azure.Patch
	if err := checkRequest(r, writes); err != nil {
		return call{}, err
	}
	c, err := b.resourceCall(string(r.Verb), r.ID, r.Action)
	if err != nil {
		return call{}, err
	}
	c.body, c.unseen, c.additive, c.subject.Priority = r.Body, r.Unseen, r.Additive, r.Priority
	if len(r.Parameters) > 0 {
		query := c.url.Query()
		for name, value := range r.Parameters {
			query.Set(name, value)
		}
		c.url.RawQuery = query.Encode()
	}
	if writes {
		c.body = r.Body.Without(b.types.Of(r.ID.Type()).Shown...)
	}
	for name, value := range r.Header {
		c.header.Set(name, value)
	}
	if r.IfMatch != "" {
		c.header.Set("If-Match", r.IfMatch)
	}
	if r.Create {
		c.header.Set("If-None-Match", "*")
	}
	return c, nil
}

func invalid(op string, id azure.ID, cause error) error {
	return &azure.Error{Kind: azure.Invalid, Op: op, ID: id, Cause: cause}
}
