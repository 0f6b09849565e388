package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// unconfirmed is the error of a decision that would make something for Services of
// which there is nothing in Azure, on no better grounds than news that may be old: by
// now they can be gone, and what was there taken away by another leader.
type unconfirmed struct{ services map[types.UID]bool }

func (u *unconfirmed) Error() string {
	return fmt.Sprintf("%d Services are not known to be there", len(u.services))
}

// doubt is what the decision has to ask the API server for before it is made.
func (d *shared) doubt(have plan.Snapshot) error {
	if !slices.ContainsFunc(d.Services, func(s loadbalancer.Service) bool { return !s.Gone && !d.confirmed[s.UID] }) {
		return nil
	}
	in := d.Input
	in.Have = have
	absent, err := loadbalancer.Absent(in)
	if err != nil {
		return err
	}
	maps.DeleteFunc(absent, func(uid types.UID, _ bool) bool { return d.confirmed[uid] })
	if len(absent) == 0 {
		return nil
	}
	return &unconfirmed{absent}
}

// confirmNew asks for the Services of a commit of which nothing was in Azure when this
// process looked last. It is done ahead, as a decision that finds it out needs a second
// look at Azure.
func (b *balancers) confirmNew(ctx context.Context, t *shared) error {
	fresh := map[types.UID]bool{}
	for _, s := range t.Services {
		if !s.Gone && !b.present[s.UID] {
			fresh[s.UID] = true
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return b.confirm(ctx, t, fresh)
}

// notePresent notes of which Services of a commit there is something in Azure now.
func (b *balancers) notePresent(t *shared, have plan.Snapshot) error {
	in := t.Input
	in.Have = have
	absent, err := loadbalancer.Absent(in)
	if err != nil {
		return err
	}
	for _, s := range t.Services {
		delete(b.present, s.UID)
		if !s.Gone && !absent[s.UID] {
			b.present[s.UID] = true
		}
	}
	return nil
}

// unclaimed is the error of a decision that would take away what no Service has of which
// this process has heard: another leader may have heard of more.
type unclaimed struct{ state string }

func (u *unclaimed) Error() string { return "not all Services are known to be known" }

// suspect is what the decision has to ask the API server for before it takes away what is
// nobody's. The answer is as good as long as Azure is as it was when it was asked for: what
// was made for a Service was made after it.
func (d *shared) suspect(have plan.Snapshot) error {
	if !slices.ContainsFunc(d.problems, isUnclaimed) {
		return nil
	}
	if state := stateOf(have); state != d.known {
		return &unclaimed{state}
	}
	return nil
}

func isUnclaimed(p plan.Problem) bool { return p.Reason == loadbalancer.ReasonUnclaimed }

// stateOf tells states of what Services share from each other.
func stateOf(have plan.Snapshot) string {
	var tags []string
	docs := documents(have)
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		if !sameType(docs[key].id, network.PublicIPAddresses) {
			tags = append(tags, key, docs[key].doc.Etag())
		}
	}
	return strings.Join(tags, " ")
}

// acquaint makes all Services known that the API server has. Where Azure changes all the
// time meanwhile, what is nobody's stays this time.
func (b *balancers) acquaint(ctx context.Context, t *shared, state string) error {
	if t.asked++; t.asked > looksAtMost {
		t.Complete = false
		return nil
	}
	all, err := b.kube.all(ctx)
	if err != nil {
		return err
	}
	among := make(map[types.UID]bool, len(t.Services))
	for _, s := range t.Services {
		among[s.UID] = true
	}
	t.Complete = !slices.ContainsFunc(all, b.classes.serveNot)
	t.Others = slices.DeleteFunc(all, func(s *corev1.Service) bool {
		return among[s.UID] || !staysAround(s) || b.classes.next(s, false) == ignore
	})
	t.known = state
	return nil
}

// bringAbout converges. Services that are about to be made and were not asked for yet
// are asked for first, each once a commit; those that are gone are served as such.
func (b *balancers) bringAbout(ctx context.Context, t *shared) (reconcile.Outcome, error) {
	var all []reconcile.Report
	for {
		out, err := reconcile.Converge(ctx, b.azure, t)
		out.Reports = append(all, out.Reports...)
		doubted, doubts := errors.AsType[*unconfirmed](err)
		untold, untolds := errors.AsType[*unnoted](err)
		stray, strays := errors.AsType[*unclaimed](err)
		switch {
		case doubts:
			err = b.confirm(ctx, t, doubted.services)
		case untolds:
			err = b.note(ctx, t, untold.groups)
		case strays:
			err = b.acquaint(ctx, t, stray.state)
		default:
			return out, err
		}
		if err != nil {
			return out, err
		}
		all = out.Reports
	}
}

// confirm asks the API server for Services.
func (b *balancers) confirm(ctx context.Context, t *shared, doubted map[types.UID]bool) error {
	var asked []*corev1.Service
	for _, s := range t.Services {
		if doubted[s.UID] {
			asked = append(asked, s.Service)
		}
	}
	live, err := b.kube.live(ctx, asked)
	if err != nil {
		return err
	}
	for i, s := range t.Services {
		if doubted[s.UID] {
			now := live[s.UID]
			t.confirmed[s.UID] = true
			t.Services[i].Gone = now == nil || !b.classes.wants(now)
		}
	}
	return nil
}

// live are those of some Services that the API server has, by UID. One is asked for by
// name; for several all are listed, as one request costs less than many.
func (k kube) live(ctx context.Context, asked []*corev1.Service) (map[types.UID]*corev1.Service, error) {
	var all []*corev1.Service
	var err error
	if len(asked) == 1 {
		all, err = k.list(ctx, asked[0].Namespace, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, asked[0].Name).String()})
	} else {
		all, err = k.all(ctx)
	}
	if err != nil {
		return nil, err
	}
	live := make(map[types.UID]*corev1.Service, len(all))
	for _, s := range all {
		live[s.UID] = s
	}
	return live, nil
}

// all are the Services that the API server has.
func (k kube) all(ctx context.Context) ([]*corev1.Service, error) {
	return k.list(ctx, metav1.NamespaceAll, metav1.ListOptions{})
}

// list lists Services: the roles of running clusters allow that, and not to get one.
func (k kube) list(ctx context.Context, namespace string, o metav1.ListOptions) ([]*corev1.Service, error) {
	if err := k.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer k.turns.Release(1)
	list, err := k.client.CoreV1().Services(namespace).List(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("ask the API server which Services there are: %w", err)
	}
	return pointers(list.Items), nil
}
