package observe

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Admission is a listener with a limit of open connections that never makes a connection wait. If there are too many, the source
// with most of them loses its oldest silent one. A connection is silent while no request is in flight on it. So clients that
// send their request at once are served, however many others keep connections open.
type Admission struct {
	net.Listener
	most, perSource int
	mu              sync.Mutex
	open            map[*admitted]bool
}

// Admit limits the connections of a listener: all, and those of one source. A source is an IPv4 address or an IPv6 network of 64 bits.
// The server must call [Track].
func Admit(listener net.Listener, most, perSource int) *Admission {
	return &Admission{Listener: listener, most: most, perSource: perSource, open: map[*admitted]bool{}}
}

// admitted is an open connection.
type admitted struct {
	net.Conn
	of     *Admission
	source string
	silent time.Time // since then; zero while a request is in flight
}

// Accept implements [net.Listener].
func (a *Admission) Accept() (net.Conn, error) {
	for {
		c, err := a.Listener.Accept()
		if err != nil {
			return nil, err
		}
		next := &admitted{Conn: c, of: a, source: sourceOf(c.RemoteAddr()), silent: time.Now()}
		victim, ok := a.admit(next)
		if victim != nil {
			_ = victim.Conn.Close() // its server sees the error
		}
		if ok {
			return next, nil
		}
		_ = c.Close()
	}
}

// admit adds a connection, and returns the one that has to be closed for it. It adds none if all others have a request in flight.
func (a *Admission) admit(next *admitted) (victim *admitted, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	count := map[string]int{}
	for c := range a.open {
		count[c.source]++
	}
	full := count[next.source] >= a.perSource
	if full || len(a.open) >= a.most {
		victim = a.victim(count, next.source, full)
		if victim == nil {
			return nil, false
		}
		delete(a.open, victim)
	}
	a.open[next] = true
	return victim, true
}

// few is a number of connections that every source can have before it counts against it.
const few = 8

// victim returns the silent connection that goes first: of the source with most connections, the oldest. It is nil if there is none. If
// own is true, it is one of the source.
func (a *Admission) victim(count map[string]int, source string, own bool) *admitted {
	var silent []*admitted
	for c := range a.open {
		if !c.silent.IsZero() && (!own || c.source == source) {
			silent = append(silent, c)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return slices.MinFunc(silent, func(x, y *admitted) int {
		return cmp.Or(cmp.Compare(max(count[y.source], few), max(count[x.source], few)), x.silent.Compare(y.silent))
	})
}

// Track records the state of a connection of an [Admission]. It is for [http.Server.ConnState].
func Track(c net.Conn, state http.ConnState) {
	of, ok := c.(*admitted)
	if !ok {
		return
	}
	of.of.mu.Lock()
	defer of.of.mu.Unlock()
	switch state {
	case http.StateActive:
		of.silent = time.Time{}
	case http.StateIdle:
		of.silent = time.Now()
	}
}

// Close implements [net.Conn].
func (c *admitted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// sourceOf returns the source of a connection.
func sourceOf(address net.Addr) string {
	const network = 64
	from, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.Prefix(network)
	if err != nil {
		return ip.String()
	}
	return prefix.String()
}
