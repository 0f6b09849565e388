package core_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
)

// A link to this machine or its network is refused with one error, whether something listens there or not.
func TestDownloadsOfThisMachine(t *testing.T) {
	asked := false
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer s.Close()
	_, open, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	errors := map[string]bool{}
	for _, host := range []string{"127.0.0.1:" + open, "127.0.0.1:1", "localhost:" + open, "[::1]:" + open, "[::ffff:127.0.0.1]:" + open,
		"0.0.0.0:" + open, "169.254.169.254", "10.0.0.1", "192.168.1.1:22", "[fe80::1]", "168.63.129.16", "100.64.0.1",
		"[64:ff9b::7f00:1]:" + open, "[2002:7f00:1::]"} {
		text, err := core.Download(t.Context(), "http://"+host+"/template.json")
		if err == nil {
			t.Errorf("%s: %q", host, text)
			continue
		}
		errors[err.Error()] = true
	}
	if asked || len(errors) != 1 {
		t.Errorf("something was asked: %v; the errors are %v", asked, strings.Join(keys(errors), "\n"))
	}
}

func keys(m map[string]bool) (all []string) {
	for key := range m {
		all = append(all, key)
	}
	return all
}
