package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"kaz/internal/local/process"
)

// readyPoll is how often a starting server is asked whether it is ready.
const readyPoll = 50 * time.Millisecond

// asker asks servers whether they are ready, with a client certificate that they accept.
type asker struct{ client *http.Client }

func newAsker(trust, certFile, keyFile string) (*asker, error) {
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
	return &asker{client: &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
	}}, nil
}

// ask returns nil when the server answers 200.
func (a *asker) ask(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return fmt.Errorf("%s: %s", resp.Status, lastLines(string(said), 12))
	}
	return nil
}

// await returns when the server is ready. It fails when its process ends or ctx is done.
func (a *asker) await(ctx context.Context, p *process.Process, url string) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := a.ask(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return earlyEnd(p)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; last answer: %w; its log is %s and ends with:\n%s",
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
