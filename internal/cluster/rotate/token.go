package rotate

import (
	"context"
	"slices"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/pki"
)

// tokenRest is how long a replaced join token is valid, for machines that have read it and not joined yet. A boot that takes longer than
// 15 minutes has failed.
const tokenRest = time.Hour

// Tokens returns the id of the join token in the key vault, and the tokens that a change may replace. These are the tokens
// that kaz made, the token of the key vault, and those in replaced. kubeadm makes the first token of a cluster.
func (r Rotation) Tokens(ctx context.Context, replaced []string) (current string, all []change.Token, err error) {
	join, err := r.join(ctx)
	if err != nil {
		return "", nil, err
	}
	tokens, err := r.Workload.Tokens(ctx)
	if err != nil {
		return "", nil, err
	}
	soon := r.Now().Add(tokenRest)
	for _, t := range tokens {
		if t.Ours || t.ID == join.ID() || slices.Contains(replaced, t.ID) {
			all = append(all, change.Token{ID: t.ID, Ends: !t.Ends.IsZero() && !t.Ends.After(soon)})
		}
	}
	return join.ID(), all, nil
}

func (r Rotation) makeToken(ctx context.Context, _ change.Step) error {
	return r.Workload.AddToken(ctx, pki.NewToken())
}

// publishToken writes a token that the API server takes into the key vault, from which machines that boot read it.
func (r Rotation) publishToken(ctx context.Context, s change.Step) error {
	join, err := r.join(ctx)
	if err != nil {
		return err
	}
	if join.Token, err = r.Workload.Token(ctx, s.Token); err != nil {
		return err
	}
	return r.writeJoin(ctx, join)
}

func (r Rotation) endToken(ctx context.Context, s change.Step) error {
	return r.Workload.EndToken(ctx, s.Token, r.Now().Add(tokenRest))
}
