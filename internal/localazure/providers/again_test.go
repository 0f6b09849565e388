package providers_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// notAgain are the types of which the same PUT changes something, as on Azure.
var notAgain = map[string]string{
	"Microsoft.KeyVault/vaults/secrets":    "each PUT makes a version, and a GET does not have the value",
	"Microsoft.Resources/deployments":      "each PUT is a deployment of its own, and a GET does not have the template",
	"Microsoft.Resources/deploymentStacks": "as deployments",
}

// unsettled are the members that a write changes by itself: they say when or in which form the resource was written.
var unsettled = []string{"etag", "systemData", "updatedOn", "lastUpdatedTime"}

// TestTheSameAgain sends the body of each type's example again, and then what a GET answers. Both change nothing.
func TestTheSameAgain(t *testing.T) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	bodies := samples()
	prepare(e, bodies)
	tried := 0
	for _, typ := range e.Types() {
		path := pathOf(typ.Name) + "?api-version=2025-05-01"
		if notAgain[typ.Name] != "" || typ.Name == "Microsoft.Resources/resourceGroups" {
			continue
		}
		for _, method := range []string{"DELETE", "PUT"} { // a new one, unless it is in use
			e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(sampleOf(bodies, typ.Name))))
		}
		before, there := seen(e, path)
		if !there {
			continue
		}
		shown, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range [][2]string{{"the same body", sampleOf(bodies, typ.Name)}, {"what a GET answers", string(shown)}} {
			what, body := c[0], c[1]
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest("PUT", path, strings.NewReader(body)))
			if w.Code == 405 || w.Code == 404 {
				continue
			}
			if w.Code >= 300 {
				t.Errorf("%s: %s: %d %s", typ.Name, what, w.Code, w.Body)
				continue
			}
			tried++
			after, _ := seen(e, path)
			if diff := cmp.Diff(settled(before), settled(after)); diff != "" {
				t.Errorf("%s: %s changes it (-before +after):\n%s", typ.Name, what, diff)
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d writes are made, want at least 200", tried)
	}
	t.Logf("%d writes", tried)
}

func seen(e *core.Emulator, path string) (any, bool) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	var view any
	there := w.Code == 200 && json.Unmarshal(w.Body.Bytes(), &view) == nil
	return view, there
}

// settled is a resource without what a write changes by itself.
func settled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		own := map[string]any{}
		for name, x := range v {
			own[name] = settled(x)
		}
		for _, name := range unsettled {
			delete(own, name)
		}
		return own
	case []any:
		own := make([]any, len(v))
		for i, x := range v {
			own[i] = settled(x)
		}
		return own
	}
	return value
}
