package file

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// call is one request to a file service, with what all operations need: its target, and its answer. The operations of a subject are
// methods of a type of their own: [serviceCall], [shareCall], [pathCall], [directoryCall], [fileCall], [rangeCall] and [copyCall].
type call struct {
	service *Service
	r       *http.Request
	query   url.Values
	response

	account account
	target  target
}

// scope is what a request is about.
type scope string

const (
	serviceScope   scope = "service"
	shareScope     scope = "share"
	directoryScope scope = "directory"
	fileScope      scope = "file"
)

// target is the resource of a request.
type target struct {
	scope    scope
	share    string
	parts    []string // of the path in the share
	snapshot string
}

// operation is a kind of request.
type operation struct {
	scope  scope
	method string
	comp   string // of the query
	do     func(c *call) error
	// allowedBy are the letters of a shared access signature. One letter is enough.
	allowedBy string
	// writes says that the operation changes content, which it cannot in a snapshot.
	writes bool
}

// operations are all kinds of requests. HEAD is GET.
var operations = []operation{
	{serviceScope, "GET", "list", on(serviceCall.listShares), "l", false},
	{serviceScope, "GET", "properties", on(serviceCall.properties), "r", false},
	{shareScope, "PUT", "", on(shareCall.create), "cw", false},
	{shareScope, "GET", "", on(shareCall.get), "r", false},
	{shareScope, "DELETE", "", on(shareCall.delete), "d", false},
	{shareScope, "PUT", "metadata", on(shareCall.setMetadata), "w", false},
	{shareScope, "GET", "metadata", on(shareCall.get), "r", false},
	{shareScope, "PUT", "properties", on(shareCall.setProperties), "w", false},
	{shareScope, "PUT", "snapshot", on(shareCall.snapshot), "cw", false},
	{shareScope, "GET", "stats", on(shareCall.stats), "r", false},
	{shareScope, "PUT", "undelete", on(shareCall.undelete), "w", false},
	{directoryScope, "PUT", "", on(directoryCall.create), "cw", true},
	{directoryScope, "GET", "", on(directoryCall.get), "r", false},
	{directoryScope, "GET", "metadata", on(directoryCall.get), "r", false},
	{directoryScope, "DELETE", "", on(directoryCall.delete), "d", true},
	{directoryScope, "PUT", "metadata", on(pathCall.setMetadata), "w", true},
	{directoryScope, "PUT", "properties", on(directoryCall.setProperties), "w", true},
	{directoryScope, "PUT", "rename", on(pathCall.rename), "w", true},
	{directoryScope, "GET", "list", on(directoryCall.list), "l", false},
	{fileScope, "PUT", "", on(fileCall.create), "cw", true},
	{fileScope, "GET", "", on(fileCall.get), "r", false},
	{fileScope, "GET", "metadata", on(fileCall.get), "r", false},
	{fileScope, "DELETE", "", on(fileCall.delete), "d", true},
	{fileScope, "PUT", "metadata", on(pathCall.setMetadata), "w", true},
	{fileScope, "PUT", "properties", on(fileCall.setProperties), "w", true},
	{fileScope, "PUT", "range", on(rangeCall.put), "w", true},
	{fileScope, "GET", "rangelist", on(rangeCall.list), "r", false},
	{fileScope, "PUT", "copy", on(copyCall.abort), "w", true},
	{fileScope, "PUT", "rename", on(pathCall.rename), "w", true},
}

// on returns a method of the type of a subject as a function of the request.
func on[C ~struct{ *call }](do func(C) error) func(*call) error {
	return func(c *call) error { return do(C{c}) }
}

func (c *call) serve() error {
	var ok bool
	if c.account, ok = c.service.find(accountOf(c.r.Host)); !ok {
		// Azure does not resolve the name of an account that does not exist.
		return notFound("ResourceNotFound", "storage account")
	}
	if c.account.onlyHTTPS && c.r.TLS == nil {
		return refuse(http.StatusBadRequest, "AccountRequiresHttps", "The account being accessed does not support http.")
	}
	var err error
	if c.target, err = parseTarget(c.r.URL); err != nil {
		return err
	}
	if err := storage.CheckMetadata(c.r.Header); err != nil {
		return err
	}
	o, err := c.operation()
	if err != nil {
		return err
	}
	if err := c.authorizer().check(c.account, c.target, o); err != nil {
		return err
	}
	if o.writes && c.target.snapshot != "" {
		return refuse(http.StatusBadRequest, "InvalidQueryParameterValue", "A share snapshot cannot be changed.")
	}
	return o.do(c)
}

