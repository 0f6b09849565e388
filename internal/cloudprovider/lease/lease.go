// Package lease is the lock by which controllers of the managed service and the
// cloud-controller-manager keep out of each other's way when they write to load
// balancers and their members: a Lease that whoever writes holds meanwhile. Layer L3.
//
// Names, durations and the annotation are those that the others know.
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
	// Name and Namespace are the Lease's.
	Name, Namespace = "aks-managed-resource-locker", metav1.NamespaceSystem
	// Holder is who we are.
	Holder = "cloud-controller-manager"
	// PreviousHolder is the annotation with who has held it last.
	PreviousHolder = "aks-managed-resource-locker-previous-holder"

	duration = 15 * time.Minute
	attempts = 5 // to write the Lease while others write it, too
	atEnd    = 10 * time.Second
)

// Lock is held while something is under way that the others must not come across.
type Lock struct {
	leases coordination.LeaseInterface
	turn   chan int // how many are under way; whoever has it changes that
}

// New is the lock of a cluster.
func New(client coordination.LeasesGetter) *Lock {
	l := &Lock{leases: client.Leases(Namespace), turn: make(chan int, 1)}
	l.turn <- 0
	return l
}

// enter takes the lock, or joins those who hold it in this process.
func (l *Lock) enter(ctx context.Context) error {
	var under int
	select {
	case <-ctx.Done():
		return &azure.Error{Kind: azure.Canceled, Op: "take the lease " + Name, Cause: ctx.Err()}
	case under = <-l.turn:
	}
	var err error
	if under == 0 {
		err = l.take(ctx)
	}
	if err == nil {
		under++
	}
	l.turn <- under
	return err
}

// leave gives the lock back when nobody else of this process needs it.
func (l *Lock) leave(ctx context.Context) {
	under := <-l.turn
	if under == 1 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), atEnd)
		defer cancel()
		if err := l.give(ctx); err != nil {
			slog.WarnContext(ctx, "the lease is not given back, others wait until it ends", "lease", Name, "error", err)
		}
	}
	l.turn <- under - 1
}

// take writes us into the Lease. When somebody else had it since, what is known of
// Azure is of before that: the error is that of a document that changed underneath.
func (l *Lock) take(ctx context.Context) error {
	changed := false
	err := l.write(ctx, true, func(lease *coordinationv1.Lease) (bool, error) {
		if who := holderOf(lease); who != "" && who != Holder && !over(lease) {
			return false, &azure.Error{
				Kind: azure.Busy, Op: "take the lease " + Name,
				Message: fmt.Sprintf("lease has not expired yet: %s holds it until %s", who, end(lease).Format(time.RFC3339)),
			}
		}
		last, told := lease.Annotations[PreviousHolder]
		changed = told && last != Holder
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
	return &azure.Error{Kind: azure.Changed, Op: "take the lease " + Name, Message: "another controller had it, and may have changed what is known of Azure"}
}

// give takes us out of the Lease, if we are in it.
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

// write changes the Lease as it is now. One that is not there is made, or is no matter.
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
	return &azure.Error{Kind: azure.Busy, Op: "write the lease " + Namespace + "/" + Name, Message: "the API server did not take it", Cause: err}
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

// end is when a holder that does not come back loses the Lease.
func end(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return l.Spec.RenewTime.Add(time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second)
}

func over(l *coordinationv1.Lease) bool { return !time.Now().Before(end(l)) }
