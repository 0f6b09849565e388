package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// Kind is where tokens come from.
type Kind string

// The kinds, in the order in which a configuration that names several is read.
const (
	WorkloadIdentity Kind = "workload identity"
	ManagedIdentity  Kind = "managed identity"
	ClientSecret     Kind = "service principal with a secret"
	Certificate      Kind = "service principal with a certificate"
	DataPlane        Kind = "managed identity of the data plane file"
	None             Kind = "none"
)

// adfs is the tenant of all who sign in with Active Directory Federation Services.
const adfs = "adfs"

// Secret is text that is never printed.
type Secret string

const hidden = "(secret)"

func (Secret) String() string               { return hidden }
func (Secret) GoString() string             { return hidden }
func (Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Config says who we are. The zero value is nobody.
type Config struct {
	TenantID string // "adfs" for Active Directory Federation Services
	ClientID string

	// WorkloadIdentity takes FederatedToken, or without it the token in the file
	// FederatedTokenFile.
	WorkloadIdentity   bool
	FederatedToken     Secret
	FederatedTokenFile string
	// ManagedIdentity takes the identity of the host: the one with the client id or
	// resource id ManagedIdentityID, or without one that of the system.
	ManagedIdentity   bool
	ManagedIdentityID string
	// ClientSecret and the certificate, a PEM or PKCS#12 file, are those of the
	// service principal ClientID.
	ClientSecret        Secret
	CertificatePath     string
	CertificatePassword Secret
	// DataPlaneIdentityPath is the file of an identity that Azure hands to hosted
	// control planes. It is recognised, and refused: no public library reads it.
	DataPlaneIdentityPath string

	// NetworkTenantID is the tenant of the network resources where it is another
	// one. Service principals sign in there too. A managed identity cannot, and
	// takes a token for it from NetworkToken.
	NetworkTenantID string
	NetworkToken    *VaultSecret

	// Authority is who issues tokens; the default is that of the public cloud.
	Authority string
	// Endpoint and Scope are those of Azure Resource Manager. Only NetworkToken
	// needs them.
	Endpoint, Scope string
	// Transport carries requests for tokens; the default is azcore's.
	Transport policy.Transporter
}

// Credentials are what doors are opened with.
type Credentials struct {
	Kind Kind
	// Compute and Network get tokens for the two subscriptions; they are nil when
	// the kind is None, and else the same unless the tenants differ.
	Compute, Network azcore.TokenCredential
	// Auxiliary gets the token of the network's tenant for the compute door, which
	// refers to network resources; nil unless the tenants differ.
	Auxiliary azcore.TokenCredential
}

// New chooses the credential that a configuration names. No token is asked for yet.
func New(c Config) (Credentials, error) {
	kind := c.kind()
	if kind == None {
		return Credentials{Kind: None}, nil
	}
	compute, err := c.of(kind, c.TenantID)
	if err != nil {
		return Credentials{}, fmt.Errorf("%s: %w", kind, err)
	}
	all := Credentials{Kind: kind, Compute: compute, Network: compute}
	if !c.twoTenants() || kind == WorkloadIdentity { // which is federated with one tenant only
		return all, nil
	}
	if kind == ManagedIdentity {
		all.Network, err = newVaultToken(c, compute)
	} else {
		all.Network, err = c.of(kind, c.NetworkTenantID)
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("%s for the network's tenant %s: %w", kind, c.NetworkTenantID, err)
	}
	all.Auxiliary = all.Network
	return all, nil
}

func (c Config) kind() Kind {
	switch {
	case c.WorkloadIdentity:
		return WorkloadIdentity
	case c.ManagedIdentity:
		return ManagedIdentity
	case c.ClientSecret != "":
		return ClientSecret
	case c.CertificatePath != "":
		return Certificate
	case c.DataPlaneIdentityPath != "":
		return DataPlane
	}
	return None
}

func (c Config) twoTenants() bool {
	return c.NetworkTenantID != "" && !strings.EqualFold(c.NetworkTenantID, c.TenantID)
}

// of is the credential of a kind in a tenant.
func (c Config) of(kind Kind, tenant string) (azcore.TokenCredential, error) {
	credential, err := c.bare(kind, tenant)
	if err != nil {
		return nil, err
	}
	who := "client " + c.ClientID + " in tenant " + tenant
	switch {
	case kind == ManagedIdentity && c.ManagedIdentityID == "":
		who = "system-assigned"
	case kind == ManagedIdentity:
		who = c.ManagedIdentityID
	}
	return &named{credential, kind, who, []Secret{c.ClientSecret, c.CertificatePassword, c.FederatedToken}}, nil
}

func (c Config) bare(kind Kind, tenant string) (azcore.TokenCredential, error) {
	if strings.EqualFold(tenant, adfs) {
		tenant = adfs // azidentity knows it in this spelling only
	}
	authority, discovery, err := c.authority(tenant)
	if err != nil {
		return nil, err
	}
	options := azcore.ClientOptions{
		Cloud:     cloud.Configuration{ActiveDirectoryAuthorityHost: authority},
		Transport: c.Transport,
	}
	switch kind {
	case WorkloadIdentity:
		if c.FederatedToken != "" {
			return c.federated(tenant, options, discovery)
		}
		if err := required("tenant", tenant, "client id", c.ClientID, "federated token file", c.FederatedTokenFile); err != nil {
			return nil, err
		}
		return azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: options, ClientID: c.ClientID, TenantID: tenant, TokenFilePath: c.FederatedTokenFile,
			DisableInstanceDiscovery: !discovery,
		})
	case ManagedIdentity:
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{
			ClientOptions: options, ID: managedID(c.ManagedIdentityID),
		})
	case ClientSecret:
		if err := required("tenant", tenant, "client id", c.ClientID); err != nil {
			return nil, err
		}
		return azidentity.NewClientSecretCredential(tenant, c.ClientID, string(c.ClientSecret), &azidentity.ClientSecretCredentialOptions{
			ClientOptions: options, DisableInstanceDiscovery: !discovery,
		})
	case Certificate:
		if err := required("tenant", tenant, "client id", c.ClientID); err != nil {
			return nil, err
		}
		return c.certificate(tenant, options, discovery)
	}
	return nil, fmt.Errorf("%s names such an identity, which kaz cannot use; use another kind", c.DataPlaneIdentityPath)
}

