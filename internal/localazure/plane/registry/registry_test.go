package registry

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/localazure/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	server = "images.azurecr.io"
	guest  = "22222222-2222-2222-2222-222222222222"
	group  = azure.ID("/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg")
	images = group + "/providers/Microsoft.ContainerRegistry/registries/Images"
	secret = "s3cret"

	pullRole = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
	pushRole = "8311e382-0749-4cb8-b61a-304f252e45ec"
)

// The names of the applications say their rights.
const (
	owner      = "aaaaaaaa-0000-0000-0000-000000000001"
	pusher     = "aaaaaaaa-0000-0000-0000-000000000002"
	puller     = "aaaaaaaa-0000-0000-0000-000000000003"
	unassigned = "aaaaaaaa-0000-0000-0000-000000000004"
)

// object is the object id of an application, for role assignments.
func object(client string) string { return strings.Replace(client, "-0000-", "-1111-", 1) }

var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// registryAzure is a local Azure with one registry.
type registryAzure struct {
	testing.TB
	*Service
	azure *core.Emulator
}

func start(t testing.TB, dir string) *registryAzure {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	e, err := core.New(core.Options{Providers: providers.All(), AccessControl: true, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var applications []token.Application
	for _, client := range []string{owner, pusher, puller, unassigned} {
		applications = append(applications,
			token.Application{ClientID: client, ObjectID: object(client), Secrets: []string{secret}, Owner: client == owner})
	}
	tokens, err := token.New(token.Config{Tenant: core.DefaultTenant, Guests: []string{guest}, Key: testKey(),
		Applications: applications, Log: quiet, World: e.Look})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Tokens: tokens, World: e.Look, Suffix: "azurecr.corp", Dir: dir, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	c := &registryAzure{t, s, e}
	c.apply(group, behaviour.Object{"location": "westeurope"})
	c.apply(images, registryDocument("westeurope"))
	c.assign(pusher, pushRole)
	c.assign(puller, pullRole)
	return c
}

func registryDocument(location string) behaviour.Object {
	return behaviour.Object{"location": location, "sku": behaviour.Object{"name": "Standard"}}
}

func (c *registryAzure) apply(id azure.ID, doc behaviour.Object) {
	c.Helper()
	if err := c.azure.Do(func(w behaviour.World) error { return w.Apply(behaviour.Itself(), id, doc) }); err != nil {
		c.Fatal(err)
	}
}

func assignment(client, role string) azure.ID {
	return images.Resource("Microsoft.Authorization/roleAssignments", token.GUIDFor(client+role))
}

func (c *registryAzure) assign(client, role string) {
	c.Helper()
	c.apply(assignment(client, role), behaviour.Object{"properties": behaviour.Object{
		"principalId": object(client), "principalType": "ServicePrincipal",
		"roleDefinitionId": "/subscriptions/" + core.DefaultSubscription + "/providers/Microsoft.Authorization/roleDefinitions/" + role,
	}})
}

// set changes a field of the registry.
func (c *registryAzure) set(path string, value any) {
	c.Helper()
	err := c.azure.Do(func(w behaviour.World) error {
		w.Edit(images, func(doc behaviour.Object) { behaviour.Set(doc, path, value) })
		return nil
	})
	if err != nil {
		c.Fatal(err)
	}
}

// entra returns a token of Entra ID.
func (c *registryAzure) entra(client, tenant, audience string, life time.Duration) string {
	c.Helper()
	app, ok := c.Tokens.ByClientID(client)
	if !ok {
		c.Fatalf("no application %s", client)
	}
	t, err := c.Tokens.Issue(app, tenant, audience, life)
	if err != nil {
		c.Fatal(err)
	}
	return t.Text
}

// got is a registry's reply.
type got struct {
	status int
	header http.Header
	body   map[string]any
}

func (g got) code() string {
	errors, _ := g.body["errors"].([]any)
	if len(errors) == 0 {
		return ""
	}
	code, _ := errors[0].(map[string]any)["code"].(string)
	return code
}

func (g got) text(key string) string {
	s, _ := g.body[key].(string)
	return s
}

// ask sends a request to https://host/path, a form unless it is nil.
func (c *registryAzure) ask(method, at string, form url.Values, authorization string) got {
	c.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "https://"+at, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	g := got{status: w.Code, header: w.Header()}
	if err := json.Unmarshal(w.Body.Bytes(), &g.body); w.Body.Len() > 0 && err != nil {
		c.Fatalf("%s %s: %v in %s", method, at, err, w.Body)
	}
	return g
}

func basic(user, password string) string {
	r := http.Request{Header: http.Header{}}
	r.SetBasicAuth(user, password)
	return r.Header.Get("Authorization")
}

// refreshToken returns the refresh token of an application.
func (c *registryAzure) refreshToken(client string) string {
	c.Helper()
	g := c.ask("POST", server+"/oauth2/exchange", exchangeForm(c.entra(client, "", audience, time.Hour)), "")
	if g.status != 200 {
		c.Fatalf("exchange: %+v", g)
	}
	return g.text("refresh_token")
}

func exchangeForm(text string, change ...string) url.Values {
	f := url.Values{"grant_type": {"access_token"}, "service": {server}, "access_token": {text}}
	for i := 0; i < len(change); i += 2 {
		f.Set(change[i], change[i+1])
	}
	return f
}

// accessToken returns an access token for scopes.
func (c *registryAzure) accessToken(client string, scopes ...string) string {
	c.Helper()
	g := c.ask("POST", server+"/oauth2/token",
		url.Values{"grant_type": {"refresh_token"}, "service": {server}, "refresh_token": {c.refreshToken(client)}, "scope": scopes}, "")
	if g.status != 200 {
		c.Fatalf("token: %+v", g)
	}
	return g.text("access_token")
}

func TestHosts(t *testing.T) {
	c := start(t, "")
	for host, want := range map[string]bool{
		server: true, "images.azurecr.io:443": true, "IMAGES.AzureCR.io": true, "images.azurecr.cn": true, "images.azurecr.corp": true,
		"images.azurecr.corp:8443": true,
		"azurecr.io":               false, "images.azurecr.io.example.com": false, "management.azure.com": false,
		"127.0.0.1:8443": false, "": false,
		"images.azurecr.example": false,
	} {
		if got := c.Answers(host); got != want {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
	}
	// Registries of all clouds are reachable below the domain of this local Azure.
	china := group + "/providers/Microsoft.ContainerRegistry/registries/zhongguo"
	c.apply(china, registryDocument("chinaeast2"))
	for host, status := range map[string]int{
		server: 401, "images.azurecr.corp": 401, "zhongguo.azurecr.cn": 401, "zhongguo.azurecr.corp": 401,
		"images.azurecr.cn": 404, "zhongguo.azurecr.io": 404, "other.azurecr.io": 404, "a.images.azurecr.io": 404,
	} {
		if g := c.ask("GET", host+"/v2/", nil, ""); g.status != status {
			t.Errorf("%s: %d, want %d", host, g.status, status)
		}
	}
	c.set("properties.provisioningState", "Deleting")
	if g := c.ask("GET", server+"/v2/", nil, ""); g.status != 404 || g.code() != "NAME_UNKNOWN" {
		t.Errorf("a registry that goes: %+v", g)
	}
}

func TestExchange(t *testing.T) {
	c := start(t, "")
	good := c.entra(puller, "", audience, time.Hour)
	manager := c.entra(puller, "", "https://management.azure.com/", time.Hour)
	for name, x := range map[string]struct {
		form   url.Values
		status int
		code   string
	}{
		"good":                         {exchangeForm(good), 200, ""},
		"good, with the tenant":        {exchangeForm(good, "tenant", core.DefaultTenant), 200, ""},
		"good, older form":             {exchangeForm(good, "grant_type", "access_token_refresh_token", "refresh_token", good), 200, ""},
		"good, for the manager":        {exchangeForm(manager), 200, ""},
		"good, of the owner":           {exchangeForm(c.entra(owner, "", audience+"/", time.Hour)), 200, ""},
		"good, of another tenant":      {exchangeForm(c.entra(puller, guest, audience, time.Hour), "tenant", guest), 200, ""},
		"no role":                      {exchangeForm(c.entra(unassigned, "", audience, time.Hour)), 401, "UNAUTHORIZED"},
		"another audience":             {exchangeForm(c.entra(puller, "", "https://vault.azure.net", time.Hour)), 401, "UNAUTHORIZED"},
		"has ended":                    {exchangeForm(c.entra(puller, "", audience, -time.Hour)), 401, "UNAUTHORIZED"},
		"no token":                     {exchangeForm(""), 401, "UNAUTHORIZED"},
		"nonsense":                     {exchangeForm("nonsense"), 401, "UNAUTHORIZED"},
		"changed":                      {exchangeForm(good[:len(good)-4] + "AAAA"), 401, "UNAUTHORIZED"},
		"another tenant":               {exchangeForm(good, "tenant", guest), 401, "UNAUTHORIZED"},
		"another registry":             {exchangeForm(good, "service", "other.azurecr.io"), 400, "INVALID_REQUEST"},
		"grant of a password":          {exchangeForm(good, "grant_type", "password"), 400, "INVALID_REQUEST"},
		"larger than any token":        {exchangeForm(strings.Repeat("x", largestForm)), 400, "INVALID_REQUEST"},
		"a refresh token in its place": {exchangeForm(c.refreshToken(puller)), 401, "UNAUTHORIZED"},
	} {
		g := c.ask("POST", server+"/oauth2/exchange", x.form, "")
		if g.status != x.status || g.code() != x.code || (g.text("refresh_token") != "") != (x.status == 200) {
			t.Errorf("%s: %+v, want %d %s", name, g, x.status, x.code)
		}
	}
	if g := c.ask("GET", server+"/oauth2/exchange?"+exchangeForm(good).Encode(), nil, ""); g.status != 405 {
		t.Errorf("GET: %+v", g)
	}
	c.set("properties.policies.azureADAuthenticationAsArmPolicy.status", "disabled")
	if g := c.ask("POST", server+"/oauth2/exchange", exchangeForm(manager), ""); g.status != 401 {
		t.Errorf("a token for the manager where only those for registries are good: %+v", g)
	}
}

func TestAccessTokens(t *testing.T) {
	c := start(t, "")
	c.set("properties.adminUserEnabled", true)
	var password string
	c.azure.Look(func(w behaviour.World) {
		doc, _ := w.Get(images)
		password = behaviour.Text(doc, behaviour.Private+"passwords.password2")
	})
	const scope = "repository:a/b:pull,push,delete"
	post := func(change ...string) url.Values {
		f := url.Values{"service": {server}, "scope": {scope}}
		for i := 0; i < len(change); i += 2 {
			f.Set(change[i], change[i+1])
		}
		return f
	}
	for name, x := range map[string]struct {
		form          url.Values
		authorization string
		status        int
		actions       string // granted
	}{
		"refresh token": {post("grant_type", "refresh_token", "refresh_token", c.refreshToken(puller)), "", 200, "pull"},
		"refresh token, pusher": {post("grant_type", "refresh_token", "refresh_token", c.refreshToken(pusher)), "", 200,
			"pull,push"},
		"refresh token, owner": {post("grant_type", "refresh_token", "refresh_token", c.refreshToken(owner)), "", 200,
			"pull,push,delete"},
		"refresh token as a password": {post("grant_type", "password", "username", tokenUser, "password", c.refreshToken(puller)), "",
			200, "pull"},
		"service principal":         {post("grant_type", "password", "username", pusher, "password", secret), "", 200, "pull,push"},
		"service principal, header": {nil, basic(puller, secret), 200, "pull"},
		"refresh token, header":     {nil, basic(tokenUser, c.refreshToken(puller)), 200, "pull"},
		"admin":                     {nil, basic("images", password), 200, "pull,push,delete"},
		"all actions": {post("grant_type", "password", "username", pusher, "password", secret, "scope",
			"repository:a/b:*"), "", 200, "pull,push"},
		"nothing asked": {post("grant_type", "password", "username", pusher, "password", secret, "scope", ""), "", 200, ""},
		"no scope": {post("grant_type", "password", "username", pusher, "password", secret, "scope",
			"repository registry: repository:x plugin:x:pull"), "", 200, ""},
		"admin, wrong password":         {nil, basic("Images", "guess"), 401, ""},
		"admin, no password":            {nil, basic("Images", ""), 401, ""},
		"principal, wrong secret":       {nil, basic(puller, "guess"), 401, ""},
		"principal without a role":      {nil, basic(unassigned, secret), 401, ""},
		"unknown user":                  {nil, basic("unknown", secret), 401, ""},
		"access token as a refresh one": {post("grant_type", "refresh_token", "refresh_token", c.accessToken(puller)), "", 401, ""},
		"token of Entra ID": {post("grant_type", "refresh_token", "refresh_token", c.entra(puller, "", audience, time.Hour)),
			"", 401, ""},
		"no credential":    {nil, "", 401, ""},
		"unknown grant":    {post("grant_type", "client_credentials"), "", 400, ""},
		"another registry": {post("grant_type", "refresh_token", "service", "other.azurecr.io"), "", 400, ""},
	} {
		method, at := "POST", server+"/oauth2/token"
		if x.form == nil {
			method, at = "GET", at+"?"+post().Encode()
		}
		g := c.ask(method, at, x.form, x.authorization)
		if g.status != x.status {
			t.Errorf("%s: %+v, want %d", name, g, x.status)
			continue
		}
		if x.status != 200 {
			continue
		}
		opened, err := c.open(g.text("access_token"), accessKind, server, time.Now())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var actions []string
		for _, a := range opened.Access {
			actions = append(actions, a.Actions...)
		}
		if strings.Join(actions, ",") != x.actions {
			t.Errorf("%s: granted %v, want %s", name, opened.Access, x.actions)
		}
	}
	c.set("properties.anonymousPullEnabled", true)
	g := c.ask("GET", server+"/oauth2/token?"+post().Encode(), nil, "")
	if opened, err := c.open(g.text("access_token"), accessKind, server, time.Now()); err != nil || len(opened.Access) != 1 ||
		!slices.Equal(opened.Access[0].Actions, []string{pull}) {
		t.Errorf("anonymous: %+v %v", opened, err)
	}
	if g := c.ask("PUT", server+"/oauth2/token", nil, ""); g.status != 405 {
		t.Errorf("PUT: %+v", g)
	}
}

// An application that loses a role loses its rights with the next access token.
func TestLostRole(t *testing.T) {
	c := start(t, "")
	form := url.Values{"grant_type": {"refresh_token"}, "service": {server}, "refresh_token": {c.refreshToken(puller)},
		"scope": {"repository:a:pull"}}
	if g := c.ask("POST", server+"/oauth2/token", form, ""); g.status != 200 {
		t.Fatalf("%+v", g)
	}
	err := c.azure.Do(func(w behaviour.World) error {
		w.Delete(assignment(puller, pullRole))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if g := c.ask("POST", server+"/oauth2/token", form, ""); g.status != 401 {
		t.Errorf("%+v", g)
	}
}

func TestTokensEnd(t *testing.T) {
	for after, want := range map[time.Duration][2]int{
		accessLife - time.Second:  {200, 404}, // the image does not exist
		accessLife + time.Second:  {200, 401},
		refreshLife - time.Second: {200, 401},
		refreshLife + time.Second: {401, 401},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := start(t, "")
			form := url.Values{"grant_type": {"refresh_token"}, "service": {server}, "refresh_token": {c.refreshToken(puller)}}
			access := c.accessToken(puller, "repository:a:pull")
			<-time.After(after)
			refreshed := c.ask("POST", server+"/oauth2/token", form, "")
			if pulled := c.ask("GET", server+"/v2/a/manifests/1", nil, "Bearer "+access); refreshed.status != want[0] ||
				pulled.status != want[1] {
				t.Errorf("after %s: %d and %d, want %v", after, refreshed.status, pulled.status, want)
			}
		})
	}
}

// The challenge names the address and the scope of the token.
func TestChallenge(t *testing.T) {
	c := start(t, "")
	const bare = `Bearer realm="https://images.azurecr.io/oauth2/token",service="images.azurecr.io"`
	pulls := "Bearer " + c.accessToken(puller, "repository:a/b:pull")
	for name, x := range map[string]struct {
		method, at, authorization string
		status                    int
		code, challenge           string
	}{
		"base":                 {"GET", server + "/v2/", "", 401, "UNAUTHORIZED", bare},
		"base without a slash": {"GET", server + "/v2", "", 401, "UNAUTHORIZED", bare},
		"other domain": {"GET", "images.azurecr.corp:8443/v2/", "", 401, "UNAUTHORIZED",
			`Bearer realm="https://images.azurecr.corp:8443/oauth2/token",service="images.azurecr.corp"`},
		"pull": {"GET", server + "/v2/a/b/manifests/1", "", 401, "UNAUTHORIZED", bare +
			`,scope="repository:a/b:pull"`},
		"blob": {"HEAD", server + "/v2/a/b/blobs/sha256:0", "", 401, "UNAUTHORIZED", bare +
			`,scope="repository:a/b:pull"`},
		"push": {"POST", server + "/v2/a/b/blobs/uploads/", "", 401, "UNAUTHORIZED", bare +
			`,scope="repository:a/b:pull,push"`},
		"delete": {"DELETE", server + "/v2/a/b/manifests/1", "", 401, "UNAUTHORIZED", bare +
			`,scope="repository:a/b:delete"`},
		"catalogue":   {"GET", server + "/v2/_catalog", "", 401, "UNAUTHORIZED", bare + `,scope="registry:catalog:*"`},
		"wrong token": {"GET", server + "/v2/", "Bearer nonsense", 401, "UNAUTHORIZED", bare + `,error="invalid_token"`},
		"token of Entra ID": {"GET", server + "/v2/", "Bearer " + c.entra(owner, "", audience, time.Hour), 401, "UNAUTHORIZED",
			bare + `,error="invalid_token"`},
		"refresh token": {"GET", server + "/v2/", "Bearer " + c.refreshToken(owner), 401, "UNAUTHORIZED", bare +
			`,error="invalid_token"`},
		"token of another host": {"GET", "images.azurecr.corp/v2/", pulls, 401, "UNAUTHORIZED",
			`Bearer realm="https://images.azurecr.corp/oauth2/token",service="images.azurecr.corp",error="invalid_token"`},
		"token for another image": {"GET", server + "/v2/a/manifests/1", pulls, 401, "UNAUTHORIZED", bare +
			`,scope="repository:a:pull",error="insufficient_scope"`},
		"token for another action": {"PUT", server + "/v2/a/b/manifests/1", pulls, 401, "UNAUTHORIZED", bare +
			`,scope="repository:a/b:pull,push",error="insufficient_scope"`},
		"right token":                {"GET", server + "/v2/a/b/manifests/1", pulls, 404, "NAME_UNKNOWN", ""},
		"right token, base":          {"GET", server + "/v2/", pulls, 200, "", ""},
		"principal":                  {"GET", server + "/v2/a/b/manifests/1", basic(puller, secret), 404, "NAME_UNKNOWN", ""},
		"principal, no right":        {"PUT", server + "/v2/a/b/manifests/1", basic(puller, secret), 403, "DENIED", ""},
		"principal, no right at all": {"GET", server + "/v2/", basic(unassigned, secret), 403, "DENIED", ""},
		"principal, wrong secret":    {"GET", server + "/v2/", basic(puller, "guess"), 401, "UNAUTHORIZED", bare},
		"elsewhere":                  {"GET", server + "/", "", 404, "NOT_FOUND", ""},
		"unknown method":             {"LINK", server + "/v2/a/b/manifests/1", basic(owner, secret), 405, "UNSUPPORTED", ""},
		"bad name":                   {"GET", server + "/v2/A/b/manifests/1", basic(owner, secret), 400, "NAME_INVALID", ""},
		"bad tag":                    {"GET", server + "/v2/a/b/manifests/-1", basic(owner, secret), 400, "TAG_INVALID", ""},
		"no name":                    {"GET", server + "/v2/manifests/1", basic(owner, secret), 404, "NOT_FOUND", ""},
	} {
		g := c.ask(x.method, x.at, nil, x.authorization)
		if g.status != x.status || x.method != "HEAD" && g.code() != x.code || g.header.Get("Www-Authenticate") != x.challenge {
			t.Errorf("%s: %d %s %s,\nwant %d %s %s", name, g.status, g.code(), g.header.Get("Www-Authenticate"), x.status, x.code,
				x.challenge)
		}
	}
}

// RoundTrip connects clients in process.
func (c *registryAzure) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	result := w.Result()
	result.Request = r
	return result, nil
}

func (c *registryAzure) options(user, password string) []remote.Option {
	return []remote.Option{remote.WithTransport(c), remote.WithContext(c.Context()),
		remote.WithAuth(&authn.Basic{Username: user, Password: password})}
}

func reference(t testing.TB, text string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (c *registryAzure) push(at string) v1.Hash {
	c.Helper()
	const size, layers = 500, 2
	made, err := random.Image(size, layers)
	if err != nil {
		c.Fatal(err)
	}
	if err := remote.Write(reference(c, at), made, c.options(pusher, secret)...); err != nil {
		c.Fatal(err)
	}
	digest, err := made.Digest()
	if err != nil {
		c.Fatal(err)
	}
	return digest
}

// pull reads all of an image.
func (c *registryAzure) pull(at string) (v1.Hash, error) {
	found, err := remote.Image(reference(c, at), c.options(tokenUser, c.refreshToken(puller))...)
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
		if _, err := io.Copy(io.Discard, content); err != nil { // which checks the digest
			return v1.Hash{}, err
		}
		_ = content.Close() // it was read
	}
	return found.Digest()
}

// A client pushes and pulls, in memory and in files, and finds everything after a restart. A recreated registry is
// empty.
func TestImages(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "files": filepath.Join(t.TempDir(), "registries")} {
		t.Run(name, func(t *testing.T) {
			c := start(t, dir)
			const app = server + "/team/app"
			first := c.push(app + ":1")
			second := c.push(app + ":1") // takes the tag
			const size, layers, images = 100, 1, 2
			index, err := random.Index(size, layers, images)
			if err != nil {
				t.Fatal(err)
			}
			if err := remote.WriteIndex(reference(t, app+":index"), index, c.options(pusher, secret)...); err != nil {
				t.Fatal(err)
			}
			digest, err := index.Digest()
			if err != nil {
				t.Fatal(err)
			}
			check := func(c *registryAzure) {
				t.Helper()
				for at, want := range map[string]v1.Hash{app + ":1": second, app + "@" + first.String(): first,
					"images.azurecr.io/team/app@" + second.String(): second} {
					if got, err := c.pull(at); err != nil || got != want {
						t.Errorf("%s: %s %v, want %s", at, got, err, want)
					}
				}
				found, err := remote.Index(reference(t, app+":index"), c.options(puller, secret)...)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := found.Digest(); err != nil || got != digest {
					t.Errorf("index %s %v, want %s", got, err, digest)
				}
				tags, err := remote.List(reference(t, app).Context(), c.options(puller, secret)...)
				if err != nil || !slices.Equal(tags, []string{"1", "index"}) {
					t.Errorf("tags %v %v", tags, err)
				}
				registry := reference(t, app).Context().Registry
				if repositories, err := remote.Catalog(t.Context(), registry, c.options(puller, secret)...); err != nil ||
					!slices.Equal(repositories, []string{"team/app"}) {
					t.Errorf("repositories %v %v", repositories, err)
				}
			}
			check(c)
			again := &registryAzure{c.TB, &Service{Config: c.Config, key: c.key, stores: map[azure.ID]*store{}}, c.azure}
			if dir != "" {
				check(again)
			}
			// A deleted manifest takes its tags along and stays deleted.
			if err := remote.Delete(reference(t, app+"@"+second.String()), c.options(owner, secret)...); err != nil {
				t.Fatal(err)
			}
			again.stores = map[azure.ID]*store{}
			for _, c := range []*registryAzure{c, again} {
				for _, at := range []string{app + ":1", app + "@" + second.String()} {
					if got, err := c.pull(at); err == nil {
						t.Errorf("%s: %s is still there", at, got)
					}
				}
			}
			c.set("properties.creationDate", "2031-01-01T00:00:00Z")
			if got, err := c.pull(app + "@" + first.String()); err == nil {
				t.Errorf("%s is in a registry that was made again", got)
			}
			if left, err := os.ReadDir(dir); dir != "" && (err != nil || len(left) != 1) {
				t.Errorf("left in the folder: %v %v", left, err)
			}
		})
	}
}

// A client resumes an interrupted download.
func TestRanges(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "files": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			c := start(t, dir)
			const body = "0123456789"
			at := server + "/v2/a/blobs/uploads/?digest=sha256:" + sum(body)
			r := httptest.NewRequest("POST", "https://"+at, strings.NewReader(body))
			r.SetBasicAuth(pusher, secret)
			w := httptest.NewRecorder()
			if c.ServeHTTP(w, r); w.Code != 201 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			for asked, want := range map[string]struct {
				status int
				body   string
			}{
				"":            {200, body},
				"bytes=4-":    {206, "456789"},
				"bytes=0-":    {206, body},
				"bytes=2-3":   {206, "23"},
				"bytes=10-":   {416, ""},
				"bytes=-":     {416, ""},
				"bytes=x-":    {416, ""},
				"bytes=5-100": {416, ""},
			} {
				r := httptest.NewRequest("GET", "https://"+server+"/v2/a/blobs/sha256:"+sum(body), nil)
				r.SetBasicAuth(puller, secret)
				r.Header.Set("Range", asked)
				w := httptest.NewRecorder()
				if c.ServeHTTP(w, r); w.Code != want.status || want.body != "" && w.Body.String() != want.body {
					t.Errorf("%s: %d %s, want %d %s", asked, w.Code, w.Body, want.status, want.body)
				}
			}
		})
	}
}

