package credential

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// identityFile is the credential file of a managed identity, as Azure's data plane for managed
// identities gives it to a hosted control plane. The secret is a certificate with its key, PKCS#12 or
// PEM, in base64.
type identityFile struct {
	ClientID  string `json:"client_id"`
	TenantID  string `json:"tenant_id"`
	Secret    string `json:"client_secret"`
	Authority string `json:"authentication_endpoint"`
}

// dataPlane gets tokens with the certificate in a credential file. The data plane renews the
// certificate and another program replaces the file, so dataPlane reads it before each token.
type dataPlane struct {
	path      string
	transport policy.Transporter

	mu      sync.Mutex // guards what follows
	content []byte
	current azcore.TokenCredential
}

func newDataPlane(path string, transport policy.Transporter) (*dataPlane, error) {
	d := &dataPlane{path: path, transport: transport}
	return d, d.load()
}

// GetToken implements [azcore.TokenCredential]. While a changed file cannot be read, the last
// certificate is used: the file may be half written.
func (d *dataPlane) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	d.mu.Lock()
	if err := d.load(); err != nil {
		slog.WarnContext(ctx, "credential file not read, the last one is used", "error", err)
	}
	current := d.current
	d.mu.Unlock()
	return current.GetToken(ctx, o)
}

// load reads the file and replaces the credential if the file has changed.
func (d *dataPlane) load() error {
	content, err := os.ReadFile(d.path)
	if err != nil || bytes.Equal(content, d.content) {
		return err
	}
	credential, err := d.parse(content)
	if err != nil {
		return fmt.Errorf("the file %s, expected JSON with client_id, tenant_id, client_secret and authentication_endpoint: %w",
			d.path, err)
	}
	d.content, d.current = content, credential
	return nil
}

func (d *dataPlane) parse(content []byte) (azcore.TokenCredential, error) {
	var f identityFile
	if err := json.Unmarshal(content, &f); err != nil {
		return nil, err
	}
	err := required("client_id", f.ClientID, "tenant_id", f.TenantID, "client_secret", f.Secret, "authentication_endpoint", f.Authority)
	if err != nil {
		return nil, err
	}
	authority, _, err := Config{Authority: f.Authority}.authority(f.TenantID)
	if err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(f.Secret)
	if err != nil {
		return nil, fmt.Errorf("client_secret is not base64: %w", err)
	}
	chain, key, err := azidentity.ParseCertificates(data, nil)
	if err != nil {
		return nil, fmt.Errorf("client_secret is no certificate with its key: %w", err)
	}
	return azidentity.NewClientCertificateCredential(f.TenantID, f.ClientID, chain, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: azcore.ClientOptions{
			Cloud:     cloud.Configuration{ActiveDirectoryAuthorityHost: authority},
			Transport: d.transport,
		},
		SendCertificateChain:     true,
		DisableInstanceDiscovery: true, // the endpoint may be a regional one, which discovery does not know
	})
}
