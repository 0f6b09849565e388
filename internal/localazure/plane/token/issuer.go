package token

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Issuer issues federated tokens, such as a Kubernetes API server. An issuer on this machine need not be listed: its
// keys are fetched.
type Issuer struct {
	// URL is the issuer in its tokens.
	URL string
	// Keys verify its tokens. Without keys they are fetched.
	Keys Keys
	// Discovery is the base URL of its OpenID configuration if it is not URL. Roots verify its certificate, nil for the
	// system's roots.
	Discovery string
	Roots     *x509.CertPool
}

// issuers has the keys of issuers and fetches missing keys.
type issuers struct {
	mu    sync.Mutex
	known map[string]Issuer
	kept  map[string]keptKeys
}

type keptKeys struct {
	keys    Keys
	fetched time.Time
}

// unreachable is the error for an issuer without reachable keys.
type unreachable struct{ error }

func newIssuers(list []Issuer) (*issuers, error) {
	i := &issuers{known: map[string]Issuer{}, kept: map[string]keptKeys{}}
	for _, issuer := range list {
		if _, twice := i.known[issuer.URL]; twice {
			return nil, fmt.Errorf("issuer %s is listed twice", issuer.URL)
		}
		i.known[issuer.URL] = issuer
	}
	return i, nil
}

// keysLast is the lifetime of fetched keys. A token with an unknown key fetches them earlier, though not every time.
const (
	keysLast  = 10 * time.Minute
	fetchRest = 5 * time.Second
)

func (i *issuers) verify(ctx context.Context, url string, j *jwt) error {
	i.mu.Lock()
	issuer, listed := i.known[url]
	kept := i.kept[url]
	i.mu.Unlock()
	if len(issuer.Keys) > 0 {
		return issuer.Keys.verify(j)
	}
	if !listed {
		issuer = Issuer{URL: url}
	}
	age := time.Since(kept.fetched)
	if age < keysLast {
		err := kept.keys.verify(j)
		if err == nil || age < fetchRest {
			return err
		}
	}
	keys, err := issuer.fetch(ctx)
	if err != nil {
		return &unreachable{err}
	}
	i.mu.Lock()
	i.kept[url] = keptKeys{keys, time.Now()}
	i.mu.Unlock()
	return keys.verify(j)
}

// fetch reads the issuer's OpenID configuration and its keys. It contacts only issuers on this machine and listed
// issuers with a Discovery.
func (issuer Issuer) fetch(ctx context.Context) (Keys, error) {
	base := issuer.Discovery
	if base == "" {
		base = issuer.URL
	}
	if !onThisMachine(base) {
		return nil, fmt.Errorf("issuer %s is not on this machine: give its keys in the identities file", base)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: issuer.Roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	var configuration struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	text, err := get(ctx, client, strings.TrimSuffix(base, "/")+"/.well-known/openid-configuration")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &configuration); err != nil {
		return nil, fmt.Errorf("openid configuration of %s: %w", base, err)
	}
	if configuration.Issuer != issuer.URL {
		return nil, fmt.Errorf("openid configuration of %s is for issuer %q, want %q", base, configuration.Issuer, issuer.URL)
	}
	place, err := keysPlace(configuration.Keys, base)
	if err != nil {
		return nil, err
	}
	if text, err = get(ctx, client, place); err != nil {
		return nil, err
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("keys of %s: %w", base, err)
	}
	return keys, nil
}

// keysPlace returns the URL of the keys. An API server names its external address, which may be unreachable from here,
// so only the path counts.
func keysPlace(named, base string) (string, error) {
	u, err := url.Parse(named)
	if err != nil || u.Path == "" {
		return "", fmt.Errorf("openid configuration of %s: jwks_uri %q is not a URL", base, named)
	}
	if onThisMachine(named) {
		return named, nil
	}
	b, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	u.Scheme, u.Host = b.Scheme, b.Host
	return u.String(), nil
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	const largest = 1 << 20
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, largest))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New("GET " + url + ": " + resp.Status)
	}
	return text, err
}

func onThisMachine(rawURL string) bool {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
