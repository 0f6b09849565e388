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

// leavers is a collection of which much is deleted.
type leavers struct {
	took   time.Duration // to delete one
	fails  string        // the name of one whose deletion fails
	lists  int           // the status of a list
	mu     sync.Mutex
	began  map[string]time.Time
	polled map[string]int
	listed int
}

const collection = "/providers/microsoft.network/publicipaddresses"

func (l *leavers) answer(_ int, r request) answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := azure.ID(r.path).Name()
	wait := header("Retry-After", "10")
	switch over := time.Since(l.began[name]) >= l.took; {
	case r.method == "DELETE":
		l.began[name] = time.Now()
		return answer{status: 202, header: header("Azure-AsyncOperation", endpoint+"/operations/"+name, "Retry-After", "10")}
	case strings.HasSuffix(strings.ToLower(r.path), collection):
		l.listed++
		return answer{status: l.lists, body: l.list()}
	case name == l.fails && over:
		l.polled[name]++
		return answer{status: 200, body: `{"status":"Failed","error":{"code":"InternalServerError","message":"m"}}`}
	case over:
		l.polled[name]++
		return answer{status: 200, body: `{"status":"Succeeded"}`}
	default:
		l.polled[name]++
		return answer{status: 200, header: wait, body: `{"status":"InProgress"}`}
	}
}

// list is what is left of the collection, and one that nobody deletes.
func (l *leavers) list() string {
	all := []string{resource(pip("stays"), "Succeeded")}
	for name, began := range l.began {
		switch over := time.Since(began) >= l.took; {
		case !over:
			all = append(all, resource(pip(name), "Deleting"))
		case name == l.fails:
			all = append(all, resource(pip(name), "Failed"))
		}
	}
	return `{"value":[` + strings.Join(all, ",") + `]}`
}

func pip(name string) azure.ID { return group.Resource("Microsoft.Network/publicIPAddresses", name) }

// Where many of one kind go, lists tell when each is worth a poll.
func TestDeletionsInCompany(t *testing.T) {
	for name, c := range map[string]struct {
		count, status   int
		took            time.Duration
		fails           string
		lists, polls    int
		ends            time.Duration
		gives, answered int // after so many seconds the first caller gives up; how many deletions are answered without error
	}{
		"many":                   {count: 20, took: 16 * time.Second, lists: 4, polls: 20, ends: 17500 * time.Millisecond, answered: 20},
		"many, over in time":     {count: 20, took: 9 * time.Second, lists: 1, polls: 20, ends: 10 * time.Second, answered: 20},
		"few go as if alone":     {count: company - 1, took: 16 * time.Second, polls: 2 * (company - 1), ends: 20 * time.Second, answered: company - 1},
		"no right to list":       {count: 20, status: 403, took: 16 * time.Second, lists: 1, polls: 40, ends: 20 * time.Second, answered: 20},
		"one fails":              {count: 20, took: 16 * time.Second, fails: "p7", lists: 4, polls: 20, ends: 17500 * time.Millisecond, answered: 19},
		"the first one gives up": {count: 20, took: 16 * time.Second, gives: 13, lists: 4, polls: 19, ends: 17500 * time.Millisecond, answered: 19},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &leavers{took: c.took, fails: c.fails, lists: or(c.status, 200), began: map[string]time.Time{}, polled: map[string]int{}}
				d := open(t, &server{answer: l.answer})
				start := time.Now()
				errs := make([]error, c.count)
				var callers sync.WaitGroup
				for i := range c.count {
					callers.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(or(c.gives*(1-min(i, 1)), 1000))*time.Second)
						defer cancel()
						errs[i] = d.Delete(ctx, pip(fmt.Sprintf("p%d", i)))
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
						t.Errorf("deletion %d: %v", i, err)
					}
				}
				if took := time.Since(start); l.listed != c.lists || polls != c.polls || took != c.ends || well != c.answered {
					t.Errorf("%d lists, %d polls, %v, %d went well; want %d, %d, %v, %d", l.listed, polls, took, well, c.lists, c.polls, c.ends, c.answered)
				}
			})
		})
	}
}
