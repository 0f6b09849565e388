package approver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	issuerTimeout  = 10 * time.Second
	longestIssuer  = 64 << 10
	issuerLifetime = 24 * time.Hour
	mostIssuers    = 16 // addresses in one certificate, and certificates in the cache
)

// issuerHosts are the hosts from which Azure's certificates are downloaded, as its documentation lists them for firewalls.
func issuerHosts() []string {
	return []string{"caissuers.microsoft.com", "www.microsoft.com", "cacerts.digicert.com", "cacerts.digicert.cn", "cacerts.geotrust.com"}
}

// issuers downloads the certificates between a signer and its root. A signed document lacks them.
type issuers struct {
	client *http.Client

	mu    sync.Mutex // guards known; never held while waiting
	known map[string]issuer
}

type issuer struct {
	certificate *x509.Certificate
	until       time.Time
}

func newIssuers(transport http.RoundTripper) *issuers {
	return &issuers{known: map[string]issuer{}, client: &http.Client{
		Transport: transport, Timeout: issuerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are not followed") },
	}}
}

// pool returns the certificates at some addresses. Addresses at other hosts than Azure's are left out.
func (i *issuers) pool(ctx context.Context, addresses []string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	var errs []error
	for _, address := range addresses[:min(len(addresses), mostIssuers)] {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !slices.Contains(issuerHosts(), u.Host) {
			continue
		}
		c, err := i.get(ctx, address)
		if err != nil {
			errs = append(errs, fmt.Errorf("download the certificate %s: %w", address, err))
			continue
		}
		pool.AddCert(c)
	}
	return pool, errors.Join(errs...)
}

func (i *issuers) get(ctx context.Context, address string) (*x509.Certificate, error) {
	i.mu.Lock()
	had, ok := i.known[address]
	i.mu.Unlock()
	if ok && time.Now().Before(had.until) {
		return had.certificate, nil
	}
	c, err := i.download(ctx, address)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.known) >= mostIssuers {
		clear(i.known)
	}
	i.known[address] = issuer{c, time.Now().Add(issuerLifetime)}
	return c, nil
}

func (i *issuers) download(ctx context.Context, address string) (*x509.Certificate, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := i.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestIssuer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > longestIssuer {
		return nil, fmt.Errorf("the answer has more than %d bytes", longestIssuer)
	}
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	return x509.ParseCertificate(text)
}
