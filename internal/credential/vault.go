package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"kaz/internal/arm"
	"kaz/internal/azure"
)

// VaultSecret names a Key Vault secret with a token of another tenant. Another program renews the
// token.
type VaultSecret struct {
	SubscriptionID, ResourceGroup, VaultName, SecretName string
}

// soon is how long before its expiry a token is read again.
const soon = 5 * time.Minute

// vaultToken is a credential that reads its token from a Key Vault.
type vaultToken struct {
	vault     azure.ID
	secret    string
	manager   azure.Reader
	identity  azcore.TokenCredential
	transport policy.Transporter
	// turn holds the last token. The goroutine that received it may renew it, so that no lock is held
	// while waiting.
	turn chan azcore.AccessToken
}

func newVaultToken(c Config, identity azcore.TokenCredential) (*vaultToken, error) {
	s := c.NetworkToken
	if s == nil {
		return nil, errors.New("auxiliaryTokenProvider is not set: a managed identity gets no tokens of another tenant")
	}
	if err := required("subscription", s.SubscriptionID, "resource group", s.ResourceGroup, "vault", s.VaultName, "secret",
		s.SecretName); err != nil {
		return nil, fmt.Errorf("auxiliary token provider: %w", err)
	}
	vault, err := azure.ParseID(string(azure.GroupID(s.SubscriptionID, s.ResourceGroup).Resource("Microsoft.KeyVault/vaults", s.VaultName)))
	if err != nil {
		return nil, fmt.Errorf("auxiliary token provider: %w", err)
	}
	manager, err := arm.New(arm.Config{Endpoint: c.Endpoint, Scope: c.Scope, Credential: identity, Transport: c.Transport})
	if err != nil {
		return nil, fmt.Errorf("auxiliary token provider: %w", err)
	}
	v := &vaultToken{
		vault: vault, secret: s.SecretName, manager: manager, identity: identity,
		transport: c.Transport, turn: make(chan azcore.AccessToken, 1),
	}
	if v.transport == nil {
		v.transport = arm.NewTransport()
	}
	v.turn <- azcore.AccessToken{}
	return v, nil
}

// GetToken returns the token of the vault for any scope: it was issued for one purpose. It reads the
// vault only if the last token expires soon.
func (v *vaultToken) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	var last azcore.AccessToken
	select {
	case last = <-v.turn:
	case <-ctx.Done():
		return azcore.AccessToken{}, ctx.Err()
	}
	defer func() { v.turn <- last }()
	if time.Until(last.ExpiresOn) > soon {
		return last, nil
	}
	const longest = 30 * time.Second
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	next, err := v.read(ctx)
	switch {
	case err == nil:
		last = next
	case time.Until(last.ExpiresOn) <= 0:
		return azcore.AccessToken{}, fmt.Errorf("token of the network's tenant from secret %s of %s: %w", v.secret, v.vault, err)
	}
	return last, nil
}

func (v *vaultToken) read(ctx context.Context) (azcore.AccessToken, error) {
	doc, err := v.manager.Get(ctx, v.vault)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	vault, err := azure.Decode[struct {
		VaultURI string `json:"vaultUri"`
	}](doc)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	base, err := url.Parse(vault.Properties.VaultURI)
	if err != nil || base.Scheme != "https" || base.Host == "" {
		return azcore.AccessToken{}, fmt.Errorf("the vault's URI %q is not an https URL", vault.Properties.VaultURI)
	}
	text, err := v.value(ctx, base)
	if err != nil {
		return azcore.AccessToken{}, err
	}
	return parseToken(text, time.Now())
}

// value reads the value of the secret.
func (v *vaultToken) value(ctx context.Context, base *url.URL) (string, error) {
	_, domain, _ := strings.Cut(base.Host, ".") // myvault.vault.azure.net
	pipeline := runtime.NewPipeline("kaz", "", runtime.PipelineOptions{
		PerRetry: []policy.Policy{runtime.NewBearerTokenPolicy(v.identity, []string{"https://" + domain + "/.default"}, nil)},
	}, &policy.ClientOptions{Transport: v.transport, Telemetry: policy.TelemetryOptions{Disabled: true}})
	at := base.JoinPath("secrets", url.PathEscape(v.secret))
	at.RawQuery = "api-version=7.4"
	req, err := runtime.NewRequest(ctx, http.MethodGet, at.String())
	if err != nil {
		return "", err
	}
	resp, err := pipeline.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := runtime.Payload(resp)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: HTTP %d %s", at.Host, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	var secret struct {
		Value string `json:"value"`
	}
	if json.Unmarshal(body, &secret) != nil || secret.Value == "" {
		return "", fmt.Errorf("%s answered without a value", at.Host)
	}
	return secret.Value, nil
}

// parseToken parses {"access_token":"...","expires_on":...}, with a time in RFC 3339 or seconds since
// 1970. Its errors do not quote the text, which is secret.
func parseToken(text string, now time.Time) (azcore.AccessToken, error) {
	var value struct {
		AccessToken string          `json:"access_token"`
		ExpiresOn   json.RawMessage `json:"expires_on"`
	}
	if json.Unmarshal([]byte(text), &value) != nil || value.AccessToken == "" {
		return azcore.AccessToken{}, errors.New(`the secret's value is not {"access_token":"...","expires_on":"..."}`)
	}
	when := strings.Trim(string(value.ExpiresOn), `"`)
	expires, err := time.Parse(time.RFC3339, when)
	if err != nil {
		seconds, err := strconv.ParseInt(when, 10, 64)
		if err != nil {
			return azcore.AccessToken{}, errors.New("the secret's expires_on is neither RFC 3339 nor seconds since 1970")
		}
		expires = time.Unix(seconds, 0)
	}
	if !expires.After(now) {
		return azcore.AccessToken{}, fmt.Errorf("the token in the secret expired at %s", expires.UTC().Format(time.RFC3339))
	}
	return azcore.AccessToken{Token: value.AccessToken, ExpiresOn: expires}, nil
}
