package contract

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"kaz/internal/localazure/core"
)

// The same over a real socket: certificates, HTTP/2, no time to wait.
func TestOverTLS(t *testing.T) {
	e := build(t, core.Options{})
	server := httptest.NewUnstartedServer(e)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	dated := &dated{TB: t, next: server.Client().Transport}
	a := connect(t, &judge{TB: t, next: dated}, server.URL)
	a.Emulator = e
	routeTables().run(a)
	if dated.replies == 0 {
		t.Error("no replies were seen")
	}
}

// dated checks what the server, and not the handler, adds to replies.
type dated struct {
	testing.TB
	next    http.RoundTripper
	replies int
}

func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := d.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	d.replies++
	if _, err := time.Parse(http.TimeFormat, reply.Header.Get("Date")); err != nil {
		d.Errorf("%s %s: Date: %v", r.Method, r.URL.Path, err)
	}
	if reply.ProtoMajor != 2 {
		d.Errorf("%s %s: %s, want HTTP/2", r.Method, r.URL.Path, reply.Proto)
	}
	return reply, nil
}
