package arm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/arm/budget"
	"kaz/internal/azure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestBudgetIsFair checks that a refusal stops all requests of its kind, and no others, until Azure's time is over.
// These go on in the order in which they came.
func TestBudgetIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 20 * time.Second
		var closedUntil time.Time
		var mu sync.Mutex
		s := &server{answer: func(n int, r request) answer {
			mu.Lock()
			defer mu.Unlock()
			if r.method == "PUT" && strings.Contains(r.path, "Microsoft.Network") {
				if n == 0 {
					closedUntil = time.Now().Add(wait)
				}
				if time.Now().Before(closedUntil) {
					return answer{status: 429, header: header("Retry-After", "20"), body: fail("TooManyRequests")}
				}
			}
			// Few requests are left, so they follow one another at a distance that shows the order.
			return answer{status: 200, header: header("x-ms-ratelimit-remaining-subscription-writes", "3"), body: `{"id":"x"}`}
		}}
		shared := budget.New(budget.Config{})
		share := func(c *Config) { c.Budget = shared }
		clients := []*Client{open(t, s, share), open(t, s, share)}
		put := func(d *Client, id azure.ID) {
			if _, err := d.Put(t.Context(), azure.Write{ID: id, Body: azure.Document(`{}`)}); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		var wg sync.WaitGroup
		start := time.Now()
		wg.Go(func() { put(clients[0], lb("first")) })
		synctest.Wait()
		for i := range 40 {
			wg.Go(func() { put(clients[i%2], lb(fmt.Sprintf("%02d", i))) })
			synctest.Wait()
		}
		// Requests of another provider do not wait. Neither do reads and deletes of this provider.
		put(clients[1], group.Resource("Microsoft.Compute/disks", "d"))
		if _, err := clients[1].Get(t.Context(), lb("l")); err != nil {
			t.Error(err)
		}
		if err := clients[1].Delete(t.Context(), lb("l")); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("others waited %v", waited)
		}
		wg.Wait()

		var order []string
		for _, r := range s.requests()[1:] {
			if r.method != "PUT" || !strings.Contains(r.path, "Network") {
				continue
			}
			if at := r.at.Sub(start); at < wait {
				t.Errorf("%s was sent after %v, want none before %v", r.path, at, wait)
			}
			order = append(order, azure.ID(r.path).Name())
		}
		// The refused request keeps its place, so it is still the first.
		if len(order) != 41 || order[0] != "first" || !slices.IsSorted(order[1:]) {
			t.Errorf("sent in the order %v", order)
		}
	})
}

// After a refusal, one request at a time tries whether Azure accepts requests again.
func TestBudgetProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := time.Now().Add(30 * time.Second)
		s := &server{answer: func(int, request) answer {
			if time.Now().Before(opens) {
				return answer{status: 429, header: header("Retry-After", "10"), body: fail("TooManyRequests"),
					after: 100 * time.Millisecond}
			}
			return answer{status: 200, body: `{"id":"x"}`, after: time.Second}
		}}
		d := open(t, s)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if i > 0 {
					<-time.After(time.Second) // the first one is refused alone
				}
				if _, err := d.Get(t.Context(), lb(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(s.requests()); n > 50+4 {
			t.Errorf("%d requests for 50 reads, want one per refusal: at most 54", n)
		}
	})
}

// TestBudgetCountsAlong checks that requests never exceed the count that Azure gives in its answers. Callers come one
// after another, or many at once with answers that come seconds later.
func TestBudgetCountsAlong(t *testing.T) {
	for name, c := range map[string]struct {
		tokens, callers int
		answers         time.Duration
		header          string
		least, most     time.Duration
	}{
		"many at once": {200, 300, 4 * time.Second, "x-ms-ratelimit-remaining-subscription-writes", 10 * time.Second,
			16 * time.Second},
		"few left": {20, 100, 100 * time.Millisecond, "x-ms-ratelimit-remaining-subscription-writes", 8 * time.Second,
			10 * time.Second},
		"a large count": {12000, 1000, time.Second, "x-ms-ratelimit-remaining-subscription-global-writes", time.Second,
			90 * time.Second},
		"no count is named":  {12000, 150, time.Second, "x-other", time.Second, time.Second},
		"afterwards no wait": {12000, 1000, 0, "x-other", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left, at := float64(c.tokens), time.Now()
				var mu sync.Mutex
				s := &server{answer: func(int, request) answer {
					mu.Lock()
					defer mu.Unlock()
					left, at = min(left+10*time.Since(at).Seconds(), float64(c.tokens)), time.Now()
					if left < 1 {
						return answer{status: 429, header: header("Retry-After", "1")}
					}
					left--
					return answer{status: 200, header: header(c.header, fmt.Sprint(int(left))), body: `{"id":"x"}`, after: c.answers}
				}}
				d := open(t, s)
				start := time.Now()
				var wg sync.WaitGroup
				for i := range c.callers {
					put := func() {
						if _, err := d.Put(t.Context(), azure.Write{ID: lb(fmt.Sprint(i)), Body: azure.Document(`{}`)}); err != nil {
							t.Error(err)
						}
					}
					if c.answers == 0 {
						put()
					} else {
						wg.Go(put)
					}
				}
				wg.Wait()
				if took := time.Since(start); took < c.least || took > c.most {
					t.Errorf("took %v, want %v to %v", took, c.least, c.most)
				}
				// Only a first refusal shows what another caller had used up before.
				if n, most := len(s.requests()), c.callers+max(200-c.tokens, 0); n > most {
					t.Errorf("%d requests for %d writes, want at most %d", n, c.callers, most)
				}
			})
		})
	}
}

func TestBudgetOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := script(answer{status: 200, body: `{"id":"x"}`})
		d := open(t, s, func(c *Config) {
			c.Budget = budget.New(budget.Config{LimitOf: func(fullType string) (budget.Limit, bool) {
				switch fullType {
				case "microsoft.network/loadbalancers":
					return budget.Limit{Name: "load balancers", Write: budget.Rate{PerSecond: 2, Burst: 1}}, true
				case "microsoft.network/routetables":
					return budget.Limit{}, false
				}
				read, write := budget.Rate{PerSecond: 100, Burst: 100}, budget.Rate{PerSecond: 1, Burst: 5}
				return budget.Limit{Name: "others", Read: read, Write: write}, true
			}})
		})
		start := time.Now()
		put := func(id azure.ID) {
			if _, err := d.Put(t.Context(), azure.Write{ID: id, Body: azure.Document(`{}`)}); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			put(lb("l"))
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("five writes took %v, want 2s at two a second", took)
		}
		start = time.Now()
		for range 7 {
			put(group.Resource("Microsoft.Compute/disks", "d"))
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("seven writes took %v, want 2s at one a second after five", took)
		}
		start = time.Now()
		for range 50 {
			put(group.Resource("Microsoft.Network/routeTables", "r"))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("fifty writes without a limit took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		put(lb("l"))
		if _, err := d.Put(ctx, azure.Write{ID: lb("l"), Body: azure.Document(`{}`)}); azure.KindOf(err) != azure.Throttled {
			t.Errorf("error %v, want throttled", err)
		}
	})
}

// TestBudgetForgetsCancelledCallers checks that a cancelled caller leaves the queue, and the next one
// moves up.
func TestBudgetForgetsCancelledCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(n int, _ request) answer {
			if n == 0 {
				return answer{status: 429, header: header("Retry-After", "60")}
			}
			return answer{status: 200, body: resource(lb("l"), "Succeeded")}
		}}
		d := open(t, s)
		var wg sync.WaitGroup
		start := time.Now()
		for i, patience := range []time.Duration{time.Hour, 5 * time.Second, time.Hour} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			wg.Go(func() {
				_, err := d.Get(ctx, lb("l"))
				if took := time.Since(start); err != nil && took != patience || err == nil && took != time.Minute {
					t.Errorf("caller %d: %v after %v", i, err, took)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if n := len(s.requests()); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
	})
}

// Compute counts per machine too. One machine that is written too often does not stop the others. When a second
// machine is refused meanwhile, the count is not that of a machine.
func TestBudgetOfMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vm := func(name string) azure.ID { return group.Resource("Microsoft.Compute/virtualMachines", name) }
		var mu sync.Mutex
		until := map[string]time.Time{}
		s := &server{answer: func(_ int, r request) answer {
			mu.Lock()
			defer mu.Unlock()
			if wait := time.Until(until[azure.ID(r.path).Name()]); wait > 0 {
				return answer{status: 429, header: header("Retry-After", fmt.Sprint(int(wait.Seconds()))),
					body: `{"code":"OperationNotAllowed","message":"m","details":[{"code":"TooManyRequests","target":"UpdateVM","message":"m"}]}`}
			}
			return answer{status: 200, body: `{"id":"x"}`}
		}}
		d := open(t, s)
		patch := func(name string) {
			if _, err := d.Patch(t.Context(), azure.Write{ID: vm(name), Body: azure.Document(`{}`)}); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		start := time.Now()
		until["hot"] = start.Add(15 * time.Second)
		wg.Go(func() { patch("hot") })
		synctest.Wait()
		wg.Go(func() { patch("hot") })
		patch("cool")
		if _, err := d.Get(t.Context(), vm("cool")); err != nil || time.Since(start) != 0 {
			t.Errorf("other machines waited %v, %v", time.Since(start), err)
		}
		mu.Lock()
		until["warm"] = start.Add(10 * time.Second)
		mu.Unlock()
		wg.Go(func() { patch("warm") })
		synctest.Wait()
		patch("cool")
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("after two refusals others waited %v, want 10s", waited)
		}
		wg.Wait()
		if sent, _ := s.trace(); len(sent) != 8 {
			t.Errorf("sent %q, want no more than two refusals", sent)
		}
	})
}

