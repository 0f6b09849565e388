package traffic_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/traffic"
	"kaz/internal/localazure/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	group   = azure.GroupID(core.DefaultSubscription, "rg")
	profile = group.Resource("Microsoft.Network/trafficManagerProfiles", "tm")
)

// profiles is a local Azure whose probes have no times between them.
type profiles struct {
	testing.TB
	azure *core.Emulator
}

func start(t *testing.T) profiles {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	after := func(time.Duration) <-chan time.Time { return time.After(time.Millisecond) }
	s := traffic.Start(t.Context(), traffic.Options{Azure: e, After: after, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w := profiles{t, e}
	w.do(http.MethodPut, group, `{"location":"westeurope"}`)
	return w
}

func (w profiles) do(method string, id azure.ID, body string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, "https://management.azure.com"+string(id)+"?api-version=2022-04-01",
		bytes.NewBufferString(body))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.azure.Transport().RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		w.Fatalf("%s %s: %s", method, id, answer.Status)
	}
}

// wait waits until a resource shows a state at a path.
func (w profiles) wait(id azure.ID, path, want string) {
	w.Helper()
	got := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-time.After(2 * time.Millisecond) {
		w.azure.Look(func(in behaviour.World) {
			view, _ := in.View(id)
			got = behaviour.Text(view, path)
		})
		if got == want {
			return
		}
	}
	w.Fatalf("%s shows %s, want %s", id, got, want)
}

const (
	endpointState = "properties.endpointMonitorStatus"
	profileState  = "properties.monitorConfig.profileMonitorStatus"
)

// write writes the profile with an endpoint at a server.
func (w profiles) write(s *httptest.Server, monitor string) azure.ID {
	w.Helper()
	at, err := url.Parse(s.URL)
	if err != nil {
		w.Fatal(err)
	}
	w.do(http.MethodPut, profile, fmt.Sprintf(`{"location":"global","properties":{"trafficRoutingMethod":"Priority",
		"dnsConfig":{"relativeName":"mine"},"monitorConfig":{"port":%s,%s},"endpoints":[
		{"name":"e","type":"Microsoft.Network/trafficManagerProfiles/externalEndpoints","properties":{"target":%q}}]}}`,
		at.Port(), monitor, at.Hostname()))
	return profile.Child("externalEndpoints", "e")
}

func TestProbes(t *testing.T) {
	var code atomic.Int32
	code.Store(http.StatusOK)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() != "/health?x=1" || r.Host != "web.example.com" || r.Header.Get("X-Probe") != "yes" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.WriteHeader(int(code.Load()))
	})
	for _, test := range []struct {
		protocol string
		server   *httptest.Server
	}{{"HTTP", httptest.NewServer(answer)}, {"HTTPS", httptest.NewTLSServer(answer)}} {
		t.Run(test.protocol, func(t *testing.T) {
			defer test.server.Close()
			code.Store(http.StatusOK)
			w := start(t)
			e := w.write(test.server, `"protocol":"`+test.protocol+`","path":"/health?x=1","toleratedNumberOfFailures":2,
				"expectedStatusCodeRanges":[{"min":200,"max":202}],
				"customHeaders":[{"name":"Host","value":"web.example.com"},{"name":"X-Probe","value":"yes"}]`)
			w.wait(e, endpointState, "Online")
			w.wait(profile, profileState, "Online")
			code.Store(http.StatusFound) // a redirect is not followed
			w.wait(e, endpointState, "Degraded")
			w.wait(profile, profileState, "Degraded")
			code.Store(http.StatusAccepted)
			w.wait(e, endpointState, "Online")
			w.do(http.MethodPatch, e, `{"properties":{"endpointStatus":"Disabled"}}`)
			w.wait(e, endpointState, "Disabled")
			w.wait(profile, profileState, "Inactive")
		})
	}
}

func TestProbesOfConnections(t *testing.T) {
	w := start(t)
	s := httptest.NewServer(http.NotFoundHandler())
	e := w.write(s, `"protocol":"TCP","toleratedNumberOfFailures":0`)
	w.wait(e, endpointState, "Online")
	s.Close()
	w.wait(e, endpointState, "Degraded")
	w.do(http.MethodPatch, e, `{"properties":{"alwaysServe":"Enabled"}}`)
	w.wait(e, endpointState, "Unmonitored")
	w.do(http.MethodDelete, profile, "")
}
