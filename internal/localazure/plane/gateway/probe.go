package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"kaz/internal/localazure/plane/gateway/routing"
)

// probe asks a member for its health, again and again, until the context ends.
func (p *pool) probe(ctx context.Context, m *member, b *routing.Backend, w *wires) {
	for {
		limited, cancel := context.WithTimeout(ctx, b.Probe.Timeout)
		err := w.ask(limited, m.Host, m.Port, b.Probe)
		cancel()
		if ctx.Err() != nil {
			return
		}
		p.mu.Lock()
		changed := m.observe(err, max(1, b.Probe.UnhealthyAfter))
		p.mu.Unlock()
		if changed {
			p.gateway.healthChanged()
		}
		select {
		case <-p.gateway.options.After(b.Probe.Interval):
		case <-ctx.Done():
			return
		}
	}
}

// mostProbed is how much of a response is searched for the text of a healthy member.
const mostProbed = 4096

// ask sends one probe. Its error says what is wrong with the member.
func (w *wires) ask(ctx context.Context, host string, port int, probe routing.Probe) error {
	if probe.Port != 0 {
		port = probe.Port
	}
	to := routing.Member{Host: host, Port: port}
	if probe.Protocol.Stream() {
		c, err := w.dial(ctx, to.Address(), probe.Protocol.Secure(), "")
		if err != nil {
			return fmt.Errorf("cannot connect to the backend server: %w", err)
		}
		return c.Close()
	}
	name := probe.Host
	if probe.PickHost {
		name = host
	}
	request := (&http.Request{
		Method: http.MethodGet, Host: name, Header: http.Header{"User-Agent": {"Health-Probe"}},
		URL: &url.URL{Scheme: strings.ToLower(string(probe.Protocol)), Host: to.Address()},
	}).WithContext(ctx)
	request.URL.Path, request.URL.RawQuery, _ = strings.Cut(probe.Path, "?")
	response, err := w.probes.RoundTrip(request)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("time taken by the backend to respond to the health probe is more than the timeout of %s", probe.Timeout)
		}
		return fmt.Errorf("cannot connect to the backend server: %w", err)
	}
	defer response.Body.Close()
	if !probe.Healthy(response.StatusCode) {
		return fmt.Errorf("received the status code %d in the backend server's response: want one of %v", response.StatusCode, probe.Codes)
	}
	if probe.Body == "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostProbed))
	if err == nil && !strings.Contains(string(body), probe.Body) {
		err = errors.New("the body of the backend server's response does not match the probe")
	}
	return err
}
