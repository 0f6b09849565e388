package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/engine"
	"kaz/internal/plan/cluster/definition"
	"kaz/internal/testkit/clustertest"
)

const (
	subscription     = "/subscriptions/00000000-0000-0000-0000-000000000001"
	group            = subscription + "/resourceGroups/"
	policyDefinition = subscription + "/providers/Microsoft.Authorization/policyDefinitions/closed"
	policyAssignment = group + "dev/providers/Microsoft.Authorization/policyAssignments/closed"
)

// TestPreflight checks scenarios 19, 21 and 22: each obstacle is found before anything is written, and has a remedy.
func TestPreflight(t *testing.T) {
	identity := group + "shared/providers/Microsoft.ManagedIdentity/userAssignedIdentities/nodes"
	for _, test := range []struct {
		name   string
		change func(*definition.Definition)
		// before are documents that exist.
		before map[azure.ID]string
		want   string
	}{
		{name: "tenant", change: func(d *definition.Definition) { d.Cluster.Spec.Azure.TenantID = "00000000-0000-0000-0000-0000000000bb" },
			want: "✘ login: subscription 00000000-0000-0000-0000-000000000001 is of tenant " + clustertest.Tenant},
		{name: "subscription", change: func(d *definition.Definition) {
			d.Cluster.Spec.Azure.SubscriptionID = "00000000-0000-0000-0000-000000000009"
		}, want: "✘ login: the caller does not see subscription 00000000-0000-0000-0000-000000000009"},
		{name: "location", change: func(d *definition.Definition) { d.Cluster.Spec.Azure.Location = "westeurop" },
			want: "✘ location: the subscription has no location westeurop"},
		{name: "size", change: func(d *definition.Definition) { d.Pools[0].Spec.VMSize = "Standard_D4s_v55" },
			want: "✘ sizes: NodePool general: spec.vmSize: Standard_D4s_v55 is not offered in westeurope\n" +
				"  remedy: choose another size, such as Standard_D4s_v5"},
		{name: "zone", change: func(d *definition.Definition) {
			d.Cluster.Spec.Azure.Location, d.Pools[0].Spec.Zones = "westus", []int{2}
		}, want: "✘ zones: NodePool general: spec.vmSize: Standard_D4s_v5 is not offered in zone 2 of westus"},
		{name: "premium disks", change: func(d *definition.Definition) { d.Cluster.Spec.ControlPlane.VMSize = "Standard_D4d_v5" },
			want: "✘ sizes: Cluster: spec.controlPlane.vmSize: Standard_D4d_v5 takes no premium disks"},
		{name: "ephemeral disks", change: func(d *definition.Definition) { d.Pools[0].Spec.OSDisk.Ephemeral = true },
			want: "✘ sizes: NodePool general: spec.vmSize: Standard_D4s_v5 takes no ephemeral disks"},
		{name: "quota", change: func(d *definition.Definition) {
			d.Pools[0].Spec.VMSize, d.Pools[0].Spec.Replicas = "Standard_D64s_v5", 1000
			more := d.Pools[0]
			more.Metadata.Name = "more"
			d.Pools = append(d.Pools, more)
		}, want: "✘ quota: cores: the limit is 100000, 0 are used, and the cluster needs 128004 more"},
		{name: "group of others", before: map[azure.ID]string{group + "dev": `{"location":"westeurope"}`},
			want: "✘ resource group: resource group dev exists and kaz did not make it for cluster dev"},
		{name: "group that is missing", change: func(d *definition.Definition) { d.Cluster.Spec.Azure.ResourceGroup.Lifecycle = "Existing" },
			want: "✘ resource group: resource group dev does not exist"},
		{name: "identity that is missing", change: func(d *definition.Definition) { d.Cluster.Spec.Identity.Nodes.ID = identity },
			want: "✘ existing resources: spec.identity.nodes.id: " + identity + " does not exist"},
		{name: "no way out", change: func(d *definition.Definition) { d.Cluster.Spec.Network.Outbound.Type = "None" },
			want: "✘ outbound: spec.network.outbound.type is None, so machines do not reach https://dl.k8s.io"},
		{name: "no way out, and a mirror", change: func(d *definition.Definition) {
			d.Cluster.Spec.Network.Outbound.Type, d.Cluster.Spec.Kubernetes.ArtifactMirror = "None", "https://mirror.example.com"
		}, want: ""},
		{name: "lock", before: map[azure.ID]string{
			group + "dev": `{"location":"westeurope","tags":{"kaz_cluster":"dev"}}`,
			group + "dev/providers/Microsoft.Authorization/locks/freeze": `{"properties":{"level":"ReadOnly"}}`,
		}, want: "✘ locks: the lock freeze forbids changes in the resource group"},
		{name: "policy", before: map[azure.ID]string{
			group + "dev": `{"location":"westeurope","tags":{"kaz_cluster":"dev"}}`,
			policyDefinition: `{"properties":{"policyRule":{"if":{"field":"type","equals":"Microsoft.Network/publicIPAddresses"},
				"then":{"effect":"deny"}}}}`,
			policyAssignment: `{"properties":{"policyDefinitionId":"` + policyDefinition + `"}}`,
		}, want: "was disallowed by policy"},
		{name: "a text that looks like an expression", before: map[azure.ID]string{group + "dev": `{"location":"westeurope","tags":{"kaz_cluster":"dev"}}`},
			change: func(d *definition.Definition) {
				d.Extensions = append(d.Extensions, definition.Extension{Metadata: definition.Metadata{Name: "x"}, Spec: definition.ExtensionSpec{
					Resources: []map[string]any{{"type": "Microsoft.Network/routeTables", "apiVersion": "2024-05-01", "name": "r",
						"location": "westeurope", "tags": map[string]any{"a": "[nonsense()]"}}},
				}})
			}, want: ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t)
			for _, id := range []string{group + "dev", group + "dev/providers/Microsoft.Authorization/locks/freeze", policyDefinition,
				policyAssignment} {
				if body, has := test.before[azure.ID(id)]; has {
					l.put(id + " " + body)
				}
			}
			l.writes()
			found, err := Run(t.Context(), l.Engine, example(t, test.change, "dev.yaml"))
			if err != nil || found.Stop() != (test.want != "") || !strings.Contains(found.Error(), test.want) {
				t.Errorf("%v, got\n%v\nwant %s", err, found, test.want)
			}
			if writes := l.writes(); len(writes) > 0 {
				t.Errorf("the preflight wrote %v", writes)
			}
		})
	}
}

