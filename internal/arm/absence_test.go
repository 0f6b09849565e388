package arm_test

import (
	"net/http"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

// A replica of Azure answers once, or twice in a row, that a resource seen by the client is not there. The client
// does not believe a single such answer.
func TestOneAnswerIsNotBelieved(t *testing.T) {
	for times, believed := range map[int]bool{1: false, 2: true} {
		for _, first := range []string{"read", "written"} {
			l := newLocal(t, core.Options{})
			l.put(pip("p"), address())
			addresses := azure.Query{Scope: group, Type: "Microsoft.Network/publicIPAddresses"}
			if first == "read" {
				l = l.again(t)
				get(t, l, pip("p"), true)
				list(t, l, addresses, 1)
			}
			lie := func() {
				if err := l.azure.SetFaults([]core.Fault{{Method: "GET", Fault: core.FaultAbsent, Times: times}}); err != nil {
					t.Fatal(err)
				}
			}
			lie()
			get(t, l, pip("p"), !believed)
			if first == "read" {
				lie()
				list(t, l, addresses, map[bool]int{false: 1, true: 0}[believed])
			}
		}
	}
}

// The client reads only once what it deleted itself, or never saw.
func TestAbsenceIsReadOnce(t *testing.T) {
	l := newLocal(t, core.Options{})
	addresses := azure.Query{Scope: group, Type: "Microsoft.Network/publicIPAddresses"}
	l.put(pip("p"), address())
	get(t, l, pip("p"), true)
	list(t, l, addresses, 1)
	if err := l.Delete(t.Context(), pip("p")); err != nil {
		t.Fatal(err)
	}
	before := l.requests.Load()
	get(t, l, pip("p"), false)
	get(t, l, pip("never"), false)
	list(t, l, addresses, 0)
	if sent := l.requests.Load() - before; sent != 3 {
		t.Errorf("%d reads, want 3", sent)
	}
}

// If the cloud has regional endpoints, the client reads there again what Azure says is absent, seen before or not. If
// that read fails, the first answer counts.
func TestAbsenceIsConfirmedInTheRegion(t *testing.T) {
	for name, c := range map[string]struct {
		region  int // status of the regional endpoint
		there   bool
		regions int
	}{
		"it is there":      {200, true, 1},
		"it is not":        {404, false, 1},
		"no such endpoint": {503, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			regional := 0
			client, err := arm.New(arm.Config{Endpoint: "https://management.test", Regional: "https://eastus.management.test",
				Transport: doer(func(req *http.Request) (*http.Response, error) {
					if req.URL.Host != "eastus.management.test" {
						return answer(req, 404, `{"error":{"code":"ResourceNotFound","message":"none"}}`, nil), nil
					}
					regional++
					return answer(req, c.region, `{"id":"`+string(pip("p"))+`"}`, nil), nil
				})})
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Get(t.Context(), pip("p"))
			if azure.IsNotFound(err) == c.there || c.there && err != nil || regional != c.regions {
				t.Errorf("%v after %d reads in the region", err, regional)
			}
		})
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(req *http.Request) (*http.Response, error) { return d(req) }

// again is another client of the same Azure.
func (l *local) again(t *testing.T) *local {
	t.Helper()
	next := &local{azure: l.azure, t: t, carry: l.carry}
	var err error
	if next.Cache, err = overAzure(next); err != nil {
		t.Fatal(err)
	}
	return next
}

func get(t *testing.T, l *local, id azure.ID, there bool) {
	t.Helper()
	if _, err := l.Fresh().Get(t.Context(), id); azure.IsNotFound(err) == there || there && err != nil {
		t.Errorf("read %s: %v; want it there: %v", id.Name(), err, there)
	}
}

func list(t *testing.T, l *local, q azure.Query, want int) {
	t.Helper()
	if docs, err := l.Fresh().List(t.Context(), q); err != nil || len(docs) != want {
		t.Errorf("list of %d, %v; want %d", len(docs), err, want)
	}
}
