package service

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/reconcile"
)

// manyLeave is how many Services have to leave at once for some of them to go last. Azure
// lets so many deletions through at once, and no more than ten a second after them.
const manyLeave = 200

// commit brings about the requests of one batch.
//
// A load balancer goes with its last Service. That takes more than ten seconds, in which
// no public IP can go, while one that stays lets go of all others in three: so where many
// leave, one Service of each load balancer that would go is left for the next commit.
func (b *balancers) commit(ctx context.Context, _ string, batch []request) ([]answer, error) {
	last := b.last(ctx, batch)
	if len(last) == 0 {
		return b.commitAll(ctx, batch)
	}
	var first []request
	var at []int // where they are in the batch
	for i, r := range batch {
		if !last[i] {
			first, at = append(first, r), append(at, i)
		}
	}
	got, err := b.commitAll(ctx, first)
	if refusal, ok := errors.AsType[*reconcile.Refusal](err); ok {
		culprits := make(map[int]error, len(refusal.Culprits))
		for i, cause := range refusal.Culprits {
			culprits[at[i]] = cause
		}
		return nil, &reconcile.Refusal{Culprits: culprits}
	}
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(batch))
	for i, a := range got {
		answers[at[i]] = a
	}
	return answers, &reconcile.Postponed{Requests: last}
}

// last are those of many that leave which go last: one of each load balancer that goes,
// by their place in the batch. What cannot be read or planned is the commit's to report.
func (b *balancers) last(ctx context.Context, batch []request) map[int]bool {
	leaving := 0
	for _, r := range batch {
		if r.service.Gone && !r.sweeps {
			leaving++
		}
	}
	if leaving < manyLeave {
		return nil
	}
	services, w := asked(batch)
	planned, err := b.target(ctx, services)
	if err != nil {
		return nil
	}
	b.leaveOut(planned)
	if b.look(ctx, &shared{target: planned, confirmed: map[types.UID]bool{}}, w) != nil {
		return nil
	}
	have, err := reconcile.Gather(ctx, b.azure, planned.Needs)
	if err != nil {
		return nil
	}
	graph, err := planned.Desired(have)
	if err != nil {
		return nil
	}
	all := map[int]bool{}
	for _, n := range graph.Nodes() {
		doc, there := have.Get(n.ID)
		if n.Want() != nil || !there || !sameType(n.ID, network.LoadBalancers) {
			continue
		}
		if i := lastIn(doc, batch); i >= 0 {
			all[i] = true
		}
	}
	return all
}

// lastIn is the last request of a batch that takes a Service away from a load balancer,
// -1 for none.
func lastIn(doc azure.Document, batch []request) int {
	lb, err := azure.Decode[network.LoadBalancer](doc)
	if err != nil {
		return -1
	}
	owners := map[string]bool{}
	for _, r := range lb.Properties.LoadBalancingRules {
		owner, _, _ := strings.Cut(strings.ToLower(r.Name), "-")
		owners[owner] = true
	}
	for i, r := range slices.Backward(batch) {
		if r.service.Gone && !r.sweeps && owners[framework.DefaultLoadBalancerName(r.service.Service)] {
			return i
		}
	}
	return -1
}
