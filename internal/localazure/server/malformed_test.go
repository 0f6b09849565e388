package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/client"
)

// send sends raw bytes and returns the response.
func send(t testing.TB, address, text string) []byte {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	// The server may close the connection before it has read everything.
	_, _ = io.WriteString(c, text)
	_ = c.(*net.TCPConn).CloseWrite()
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%.200q: no answer", text)
	}
	return answer
}

func isEnvelope(t testing.TB, sent string, answer []byte) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(answer))), nil)
	if err != nil {
		t.Errorf("%.200q: %q: %v", sent, answer, err)
		return
	}
	defer resp.Body.Close()
	var body struct {
		Error struct{ Code, Message string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || resp.StatusCode < 400 || body.Error.Code == "" ||
		body.Error.Message == "" {
		t.Errorf("%.200q: %q is no envelope: %v", sent, answer, err)
	}
}

func TestMalformedHTTP(t *testing.T) {
	a := startServer(t, Options{})
	address := client.HostOf(a.Info().ARMHTTP)
	for _, text := range []string{
		"nonsense\r\n\r\n",
		"GET /subscriptions HTTP/1.1\r\n\r\n", // no host
		"GET /subscriptions HTTP/1.1\r\nHost: a b\r\n\r\n",
		"GET /subscriptions HTTP/9.9\r\nHost: a\r\n\r\n",
		"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET // HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		"GET /subscriptions HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
		"PUT /subscriptions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
		"PUT /subscriptions HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
		"GET /subscriptions HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
	} {
		isEnvelope(t, text, send(t, address, text))
	}
}

// FuzzRequests sends arbitrary requests. Each response must be valid HTTP, and each error must have Azure's form.
func FuzzRequests(f *testing.F) {
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /adfs/oauth2/token HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na=b",
		"GET /vm/subscriptions/x/metadata/instance HTTP/1.1\r\nHost: a\r\nMetadata: true\r\n\r\n",
		"GET /msi/token?api-version=1 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metadata/endpoints HTTP/1.1\r\nHost: a\r\n\r\n",
		"PUT /subscriptions/s/resourceGroups/g?api-version=2021-04-01 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}",
	} {
		f.Add(text)
	}
	a, err := Start(f.Context(), Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = a.Close() })
	address := client.HostOf(a.Info().ARMHTTP)
	f.Fuzz(func(t *testing.T, text string) {
		answer := send(t, address, text)
		if len(answer) == 0 {
			return // not even a line: nothing was asked
		}
		if status := string(answer[:min(len(answer), 12)]); status >= "HTTP/1.1 500" && !strings.HasPrefix(status, "HTTP/1.1 501") &&
			!strings.HasPrefix(status, "HTTP/1.1 505") {
			t.Errorf("%q: %q", text, answer)
		}
	})
}
