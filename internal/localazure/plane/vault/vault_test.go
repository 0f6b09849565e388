package vault_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/vault"
	"kaz/internal/localazure/providers"
)

const host = "https://keys-1.vault.azure.net"

// client asks the vault "keys-1".
type client struct {
	*testing.T
	emulator *core.Emulator
	service  *vault.Service
	token    string
}

// start makes a vault with further properties.
func start(t *testing.T, o core.Options, properties behaviour.Object) *client {
	t.Helper()
	o.Providers = providers.All()
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	body := behaviour.Object{"tenantId": "t", "sku": behaviour.Object{"family": "A", "name": "standard"}, "enableRbacAuthorization": true}
	maps.Copy(body, properties)
	group := azure.GroupID(core.DefaultSubscription, "rg")
	if err := e.Do(func(w behaviour.World) error {
		if err := w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "westeurope"}); err != nil {
			return err
		}
		return w.Apply(behaviour.Itself(), group.Resource("Microsoft.KeyVault/vaults", "keys-1"),
			behaviour.Object{"location": "westeurope", "properties": body})
	}); err != nil {
		t.Fatal(err)
	}
	return &client{T: t, emulator: e, token: "good", service: &vault.Service{Azure: e, Authority: "https://login",
		Authenticate: func(token string, audiences ...string) (*behaviour.Principal, error) {
			if token != "good" || audiences[0] != "https://vault.azure.net" {
				return nil, errors.New("no token")
			}
			return &behaviour.Principal{ObjectID: "me"}, nil
		}}}
}

// ask sends a request, and returns the status and the body of the reply.
func (c *client) ask(method, path, body string) (int, behaviour.Object) {
	c.Helper()
	if !strings.HasPrefix(path, "https:") {
		path = host + path
		if !strings.Contains(path, "?") {
			path += "?api-version=7.4"
		}
	}
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+c.token)
	w := httptest.NewRecorder()
	c.service.ServeHTTP(w, r)
	var got behaviour.Object
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			c.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return w.Code, got
}

type has = map[string]any

// must sends a request that the vault must answer with a status and fields.
func (c *client) must(method, path, body string, status int, want has) behaviour.Object {
	c.Helper()
	code, got := c.ask(method, path, body)
	if code != status {
		c.Fatalf("%s %s: %d %v, want %d", method, path, code, got, status)
	}
	for field, value := range want {
		is := behaviourtest.At(map[string]any(got), field)
		if n, number := is.(float64); number {
			is = int(n)
		}
		if is != value {
			c.Errorf("%s %s: %s is %v, want %v", method, path, field, is, value)
		}
	}
	return got
}

// Each write of a secret makes a version. Old versions stay readable and can be changed.
func TestVersionsOfASecret(t *testing.T) {
	c := start(t, core.Options{}, nil)
	c.must("GET", "/secrets/s", "", 404, has{"error.code": "SecretNotFound"})
	first := c.must("PUT", "/secrets/s", `{"value":"one","contentType":"text","tags":{"a":"b"},"attributes":{"exp":2000000000}}`, 200, has{
		"value": "one", "contentType": "text", "tags.a": "b", "attributes.enabled": true, "attributes.exp": 2000000000,
		"attributes.recoveryLevel": "Recoverable+Purgeable", "attributes.recoverableDays": 90})
	second := c.must("PUT", "/secrets/S", `{"value":"two"}`, 200,
		has{"value": "two", "contentType": nil, "tags.a": nil, "attributes.exp": nil})
	one := strings.TrimPrefix(behaviour.Text(first, "id"), host)
	two := strings.TrimPrefix(behaviour.Text(second, "id"), host)
	if one == two || !strings.HasPrefix(two, "/secrets/s/") {
		t.Fatalf("versions %s and %s", one, two)
	}
	c.must("GET", "/secrets/s", "", 200, has{"value": "two", "id": host + two})
	c.must("GET", one, "", 200, has{"value": "one", "id": host + one, "tags.a": "b"})
	c.must("GET", "/secrets/s/0", "", 404, has{"error.code": "SecretNotFound"})
	c.must("PATCH", one, `{"contentType":"old","attributes":{"nbf":1}}`, 200, has{"value": nil, "contentType": "old", "attributes.nbf": 1,
		"attributes.exp": 2000000000, "tags.a": "b"})
	c.must("PATCH", "/secrets/s/", `{"attributes":{"enabled":false},"tags":{"c":"d"}}`, 200,
		has{"attributes.enabled": false, "tags.c": "d"})
	c.must("GET", "/secrets/s", "", 403, has{"error.code": "Forbidden", "error.innererror.code": "SecretDisabled"})
	c.must("GET", one, "", 200, has{"value": "one", "contentType": "old"})
	c.must("GET", "/secrets/s/versions", "", 200, has{"value.#": 2, "value.0.value": nil, "nextLink": nil})
	c.must("GET", "/secrets/none/versions", "", 200, has{"value.#": 0})
	c.must("PATCH", "/secrets/s/0", `{}`, 404, has{"error.code": "SecretNotFound"})
}

