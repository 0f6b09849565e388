// Package lease is the lock between the controllers of the managed service and the
// cloud-controller-manager. Each holds a Lease while it writes to load balancers and their members.
// Layer L3.
//
// The names, durations and the annotation are those of the managed service.
package lease

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"kaz/internal/azure"
)

const (
	// Name and Namespace are those of the Lease.
	Name, Namespace = "aks-managed-resource-locker", metav1.NamespaceSystem
	// Holder is this program's holder identity.
	Holder = "cloud-controller-manager"
	// PreviousHolder is the annotation with the last holder.
	PreviousHolder = "aks-managed-resource-locker-previous-holder"

	duration = 15 * time.Minute
	attempts = 5 // of a write, because other controllers write the Lease too
	atEnd    = 10 * time.Second
)

// Lock is held during writes that must not overlap with those of other controllers.
type Lock struct {
	leases coordination.LeaseInterface
	turn   chan int // number of writes in flight; received to change it
}

// New returns the lock of a cluster.
func New(client coordination.LeasesGetter) *Lock {
	l := &Lock{leases: client.Leases(Namespace), turn: make(chan int, 1)}
	l.turn <- 0
	return l
}

// enter takes the lock, or joins the writes of this process that hold it.
func (l *Lock) enter(ctx context.Context) error {
	var writes int // of this process that hold the lock
	select {
	case <-ctx.Done():
		return &azure.Error{Kind: azure.Canceled, Op: "take the lease " + Name, Cause: ctx.Err()}
	case writes = <-l.turn:
	}
	var err error
	if writes == 0 {
		err = l.take(ctx)
	}
	if err == nil {
		writes++
	}
	l.turn <- writes
	return err
}

// leave releases the lock after the last write of this process.
func (l *Lock) leave(ctx context.Context) {
	writes := <-l.turn
	if writes == 1 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEnd)
		defer cancel()
		if err := l.give(ctx); err != nil {
			slog.WarnContext(ctx, "cannot release the lease: other controllers wait until it expires", "lease", Name, "error", err)
		}
	}
	l.turn <- writes - 1
}

// take makes this program the holder of the Lease. If another controller held it since, cached
// documents may be stale, and take returns an error of kind Changed.
func (l *Lock) take(ctx context.Context) error {
	changed := false
	err := l.write(ctx, true, func(lease *coordinationv1.Lease) (bool, error) {
		if holder := holderOf(lease); holder != "" && holder != Holder && !over(lease) {
			return false, &azure.Error{
				Kind: azure.Busy, Op: "take the lease " + Name,
				Message: fmt.Sprintf("lease has not expired yet: %s holds it until %s", holder, end(lease).Format(time.RFC3339)),
			}
		}
		last, noted := lease.Annotations[PreviousHolder]
		changed = noted && last != Holder
		now := metav1.NowMicro()
		if holderOf(lease) != Holder {
			lease.Spec.AcquireTime = &now
			lease.Spec.LeaseTransitions = new(transitions(lease) + 1)
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new(Holder), &now
		lease.Spec.LeaseDurationSeconds = new(int32(duration / time.Second))
		return true, nil
	})
	if err != nil || !changed {
		return err
	}
	if err := l.give(ctx); err != nil {
		return err
	}
	return &azure.Error{Kind: azure.Changed, Op: "take the lease " + Name,
		Message: "another controller held it: cached documents may be stale"}
}

// give removes this program from the Lease if it is the holder.
func (l *Lock) give(ctx context.Context) error {
	return l.write(ctx, false, func(lease *coordinationv1.Lease) (bool, error) {
		if holderOf(lease) != Holder || over(lease) {
			return false, nil
		}
		lease.Spec.HolderIdentity = new("")
		if lease.Annotations == nil {
			lease.Annotations = map[string]string{}
		}
		lease.Annotations[PreviousHolder] = Holder
		return true, nil
	})
}

// write updates the Lease. A missing Lease is created, or ignored if create is false.
func (l *Lock) write(ctx context.Context, create bool, change func(*coordinationv1.Lease) (bool, error)) error {
	var err error
	for range attempts {
		var lease *coordinationv1.Lease
		lease, err = l.leases.Get(ctx, Name, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		switch {
		case absent && !create:
			return nil
		case absent:
			lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name}}
		case err != nil:
			return failed(err)
		}
		wanted, wrong := change(lease)
		if wrong != nil || !wanted {
			return wrong
		}
		if absent {
			_, err = l.leases.Create(ctx, lease, metav1.CreateOptions{})
		} else {
			_, err = l.leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		if err == nil || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return failed(err)
}

func failed(err error) error {
	if err == nil {
		return nil
	}
	return &azure.Error{Kind: azure.Busy, Op: "write the lease " + Namespace + "/" + Name, Message: "the API server rejected it",
		Cause: err}
}

func holderOf(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func transitions(l *coordinationv1.Lease) int32 {
	if l.Spec.LeaseTransitions == nil {
		return 0
	}
	return *l.Spec.LeaseTransitions
}

// end returns when the Lease of an absent holder expires.
func end(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
}

func over(l *coordinationv1.Lease) bool { return !time.Now().Before(end(l)) }
