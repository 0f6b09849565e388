package fabric_test

import (
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	prober "kaz/internal/localazure/plane/fabric/health"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// router returns the name of the router's namespace of the only network.
func (w *lab) router() string {
	w.Helper()
	entries, err := os.ReadDir(netns.Dir)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "kaz-"+w.instance+"-") && !strings.HasSuffix(name, "-gw") &&
			!strings.HasSuffix(name, "-internet") {
			return name
		}
	}
	w.Fatal("the network has no router")
	return ""
}

// A backend is healthy if it answers 200 over HTTP and HTTPS, or accepts a connection.
func TestProbes(t *testing.T) {
	t.Parallel()
	w := start(t)
	m := w.machine("m", nodes, nil, nil)
	for port, protocol := range map[string]string{":80": "Http", ":443": "Https"} {
		l := m.listen(port)
		s := &http.Server{TLSConfig: certificate(w), Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			from := netip.MustParseAddrPort(r.RemoteAddr).Addr().Unmap().WithZone("")
			switch {
			case from != wiring.Platform && from != wiring.Gateway6:
				rw.WriteHeader(http.StatusForbidden)
			case r.URL.Path == "/moved":
				http.Redirect(rw, r, "/well", http.StatusFound)
			case r.URL.RequestURI() != "/well?yes":
				rw.WriteHeader(http.StatusServiceUnavailable)
			}
		})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if protocol == "Https" {
				_ = s.ServeTLS(l, "", "")
			} else {
				_ = s.Serve(l)
			}
		}()
		t.Cleanup(func() { s.Close(); <-done })
	}
	device := "n0a010004"
	for _, c := range []struct {
		protocol, path string
		port           int
		well           bool
	}{
		{"Tcp", "", 80, true}, {"Tcp", "", 81, false},
		{"Http", "/well?yes", 80, true}, {"Http", "well?yes", 80, true}, {"Http", "/ill", 80, false}, {"Http", "/moved", 80, false},
		{"Http", "/well?yes", 81, false},
		{"Https", "/well?yes", 443, true}, {"Https", "/ill", 443, false}, {"Https", "/well?yes", 80, false},
	} {
		for _, a := range []netip.Addr{m.v4, m.v6} {
			err := prober.Probe(t.Context(),
				wiring.Probe{Namespace: w.router(), Device: device, Address: a, Protocol: c.protocol, Port: c.port, Path: c.path,
					Interval: time.Minute})
			if (err == nil) != c.well {
				t.Errorf("%+v at %s: %v", c, a, err)
			}
		}
	}
}
