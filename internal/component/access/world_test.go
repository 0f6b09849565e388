package access_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/component/access"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// Tenants and identities.
const (
	clientID   = "aaaaaaaa-0000-0000-0000-000000000001"
	objectID   = "aaaaaaaa-0000-0000-0000-00000000000a"
	secret     = "the-s3cret-of-the-test"
	systemID   = "aaaaaaaa-0000-0000-0000-000000000002"
	systemOID  = "aaaaaaaa-0000-0000-0000-00000000000b"
	otherID    = "bbbbbbbb-0000-0000-0000-000000000000" // a tenant
	networkSub = "00000000-0000-0000-0000-00000000000b"
	issuer     = "https://oidc.test"
	subject    = "system:serviceaccount:kube-system:cloud-controller-manager"
)

// Scopes.
const (
	group        = azure.ID("/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg")
	networkGroup = azure.ID("/subscriptions/" + networkSub + "/resourceGroups/net")
	identityID   = group + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
)

// newWorld returns a local Azure with a service principal that has all kinds of credentials, and a
// managed identity. Neither has any rights.
func newWorld(t *testing.T, issuers ...token.Issuer) *testkit.SignIn {
	t.Helper()
	w := testkit.NewSignIn(t, core.Options{
		Subscriptions: []core.Subscription{{ID: networkSub, Tenant: otherID}},
	}, token.Config{
		Issuers: issuers,
		Applications: []token.Application{
			{
				ClientID: clientID, ObjectID: objectID, Secrets: []string{secret}, Certificates: []*x509.Certificate{certificate(t)},
				Federated: []token.Federated{{Issuer: issuer, Subject: subject, Audiences: []string{"api://AzureADTokenExchange"}}},
			},
			{ClientID: systemID, ObjectID: systemOID, Managed: true},
		},
	}, systemID)
	w.Put(t, group, map[string]any{"location": "eastus"})
	w.Put(t, networkGroup, map[string]any{"location": "eastus"})
	w.Put(t, identityID, map[string]any{"location": "eastus"})
	return w
}

// certificate returns the certificate in testdata.
func certificate(t *testing.T) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile("testdata/certificate.pem")
	if err != nil {
		t.Fatal(err)
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
	}
	t.Fatal("no certificate")
	return nil
}

type keys = map[string]any

// settings returns the configuration of a cluster with additional keys.
func settings(t *testing.T, own keys, environment ...string) cloudconfig.Config {
	t.Helper()
	all := keys{
		"tenantId": core.DefaultTenant, "subscriptionId": core.DefaultSubscription,
		"resourceGroup": "rg", "location": "eastus",
	}
	maps.Copy(all, own)
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]string{}
	for i := 0; i < len(environment); i += 2 {
		vars[environment[i]] = environment[i+1]
	}
	c, _, err := cloudconfig.Read(cloudconfig.Sources{Secret: text, Environment: func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens Azure for the configuration and signs in.
func open(t *testing.T, w *testkit.SignIn, c cloudconfig.Config) (*access.Clients, error) {
	t.Helper()
	e, err := access.DescribeCloud(t.Context(), w, c)
	if err != nil {
		return nil, err
	}
	d, err := access.OpenClient(c, e, access.ClientOptions{Transport: w})
	if err != nil {
		return nil, err
	}
	return d, d.SignIn(t.Context())
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// identityOf returns the client id and the object id of the user-assigned identity.
func identityOf(t *testing.T, w *testkit.SignIn) (client, object string) {
	t.Helper()
	a, ok := w.Tokens.ByResourceID(identityID)
	if !ok {
		t.Fatal("the identity is not there")
	}
	return a.ClientID, a.ObjectID
}
