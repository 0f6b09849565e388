// Package behaviourtest runs tables of requests against a local Azure in the test's
// own process. For tests of behaviours only. Layer L2.
package behaviourtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// Subscription and Group are the ids that ~~ and ~ stand for in exchanges.
const (
	Subscription = "/subscriptions/" + core.DefaultSubscription
	Group        = Subscription + "/resourceGroups/rg"
)

// Exchange is a request and the expected reply.
type Exchange struct {
	// Do is method and path, "PUT ~/providers/Microsoft.Storage/storageAccounts/a".
	Do   string
	Body string
	// Status of the reply; 200 when 0.
	Status int
	// Code of the error.
	Code string
	// Has are expected values in the reply by their paths, "value.0.name". "value.#" is the length of an array; nil
	// means that there is no value.
	Has map[string]any
	// Header are expected headers of the reply; "*" is any value.
	Header map[string]string
}

// T is the part of testing.TB that this package needs.
type T interface {
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Helper()
}

// Azure is a local Azure under test, with a group in it.
type Azure struct {
	T
	*core.Emulator
	// Token is sent as the bearer token.
	Token  string
	client http.Client
}

// Start returns an Azure with some providers and the group in eastus.
func Start(t T, providers ...behaviour.Provider) *Azure {
	t.Helper()
	return StartWith(t, core.Options{Providers: providers})
}

// StartWith is Start with options. An authenticator must accept the token "owner".
func StartWith(t T, o core.Options) *Azure {
	t.Helper()
	e, err := core.New(o)
	if err != nil {
		t.Fatalf("start of the local Azure: %v", err)
	}
	a := Connect(t, e)
	a.Run(Exchange{Do: "PUT ~", Body: `{"location":"eastus"}`, Status: 201})
	return a
}

// Connect returns an Azure that is there already.
func Connect(t T, e *core.Emulator) *Azure {
	return &Azure{T: t, Emulator: e, Token: "owner", client: http.Client{Transport: e.Transport()}}
}

// Run sends the requests in turn and checks the replies. It returns the body of the last reply.
func (a *Azure) Run(exchanges ...Exchange) behaviour.Object {
	a.Helper()
	var last behaviour.Object
	for _, x := range exchanges {
		last = a.one(x)
	}
	return last
}

func (a *Azure) one(x Exchange) behaviour.Object {
	a.Helper()
	method, path, _ := strings.Cut(x.Do, " ")
	status, header, body := a.Send(method, path, x.Body)
	want := x.Status
	if want == 0 {
		want = http.StatusOK
	}
	code := behaviour.Text(body, "error.code")
	if status != want || code != x.Code {
		a.Errorf("%s: %d %s, want %d %s\n%v", x.Do, status, code, want, x.Code, body)
		return body
	}
	for at, value := range x.Has {
		if got := At(body, at); !behaviour.Equal(got, value) {
			a.Errorf("%s: %s is %v, want %v\n%v", x.Do, at, got, value, body)
		}
	}
	for name, value := range x.Header {
		if got := header.Get(name); got != value && (value != "*" || got == "") {
			a.Errorf("%s: header %s is %q, want %q", x.Do, name, got, value)
		}
	}
	return body
}

// Answer is a reply to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   behaviour.Object
}

// Code returns the error code of a refusal, and after a slash the code of its only detail.
func (a Answer) Code() string {
	for _, path := range []string{"error.", ""} {
		if code := behaviour.Text(a.Body, path+"code"); code != "" {
			if details := behaviour.Objects(a.Body, path+"details"); len(details) == 1 {
				code += "/" + behaviour.Text(details[0], "code")
			}
			return code
		}
	}
	return ""
}

// With returns the same Azure for a subtest.
func (a *Azure) With(t T) *Azure {
	same := *a
	same.T = t
	return &same
}

// Send sends one request, to a path or an absolute URL.
func (a *Azure) Send(method, path, body string) (int, http.Header, behaviour.Object) {
	a.Helper()
	got := a.Request(method, path, body)
	return got.Status, got.Header, got.Body
}

// List reads a catalogue that is an array without an object around it.
func (a *Azure) List(path string) []any {
	a.Helper()
	got, text := a.send("GET", path, "")
	var list []any
	if err := json.Unmarshal(text, &list); err != nil {
		a.Fatalf("GET %s: %d is not a JSON array: %v\n%s", path, got.Status, err, text)
	}
	return list
}

// Request sends one request, to a path or an absolute URL; header are names and values in turn.
func (a *Azure) Request(method, path, body string, header ...string) Answer {
	a.Helper()
	got, text := a.send(method, path, body, header...)
	if len(text) > 0 {
		if err := json.Unmarshal(text, &got.Body); err != nil {
			a.Fatalf("%s %s: %d is not a JSON object: %v\n%s", method, path, got.Status, err, text)
		}
	}
	return got
}

func (a *Azure) send(method, path, body string, header ...string) (Answer, []byte) {
	a.Helper()
	path = strings.Replace(strings.Replace(path, "~~", Subscription, 1), "~", Group, 1)
	if !strings.HasPrefix(path, "http") {
		path = "http://azure" + path
	}
	if !strings.Contains(path, "api-version=") {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + "api-version=2025-01-01"
	}
	request, err := http.NewRequestWithContext(a.Context(), method, strings.ReplaceAll(path, " ", "%20"), strings.NewReader(body))
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	request.Header.Set("Authorization", "Bearer "+a.Token)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	reply, err := a.client.Do(request)
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		a.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{Status: reply.StatusCode, Header: reply.Header}, text
}

// At returns the value at a path. A number in the path selects an element of an array, # its length.
func At(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case behaviour.Object:
			value = v[key]
		case []any:
			if key == "#" {
				return len(v)
			}
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// Text returns a reply's body as JSON text.
func Text(body behaviour.Object) string {
	text, err := json.Marshal(body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