// A document that many share is written before the resources of single callers, even if it was requested last. The
// single requests are served in their order.
func TestSharedDocumentsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, request) answer {
			return answer{status: 200, header: header("x-ms-ratelimit-remaining-subscription-writes", "3"), body: `{"id":"x"}`}
		}}
		d := open(t, s)
		var wg sync.WaitGroup
		put := func(id azure.ID) {
			wg.Go(func() {
				if _, err := d.Put(t.Context(), azure.Write{ID: id, Body: azure.Document(`{}`)}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		var want []string
		for i := range 20 {
			name := fmt.Sprintf("%02d", i)
			put(pip(name))
			want = append(want, name)
		}
		put(lb("l"))
		put(group.Resource("Microsoft.Network/networkSecurityGroups", "n"))
		wg.Wait()
		var order []string
		for _, r := range s.requests() {
			order = append(order, azure.ID(r.path).Name())
		}
		want = slices.Insert(want, 1, "l", "n") // one of the others was sent already
		if !slices.Equal(order, want) {
			t.Errorf("sent in the order %v, want %v", order, want)
		}
	})
}

// TestPriorities checks the order of requests that wait for one limit of Azure. Detaching disks goes first, then
// attaching, then provisioning, then comparing. No request waits for ever.
func TestPriorities(t *testing.T) {
	vm := group.Resource("Microsoft.Compute/virtualMachines", "vm")
	kinds := []azure.Priority{azure.Compare, azure.Provision, azure.Attach, azure.Detach}
	names := []string{"compare", "provision", "attach", "detach"}
	for name, send := range map[string]func(ctx context.Context, d *Client, p azure.Priority, action string) error{
		"writes": func(ctx context.Context, d *Client, p azure.Priority, action string) error {
			_, err := azure.Do(ctx, d, azure.Request{Verb: azure.Post, ID: vm, Action: action, Priority: p})
			return err
		},
		"reads": func(ctx context.Context, d *Client, p azure.Priority, action string) error {
			_, err := azure.At(d, p).Get(ctx, vm.Child("extensions", action))
			return err
		},
		"lists": func(ctx context.Context, d *Client, p azure.Priority, action string) error {
			_, err := azure.At(d, p).List(ctx, azure.Query{Scope: vm, Type: "Microsoft.Compute/virtualMachines/" + action})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opens := time.Now().Add(40 * time.Second)
				s := &server{answer: func(int, request) answer {
					if time.Now().Before(opens) {
						return answer{status: 429, header: header("Retry-After", "40"), body: fail("SubscriptionRequestsThrottled")}
					}
					left := header("x-ms-ratelimit-remaining-subscription-writes", "3")
					left["x-ms-ratelimit-remaining-subscription-reads"] = "3"
					return answer{status: 200, header: left, body: `{"id":"x","value":[]}`}
				}}
				d := open(t, s, func(c *Config) { c.APIVersions = map[string]string{"Microsoft.Compute": "2025-04-01"} })
				var wg sync.WaitGroup
				var want []string
				ask := func(i int, number int) {
					action := fmt.Sprint(names[i], number)
					wg.Go(func() {
						if err := send(t.Context(), d, kinds[i], action); err != nil {
							t.Errorf("%s: %v", action, err)
						}
					})
					synctest.Wait()
				}
				for number := range 3 {
					for i := range kinds {
						ask(i, number)
					}
				}
				for i := range slices.Backward(kinds) {
					for number := range 3 {
						want = append(want, fmt.Sprint(names[i], number))
					}
				}
				wg.Wait()
				var order []string
				for _, r := range s.requests()[1:] { // of which Azure refused the first
					order = append(order, azure.ID(r.path).Name())
				}
				if !slices.Equal(order, want) {
					t.Errorf("sent in the order %v, want %v", order, want)
				}
			})
		})
	}
}

// TestLowPriorityIsServed checks that a request of a low priority is sent even if more requests of a higher one come
// than Azure accepts. After three head starts, all requests that were there before have been served.
func TestLowPriorityIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int, request) answer { // of which Azure accepts ten a second
			return answer{status: 200, header: header("x-ms-ratelimit-remaining-subscription-writes", "3"), body: `{"id":"x"}`}
		}}
		d := open(t, s)
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		put := func(name string, p azure.Priority) {
			wg.Go(func() {
				_, err := azure.Do(ctx, d, azure.Request{Verb: azure.Put, ID: pip(name), Body: azure.Document(`{}`), Priority: p})
				if err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		put("detach", azure.Detach)
		began := time.Now()
		put("compare", azure.Compare)
		for time.Since(began) < 5*time.Minute {
			put("detach", azure.Detach)
			<-time.After(90 * time.Millisecond)
		}
		end()
		wg.Wait()
		for _, r := range s.requests() {
			if azure.ID(r.path).Name() == "compare" {
				if waited := r.at.Sub(began); waited < 3*time.Minute || waited > 4*time.Minute {
					t.Errorf("it was sent after %v, want between %v and %v", waited, 3*time.Minute, 4*time.Minute)
				}
				return
			}
		}
		t.Error("it was never sent")
	})
}
