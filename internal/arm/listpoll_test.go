package arm

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
)

// crowd is a collection in which many resources are created or deleted.
type crowd struct {
	makes  bool
	took   time.Duration // for each
	fails  string        // the name of the one that fails
	lists  int           // the status of a list
	mu     sync.Mutex
	began  map[string]time.Time
	polled map[string]int
	listed int
}

const collection = "/providers/microsoft.network/publicipaddresses"

func (c *crowd) answer(_ int, r request) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := azure.ID(r.path).Name()
	first, later := "10", "10"
	if c.makes {
		first, later = "1", "2"
	}
	switch over := time.Since(c.began[name]) >= c.took; {
	case r.method == "DELETE", r.method == "PUT":
		c.began[name] = time.Now()
		return answer{status: 202, header: header("Azure-AsyncOperation", endpoint+"/operations/"+name, "Retry-After", first)}
	case strings.HasSuffix(strings.ToLower(r.path), collection):
		c.listed++
		return answer{status: c.lists, body: c.list()}
	case name == c.fails && over:
		c.polled[name]++
		return answer{status: 200, body: `{"status":"Failed","error":{"code":"InternalServerError","message":"m"}}`}
	case over:
		c.polled[name]++
		return answer{status: 200, body: `{"status":"Succeeded"}`}
	default:
		c.polled[name]++
		return answer{status: 200, header: header("Retry-After", later), body: `{"status":"InProgress"}`}
	}
}

// list is the collection, with an element that has no poll.
func (c *crowd) list() string {
	all := []string{resource(pip("stays"), "Succeeded")}
	under, after := "Deleting", ""
	if c.makes {
		under, after = "Updating", "Succeeded"
	}
	for name, began := range c.began {
		state := after
		switch over := time.Since(began) >= c.took; {
		case !over:
			state = under
		case name == c.fails:
			state = "Failed"
		}
		if state != "" {
			all = append(all, resource(pip(name), state))
		}
	}
	return `{"value":[` + strings.Join(all, ",") + `]}`
}

func pip(name string) azure.ID { return group.Resource("Microsoft.Network/publicIPAddresses", name) }

// If many resources of one kind are deleted, lists show when each deletion is worth a poll. If many are created,
// lists show that each one is there.
func TestInCompany(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		makes         bool
		count, status int
		took          time.Duration
		fails         string
		lists, polls  int
		ends          time.Duration
		gives         time.Duration // the first caller gives up after that
		well          int           // so many are answered without error
	}{
		"many go":                    {count: 20, took: 16 * s, lists: 4, polls: 20, ends: 17500 * ms, well: 20},
		"many go, over in time":      {count: 20, took: 9 * s, lists: 1, polls: 20, ends: 10 * s, well: 20},
		"few go as if alone":         {count: enough - 1, took: 16 * s, polls: 2 * (enough - 1), ends: 20 * s, well: enough - 1},
		"no right to list deletions": {count: 20, status: 403, took: 16 * s, lists: 1, polls: 40, ends: 20 * s, well: 20},
		"one that goes fails":        {count: 20, took: 16 * s, fails: "p7", lists: 4, polls: 20, ends: 17500 * ms, well: 19},
		"the first to go gives up":   {count: 20, took: 16 * s, gives: 13 * s, lists: 4, polls: 19, ends: 17500 * ms, well: 19},
		"many are made":              {makes: true, count: 20, took: 1500 * ms, lists: 2, polls: 20, ends: 2 * s, well: 20},
		"many are made in time":      {makes: true, count: 20, took: 900 * ms, polls: 20, ends: 1 * s, well: 20},
		"many are made slowly":       {makes: true, count: 20, took: 3500 * ms, lists: 4, polls: 40, ends: 4 * s, well: 20},
		"few are made as if alone": {makes: true, count: enough - 1, took: 1500 * ms, polls: 2 * (enough - 1), ends: 3 * s,
			well: enough - 1},
		"no right to list the made": {makes: true, count: 20, status: 403, took: 1500 * ms, lists: 1, polls: 40, ends: 3 * s, well: 20},
		"one that is made fails":    {makes: true, count: 20, took: 1500 * ms, fails: "p7", lists: 2, polls: 21, ends: 3 * s, well: 19},
		"the first one made gives up": {makes: true, count: 20, took: 1500 * ms, gives: 1200 * ms, lists: 2, polls: 20,
			ends: 2 * s, well: 19},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &crowd{makes: c.makes, took: c.took, fails: c.fails, lists: or(c.status, 200), began: map[string]time.Time{},
					polled: map[string]int{}}
				d := open(t, &server{answer: l.answer})
				start := time.Now()
				errs := make([]error, c.count)
				var callers sync.WaitGroup
				for i := range c.count {
					callers.Go(func() {
						patience := 1000 * s
						if i == 0 {
							patience = or(c.gives, patience)
						}
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						id := pip(fmt.Sprintf("p%d", i))
						if c.makes {
							_, errs[i] = d.Put(ctx, azure.Write{ID: id, Body: azure.Document("{}"), Create: true, Unseen: true})
						} else {
							errs[i] = d.Delete(ctx, id)
						}
					})
				}
				callers.Wait()
				polls, well := 0, 0
				for _, n := range l.polled {
					polls += n
				}
				for i, err := range errs {
					if err == nil {
						well++
					} else if fmt.Sprintf("p%d", i) != c.fails && c.gives == 0 {
						t.Errorf("p%d: %v", i, err)
					}
				}
				if took := time.Since(start); l.listed != c.lists || polls != c.polls || took != c.ends || well != c.well {
					t.Errorf("%d lists, %d polls, %v, %d went well; want %d, %d, %v, %d", l.listed, polls, took, well, c.lists, c.polls,
						c.ends, c.well)
				}
			})
		})
	}
}
