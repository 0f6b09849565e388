package healthproxy

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// spoken is a connection with a closed other side.
type spoken struct{ io.Reader }

func (spoken) Write(b []byte) (int, error)      { return len(b), nil }
func (spoken) Close() error                     { return nil }
func (spoken) LocalAddr() net.Addr              { return to }
func (spoken) RemoteAddr() net.Addr             { return from }
func (spoken) SetDeadline(time.Time) error      { return nil }
func (spoken) SetReadDeadline(time.Time) error  { return nil }
func (spoken) SetWriteDeadline(time.Time) error { return nil }

// opened returns what remains of a connection after the PROXY header.
func opened(t *testing.T, says []byte) ([]byte, *conn, error) {
	t.Helper()
	p := newProxy(Config{Target: &url.URL{Scheme: "http", Host: "localhost"}, Log: slog.New(slog.DiscardHandler)}, http.DefaultTransport)
	listener := newPipes()
	go func() { listener.conns <- spoken{bytes.NewReader(says)} }()
	c, err := p.open(listener).Accept()
	if err != nil {
		t.Fatal(err)
	}
	of, ok := c.(*conn)
	if !ok {
		t.Fatalf("a %T was accepted", c)
	}
	rest, err := io.ReadAll(struct{ io.Reader }{of}) // net/http only uses Read
	return rest, of, err
}

// FuzzHeader sends any bytes. Nothing panics. What remains is a suffix of the bytes: all of them
// without a header, and none after an invalid header.
func FuzzHeader(f *testing.F) {
	request := "GET /healthz HTTP/1.1\r\n\r\n"
	f.Add([]byte(request))
	f.Add([]byte("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\n" + request))
	f.Add([]byte("PROXY TCP4 1.2.3.4 5.6.7.8 9 99999\r\n" + request))
	f.Add([]byte("P"))
	f.Add([]byte("\r\n\r\n"))
	f.Add(append(format(f, proxyproto.HeaderProxyFromAddrs(2, from, to), proxyproto.TLV{Type: 0xEE, Value: []byte{1, 2, 3, 4, 5}}),
		request...))
	f.Add(append(append([]byte{}, proxyproto.SIGV2...), "\x20\x00\x00\x00GET"...))
	f.Add(append(append([]byte{}, proxyproto.SIGV2...), "\x21\x00\x00\x00GET"...))
	f.Fuzz(func(t *testing.T, says []byte) {
		rest, c, err := opened(t, says)
		// The methods that net/http calls.
		_, _ = c.RemoteAddr().String(), c.LocalAddr().String()
		if !bytes.HasSuffix(says, rest) {
			t.Fatalf("%q was left of %q", rest, says)
		}
		switch signed := bytes.HasPrefix(says, proxyproto.SIGV1) || bytes.HasPrefix(says, proxyproto.SIGV2); {
		case !signed && (err != nil || len(rest) != len(says)):
			t.Fatalf("without a header %q was left of %q: %v", rest, says, err)
		case signed && err == nil && c.ProxyHeader() == nil:
			t.Fatalf("%q has a signature and is neither a header nor refused", says)
		case err != nil && (!malformed(err) || len(rest) > 0):
			t.Fatalf("%q: %q and %v", says, rest, err)
		}
	})
}

// FuzzRoundTrip sends a valid header and then any bytes, which arrive unchanged.
func FuzzRoundTrip(f *testing.F) {
	f.Add(true, []byte{1, 2, 3, 4}, []byte{5, 6, 7, 8}, uint16(1), uint16(2), []byte("link"), []byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add(false, []byte("0123456789abcdef"), []byte("fedcba9876543210"), uint16(0), uint16(65535), []byte{}, []byte("PROXY UNKNOWN\r\n"))
	f.Fuzz(func(t *testing.T, first bool, source, destination []byte, sourcePort, destinationPort uint16, tlv, says []byte) {
		version := byte(2)
		if first {
			version = 1
		}
		if len(source) != len(destination) || net.IP(source).To16() == nil || len(tlv) > 1000 {
			return
		}
		h := proxyproto.HeaderProxyFromAddrs(version, &net.TCPAddr{IP: source, Port: int(sourcePort)},
			&net.TCPAddr{IP: destination, Port: int(destinationPort)})
		if version == 2 {
			if err := h.SetTLVs([]proxyproto.TLV{{Type: 0xEE, Value: tlv}}); err != nil {
				t.Fatal(err)
			}
		}
		header, err := h.Format()
		if err != nil {
			t.Fatal(err)
		}
		rest, c, err := opened(t, append(header, says...))
		if err != nil || !bytes.Equal(rest, says) || c.ProxyHeader().Version != version {
			t.Fatalf("%q left of %q: %v", rest, says, err)
		}
	})
}
