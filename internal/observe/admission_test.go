package observe

import (
	"net"
	"net/http"
	"testing"
	"time"
)

type noConn struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (c *noConn) RemoteAddr() net.Addr { return c.from }
func (c *noConn) Close() error         { c.closed = true; return nil }

type queue struct {
	net.Listener
	conns []net.Conn
}

func (q *queue) Accept() (net.Conn, error) {
	if len(q.conns) == 0 {
		return nil, net.ErrClosed
	}
	c := q.conns[0]
	q.conns = q.conns[1:]
	return c, nil
}

// TestAdmission checks which connection goes for a new one: S is silent, B has a request in flight.
func TestAdmission(t *testing.T) {
	for _, c := range []struct {
		what, open, next string // source and state of each, with the oldest first
		gone             int    // index of the closed one; the length of open is the new one, -1 is none
	}{
		{"room", "1S 1S", "2", -1},
		{"the source is full", "2S 1B 1S 1S", "1", 2},
		{"the source is full and busy", "2S 1B 1B 1B", "1", 4},
		{"all is full: the oldest silent one", "1B 2S 3S 4S 5S 6S", "7", 1},
		{"all is full and busy", "1B 2B 3B 4B 5B 6B", "7", 6},
	} {
		listener := &queue{}
		a := Admit(listener, 6, 3)
		var all []*noConn
		open := func(word string) {
			one := &noConn{from: &net.TCPAddr{IP: net.IPv4(10, 0, 0, word[0]), Port: 1}}
			all = append(all, one)
			listener.conns = append(listener.conns, one)
			if got, err := a.Accept(); err == nil && len(word) > 1 && word[1] == 'B' {
				Track(got, http.StateActive)
			}
		}
		words := append(split(c.open), c.next)
		for _, word := range words {
			open(word)
		}
		for i, one := range all {
			if one.closed != (i == c.gone) {
				t.Errorf("%s: connection %d is closed: %t, want %d closed", c.what, i, one.closed, c.gone)
			}
		}
	}
}

func split(text string) []string {
	var words []string
	for i := 0; i < len(text); i += 3 {
		words = append(words, text[i:i+2])
	}
	return words
}

// TestAdmissionPrefersCrowds checks that a source with many connections loses one before an older one of a small source.
func TestAdmissionPrefersCrowds(t *testing.T) {
	a := Admit(&queue{}, 100, 100)
	now := time.Now()
	for i := range 20 {
		a.open[&admitted{of: a, source: "crowd", silent: now.Add(time.Duration(i))}] = true
	}
	a.open[&admitted{of: a, source: "small", silent: now.Add(-time.Hour)}] = true
	if v := a.victim(map[string]int{"crowd": 20, "small": 1}, "new", false); v.source != "crowd" || !v.silent.Equal(now) {
		t.Errorf("%s goes, silent since %s", v.source, v.silent)
	}
	for address, want := range map[string]string{"[2001:db8::1]:5": "2001:db8::/64", "[::ffff:1.2.3.4]:5": "1.2.3.4", "pipe": "pipe"} {
		if got := sourceOf(text(address)); got != want {
			t.Errorf("source of %s: %s, want %s", address, got, want)
		}
	}
}

type text string

func (text) Network() string  { return "" }
func (t text) String() string { return string(t) }
