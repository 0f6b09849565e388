package names

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

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

func (s *Server) datagrams(p net.PacketConn) error {
	buffer := make([]byte, 64<<10)
	for {
		n, client, err := p.ReadFrom(buffer)
		if err != nil {
			return err
		}
		answer := s.reply(buffer[:n], true)
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
