package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/access"
	"kaz/internal/localazure/core/address"
	"kaz/internal/template"
)

// request is an HTTP request on its way through.
type request struct {
	http      *http.Request
	method    string
	version   string // api-version
	query     url.Values
	host      string // scheme and host for absolute URLs
	body      behaviour.Object
	bytesIn   int
	caller    behaviour.Caller
	challenge string // WWW-Authenticate of a refusal

	// A request is to a route, or to the URL of an operation, or to a target.
	route  *route
	param  map[string]string // the names in the route's pattern
	polled *behaviour.Operation
	address.Target

	wait           time.Duration               // before the reply
	operationFault *behaviour.Error            // the operation is to fail with it
	stale          bool                        // the reply is to show the state before
	forget         func(body behaviour.Object) // a creation drops a part of the body, nil for none
	cut            bool                        // there is to be no reply
	answered       func()                      // called before the reply is sent

	downloads map[string]downloaded // by their URIs

	always  http.Header // headers of any reply
	reply   reply
	refused string // error code of the reply
	// byGateway says that ARM answered without asking a provider.
	byGateway bool
	// onlyAllowed lists only the resources that the caller may read: the caller may not read the whole scope.
	onlyAllowed bool
}

// newRequest wraps an HTTP request. Its scheme and host are those under which the client
// knows this server.
func newRequest(hr *http.Request) *request {
	scheme := "http"
	if hr.TLS != nil || hr.URL.Scheme == "https" {
		scheme = "https"
	}
	return &request{http: hr, method: hr.Method, host: scheme + "://" + hr.Host, always: http.Header{}, answered: func() {}}
}

// open reports whether the request needs no token.
func (r *request) open() bool { return r.route != nil && r.route.Open }

// reads reports whether the request changes nothing.
func (r *request) reads() bool { return r.method == http.MethodGet || r.method == http.MethodHead }

// readQuery reads the query. The case of names does not matter.
func (r *request) readQuery() error {
	values, err := url.ParseQuery(r.http.URL.RawQuery)
	if err == nil && strings.ContainsAny(r.http.URL.RawQuery, " \"<>") { // a transport without sockets lets them pass
		err = errors.New("it is not percent-encoded")
	}
	if err != nil {
		return behaviour.Gateway(400, "InvalidRequestUri", "The query of the request is invalid: %v.", err)
	}
	if !utf8.ValidString(r.http.URL.Path) { // the state could not keep the id
		return behaviour.Gateway(400, "InvalidRequestUri", "The path of the request is invalid: %q is not UTF-8.", r.http.URL.Path)
	}
	r.query = url.Values{}
	for key, v := range values {
		r.query[strings.ToLower(key)] = v
	}
	return nil
}

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-[A-Za-z0-9.]+)?$`)

// readVersion reads the api-version. Any date is accepted.
func (r *request) readVersion() error {
	if r.version = r.query.Get("api-version"); r.version == "" {
		return behaviour.Gateway(400, "MissingApiVersionParameter",
			"The api-version query parameter (?api-version=) is required for all requests.")
	}
	if !versionForm.MatchString(r.version) {
		return behaviour.Gateway(400, "InvalidApiVersionParameter",
			"The api-version '%s' is invalid. The api-version must be a date in the form yyyy-MM-dd, with an optional suffix "+
				"such as -preview.", r.version)
	}
	return nil
}

// maxBody is ARM's limit on requests.
const maxBody = 4 << 20

// readBody reads a JSON object, where the method has a body.
func (r *request) readBody() error {
	text, err := io.ReadAll(io.LimitReader(r.http.Body, maxBody+1))
	if err != nil {
		return behaviour.Gateway(400, "InvalidRequestContent", "The request content could not be read: %v.", err)
	}
	if len(text) > maxBody {
		return behaviour.Gateway(413, "RequestContentTooLarge", "The request content size exceeds the maximum size of %d MB.", maxBody>>20)
	}
	r.bytesIn = len(text)
	text = bytes.TrimSpace(text)
	if len(text) == 0 || r.method == http.MethodGet || r.method == http.MethodHead || r.method == http.MethodDelete {
		return nil
	}
	if template.Depth(text) > template.MostDepth {
		err = template.ErrTooDeep
	} else {
		err = json.Unmarshal(text, &r.body)
	}
	if err != nil && strings.Contains(strings.ToLower(r.http.URL.Path), "/microsoft.resources/deployments/") {
		r.body, err = template.Decode(text) // ARM itself reads deployments, and is lenient
	}
	if err != nil {
		return behaviour.Gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%v'.", err)
	}
	return nil
}

// resolve finds the target that a path means.
func (r *request) resolve(by address.Resolver, path string) (err error) {
	r.Target, err = by.Resolve(address.Request{Method: r.method, Path: path, Version: r.version})
	return err
}

// call is the behaviour's view of the request.
func (r *request) call(w behaviour.World, v behaviour.Verb) *behaviour.Call {
	return &behaviour.Call{World: w, Verb: v, ID: r.ID, Type: r.Kind.Type, Body: r.body, Query: r.query, Caller: r.caller,
		Header: r.http.Header, Host: r.host, Action: r.Action, Notes: behaviour.Object{}, Download: r.download}
}

// links is the request as access control checks what it names.
func (r *request) links() access.Request {
	l := access.Request{Kind: r.Kind, ID: r.ID, Body: r.body, Action: access.ActionOf(r.method, r.Kind, r.Action), Caller: r.caller}
	if r.method == http.MethodPost {
		l.Post = r.Action
	}
	return l
}

// next is the URL of the list's next page.
func (r *request) next(token string) string {
	query := maps.Clone(r.query)
	query.Set("$skiptoken", token)
	if r.Kind.Style.RawNextLink {
		return withPort(r.host) + r.http.URL.EscapedPath() + "?" + rawQuery(query)
	}
	return r.host + r.http.URL.EscapedPath() + "?" + query.Encode()
}

// withPort adds the default port of the scheme to a host that names no port.
func withPort(host string) string {
	u, err := url.Parse(host)
	switch {
	case err != nil || u.Port() != "":
		return host
	case u.Scheme == "https":
		return host + ":443"
	}
	return host + ":80"
}

// rawQuery writes a query without encoding it, but for the characters that have a meaning in a
// query.
func rawQuery(query url.Values) string {
	meaning := strings.NewReplacer("%", "%25", "&", "%26", "#", "%23", "+", "%2B", ";", "%3B")
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(query)) {
		for _, value := range query[key] {
			pairs = append(pairs, key+"="+meaning.Replace(value))
		}
	}
	return strings.Join(pairs, "&")
}
