package service

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// revive writes again what Azure began and did not finish and what a resource that could
// not be written refers to: Azure takes none of it until somebody does. It reports whether
// there was any.
func revive(ctx context.Context, door reconcile.Azure, out reconcile.Outcome) (bool, error) {
	if len(out.Reports) == 0 {
		return false, nil
	}
	have, refs := out.Have, []azure.ID(nil)
	for _, res := range out.Reports[len(out.Reports)-1].Results {
		if res.Err == nil || errors.Is(res.Err, reconcile.ErrNotAttempted) {
			continue
		}
		refs = append(refs, references(res.Step.ID, res.Step.Body)...)
		subnets, err := blamedSubnets(ctx, door, res.Err)
		if err != nil {
			return false, err
		}
		have = have.With(subnets...)
		for _, d := range subnets {
			refs = append(refs, d.ID())
		}
	}
	ids := unfinished(have, refs, nil)
	return len(ids) > 0, writeAgain(ctx, door, have, ids)
}

// noteSpoilt notes which of the documents that Services share a commit could not write, and
// which it could. What is one Service's alone is its own to try again.
func (b *balancers) noteSpoilt(out reconcile.Outcome) {
	for _, report := range out.Reports {
		for _, res := range report.Results {
			switch {
			case errors.Is(res.Err, reconcile.ErrNotAttempted), sameType(res.Step.ID, network.PublicIPAddresses):
			case res.Err != nil:
				b.spoilt[res.Step.ID] = true
			default:
				delete(b.spoilt, res.Step.ID)
			}
		}
	}
}

// mend writes again what is as it shall be but for a write of this process that Azure gave
// up on: it would stay marked as failed, and who uses it beside kaz be refused. Nobody waits
// for that: what cannot be mended is tried again with the next commit.
func (b *balancers) mend(ctx context.Context) {
	if len(b.spoilt) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(b.spoilt))
	have, err := reconcile.Take(ctx, b.azure.Fresh(), reconcile.Needs{Resources: ids})
	if err == nil {
		err = writeAgain(ctx, b.azure, have, unfinished(have, ids, nil))
	}
	if err != nil {
		slog.WarnContext(ctx, "what azure gave up on is not written again", "error", err)
		return
	}
	clear(b.spoilt)
}

// writeAgain writes resources as they are.
func writeAgain(ctx context.Context, door reconcile.Azure, have plan.Snapshot, ids []azure.ID) error {
	var errs []error
	for _, id := range ids {
		doc, _ := have.Get(id)
		_, err := door.Put(ctx, azure.Write{ID: id, Body: doc, IfMatch: doc.Etag()})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// blamedSubnets are those of the network that Azure names in a refusal: a network is not well
// while one of its subnets is not, and kaz writes subnets, not networks. Where they may not
// be read they are somebody else's to mend.
func blamedSubnets(ctx context.Context, door reconcile.Azure, refusal error) ([]azure.Document, error) {
	e, ok := errors.AsType[*azure.Error](refusal)
	if !ok || !sameType(azure.ID(e.Target), network.VirtualNetworks) {
		return nil, nil
	}
	docs, err := door.Fresh().List(ctx, azure.Query{Scope: azure.ID(e.Target), Type: network.Subnets})
	if azure.KindOf(err) == azure.Denied {
		return nil, nil
	}
	return docs, err
}

// standsBehind tells, by its type, what a resource refers to that Azure wants well before
// it takes the resource.
var standsBehind = map[string]func(azure.Document) []azure.ID{
	network.LoadBalancers:       referencesOf[network.LoadBalancer],
	network.PrivateLinkServices: referencesOf[network.PrivateLinkService],
	network.Subnets: referencesOf[struct {
		NetworkSecurityGroup *azure.Reference `json:"networkSecurityGroup,omitempty"`
	}],
}

// references are those to other resources.
func references(id azure.ID, d azure.Document) []azure.ID {
	for fullType, of := range standsBehind {
		if sameType(id, fullType) {
			return slices.DeleteFunc(of(d), func(to azure.ID) bool { return to.Under(id) })
		}
	}
	return nil
}

func referencesOf[P any](d azure.Document) []azure.ID {
	r, err := azure.Decode[P](d)
	if err != nil {
		return nil // the plan that made it would have failed
	}
	return azure.References(r.Properties)
}

// revivable are the types of which a failed resource is written again as it is.
var revivable = []string{network.SecurityGroups, network.Subnets, network.PublicIPAddresses, network.LoadBalancers}

// toRevive is the resource, or the one of which it is a part, that can be written again as it
// is, "" for none.
func toRevive(id azure.ID) azure.ID {
	for id != "" && !slices.ContainsFunc(revivable, func(fullType string) bool { return sameType(id, fullType) }) {
		id = id.Parent()
	}
	return id
}

// unfinished adds to found those of the resources, and of what stands behind them, that
// Azure gave up on. What one needs comes before it.
func unfinished(have plan.Snapshot, ids, found []azure.ID) []azure.ID {
	type state struct {
		ProvisioningState string `json:"provisioningState,omitempty"`
	}
	for _, id := range ids {
		id = toRevive(id)
		r, ok, err := plan.View[state](have, id)
		if err != nil || !ok {
			continue
		}
		doc, _ := have.Get(id)
		found = unfinished(have, references(id, doc), found)
		if strings.EqualFold(r.Properties.ProvisioningState, "Failed") && !slices.ContainsFunc(found, id.Equal) {
			found = append(found, id)
		}
	}
	return found
}
