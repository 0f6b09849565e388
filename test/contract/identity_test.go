package contract

import (
	"cmp"
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
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
				Issuer: new("https://issuer.example"), Subject: new("system:serviceaccount:default:" + name),
				Audiences: []*string{new("api://AzureADTokenExchange")}}}
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
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		f := clients(a, armauthorization.NewClientFactory)
		scope := string(azure.GroupID(subscription, group))
		found, err := every(f.NewRoleDefinitionsClient().NewListPager(scope,
			&armauthorization.RoleDefinitionsClientListOptions{Filter: new("roleName eq 'Contributor'")}),
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
			PrincipalID: identity.Properties.PrincipalID, RoleDefinitionID: found[0].ID,
			PrincipalType: new(armauthorization.PrincipalTypeServicePrincipal)}}
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

// TestRightsAreARight checks that reading one's permissions is a right of its own.
func TestRightsAreARight(t *testing.T) {
	withAccess(t, func(owner, other *local) {
		owner.group()
		ask := func() ([]*armauthorization.Permission, error) {
			return every(clients(other, armauthorization.NewClientFactory).NewPermissionsClient().NewListForResourceGroupPager(group, nil),
				func(p armauthorization.PermissionsClientListForResourceGroupResponse) []*armauthorization.Permission {
					return p.Value
				})
		}
		scope := azure.GroupID(subscription, group)
		grant(owner, "00000000-0000-0000-0000-0000000000a1", scope, "Microsoft.Network/*")
		_, err := ask()
		other.refused(err, http.StatusForbidden, "AuthorizationFailed")
		grant(owner, "00000000-0000-0000-0000-0000000000a2", scope, "Microsoft.Authorization/permissions/read")
		rights, err := ask()
		other.must(err)
		if len(rights) != 2 {
			other.Errorf("%d entries of rights, of two roles", len(rights))
		}
	})
}

// byTenant returns tokens of an owner in the requested tenant.
type byTenant struct{}

func (byTenant) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "in " + cmp.Or(o.TenantID, core.DefaultTenant), ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestAuxiliaryTenants checks that an official client with an auxiliary tenant sends its token and
// may then refer to its resources.
func TestAuxiliaryTenants(t *testing.T) {
	const there, thereID = "00000000-0000-0000-0000-00000000000b", "bbbbbbbb-0000-0000-0000-000000000000"
	synctest.Test(t, func(t *testing.T) {
		owners := identities{}
		for _, tenant := range []string{core.DefaultTenant, thereID} {
			owners["in "+tenant] = &behaviour.Principal{ObjectID: "o", Owner: true, Tenant: tenant}
		}
		e := build(t, core.Options{Authenticator: owners, Subscriptions: []core.Subscription{{ID: there, Tenant: thereID}}})
		a := connect(t, &judge{TB: t, next: e.Transport()}, "https://management.local")
		a.Emulator = e
		in := func(name string, tenant string, auxiliary ...string) *armnetwork.ClientFactory {
			o := *a.options
			o.AuxiliaryTenants = auxiliary
			var credential azcore.TokenCredential = byTenant{}
			if tenant != "" {
				credential = token("in " + tenant)
			}
			f, err := armnetwork.NewClientFactory(name, credential, &o)
			a.must(err)
			return f
		}
		for name, tenant := range map[string]string{subscription: core.DefaultTenant, there: thereID} {
			f, err := armresources.NewClientFactory(name, token("in "+tenant), a.options)
			a.must(err)
			_, err = f.NewResourceGroupsClient().CreateOrUpdate(a.Context(), group, armresources.ResourceGroup{Location: new(region)}, nil)
			a.must(err)
		}
		table, err := ended(in(there, thereID).NewRouteTablesClient().BeginCreateOrUpdate(a.Context(), group, "t",
			armnetwork.RouteTable{Location: new(region)}, nil))
		a.must(err)
		link := armnetwork.VirtualNetwork{Location: new(region), Properties: &armnetwork.VirtualNetworkPropertiesFormat{
			AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{new("10.0.0.0/16")}},
			Subnets: []*armnetwork.Subnet{{Name: new("s"), Properties: &armnetwork.SubnetPropertiesFormat{
				AddressPrefix: new("10.0.0.0/24"), RouteTable: &armnetwork.RouteTable{ID: table.ID},
			}}},
		}}
		_, err = ended(in(subscription, "").NewVirtualNetworksClient().BeginCreateOrUpdate(a.Context(), group, "v", link, nil))
		a.refused(err, http.StatusForbidden, "LinkedAuthorizationFailed")
		_, err = ended(in(subscription, "", thereID).NewVirtualNetworksClient().BeginCreateOrUpdate(a.Context(), group, "v", link, nil))
		a.must(err)
		_, err = in(there, core.DefaultTenant).NewRouteTablesClient().Get(a.Context(), group, "t", nil)
		a.refused(err, http.StatusUnauthorized, "InvalidAuthenticationTokenTenant")
	})
}
