package preflight

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit/clustertest"
)

// signed is a transport whose requests have a token.
type signed struct {
	next  http.RoundTripper
	token string
}

func (s signed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.token)
	return s.next.RoundTrip(r)
}

// people are the principals of tokens.
type people map[string]*behaviour.Principal

func (p people) Authenticate(token string) (*behaviour.Principal, error) { return p[token], nil }

const deployer = "99999999-0000-0000-0000-000000000001"

// as is a lab whose caller has a role with everything but the rights to use other resources, and those of a list.
func as(t *testing.T, links ...string) *lab {
	t.Helper()
	l := &lab{t: t, azure: clustertest.Start(t, core.Options{AccessControl: true,
		Authenticator: people{"owner": {Owner: true}, "deployer": {ObjectID: deployer}}})}
	const subscription = "/subscriptions/00000000-0000-0000-0000-000000000001"
	const role = subscription + "/providers/Microsoft.Authorization/roleDefinitions/11111111-2222-3333-4444-555555555555"
	permissions := []map[string]any{{"actions": []string{"*"}, "notActions": []string{"*/join/action", "*/assign/action",
		"*/joinLoadBalancer/action", "*/joinViaServiceEndpoint/action", "*/peer/action", "*/joinNetworkSecurityRule/action",
		"*/joinIpConfiguration/action", "*/beginGetAccess/action", "*/PrivateEndpointConnectionsApproval/action"}}}
	if len(links) > 0 {
		permissions = append(permissions, map[string]any{"actions": links})
	}
	body, err := json.Marshal(map[string]any{"properties": map[string]any{"roleName": "deployer", "assignableScopes": []string{subscription},
		"permissions": permissions}})
	if err != nil {
		t.Fatal(err)
	}
	l.connect(signed{l.azure.Transport(), "owner"})
	l.put(role+" "+string(body), subscription+"/providers/Microsoft.Authorization/roleAssignments/aaaaaaaa-0000-0000-0000-000000000001 "+
		`{"properties":{"roleDefinitionId":"`+role+`","principalId":"`+deployer+`","principalType":"ServicePrincipal"}}`)
	l.connect(signed{l.azure.Transport(), "deployer"})
	return l
}

// missingLinks are the rights to use other resources that the preflight misses.
func (l *lab) missingLinks(p cluster.Plan) []string {
	l.t.Helper()
	found, err := Run(l.t.Context(), l.Deployer, p)
	if err != nil {
		l.t.Fatal(err)
	}
	_, text, _ := strings.Cut(found.Error(), "✘ rights: the caller may not: ")
	text, _, _ = strings.Cut(text, "\n")
	return slices.DeleteFunc(strings.Split(text, ", "), func(s string) bool { return s == "" })
}

// TestLinkedRights checks that the preflight misses exactly the rights at linked resources without which Azure refuses the deployment.
func TestLinkedRights(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*definition.Definition)
		files  []string
	}{
		"one member":     {nil, []string{"dev.yaml"}},
		"three members":  {nil, []string{"ha.yaml"}},
		"load balancers": {func(d *definition.Definition) { d.Cluster.Spec.Network.Outbound.Type = "LoadBalancer" }, []string{"dev.yaml"}},
		"pools of machines": {func(d *definition.Definition) {
			d.Pools[0].Spec.Backend = "StandaloneVM"
		}, []string{"ha.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := example(t, test.change, test.files...)
			missing := as(t).missingLinks(p)
			if len(missing) == 0 {
				t.Fatal("the preflight misses no right")
			}
			l := as(t, missing...)
			if again := l.missingLinks(p); len(again) > 0 {
				t.Fatalf("the preflight still misses %v", again)
			}
			l.deploy(p)
			for _, one := range missing {
				l := as(t, slices.DeleteFunc(slices.Clone(missing), func(s string) bool { return s == one })...)
				if got := l.missingLinks(p); !slices.Equal(got, []string{one}) {
					t.Errorf("without %s the preflight misses %v", one, got)
				}
				_, err := l.Deploy(t.Context(), p, func([]byte) error { return nil })
				if err == nil || !strings.Contains(err.Error(), "LinkedAuthorizationFailed") {
					t.Errorf("without %s: %v, want LinkedAuthorizationFailed", one, err)
				}
			}
		})
	}
}
