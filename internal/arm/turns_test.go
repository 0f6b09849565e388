package arm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/arm"
	"kaz/internal/arm/budget"
	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

const (
	firstAnswer = 3 * time.Second // of a write of an instance
	ending      = 15 * time.Second
)

// scaleSets answer as compute does: a write after [firstAnswer], and its operation ends
// after [ending]. They refuse more requests for the instances of one scale set than allowed.
type scaleSets struct {
	mu      sync.Mutex
	allowed int
	flying  map[azure.ID]int
	due     map[string]time.Time
	writes  atomic.Int64
	refused atomic.Int64
}

func (s *scaleSets) Do(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		s.mu.Lock()
		defer s.mu.Unlock()
		if time.Now().Before(s.due[req.URL.Path]) {
			return answer(req, 200, `{"status":"InProgress"}`, map[string]string{"Retry-After": "10"}), nil
		}
		return answer(req, 200, `{"status":"Succeeded"}`, nil), nil
	}
	s.writes.Add(1)
	set := azure.ID(req.URL.Path).Parent()
	s.mu.Lock()
	s.flying[set]++
	many := s.flying[set] > s.allowed
	s.mu.Unlock()
	<-time.After(firstAnswer)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying[set]--
	if many {
		s.refused.Add(1)
		return answer(req, 409, `{"error":{"code":"Conflict","message":"busy"}}`, nil), nil
	}
	poll := fmt.Sprint("/subscriptions/s/operations/", s.writes.Load(), "-", len(s.due))
	s.due[poll] = time.Now().Add(ending)
	return answer(req, 202, `{"properties":{"provisioningState":"Updating"}}`,
		map[string]string{"Azure-AsyncOperation": "https://management.test" + poll, "Retry-After": "10"}), nil
}

func answer(req *http.Request, status int, body string, header map[string]string) *http.Response {
	r := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: req}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	return r
}

// Requests for the instances of one scale set wait for the first answer to the one before. Their
// operations run side by side, and so do the requests for another scale set.
func TestInstancesAreWrittenInTurn(t *testing.T) {
	const machines = 100
	for _, atOnce := range []int{0, 1, 5} {
		t.Run(fmt.Sprint(atOnce), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scaleSets{allowed: max(atOnce, 1), flying: map[azure.ID]int{}, due: map[string]time.Time{}}
				client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: s,
					Budget: budget.New(budget.Config{AtOnce: atOnce})})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				var wg sync.WaitGroup
				for _, set := range []string{"a", "b"} {
					for i := range machines {
						wg.Go(func() {
							_, err := client.Put(t.Context(), azure.Write{ID: instance(set, i), Body: []byte(`{}`), Unseen: true})
							if err != nil {
								t.Error(err)
							}
						})
					}
				}
				wg.Wait()
				took := time.Since(began)
				t.Logf("%v, %d writes", took, s.writes.Load())
				requests := time.Duration(machines/max(atOnce, 1)) * firstAnswer
				if most := requests + 2*ending; took < requests || took > most {
					t.Errorf("it took %v, want %v to %v", took, requests, most)
				}
				if s.writes.Load() != 2*machines || s.refused.Load() > 0 {
					t.Errorf("%d writes, %d of them refused, want %d and none", s.writes.Load(), s.refused.Load(), 2*machines)
				}
			})
		})
	}
}

// A caller that gives up before its turn sends nothing, and the turns go on.
func TestATurnIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scaleSets{allowed: 1, flying: map[azure.ID]int{}, due: map[string]time.Time{}}
		client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		put := func(ctx context.Context, i int) error {
			_, err := client.Put(ctx, azure.Write{ID: instance("a", i), Body: []byte(`{}`), Unseen: true})
			return err
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := put(t.Context(), 0); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := put(ctx, 1); azure.KindOf(err) != azure.Canceled || s.writes.Load() != 1 {
			t.Errorf("%v after %d writes", err, s.writes.Load())
		}
		wg.Wait()
		if err := put(t.Context(), 2); err != nil || s.writes.Load() != 2 {
			t.Errorf("%v after %d writes", err, s.writes.Load())
		}
	})
}

func instance(set string, i int) azure.ID {
	return group.Resource("Microsoft.Compute/virtualMachineScaleSets", set).Child("virtualMachines", fmt.Sprint(i))
}

// The local Azure refuses overlapping requests when it is told to.
func TestOverlappingRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocal(t, core.Options{Latency: 1})
		if err := l.azure.SetFaults([]core.Fault{{Method: "PUT", Type: "Microsoft.Network/publicIPAddresses",
			Fault: core.FaultOverlap}}); err != nil {
			t.Fatal(err)
		}
		var made, busy atomic.Int64
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				_, err := l.Put(t.Context(), azure.Write{ID: pip(fmt.Sprint(i)), Body: marshal(t, address())})
				switch {
				case err == nil:
					made.Add(1)
				case azure.KindOf(err) == azure.Busy:
					busy.Add(1)
				}
			})
		}
		wg.Wait()
		l.put(pip("later"), address())
		if made.Load() != 1 || busy.Load() != 2 {
			t.Errorf("%d were made and %d refused as busy, want 1 and 2", made.Load(), busy.Load())
		}
	})
}
