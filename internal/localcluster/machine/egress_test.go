package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// The API server's connections go where the proxy dials, in both directions, and what cannot be reached is said.
func TestEgress(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "egress"))
	if err != nil {
		t.Fatal(err)
	}
	echo, inside := net.Pipe()
	go func() {
		text, _ := bufio.NewReader(echo).ReadString('\n')
		fmt.Fprint(echo, "you said ", text)
		echo.Close()
	}()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- Egress{Log: slog.New(slog.DiscardHandler), Dial: func(_ context.Context, address string) (net.Conn, error) {
			if address != "10.240.0.4:10250" {
				return nil, errors.New("no machine has that address")
			}
			return inside, nil
		}}.Serve(ctx, l)
	}()
	if status, _ := connect(t, l, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	if status, text := connect(t, l,
		"CONNECT 10.9.9.9:10250 HTTP/1.1\r\nHost: 10.9.9.9:10250\r\nConnection: close\r\n\r\n"); status != http.StatusBadGateway ||
		!strings.Contains(text, "no machine") {
		t.Errorf("an unknown address: %d %s", status, text)
	}
	// What is said right after the request arrives too.
	if status, text := connect(t, l,
		"CONNECT 10.240.0.4:10250 HTTP/1.1\r\nHost: 10.240.0.4:10250\r\n\r\nhello\n"); status != http.StatusOK ||
		text != "you said hello\n" {
		t.Errorf("%d %q", status, text)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// connect sends a request and returns the answer and all that follows it.
func connect(t *testing.T, l net.Listener, request string) (int, string) {
	t.Helper()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	answer, err := http.ReadResponse(r, &http.Request{Method: strings.Fields(request)[0]})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var rest io.Reader = answer.Body
	if answer.StatusCode == http.StatusOK {
		rest = r
	}
	text, err := io.ReadAll(rest)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}
