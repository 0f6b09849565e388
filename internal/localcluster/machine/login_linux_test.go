package machine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// busCaller is a client of the bus, as the kubelet is.
type busCaller struct {
	t    *testing.T
	conn *net.UnixConn
	in   *bufio.Reader
}

func callBus(t *testing.T, path string) *busCaller {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	c := &busCaller{t: t, conn: conn, in: bufio.NewReader(conn)}
	c.write("\x00")
	for _, step := range [][2]string{
		{"AUTH", "REJECTED EXTERNAL"}, {"AUTH EXTERNAL 30", "OK"}, {"NEGOTIATE_UNIX_FD", "AGREE_UNIX_FD"}, {"NONSENSE", "ERROR"},
	} {
		c.write(step[0] + "\r\n")
		if line, err := c.in.ReadString('\n'); err != nil || !strings.HasPrefix(line, step[1]) {
			t.Fatalf("%s: %q, %v, want %s", step[0], line, err, step[1])
		}
	}
	c.write("BEGIN\r\n")
	return c
}

func (c *busCaller) write(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// call calls a method and returns the kind and the body of the answer.
func (c *busCaller) call(member string) (byte, []byte) {
	c.t.Helper()
	c.write(string(busMessage{kind: busCall, serial: 7, member: member}.encode()))
	return c.message()
}

// message reads a message.
func (c *busCaller) message() (byte, []byte) {
	c.t.Helper()
	var head [16]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		c.t.Fatal(err)
	}
	fields := (binary.LittleEndian.Uint32(head[12:]) + 7) / 8 * 8
	rest := make([]byte, fields+binary.LittleEndian.Uint32(head[4:]))
	if _, err := io.ReadFull(c.in, rest); err != nil {
		c.t.Fatal(err)
	}
	return head[1], rest[fields:]
}

// inhibit takes a lock and returns its file.
func (c *busCaller) inhibit() int {
	c.t.Helper()
	c.write(string(busMessage{kind: busCall, serial: 8, member: "Inhibit"}.encode()))
	text, rights := make([]byte, 4096), make([]byte, 64)
	_, n, _, _, err := c.conn.ReadMsgUnix(text, rights)
	if err != nil {
		c.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		c.t.Fatal(messages, err)
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 || text[1] != busReturn {
		c.t.Fatal(files, err)
	}
	return files[0]
}

// A shutdown is announced to every client, and waits until all locks are released.
func TestLoginManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	m, err := serveLogin(t.Context(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := callBus(t, path)
	for _, method := range []struct {
		name string
		kind byte
		body string
	}{
		{"Hello", busReturn, string(busText(":1.1"))},
		{"Get", busReturn, "\x01t\x00\x00\x00\x00\x00\x00\x00\x87\x93\x03\x00\x00\x00\x00"}, // 60,000,000 microseconds
		{"AddMatch", busReturn, ""},
		{"PowerOff", busError, ""},
	} {
		if kind, body := c.call(method.name); kind != method.kind || string(body) != method.body {
			t.Errorf("%s: kind %d, %q, want %d, %q", method.name, kind, body, method.kind, method.body)
		}
	}
	lock := c.inhibit()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.announce(ctx) }()
	if kind, body := c.message(); kind != busSignal || string(body) != "\x01\x00\x00\x00" {
		t.Errorf("kind %d, %q, want a signal with true", kind, body)
	}
	cancel() // the lock is still held
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a shutdown that waits for a lock ended with %v", err)
	}
	go func() { ended <- m.announce(t.Context()) }()
	if err := unix.Close(lock); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after the lock is released: %v", err)
	}
}

// Bytes that are no message are refused.
func TestReadBusMessage(t *testing.T) {
	call := busMessage{kind: busCall, serial: 7, member: "Hello"}.encode()
	for what, text := range map[string]string{
		"nothing":      "",
		"cut":          string(call[:len(call)-9]),
		"other order":  "B" + string(call[1:]),
		"too long":     string(call[:4]) + "\xff\xff\xff\x7f" + string(call[8:]),
		"a long field": string(call[:20]) + "\xff\xff\xff\x7f" + string(call[24:]),
	} {
		if m, err := readBusMessage(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", what, m)
		}
	}
}
