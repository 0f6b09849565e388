package contract

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// complaints collects what a judge says instead of failing.
type complaints struct {
	testing.TB
	texts []string
}

func (c *complaints) Errorf(_ string, args ...any) {
	c.texts = append(c.texts, args[len(args)-1].(string))
}

// The judge sees what is wrong with a reply.
func TestTheJudge(t *testing.T) {
	const table = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/routeTables/rt"
	const good = `{"id":"` + table + `","name":"rt","properties":{"provisioningState":"Succeeded","routes":[]}}`
	for _, c := range []struct {
		name, path, body, want string
		status                 int
	}{
		{"nothing is wrong", table, good, "", http.StatusOK},
		{"invented field", table, strings.Replace(good, `"routes":[]`, `"routes":[{"properties":{"nextHop":"x"}}]`, 1),
			"properties.routes[].properties.nextHop: unknown", http.StatusOK},
		{"field in another case", table, strings.Replace(good, "provisioningState", "ProvisioningState", 1), "ProvisioningState: unknown",
			http.StatusOK},
		{"wrong kind of value", table, strings.Replace(good, "[]", `"none"`, 1), "does not fit into", http.StatusOK},
		{"null", table, strings.Replace(good, "[]", "null", 1), "properties.routes: null", http.StatusOK},
		{"word that is none", table, strings.Replace(good, "Succeeded", "Done", 1), `"Done" is not one of`, http.StatusOK},
		{"foreign id", table, strings.Replace(good, "routeTables/rt", "routeTables/other", 1), "in the reply to", http.StatusOK},
		{"unknown type", "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/tables/t", good, "no model", http.StatusOK},
		{"list that is none", "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/routeTables", good, "not in a list",
			http.StatusOK},
		{"relative next link", "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/routeTables",
			`{"value":[],"nextLink":"/more"}`, "nextLink", http.StatusOK},
		{"error without a code", table, `{"error":{"message":"no"}}`, "code", http.StatusBadRequest},
		{"not JSON", table, `<html>`, "not JSON", http.StatusOK},
		{"nothing", table, ``, "without a body", http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := &complaints{TB: t}
			j := &judge{TB: said, next: replying(func(w http.ResponseWriter) {
				for _, name := range []string{"x-ms-request-id", "x-ms-correlation-request-id", "x-ms-routing-request-id"} {
					w.Header().Set(name, "any")
				}
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body)) // into memory
			})}
			reply, err := j.Do(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://management.local"+c.path, nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := reply.Body.Close(); err != nil {
				t.Fatal(err)
			}
			all := strings.Join(said.texts, "\n")
			if c.want == "" && all != "" || !strings.Contains(all, c.want) {
				t.Errorf("the judge says %q, want %q", all, c.want)
			}
		})
	}
}

// replying is a server without sockets.
type replying func(w http.ResponseWriter)

func (f replying) RoundTrip(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f(w)
	return w.Result(), nil
}
