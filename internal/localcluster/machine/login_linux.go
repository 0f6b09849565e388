package machine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// busSocket is the socket of the system bus, at which the kubelet looks for the login manager.
const busSocket = "/run/dbus/system_bus_socket"

// longestInhibition is the longest time for which a program may delay a shutdown.
const longestInhibition = time.Minute

// loginManager is the part of systemd's login manager that the kubelet uses for a graceful shutdown. Programs take an
// inhibitor lock: a file that they keep open. The manager announces a shutdown, and waits until all locks are closed.
// Source: https://systemd.io/INHIBITOR_LOCKS and the D-Bus specification
type loginManager struct {
	log *slog.Logger

	mu      sync.Mutex
	clients map[*busClient]bool
	locks   map[chan struct{}]bool // closed when the lock is released
}

// serveLogin serves the system bus at a socket until ctx is done.
func serveLogin(ctx context.Context, path string, log *slog.Logger) (*loginManager, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	m := &loginManager{log: log, clients: map[*busClient]bool{}, locks: map[chan struct{}]bool{}}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			go m.serve(c)
		}
	}()
	return m, nil
}

// announce says that the machine shuts down, and returns when no lock is held or ctx is done.
func (m *loginManager) announce(ctx context.Context) error {
	m.mu.Lock()
	for c := range m.clients {
		// The body is the boolean "begins".
		err := c.send(busMessage{kind: busSignal, member: "PrepareForShutdown", signature: "b", body: []byte{1, 0, 0, 0}}, nil)
		if err != nil {
			m.log.Warn("a client of the bus does not learn of the shutdown", "error", err)
		}
	}
	locks := slices.Collect(maps.Keys(m.locks))
	m.mu.Unlock()
	for _, released := range locks {
		select {
		case <-released:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// busClient is a connection to the bus.
type busClient struct {
	conn *net.UnixConn
	in   *bufio.Reader

	mu     sync.Mutex
	serial uint32
}

func (m *loginManager) serve(conn *net.UnixConn) {
	c := &busClient{conn: conn, in: bufio.NewReader(conn)}
	err := c.authenticate()
	m.mu.Lock()
	m.clients[c] = true
	m.mu.Unlock()
	for err == nil {
		var call busMessage
		if call, err = readBusMessage(c.in); err == nil {
			err = m.answer(c, call)
		}
	}
	m.mu.Lock()
	delete(m.clients, c)
	m.mu.Unlock()
	if !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
		m.log.Warn("a client of the bus", "error", err)
	}
	_ = conn.Close()
}

// authenticate accepts every client: only programs of the machine reach the socket.
func (c *busClient) authenticate() error {
	if _, err := c.in.Discard(1); err != nil { // a zero byte comes first
		return err
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return err
		}
		answer := "ERROR"
		switch line = strings.TrimSpace(line); {
		case line == "BEGIN":
			return nil
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			answer = "OK " + strings.Repeat("0", 32)
		case strings.HasPrefix(line, "AUTH"):
			answer = "REJECTED EXTERNAL"
		case line == "NEGOTIATE_UNIX_FD":
			answer = "AGREE_UNIX_FD"
		}
		if _, err := io.WriteString(c.conn, answer+"\r\n"); err != nil {
			return err
		}
	}
}

// answer answers a method call.
func (m *loginManager) answer(c *busClient, call busMessage) error {
	reply := busMessage{kind: busReturn, replyTo: call.serial}
	switch call.member {
	case "Hello":
		reply.signature, reply.body = "s", busText(":1.1")
	case "AddMatch", "RemoveMatch": // every client gets the one signal
	case "Get": // the property InhibitDelayMaxUSec, a variant with microseconds
		reply.signature = "v"
		reply.body = binary.LittleEndian.AppendUint64([]byte{1, 't', 0, 0, 0, 0, 0, 0}, uint64(longestInhibition.Microseconds()))
	case "Inhibit":
		return m.inhibit(c, reply)
	default:
		reply.kind, reply.failure = busError, "org.freedesktop.DBus.Error.UnknownMethod"
	}
	return c.send(reply, nil)
}

// inhibit gives the client a lock: one end of a pipe. The lock is held until the client closes it or ends.
func (m *loginManager) inhibit(c *busClient, reply busMessage) error {
	held, lock, err := os.Pipe()
	if err != nil {
		return err
	}
	defer lock.Close()
	released := make(chan struct{})
	m.mu.Lock()
	m.locks[released] = true
	m.mu.Unlock()
	go func() {
		_, _ = io.Copy(io.Discard, held) // until the other end is closed
		_ = held.Close()
		m.mu.Lock()
		delete(m.locks, released)
		m.mu.Unlock()
		close(released)
	}()
	reply.signature, reply.body, reply.files = "h", []byte{0, 0, 0, 0}, 1
	return c.send(reply, unix.UnixRights(int(lock.Fd())))
}

func (c *busClient) send(message busMessage, rights []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial++
	message.serial = c.serial
	_, _, err := c.conn.WriteMsgUnix(message.encode(), rights, nil)
	return err
}

// Kinds of messages.
const (
	busCall = iota + 1
	busReturn
	busError
	busSignal
)

// busMessage is a message of the D-Bus protocol with the fields that the login manager uses.
type busMessage struct {
	kind      byte
	serial    uint32
	replyTo   uint32
	member    string
	failure   string // name of an error
	signature string // types of the body
	files     uint32 // number of files beside the message
	body      []byte
}

// Codes of header fields.
const (
	busPath      = 1
	busInterface = 2
	busMember    = 3
	busFailure   = 4
	busReplyTo   = 5
	busSender    = 7
	busSignature = 8
	busFiles     = 9
)

// encode returns the bytes of a message, with the login manager as its sender.
func (m busMessage) encode() []byte {
	var fields []byte
	field := func(code, kind byte, value []byte) {
		fields = append(padded(fields, 8), code, 1, kind, 0)
		fields = append(fields, value...)
	}
	field(busSender, 's', busText("org.freedesktop.login1"))
	if m.member != "" {
		field(busPath, 'o', busText("/org/freedesktop/login1"))
		field(busInterface, 's', busText("org.freedesktop.login1.Manager"))
		field(busMember, 's', busText(m.member))
	}
	if m.failure != "" {
		field(busFailure, 's', busText(m.failure))
	}
	if m.signature != "" {
		field(busSignature, 'g', append(append([]byte{byte(len(m.signature))}, m.signature...), 0))
	}
	for code, number := range map[byte]uint32{busReplyTo: m.replyTo, busFiles: m.files} {
		if number > 0 {
			field(code, 'u', binary.LittleEndian.AppendUint32(nil, number))
		}
	}
	all := []byte{'l', m.kind, 0, 1}
	all = binary.LittleEndian.AppendUint32(all, uint32(len(m.body)))
	all = binary.LittleEndian.AppendUint32(all, m.serial)
	all = binary.LittleEndian.AppendUint32(all, uint32(len(fields)))
	return append(padded(append(all, fields...), 8), m.body...)
}

// padded appends zeros up to a multiple of a size.
func padded(b []byte, size int) []byte {
	for len(b)%size != 0 {
		b = append(b, 0)
	}
	return b
}

// busText encodes a text: its length, the text, and a zero.
func busText(s string) []byte {
	return append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(s))), s...), 0)
}

