package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"kaz/internal/host/process"
)

// readyPoll is the interval of health requests to a starting server.
const readyPoll = 50 * time.Millisecond

// healthClient sends health requests with a client certificate.
type healthClient struct{ client *http.Client }

func newHealthClient(trust, certFile, keyFile string) (*healthClient, error) {
	roots := x509.NewCertPool()
	data, err := os.ReadFile(trust)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	roots.AppendCertsFromPEM(data)
	own, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the administrator's certificate: %w", err)
	}
	return &healthClient{client: &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}}, nil
}

// statusError is the error of a response with another status than 200.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

// do sends a request, with a patch or with "", and returns the body of the response.
func (c *healthClient) do(ctx context.Context, method, url, patch string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(patch))
	if err != nil {
		return nil, err
	}
	if patch != "" {
		req.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &statusError{resp.StatusCode, resp.Status + ": " + lastLines(string(body), 12)}
	}
	return body, nil
}

// wait returns when the server is ready, and fails when its process ends or ctx is done.
func (c *healthClient) wait(ctx context.Context, p *process.Process, url string) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		_, err := c.do(ctx, http.MethodGet, url, "")
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return earlyEnd(p)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; last response: %w; its log is %s and ends with:\n%s",
				p.Name(), context.Cause(ctx), err, p.LogFile(), p.Tail(12))
		case <-tick.C:
		}
	}
}

func earlyEnd(p *process.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%s ended before it was ready; its log is %s and ends with:\n%s", p.Name(), p.LogFile(), p.Tail(12))
}