// Azure Resource Manager and the vault show and write the same secrets.
func TestSecretsInResourceManager(t *testing.T) {
	c := start(t, core.Options{}, nil)
	id := azure.GroupID(core.DefaultSubscription, "rg").Resource("Microsoft.KeyVault/vaults", "keys-1").Child("secrets", "s")
	c.must("PUT", "/secrets/s", `{"value":"one","contentType":"text"}`, 200, nil)
	if err := c.emulator.Do(func(w behaviour.World) error {
		view, there := w.View(id)
		if !there || behaviour.Text(view, "properties.contentType") != "text" || view["$value"] != nil || view["$versions"] != nil {
			t.Errorf("the secret in resource manager: %v", view)
		}
		return w.Apply(behaviour.Itself(), id, behaviour.Object{"properties": behaviour.Object{"value": "two"}})
	}); err != nil {
		t.Fatal(err)
	}
	c.must("GET", "/secrets/s", "", 200, has{"value": "two"})
	c.must("GET", "/secrets/s/versions", "", 200, has{"value.#": 2})
	c.must("DELETE", "/secrets/s", "", 200, nil)
	err := c.emulator.Do(func(w behaviour.World) error {
		return w.Apply(behaviour.Itself(), id, behaviour.Object{"properties": behaviour.Object{"value": "three"}})
	})
	if refusal, ok := errors.AsType[*behaviour.Error](err); !ok || refusal.Code != "Conflict" {
		t.Errorf("a secret with the name of a deleted one: %v", err)
	}
}

// A deleted secret is recovered with all its versions, or purged. Until then its name is taken.
func TestDeletedSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, core.Options{}, behaviour.Object{"softDeleteRetentionInDays": 7})
		const day = 24 * time.Hour
		purge := int(time.Now().Add(7 * day).Unix())
		c.must("DELETE", "/secrets/s", "", 404, has{"error.code": "SecretNotFound"})
		c.must("PUT", "/secrets/s", `{"value":"one"}`, 200, has{"attributes.recoveryLevel": "CustomizedRecoverable+Purgeable"})
		c.must("PUT", "/secrets/s", `{"value":"two"}`, 200, nil)
		c.must("DELETE", "/secrets/s", "", 200, has{"recoveryId": host + "/deletedsecrets/s", "scheduledPurgeDate": purge,
			"deletedDate": int(time.Now().Unix()), "value": nil})
		c.must("GET", "/secrets/s", "", 404, has{"error.code": "SecretNotFound"})
		c.must("GET", "/secrets", "", 200, has{"value.#": 0})
		c.must("GET", "/deletedsecrets", "", 200, has{"value.#": 1, "value.0.id": host + "/secrets/s"})
		c.must("GET", "/deletedsecrets/s", "", 200, has{"scheduledPurgeDate": purge})
		c.must("PUT", "/secrets/s", `{"value":"x"}`, 409,
			has{"error.code": "Conflict", "error.innererror.code": "ObjectIsDeletedButRecoverable"})
		c.must("POST", "/deletedsecrets/s/recover", "", 200, has{"value": nil, "attributes.enabled": true})
		c.must("GET", "/secrets/s", "", 200, has{"value": "two"})
		c.must("GET", "/secrets/s/versions", "", 200, has{"value.#": 2})
		c.must("POST", "/deletedsecrets/s/recover", "", 404, has{"error.code": "SecretNotFound"})
		c.must("DELETE", "/secrets/s", "", 200, nil)
		c.must("DELETE", "/deletedsecrets/s", "", 204, nil)
		c.must("DELETE", "/deletedsecrets/s", "", 404, nil)
		c.must("PUT", "/secrets/s", `{"value":"new"}`, 200, nil)
		c.must("GET", "/secrets/s/versions", "", 200, has{"value.#": 1})
		c.must("DELETE", "/secrets/s", "", 200, nil)
		<-time.After(7 * day)
		c.must("GET", "/deletedsecrets/s", "", 404, has{"error.code": "SecretNotFound"})
		c.must("PUT", "/secrets/s", `{"value":"newer"}`, 200, nil)
	})
}

