package probe

import (
	"context"
	"net/http"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

// vault is the fixture with a key vault.
const (
	vault     = "vault"
	vaultType = "Microsoft.KeyVault/vaults"
)

func vaultProbes() []Probe {
	const area = "vaults"
	needs := []string{vault}
	secrets := []string{vaultType + "/secrets/read", vaultType + "/secrets/write"}
	return []Probe{
		{
			Name: "secret-absent", Area: area, Minutes: 1, Needs: needs, Rights: secrets, Run: secretAbsent,
			Tries: "GET a secret by Azure Resource Manager before and after it is made; want 404 and 200",
		},
		{
			Name: "secret-versions", Area: area, Minutes: 1, Needs: needs, Run: secretVersions,
			Rights: append(secrets, deploymentType+"/write", deploymentType+"/read"),
			Tries:  "deploy a secret twice; want that each deployment gives it a new version, which a read shows at once",
		},
		{
			Name: "vault-written-back", Area: area, Minutes: 1, Needs: needs, Run: vaultWrittenBack,
			Tries: "PUT a key vault with the body of its GET; want success",
		},
		{
			Name: "vault-policies", Area: area, Minutes: 1, Needs: needs, Rights: []string{vaultType + "/accessPolicies/write"},
			Run:   vaultPolicies,
			Tries: "add permissions for an object id twice and remove them; want that permissions are merged, and an empty entry goes",
		},
		{
			Name: "vault-names", Area: area, Minutes: 1, Rights: all(vaultType), Run: vaultNames,
			Tries: "create a key vault with two - together in its name; want a refusal",
		},
	}
}

// vaultRights are those of the fixture, with what removes the vault for good.
func vaultRights() []string {
	return append(all(vaultType), "Microsoft.KeyVault/deletedVaults/read", "Microsoft.KeyVault/locations/deletedVaults/read",
		"Microsoft.KeyVault/locations/deletedVaults/purge/action")
}

// vaultID is the vault of the fixture. Its name begins as the removal of a run expects.
func vaultID(b *bench.Bench) azure.ID {
	return b.GroupID().Resource(vaultType, "kazv"+b.Random+"vault")
}

func keyVault(ctx context.Context, b *bench.Bench) object {
	tenant := bench.Text(b.Get(ctx, azure.SubscriptionID(b.Subscription)), "tenantId")
	return at(b, object{
		"tenantId": tenant, "sku": object{"family": "A", "name": "standard"}, "accessPolicies": list{},
		"enableSoftDelete": true, "softDeleteRetentionInDays": 7, "enabledForTemplateDeployment": true,
	})
}

func makeVault(ctx context.Context, b *bench.Bench) { b.Make(ctx, vaultID(b), keyVault(ctx, b)) }

func secretAbsent(ctx context.Context, b *bench.Bench) {
	id := vaultID(b).Child("secrets", "absent")
	a := b.Look(ctx, id)
	b.Agree(a.Refused(http.StatusNotFound), "GET of a secret that is not there: %s", a)
	b.Make(ctx, id, object{"properties": object{"value": "kaz-verify"}})
	a = b.Look(ctx, id)
	b.Agree(!a.Failed, "GET of a secret that is there: %s", a)
}

func secretVersions(ctx context.Context, b *bench.Bench) {
	id := vaultID(b).Child("secrets", "versions")
	body := deployment(template(object{
		"parameters": object{"p": object{"type": "securestring"}},
		"resources": list{object{
			"type": vaultType + "/secrets", "apiVersion": b.Versions(vaultType), "name": vaultID(b).Name() + "/versions",
			"properties": object{"value": "[parameters('p')]"},
		}},
	}), object{"p": value("kaz-verify")})
	versions := map[string]bool{}
	const at = "properties.secretUriWithVersion"
	for _, name := range []string{"one", "two"} {
		b.Make(ctx, b.ID(deploymentType, name), body)
		versions[bench.Text(b.Get(ctx, id), at)] = true
	}
	b.Agree(len(versions) == 2 && !versions[""], "reads after two deployments show %d of 2 versions", len(versions))
}

func vaultWrittenBack(ctx context.Context, b *bench.Bench) { writtenBack(ctx, b, vaultID(b)) }

func vaultPolicies(ctx context.Context, b *bench.Bench) {
	const objectID = "00000000-0000-0000-0000-00000000ca2f" // an object id of no identity
	tenant := bench.Text(b.Get(ctx, vaultID(b)), "properties.tenantId")
	policy := func(permissions ...any) object {
		return object{"properties": object{"accessPolicies": list{object{
			"tenantId": tenant, "objectId": objectID, "permissions": object{"secrets": permissions},
		}}}}
	}
	at := func(name string) azure.ID { return vaultID(b).Child("accessPolicies", name) }
	b.Make(ctx, at("add"), policy("get"))
	b.Make(ctx, at("add"), policy("list"))
	n := bench.Count(b.Get(ctx, vaultID(b)), "properties.accessPolicies.0.permissions.secrets")
	b.Agree(n == 2, "after get and list were added, the entry has %d of 2 permissions", n)
	b.Make(ctx, at("remove"), policy("get", "list"))
	n = bench.Count(b.Get(ctx, vaultID(b)), "properties.accessPolicies")
	b.Agree(n == 0, "after both were removed, the vault has %d of 0 entries", n)
}

func vaultNames(ctx context.Context, b *bench.Bench) {
	refusal(ctx, b, "key vault with -- in its name", b.GroupID().Resource(vaultType, "kazv"+b.Random+"--x"), keyVault(ctx, b))
}
