package pullcredential

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
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Binding is an identity binding: the cluster's API server, under a special name, exchanges tokens of
// service accounts for tokens of Entra ID.
type Binding struct {
	// ServerName is the TLS server name. Address is the IP address to dial, with a port unless it is
	// 443.
	ServerName, Address string
	// ClientID and TenantID apply to service accounts without the annotations.
	ClientID, TenantID string
	// Roots verify the API server's certificate.
	Roots *x509.CertPool
}

// Check returns what is wrong with a binding.
func (b *Binding) Check() error {
	var problems []error
	if strings.Contains(b.ServerName, "://") || !isDomain(b.ServerName) {
		problems = append(problems, fmt.Errorf("--ib-sni-name %q: want a host name without a scheme", shorten(b.ServerName)))
	}
	if b.Address == "" {
		problems = append(problems, errors.New("--ib-apiserver-ip is required with --ib-sni-name"))
	} else if _, err := b.place(); err != nil {
		problems = append(problems, fmt.Errorf("--ib-apiserver-ip %q: want an IP address", shorten(b.Address)))
	}
	return errors.Join(problems...)
}

// place returns the address to dial.
func (b *Binding) place() (string, error) {
	if ip, err := netip.ParseAddr(b.Address); err == nil {
		return net.JoinHostPort(ip.String(), "443"), nil
	}
	at, err := netip.ParseAddrPort(b.Address)
	return at.String(), err
}

func (b *Binding) identity(r Request) (Identity, error) {
	if r.ServiceAccountToken.IsZero() {
		return Identity{},
			errors.New("identity binding: the request has no service account token: tokenAttributes are missing in the kubelet's " +
				"credential provider config")
	}
	client, tenant := r.ServiceAccountAnnotations[ClientIDAnnotation], r.ServiceAccountAnnotations[TenantIDAnnotation]
	if client == "" {
		client = b.ClientID
	}
	if tenant == "" {
		tenant = b.TenantID
	}
	if client == "" {
		return Identity{},
			fmt.Errorf("identity binding: client id annotation %s is not found or the value is empty, and there is no "+
				"--ib-default-client-id", ClientIDAnnotation)
	}
	return Identity{
		Name: "client " + shorten(client) + " by identity binding", Tenant: tenant,
		Token: func(ctx context.Context, scope string) (string, error) {
			return b.token(ctx, r.ServiceAccountToken.Reveal(), client, scope)
		},
	}, nil
}

// token requests a token from the API server.
func (b *Binding) token(ctx context.Context, assertion, client, scope string) (string, error) {
	const longest = 15 * time.Second
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"scope": {scope}, "client_assertion": {assertion}, "client_id": {client},
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+b.ServerName, strings.NewReader(form.Encode()))
	if err != nil {
		return "", fmt.Errorf("identity binding: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", userAgent)
	transport := b.transport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return "", fmt.Errorf("identity binding at %s: %w", b.ServerName, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, largestAnswer))
	if err != nil {
		return "", fmt.Errorf("identity binding at %s: %w", b.ServerName, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("identity binding at %s responded with status code %d%s", b.ServerName, resp.StatusCode,
			said(body, assertion))
	}
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.AccessToken == "" {
		return "", fmt.Errorf("identity binding at %s answered without an access_token", b.ServerName)
	}
	return answer.AccessToken, nil
}

// transport connects to the API server's address, whatever its name resolves to, and without a proxy.
func (b *Binding) transport() *http.Transport {
	var dialer net.Dialer
	return &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			place, err := b.place()
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, place)
		},
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: b.Roots, ServerName: b.ServerName},
		ForceAttemptHTTP2: true,
	}
}
