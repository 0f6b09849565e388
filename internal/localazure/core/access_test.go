package core_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// tokens knows two principals by their bearer tokens.
type tokens struct{}

func (tokens) Authenticate(token string) (*behaviour.Principal, error) {
	switch token {
	case "owner":
		return &behaviour.Principal{ObjectID: "oid-owner", Owner: true}, nil
	case "guest":
		return &behaviour.Principal{ObjectID: "oid-guest", ApplicationID: "app-guest"}, nil
	}
	return nil, behaviour.Refusal(401, "InvalidAuthenticationToken", "The access token is invalid.")
}

func TestTokens(t *testing.T) {
	a := start(t, core.Options{Authenticator: tokens{}})
	for header, code := range map[string]string{"": "AuthenticationFailed", "Basic eDp5": "AuthenticationFailed",
		"Bearer nonsense": "InvalidAuthenticationToken", "Bearer owner": "ResourceGroupNotFound"} {
		got := a.do("GET", group, "", "Authorization", header)
		if got.code() != code {
			t.Errorf("Authorization %q: %d %v", header, got.status, got.body)
		}
		if challenge := got.header.Get("WWW-Authenticate"); (got.status == 401) != strings.HasPrefix(challenge,
			"Bearer authorization_uri=") {
			t.Errorf("Authorization %q: %d with challenge %q", header, got.status, challenge)
		}
	}
}

func TestAccessControl(t *testing.T) {
	a := start(t, core.Options{Authenticator: tokens{}, AccessControl: true})
	owner := func(method, url, body string) answer {
		t.Helper()
		return a.must(method, url, body, "Authorization", "Bearer owner")
	}
	guest := func(method, url, body string) answer {
		t.Helper()
		return a.do(method, url, body, "Authorization", "Bearer guest")
	}
	owner("PUT", group, `{"location":"eastus"}`)
	owner("PUT", table, `{"location":"eastus"}`)
	if got := guest("GET", table, ""); got.status != 403 || got.code() != "AuthorizationFailed" ||
		!strings.Contains(behaviour.Text(got.body, "error.message"), "'Microsoft.Network/routeTables/read' over scope '"+table+"'") {
		t.Errorf("without a role: %d %v", got.status, got.body)
	}
	authorization := "/providers/Microsoft.Authorization"
	sub := "/subscriptions/" + core.DefaultSubscription
	role := sub + authorization + "/roleDefinitions/r"
	owner("PUT", role,
		`{"properties":{"roleName":"networker","permissions":[{"actions":["*/read","Microsoft.Network/virtualNetworks/*"],
			"notActions":["Microsoft.Network/*/delete"]}]}}`)
	owner("PUT", group+authorization+"/roleAssignments/a", `{"properties":{"roleDefinitionId":"`+role+`","principalId":"oid-guest"}}`)

	linked := `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"` + table + `"}}}]}}`
	for _, c := range []struct {
		method, url, body string
		status            int
		code              string
	}{
		{"GET", table, "", 200, ""},
		{"GET", group + "/providers/Microsoft.Network/routeTables", "", 200, ""},
		{"GET", sub + "/providers/Microsoft.Network/routeTables", "", 200, ""},
		{"GET", table + "/routes", "", 200, ""},
		{"PUT", table, `{"location":"eastus"}`, 403, "AuthorizationFailed"},
		{"PUT", network, `{"location":"eastus"}`, 201, ""},
		{"PUT", network, linked, 403, "LinkedAuthorizationFailed"},
		{"DELETE", network, "", 403, "AuthorizationFailed"},
		{"POST", machine + "/powerOff", "", 403, "AuthorizationFailed"},
	} {
		if got := guest(c.method, c.url, c.body); got.status != c.status || got.code() != c.code {
			t.Errorf("%s %s: %d %v, want %d %s", c.method, c.url, got.status, got.body, c.status, c.code)
		}
	}
	if got := a.must("GET", network, "", "Authorization", "Bearer guest"); behaviour.Array(got.body, "properties.subnets") != nil {
		t.Errorf("a refused write left %v", got.body)
	}
	got := guest("GET", group+authorization+"/permissions", "")
	if rights := behaviour.Objects(got.body, "value"); len(rights) != 1 ||
		fmt.Sprint(rights[0]["notActions"]) != "[Microsoft.Network/*/delete]" {
		t.Errorf("permissions: %v", got.body)
	}
	if got := guest("GET", sub+authorization+"/permissions", ""); got.status != 403 ||
		!strings.Contains(behaviour.Text(got.body, "error.message"), "'Microsoft.Authorization/permissions/read'") {
		t.Errorf("permissions at the subscription, where there is no role: %d %v", got.status, got.body)
	}
	owner("PUT", sub+authorization+"/roleDefinitions/r2",
		`{"properties":{"permissions":[{"actions":["Microsoft.Network/routeTables/join/action"]}]}}`)
	owner("PUT", table+authorization+"/roleAssignments/b", `{"properties":{"roleDefinitionId":"`+sub+authorization+
		`/roleDefinitions/r2","principalId":"oid-guest"}}`)
	if got := guest("PUT", network, linked); got.status != 200 {
		t.Errorf("with the right to join: %d %v", got.status, got.body)
	}
}
