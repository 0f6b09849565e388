package access_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/token"
)

// cluster issues the tokens of service accounts.
type cluster struct{ key *rsa.PrivateKey }

func newCluster(t *testing.T) cluster {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return cluster{key}
}

func (c cluster) issuer(t *testing.T) token.Issuer {
	t.Helper()
	public := c.key.PublicKey
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256",
		"n": base64.RawURLEncoding.EncodeToString(public.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(public.E)).Bytes()),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := token.ParseKeys(set)
	if err != nil {
		t.Fatal(err)
	}
	return token.Issuer{URL: issuer, Keys: keys}
}

// account writes the token of a service account to a file.
func (c cluster) account(t *testing.T, subject string) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	now := time.Now()
	signed := part(map[string]string{"alg": "RS256", "kid": "k", "typ": "JWT"}) + "." + part(map[string]any{
		"iss": issuer, "sub": subject, "aud": []string{"api://AzureADTokenExchange"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, c.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return file(t, signed+"."+base64.RawURLEncoding.EncodeToString(signature))
}

// dataPlaneFile returns the path of a hosted control plane's credential file.
func dataPlaneFile(t *testing.T) string {
	t.Helper()
	certificate, err := os.ReadFile("testdata/certificate.pem")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"client_id": clientID, "tenant_id": core.DefaultTenant, "client_secret": base64.StdEncoding.EncodeToString(certificate),
		"authentication_endpoint": "https://login.microsoftonline.com/",
	})
	if err != nil {
		t.Fatal(err)
	}
	return file(t, string(text))
}

