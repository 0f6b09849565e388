package core_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

const (
	otherSubscription = "00000000-0000-0000-0000-00000000000b"
	otherTenant       = "bbbbbbbb-0000-0000-0000-000000000000"
)

// tenantTokens finds principals by tokens such as "guest@home": an owner, and a
// principal that needs roles, each in two tenants.
type tenantTokens struct{}

func (tenantTokens) Authenticate(token string) (*behaviour.Principal, error) {
	name, where, _ := strings.Cut(token, "@")
	tenant := map[string]string{"home": core.DefaultTenant, "other": otherTenant}[where]
	if tenant == "" {
		return nil, behaviour.Refusal(401, "InvalidAuthenticationToken", "The access token is invalid.")
	}
	return &behaviour.Principal{ObjectID: "oid-" + name, ApplicationID: "app-" + name, Tenant: tenant, Owner: name == "owner"}, nil
}

// TestTenants: a subscription trusts one tenant, and what links a resource with one of
// another tenant's needs a token of that tenant, too.
func TestTenants(t *testing.T) {
	a := start(t, core.Options{
		Authenticator: tenantTokens{}, AccessControl: true,
		Subscriptions: []core.Subscription{{ID: otherSubscription, Tenant: otherTenant}},
	})
	as := func(token, auxiliary, method, url, body string) answer {
		t.Helper()
		headers := []string{"Authorization", "Bearer " + token}
		if auxiliary != "" {
			headers = append(headers, "x-ms-authorization-auxiliary", auxiliary)
		}
		return a.do(method, url, body, headers...)
	}
	there := "/subscriptions/" + otherSubscription
	thereGroup, thereTable := there+"/resourceGroups/net", there+"/resourceGroups/net/providers/Microsoft.Network/routeTables/t"
	for _, made := range []answer{
		as("owner@home", "", "PUT", group, `{"location":"eastus"}`),
		as("owner@other", "", "PUT", thereGroup, `{"location":"eastus"}`),
		as("owner@other", "", "PUT", thereTable, `{"location":"eastus"}`),
	} {
		if made.status != 201 {
			t.Fatalf("%d %v", made.status, made.body)
		}
	}
	for _, wrong := range []answer{as("owner@home", "", "GET", thereTable, ""), as("owner@other", "", "GET", group, "")} {
		if wrong.status != 401 || wrong.code() != "InvalidAuthenticationTokenTenant" ||
			!strings.Contains(wrong.header.Get("WWW-Authenticate"), "authorization_uri=") {
			t.Errorf("a token of the wrong tenant: %d %v", wrong.status, wrong.body)
		}
	}
	if got := as("owner@home", "", "GET", "/subscriptions/00000000-0000-0000-0000-00000000000c/resourceGroups",
		""); got.code() != "SubscriptionNotFound" {
		t.Errorf("a subscription that is not there: %d %v", got.status, got.body)
	}

	linked := `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"` + thereTable + `"}}}]}}`
	got := as("owner@home", "", "PUT", network, linked)
	if got.status != 403 || got.code() != "LinkedAuthorizationFailed" ||
		!strings.Contains(behaviour.Text(got.body, "error.message"), "the current tenant '"+core.DefaultTenant+
			"' is not authorized to access linked subscription '"+otherSubscription+"'") {
		t.Errorf("a link into another tenant: %d %v", got.status, got.body)
	}
	if got := as("owner@home", "Bearer nonsense", "PUT", network, linked); got.status != 401 || got.code() != "InvalidAuxiliaryTokens" {
		t.Errorf("with nonsense: %d %v", got.status, got.body)
	}
	if got := as("owner@home", "Bearer guest@other", "PUT", network, linked); got.status != 403 ||
		!strings.Contains(behaviour.Text(got.body, "error.message"), "Microsoft.Network/routeTables/join/action") {
		t.Errorf("with a token without the right to join: %d %v", got.status, got.body)
	}
	const authorization = "/providers/Microsoft.Authorization"
	role := there + authorization + "/roleDefinitions/r"
	as("owner@other", "", "PUT", role,
		`{"properties":{"roleName":"joiner","permissions":[{"actions":["Microsoft.Network/routeTables/join/action"]}]}}`)
	as("owner@other", "", "PUT", thereTable+authorization+"/roleAssignments/a", `{"properties":{"roleDefinitionId":"`+role+
		`","principalId":"oid-guest"}}`)
	if got := as("owner@home", "Bearer guest@home, Bearer guest@other", "PUT", network, linked); got.status != 201 {
		t.Errorf("with a token with the right to join: %d %v", got.status, got.body)
	}
	if got := as("owner@home", strings.TrimSuffix(strings.Repeat("Bearer guest@other,", 4), ","), "PUT", network,
		linked); got.status != 400 {
		t.Errorf("with four tokens: %d %v", got.status, got.body)
	}
}
