package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/http"
	"reflect"
	"sync"
	"time"

	"kaz/internal/localazure/plane/gateway/routing"
)

// health is what the probes know of a member.
type health string

// The states of a member, spelled as Azure spells them.
const (
	unknown   health = "Unknown"
	healthy   health = "Healthy"
	unhealthy health = "Unhealthy"
)

// member is a backend server in a pool.
type member struct {
	routing.Member // never changes
	weight         int
	cookie         string             // the value of the affinity cookie
	stop           context.CancelFunc // of its probe
	// served has the functions that end what is in flight, by their numbers. A member that has ended has none.
	served map[int]context.CancelFunc
	number int
	ended  bool

	health   health
	failures int    // in a row
	note     string // about the last probe
	current  int    // of the weighted round robin
}

// observe takes the result of a probe, and reports whether the health changed. A member is unhealthy after as many failures in a row as
// the threshold, and healthy after one success.
func (m *member) observe(failure error, threshold int) bool {
	before := m.health
	if failure == nil {
		m.health, m.failures, m.note = healthy, 0, "Success. Received the expected answer."
		return before != healthy
	}
	m.note = failure.Error()
	if m.failures++; m.failures >= threshold {
		m.health = unhealthy
	}
	return before != m.health
}

// pool are the members of a backend pool as some settings reach them.
type pool struct {
	gateway *gateway

	mu       sync.Mutex
	backend  *routing.Backend
	wires    *wires
	members  []*member
	draining []*member
}

// key names a pool in its gateway.
func key(b *routing.Backend) string { return b.Pool + "\x00" + b.Setting }

// set replaces the backend. Members that stay keep their health. A member that goes away keeps the clients with its cookie as long as
// the settings say, if they say so.
func (p *pool) set(b *routing.Backend, roots *x509.CertPool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sameWires := p.backend != nil && p.backend.Timeout == b.Timeout && p.backend.Host == b.Host && p.backend.ServerName == b.ServerName &&
		p.wires.config.RootCAs.Equal(roots)
	sameProbe := sameWires && reflect.DeepEqual(p.backend.Probe, b.Probe) && p.backend.Protocol == b.Protocol
	if !sameWires {
		if p.wires != nil {
			p.wires.close()
		}
		p.wires = newWires(p.gateway.options.Network, p.gateway.id, b, roots)
	}
	p.backend = b
	had := p.members
	p.members = nil
	for _, wanted := range b.Members {
		m := take(&had, wanted.Address())
		if m == nil {
			m = p.newMember(wanted)
		}
		m.weight = wanted.Weight
		if m.stop == nil || !sameProbe {
			p.startProbe(m)
		}
		p.members = append(p.members, m)
	}
	for _, m := range had {
		p.remove(m, b.Drain)
	}
}

// take removes the member with an address from a list and returns it, nil for none.
func take(from *[]*member, address string) *member {
	for i, m := range *from {
		if m.Address() == address {
			*from = append((*from)[:i:i], (*from)[i+1:]...)
			return m
		}
	}
	return nil
}

func (p *pool) newMember(of routing.Member) *member {
	sum := sha256.Sum256([]byte(p.gateway.id.Key() + " " + of.Address()))
	return &member{Member: of, health: unknown, cookie: hex.EncodeToString(sum[:16]), served: map[int]context.CancelFunc{}}
}

// enter counts something in flight to a member, which the function ends if the member ends. The caller calls leave afterwards.
func (p *pool) enter(m *member, end context.CancelFunc) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.ended {
		end()
		return func() {}
	}
	m.number++
	number := m.number
	m.served[number] = end
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(m.served, number)
	}
}

// end ends what is in flight to the member.
func (m *member) end() {
	m.ended = true
	for _, end := range m.served {
		end()
	}
}

// startProbe begins to probe a member with the probe of the backend.
func (p *pool) startProbe(m *member) {
	if m.stop != nil {
		m.stop()
	}
	m.failures = 0
	backend, wires := p.backend, p.wires
	m.stop = p.gateway.begin(func(ctx context.Context) { p.probe(ctx, m, backend, wires) })
}

// remove ends a member, after its clients had the time to leave.
func (p *pool) remove(m *member, drain time.Duration) {
	m.stop()
	if drain == 0 {
		return // requests in flight go on
	}
	p.draining = append(p.draining, m)
	after := p.gateway.options.After(drain)
	p.gateway.begin(func(ctx context.Context) {
		select {
		case <-after:
		case <-ctx.Done():
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		m.end()
		for i, d := range p.draining {
			if d == m {
				p.draining = append(p.draining[:i:i], p.draining[i+1:]...)
				return
			}
		}
	})
}

// pick chooses a member that was not tried: the one with the cookie, else the next of those that are healthy. Members that no probe
// has reached yet are only taken where none is healthy. It returns nil if no member is left.
func (p *pool) pick(cookie string, tried map[*member]bool) *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cookie != "" && len(tried) == 0 {
		for _, list := range [][]*member{p.members, p.draining} {
			for _, m := range list {
				if m.cookie == cookie && m.health != unhealthy {
					return m
				}
			}
		}
	}
	for _, state := range []health{healthy, unknown} {
		if m := p.next(state, tried); m != nil {
			return m
		}
	}
	return nil
}

// next is the weighted round robin over the members in a state.
func (p *pool) next(state health, tried map[*member]bool) *member {
	var best *member
	total := 0
	for _, m := range p.members {
		if m.health != state || tried[m] {
			continue
		}
		m.current += m.weight
		total += m.weight
		if best == nil || m.current > best.current {
			best = m
		}
	}
	if best != nil {
		best.current -= total
	}
	return best
}

// now returns the backend and the connections to it.
func (p *pool) now() (*routing.Backend, *wires) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.backend, p.wires
}

func (p *pool) transport() *http.Transport {
	_, w := p.now()
	return w.requests
}

// retire removes all members of a pool that no rule uses any more. Requests in flight go on, and a request that was led to the pool
// before still finds a member.
func (p *pool) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		p.remove(m, p.backend.Drain)
	}
	p.wires.close()
}

// close stops the probes and ends all requests.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range [][]*member{p.members, p.draining} {
		for _, m := range list {
			m.stop()
			m.end()
		}
	}
	p.wires.close()
}
