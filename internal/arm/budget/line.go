package budget

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// headStart is by how much a request of one priority goes before requests of the next lower priority. A request that
// has waited longer goes first, so that no request waits for ever.
const headStart = time.Minute

// line is a queue of requests for one limit. The first request has the turn and waits for the limit. When a request
// with a higher priority comes, it takes the turn over. Requests of one priority are served in the order in which
// they came.
type line struct {
	mu      sync.Mutex // never held while waiting
	taken   bool
	came    uint64
	waiting waiters
}

// waiter is a request in a line.
type waiter struct {
	rank  time.Time // see Subject.rank
	came  uint64    // orders requests of the same rank
	turn  chan struct{}
	index int // in the heap, -1 when it is not there
}

// waiters is a heap, the next request first.
type waiters []*waiter

// before reports whether a request is served before another.
func (w *waiter) before(o *waiter) bool {
	if w.rank.Equal(o.rank) {
		return w.came < o.came
	}
	return w.rank.Before(o.rank)
}

// The methods of heap.Interface.
func (w waiters) Len() int           { return len(w) }
func (w waiters) Less(i, j int) bool { return w[i].before(w[j]) }
func (w waiters) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].index, w[j].index = i, j
}

func (w *waiters) Push(x any) {
	one := x.(*waiter)
	one.index = len(*w)
	*w = append(*w, one)
}

func (w *waiters) Pop() any {
	last := len(*w) - 1
	one := (*w)[last]
	one.index, (*w)[last] = -1, nil
	*w = (*w)[:last]
	return one
}

// rank is the time by which requests are ordered: the arrival minus the head start of the priority. A request for a
// shared document gets half a head start more.
func (s Subject) rank(came time.Time) time.Time {
	ahead := time.Duration(s.Priority) * headStart
	if s.Shared {
		ahead += headStart / 2
	}
	return came.Add(-ahead)
}

// enter waits for the turn, which its holder must give back with leave.
func (l *line) enter(ctx context.Context, rank time.Time) (*waiter, error) {
	l.mu.Lock()
	l.came++
	w := &waiter{rank: rank, came: l.came, index: -1}
	if !l.taken {
		l.taken = true
		l.mu.Unlock()
		return w, nil
	}
	l.push(w)
	l.mu.Unlock()
	return w, l.await(ctx, w)
}

// giveWay lets requests with an earlier rank go before the holder of the turn, and waits until the holder has the
// turn again.
func (l *line) giveWay(ctx context.Context, w *waiter) error {
	l.mu.Lock()
	if len(l.waiting) == 0 || !l.waiting[0].before(w) {
		l.mu.Unlock()
		return nil
	}
	l.next()
	l.push(w)
	l.mu.Unlock()
	return l.await(ctx, w)
}

// leave gives the turn to the next request.
func (l *line) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.taken = false
		return
	}
	l.next()
}

// push adds a request. The caller holds the lock.
func (l *line) push(w *waiter) {
	w.turn = make(chan struct{})
	heap.Push(&l.waiting, w)
}

// next gives the turn to the first request. The caller holds the lock.
func (l *line) next() { close(heap.Pop(&l.waiting).(*waiter).turn) }

// await waits for the turn. A request that gives up leaves the line.
func (l *line) await(ctx context.Context, w *waiter) error {
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	if w.index >= 0 {
		heap.Remove(&l.waiting, w.index)
		l.mu.Unlock()
		return ctx.Err()
	}
	l.mu.Unlock()
	l.leave() // the turn came at the same moment
	return ctx.Err()
}