// federated signs in with a token that was handed over.
func (c Config) federated(tenant string, options azcore.ClientOptions, discovery bool) (azcore.TokenCredential, error) {
	if err := required("tenant", tenant, "client id", c.ClientID); err != nil {
		return nil, err
	}
	token := func(context.Context) (string, error) { return string(c.FederatedToken), nil }
	return azidentity.NewClientAssertionCredential(tenant, c.ClientID, token, &azidentity.ClientAssertionCredentialOptions{
		ClientOptions: options, DisableInstanceDiscovery: !discovery,
	})
}

// certificate signs in with the whole chain, which lets Azure trust an issuer and
// a name, so that certificates can be renewed without telling it.
func (c Config) certificate(tenant string, options azcore.ClientOptions, discovery bool) (azcore.TokenCredential, error) {
	data, err := os.ReadFile(c.CertificatePath)
	if err != nil {
		return nil, err
	}
	chain, key, err := azidentity.ParseCertificates(data, []byte(c.CertificatePassword))
	if err != nil {
		return nil, fmt.Errorf("the file %s, expected PEM or PKCS#12 (encrypted with 3DES, as openssl pkcs12 -export -legacy does) with a certificate and its key: %w", c.CertificatePath, err)
	}
	return azidentity.NewClientCertificateCredential(tenant, c.ClientID, chain, key, &azidentity.ClientCertificateCredentialOptions{
		ClientOptions: options, SendCertificateChain: true, DisableInstanceDiscovery: !discovery,
	})
}

func managedID(id string) azidentity.ManagedIDKind {
	switch {
	case id == "":
		return nil
	case strings.Contains(strings.ToLower(id), "/subscriptions/"):
		return azidentity.ResourceID(id)
	}
	return azidentity.ClientID(id)
}

// required names all that is missing of pairs of name and value.
func required(pairs ...string) error {
	var missing []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			missing = append(missing, pairs[i])
		}
	}
	if len(missing) > 0 {
		return errors.New("missing: " + strings.Join(missing, ", "))
	}
	return nil
}

// authority is who issues tokens, and whether the public cloud may be asked about
// it. That question is for authorities which the public cloud knows; to a private
// cloud's it would be a needless way out, and without one it would hang.
func (c Config) authority(tenant string) (host string, discovery bool, err error) {
	if c.Authority == "" {
		return cloud.AzurePublic.ActiveDirectoryAuthorityHost, true, nil
	}
	u, err := url.Parse(c.Authority)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return "", false, errors.New("the authority is no URL such as " + cloud.AzurePublic.ActiveDirectoryAuthorityHost)
	}
	if tenant == adfs {
		// Clouds name the service's own path here, and azidentity adds it as the tenant.
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/adfs")
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u.String(), publicAuthorities()[strings.ToLower(u.Host)], nil
}

func publicAuthorities() map[string]bool {
	return map[string]bool{
		"login.microsoftonline.com": true, "login.microsoft.com": true, "login.windows.net": true, "sts.windows.net": true,
		"login.microsoftonline.us": true, "login.usgovcloudapi.net": true,
		"login.partner.microsoftonline.cn": true, "login.chinacloudapi.cn": true,
	}
}
