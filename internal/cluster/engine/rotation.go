package engine

import (
	"context"
	"fmt"
	"slices"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/health"
	"kaz/internal/cluster/inspect"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/rotate"
)

// rotation reads and replaces the secrets of a cluster.
func (e *Engine) rotation(n naming.Names) rotate.Rotation {
	return rotate.Rotation{Azure: e.Azure, Planes: e.Planes, Workload: e.Workload, Names: n, Now: e.Clock, Say: e.Sayf}
}

// Secrets reads the state of the secrets of a cluster that are rotated. It returns no secret.
func (e *Engine) Secrets(ctx context.Context, n naming.Names) health.Secrets {
	return e.rotation(n).State(ctx)
}

// deployedRecord is a change to what is deployed, with the names of the cluster.
func (e *Engine) deployedRecord(ctx context.Context, n naming.Names) (record.Change, record.State, error) {
	state, err := e.Read(ctx, n)
	if err != nil {
		return record.Change{}, state, err
	}
	if state.Definition == nil {
		return record.Change{}, state, fmt.Errorf("cluster %s is not deployed, or its deployment records no definition", n.Cluster)
	}
	return record.Change{Definition: *state.Definition}, state, nil
}

// TokenRotation is the change that replaces the join token. It replaces all tokens that kaz made, also those that an aborted
// rotation left. Tokens of other programs stay.
func (e *Engine) TokenRotation(ctx context.Context, n naming.Names) (record.Change, error) {
	if e.Workload == nil {
		return record.Change{}, errInside
	}
	r, _, err := e.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	current, tokens, err := e.rotation(naming.Of(r.Definition.Cluster)).Tokens(ctx, nil)
	if err != nil {
		return r, err
	}
	r.Tokens = []string{current}
	for _, token := range tokens {
		r.Tokens = append(r.Tokens, token.ID)
	}
	slices.Sort(r.Tokens)
	r.Tokens = slices.Compact(r.Tokens)
	return r, nil
}

// KeyRotation is the change that replaces the key of service accounts. With finish it forgets the former keys instead.
// Without atOnce, finish fails with [rotate.ErrEarly] while tokens of a former key may be in use.
func (e *Engine) KeyRotation(ctx context.Context, n naming.Names, finish, atOnce bool) (record.Change, error) {
	if e.Workload == nil {
		return record.Change{}, errInside
	}
	r, state, err := e.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	rotation := e.rotation(naming.Of(r.Definition.Cluster))
	keys, err := rotation.AccountKeys(ctx)
	if err != nil {
		return r, err
	}
	if finish && !atOnce && len(keys.Accepted()) > 1 {
		if err := rotation.Unused(ctx, keys); err != nil {
			return r, err
		}
	}
	of := change.NewKeyRotation(rotate.KeysOf(keys), state.Generations(), finish)
	r.Keys = &of
	return r, nil
}

// EncryptionRotation is the change that replaces the key that encrypts Secrets, or makes the first one. With finish it forgets the former
// keys instead.
func (e *Engine) EncryptionRotation(ctx context.Context, n naming.Names, finish bool) (record.Change, error) {
	if e.Workload == nil {
		return record.Change{}, errInside
	}
	r, state, err := e.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	if err := rotate.CheckEncryption(r.Definition, finish); err != nil {
		return r, err
	}
	rotation := e.rotation(naming.Of(r.Definition.Cluster))
	rotation.Encrypted = r.Definition.Encrypted
	keys, err := rotation.EncryptionKeys(ctx)
	if err != nil {
		return r, err
	}
	of := change.NewSecretsKeyRotation(rotate.SecretsKeysOf(keys), state.Generations(), finish)
	r.Keys, r.Definition.Encrypted = &of, true
	return r, nil
}

// AuthorityRotation is the change of one phase of the rotation of the certificate authorities. The phases must be run in
// order. client makes the change, and must be accepted after the phase.
func (e *Engine) AuthorityRotation(ctx context.Context, n naming.Names, phase change.AuthorityPhase,
	client rotate.Client) (record.Change, error) {
	if e.Workload == nil {
		return record.Change{}, errInside
	}
	r, _, err := e.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	if err := e.rotation(naming.Of(r.Definition.Cluster)).CheckPhase(ctx, r.Definition, phase, client); err != nil {
		return r, err
	}
	r.Authorities = phase
	r.Definition.Authorities++
	return r, nil
}

// observeFor reads the state of a cluster, and the state of the secrets that a change replaces.
func (e *Engine) observeFor(ctx context.Context, n naming.Names, r record.Change, etcd bool) (inspect.Observation, error) {
	in, err := e.inspector().Inspect(ctx, n, etcd)
	rotation := e.rotation(naming.Of(r.Definition.Cluster))
	if err == nil && len(r.Tokens) > 0 {
		in.Token, in.Tokens, err = rotation.Tokens(ctx, r.Tokens)
	}
	if err == nil && r.Keys != nil {
		rotation.Encrypted = in.State.Definition.Encrypted
		in.Keys, err = keysFor(ctx, rotation, *r.Keys)
	}
	if err == nil && r.Authorities != "" {
		var there rotate.Authorities
		there, err = rotation.Authorities(ctx, r.Authorities)
		in.Authorities, in.Published = there.Phase, there.Published
		for i, m := range in.Members {
			in.Members[i].OldPods = there.Early[n.With(m.ID())] > 0
		}
	}
	return in, err
}

// keysFor reads the keys of the key vault that a rotation replaces.
func keysFor(ctx context.Context, rotation rotate.Rotation, r change.KeyRotation) (change.Keys, error) {
	if r.Secrets {
		keys, err := rotation.EncryptionKeys(ctx)
		return rotate.SecretsKeysOf(keys), err
	}
	keys, err := rotation.AccountKeys(ctx)
	return rotate.KeysOf(keys), err
}