// Lists of tags and repositories have as many elements as asked for, and no negative number of them.
func TestPages(t *testing.T) {
	c := start(t, "")
	c.push(server + "/app:1")
	for n, want := range map[string]int{"1": 200, "0": 200, "100": 200, "-1": 400, "x": 400, "99999999999999999999": 400} {
		for _, list := range []string{"/v2/app/tags/list", "/v2/_catalog"} {
			if got := c.ask("GET", server+list+"?n="+n, nil, basic(pusher, secret)); got.status != want {
				t.Errorf("%s?n=%s: %d %v, want %d", list, n, got.status, got.body, want)
			}
		}
	}
}

// A registry accepts only complete manifests with the right digest.
func TestBadManifests(t *testing.T) {
	c := start(t, "")
	const missing = `{"schemaVersion":2,"config":{"digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"size":1},"layers":[]}`
	for name, x := range map[string]struct {
		reference, body string
		status          int
		code            string
	}{
		"not JSON":        {"1", "x", 400, "MANIFEST_INVALID"},
		"blob missing":    {"1", missing, 400, "MANIFEST_BLOB_UNKNOWN"},
		"no digest":       {"1", `{"layers":[{}]}`, 400, "MANIFEST_BLOB_UNKNOWN"},
		"another digest":  {"sha256:" + strings.Repeat("a", 64), "{}", 400, "DIGEST_INVALID"},
		"too large":       {"1", strings.Repeat(" ", largestManifest+1), 413, "MANIFEST_INVALID"},
		"layer elsewhere": {"1", `{"layers":[{"digest":"sha256:0","urls":["https://example.com/"]}]}`, 201, ""},
	} {
		r := httptest.NewRequest("PUT", "https://"+server+"/v2/a/manifests/"+x.reference, strings.NewReader(x.body))
		r.SetBasicAuth(pusher, secret)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code != x.status || !bytes.Contains(w.Body.Bytes(), []byte(x.code)) {
			t.Errorf("%s: %d %s, want %d %s", name, w.Code, w.Body, x.status, x.code)
		}
	}
}

// FuzzPath looks for a path that makes the registry fail, or that is in another repository than the checked one.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/v2/", "/v2/a/b/manifests/1", "/v2/a/blobs/uploads/1", "/v2/a/tags/list", "/v2/_catalog",
		"/v2/a/blobs/sha256:0", "/v2/a/referrers/sha256:0", "/v2//", "/v2/a/../b/manifests/1"} {
		f.Add("GET", path)
		f.Add("DELETE", path)
	}
	c := start(f, "")
	f.Fuzz(func(t *testing.T, method, path string) {
		if !strings.HasPrefix(path, "/v2/") {
			return
		}
		n, err := parsePath(method, path)
		if err == nil && n.repository != "" && !strings.HasPrefix(path, "/v2/"+n.repository+"/") {
			t.Errorf("%s: repository %s", path, n.repository)
		}
		r := httptest.NewRequest("GET", "https://"+server+"/v2/", nil)
		r.Method, r.URL.Path = method, path
		r.SetBasicAuth(owner, secret)
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
	})
}