// parseTarget returns the resource of a URL.
func parseTarget(u *url.URL) (target, error) {
	query := u.Query()
	t := target{scope: serviceScope, snapshot: query.Get("sharesnapshot")}
	escaped := strings.Trim(u.EscapedPath(), "/")
	if escaped == "" {
		return t, nil
	}
	for part := range strings.SplitSeq(escaped, "/") {
		name, err := url.PathUnescape(part)
		if err != nil || len(t.parts) > 0 && !validName(name) {
			return t, refuse(http.StatusBadRequest, "InvalidResourceName",
				"The specified resource name %q contains invalid characters.", part)
		}
		t.parts = append(t.parts, name)
	}
	t.share, t.parts = t.parts[0], t.parts[1:]
	switch kind := query.Get("restype"); {
	case kind == "share" && len(t.parts) == 0:
		t.scope = shareScope
	case kind == "directory":
		t.scope = directoryScope
	case kind == "" && len(t.parts) > 0:
		t.scope = fileScope
	default:
		return t, refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
			"Value for one of the query parameters specified in the request URI is invalid: restype is %q.", kind)
	}
	return t, nil
}

// validName reports whether a directory or file can have the name.
func validName(name string) bool {
	const longest = 255
	return name != "" && name != "." && name != ".." && len([]rune(name)) <= longest && !strings.ContainsAny(name, `\:*?"<>|/`) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

func (c *call) operation() (operation, error) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	comp := strings.ToLower(c.query.Get("comp"))
	i := slices.IndexFunc(operations, func(o operation) bool {
		return o.scope == c.target.scope && o.method == method && o.comp == comp
	})
	if i >= 0 {
		return operations[i], nil
	}
	if !slices.ContainsFunc(operations, func(o operation) bool { return o.method == method }) {
		return operation{}, refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", "The resource doesn't support the HTTP verb %s.",
			method)
	}
	return operation{}, refuse(http.StatusBadRequest, "UnsupportedQueryParameter",
		"One of the query parameters specified in the request URI is not supported: %s of a %s with comp=%q.", method, c.target.scope, comp)
}

func (c *call) authorizer() authorizer { return authorizer{c.service, c.r} }

// share returns the document of the share of the request.
func (c *call) share() (azure.ID, behaviour.Object, error) {
	return c.service.share(c.account, c.target.share)
}

// open opens the directory of the share of the request. The caller closes it.
func (c *call) open() (*opened, error) { return c.service.open(c.r, c.account, c.target) }

// with calls f with the open share.
func (c *call) with(f func(o *opened) error) error {
	o, err := c.open()
	if err != nil {
		return err
	}
	defer o.root.Close()
	return f(o)
}

// change is with for changes of content.
func (c *call) change(f func(o *opened) error) error {
	return c.with(func(o *opened) error { return c.service.content.Write(func() error { return f(o) }) })
}

// look opens the file or directory of the request for reading.
func (c *call) look(f func(h *handle) error) error {
	return c.with(func(o *opened) error { return c.handle(o, os.O_RDONLY, f) })
}

// modify opens the file or directory of the request for a change of its content or properties. The properties of a directory are
// changed without opening it for writing.
func (c *call) modify(flag int, f func(h *handle) error) error {
	return c.change(func(o *opened) error { return c.handle(o, flag, f) })
}

// handle opens the file or directory of the request in a share that is open.
func (c *call) handle(o *opened, flag int, f func(h *handle) error) error {
	name, _, err := o.findKind(c.target)
	if err != nil {
		return err
	}
	h, err := o.open(name, flag)
	if err != nil {
		return err
	}
	defer h.Close()
	return f(h)
}

// store stores the properties that the request gives to a file or directory, and answers.
func (c *call) store(h *handle, status int) error {
	if err := h.read(c.r.Header); err != nil {
		return err
	}
	if err := h.write(h.File); err != nil {
		return err
	}
	if err := h.applyFileSystem(c.r.Header); err != nil {
		return err
	}
	return c.answer(h, status)
}

// endpoint returns the URL of the file service of the request.
func (c *call) endpoint() string { return "https://" + c.r.Host + "/" }

func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
