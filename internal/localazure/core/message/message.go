// Package message has a request to the local Azure and its reply, as the checks and the verbs see them: without HTTP's own
// matters. Layer L2.
package message

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/address"
	"kaz/internal/localazure/core/store"
	"kaz/internal/template"
)

// Request is a request on its way through, from outside or of a behaviour.
type Request struct {
	Method  string
	URL     *url.URL // of a request from outside
	Header  http.Header
	Version string // api-version
	Query   url.Values
	Host    string // scheme and host for absolute URLs
	Body    behaviour.Object
	Caller  behaviour.Caller
	address.Target

	Wait           time.Duration               // before the reply
	OperationFault *behaviour.Error            // the operation is to fail with it
	Stale          bool                        // the reply is to show the state before
	Forget         func(body behaviour.Object) // a creation drops a part of the body, nil for none
	Downloads      map[string]Downloaded       // by their URIs
	Work           *template.Work              // of a write from outside
	// OnlyAllowed lists only the resources that the caller may read: the caller may not read the whole scope.
	OnlyAllowed bool
}

// Reads reports whether the request changes nothing.
func (r *Request) Reads() bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// Resolve finds the target that a path means.
func (r *Request) Resolve(by address.Resolver, path string) (err error) {
	r.Target, err = by.Resolve(address.Request{Method: r.Method, Path: path, Version: r.Version})
	return err
}

// Right is the action that the caller needs the right to.
func (r *Request) Right() string { return access.ActionOf(r.Method, r.Kind, r.Action) }

// Call is the behaviour's view of the request.
func (r *Request) Call(w behaviour.World, v behaviour.Verb) *behaviour.Call {
	return &behaviour.Call{World: w, Verb: v, ID: r.ID, Type: r.Kind.Type, Body: r.Body, Query: r.Query, Caller: r.Caller,
		Header: r.Header, Host: r.Host, Action: r.Action, Notes: behaviour.Object{}, Download: r.download}
}

// Downloaded is what a request got from a URI.
type Downloaded struct {
	Text []byte
	Err  error
}

// download returns what was got for the request from a URI, or asks the core to get it.
func (r *Request) download(uri string) ([]byte, error) {
	if got, ok := r.Downloads[uri]; ok {
		return got.Text, got.Err
	}
	return nil, &behaviour.NotDownloaded{URI: uri}
}

// PollURL makes the poll path of an operation absolute, with the parameters that ARM appends.
func (r *Request) PollURL(p behaviour.Protocol, path string, at time.Time) string {
	version := r.Version
	if p.Version != "" {
		version = p.Version
	}
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	tick := strconv.FormatInt(store.Ticks(at), 10)
	return r.Host + path + sep + "api-version=" + version + "&t=" + tick + "&c=local&s=" + signature(path, tick) + "&h=" +
		signature(tick, path)
}

// signature fills the parameters of poll URLs that Azure signs with.
func signature(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// NotAllowed refuses a method that the type does not have.
func (r *Request) NotAllowed() error {
	return behaviour.Gateway(http.StatusMethodNotAllowed, "MethodNotAllowed",
		"The HTTP method '%s' is not supported for resource type '%s'.", r.Method, r.Kind.Name)
}

// Reply is the answer to a request.
type Reply struct {
	Status int
	Body   any // JSON value, or json.RawMessage; nil for none
	Header http.Header
}

// Set sets a header.
func (r *Reply) Set(name, value string) { r.Headers().Set(name, value) }

// Headers are the headers, to be added to.
func (r *Reply) Headers() http.Header {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	return r.Header
}

// Freeze encodes the body while the lock is held, since it may share documents with the
// store.
func (r *Reply) Freeze() {
	if r.Body == nil {
		return
	}
	if _, done := r.Body.(json.RawMessage); done {
		return
	}
	text, err := json.Marshal(r.Body)
	if err != nil {
		panic("a reply's body is not JSON: " + err.Error())
	}
	r.Body = json.RawMessage(text)
}