// TestNamesTaken checks names that are global: those of others are found, and those of the cluster itself are none of others.
func TestNamesTaken(t *testing.T) {
	l := newLab(t)
	p := example(t, nil, "dev.yaml")
	taken := group + "other/providers/Microsoft.Storage/storageAccounts/" + p.Names.Account()
	l.put(group+`other {"location":"westeurope"}`, taken+` {"location":"westeurope","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`)
	found, err := Run(t.Context(), l.Engine, p)
	if err != nil || !found.Stop() || !strings.Contains(found.Error(), "✘ names: Microsoft.Storage/storageAccounts "+p.Names.Account()) {
		t.Errorf("%v %v", err, found)
	}
	if err := l.client.Delete(t.Context(), azure.ID(taken)); err != nil {
		t.Fatal(err)
	}
	l.deploy(p)
	if found, err := Run(t.Context(), l.Engine, p); err != nil || len(found) > 0 {
		t.Errorf("the cluster's own names count as taken: %v %v", err, found)
	}
}

// TestSubnetTooSmall checks that the machines fit into a subnet that exists.
func TestSubnetTooSmall(t *testing.T) {
	l := newLab(t)
	vnet := group + "net/providers/Microsoft.Network/virtualNetworks/hub"
	l.put(group+`net {"location":"westeurope"}`, vnet+` {"location":"westeurope","properties":{
		"addressSpace":{"addressPrefixes":["10.50.0.0/16"]},"subnets":[
			{"name":"cp","properties":{"addressPrefix":"10.50.0.0/24"}},{"name":"nodes","properties":{"addressPrefix":"10.50.1.0/28"}}]}}`)
	p := example(t, func(d *definition.Definition) {
		n := &d.Cluster.Spec.Network
		n.Subnets.ControlPlane.ID, n.Subnets.Nodes.ID = vnet+"/subnets/cp", vnet+"/subnets/nodes"
		n.Outbound.Type, d.Cluster.Spec.Kubernetes.PodNetwork = "None", "None"
		d.Pools[0].Spec.Replicas = 12
	}, "dev.yaml")
	found, err := Run(t.Context(), l.Engine, p)
	want := "✘ subnets: spec.network.subnets.nodes.id: subnet nodes has 11 free addresses, and the cluster needs 12"
	if err != nil || !strings.Contains(found.Error(), want) {
		t.Errorf("got %v %v\nwant %s", err, found, want)
	}
}

