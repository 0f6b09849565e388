package arm

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/arm/budget"
	"kaz/internal/arm/types"
	"kaz/internal/azure"
)

// Config is what a client needs to know. Only Endpoint is required.
type Config struct {
	// Endpoint is the base URL of Azure Resource Manager.
	Endpoint string
	// Regional is the base URL of the region's own endpoint, "" for none. The client reads there again what Azure
	// says is absent.
	Regional string
	// Scope is asked for in tokens; the default is Endpoint + "/.default".
	Scope string
	// Credential gives the tokens; without one requests carry none.
	Credential azcore.TokenCredential
	// Auxiliary gives the token of a second tenant, sent beside the first one. It
	// is asked before each request, so it has to remember its token.
	Auxiliary azcore.TokenCredential
	// Transport carries requests; the default is [NewTransport].
	Transport policy.Transporter
	// UserAgent is the whole User-Agent header; the default is "kaz".
	UserAgent string

	// Budget is shared between clients; the default is one of this client's own.
	Budget *budget.Budget
	// Retries is how often a failed request is sent again: 0 means 3, a negative number none. RetryDelay is the wait
	// before the first retry, by default 1 s. RetryFactor is how many times longer each further wait is, by default
	// 2. Waits grow up to a minute, or up to RetryDelay if that is longer. RetryJitter is the part of a wait that may
	// be added at random. With 0, waits are up to a fifth longer or shorter.
	Retries     int
	RetryDelay  time.Duration
	RetryFactor float64
	RetryJitter float64
	// ThrottleWait bounds the time that one request spends waiting because Azure
	// throttles; the default is 10 minutes.
	ThrottleWait time.Duration
	// RequestTimeout bounds one attempt; the default is a minute.
	RequestTimeout time.Duration
	// Finish is how long a sent write and its operation go on after the caller gives up. A program that stops then
	// knows what became of its writes. By default, writes end with their caller.
	Finish time.Duration
	// MinimumRetryAfter makes RetryDelay the shortest wait between polls, also where Azure names a shorter one.
	MinimumRetryAfter bool
	// APIVersions overrides the built-in table: by type, or the start of one
	// ("Microsoft.Network", "Microsoft.Network/loadBalancers").
	APIVersions map[string]string

	// Registerer takes the metrics, nil for none.
	Registerer prometheus.Registerer
	// Logger gets one debug line per request; the default is [slog.Default].
	Logger *slog.Logger
}

// Client reads and writes Azure. It is safe for concurrent use.
type Client struct {
	azure.Verbs  // over Begin
	build        builder
	regional     *url.URL // nil for none
	seen         seen
	pipeline     runtime.Pipeline
	userAgent    string
	budget       *budget.Budget
	retry        retryOptions
	timeout      time.Duration
	finishing    time.Duration
	minimumRetry bool
	log          *slog.Logger
	metrics      metrics
	registering  registrations
	listPolls    listPolls
	prompt       atomic.Int64 // operations in flight that are polled often
}

var (
	_ azure.Reader = (*Client)(nil)
	_ azure.Writer = (*Client)(nil)
)

// New makes a client.
func New(c Config) (*Client, error) {
	endpoint, err := parseEndpoint(c.Endpoint)
	if err != nil {
		return nil, err
	}
	regional, err := parseRegional(c.Regional)
	if err != nil {
		return nil, err
	}
	versions, err := newVersionTable(c.APIVersions)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(c.Registerer)
	if err != nil {
		return nil, err
	}
	d := &Client{
		build:        builder{endpoint, versions, types.NewIndex()},
		regional:     regional,
		userAgent:    or(c.UserAgent, "kaz"),
		budget:       c.Budget,
		timeout:      or(c.RequestTimeout, time.Minute),
		finishing:    c.Finish,
		minimumRetry: c.MinimumRetryAfter,
		log:          or(c.Logger, slog.Default()),
		metrics:      metrics,
		retry: retryOptions{
			times:        max(or(c.Retries, 3), 0),
			delay:        or(c.RetryDelay, time.Second),
			factor:       or(c.RetryFactor, 2),
			jitter:       or(c.RetryJitter, -1),
			throttleWait: or(c.ThrottleWait, 10*time.Minute),
		},
	}
	if d.budget == nil {
		d.budget = budget.New(budget.Config{})
	}
	if err := budget.Show(c.Registerer, d.budget); err != nil {
		return nil, err
	}
	if c.Credential != nil && endpoint.Scheme == "http" && !isLoopback(endpoint.Hostname()) {
		d.log.Warn("tokens are sent to azure resource manager without encryption", "endpoint", c.Endpoint)
	}
	d.pipeline = newPipeline(c, endpoint)
	d.Verbs = azure.Verbs{Writer: d}
	return d, nil
}

func newPipeline(c Config, endpoint *url.URL) runtime.Pipeline {
	var perRetry []policy.Policy
	if c.Credential != nil {
		scope := or(c.Scope, strings.TrimSuffix(c.Endpoint, "/")+"/.default")
		perRetry = append(perRetry, runtime.NewBearerTokenPolicy(c.Credential, []string{scope},
			&policy.BearerTokenOptions{InsecureAllowCredentialWithHTTP: endpoint.Scheme == "http"}))
	}
	if c.Auxiliary != nil {
		perRetry = append(perRetry, auxiliary{c.Auxiliary, or(c.Scope, strings.TrimSuffix(c.Endpoint, "/")+"/.default")})
	}
	transport := c.Transport
	if transport == nil {
		transport = NewTransport()
	}
	return runtime.NewPipeline("kaz", "", runtime.PipelineOptions{PerRetry: perRetry}, &policy.ClientOptions{
		Transport: transport,
		// Retries are decided by the client, which knows the budget.
		Retry:     policy.RetryOptions{MaxRetries: -1},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	})
}

// auxiliary adds the token of a second tenant.
type auxiliary struct {
	credential azcore.TokenCredential
	scope      string
}

func (a auxiliary) Do(req *policy.Request) (*http.Response, error) {
	token, err := a.credential.GetToken(req.Raw().Context(), policy.TokenRequestOptions{Scopes: []string{a.scope}})
	if err != nil {
		return nil, &credentialError{err}
	}
	req.Raw().Header.Set("x-ms-authorization-auxiliary", "Bearer "+token.Token)
	return req.Next()
}

// credentialError is a failure to get a token, which no retry of the request corrects.
type credentialError struct{ error }

func (*credentialError) NonRetriable()   {}
func (e *credentialError) Unwrap() error { return e.error }

func parseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil, errors.New("azure resource manager endpoint is empty, expected a URL such as https://management.azure.com")
	case err != nil:
		return nil, fmt.Errorf("azure resource manager endpoint: %w", err)
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("azure resource manager endpoint %q: expected http(s)://HOST[:PORT][/PATH]", u.Redacted())
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

func parseRegional(s string) (*url.URL, error) {
	if s == "" {
		return nil, nil
	}
	return parseEndpoint(s)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
