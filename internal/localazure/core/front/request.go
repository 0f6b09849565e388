package front

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/store"
	"kaz/internal/template/lenient"
)

// exchange is an HTTP request on its way through, with its reply.
type exchange struct {
	*message.Request // to a target, unless it is to a route or to the URL of an operation
	http             *http.Request
	bytesIn          int
	challenge        string // WWW-Authenticate of a refusal

	route  *route
	param  map[string]string // the names in the route's pattern
	polled *behaviour.Operation

	cut      bool        // there is to be no reply
	answered func()      // called before the reply is sent
	always   http.Header // headers of any reply
	reply    message.Reply
	refused  string // error code of the reply
	// byGateway says that ARM answered without asking a provider.
	byGateway bool
}

// newExchange wraps an HTTP request. Its scheme and host are those under which the client
// knows this server.
func newExchange(hr *http.Request) *exchange {
	scheme := "http"
	if hr.TLS != nil || hr.URL.Scheme == "https" {
		scheme = "https"
	}
	r := &message.Request{Method: hr.Method, URL: hr.URL, Header: hr.Header, Host: scheme + "://" + hr.Host}
	return &exchange{Request: r, http: hr, always: http.Header{}, answered: func() {}}
}

// author is what the record of writes says of the request.
func (r *exchange) author() store.Author {
	application, _ := r.Caller.Principal.IDs()
	act := r.Method
	if r.Action != "" {
		act += " " + r.Action
	}
	return store.Author{Act: act, Application: application, Agent: r.http.UserAgent()}
}

// open reports whether the request needs no token.
func (r *exchange) open() bool { return r.route != nil && r.route.Open }

// readQuery reads the query. The case of names does not matter.
func (r *exchange) readQuery() error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err == nil && strings.ContainsAny(r.URL.RawQuery, " \"<>") { // a transport without sockets lets them pass
		err = errors.New("it is not percent-encoded")
	}
	if err != nil {
		return behaviour.Gateway(400, "InvalidRequestUri", "The query of the request is invalid: %v.", err)
	}
	if !utf8.ValidString(r.URL.Path) { // the state could not keep the id
		return behaviour.Gateway(400, "InvalidRequestUri", "The path of the request is invalid: %q is not UTF-8.", r.URL.Path)
	}
	r.Query = url.Values{}
	for key, v := range values {
		r.Query[strings.ToLower(key)] = v
	}
	return nil
}

// readVersion reads the api-version. Any date is accepted.
func (r *exchange) readVersion() error {
	if r.Version = r.Query.Get("api-version"); r.Version == "" {
		return behaviour.Gateway(400, "MissingApiVersionParameter",
			"The api-version query parameter (?api-version=) is required for all requests.")
	}
	if !behaviour.IsVersion(r.Version) {
		return behaviour.Gateway(400, "InvalidApiVersionParameter",
			"The api-version '%s' is invalid. The api-version must be a date in the form yyyy-MM-dd, with an optional suffix "+
				"such as -preview.", r.Version)
	}
	return nil
}

// maxBody is ARM's limit on requests.
const maxBody = 4 << 20

// readBody reads a JSON object, where the method has a body.
func (r *exchange) readBody() error {
	text, err := io.ReadAll(io.LimitReader(r.http.Body, maxBody+1))
	if err != nil {
		return behaviour.Gateway(400, "InvalidRequestContent", "The request content could not be read: %v.", err)
	}
	if len(text) > maxBody {
		return behaviour.Gateway(413, "RequestContentTooLarge", "The request content size exceeds the maximum size of %d MB.", maxBody>>20)
	}
	r.bytesIn = len(text)
	text = bytes.TrimSpace(text)
	if len(text) == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodDelete {
		return nil
	}
	if lenient.Depth(text) > lenient.MostDepth {
		err = lenient.ErrTooDeep
	} else {
		err = json.Unmarshal(text, &r.Body)
	}
	if err != nil && strings.Contains(strings.ToLower(r.URL.Path), "/microsoft.resources/deployments/") {
		r.Body, err = lenient.Decode(text) // ARM itself reads deployments, and is lenient
	}
	if err != nil {
		return behaviour.Gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%v'.", err)
	}
	return nil
}