// longestBusMessage bounds the messages that are read. Calls of the kubelet have some hundred bytes.
const longestBusMessage = 64 << 10

// readBusMessage reads a message with its kind, serial number, member and body.
func readBusMessage(in io.Reader) (busMessage, error) {
	var head [16]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return busMessage{}, err
	}
	if head[0] != 'l' {
		return busMessage{}, fmt.Errorf("byte order %q of a D-Bus message, want l", head[0])
	}
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(head[at:]) }
	length, serial, fields := number(4), number(8), number(12)
	if length > longestBusMessage || fields > longestBusMessage {
		return busMessage{}, fmt.Errorf("D-Bus message of %d bytes", max(length, fields))
	}
	header := make([]byte, (fields+7)/8*8)
	body := make([]byte, length)
	if _, err := io.ReadFull(in, header); err != nil {
		return busMessage{}, err
	}
	if _, err := io.ReadFull(in, body); err != nil {
		return busMessage{}, err
	}
	member, err := busMemberOf(header[:fields])
	return busMessage{kind: head[1], serial: serial, member: member, body: body}, err
}

// busMemberOf returns the member among the fields of a header.
func busMemberOf(fields []byte) (string, error) {
	for at := 0; at < len(fields); at = (at + 7) / 8 * 8 {
		if at+8 > len(fields) {
			return "", io.ErrUnexpectedEOF
		}
		code, kind, value := fields[at], fields[at+2], fields[at+4:]
		at += 4
		switch kind {
		case 's', 'o':
			length := int(binary.LittleEndian.Uint32(value))
			if 4+length > len(value) {
				return "", io.ErrUnexpectedEOF
			}
			if code == busMember {
				return string(value[4 : 4+length]), nil
			}
			at += 4 + length + 1
		case 'u':
			at += 4
		case 'g':
			at += 1 + int(value[0]) + 1
		default:
			return "", fmt.Errorf("type %q of a D-Bus header field", kind)
		}
	}
	return "", errors.New("a D-Bus message without a member")
}
