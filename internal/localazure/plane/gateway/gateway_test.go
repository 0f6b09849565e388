package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// A gateway passes requests on to the members of its pool in turn, and tells them about the client.
func TestPassesRequestsOn(t *testing.T) {
	w := start(t)
	b := w.backends("a", "b")
	w.serve(site(b[0].address, b[1].address))
	met := map[string]int{}
	c := w.client()
	for range 10 {
		got := w.ask(c, "http://example.com/x/y?z=1", "X-Forwarded-For", "192.0.2.1", "Connection", "X-Secret", "X-Secret", "1")
		name, rest, _ := strings.Cut(got.body, " ")
		met[name]++
		if rest != "GET example.com/x/y?z=1" {
			t.Errorf("the backend says %q", got.body)
		}
		for header, want := range map[string]string{"X-Forwarded-Proto": "http", "X-Forwarded-Port": "80", "X-Original-Host": "example.com",
			"X-Secret": "", "X-Original-Url": ""} {
			if had := got.Header.Get("Got-" + header); had != want {
				t.Errorf("the backend got %s: %q, want %q", header, had, want)
			}
		}
		if had := got.Header.Get("Got-X-Forwarded-For"); !strings.HasPrefix(had, "192.0.2.1, 127.0.0.1:") {
			t.Errorf("the backend got X-Forwarded-For: %q", had)
		}
	}
	if met["a"] != 5 || met["b"] != 5 {
		t.Errorf("the backends got %v requests, want 5 each", met)
	}
}

// A gateway without a backend for a request answers itself.
func TestNoBackend(t *testing.T) {
	w := start(t)
	b := w.backends("a")
	p := site(b[0].address)
	p["httpListeners"] = list{child("any", listener("80", "a.example.com")), child("empty", listener("80", "empty.example.com"))}
	p["backendAddressPools"] = list{pool("web", b[0].address), pool("empty")}
	p["requestRoutingRules"] = list{child("any", rule(10, "any", "web")), child("empty", rule(20, "empty", "empty"))}
	w.serve(p)
	w.status("http://a.example.com/", http.StatusOK)
	if got := w.status("http://empty.example.com/", http.StatusBadGateway); got.Header.Get("Server") !=
		"Microsoft-Azure-Application-Gateway/v2" {
		t.Errorf("the server is %q", got.Header.Get("Server"))
	}
	w.status("http://other.example.com/", http.StatusNotFound)
}
