// Package imds reads the instance metadata service (IMDS) of a machine. Layer L2: it returns
// documents and does not know Kubernetes.
package imds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/metadata"
	"kaz/internal/pause"
)

// DefaultEndpoint is the address of the metadata service on every Azure machine.
const DefaultEndpoint = "http://169.254.169.254"

// Limits of one request. Both documents have a few kilobytes, and the service is on the same host.
const (
	attemptTime = 10 * time.Second
	mostBytes   = 1 << 20
)

// Config has the address of the service and the retry settings. The zero value is the service of the
// machine that runs the program.
type Config struct {
	// Endpoint is the URL without /metadata/instance; empty is [DefaultEndpoint].
	Endpoint string
	// Transport sends the requests. nil is a transport without proxies: the service rejects forwarded
	// requests.
	Transport http.RoundTripper
	// UserAgent is the User-Agent header.
	UserAgent string
	// Attempts is the number of attempts of a request, 0 for 4.
	Attempts int
	// Delay is the delay before the second attempt, 0 for half a second. It doubles with each further
	// attempt.
	Delay time.Duration
}

// Client reads a metadata service. Create it with [New].
type Client struct {
	config Config
	http   *http.Client
}

// New validates the configuration and returns a client.
func New(c Config) (*Client, error) {
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("metadata endpoint %q: must be http://HOST[:PORT][/PATH]: %w", c.Endpoint, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("metadata endpoint %q: must be http://HOST[:PORT][/PATH] or https, without user, query and fragment",
			c.Endpoint)
	}
	c.Endpoint = strings.TrimRight(c.Endpoint, "/")
	if c.Transport == nil {
		c.Transport = &http.Transport{
			MaxIdleConnsPerHost: 1, IdleConnTimeout: 10 * time.Second, ResponseHeaderTimeout: attemptTime,
		}
	}
	if c.Attempts <= 0 {
		c.Attempts = 4
	}
	if c.Delay <= 0 {
		c.Delay = 500 * time.Millisecond
	}
	return &Client{config: c, http: &http.Client{
		Transport: c.Transport,
		// The service never redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Endpoint returns the endpoint of the client.
func (c *Client) Endpoint() string { return c.config.Endpoint }

// Instance reads the metadata of the machine and its network. Errors are [*azure.Error]: NotFound if
// the service does not know the machine, Invalid for an invalid document, Unavailable or Throttled
// after all attempts failed.
func (c *Client) Instance(ctx context.Context) (metadata.Instance, error) {
	return ask(ctx, c, "/metadata/instance", metadata.InstanceVersion, DecodeInstance)
}

// LoadBalancer reads the public addresses of load balancers in front of the machine. The error is
// NotFound if there are none.
func (c *Client) LoadBalancer(ctx context.Context) (metadata.LoadBalancer, error) {
	return ask(ctx, c, "/metadata/loadbalancer", metadata.LoadBalancerVersion, DecodeLoadBalancer)
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// DecodeInstance decodes the instance document and checks that both parts are present. It does not
// validate their content.
func DecodeInstance(body []byte) (metadata.Instance, error) {
	var m metadata.Instance
	if err := json.Unmarshal(body, &m); err != nil {
		return metadata.Instance{}, fmt.Errorf("invalid instance metadata: %w", err)
	}
	switch {
	case m.Compute == nil:
		return metadata.Instance{}, errors.New(`the instance metadata has no "compute"`)
	case m.Network == nil:
		return metadata.Instance{}, errors.New(`the instance metadata has no "network"`)
	}
	return m, nil
}

// DecodeLoadBalancer decodes the load balancer document.
func DecodeLoadBalancer(body []byte) (metadata.LoadBalancer, error) {
	var m metadata.LoadBalancer
	if err := json.Unmarshal(body, &m); err != nil {
		return metadata.LoadBalancer{}, fmt.Errorf("invalid load balancer metadata: %w", err)
	}
	return m, nil
}

// ask repeats a request while another attempt may succeed.
func ask[T any](ctx context.Context, c *Client, path, version string, decode func([]byte) (T, error)) (T, error) {
	delay := c.config.Delay
	for attempt := 1; ; attempt++ {
		body, err := c.get(ctx, path, version)
		var answer T
		if err == nil {
			if answer, err = decode(body); err == nil {
				return answer, nil
			}
			err = &azure.Error{Kind: azure.Invalid, Op: "GET " + c.config.Endpoint + path + ":", Status: http.StatusOK, Cause: err}
		}
		if attempt == c.config.Attempts || !worthwhile(err) {
			return answer, err
		}
		if err := wait(ctx, max(delay, retryAfter(err))); err != nil {
			return answer, err
		}
		delay *= 2
	}
}

// worthwhile reports whether another attempt may succeed. An incomplete document may be complete the
// next time.
func worthwhile(err error) bool {
	e, ok := errors.AsType[*azure.Error](err)
	return ok && (e.Kind.Retryable() || e.Kind == azure.Invalid && e.Status == http.StatusOK)
}

// longestWait limits the Retry-After of the service. The caller tries again later anyway.
const longestWait = 10 * time.Second

func retryAfter(err error) time.Duration {
	e, _ := errors.AsType[*azure.Error](err)
	return min(e.RetryAfter, longestWait)
}

func wait(ctx context.Context, d time.Duration) error {
	if err := pause.For(ctx, d); err != nil {
		return &azure.Error{Kind: azure.Canceled, Op: "ask the metadata service", Cause: err}
	}
	return nil
}

// get sends one request.
func (c *Client) get(ctx context.Context, path, version string) ([]byte, error) {
	attempt, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	fail := func(kind azure.Kind, cause error) error {
		if err := ctx.Err(); err != nil {
			kind, cause = azure.Canceled, err
		}
		return &azure.Error{Kind: kind, Op: "GET " + c.config.Endpoint + path + ":", Cause: cause}
	}
	request, err := http.NewRequestWithContext(attempt, http.MethodGet, c.config.Endpoint+path+"?format=json&api-version="+version, nil)
	if err != nil {
		return nil, fail(azure.Internal, err)
	}
	request.Header.Set("Metadata", "True")
	if c.config.UserAgent != "" {
		request.Header.Set("User-Agent", c.config.UserAgent)
	}
	response, err := c.http.Do(request)
	if err != nil {
		// A url.Error repeats the URL.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fail(azure.Unavailable, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	switch {
	case err != nil:
		return nil, fail(azure.Unavailable, fmt.Errorf("read the response: %w", err))
	case response.StatusCode != http.StatusOK:
		return nil, refused(response, path, c.config.Endpoint, body)
	case len(body) > mostBytes:
		return nil, fail(azure.Invalid, fmt.Errorf("the response is longer than %d bytes", mostBytes))
	}
	return body, nil
}
