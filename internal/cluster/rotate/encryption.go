package rotate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/pki"
)

// EncryptionKeys reads the keys that encrypt Secrets. Only a cluster that does not encrypt Secrets may have none.
func (r Rotation) EncryptionKeys(ctx context.Context) (pki.EncryptionKeys, error) {
	text, err := r.Secret(ctx, Encryption)
	if status, ok := errors.AsType[*dataplane.StatusError](err); ok && status.Status == http.StatusNotFound && !r.Encrypted {
		return pki.NoEncryptionKeys(), nil
	}
	if err != nil {
		return pki.EncryptionKeys{}, err
	}
	return pki.ParseEncryptionKeys(text)
}

// SecretsKeysOf returns what a plan needs of the keys that encrypt Secrets, without the keys themselves.
func SecretsKeysOf(k pki.EncryptionKeys) change.Keys {
	return change.Keys{Signs: k.Encrypts(), Next: k.Next(), Accepted: k.Readable(), Complete: !k.Complete().IsZero()}
}

// CheckEncryption checks that the keys that encrypt Secrets may be rotated, or former ones be forgotten.
func CheckEncryption(d definition.Definition, finish bool) error {
	name := d.Cluster.Metadata.Name
	if value, own := d.Cluster.Spec.Kubernetes.APIServer.ExtraArgs[definition.EncryptionFlag]; own {
		return fmt.Errorf("spec.kubernetes.apiServer.extraArgs.%s: %s: API servers of cluster %s take the keys of that file: rotate "+
			"them there", definition.EncryptionFlag, value, name)
	}
	if finish && !d.Encrypted {
		return fmt.Errorf("cluster %s does not encrypt Secrets, so there are no former keys: want kaz cluster rotate %s --encryption",
			name, name)
	}
	return nil
}

// EncryptionOf says for people how a cluster encrypts Secrets in etcd.
func EncryptionOf(d definition.Definition) string {
	_, own := d.Cluster.Spec.Kubernetes.APIServer.ExtraArgs[definition.EncryptionFlag]
	switch {
	case own:
		return "encrypted as the file of spec.kubernetes.apiServer.extraArgs." + definition.EncryptionFlag + " says"
	case d.Encrypted:
		return "encrypted with the keys of the key vault"
	}
	return "not encrypted: kaz cluster rotate " + d.Cluster.Metadata.Name + " --encryption begins it"
}

// backupTime is how the time begins the name of a backup.
const backupTime = "etcd/20060102T150405Z"

// Readable checks that the keys of the key vault can read the Secrets of a backup. A backup without a time in its name is not checked.
func (r Rotation) Readable(ctx context.Context, backup string) error {
	text, _, _ := strings.Cut(backup, "-")
	at, err := time.Parse(backupTime, text)
	if err != nil {
		return nil
	}
	keys, err := r.EncryptionKeys(ctx)
	if err != nil || !at.Before(keys.Forgotten()) {
		return err
	}
	return fmt.Errorf("backup %s may have Secrets of keys that were forgotten at %s: take a newer one, or put the former keys into the "+
		"secret %s of the key vault again, from one of its earlier versions", backup, keys.Forgotten().UTC().Format(time.RFC3339),
		r.Names.Secret(Encryption))
}

// editEncryption writes other keys that encrypt Secrets into the key vault.
func (r Rotation) editEncryption(ctx context.Context, edit func(pki.EncryptionKeys) pki.EncryptionKeys) error {
	keys, err := r.EncryptionKeys(ctx)
	if err != nil {
		return err
	}
	return r.write(ctx, Encryption, edit(keys).Text())
}

func (r Rotation) nextSecretsKey(ctx context.Context, _ change.Step) error {
	return r.editEncryption(ctx, func(k pki.EncryptionKeys) pki.EncryptionKeys { return k.WithNext(r.Now()) })
}

// useSecretsKey lets members that boot encrypt with the next key. From then on a member without keys could not read all Secrets, so the
// definition that Azure keeps says first that members need them.
func (r Rotation) useSecretsKey(ctx context.Context, _ change.Step) error {
	if !r.Encrypted {
		if err := r.Record(ctx); err != nil {
			return err
		}
	}
	return r.editEncryption(ctx, pki.EncryptionKeys.Switched)
}

func (r Rotation) rewriteSecrets(ctx context.Context, _ change.Step) error {
	count, err := r.Workload.RewriteSecrets(ctx)
	if err != nil {
		return err
	}
	now := r.Now()
	if err := r.editEncryption(ctx, func(k pki.EncryptionKeys) pki.EncryptionKeys { return k.CompleteSince(now) }); err != nil {
		return err
	}
	r.Say("  %d Secrets are encrypted with the first key; former keys, which backups need, stay until kaz cluster rotate %s --encryption "+
		"--finish", count, r.Names.Cluster)
	return nil
}

// dropSecretsKeys writes all Secrets once more before it forgets keys: a restore may have brought back Secrets of former keys.
func (r Rotation) dropSecretsKeys(ctx context.Context, _ change.Step) error {
	if _, err := r.Workload.RewriteSecrets(ctx); err != nil {
		return err
	}
	now := r.Now()
	return r.editEncryption(ctx, func(k pki.EncryptionKeys) pki.EncryptionKeys { return k.Alone(now) })
}
