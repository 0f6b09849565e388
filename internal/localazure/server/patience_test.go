package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A client that stops in the middle of a body is answered and let go, whether the handler reads the body or not. A slow client is
// served, and a long handler is not interrupted.
func TestBodyTimeout(t *testing.T) {
	const timeout = 300 * time.Millisecond
	s := httptest.NewServer(withBodyTimeout(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unread" {
			http.Error(w, "not read", http.StatusForbidden)
			return
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if r.URL.Path == "/long" {
			select {
			case <-time.After(3 * timeout):
			case <-r.Context().Done():
				http.Error(w, "interrupted", http.StatusInternalServerError)
				return
			}
		}
		fmt.Fprintf(w, "%d bytes", len(text))
	}), timeout))
	t.Cleanup(s.Close)
	for name, c := range map[string]struct {
		path        string
		size, parts int
		status      int
	}{
		"stops, read":     {"/", 100, 1, 400},
		"stops, not read": {"/unread", 100, 1, 403},
		"slow":            {"/", 6, 6, 200},
		"long":            {"/long", 1, 1, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", c.path, c.size)
			for range c.parts {
				fmt.Fprint(conn, "x")
				<-time.After(timeout / 3)
			}
			if err := conn.SetReadDeadline(time.Now().Add(20 * timeout)); err != nil {
				t.Fatal(err)
			}
			reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer reply.Body.Close()
			if reply.StatusCode != c.status {
				t.Errorf("status %d, want %d", reply.StatusCode, c.status)
			}
		})
	}
}
