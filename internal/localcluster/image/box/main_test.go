package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAggregated checks what the aggregator of an API server and its clients get: the resources of the group, and an object that
// names the caller.
func TestAggregated(t *testing.T) {
	server := httptest.NewServer(aggregated())
	defer server.Close()
	get := func(path string) (int, map[string]any) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Remote-User", "someone")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var o map[string]any
		if answer.StatusCode == http.StatusOK {
			if err := json.NewDecoder(answer.Body).Decode(&o); err != nil {
				t.Fatal(err)
			}
		}
		return answer.StatusCode, o
	}
	if _, o := get("/apis/kaz.test/v1"); o["kind"] != "APIResourceList" || o["groupVersion"] != "kaz.test/v1" {
		t.Errorf("the resources are %v", o)
	}
	_, o := get("/apis/kaz.test/v1/answers/mine")
	at := server.Listener.Addr().(*net.TCPAddr).String()
	if text, _ := o["answer"].(string); o["user"] != "someone" || !strings.Contains(text, at) {
		t.Errorf("the object is %v, want the user and %s", o, at)
	}
	if code, _ := get("/apis/kaz.test/v1/others"); code != http.StatusNotFound {
		t.Errorf("another resource: %d", code)
	}
}
