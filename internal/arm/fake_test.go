package arm

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

const (
	endpoint = "https://management.test"
	group    = azure.ID("/subscriptions/s1/resourceGroups/g")
)

func lb(name string) azure.ID { return group.Resource("Microsoft.Network/loadBalancers", name) }

// answer is one reply of the fake; err stands for a connection that breaks.
type answer struct {
	status int
	header map[string]string
	body   string
	err    error
	// after is how long it takes.
	after time.Duration
}

// request is what the fake was sent.
type request struct {
	method, host, path, query, body string
	header                          http.Header
	at                              time.Time
}

// server answers requests in process. It keeps no lock while it waits.
type server struct {
	answer func(n int, r request) answer

	mu   sync.Mutex
	seen []request
}

// script answers the n-th request with the n-th answer, and the last one for ever.
func script(answers ...answer) *server {
	return &server{answer: func(n int, _ request) answer { return answers[min(n, len(answers)-1)] }}
}

func (s *server) Do(req *http.Request) (*http.Response, error) {
	r := request{method: req.Method, host: req.URL.Host, path: req.URL.Path, query: req.URL.RawQuery, header: req.Header.Clone(), at: time.Now()}
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		r.body = string(text)
	}
	s.mu.Lock()
	n := len(s.seen)
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	a := s.answer(n, r)
	if err := pause.For(req.Context(), a.after); err != nil {
		return nil, err
	}
	if a.err != nil {
		return nil, a.err
	}
	resp := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), Request: req}
	for k, v := range a.header {
		resp.Header.Set(k, v)
	}
	return resp, nil
}

func (s *server) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.seen...)
}

// trace is what was sent as "METHOD path" and when, in seconds since the first.
func (s *server) trace() (sent []string, at []time.Duration) {
	all := s.requests()
	for _, r := range all {
		sent = append(sent, r.method+" "+r.path)
		at = append(at, r.at.Sub(all[0].at))
	}
	return sent, at
}

type token string

func (t token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: string(t), ExpiresOn: time.Now().Add(24 * time.Hour)}, nil
}

func open(t *testing.T, s policy.Transporter, change ...func(*Config)) *Client {
	t.Helper()
	c := Config{Endpoint: endpoint, Credential: token("secret-token"), Transport: s}
	for _, f := range change {
		f(&c)
	}
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func resource(id azure.ID, state string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"properties":{"provisioningState":%q}}`, id, id.Name(), state)
}

func fail(code string) string {
	return fmt.Sprintf(`{"error":{"code":%q,"message":"as the test wants"}}`, code)
}
