package rotate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/pki"
)

// tokenLife is how long pods may use a token after another key signs. Kubelets renew tokens of pods after a day at most, and programs
// read them again within minutes.
const tokenLife = 25 * time.Hour

// ErrEarly is in the chain of an error about tokens of former keys of service accounts that may be in use.
var ErrEarly = errors.New("tokens that a former key of service accounts signed may be in use")

// AccountKeys reads the keys of service accounts.
func (r Rotation) AccountKeys(ctx context.Context) (pki.AccountKeys, error) {
	text, err := r.Secret(ctx, Keys)
	if err != nil {
		return pki.AccountKeys{}, err
	}
	return pki.ParseAccountKeys(text)
}

// KeysOf returns what a plan needs of the keys, without the keys themselves.
func KeysOf(k pki.AccountKeys) change.Keys {
	if len(k.Accepted()) == 0 {
		return change.Keys{}
	}
	return change.Keys{Signs: k.Signs(), Next: k.Next(), Accepted: k.Accepted(), Complete: !k.Complete().IsZero()}
}

// Unused checks that no tokens of former keys are in use, as far as that can be known. Otherwise its error is [ErrEarly].
func (r Rotation) Unused(ctx context.Context, keys pki.AccountKeys) error {
	if end := keys.Complete().Add(tokenLife); !keys.Complete().IsZero() && r.Now().Before(end) {
		return fmt.Errorf("%w until %s, by pods: wait, or take --at-once, with which their requests fail until their tokens are renewed",
			ErrEarly, end.UTC().Format(time.RFC3339))
	}
	old, err := r.Workload.TokensOfOtherKeys(ctx, keys.Signs())
	if err != nil {
		return err
	}
	if len(old) > 0 {
		return fmt.Errorf("%w: these Secrets have some, which never end: delete them and make them again, or take --at-once: %s", ErrEarly,
			strings.Join(old, ", "))
	}
	return nil
}

// editKeys writes other keys of service accounts into the key vault.
func (r Rotation) editKeys(ctx context.Context, edit func(pki.AccountKeys) (pki.AccountKeys, error)) error {
	keys, err := r.AccountKeys(ctx)
	if err == nil {
		keys, err = edit(keys)
	}
	if err != nil {
		return err
	}
	return r.write(ctx, Keys, keys.Text())
}

func (r Rotation) nextKey(ctx context.Context, _ change.Step) error {
	return r.editKeys(ctx, pki.AccountKeys.WithNext)
}

func (r Rotation) signKey(ctx context.Context, _ change.Step) error {
	return r.editKeys(ctx, func(k pki.AccountKeys) (pki.AccountKeys, error) { return k.Switched(), nil })
}

func (r Rotation) noteKey(ctx context.Context, _ change.Step) error {
	now := r.Now()
	err := r.editKeys(ctx, func(k pki.AccountKeys) (pki.AccountKeys, error) { return k.CompleteSince(now), nil })
	if err == nil {
		r.Say("  tokens of the former key are accepted until kaz cluster rotate %s --service-account --finish, which can begin at %s",
			r.Names.Cluster, now.Add(tokenLife).UTC().Format(time.RFC3339))
	}
	return err
}

func (r Rotation) dropKeys(ctx context.Context, _ change.Step) error {
	return r.editKeys(ctx, func(k pki.AccountKeys) (pki.AccountKeys, error) { return k.Alone(), nil })
}
