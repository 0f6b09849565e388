package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// A public IP may be made in a resource group that only its Service names. If the Service
// asks for another one before a load balancer has the address, and kaz is stopped in
// between, nobody would look there. So the Service tells of such a group, in a condition
// of kaz's own, from before the address is made until the load balancer has it. What
// is new gets the note with its finalizer and loses it with its status, so neither is a
// write of its own.
//
// Of a private link service in such a group its Service tells as long as it is there: no load
// balancer ever does. One that another implementation made, or that is handed over, is told of
// like one of kaz's own.

// unnoted is the error of a decision about what is in resource groups of which Services do not
// tell.
type unnoted struct{ groups map[types.UID][]key.Note }

func (u *unnoted) Error() string {
	return fmt.Sprintf("%d Services do not tell where something of theirs is", len(u.groups))
}

// remember is what the decision needs to be told by Services before it is made.
func (d *shared) remember(have plan.Snapshot, graph plan.Graph) error {
	in := d.Input
	in.Have = have
	groups := loadbalancer.Unnoted(in, graph)
	maps.DeleteFunc(groups, func(uid types.UID, notes []key.Note) bool {
		return !slices.ContainsFunc(notes, func(n key.Note) bool { return !slices.ContainsFunc(d.noted[uid], n.Same) })
	})
	if len(groups) == 0 {
		return nil
	}
	return &unnoted{groups}
}

// note has Services tell of resource groups. One that is not there any more is served as
// gone, or has no say.
func (b *balancers) note(ctx context.Context, t *shared, groups map[types.UID][]key.Note) error {
	var all []*corev1.Service
	for _, s := range t.Services {
		all = append(all, s.Service)
	}
	all = slices.DeleteFunc(slices.Concat(all, t.Others), func(s *corev1.Service) bool { return len(groups[s.UID]) == 0 })
	isGone := make([]bool, len(all))
	var writes errgroup.Group
	for i, s := range all {
		t.noted[s.UID] = append(t.noted[s.UID], groups[s.UID]...)
		writes.Go(func() error {
			_, err := b.kube.hold(ctx, s, groups[s.UID])
			if isGone[i] = errors.Is(err, errGone); isGone[i] {
				return nil
			}
			return err
		})
	}
	err := writes.Wait()
	gone := map[types.UID]bool{}
	for i, s := range all {
		gone[s.UID] = isGone[i]
	}
	for i, s := range t.Services {
		t.Services[i].Gone = s.Gone || gone[s.UID]
	}
	t.Others = slices.DeleteFunc(t.Others, func(s *corev1.Service) bool { return gone[s.UID] })
	return err
}
