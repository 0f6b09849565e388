package contract

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// identities know the bearers of tokens.
type identities map[string]*behaviour.Principal

func (i identities) Authenticate(token string) (*behaviour.Principal, error) {
	if p := i[token]; p != nil {
		return p, nil
	}
	return nil, behaviour.Refusal(http.StatusUnauthorized, "InvalidAuthenticationToken", "The access token is invalid.")
}

const reader = "22222222-2222-2222-2222-222222222222"

// withAccess runs a test with clients of an owner and of another principal.
func withAccess(t *testing.T, f func(owner, other *local)) {
	synctest.Test(t, func(t *testing.T) {
		e := build(t, core.Options{Latency: asOnAzure, AccessControl: true, Authenticator: identities{
			"owner": {ObjectID: "33333333-3333-3333-3333-333333333333", Owner: true},
			"other": {ObjectID: reader, ApplicationID: reader},
		}})
		as := func(bearer string) *local {
			a := connect(t, &judge{TB: t, next: bearing{token: bearer, next: e.Transport()}}, "https://management.local")
			a.Emulator = e
			return a
		}
		f(as("owner"), as("other"))
	})
}

// bearing replaces the token of requests.
type bearing struct {
	token string
	next  http.RoundTripper
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// grant assigns the other principal a role with these actions at a scope.
func grant(owner *local, name string, scope azure.ID, actions ...any) {
	owner.Helper()
	const version = "2022-04-01"
	c := owner.resources.NewClient()
	definition := azure.SubscriptionID(subscription) + azure.ID("/providers/Microsoft.Authorization/roleDefinitions/"+name)
	_, err := ended(c.BeginCreateOrUpdateByID(owner.Context(), string(definition), version,
		armresources.GenericResource{Properties: map[string]any{
			"roleName": name, "type": "CustomRole", "assignableScopes": []any{"/subscriptions/" + subscription},
			"permissions": []any{map[string]any{"actions": actions, "notActions": []any{}}}}}, nil))
	owner.must(err)
	assignment := scope + azure.ID("/providers/Microsoft.Authorization/roleAssignments/"+name)
	_, err = ended(c.BeginCreateOrUpdateByID(owner.Context(), string(assignment), version,
		armresources.GenericResource{Properties: map[string]any{
			"roleDefinitionId": string(definition), "principalId": reader, "principalType": "ServicePrincipal"}}, nil))
	owner.must(err)
}

func TestAccessControl(t *testing.T) {
	withAccess(t, func(owner, other *local) {
		owner.group()
		_, err := publicAddresses().put(owner, "ip-one", publicAddress())
		owner.must(err)
		_, err = publicAddresses().get(other, "ip-one")
		other.refused(err, http.StatusForbidden, "AuthorizationFailed")
		_, err = other.resources.NewResourceGroupsClient().CreateOrUpdate(other.Context(), "mine",
			armresources.ResourceGroup{Location: new(region)}, nil)
		other.refused(err, http.StatusForbidden, "AuthorizationFailed")

		scope := azure.GroupID(subscription, group)
		grant(owner, "00000000-0000-0000-0000-0000000000a1", scope, "Microsoft.Network/publicIPAddresses/read",
			"Microsoft.Network/loadBalancers/*", "Microsoft.Network/locations/operations/read")
		_, err = publicAddresses().get(other, "ip-one")
		other.must(err)
		other.refused(publicAddresses().remove(other, "ip-one"), http.StatusForbidden, "AuthorizationFailed")

		// A write with a reference needs the join right at the referenced resource.
		_, err = loadBalancers().put(other, "one", loadBalancer("one"))
		other.refused(err, http.StatusForbidden, "LinkedAuthorizationFailed")
		grant(owner, "00000000-0000-0000-0000-0000000000a2", scope, "Microsoft.Network/publicIPAddresses/join/action")
		_, err = loadBalancers().put(other, "one", loadBalancer("one"))
		other.must(err)
	})
}

func TestTokensThatAreNone(t *testing.T) {
	withAccess(t, func(owner, _ *local) {
		owner.judge.next = bearing{token: "stolen", next: owner.Transport()}
		_, err := owner.resources.NewResourceGroupsClient().Get(owner.Context(), group, nil)
		owner.refused(err, http.StatusUnauthorized, "InvalidAuthenticationToken")
	})
}
