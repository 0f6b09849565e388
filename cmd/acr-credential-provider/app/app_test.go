package app

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// beProgram makes a process of the test binary run the program: certificates and proxies are read
// from the environment only once in a process.
const beProgram = "KAZ_TEST_ACR_CREDENTIAL_PROVIDER"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" {
		os.Exit(Main(os.Args[1:], Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environment: os.LookupEnv}))
	}
	goleak.VerifyTestMain(m)
}

// Identities in the tests.
const (
	pusher     = "aaaaaaaa-0000-0000-0000-000000000001"
	puller     = "aaaaaaaa-0000-0000-0000-000000000002"
	unassigned = "aaaaaaaa-0000-0000-0000-000000000003"
	nodes      = "aaaaaaaa-0000-0000-0000-000000000004"
	workload   = "aaaaaaaa-0000-0000-0000-000000000005"
	certified  = "aaaaaaaa-0000-0000-0000-000000000006"
)

// registryAzure is a local Azure with role enforcement and a registry.
type registryAzure struct {
	*testing.T
	azure  *server.Server
	info   client.Info
	key    *rsa.PrivateKey // signs tokens of service accounts
	certPE string          // file with the certificate and key of certified
	client *http.Transport
}

func newRegistryAzure(t *testing.T) *registryAzure {
	t.Helper()
	w := &registryAzure{T: t, key: newKey(t)}
	cert, pair := newCertificate(t)
	w.certPE = w.file("pair.pem", pair)
	identities := fmt.Sprintf(`
applications:
- {clientId: %[1]s, secrets: [push-secret], roleAssignments: [{role: AcrPush}]}
- {clientId: %[2]s, secrets: [pull-secret], roleAssignments: [{role: AcrPull}]}
- {clientId: %[3]s, certificates: [%[7]q]}
- clientId: %[4]s
  roleAssignments: [{role: AcrPull}]
  federatedCredentials: [{issuer: "https://cluster", subject: "system:serviceaccount:default:app"}]
- {clientId: %[5]s, roleAssignments: [{role: AcrPull}], certificates: [%[7]q]}
managedIdentities:
- {name: nodes, clientId: %[6]s, system: true, roleAssignments: [{role: AcrPull}]}
issuers:
- issuer: https://cluster
  keys: {"keys":[{"kty":"RSA","kid":"k1","n":%[8]q,"e":"AQAB"}]}
`, pusher, puller, unassigned, workload, certified, nodes, w.file("cert.pem", cert), base64.RawURLEncoding.EncodeToString(w.key.N.Bytes()))
	var err error
	w.azure, err = server.Start(t.Context(), server.Options{
		ProxyAddress: "127.0.0.1:0", AccessControl: "on", Identities: w.file("identities.yaml", identities),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.azure.Close(); err != nil {
			t.Error(err)
		}
	})
	w.info = w.azure.Info()
	w.client = w.transport()
	w.addRegistries("westeurope", "images")
	return w
}

