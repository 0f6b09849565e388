package dns

import (
	"sync"
	"time"

	"kaz/internal/plan/records"
)

// pace spreads the writes of a zone over time: at most so many in each minute.
type pace struct {
	mu     sync.Mutex // never held while waiting
	most   int
	begun  []time.Time // of the writes of the last minute, and of those that were promised a later time
	closed time.Time   // until when Azure refuses writes
}

const window = time.Minute

// ThrottleWait is the longest time that a request to Azure waits because Azure throttles: ExternalDNS waits for the answer.
const ThrottleWait = 5 * time.Second

// reserve returns when a write may begin, and false if that is after a deadline.
func (p *pace) reserve(now, deadline time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := now
	if n := len(p.begun); n >= p.most {
		if free := p.begun[n-p.most].Add(window); free.After(at) {
			at = free
		}
	}
	if p.closed.After(at) {
		at = p.closed
	}
	if at.After(deadline) {
		return at, false
	}
	p.begun = append(p.begun, at)
	if extra := len(p.begun) - p.most; extra > 0 {
		p.begun = append([]time.Time(nil), p.begun[extra:]...)
	}
	return at, true
}

// close lets no write begin for a while.
func (p *pace) close(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.After(p.closed) {
		p.closed = until
	}
}

// paceOf returns the pace of a zone.
func (p *Provider) paceOf(z records.Zone) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := z.ID.Key()
	if p.paces[key] == nil {
		most := p.config.PublicWrites
		if z.Private {
			most = p.config.PrivateWrites
		}
		p.paces[key] = &pace{most: max(most, 1)}
	}
	return p.paces[key]
}

// refusals remember what Azure refused, so that it is not asked every minute.
type refusals struct {
	mu sync.Mutex
	at map[string]time.Time // by request
}

const refusedFor = time.Hour

func (r *refusals) add(request string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, at := range r.at {
		if now.Sub(at) >= refusedFor {
			delete(r.at, other)
		}
	}
	r.at[request] = now
}

func (r *refusals) has(request string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[request]
	return ok && now.Sub(at) < refusedFor
}
