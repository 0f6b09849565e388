package credential

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"kaz/internal/azure/secret"
)

// Kind is a way to authenticate.
type Kind string

// The kinds, in order of precedence.
const (
	WorkloadIdentity Kind = "workload identity"
	ManagedIdentity  Kind = "managed identity"
	ClientSecret     Kind = "service principal with a secret"
	Certificate      Kind = "service principal with a certificate"
	DataPlane        Kind = "managed identity of the data plane file"
	None             Kind = "none"
)

// adfs is the tenant name for Active Directory Federation Services.
const adfs = "adfs"

// Config describes the identity. The zero value has none.
type Config struct {
	TenantID string // "adfs" for Active Directory Federation Services
	ClientID string

	// WorkloadIdentity uses FederatedToken or, if that is not set, the token in the file
	// FederatedTokenFile.
	WorkloadIdentity   bool
	FederatedToken     secret.Text
	FederatedTokenFile string
	// ManagedIdentity uses the identity of the host. This is the user-assigned identity with the client id or
	// resource id ManagedIdentityID. If ManagedIdentityID is empty, it is the system-assigned identity.
	ManagedIdentity   bool
	ManagedIdentityID string
	// ClientSecret and CertificatePath, a PEM or PKCS#12 file, authenticate the service principal
	// ClientID.
	ClientSecret        secret.Text
	CertificatePath     string
	CertificatePassword secret.Text
	// DataPlaneIdentityPath is the credential file of a hosted control plane's managed identity. The
	// file names client, tenant and authority itself.
	DataPlaneIdentityPath string

	// NetworkTenantID is the tenant of the network resources if it is another tenant. Service
	// principals sign in to both tenants. A managed identity cannot, and gets its token for that
	// tenant from NetworkToken.
	NetworkTenantID string
	NetworkToken    *VaultSecret

	// Authority is the URL of the token issuer; the default is the public cloud's.
	Authority string
	// Endpoint and Scope belong to Azure Resource Manager. Only NetworkToken needs them.
	Endpoint, Scope string
	// Transport sends requests for tokens; the default is azcore's.
	Transport policy.Transporter
}

// Credentials authenticate the ARM clients.
type Credentials struct {
	Kind Kind
	// Compute and Network authenticate in the two subscriptions. They are nil if the kind is None,
	// and equal unless the tenants differ.
	Compute, Network azcore.TokenCredential
	// Auxiliary gets tokens of the network's tenant for the compute client, which refers to network
	// resources. It is nil unless the tenants differ.
	Auxiliary azcore.TokenCredential
}

// New returns the credentials of a configuration. It requests no token.
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
	if !c.twoTenants() || kind == WorkloadIdentity || kind == DataPlane { // both belong to one tenant only
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
	case !c.ClientSecret.IsZero():
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

// of returns the credential of a kind in a tenant.
func (c Config) of(kind Kind, tenant string) (azcore.TokenCredential, error) {
	credential, err := c.bare(kind, tenant)
	if err != nil {
		return nil, err
	}
	identity := "client " + c.ClientID + " in tenant " + tenant
	switch {
	case kind == ManagedIdentity && c.ManagedIdentityID == "":
		identity = "system-assigned"
	case kind == ManagedIdentity:
		identity = c.ManagedIdentityID
	case kind == DataPlane:
		identity = c.DataPlaneIdentityPath
	}
	return &named{credential, kind, identity, []secret.Text{c.ClientSecret, c.CertificatePassword, c.FederatedToken}}, nil
}

func (c Config) bare(kind Kind, tenant string) (azcore.TokenCredential, error) {
	if strings.EqualFold(tenant, adfs) {
		tenant = adfs // azidentity accepts this spelling only
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
		if !c.FederatedToken.IsZero() {
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
		return azidentity.NewClientSecretCredential(tenant, c.ClientID, c.ClientSecret.Reveal(), &azidentity.ClientSecretCredentialOptions{
			ClientOptions: options, DisableInstanceDiscovery: !discovery,
		})
	case Certificate:
		if err := required("tenant", tenant, "client id", c.ClientID); err != nil {
			return nil, err
		}
		return c.certificate(tenant, options, discovery)
	}
	return newDataPlane(c.DataPlaneIdentityPath, c.Transport)
}

// federated authenticates with a federated token.
func (c Config) federated(tenant string, options azcore.ClientOptions, discovery bool) (azcore.TokenCredential, error) {
	if err := required("tenant", tenant, "client id", c.ClientID); err != nil {
		return nil, err
	}
	token := func(context.Context) (string, error) { return c.FederatedToken.Reveal(), nil }
	return azidentity.NewClientAssertionCredential(tenant, c.ClientID, token, &azidentity.ClientAssertionCredentialOptions{
		ClientOptions: options, DisableInstanceDiscovery: !discovery,
	})
}

// certificate authenticates with a certificate and its chain. With the chain, Azure can trust an
// issuer and a subject name, so certificates can be renewed without a change in Azure.
func (c Config) certificate(tenant string, options azcore.ClientOptions, discovery bool) (azcore.TokenCredential, error) {
	data, err := os.ReadFile(c.CertificatePath)
	if err != nil {
		return nil, err
	}
	chain, key, err := azidentity.ParseCertificates(data, []byte(c.CertificatePassword.Reveal()))
	if err != nil {
		return nil, fmt.Errorf("the file %s, expected PEM or PKCS#12 (encrypted with 3DES, as openssl pkcs12 -export -legacy does) "+
			"with a certificate and its key: %w", c.CertificatePath, err)
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

// required returns an error with the names of all empty values. pairs alternates names and values.
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

// authority returns the host of the token issuer and whether azidentity may query the public cloud
// about it. A private cloud's issuer is unknown to the public cloud, and without Internet access the
// query would hang.
func (c Config) authority(tenant string) (host string, discovery bool, err error) {
	if c.Authority == "" {
		return cloud.AzurePublic.ActiveDirectoryAuthorityHost, true, nil
	}
	u, err := url.Parse(c.Authority)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return "", false, errors.New("the authority is not a URL such as " + cloud.AzurePublic.ActiveDirectoryAuthorityHost)
	}
	if tenant == adfs {
		// Clouds include the path /adfs here, and azidentity adds it as the tenant.
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
