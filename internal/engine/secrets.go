package engine

import (
	"context"
	"slices"

	"kaz/internal/engine/pki"
	"kaz/internal/engine/workload"
	"kaz/internal/plan/cluster/health"
	"kaz/internal/plan/cluster/naming"
)

// Secrets reads how the secrets of a cluster are that are rotated. It returns none of them.
func (e *Engine) Secrets(ctx context.Context, n naming.Names) health.Secrets {
	text, err := vault{e}.secret(ctx, n, tokenName)
	if err != nil {
		return health.Secrets{Fault: err.Error()}
	}
	join, err := pki.ParseJoin(text)
	if err != nil {
		return health.Secrets{Fault: err.Error()}
	}
	tokens, err := e.Workload.Tokens(ctx)
	if err != nil {
		return health.Secrets{Fault: err.Error()}
	}
	keys, err := vault{e}.accountKeys(ctx, n)
	if err != nil {
		return health.Secrets{Fault: err.Error()}
	}
	s := health.Secrets{Token: join.ID(), Former: len(keys.Accepted()) - 1, Complete: keys.Complete()}
	for _, what := range []string{authorityName, etcdName, frontProxyName} {
		authority, err := vault{e}.authority(ctx, n, what)
		if err != nil {
			return health.Secrets{Fault: err.Error()}
		}
		if ends := authority.Certificates()[0].NotAfter; s.AuthorityEnds.IsZero() || ends.Before(s.AuthorityEnds) {
			s.AuthorityEnds = ends
		}
	}
	if i := slices.IndexFunc(tokens, func(t workload.Token) bool { return t.ID == s.Token }); i >= 0 {
		s.Taken, s.Ends = true, tokens[i].Ends
	}
	return s
}
