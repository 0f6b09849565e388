package names

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sync/errgroup"
)

// Serve answers over TCP and UDP until ctx is done. It closes both.
func (s *Server) Serve(ctx context.Context, l net.Listener, p net.PacketConn) error {
	both, ctx := errgroup.WithContext(ctx)
	shut := func() { l.Close(); p.Close() }
	defer shut()
	defer context.AfterFunc(ctx, shut)()
	both.Go(func() error { return s.datagrams(p) })
	both.Go(func() error { return s.connections(ctx, l) })
	if err := both.Wait(); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("name server: %w", err)
	}
	return nil
}

// largestDatagram is the size that every client accepts. Replies are shorter.
const largestDatagram = 512

func (s *Server) datagrams(p net.PacketConn) error {
	buffer := make([]byte, 64<<10)
	for {
		n, client, err := p.ReadFrom(buffer)
		if err != nil {
			return err
		}
		answer := s.Answer(buffer[:n])
		if len(answer) > largestDatagram {
			answer = truncated(answer)
		}
		if answer == nil {
			continue
		}
		if _, err := p.WriteTo(answer, client); err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			s.log().Debug("answer of the name server", "client", client.String(), "error", err)
		}
	}
}

// truncated returns the reply that makes the client ask again over TCP.
func truncated(answer []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil {
		return nil
	}
	m.Truncated, m.Answers = true, nil
	short, err := m.Pack()
	if err != nil {
		return nil
	}
	return short
}

// idleTimeout closes a silent connection.
const idleTimeout = 10 * time.Second

func (s *Server) connections(ctx context.Context, l net.Listener) error {
	var open errgroup.Group
	defer func() { _ = open.Wait() }() // each has logged its error
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		open.Go(func() error {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			if err := s.serveConnection(c); !errors.Is(err, io.EOF) {
				s.log().Debug("connection to the name server", "client", c.RemoteAddr().String(), "error", err)
			}
			return nil
		})
	}
}

// serveConnection answers the queries of a connection, each with its length before it.
func (s *Server) serveConnection(c net.Conn) error {
	for {
		if err := c.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
			return err
		}
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			return err
		}
		question := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, question); err != nil {
			return err
		}
		answer := s.Answer(question)
		if answer == nil {
			return errors.New("not a DNS query")
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return err
		}
	}
}

// lifetime is the TTL of records in seconds. It is short because addresses change.
const lifetime = 5

// Answer returns the reply to a message, nil for a message without a reply.
func (s *Server) Answer(message []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil || m.Response {
		return nil
	}
	m.Response, m.Authoritative, m.Truncated, m.RecursionAvailable = true, false, false, true
	m.RCode, m.Answers, m.Authorities, m.Additionals = dnsmessage.RCodeSuccess, nil, nil, nil
	switch {
	case m.OpCode != 0:
		m.RCode = dnsmessage.RCodeNotImplemented
	case len(m.Questions) != 1:
		m.RCode = dnsmessage.RCodeFormatError
	case m.Questions[0].Class != dnsmessage.ClassINET:
		m.RCode = dnsmessage.RCodeRefused
	default:
		m.Answers, m.RCode = s.resolve(m.Questions[0])
	}
	answer, err := m.Pack()
	if err != nil {
		s.log().Warn("answer of the name server", "error", err)
		return nil
	}
	return answer
}

func (s *Server) resolve(q dnsmessage.Question) ([]dnsmessage.Resource, dnsmessage.RCode) {
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: lifetime}
	if address, ok := reversed(q.Name.String()); ok {
		host := s.Reverse(address)
		if host == "" {
			return nil, dnsmessage.RCodeNameError
		}
		name, err := dnsmessage.NewName(host + ".")
		if err != nil {
			return nil, dnsmessage.RCodeServerFailure
		}
		if q.Type != dnsmessage.TypePTR && q.Type != dnsmessage.TypeALL {
			return nil, dnsmessage.RCodeSuccess
		}
		return []dnsmessage.Resource{{Header: header, Body: &dnsmessage.PTRResource{PTR: name}}}, dnsmessage.RCodeSuccess
	}
	addresses, found := s.Lookup(q.Name.String())
	if !found {
		return nil, dnsmessage.RCodeNameError
	}
	var all []dnsmessage.Resource
	for _, a := range addresses {
		switch {
		case a.Is4() && (q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeALL):
			all = append(all, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && (q.Type == dnsmessage.TypeAAAA || q.Type == dnsmessage.TypeALL):
			all = append(all, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	return all, dnsmessage.RCodeSuccess
}

// reversed returns the address of a name such as 4.0.240.10.in-addr.arpa.
func reversed(name string) (netip.Addr, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if text, ok := strings.CutSuffix(name, ".in-addr.arpa"); ok {
		parts := strings.Split(text, ".")
		if len(parts) != net.IPv4len {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(parts[3] + "." + parts[2] + "." + parts[1] + "." + parts[0])
		return a, err == nil
	}
	text, ok := strings.CutSuffix(name, ".ip6.arpa")
	digits := strings.Split(text, ".")
	if !ok || len(digits) != 2*net.IPv6len {
		return netip.Addr{}, false
	}
	var a [net.IPv6len]byte
	for i, digit := range digits {
		n, err := strconv.ParseUint(digit, 16, 4)
		if err != nil {
			return netip.Addr{}, false
		}
		a[net.IPv6len-1-i/2] |= byte(n) << (4 * (i % 2))
	}
	return netip.AddrFrom16(a), true
}