// transport resolves Azure's public hosts to this registry Azure.
func (w *registryAzure) transport() *http.Transport {
	w.Helper()
	text, err := os.ReadFile(w.info.CAFile)
	if err != nil {
		w.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	proxy, err := url.Parse(w.info.Proxy)
	if err != nil {
		w.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	w.Cleanup(transport.CloseIdleConnections)
	return transport
}

func (w *registryAzure) addRegistries(region string, names ...string) {
	w.Helper()
	client, err := w.azure.Client()
	if err != nil {
		w.Fatal(err)
	}
	group := azure.GroupID(w.info.Subscription, "rg")
	writes := []azure.Write{{ID: group, Body: azure.Document(`{"location":"westeurope"}`)}}
	for _, n := range names {
		writes = append(writes, azure.Write{
			ID:   group.Resource("Microsoft.ContainerRegistry/registries", n),
			Body: azure.Document(`{"location":"` + region + `","sku":{"name":"Standard"}}`),
		})
	}
	for _, write := range writes {
		if _, err := client.Put(w.Context(), write); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *registryAzure) file(name, text string) string {
	w.Helper()
	file := filepath.Join(w.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return file
}

// token returns a token of a service account.
func (w *registryAzure) token(subject string) string {
	w.Helper()
	var parts []string
	for _, part := range []any{
		map[string]any{"alg": "RS256", "kid": "k1"},
		map[string]any{"iss": "https://cluster", "sub": subject, "aud": []string{"api://AzureADTokenExchange"},
			"exp": time.Now().Add(time.Hour).Unix()},
	} {
		text, err := json.Marshal(part)
		if err != nil {
			w.Fatal(err)
		}
		parts = append(parts, base64.RawURLEncoding.EncodeToString(text))
	}
	signed := strings.Join(parts, ".")
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, w.key, crypto.SHA256, sum[:])
	if err != nil {
		w.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newCertificate returns the paths of a certificate and of the certificate with its key.
func newCertificate(t *testing.T) (certificate, pair string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "app"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return certificate, certificate + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// ran is the result of a process.
type ran struct {
	code           int
	stdout, stderr string
}

// start runs the program like a kubelet.
func (w *registryAzure) start(request map[string]any, config string, args ...string) ran {
	w.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		w.Fatal(err)
	}
	return w.startWith(string(text), config, args...)
}

func (w *registryAzure) startWith(stdin, config string, args ...string) ran {
	w.Helper()
	command := exec.CommandContext(w.Context(), os.Args[0], append([]string{w.file("azure.json", config)}, args...)...)
	command.Env = []string{
		beProgram + "=1", "HOME=" + w.TempDir(), "HTTPS_PROXY=" + w.info.Proxy, "SSL_CERT_FILE=" + w.info.CAFile,
		"SSL_CERT_DIR=/nonexistent",
		"IDENTITY_ENDPOINT=" + w.info.IdentityEndpoint, "IDENTITY_HEADER=" + w.info.IdentityHeader,
	}
	var stdout, stderr bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); command.ProcessState == nil {
		w.Fatal(err)
	}
	return ran{command.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func request(image string) map[string]any {
	return map[string]any{"apiVersion": "credentialprovider.kubelet.k8s.io/v1", "kind": "CredentialProviderRequest", "image": image}
}

func withToken(image, token string, annotations map[string]string) map[string]any {
	r := request(image)
	r["serviceAccountToken"], r["serviceAccountAnnotations"] = token, annotations
	return r
}

// response is the program's output as a kubelet decodes it.
type response struct {
	Kind, APIVersion, CacheKeyType, CacheDuration string
	Auth                                          map[string]authn.AuthConfig
}

func (r ran) response(t *testing.T) response {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.stderr)
	}
	var got response
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	if got.Kind != "CredentialProviderResponse" || got.APIVersion != "credentialprovider.kubelet.k8s.io/v1" ||
		got.CacheKeyType != "Registry" {
		t.Fatalf("response %+v", got)
	}
	return got
}

// login returns the login that a kubelet finds for a host: an exact entry takes precedence over
// wildcards.
func (r response) login(host string) (authn.AuthConfig, bool) {
	if l, ok := r.Auth[host]; ok {
		return l, true
	}
	for pattern, l := range r.Auth {
		if ok, err := filepath.Match(pattern, host); ok && err == nil && l.Username != "" {
			return l, true
		}
	}
	return authn.AuthConfig{}, false
}

func (w *registryAzure) push(image, user, password string) (v1.Hash, error) {
	w.Helper()
	const size, layers = 1000, 3
	made, err := random.Image(size, layers)
	if err != nil {
		w.Fatal(err)
	}
	digest, err := made.Digest()
	if err != nil {
		w.Fatal(err)
	}
	return digest, remote.Write(w.reference(image), made, w.options(authn.AuthConfig{Username: user, Password: password})...)
}

// pull reads an image with all its layers.
func (w *registryAzure) pull(image string, as authn.AuthConfig) (v1.Hash, error) {
	w.Helper()
	found, err := remote.Image(w.reference(image), w.options(as)...)
	if err != nil {
		return v1.Hash{}, err
	}
	layers, err := found.Layers()
	if err != nil {
		return v1.Hash{}, err
	}
	for _, l := range layers {
		content, err := l.Compressed()
		if err != nil {
			return v1.Hash{}, err
		}
		var all bytes.Buffer
		if _, err := all.ReadFrom(content); err != nil {
			return v1.Hash{}, err
		}
		_ = content.Close() // the content was read
	}
	return found.Digest()
}

func (w *registryAzure) reference(image string) name.Reference {
	w.Helper()
	r, err := name.ParseReference(image)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *registryAzure) options(as authn.AuthConfig) []remote.Option {
	return []remote.Option{remote.WithTransport(w.client), remote.WithContext(w.Context()), remote.WithAuth(authn.FromConfig(as))}
}

// TestPull pulls an image with the returned login, for every kind of identity.
func TestPull(t *testing.T) {
	w := newRegistryAzure(t)
	const image = "images.azurecr.io/team/app:1"
	digest, err := w.push(image, pusher, "push-secret")
	if err != nil {
		t.Fatal(err)
	}
	w.addRegistries("chinaeast2", "zhongguo")
	const chinese = "zhongguo.azurecr.cn/app:1"
	chineseDigest, err := w.push(chinese, pusher, "push-secret")
	if err != nil {
		t.Fatal(err)
	}
	annotations := map[string]string{"kubernetes.azure.com/acr-client-id": workload, "kubernetes.azure.com/acr-tenant-id": w.info.Tenant}
	federated := w.token("system:serviceaccount:default:app")
	managed := `{"useManagedIdentityExtension":true,"tenantId":"` + w.info.Tenant + `"}`
	custom := `{"useManagedIdentityExtension":true,"resourceManagerEndpoint":"` + w.info.ARM + `"}`
	for name, c := range map[string]struct {
		config  string
		request map[string]any
		args    []string
		image   string
	}{
		"managed identity, system-assigned": {config: managed},
		"managed identity, user-assigned":   {config: `{"useManagedIdentityExtension":true,"userAssignedIdentityID":"` + nodes + `"}`},
		"service principal, secret":         {config: `{"aadClientId":"` + puller + `","aadClientSecret":"pull-secret"}`},
		"service principal, certificate": {config: `{"tenantId":"` + w.info.Tenant + `","aadClientId":"` + certified +
			`","aadClientCertPath":"` + w.certPE + `"}`},
		"workload identity of the node": {config: `{"tenantId":"` + w.info.Tenant + `","aadClientId":"` + workload +
			`","useFederatedWorkloadIdentityExtension":true,"aadFederatedTokenFile":"` +
			w.file("token", federated) + `"}`},
		"service account":                       {config: managed, request: withToken(image, federated, annotations)},
		"service account, node has no identity": {config: `{}`, request: withToken(image, federated, annotations)},
		"mirror": {config: managed, request: request("mcr.microsoft.com/app:1"),
			args: []string{"--registry-mirror=mcr.microsoft.com:images.azurecr.io/team"}},
		"mirror, secret": {config: `{"aadClientId":"` + puller + `","aadClientSecret":"pull-secret"}`,
			request: request("mcr.microsoft.com/app:1"), args: []string{"-r", "mcr.microsoft.com:images.azurecr.io/team"}},
		"domain of the cloud": {config: custom, image: "images.azurecr.localhost/team/app:1"},
		"domain of the cloud, secret": {config: `{"aadClientId":"` + puller +
			`","aadClientSecret":"pull-secret","resourceManagerEndpoint":"` + w.info.ARM + `"}`,
			image: "images.azurecr.localhost/team/app:1"},
		"public domain though there is another": {config: custom},
		"another cloud": {config: `{"cloud":"AzureChinaCloud","tenantId":"` + w.info.Tenant +
			`","aadClientId":"` + certified + `","aadClientCertPath":"` + w.certPE + `"}`, image: chinese},
		"YAML, as the file of a node may well be": {config: "useManagedIdentityExtension: true\nvmType: vmss\n"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := c.request
			if c.image == "" {
				c.image = image
			}
			if asked == nil {
				asked = request(c.image)
			}
			ran := w.start(asked, c.config, c.args...)
			got := ran.response(t)
			host, _, _ := strings.Cut(asked["image"].(string), "/")
			login, ok := got.login(host)
			if !ok || got.CacheDuration != "1h0m0s" {
				t.Fatalf("no login for %s: %s", host, ran.stdout)
			}
			if l, ok := got.Auth["*.azurecr.*"]; !ok || l.Username != "" || l.Password != "" {
				t.Errorf("no entry for anonymous pulls: %+v", got.Auth)
			}
			want := digest
			if c.image == chinese {
				want = chineseDigest
			}
			if pulled, err := w.pull(c.image, login); err != nil || pulled != want {
				t.Errorf("pulled %s, %v, want %s", pulled, err, want)
			}
			// The login may only pull.
			if _, err := w.push(c.image, login.Username, login.Password); err == nil {
				t.Error("pushed with a right to pull")
			}
			if ran.stderr != "" && c.config != `{}` {
				t.Errorf("stderr: %s", ran.stderr)
			}
		})
	}
}

// TestRefused checks that errors go to standard error, without secrets, and that standard output
// stays empty.
func TestRefused(t *testing.T) {
	w := newRegistryAzure(t)
	const image = "images.azurecr.io/app:1"
	managed := `{"useManagedIdentityExtension":true}`
	token := w.token("system:serviceaccount:default:other")
	annotations := func(client string) map[string]string {
		return map[string]string{"kubernetes.azure.com/acr-client-id": client, "kubernetes.azure.com/acr-tenant-id": w.info.Tenant}
	}
	for name, c := range map[string]struct {
		config  string
		request map[string]any
		args    []string
		says    []string
	}{
		"no such registry": {config: managed, request: request("nothere.azurecr.io/app:1"),
			says: []string{"nothere.azurecr.io", "did not issue a valid AAD challenge, status: 404"}},
		"no role": {
			config:  `{"tenantId":"` + w.info.Tenant + `","aadClientId":"` + unassigned + `","aadClientCertPath":"` + w.certPE + `"}`,
			request: request(image), says: []string{unassigned, "responded with status code 401", "UNAUTHORIZED: authentication required"},
		},
		"service account of another subject": {config: managed, request: withToken(image, token, annotations(workload)),
			says: []string{"workload identity", "AADSTS700213"}},
		"unknown client": {config: managed,
			request: withToken(image, token, annotations("bbbbbbbb-0000-0000-0000-000000000000")), says: []string{"AADSTS700016"}},
		"annotations missing": {config: managed, request: withToken(image, token, nil),
			says: []string{"client id annotation kubernetes.azure.com/acr-client-id is not found or the value is empty", "acr-tenant-id"}},
		"unknown managed identity": {config: `{"useManagedIdentityExtension":true,"userAssignedIdentityID":"bbbbbbbb-0000-0000-0000-000000000000"}`, request: request(image), says: []string{"managed identity", "bbbbbbbb"}},
		"foreign tenant": {config: `{"useManagedIdentityExtension":true,"tenantId":"22222222-2222-2222-2222-222222222222"}`,
			request: request(image),
			says:    []string{"responded with status code 401", "managed identity (system-assigned)", "authentication required"}},
		"version": {config: managed,
			request: map[string]any{"apiVersion": "credentialprovider.kubelet.k8s.io/v1alpha1", "kind": "CredentialProviderRequest",
				"image": image}, says: []string{"v1alpha1", "is not supported"}},
		"empty image": {config: managed, request: request(""), says: []string{"image in plugin request was empty"}},
		"no address with a name": {config: managed, request: request(image), args: []string{"--ib-sni-name", "a.b"},
			says: []string{"--ib-apiserver-ip is required with --ib-sni-name"}},
		"unknown flag": {config: managed, request: request(image), args: []string{"--registry-mirrors=x"},
			says: []string{"--registry-mirrors"}},
		"two files": {config: managed, request: request(image), args: []string{"other.json"},
			says: []string{"expected exactly one argument (config file); Got arguments:"}},
		"wrong type": {config: `{"useManagedIdentityExtension":"maybe"}`, request: request(image),
			says: []string{"useManagedIdentityExtension", "azure.json"}},
		"unknown cloud": {config: `{"cloud":"Nowhere","useManagedIdentityExtension":true}`, request: request(image),
			says: []string{"cloud", "Nowhere", "AzurePublicCloud"}},
		"secret without a client": {config: `{"aadClientSecret":"pull-secret"}`, request: request(image),
			says: []string{"aadClientId"}},
	} {
		t.Run(name, func(t *testing.T) {
			ran := w.start(c.request, c.config, c.args...)
			if ran.code != 1 || ran.stdout != "" {
				t.Errorf("exit code %d, stdout %q, want 1 and nothing", ran.code, ran.stdout)
			}
			for _, s := range c.says {
				if !strings.Contains(ran.stderr, s) {
					t.Errorf("stderr %q, want %q in it", ran.stderr, s)
				}
			}
			if strings.Contains(ran.stderr, token) || strings.Contains(ran.stderr, "pull-secret") || strings.Contains(ran.stderr, "eyJ") {
				t.Errorf("a secret is in it: %s", ran.stderr)
			}
		})
	}
	if ran := w.startWith(`{"image":`, managed); ran.code != 1 || !strings.Contains(ran.stderr, "syntax error at byte 9 of 9") {
		t.Errorf("%+v", ran)
	}
}

// TestOtherRegistries checks that registries outside Azure get an empty response.
func TestOtherRegistries(t *testing.T) {
	w := newRegistryAzure(t)
	for _, image := range []string{"docker.io/library/nginx", "images.azurecr.io.example.com/app", "example.com/images.azurecr.io/app"} {
		ran := w.start(request(image), `{"useManagedIdentityExtension":true}`)
		if got := ran.response(t); got.Auth != nil || got.CacheDuration != "0s" || strings.Contains(ran.stdout, "auth") {
			t.Errorf("%s: %s", image, ran.stdout)
		}
	}
}

// TestPrincipal checks that the login of a service principal covers the registries of all clouds.
func TestPrincipal(t *testing.T) {
	w := newRegistryAzure(t)
	ran := w.start(request("images.azurecr.io/app"), `{"aadClientId":"`+puller+`","aadClientSecret":"pull-secret"}`)
	var hosts []string
	for host := range ran.response(t).Auth {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	if want := []string{"*.azurecr.*", "*.azurecr.cn", "*.azurecr.de", "*.azurecr.io", "*.azurecr.us"}; !slices.Equal(hosts, want) {
		t.Errorf("logins for %v, want %v", hosts, want)
	}
}

func TestVersionAndHelp(t *testing.T) {
	for flag, says := range map[string]string{"--version": "acr-credential-provider version v", "--help": "--registry-mirror"} {
		var out, problems bytes.Buffer
		code := Main([]string{flag}, Process{In: strings.NewReader(""), Out: &out, Err: &problems, Environment: os.LookupEnv})
		if code != 0 || !strings.Contains(out.String(), says) {
			t.Errorf("%s: %d %s %s", flag, code, &out, &problems)
		}
	}
	var out, problems bytes.Buffer
	if code := Main(nil, Process{In: strings.NewReader(""), Out: &out, Err: &problems, Environment: os.LookupEnv}); code != 1 ||
		!strings.Contains(problems.String(), "config file is not specified") {
		t.Errorf("%d %s", code, &problems)
	}
}

// TestIdentityBinding uses an API server that exchanges tokens of service accounts for tokens of
// Entra ID.
func TestIdentityBinding(t *testing.T) {
	w := newRegistryAzure(t)
	const image = "images.azurecr.io/app:1"
	digest, err := w.push(image, pusher, "push-secret")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.PostForm.Get("client_assertion") != "sa-token" || r.PostForm.Get("client_id") != puller {
			answer.WriteHeader(http.StatusForbidden)
			return
		}
		// The exchange of the API server, with an identity of its own.
		resp, err := (&http.Client{Transport: w.client}).PostForm("https://login.microsoftonline.com/"+w.info.Tenant+"/oauth2/v2.0/token",
			url.Values{
				"grant_type": {"client_credentials"}, "client_id": {puller}, "client_secret": {"pull-secret"},
				"scope": {r.PostForm.Get("scope")},
			})
		if err != nil {
			answer.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(answer, resp.Body) // the program has ended
	}))
	defer server.Close()
	authority := w.file("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	flags := []string{"--ib-sni-name=example.com", "--ib-apiserver-ip=" + server.Listener.Addr().String(), "--ib-ca-file=" + authority}
	asked := withToken(image, "sa-token", map[string]string{"kubernetes.azure.com/acr-client-id": puller})
	login, _ := w.start(asked, "{}", flags...).response(t).login("images.azurecr.io")
	if pulled, err := w.pull(image, login); err != nil || pulled != digest {
		t.Errorf("pulled %s, %v, want %s", pulled, err, digest)
	}
	delete(asked, "serviceAccountAnnotations")
	if ran := w.start(asked, "{}", flags...); ran.code != 1 || !strings.Contains(ran.stderr, "--ib-default-client-id") {
		t.Errorf("without a client id: %+v", ran)
	}
	if ran := w.start(asked, "{}", append(flags, "--ib-default-client-id="+puller)...); ran.code != 0 {
		t.Errorf("with a default client id: %+v", ran)
	}
	if ran := w.start(asked, "{}", append(flags, "--ib-ca-file=/nonexistent")...); ran.code != 1 ||
		!strings.Contains(ran.stderr, "/nonexistent") {
		t.Errorf("without an authority: %+v", ran)
	}
	if ran := w.start(request(image), "{}", "--ib-default-client-id="+puller); ran.code != 0 ||
		!strings.Contains(ran.stderr, "no effect without --ib-sni-name") {
		t.Errorf("without a name: %+v", ran)
	}
}

// TestVerbose checks that -v=4 logs decisions to standard error, without secrets.
func TestVerbose(t *testing.T) {
	w := newRegistryAzure(t)
	ran := w.start(request("images.azurecr.io/app"), `{"useManagedIdentityExtension":true}`, "-v=4", "--registry-mirror=nonsense")
	ran.response(t)
	for _, s := range []string{"host=images.azurecr.io", "managed identity", "nonsense"} {
		if !strings.Contains(ran.stderr, s) {
			t.Errorf("stderr %q, want %q in it", ran.stderr, s)
		}
	}
	if strings.Contains(ran.stderr, "eyJ") {
		t.Errorf("a token is in it: %s", ran.stderr)
	}
}
