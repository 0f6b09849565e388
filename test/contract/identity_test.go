package contract

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"

	"kaz/internal/azure"
	"kaz/internal/emulator"
)

func TestIdentityLives(t *testing.T) {
	lives(t, []lifecase{{"user-assigned identity", userIdentities().run}, {"federated credential", federatedCredentials().run}})
}

func userIdentities() life[armmsi.Identity] {
	c := func(a *local) *armmsi.UserAssignedIdentitiesClient {
		return clients(a, armmsi.NewClientFactory).NewUserAssignedIdentitiesClient()
	}
	return life[armmsi.Identity]{
		want: func(string) armmsi.Identity { return armmsi.Identity{Location: new(region)} },
		put: func(a *local, name string, r armmsi.Identity) (armmsi.Identity, error) {
			got, err := c(a).CreateOrUpdate(a.Context(), group, name, r, nil)
			return got.Identity, err
		},
		get: func(a *local, name string) (armmsi.Identity, error) {
			got, err := c(a).Get(a.Context(), group, name, nil)
			return got.Identity, err
		},
		list: func(a *local) ([]*armmsi.Identity, error) {
			return every(c(a).NewListByResourceGroupPager(group, nil),
				func(p armmsi.UserAssignedIdentitiesClientListByResourceGroupResponse) []*armmsi.Identity {
					return p.Value
				})
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, name, nil)
			return err
		},
		id:     func(r *armmsi.Identity) *string { return r.ID },
		change: func(r *armmsi.Identity) { r.Tags = tags("judge") },
		changed: func(r *armmsi.Identity) bool {
			return tagged(r.Tags, "judge") && *r.Properties.ClientID != "" && *r.Properties.PrincipalID != ""
		},
	}
}

func federatedCredentials() life[armmsi.FederatedIdentityCredential] {
	c := func(a *local) *armmsi.FederatedIdentityCredentialsClient {
		return clients(a, armmsi.NewClientFactory).NewFederatedIdentityCredentialsClient()
	}
	return life[armmsi.FederatedIdentityCredential]{
		given: func(a *local) {
			_, err := userIdentities().put(a, "app", userIdentities().want(""))
			a.must(err)
		},
		names: [2]string{"first", "second"},
		want: func(name string) armmsi.FederatedIdentityCredential {
			return armmsi.FederatedIdentityCredential{Properties: &armmsi.FederatedIdentityCredentialProperties{
				Issuer: new("https://issuer.example"), Subject: new("system:serviceaccount:default:" + name), Audiences: []*string{new("api://AzureADTokenExchange")}}}
		},
		put: func(a *local, name string, r armmsi.FederatedIdentityCredential) (armmsi.FederatedIdentityCredential, error) {
			got, err := c(a).CreateOrUpdate(a.Context(), group, "app", name, r, nil)
			return got.FederatedIdentityCredential, err
		},
		get: func(a *local, name string) (armmsi.FederatedIdentityCredential, error) {
			got, err := c(a).Get(a.Context(), group, "app", name, nil)
			return got.FederatedIdentityCredential, err
		},
		list: func(a *local) ([]*armmsi.FederatedIdentityCredential, error) {
			return every(c(a).NewListPager(group, "app", nil),
				func(p armmsi.FederatedIdentityCredentialsClientListResponse) []*armmsi.FederatedIdentityCredential {
					return p.Value
				})
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, "app", name, nil)
			return err
		},
		id:      func(r *armmsi.FederatedIdentityCredential) *string { return r.ID },
		change:  func(r *armmsi.FederatedIdentityCredential) { r.Properties.Subject = new("changed") },
		changed: func(r *armmsi.FederatedIdentityCredential) bool { return *r.Properties.Subject == "changed" },
		absent:  "NotFound",
	}
}

func TestRoles(t *testing.T) {
	inBubble(t, emulator.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		f := clients(a, armauthorization.NewClientFactory)
		scope := string(azure.GroupID(subscription, group))
		found, err := every(f.NewRoleDefinitionsClient().NewListPager(scope, &armauthorization.RoleDefinitionsClientListOptions{Filter: new("roleName eq 'Contributor'")}),
			func(p armauthorization.RoleDefinitionsClientListResponse) []*armauthorization.RoleDefinition {
				return p.Value
			})
		a.must(err)
		if len(found) != 1 {
			a.Fatalf("%d roles with the name Contributor", len(found))
		}
		identity, err := userIdentities().put(a, "app", userIdentities().want(""))
		a.must(err)
		name := "00000000-0000-0000-0000-0000000000b1"
		parameters := armauthorization.RoleAssignmentCreateParameters{Properties: &armauthorization.RoleAssignmentProperties{
			PrincipalID: identity.Properties.PrincipalID, RoleDefinitionID: found[0].ID, PrincipalType: new(armauthorization.PrincipalTypeServicePrincipal)}}
		c := f.NewRoleAssignmentsClient()
		made, err := c.Create(a.Context(), scope, name, parameters, nil)
		a.must(err)
		has(a, "principal", made.Properties.PrincipalID, *identity.Properties.PrincipalID)
		_, err = c.Create(a.Context(), scope, "00000000-0000-0000-0000-0000000000b2", parameters, nil)
		a.refused(err, http.StatusConflict, "RoleAssignmentExists")
		all, err := every(c.NewListForScopePager(scope, nil),
			func(p armauthorization.RoleAssignmentsClientListForScopeResponse) []*armauthorization.RoleAssignment {
				return p.Value
			})
		a.must(err)
		if len(all) != 1 {
			a.Errorf("%d role assignments, want 1", len(all))
		}
		_, err = c.Delete(a.Context(), scope, name, nil)
		a.must(err)
		_, err = c.Get(a.Context(), scope, name, nil)
		a.refused(err, http.StatusNotFound, "RoleAssignmentNotFound")
		rights, err := every(f.NewPermissionsClient().NewListForResourceGroupPager(group, nil),
			func(p armauthorization.PermissionsClientListForResourceGroupResponse) []*armauthorization.Permission {
				return p.Value
			})
		a.must(err)
		if len(rights) == 0 {
			a.Error("an owner has no rights")
		}
	})
}
