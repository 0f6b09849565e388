package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/engine/pki"
	"kaz/internal/plan/cluster/change"
	"kaz/internal/plan/cluster/graph"
	"kaz/internal/plan/cluster/naming"
)

const (
	secretType = "Microsoft.KeyVault/vaults/secrets"
	tokenName  = "bootstrap-token"
	keysName   = "pki-sa"
	// tokenRest is how long a replaced join token is valid, for machines that have read it and not joined yet. A boot that takes longer
	// than 15 minutes has failed.
	tokenRest = time.Hour
	// tokenLife is how long pods may use a token after another key signs. Kubelets renew tokens of pods after a day at most, and programs
	// read them again within minutes.
	tokenLife = 25 * time.Hour
)

// ErrEarly is in the chain of an error about tokens of former keys of service accounts that may be in use.
var ErrEarly = errors.New("tokens that a former key of service accounts signed may be in use")

// vault is the key vault of a cluster, for changes of its secrets.
type vault struct{ *Engine }

// secret reads a secret of the cluster from its key vault.
func (e vault) secret(ctx context.Context, n naming.Names, what string) (string, error) {
	return e.Planes.Secret(ctx, n.VaultURL(), n.VaultAudience()+"/.default", n.Secret(what))
}

// writeSecret gives a secret of the cluster a new version, with a deployment as the first version. The value is a parameter of a type
// that Azure neither shows nor logs. So it takes the rights of kaz cluster deploy, and none to write secrets in the data plane.
func (e vault) writeSecret(ctx context.Context, n naming.Names, what, value string) error {
	vault := n.VaultID()
	body, err := json.Marshal(object{"properties": object{
		"mode": "Incremental",
		"template": object{
			"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
			"contentVersion": "1.0.0.0", "parameters": object{"value": object{"type": "securestring"}},
			"resources": []object{{
				"type": secretType, "apiVersion": graph.Versions()[secretType], "name": vault.Name() + "/" + n.Secret(what),
				"properties": object{"value": "[parameters('value')]"},
			}},
		},
		"parameters": object{"value": object{"value": value}},
	}})
	if err != nil {
		return err
	}
	id := deploymentID(azure.GroupID(vault.Subscription(), vault.Group()), n.SecretDeployment())
	if _, err := azure.Do(ctx, e.Azure, azure.Request{Verb: azure.Put, ID: id, Body: body, Unseen: true}); err != nil {
		return fmt.Errorf("secret %s of the key vault: %w", n.Secret(what), err)
	}
	_, err = azure.Do(ctx, e.Azure, azure.Request{Verb: azure.Delete, ID: id})
	if azure.IsNotFound(err) {
		return nil
	}
	return err
}

// deployedRecord is a change to what is deployed.
func (e changer) deployedRecord(ctx context.Context, n naming.Names) (Record, State, error) {
	state, err := e.Read(ctx, n)
	if err != nil {
		return Record{}, state, err
	}
	if state.Definition == nil {
		return Record{}, state, fmt.Errorf("cluster %s is not deployed, or its deployment records no definition", n.Cluster)
	}
	return Record{Definition: *state.Definition}, state, nil
}

// TokenRotation is the change that replaces the join token. It replaces all tokens that kaz made, also those that are left of a rotation
// that was aborted. Those of others stay.
func (e *Engine) TokenRotation(ctx context.Context, n naming.Names) (Record, error) {
	if e.Workload == nil {
		return Record{}, errInside
	}
	r, _, err := changer{e}.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	var in inside
	if err := (observer{e}).observeTokens(ctx, naming.Of(r.Definition.Cluster), r, &in); err != nil {
		return r, err
	}
	r.Tokens = []string{in.Token}
	for _, token := range in.Tokens {
		r.Tokens = append(r.Tokens, token.ID)
	}
	slices.Sort(r.Tokens)
	r.Tokens = slices.Compact(r.Tokens)
	return r, nil
}

// observeFor reads what is there of a cluster, and of its secrets what a change is about.
func (e observer) observeFor(ctx context.Context, n naming.Names, r Record, etcd bool) (inside, error) {
	in, err := e.observe(ctx, n, etcd)
	if err == nil && len(r.Tokens) > 0 {
		err = e.observeTokens(ctx, naming.Of(r.Definition.Cluster), r, &in)
	}
	if err == nil && r.Keys != nil {
		var keys pki.AccountKeys
		keys, err = vault(e).accountKeys(ctx, naming.Of(r.Definition.Cluster))
		in.Keys = keysOf(keys)
	}
	if err == nil && r.Authorities != "" {
		err = e.observeAuthorities(ctx, naming.Of(r.Definition.Cluster), r.Authorities, &in)
	}
	return in, err
}