// TestKinds signs in with each kind of credential at the local Azure and calls its Resource Manager.
// Managed identities need a cloud of their own each, because azidentity caches their tokens for the
// whole process.
func TestKinds(t *testing.T) {
	k8s := newCluster(t)
	for name, c := range map[string]struct {
		keys        keys
		environment []string
		object      string // the expected principal
	}{
		"secret":                {keys{"aadClientId": clientID, "aadClientSecret": secret}, nil, objectID},
		"secret in environment": {keys{"aadClientId": clientID}, []string{"AZURE_CLIENT_SECRET", secret}, objectID},
		"certificate, PEM":      {keys{"aadClientId": clientID, "aadClientCertPath": "testdata/certificate.pem"}, nil, objectID},
		"certificate, PKCS#12": {keys{"aadClientId": clientID, "aadClientCertPath": "testdata/certificate.pfx",
			"aadClientCertPassword": "word"}, nil, objectID},
		"workload identity": {keys{"aadClientId": clientID, "useFederatedWorkloadIdentityExtension": true,
			"aadFederatedTokenFile": k8s.account(t, subject)}, nil, objectID},
		"the pod's environment": {keys{"useManagedIdentityExtension": true},
			[]string{"AZURE_CLIENT_ID", clientID, "AZURE_TENANT_ID", core.DefaultTenant, "AZURE_FEDERATED_TOKEN_FILE",
				k8s.account(t, subject)}, objectID},
		"data plane file": {keys{"aadMSIDataPlaneIdentityPath": dataPlaneFile(t)}, nil, objectID},
		"system-assigned": {keys{"useManagedIdentityExtension": true}, nil, systemOID},
		"a custom cloud, ADFS": {keys{"cloud": "AzurePublicCloud", "resourceManagerEndpoint": "https://stack.test:8443",
			"tenantId": "adfs", "aadClientId": clientID, "aadClientSecret": secret}, nil, objectID},
		"the public cloud's name": {keys{"cloud": "azurecloud", "aadClientId": clientID, "aadClientSecret": secret}, nil, objectID},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, k8s.issuer(t))
			w.Grant(t, c.object, group, "Microsoft.Resources/subscriptions/resourceGroups/read", "*/read")
			d, err := open(t, w, settings(t, c.keys, c.environment...))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Get(t.Context(), group); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUserAssigned names an identity by its client id or by its resource id.
func TestUserAssigned(t *testing.T) {
	w := newWorld(t)
	client, object := identityOf(t, w)
	w.Grant(t, object, group, "*/read")
	for _, id := range []string{client, string(identityID), strings.ToUpper(string(identityID[:15])) + string(identityID[15:])} {
		d, err := open(t, w, settings(t, keys{"useManagedIdentityExtension": true, "userAssignedIdentityID": id}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Get(t.Context(), group); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestWrongCredentials checks that the error names the identity and the reason, and never the secret.
func TestWrongCredentials(t *testing.T) {
	k8s, foreign := newCluster(t), newCluster(t)
	for name, c := range map[string]struct {
		keys keys
		says []string
	}{
		"wrong secret": {keys{"aadClientId": clientID, "aadClientSecret": "wrong-secret"},
			[]string{"service principal with a secret", clientID, "AADSTS7000215", "Invalid client secret"}},
		"unknown client": {keys{"aadClientId": "aaaaaaaa-0000-0000-0000-0000000000ff", "aadClientSecret": secret},
			[]string{"service principal", "AADSTS700016", "was not found in the directory"}},
		"unknown tenant": {keys{"tenantId": "cccccccc-0000-0000-0000-000000000000", "aadClientId": clientID,
			"aadClientSecret": secret}, []string{"cccccccc-0000-0000-0000-000000000000"}},
		"no certificate file": {keys{"aadClientId": clientID, "aadClientCertPath": "testdata/none.pem"},
			[]string{"service principal with a certificate", "testdata/none.pem"}},
		"wrong password": {keys{"aadClientId": clientID, "aadClientCertPath": "testdata/certificate.pfx",
			"aadClientCertPassword": "wrong"}, []string{"service principal with a certificate", "testdata/certificate.pfx", "password"}},
		"newer encryption": {keys{"aadClientId": clientID, "aadClientCertPath": "testdata/newer.pfx",
			"aadClientCertPassword": "word"}, []string{"testdata/newer.pfx", "3DES", "-legacy"}},
		"no certificate": {keys{"aadClientId": clientID, "aadClientCertPath": file(t, "nonsense")},
			[]string{"service principal with a certificate", "PEM or PKCS#12"}},
		"another account": {keys{"aadClientId": clientID, "useFederatedWorkloadIdentityExtension": true,
			"aadFederatedTokenFile": k8s.account(t, "system:serviceaccount:default:x")},
			[]string{"workload identity", clientID, "AADSTS700213", "system:serviceaccount:default:x"}},
		"another cluster": {keys{"aadClientId": clientID, "useFederatedWorkloadIdentityExtension": true,
			"aadFederatedTokenFile": foreign.account(t, subject)}, []string{"workload identity", "AADSTS700027"}},
		"no token file": {keys{"aadClientId": clientID, "useFederatedWorkloadIdentityExtension": true,
			"aadFederatedTokenFile": "/nonexistent/token"}, []string{"workload identity", "/nonexistent/token"}},
		"unknown identity": {keys{"useManagedIdentityExtension": true,
			"userAssignedIdentityID": "aaaaaaaa-0000-0000-0000-0000000000fe"},
			[]string{"managed identity", "aaaaaaaa-0000-0000-0000-0000000000fe", "Identity not found"}},
		"no file of the data plane": {keys{"aadMSIDataPlaneIdentityPath": "/etc/identity.json"},
			[]string{"managed identity of the data plane", "/etc/identity.json"}},
		"a cloud without itself": {keys{"cloud": "AzureChinaCloud", "resourceManagerEndpoint": "https://elsewhere.test:8443",
			"aadClientId": clientID, "aadClientSecret": "wrong-secret"}, []string{"service principal with a secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, k8s.issuer(t))
			_, err := open(t, w, settings(t, c.keys))
			if err == nil {
				t.Fatal("it got a token")
			}
			for _, words := range c.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
			if text := err.Error(); strings.Contains(text, "\n") || strings.Contains(text, "wrong-secret") ||
				strings.Contains(text, secret) {
				t.Errorf("%q", text)
			}
			if asked := w.Seen("/subscriptions/"); len(asked) > 0 {
				t.Errorf("azure was asked for %s all the same", asked[0].URL.Path)
			}
		})
	}
}

// TestStack uses an environment file with the endpoints and token issuer of an Azure Stack, which has
// no metadata and no zones.
func TestStack(t *testing.T) {
	described, err := json.Marshal(map[string]string{
		"name": "AzureStackCloud", "resourceManagerEndpoint": "https://stack.test:8443/", "tokenAudience": "https://stack.test:8443",
		"activeDirectoryEndpoint": "https://login.stack.test:8443/adfs/", "storageEndpointSuffix": "stack.test",
	})
	if err != nil {
		t.Fatal(err)
	}
	c := settings(t, keys{"cloud": "AzureStackCloud", "tenantId": "adfs", "aadClientId": clientID, "aadClientSecret": secret},
		"AZURE_ENVIRONMENT_FILEPATH", file(t, string(described)))
	w := newWorld(t)
	w.Grant(t, objectID, group, "*/read")
	d, err := open(t, w, c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Get(t.Context(), group.Resource("Microsoft.Network/routeTables", "t")); err == nil ||
		!strings.Contains(err.Error(), "not found") {
		t.Error(err)
	}
	asked := w.Seen("/routeTables/")
	if len(asked) != 1 || asked[0].URL.Host != "stack.test:8443" || asked[0].URL.Query().Get("api-version") != "2018-11-01" {
		t.Errorf("%d requests: %v", len(asked), asked[0].URL)
	}
	if len(w.Seen("/adfs/oauth2/token")) == 0 || len(w.Seen("/metadata/endpoints")) != 0 || !c.Stack() {
		t.Error("it was not signed in as the file says")
	}
	if _, err := open(t, w,
		settings(t, keys{"cloud": "AzureStackCloud", "tenantId": "adfs", "aadClientId": clientID, "aadClientSecret": secret},
			"AZURE_ENVIRONMENT_FILEPATH", "/nonexistent")); err == nil || !strings.Contains(err.Error(), "AZURE_ENVIRONMENT_FILEPATH") {
		t.Errorf("without the file: %v", err)
	}
}

// TestDescribedCloud checks that a custom Resource Manager is asked once and must know the configured
// cloud.
func TestDescribedCloud(t *testing.T) {
	w := newWorld(t)
	w.Grant(t, objectID, group, "*/read")
	c := settings(t,
		keys{"cloud": "azurePUBLICcloud", "resourceManagerEndpoint": "https://here.test:8443/", "tenantId": "adfs",
			"aadClientId": clientID, "aadClientSecret": secret})
	if _, err := open(t, w, c); err != nil {
		t.Fatal(err)
	}
	if asked := w.Seen("/metadata/endpoints"); len(asked) != 1 {
		t.Errorf("asked %d times about the cloud", len(asked))
	}
	_, err := open(t, w,
		settings(t, keys{"cloud": "AzureMarsCloud", "resourceManagerEndpoint": "https://here.test:8443", "tenantId": "adfs",
			"aadClientId": clientID, "aadClientSecret": secret}))
	if err == nil || !strings.Contains(err.Error(), "AzureMarsCloud") || !strings.Contains(err.Error(), "AzurePublicCloud") {
		t.Errorf("another cloud: %v", err)
	}
}
