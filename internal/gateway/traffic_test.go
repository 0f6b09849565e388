package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	networking "k8s.io/api/networking/v1"

	"kaz/internal/localazure/core"
	localgateway "kaz/internal/localazure/plane/gateway"
)

// TestTraffic sends requests to the frontends of the local Azure's gateway, which the controller has written for Ingresses.
func TestTraffic(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(rw, "%s %s", r.Host, r.URL.Path) // a client that has gone does not read it
	}))
	defer backend.Close()
	i := web("web", "a.example.com", "web", 1, "ssl-redirect", "true")
	i.Spec.TLS = []networking.IngressTLS{{SecretName: "tls"}}
	api := web("api", "b.example.com", "web", 2, "backend-path-prefix", "/v2/")
	api.Spec.Rules[0].HTTP.Paths[0].Path = "/api"
	w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(), i, api, secret(t, "tls"))...)
	loopback := &localgateway.Loopback{Backends: func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", backend.Listener.Addr().String())
	}}
	plane := localgateway.Start(t.Context(), localgateway.Options{Azure: w.Emulator, Network: loopback, Log: slog.New(slog.DiscardHandler)})
	defer func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	}()
	w.config.Calm = time.Millisecond
	w.run(t)
	defer w.stop()
	transport := w.transport(loopback)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for url, answer := range map[string]string{
		"https://a.example.com/x":     "200 a.example.com /x",
		"http://a.example.com/x?y=1":  "301 https://a.example.com/x?y=1",
		"http://b.example.com/api/x":  "200 b.example.com /v2/x",
		"http://b.example.com/apiary": "502",
		"http://c.example.com/":       "404",
	} {
		got := ""
		for deadline := time.Now().Add(20 * time.Second); got != answer && time.Now().Before(deadline); {
			got = ask(t, client, url)
		}
		want(t, url, got, answer)
	}
}

// ask returns the status of an answer, with where it leads or what it says.
func ask(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err.Error()
	case answer.StatusCode == http.StatusOK:
		return fmt.Sprintf("%d %s", answer.StatusCode, text)
	case answer.Header.Get("Location") != "":
		return fmt.Sprintf("%d %s", answer.StatusCode, answer.Header.Get("Location"))
	}
	return fmt.Sprint(answer.StatusCode)
}
