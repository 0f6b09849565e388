package contract

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerregistry/armcontainerregistry"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/keyvault/armkeyvault"

	"kaz/internal/localazure/core"
)

func TestRegistryLives(t *testing.T) {
	lives(t, []lifecase{{"registry", registries().run}, {"vault", vaults().run}})
}

func registries() life[armcontainerregistry.Registry] {
	c := func(a *local) *armcontainerregistry.RegistriesClient {
		return clients(a, armcontainerregistry.NewClientFactory).NewRegistriesClient()
	}
	return life[armcontainerregistry.Registry]{
		names: [2]string{"registryone", "registrytwo"},
		want: func(string) armcontainerregistry.Registry {
			return armcontainerregistry.Registry{Location: new(region),
				SKU: &armcontainerregistry.SKU{Name: new(armcontainerregistry.SKUNamePremium)}}
		},
		put: func(a *local, name string, r armcontainerregistry.Registry) (armcontainerregistry.Registry, error) {
			got, err := ended(c(a).BeginCreate(a.Context(), group, name, r, nil))
			return got.Registry, err
		},
		get: func(a *local, name string) (armcontainerregistry.Registry, error) {
			got, err := c(a).Get(a.Context(), group, name, nil)
			return got.Registry, err
		},
		list: func(a *local) ([]*armcontainerregistry.Registry, error) {
			return every(c(a).NewListByResourceGroupPager(group, nil),
				func(p armcontainerregistry.RegistriesClientListByResourceGroupResponse) []*armcontainerregistry.Registry {
					return p.Value
				})
		},
		remove: func(a *local, name string) error { return gone(c(a).BeginDelete(a.Context(), group, name, nil)) },
		id:     func(r *armcontainerregistry.Registry) *string { return r.ID },
		change: func(r *armcontainerregistry.Registry) { r.Tags = tags("judge") },
		changed: func(r *armcontainerregistry.Registry) bool {
			return tagged(r.Tags, "judge") && *r.Properties.LoginServer == "registryone.azurecr.io"
		},
	}
}

func vaults() life[armkeyvault.Vault] {
	c := func(a *local) *armkeyvault.VaultsClient {
		return clients(a, armkeyvault.NewClientFactory).NewVaultsClient()
	}
	return life[armkeyvault.Vault]{
		names: [2]string{"vault-one", "vault-two"},
		want: func(string) armkeyvault.Vault {
			return armkeyvault.Vault{Location: new(region), Properties: &armkeyvault.VaultProperties{
				TenantID:       new(core.DefaultTenant),
				SKU:            &armkeyvault.SKU{Family: new(armkeyvault.SKUFamilyA), Name: new(armkeyvault.SKUNameStandard)},
				AccessPolicies: []*armkeyvault.AccessPolicyEntry{}}}
		},
		put: func(a *local, name string, r armkeyvault.Vault) (armkeyvault.Vault, error) {
			got, err := ended(c(a).BeginCreateOrUpdate(a.Context(), group, name,
				armkeyvault.VaultCreateOrUpdateParameters{Location: r.Location, Properties: r.Properties, Tags: r.Tags}, nil))
			return got.Vault, err
		},
		get: func(a *local, name string) (armkeyvault.Vault, error) {
			got, err := c(a).Get(a.Context(), group, name, nil)
			return got.Vault, err
		},
		list: func(a *local) ([]*armkeyvault.Vault, error) {
			return every(c(a).NewListByResourceGroupPager(group, nil),
				func(p armkeyvault.VaultsClientListByResourceGroupResponse) []*armkeyvault.Vault { return p.Value })
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, name, nil)
			return err
		},
		id:     func(r *armkeyvault.Vault) *string { return r.ID },
		change: func(r *armkeyvault.Vault) { r.Tags = tags("judge") },
		changed: func(r *armkeyvault.Vault) bool {
			return tagged(r.Tags, "judge") && *r.Properties.VaultURI == "https://vault-one.vault.azure.net/"
		},
	}
}

// The value of a secret is written and never read.
func TestSecretsOfAVault(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := vaults().put(a, "vault-one", vaults().want(""))
		a.must(err)
		c := clients(a, armkeyvault.NewClientFactory).NewSecretsClient()
		for _, name := range []string{"one", "two", "three"} {
			made, err := c.CreateOrUpdate(a.Context(), group, "vault-one", name,
				armkeyvault.SecretCreateOrUpdateParameters{Properties: &armkeyvault.SecretProperties{Value: new("hidden")}}, nil)
			a.must(err)
			if made.Properties.Value != nil {
				a.Errorf("the value of the secret is shown: %s", *made.Properties.Value)
			}
		}
		all, err := every(c.NewListPager(group, "vault-one", nil),
			func(p armkeyvault.SecretsClientListResponse) []*armkeyvault.Secret { return p.Value })
		a.must(err)
		if len(all) != 3 {
			a.Errorf("%d secrets, want 3", len(all))
		}
		vaultClient := clients(a, armkeyvault.NewClientFactory).NewVaultsClient()
		_, err = vaultClient.Delete(a.Context(), group, "vault-one", nil)
		a.must(err)
		_, err = vaultClient.GetDeleted(a.Context(), "vault-one", region, nil)
		a.must(err)
		a.must(gone(vaultClient.BeginPurgeDeleted(a.Context(), "vault-one", region, nil)))
		_, err = vaultClient.GetDeleted(a.Context(), "vault-one", region, nil)
		a.refused(err, http.StatusNotFound, "DeletedVaultNotFound")
	})
}

func TestAccessPoliciesOfAVault(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := vaults().put(a, "vault-one", vaults().want(""))
		a.must(err)
		c := clients(a, armkeyvault.NewClientFactory).NewVaultsClient()
		change := func(kind armkeyvault.AccessPolicyUpdateKind, secrets ...*armkeyvault.SecretPermissions) int {
			a.Helper()
			got, err := c.UpdateAccessPolicy(a.Context(), group, "vault-one", kind, armkeyvault.VaultAccessPolicyParameters{
				Properties: &armkeyvault.VaultAccessPolicyProperties{AccessPolicies: []*armkeyvault.AccessPolicyEntry{{
					TenantID: new(core.DefaultTenant), ObjectID: new("one"),
					Permissions: &armkeyvault.Permissions{Secrets: secrets}}}}}, nil)
			a.must(err)
			if len(got.Properties.AccessPolicies) == 0 {
				return 0
			}
			return len(got.Properties.AccessPolicies[0].Permissions.Secrets)
		}
		get, list := new(armkeyvault.SecretPermissionsGet), new(armkeyvault.SecretPermissionsList)
		for _, step := range []struct {
			kind armkeyvault.AccessPolicyUpdateKind
			sent []*armkeyvault.SecretPermissions
			want int
		}{
			{armkeyvault.AccessPolicyUpdateKindAdd, []*armkeyvault.SecretPermissions{get}, 1},
			{armkeyvault.AccessPolicyUpdateKindAdd, []*armkeyvault.SecretPermissions{list}, 2},
			{armkeyvault.AccessPolicyUpdateKindReplace, []*armkeyvault.SecretPermissions{list}, 1},
			{armkeyvault.AccessPolicyUpdateKindRemove, []*armkeyvault.SecretPermissions{list}, 0},
		} {
			if n := change(step.kind, step.sent...); n != step.want {
				a.Errorf("after %s the object has %d permissions, want %d", step.kind, n, step.want)
			}
		}
	})
}
