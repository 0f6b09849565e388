package zones

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"kaz/internal/localazure/behaviour"
)

// Server is the name server of all public zones and of Traffic Manager. All fields are required.
type Server struct {
	// World gives access to the resources.
	World func(func(w behaviour.World))
	// At is the address of the server, which the names of the zones' name servers have.
	At  netip.Addr
	Log *slog.Logger
}

// Serve answers over TCP and UDP until ctx is done. It closes both.
func (s *Server) Serve(ctx context.Context, l net.Listener, p net.PacketConn) error {
	tasks, ctx := errgroup.WithContext(ctx)
	for _, server := range []*dns.Server{{Listener: l, Handler: s}, {PacketConn: p, Handler: s}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		ended := make(chan struct{})
		tasks.Go(func() error {
			defer close(ended)
			return server.ActivateAndServe()
		})
		tasks.Go(func() error {
			select { // Shutdown before the start has no effect
			case <-started:
			case <-ended:
				return nil
			}
			select {
			case <-ctx.Done():
				return server.Shutdown()
			case <-ended:
				return nil
			}
		})
	}
	if err := tasks.Wait(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ServeDNS answers a query.
func (s *Server) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	_, datagram := w.RemoteAddr().(*net.UDPAddr)
	from := clientOf(query, w.RemoteAddr())
	answer := func(q dns.Question, reply *dns.Msg) { s.answer(q, from, reply) }
	if err := w.WriteMsg(Reply(query, datagram, answer)); err != nil {
		s.Log.Debug("answer of a zone's name server", "client", w.RemoteAddr().String(), "error", err)
	}
}

// Reply returns the reply to a query: the function answers its question. In a datagram it has at most the size that the client accepts.
func Reply(query *dns.Msg, datagram bool, answer func(dns.Question, *dns.Msg)) *dns.Msg {
	reply := new(dns.Msg).SetReply(query)
	size := dns.MaxMsgSize
	if datagram {
		size = dns.MinMsgSize
	}
	if opt := query.IsEdns0(); opt != nil {
		const ours = 1232 // what passes every network without fragments
		reply.SetEdns0(ours, false)
		if opt.Version() != 0 {
			reply.Rcode = dns.RcodeBadVers
			return reply
		}
		if datagram {
			size = min(max(int(opt.UDPSize()), dns.MinMsgSize), ours)
		}
	}
	switch {
	case query.Opcode != dns.OpcodeQuery:
		reply.Rcode = dns.RcodeNotImplemented
	case len(query.Question) != 1:
		reply.Rcode = dns.RcodeFormatError
	default:
		answer(query.Question[0], reply)
	}
	reply.Truncate(size)
	return reply
}

// answer fills in the answer of the zone or the profile of Traffic Manager that has the name. It refuses other names and zone transfers.
func (s *Server) answer(q dns.Question, from Client, reply *dns.Msg) {
	reply.Rcode = dns.RcodeRefused
	if q.Qclass != dns.ClassINET || q.Qtype == dns.TypeAXFR || q.Qtype == dns.TypeIXFR {
		return
	}
	s.World(func(w behaviour.World) {
		r, ok := Traffic(w, q, from)
		if z, isZone := Public(w, q.Name); isZone {
			r, ok = z.Answer(w, q), true
		}
		if ok {
			reply.Rcode, reply.Authoritative, reply.Answer, reply.Ns = r.Code, r.Authoritative, r.Answer, r.Ns
			reply.Extra = append(reply.Extra, r.Extra...)
			return
		}
		if IsNameServer(w, q.Name) {
			reply.Rcode, reply.Authoritative = dns.RcodeSuccess, true
			h := dns.RR_Header{Name: q.Name, Rrtype: q.Qtype, Class: dns.ClassINET, Ttl: 3600}
			if rr := addressRecord(h, s.At.String()); rr != nil {
				reply.Answer = []dns.RR{rr}
			}
		}
	})
}
