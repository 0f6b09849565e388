package units

import (
	"maps"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/graph"
)

// identities are the two identities of a cluster's machines.
type identities struct{ controlPlane, nodes graph.Identity }

func (b *builder) identities() identities {
	u := &graph.Unit{Name: "identity"}
	one := func(name, existing string) graph.Identity {
		ref := graph.Existing(existing)
		if existing == "" {
			ref = u.Add(graph.Resource{
				Symbol: name, Type: "Microsoft.ManagedIdentity/userAssignedIdentities", Name: b.names.With(name),
				Body: object{"location": b.location()},
			})
		}
		b.ports["identity."+name] = ref
		return graph.Identity{Ref: ref}
	}
	ids := identities{one("control-plane", b.spec.Identity.ControlPlane.ID), one("nodes", b.spec.Identity.Nodes.ID)}
	if len(u.Resources) > 0 {
		b.units = append(b.units, u)
	}
	return ids
}

// SeedSecrets is the parameter that says whether the deployment writes secrets. Only the first deployment does. Later
// deployments would write old values over renewed ones.
const SeedSecrets = "seedSecrets"

// EncryptionSecret is the secret with the keys with which members encrypt Secrets.
const EncryptionSecret = "encryption"

// SecretsOf are the secrets of a cluster by the name of their parameter. Clusters of an earlier kaz have no keys that encrypt Secrets.
func SecretsOf(d definition.Definition) map[string]string {
	all := Secrets()
	maps.DeleteFunc(all, func(_, name string) bool { return name == EncryptionSecret && !d.Encrypted })
	return all
}

// Secrets are the secrets of a new cluster by the name of their parameter.
func Secrets() map[string]string {
	return map[string]string{
		"pkiCA": "pki-ca", "pkiEtcdCA": "pki-etcd-ca", "pkiFrontProxyCA": "pki-front-proxy-ca", "pkiServiceAccount": "pki-sa",
		"bootstrapToken": "bootstrap-token", "encryptionKeys": EncryptionSecret,
	}
}

// vault is the key vault with the cluster's secrets.
type vault struct {
	graph.Vault
	token graph.Ref
	made  []graph.Ref // the token, which kaz makes also in a vault that exists
}

func (b *builder) vault() vault {
	u := b.unit("vault")
	existing := b.spec.KeyVault.ID
	v := graph.Existing(existing)
	if existing != "" {
		b.at(u, azure.ID(existing))
	} else {
		v = u.Add(graph.Resource{
			Symbol: "vault", Type: "Microsoft.KeyVault/vaults", Name: b.names.Vault(),
			Body: object{"location": b.location(), "properties": object{
				"tenantId": b.spec.Azure.TenantID, "sku": object{"family": "A", "name": "standard"},
				"enableRbacAuthorization": true, "enableSoftDelete": true, "softDeleteRetentionInDays": 7,
			}},
		})
	}
	b.ports["key-vault"] = v
	var made []graph.Ref
	for parameter, name := range SecretsOf(b.d) {
		secret := graph.Resource{
			Symbol: name, Type: secretType, Name: b.names.Vault() + "/" + b.names.Secret(name),
			Condition: SeedSecrets, Body: object{"properties": object{"value": graph.Parameter(parameter)}},
		}
		if existing == "" {
			secret.After = []graph.Ref{v}
		}
		if ref := u.Add(secret); name == "bootstrap-token" {
			made = append(made, ref)
		}
	}
	return vault{graph.Vault{Ref: v}, v.Part("secrets", b.names.Secret("bootstrap-token")), made}
}

// retention deletes versions of backups for good that are a week old and no longer current: those that were replaced or deleted.
func (b *builder) retention() object {
	const days = 7
	return object{"name": "old-backups", "enabled": true, "type": "Lifecycle", "definition": object{
		"filters": object{"blobTypes": []any{"blockBlob"}, "prefixMatch": []any{b.names.Container() + "/etcd/"}},
		"actions": object{"version": object{"delete": object{"daysAfterCreationGreaterThan": days}}},
	}}
}

// storage is the storage account with the blob that elects the first member.
type storage struct {
	graph.Account
	container graph.Ref
	made      []graph.Ref // the container, which kaz makes also in an account that exists
}

func (b *builder) storage() storage {
	u := b.unit("storage")
	existing := b.spec.Storage.ID
	account := graph.Existing(existing)
	var service graph.Ref
	if existing != "" {
		b.at(u, azure.ID(existing))
	} else {
		account = u.Add(graph.Resource{
			Symbol: "account", Type: "Microsoft.Storage/storageAccounts", Name: b.names.Account(),
			Body: object{"location": b.location(), "kind": "StorageV2", "sku": object{"name": "Standard_LRS"}, "properties": object{
				"minimumTlsVersion": "TLS1_2", "allowBlobPublicAccess": false, "allowSharedKeyAccess": false,
				"supportsHttpsTrafficOnly": true,
			}},
		})
		service = u.Add(graph.Resource{
			Symbol: "blobs", Type: "Microsoft.Storage/storageAccounts/blobServices", Name: b.names.Account() + "/default",
			After: []graph.Ref{account}, Body: object{"properties": object{"isVersioningEnabled": true}},
		})
	}
	if existing == "" {
		u.Add(graph.Resource{
			Symbol: "retention", Type: "Microsoft.Storage/storageAccounts/managementPolicies", Name: b.names.Account() + "/default",
			After: []graph.Ref{account, service}, Body: object{"properties": object{"policy": object{"rules": []any{b.retention()}}}},
		})
	}
	made := u.Add(graph.Resource{
		Symbol: "container", Type: "Microsoft.Storage/storageAccounts/blobServices/containers",
		Name: b.names.Account() + "/default/" + b.names.Container(), After: []graph.Ref{service},
		Body: object{"properties": object{"publicAccess": "None"}},
	})
	b.ports["storage"] = account
	container := account.Part("blobServices", "default", "containers", b.names.Container())
	return storage{graph.Account{Ref: account}, container, []graph.Ref{made}}
}
