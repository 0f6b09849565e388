package rotate

import (
	"context"
	"slices"

	"kaz/internal/cluster/health"
	"kaz/internal/cluster/workload"
)

// State reads the state of the secrets that are rotated. It returns no secret.
func (r Rotation) State(ctx context.Context) health.Secrets {
	s, err := r.state(ctx)
	if err != nil {
		return health.Secrets{Fault: err.Error()}
	}
	return s
}

func (r Rotation) state(ctx context.Context) (s health.Secrets, err error) {
	join, err := r.join(ctx)
	if err != nil {
		return s, err
	}
	tokens, err := r.Workload.Tokens(ctx)
	if err != nil {
		return s, err
	}
	keys, err := r.AccountKeys(ctx)
	if err != nil {
		return s, err
	}
	s = health.Secrets{Token: join.ID(), Former: len(keys.Accepted()) - 1, Complete: keys.Complete()}
	encryption, err := r.EncryptionKeys(ctx)
	if err != nil {
		return s, err
	}
	s.EncryptionKey, s.Encrypted = encryption.Encrypts(), encryption.Complete()
	for _, what := range []string{Authority, EtcdCA, FrontProxy} {
		authority, err := r.Authority(ctx, what)
		if err != nil {
			return s, err
		}
		if ends := authority.Certificates()[0].NotAfter; s.AuthorityEnds.IsZero() || ends.Before(s.AuthorityEnds) {
			s.AuthorityEnds = ends
		}
	}
	if i := slices.IndexFunc(tokens, func(t workload.Token) bool { return t.ID == s.Token }); i >= 0 {
		s.Taken, s.Ends = true, tokens[i].Ends
	}
	return s, nil
}