// observeTokens adds the join tokens to what is there: those that kaz made, that of the key vault, and those that a change replaces. The
// first one of a cluster is made by kubeadm.
func (e observer) observeTokens(ctx context.Context, n naming.Names, r Record, in *inside) error {
	text, err := vault(e).secret(ctx, n, tokenName)
	if err != nil {
		return err
	}
	join, err := pki.ParseJoin(text)
	if err != nil {
		return err
	}
	tokens, err := e.Workload.Tokens(ctx)
	if err != nil {
		return err
	}
	in.Token, in.Tokens = join.ID(), nil
	soon := e.now().Add(tokenRest)
	for _, t := range tokens {
		if t.Ours || t.ID == join.ID() || slices.Contains(r.Tokens, t.ID) {
			in.Tokens = append(in.Tokens, change.Token{ID: t.ID, Ends: !t.Ends.IsZero() && !t.Ends.After(soon)})
		}
	}
	return nil
}

func (w worker) makeToken(ctx context.Context, _ change.Step) error {
	return w.Workload.AddToken(ctx, pki.NewToken())
}

// publishToken writes a token that the API server takes into the key vault, from which machines that boot read it.
func (w worker) publishToken(ctx context.Context, s change.Step) error {
	text, err := vault{w.Engine}.secret(ctx, w.names, tokenName)
	if err != nil {
		return err
	}
	join, err := pki.ParseJoin(text)
	if err != nil {
		return err
	}
	if join.Token, err = w.Workload.Token(ctx, s.Token); err != nil {
		return err
	}
	if text, err = join.Text(); err != nil {
		return err
	}
	return vault{w.Engine}.writeSecret(ctx, w.names, tokenName, text)
}

func (w worker) endToken(ctx context.Context, s change.Step) error {
	return w.Workload.EndToken(ctx, s.Token, w.now().Add(tokenRest))
}

// KeyRotation is the change that replaces the key of service accounts, or with finish the one that forgets the former keys. Without
// atOnce the latter is refused while tokens of a former key may be in use.
func (e *Engine) KeyRotation(ctx context.Context, n naming.Names, finish, atOnce bool) (Record, error) {
	if e.Workload == nil {
		return Record{}, errInside
	}
	r, state, err := changer{e}.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	keys, err := vault{e}.accountKeys(ctx, naming.Of(r.Definition.Cluster))
	if err != nil {
		return r, err
	}
	if finish && !atOnce && len(keys.Accepted()) > 1 {
		if err := (vault{e}).unused(ctx, keys); err != nil {
			return r, err
		}
	}
	rotation := change.NewKeyRotation(keysOf(keys), state.Generations(), finish)
	r.Keys = &rotation
	return r, nil
}

// unused checks that no tokens of former keys are in use, as far as that can be known.
func (e vault) unused(ctx context.Context, keys pki.AccountKeys) error {
	if end := keys.Complete().Add(tokenLife); !keys.Complete().IsZero() && e.now().Before(end) {
		return fmt.Errorf("%w until %s, by pods: wait, or take --at-once, with which their requests fail until their tokens are renewed",
			ErrEarly, end.UTC().Format(time.RFC3339))
	}
	old, err := e.Workload.TokensOfOtherKeys(ctx, keys.Signs())
	if err != nil {
		return err
	}
	if len(old) > 0 {
		return fmt.Errorf("%w: these Secrets have some, which never end: delete them and make them again, or take --at-once: %s", ErrEarly,
			strings.Join(old, ", "))
	}
	return nil
}

func (e vault) accountKeys(ctx context.Context, n naming.Names) (pki.AccountKeys, error) {
	text, err := e.secret(ctx, n, keysName)
	if err != nil {
		return pki.AccountKeys{}, err
	}
	return pki.ParseAccountKeys(text)
}

// keysOf are keys as far as a plan needs them, none for the zero value.
func keysOf(k pki.AccountKeys) change.Keys {
	if len(k.Accepted()) == 0 {
		return change.Keys{}
	}
	return change.Keys{Signs: k.Signs(), Next: k.Next(), Accepted: k.Accepted(), Complete: !k.Complete().IsZero()}
}

// editKeys writes other keys of service accounts into the key vault.
func (w worker) editKeys(ctx context.Context, edit func(pki.AccountKeys) (pki.AccountKeys, error)) error {
	keys, err := vault{w.Engine}.accountKeys(ctx, w.names)
	if err == nil {
		keys, err = edit(keys)
	}
	if err != nil {
		return err
	}
	return vault{w.Engine}.writeSecret(ctx, w.names, keysName, keys.Text())
}

func (w worker) nextKey(ctx context.Context, _ change.Step) error {
	return w.editKeys(ctx, pki.AccountKeys.WithNext)
}

func (w worker) signKey(ctx context.Context, _ change.Step) error {
	return w.editKeys(ctx, func(k pki.AccountKeys) (pki.AccountKeys, error) { return k.Switched(), nil })
}

func (w worker) noteKey(ctx context.Context, _ change.Step) error {
	now := w.now()
	err := w.editKeys(ctx, func(k pki.AccountKeys) (pki.AccountKeys, error) { return k.CompleteSince(now), nil })
	if err == nil {
		w.say("  tokens of the former key are accepted until kaz cluster rotate %s --service-account --finish, which can begin at %s",
			w.names.Cluster, now.Add(tokenLife).UTC().Format(time.RFC3339))
	}
	return err
}

func (w worker) dropKeys(ctx context.Context, _ change.Step) error {
	return w.editKeys(ctx, func(k pki.AccountKeys) (pki.AccountKeys, error) { return k.Alone(), nil })
}
