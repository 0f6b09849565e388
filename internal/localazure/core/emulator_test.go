package core_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

const group = "/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg"

// answer is a reply as the tests look at it.
type answer struct {
	status int
	header http.Header
	body   behaviour.Object
}

func (a answer) code() string { return behaviour.Text(a.body, "error.code") }

// azureUnderTest sends requests to an emulator on the caller's goroutine.
type azureUnderTest struct {
	testing.TB
	*core.Emulator
}

func start(t testing.TB, o core.Options) azureUnderTest {
	t.Helper()
	if o.Providers == nil {
		o.Providers = []behaviour.Provider{pilots()}
	}
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return azureUnderTest{t, e}
}

func (a azureUnderTest) do(method, url, body string, header ...string) answer {
	a.Helper()
	if !strings.Contains(url, "api-version=") {
		sep := "?"
		if strings.Contains(url, "?") {
			sep = "&"
		}
		url += sep + "api-version=2025-05-01"
	}
	r := httptest.NewRequest(method, url, bytes.NewBufferString(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	got := answer{status: w.Code, header: w.Header()}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &got.body); err != nil {
			a.Fatalf("%s %s: reply %d is not a JSON object: %v\n%s", method, url, w.Code, err, w.Body)
		}
	}
	return got
}

// must sends a request that has to succeed.
func (a azureUnderTest) must(method, url, body string, header ...string) answer {
	a.Helper()
	got := a.do(method, url, body, header...)
	if got.status >= http.StatusMultipleChoices {
		a.Fatalf("%s %s: %d %v", method, url, got.status, got.body)
	}
	return got
}

func (a azureUnderTest) group() { a.Helper(); a.must("PUT", group, `{"location":"East US"}`) }

const (
	table   = group + "/providers/Microsoft.Network/routeTables/rt"
	address = group + "/providers/Microsoft.Network/publicIPAddresses/ip"
)

func TestAChildLivesInItsParentsDocument(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	if got := a.must("PUT", table,
		`{"location":"eastus","properties":{"routes":[{"name":"a","properties":{"addressPrefix":"10.0.0.0/24",
			"nextHopType":"VnetLocal"}}]}}`); got.status != 201 {
		t.Fatalf("create: %d", got.status)
	}
	a.must("PUT", strings.ToLower(table)+"/routes/b", `{"properties":{"addressPrefix":"10.0.1.0/24","nextHopType":"VnetLocal"}}`)
	got := a.must("GET", table, "")
	routes := behaviour.Objects(got.body, "properties.routes")
	if len(routes) != 2 {
		t.Fatalf("routes of the table: %v", got.body)
	}
	for _, r := range routes {
		if r["etag"] != got.body["etag"] || r["type"] != "Microsoft.Network/routeTables/routes" ||
			r["id"] != table+"/routes/"+behaviour.Text(r, "name") || behaviour.Text(r, "properties.provisioningState") != "Succeeded" {
			t.Errorf("route %v in a table with etag %v", r, got.body["etag"])
		}
	}
	if got := a.must("DELETE", table+"/routes/a", ""); got.status != 202 {
		t.Errorf("delete of a route: %d", got.status)
	}
	list := a.must("GET", table+"/routes", "")
	if n := len(behaviour.Objects(list.body, "value")); n != 1 {
		t.Errorf("%d routes after the delete of one of two: %v", n, list.body)
	}
}
