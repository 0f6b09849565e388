package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// A public IP may be made in a resource group that only its Service names. If the Service
// asks for another one before a load balancer has the address, and kaz is stopped in
// between, nobody would look there. So the Service tells of such a group, in an annotation
// of kaz's own, from before the address is made until the load balancer has it. What
// is new gets the note with its finalizer and loses it with its status, so neither is a
// write of its own.

// unnoted is the error of a decision that would make public IPs in resource groups of
// which their Services do not tell.
type unnoted struct{ groups map[types.UID][]string }

func (u *unnoted) Error() string {
	return fmt.Sprintf("%d Services do not tell where their public IPs are made", len(u.groups))
}

// remember is what the decision needs to be told by Services before it is made.
func (d *shared) remember(have plan.Snapshot, graph plan.Graph) error {
	in := d.Input
	in.Have = have
	groups := loadbalancer.Unnoted(in, graph)
	maps.DeleteFunc(groups, func(uid types.UID, names []string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(d.noted[uid], n) })
	})
	if len(groups) == 0 {
		return nil
	}
	return &unnoted{groups}
}

// note has Services tell of resource groups. One that is not there any more is served as
// gone.
func (b *balancers) note(ctx context.Context, t *shared, groups map[types.UID][]string) error {
	gone := make([]bool, len(t.Services))
	var writes errgroup.Group
	for i, s := range t.Services {
		if len(groups[s.UID]) == 0 {
			continue
		}
		t.noted[s.UID] = append(t.noted[s.UID], groups[s.UID]...)
		writes.Go(func() error {
			_, err := b.kube.hold(ctx, s.Service, groups[s.UID])
			if gone[i] = errors.Is(err, errGone); gone[i] {
				return nil
			}
			return err
		})
	}
	err := writes.Wait()
	for i := range gone {
		t.Services[i].Gone = t.Services[i].Gone || gone[i]
	}
	return err
}