// refusing answers every request with an error.
type refusing struct {
	status    int
	code, why string
}

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, err := fmt.Fprintf(w, `{"error":{"code":%q,"message":%q}}`, r.code, r.why)
	answer := w.Result()
	answer.Request = req
	return answer, err
}

// noToken fails as azidentity does.
type noToken struct{ text string }

func (n noToken) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New(n.text) }

// readOnly notes requests that write.
type readOnly struct {
	next   http.RoundTripper
	writes []string
}

func (r *readOnly) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		r.writes = append(r.writes, req.Method+" "+req.URL.Path)
	}
	return r.next.RoundTrip(req)
}

// TestLogin checks scenario 17: wrong, expired, foreign and rightless credentials are told apart, and nothing is written with them.
func TestLogin(t *testing.T) {
	for _, test := range []struct {
		way  http.RoundTripper
		want string
	}{
		{noToken{"AADSTS7000215: Invalid client secret provided."}, "✘ login: the client secret is wrong (AADSTS7000215)"},
		{noToken{"AADSTS7000222: The provided client secret keys are expired."}, "✘ login: the client secret is expired (AADSTS7000222)"},
		{noToken{"AADSTS700016: Application was not found in the directory."}, "✘ login: the application is not in the tenant (AADSTS700016)"},
		{noToken{"AADSTS90002: Tenant not found."}, "✘ login: the tenant does not exist (AADSTS90002)"},
		{noToken{"AADSTS700027: The certificate is not registered."}, "✘ login: the client certificate is wrong (AADSTS700027)"},
		{noToken{"AADSTS70021: No matching federated identity record found."}, "✘ login: no federated credential fits to the token (AADSTS70021)"},
		{refusing{401, "ExpiredAuthenticationToken", "expired"}, "✘ login: the token is expired"},
		{refusing{401, "InvalidAuthenticationTokenTenant", "wrong issuer"}, "✘ login: the credential is of another tenant"},
		{refusing{403, "AuthorizationFailed", "no"}, "✘ login: the caller has no role in subscription"},
		{refusing{404, "SubscriptionNotFound", "no"}, "✘ login: the caller does not see subscription"},
	} {
		l := &lab{t: t}
		way := &readOnly{next: test.way}
		l.connect(way)
		found, err := Run(t.Context(), l.Engine, example(t, nil, "dev.yaml"))
		if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].String(), test.want) || found[0].Remedy == "" {
			t.Errorf("got %v %v, want %s", err, found, test.want)
		}
		if len(way.writes) > 0 {
			t.Errorf("%s: the preflight wrote %v", test.want, way.writes)
		}
	}
}

// limited is an Azure in which the caller has other rights.
type limited struct {
	engine.Azure
	permissions string
}

func (l limited) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	if q.Type == "Microsoft.Authorization/permissions" {
		return []azure.Document{azure.Document(l.permissions)}, nil
	}
	return l.Azure.List(ctx, q)
}

// TestRights checks scenario 19: a caller that may not assign roles learns it before anything is written, with both remedies.
func TestRights(t *testing.T) {
	l := newLab(t)
	l.Azure = limited{l.Azure, `{"actions":["*"],"notActions":["Microsoft.Authorization/*/Write"]}`}
	found, err := Run(t.Context(), l.Engine, example(t, nil, "dev.yaml"))
	want := "✘ rights: the caller may not: Microsoft.Authorization/roleAssignments/write\n  remedy: ask an owner for the role Contributor at " +
		"/subscriptions/00000000-0000-0000-0000-000000000001, and for User Access Administrator, or set spec.identity.roles to None"
	if err != nil || !strings.HasPrefix(found.Error(), want) {
		t.Errorf("got %v %v\nwant %s", err, found, want)
	}
	found, err = Run(t.Context(), l.Engine, example(t, func(d *definition.Definition) { d.Cluster.Spec.Identity.Roles = "None" }, "dev.yaml"))
	if err != nil || found.Stop() {
		t.Errorf("without role assignments: %v %v", err, found)
	}
	if writes := l.writes(); len(writes) > 0 {
		t.Errorf("the preflight wrote %v", writes)
	}
}

// TestNothingFound checks that the layers of three teams have no finding.
func TestNothingFound(t *testing.T) {
	found, err := Run(t.Context(), newLab(t).Engine, example(t, nil, "ha.yaml", "team-a.yaml", "team-b.yaml"))
	if err != nil || len(found) > 0 {
		t.Errorf("%v\n%v", err, found)
	}
}
