package proxy

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// echo echoes every line and ends when its client does.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // until the client has sent all
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// connect requests a tunnel from the proxy.
func connect(t *testing.T, proxy, host string) (net.Conn, *bufio.Reader, int) {
	t.Helper()
	c, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return c, r, resp.StatusCode
}

func TestProxy(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	target := echo(t)
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Target: target, Log: slog.New(slog.DiscardHandler)}
	server := httptest.NewServer(p)
	defer server.Close()
	address := server.Listener.Addr().String()

	for host, want := range map[string]int{
		"management.azure.com:443": 200, "westeurope.management.azure.com:443": 200, "LOGIN.microsoftonline.com:443": 200,
		"login.chinacloudapi.cn:443": 200, "management.usgovcloudapi.net:443": 200, "registry.azurecr.io:443": 200,
		"registry.azurecr.cn:443": 200,
		"sts.windows.net:443":     200, "westus2.login.microsoft.com:443": 200, "127.0.0.1:" + port: 200, "localhost:" + port: 200,
		"[::1]:" + port: 200,
		"127.0.0.1:1":   403, "example.org:443": 403, "management.azure.com:80": 403, "xmanagement.azure.com:443": 403,
		"azurecr.io:443": 403, "management.azure.com.example.org:443": 403, "10.0.0.1:" + port: 403, "169.254.169.254:80": 403,
	} {
		c, r, status := connect(t, address, host)
		if status != want {
			t.Errorf("%s: %d, want %d", host, status, want)
		}
		if status != http.StatusOK {
			continue
		}
		if _, err := io.WriteString(c, "hello\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := r.ReadString('\n'); err != nil || line != "hello\n" {
			t.Errorf("%s: %q, %v", host, line, err)
		}
		// The end of one direction reaches the other side, and its end comes back.
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
			t.Errorf("%s: %q, %v after the end", host, rest, err)
		}
	}
	// Close closes all tunnels and refuses new tunnels.
	_, r, status := connect(t, address, "management.azure.com:443")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("a tunnel outlived the proxy")
	}
}

func TestUnreachableTarget(t *testing.T) {
	server := httptest.NewServer(&Proxy{Target: "127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	defer server.Close()
	if _, _, status := connect(t, server.Listener.Addr().String(), "management.azure.com:443"); status != http.StatusBadGateway {
		t.Errorf("%d, want 502", status)
	}
}