// Secrets of a vault with purge protection are not purged before their time.
func TestPurgeProtection(t *testing.T) {
	c := start(t, core.Options{}, behaviour.Object{"enablePurgeProtection": true})
	c.must("PUT", "/secrets/s", `{"value":"1"}`, 200, has{"attributes.recoveryLevel": "Recoverable"})
	c.must("DELETE", "/secrets/s", "", 200, nil)
	c.must("DELETE", "/deletedsecrets/s", "", 403, has{"error.code": "Forbidden"})
}

// A list has pages, which lead on to the next secret.
func TestPages(t *testing.T) {
	c := start(t, core.Options{}, nil)
	for _, name := range []string{"b", "c", "a"} {
		c.must("PUT", "/secrets/"+name, `{"value":"1"}`, 200, nil)
	}
	page := c.must("GET", "/secrets?api-version=7.4&maxresults=2", "", 200, has{"value.#": 2, "value.0.id": host + "/secrets/a"})
	c.must("DELETE", "/secrets/b", "", 200, nil)
	c.must("GET", behaviour.Text(page, "nextLink"), "", 200, has{"value.#": 1, "value.0.id": host + "/secrets/c", "nextLink": nil})
}

func TestRefusedRequests(t *testing.T) {
	c := start(t, core.Options{}, nil)
	long := strings.Repeat("x", 256)
	for _, x := range []struct {
		name, method, path, body string
		status                   int
		code                     string
	}{
		{"no version of the API", "GET", "/secrets?x=y", "", 400, "BadParameter"},
		{"name", "PUT", "/secrets/a_b", `{"value":"1"}`, 400, "BadParameter"},
		{"no value", "PUT", "/secrets/s", `{}`, 400, "BadParameter"},
		{"no JSON", "PUT", "/secrets/s", `{`, 400, "BadParameter"},
		{"attributes", "PUT", "/secrets/s", `{"value":"1","attributes":{"exp":"soon"}}`, 400, "BadParameter"},
		{"content type", "PUT", "/secrets/s", `{"value":"1","contentType":"` + long + `"}`, 400, "BadParameter"},
		{"value", "PUT", "/secrets/s", `{"value":"` + strings.Repeat(long, 101) + `"}`, 400, "BadParameter"},
		{"page", "GET", "/secrets?api-version=7.4&maxresults=26", "", 400, "BadParameter"},
		{"token of a page", "GET", "/secrets?api-version=7.4&$skiptoken=*", "", 400, "BadParameter"},
		{"vault", "GET", "https://none.vault.azure.net/secrets?api-version=7.4", "", 404, "VaultNotFound"},
		{"keys", "GET", "/keys", "", 405, "NotSupported"},
		{"longer path", "GET", "/secrets/s/1/2", "", 405, "NotSupported"},
	} {
		c.Run(x.name, func(t *testing.T) {
			on := *c
			on.T = t
			on.must(x.method, x.path, x.body, x.status, has{"error.code": x.code})
		})
	}
	c.token = "bad"
	c.must("GET", "/secrets", "", 401, has{"error.code": "Unauthorized"})
}

// With access control, the data actions of roles decide.
func TestRoles(t *testing.T) {
	c := start(t, core.Options{AccessControl: true}, nil)
	const role = "44444444-4444-4444-4444-444444444444"
	scope := azure.SubscriptionID(core.DefaultSubscription)
	if err := c.emulator.Do(func(w behaviour.World) error {
		definition := azure.ID(string(scope) + "/providers/Microsoft.Authorization/roleDefinitions/" + role)
		w.Put(definition, behaviour.Object{"properties": behaviour.Object{"roleName": "writer", "assignableScopes": []any{string(scope)},
			"permissions": []any{behaviour.Object{"actions": []any{}, "notActions": []any{}, "notDataActions": []any{},
				"dataActions": []any{"Microsoft.KeyVault/vaults/secrets/setSecret/action"}}}}})
		assignment := azure.ID(string(scope) + "/providers/Microsoft.Authorization/roleAssignments/" + role)
		w.Put(assignment, behaviour.Object{"properties": behaviour.Object{
			"principalId": "me", "roleDefinitionId": string(definition), "scope": string(scope)}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.must("PUT", "/secrets/s", `{"value":"1"}`, 200, nil)
	for _, refused := range []string{"GET /secrets", "GET /secrets/s", "PATCH /secrets/s", "DELETE /secrets/s", "GET /secrets/s/versions",
		"GET /deletedsecrets", "GET /deletedsecrets/s", "DELETE /deletedsecrets/s", "POST /deletedsecrets/s/recover"} {
		method, path, _ := strings.Cut(refused, " ")
		c.must(method, path, "{}", 403, has{"error.code": "Forbidden", "error.innererror.code": "ForbiddenByRbac"})
	}
}
