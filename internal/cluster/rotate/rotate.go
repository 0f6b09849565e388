// Package rotate replaces secrets of a cluster: the join token, the key of service accounts, the one that encrypts Secrets, and the
// certificate authorities. Layer L3.
package rotate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/workload"
)

type object = map[string]any

// The secrets of the key vault, as [naming.Names.Secret] takes them.
const (
	Token      = "bootstrap-token"
	Keys       = "pki-sa"
	Authority  = "pki-ca"
	EtcdCA     = "pki-etcd-ca"
	FrontProxy = "pki-front-proxy-ca"
	Encryption = "encryption"
)

const (
	secretType     = "Microsoft.KeyVault/vaults/secrets"
	deploymentType = "Microsoft.Resources/deployments"
)

// Rotation reads and replaces the secrets of a cluster.
type Rotation struct {
	Azure azure.Writer
	// Planes has the data plane of the key vault.
	Planes   dataplane.Client
	Workload *workload.Cluster
	Names    naming.Names
	Now      func() time.Time
	// Say writes a line for people.
	Say func(format string, args ...any)
	// Join bounds how long namespaces may take to get certificate authorities, and Drain how long pods may take to leave a node.
	Join, Drain time.Duration
	// Encrypted says that the deployed definition has keys that encrypt Secrets. Record lets it say so.
	Encrypted bool
	Record    func(ctx context.Context) error
}

// Steps are the steps of changes that replace secrets.
func (r Rotation) Steps() map[change.Action]func(context.Context, change.Step) error {
	return map[change.Action]func(context.Context, change.Step) error{
		change.MakeToken: r.makeToken, change.PublishToken: r.publishToken, change.EndToken: r.endToken,
		change.NextKey: r.nextKey, change.SignKey: r.signKey, change.NoteKey: r.noteKey, change.DropKeys: r.dropKeys,
		change.NextSecretsKey: r.nextSecretsKey, change.UseSecretsKey: r.useSecretsKey, change.RewriteSecrets: r.rewriteSecrets,
		change.DropSecretsKeys: r.dropSecretsKeys,
		change.EditAuthorities: r.editAuthorities, change.AwaitAuthorities: r.awaitAuthorities, change.RestartPods: r.restartPods,
	}
}

func (r Rotation) trust() workload.Trust { return workload.Trust{Cluster: r.Workload} }

// Secret reads a secret from the key vault.
func (r Rotation) Secret(ctx context.Context, what string) (string, error) {
	return r.Planes.Secret(ctx, r.Names.VaultURL(), r.Names.VaultAudience()+"/.default", r.Names.Secret(what))
}

// join reads what machines join with.
func (r Rotation) join(ctx context.Context) (pki.Join, error) {
	text, err := r.Secret(ctx, Token)
	if err != nil {
		return pki.Join{}, err
	}
	return pki.ParseJoin(text)
}

// writeJoin writes what machines join with.
func (r Rotation) writeJoin(ctx context.Context, join pki.Join) error {
	text, err := join.Text()
	if err != nil {
		return err
	}
	return r.write(ctx, Token, text)
}

// write gives a secret a new version, with a deployment as the first version. The value is a parameter of a type that Azure neither shows
// nor logs. So it takes the rights of kaz cluster deploy, and none to write secrets in the data plane.
func (r Rotation) write(ctx context.Context, what, value string) error {
	vault := r.Names.VaultID()
	body, err := json.Marshal(object{"properties": object{
		"mode": "Incremental",
		"template": object{
			"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
			"contentVersion": "1.0.0.0", "parameters": object{"value": object{"type": "securestring"}},
			"resources": []object{{
				"type": secretType, "apiVersion": graph.Versions()[secretType], "name": vault.Name() + "/" + r.Names.Secret(what),
				"properties": object{"value": "[parameters('value')]"},
			}},
		},
		"parameters": object{"value": object{"value": value}},
	}})
	if err != nil {
		return err
	}
	id := azure.GroupID(vault.Subscription(), vault.Group()).Resource(deploymentType, r.Names.SecretDeployment())
	if _, err := azure.Do(ctx, r.Azure, azure.Request{Verb: azure.Put, ID: id, Body: body, Unseen: true}); err != nil {
		return fmt.Errorf("secret %s of the key vault: %w", r.Names.Secret(what), err)
	}
	_, err = azure.Do(ctx, r.Azure, azure.Request{Verb: azure.Delete, ID: id})
	if azure.IsNotFound(err) {
		return nil
	}
	return err
}
