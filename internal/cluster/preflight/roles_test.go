package preflight

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/testkit/clustertest"
)

// principal is the object id of an identity.
func (l *lab) principal(id string) string {
	l.t.Helper()
	doc, err := l.client.Get(l.t.Context(), azure.ID(id))
	if err != nil {
		l.t.Fatal(err)
	}
	var identity struct {
		Properties struct{ PrincipalID string }
	}
	if err := json.Unmarshal(doc, &identity); err != nil {
		l.t.Fatal(err)
	}
	return identity.Properties.PrincipalID
}

// ownIdentities is a lab with two identities and a vault of their own group, and a plan that uses them and assigns no roles.
func ownIdentities(t *testing.T) (*lab, func(roles string) cluster.Plan) {
	t.Helper()
	l := newLab(t)
	const shared = group + "shared"
	const identity = shared + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/"
	const vault = shared + "/providers/Microsoft.KeyVault/vaults/kv-shared-1"
	l.put(group+`dev {"location":"westeurope"}`, shared+` {"location":"westeurope"}`,
		identity+`machines {"location":"westeurope"}`, identity+`nodes {"location":"westeurope"}`,
		vault+` {"location":"westeurope","properties":{"tenantId":"`+clustertest.Tenant+`","sku":{"family":"A","name":"standard"},
			"enableRbacAuthorization":true}}`)
	return l, func(roles string) cluster.Plan {
		return example(t, func(d *definition.Definition) {
			s := &d.Cluster.Spec
			s.Azure.ResourceGroup.Lifecycle = "Existing"
			s.Identity.ControlPlane.ID, s.Identity.Nodes.ID, s.Identity.Roles = identity+"machines", identity+"nodes", roles
			s.KeyVault.ID = vault
		}, "dev.yaml")
	}
}

// TestRoles checks scenario 18: the preflight finds an identity without its roles before anything is written. The finding
// names the missing actions and the command that assigns the role.
func TestRoles(t *testing.T) {
	l, plan := ownIdentities(t)
	p := plan("None")
	l.writes()
	found, err := Run(t.Context(), l.Deployer, p)
	if err != nil || !found.Stop() {
		t.Fatalf("%v %v", err, found)
	}
	identity := p.Definition.Cluster.Spec.Identity.ControlPlane.ID
	for _, want := range []string{
		"✘ roles: spec.identity.controlPlane.id: identity machines may not do this at " + group + "dev: Microsoft.Network/loadBalancers/backendAddressPools/join/action, Microsoft.Network/loadBalancers/delete,",
		fmt.Sprintf("\n  remedy: az role assignment create --assignee-object-id %s --assignee-principal-type ServicePrincipal "+
			"--role \"Network Contributor\" --scope %sdev", l.principal(identity), group),
		"Microsoft.Compute/disks/write",
		"⚠ roles: spec.identity.nodes.id: identity nodes may not do this at " + p.Definition.Cluster.Spec.KeyVault.ID +
			"/secrets/dev-bootstrap-token: Microsoft.KeyVault/vaults/secrets/getSecret/action",
		"⚠ roles: spec.identity.controlPlane.id: identity machines may not do this at " + group +
			"dev/providers/Microsoft.Storage/storageAccounts/" + p.Names.Account(),
	} {
		if !strings.Contains(found.Error(), want) {
			t.Errorf("got\n%v\nwant %s", found, want)
		}
	}
	if writes := l.writes(); len(writes) > 0 {
		t.Errorf("the preflight wrote %v", writes)
	}
}

// TestRolesForCopies checks that the preflight names the right without which disks cannot be copied, and a built-in role that has it.
// Virtual Machine Contributor does not have it.
func TestRolesForCopies(t *testing.T) {
	l, plan := ownIdentities(t)
	p := plan("None")
	machines := p.Definition.Cluster.Spec.Identity.ControlPlane.ID
	for i, role := range []string{"4d97b98b-1d4f-4787-a291-c67834d212e7", "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"} {
		l.put(fmt.Sprintf("%sdev/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-00000000000%d "+
			`{"properties":{"roleDefinitionId":"/providers/Microsoft.Authorization/roleDefinitions/%s","principalId":%q,`+
			`"principalType":"ServicePrincipal"}}`,
			group, i, role, l.principal(machines)))
	}
	found, err := Run(t.Context(), l.Deployer, p)
	if err != nil {
		t.Fatal(err)
	}
	want := "✘ roles: spec.identity.controlPlane.id: identity machines may not do this at " + group +
		"dev: Microsoft.Compute/disks/beginGetAccess/action\n"
	if !strings.Contains(found.Error(), want) || !strings.Contains(found.Error(), `--role "Disk Backup Reader" --scope `+group+"dev") {
		t.Errorf("got\n%v\nwant %s", found, want)
	}
	if strings.Contains(found.Error(), `--role "Virtual Machine Contributor"`) {
		t.Errorf("the role Virtual Machine Contributor is assigned: %v", found)
	}
}

// TestRolesAssigned checks that the roles that kaz assigns itself are all that the check asks for.
func TestRolesAssigned(t *testing.T) {
	l, plan := ownIdentities(t)
	if found, err := Run(t.Context(), l.Deployer, plan("Scoped")); err != nil || found.Stop() {
		t.Fatalf("kaz assigns the roles: %v %v", err, found)
	}
	l.deploy(plan("Scoped"))
	c := &checker{Deployer: l.Deployer, p: plan("None")}
	c.roles(t.Context())
	if len(c.List) > 0 {
		t.Errorf("found %v", c.List)
	}
}

// TestRolesOfNewIdentity checks the warning about an identity that is to get no roles.
func TestRolesOfNewIdentity(t *testing.T) {
	found, err := Run(t.Context(), newLab(t).Deployer, example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Identity.Roles = "None"
	}, "dev.yaml"))
	if err != nil || found.Stop() || !strings.Contains(found.Error(), "the identity that kaz makes has no roles") {
		t.Errorf("%v %v", err, found)
	}
}
