package autoscale

import (
	"fmt"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// The events of a ledger that come from requests to Azure.

// send moves up to n machines from the queue into the request that is made next. A group has one such request at a time.
func (l *ledger) send(n int) int {
	n = min(n, l.queued)
	l.queued -= n
	l.sending = n
	return n
}

// notSent turns n machines of the request that is being made into placeholders.
func (l *ledger) notSent(n int, f nodegroup.Failure, now time.Time) {
	l.sending -= n
	l.refuse(n, f, false, now)
}

// refuse adds placeholders for n machines.
func (l *ledger) refuse(n int, f nodegroup.Failure, counted bool, now time.Time) {
	for range n {
		l.serial++
		id := fmt.Sprintf("azure://%s/virtualMachines/placeholder-%d-%d", l.status.Group.Set, now.UnixNano(), l.serial)
		l.refused = append(l.refused, placeholder{id: id, failure: f, counted: counted})
	}
}

// accepted notes that Azure accepted a capacity.
func (l *ledger) accepted(capacity int) {
	l.status = l.status.Accepted(capacity)
	l.under++
}

// grown notes that an increase by n machines failed. It returns how many machines there are with the failure, and how many are
// missing.
func (l *ledger) grown(n int, f nodegroup.Failure, now time.Time) (failed, missing int) {
	l.status, failed = l.status.Failed(f)
	missing = max(min(n-failed, l.account().Missing()-l.waived-(len(l.refused)-uncounted(l.refused))), 0)
	l.refuse(missing, f, true, now)
	return failed, missing
}

// restartable returns up to n deallocated machines that can be started.
func (l *ledger) restartable(n int) []azure.ID {
	var ids []azure.ID
	for _, i := range l.account().Restart(n) {
		ids = append(ids, i.ID)
	}
	return ids
}

// started notes that Azure accepted to start machines.
func (l *ledger) started(ids []azure.ID) {
	l.sending -= len(ids)
	l.under++
	l.status = l.status.Started(ids)
}

// notStarted turns those of the machines that are still deallocated into placeholders.
func (l *ledger) notStarted(ids []azure.ID, f nodegroup.Failure, now time.Time) {
	off := 0
	for _, id := range ids {
		if i, listed := l.instance(id); listed && i.Deallocated {
			off++
		}
	}
	l.refuse(off, f, false, now)
}

// touched notes that an action changed the scale set.
func (l *ledger) touched() { l.status = l.status.Touched() }

// ended notes that an operation ended, and reports whether it was the last one.
func (l *ledger) ended() bool {
	l.under--
	l.stale = true
	return l.under == 0
}

// split returns the machines that are to be deallocated and those that are to be deleted.
func (l *ledger) split(ids []azure.ID) (keep, del []azure.ID) {
	for _, id := range ids {
		if l.leaving[id.Key()].deallocate {
			keep = append(keep, id)
		} else {
			del = append(del, id)
		}
	}
	return keep, del
}

// forces reports whether machines are deleted by force, if the options of the group do not say otherwise than usual.
func (l *ledger) forces(usual bool) bool {
	if force := l.status.Group.Options.ForceDelete; force != nil {
		usual = *force
	}
	return usual && l.status.Group.Forceable && !l.unforced
}

// remaining forgets the machines that have left, and returns the others. unread says that the last read of the group failed.
func (l *ledger) remaining(ids []azure.ID) (stay []azure.ID, unread bool) {
	for _, id := range ids {
		if _, leaves := l.leaving[id.Key()]; leaves && !l.hasLeft(id.Key()) {
			stay = append(stay, id)
			continue
		}
		delete(l.leaving, id.Key())
	}
	return stay, l.err != nil
}

// stay notes that machines do not leave, and returns how many of them were leaving.
func (l *ledger) stay(ids []azure.ID) int {
	stayed := 0
	for _, id := range ids {
		if _, leaves := l.leaving[id.Key()]; leaves {
			delete(l.leaving, id.Key())
			stayed++
		}
	}
	l.stale = true
	return stayed
}

// lowers reports whether the capacity is to be lowered: waived machines, and no operation that may still make them.
func (l *ledger) lowers() bool { return l.under == 0 && l.waived > 0 }

// existing returns how many machines of the group stay.
func (l *ledger) existing() int {
	n := 0
	for _, i := range l.status.Instances {
		if _, leaves := l.leaving[i.Key]; !leaves && i.State != nodegroup.Deleting {
			n++
		}
	}
	return n
}
