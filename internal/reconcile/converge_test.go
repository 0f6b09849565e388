package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

const group = azure.ID("/subscriptions/s/resourceGroups/g")

// ledger is an Azure in memory: etags, a second for each write, an address for
// each new public IP, and failures on request.
type ledger struct {
	mu      sync.Mutex
	docs    map[string]map[string]any
	version int
	log     []string
	atOnce  int
	most    int
	// before is called ahead of each write and may refuse it or change things.
	before func(l *ledger, op string, id azure.ID) error
	// cached is what reads through the cache see, nil for the current state.
	cached map[string]map[string]any
}

func newLedger() *ledger { return &ledger{docs: map[string]map[string]any{}} }

func (l *ledger) Get(_ context.Context, id azure.ID) (azure.Document, error) {
	return l.read(l.cached, id)
}

func (l *ledger) read(cached map[string]map[string]any, id azure.ID) (azure.Document, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	docs := l.docs
	if cached != nil {
		docs = cached
	}
	doc, ok := docs[id.Key()]
	if !ok {
		return nil, &azure.Error{Kind: azure.NotFound, ID: id}
	}
	return json.Marshal(doc)
}

func (l *ledger) List(_ context.Context, q azure.Query) ([]azure.Document, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var docs []azure.Document
	for _, doc := range l.docs {
		if id := azure.ID(doc["id"].(string)); id.Is(q.Type) && id.Under(q.Scope) {
			text, err := json.Marshal(doc)
			if err != nil {
				return nil, err
			}
			docs = append(docs, text)
		}
	}
	return docs, nil
}

type fresh struct{ *ledger }

func (f fresh) Get(_ context.Context, id azure.ID) (azure.Document, error) { return f.read(nil, id) }

func (l *ledger) Fresh() azure.Reader { return fresh{l} }

func (l *ledger) write(ctx context.Context, op string, id azure.ID, change func() error) error {
	l.mu.Lock()
	l.atOnce++
	l.most = max(l.most, l.atOnce)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.atOnce--
	}()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, op+" "+id.Name())
	if l.before != nil {
		if err := l.before(l, op, id); err != nil {
			return err
		}
	}
	return change()
}

func (l *ledger) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	return azure.Immediate(l.do).Begin(ctx, r)
}

func (l *ledger) do(ctx context.Context, r azure.Request) (azure.Document, error) {
	switch r.Verb {
	case azure.Delete:
		return nil, l.write(ctx, "delete", r.ID, func() error {
			delete(l.docs, r.ID.Key())
			return nil
		})
	case azure.Post:
		return nil, errors.ErrUnsupported
	}
	return l.put(ctx, r)
}

func (l *ledger) put(ctx context.Context, w azure.Request) (azure.Document, error) {
	var text azure.Document
	err := l.write(ctx, "put", w.ID, func() error {
		have, exists := l.docs[w.ID.Key()]
		if w.Create && exists {
			return &azure.Error{Kind: azure.Exists, ID: w.ID}
		}
		if w.IfMatch != "" && (!exists || have["etag"] != w.IfMatch) {
			return &azure.Error{Kind: azure.Changed, ID: w.ID}
		}
		var doc map[string]any
		if err := json.Unmarshal(w.Body, &doc); err != nil {
			return err
		}
		l.store(w.ID, doc)
		var err error
		text, err = json.Marshal(doc)
		return err
	})
	return text, err
}

func (l *ledger) store(id azure.ID, doc map[string]any) {
	l.version++
	doc["id"], doc["etag"] = string(id), fmt.Sprint(l.version)
	if properties, ok := doc["properties"].(map[string]any); ok && strings.Contains(string(id), "ips") {
		properties["address"] = fmt.Sprintf("198.18.0.%d", l.version)
	} else if ok && strings.Contains(string(id), "disks") {
		properties["uniqueId"] = fmt.Sprintf("disk-%d", l.version)
	}
	l.docs[id.Key()] = doc
}

type ip struct {
	Zone    string `json:"zone,omitempty"`
	Address string `json:"address,omitempty" azure:"read"`
}

type balancer struct {
	Addresses []azure.Reference `json:"addresses,omitempty"`
}

type rules struct {
	Allow []string `json:"allow,omitempty" azure:"set"`
}

func ipID(name string) azure.ID { return group.Resource("N/ips", name) }

// service wants an address each for names, one balancer that refers to all of
// them, and rules that name the addresses, which only Azure knows.
type service struct{ names []string }

var lbID, rulesID = group.Resource("N/balancers", "lb"), group.Resource("N/rules", "nsg")

func (s service) Needs(plan.Snapshot) reconcile.Needs {
	needs := reconcile.Needs{Resources: []azure.ID{lbID, rulesID}}
	for _, n := range s.names {
		needs.Resources = append(needs.Resources, ipID(n))
	}
	return needs
}

func (s service) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	g, err := s.graph(have)
	return reconcile.Decision{Graph: g}, err
}

func (s service) graph(have plan.Snapshot) (plan.Graph, error) {
	var g plan.Graph
	lb := azure.Resource[balancer]{ID: lbID, Properties: balancer{Addresses: []azure.Reference{}}}
	nsg := azure.Resource[rules]{ID: rulesID, Properties: rules{Allow: []string{}}}
	for _, n := range s.names {
		if err := g.Add(plan.Wanted(azure.Resource[ip]{ID: ipID(n), Properties: ip{Zone: "1"}}, "address of "+n, n)); err != nil {
			return g, err
		}
		lb.Properties.Addresses = append(lb.Properties.Addresses, azure.Reference{ID: ipID(n)})
		now, ok, err := plan.View[ip](have, ipID(n))
		if err != nil {
			return g, err
		}
		if !ok {
			g.Pending = append(g.Pending, "the address of "+n)
			continue
		}
		nsg.Properties.Allow = append(nsg.Properties.Allow, now.Properties.Address)
	}
	return g, errors.Join(
		g.Add(plan.Wanted(lb, "balancer")),
		g.Add(plan.Wanted(nsg, "rules")))
}

func converge(t *testing.T, l *ledger, names ...string) (reconcile.Outcome, error) {
	t.Helper()
	return reconcile.Converge(t.Context(), l, service{names})
}

func (l *ledger) allowed() int {
	properties, _ := l.docs[rulesID.Key()]["properties"].(map[string]any)
	allow, _ := properties["allow"].([]any)
	return len(allow)
}

func TestConvergeBringsLateFactsIntoTheNextRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		out, err := converge(t, l, "a", "b", "c")
		if err != nil {
			t.Fatal(err)
		}
		if l.allowed() != 3 {
			t.Errorf("the rules name %d addresses: %v", l.allowed(), l.docs[rulesID.Key()])
		}
		if _, ok := out.Have.Get(rulesID); !ok {
			t.Error("the outcome does not hold the rules")
		}
		before := len(l.log)
		if _, err := converge(t, l, "a", "b", "c"); err != nil || len(l.log) != before {
			t.Errorf("a second time writes %v, %v", l.log[before:], err)
		}
	})
}

func TestApplyRunsIndependentStepsSideBySideAndDependentOnesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		start := time.Now()
		if _, err := converge(t, l, "a", "b", "c", "d"); err != nil {
			t.Fatal(err)
		}
		// Addresses and first rules together, then the balancer, then the rules again.
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v with writes of 1s, want 3s: %v", took, l.log)
		}
		if l.most != 5 {
			t.Errorf("%d writes at once, want the 4 addresses and the rules", l.most)
		}
		if lb, last := slices.Index(l.log, "put lb"), slices.Index(l.log, "put d"); lb < last {
			t.Errorf("the balancer was written before an address that it refers to: %v", l.log)
		}
	})
}

func TestFailedStepStopsItsDependantsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		l.before = func(_ *ledger, _ string, id azure.ID) error {
			if id.Equal(ipID("b")) {
				return &azure.Error{Kind: azure.Quota, ID: id, Message: "no more addresses"}
			}
			return nil
		}
		out, err := converge(t, l, "a", "b")
		if azure.KindOf(err) != azure.Quota {
			t.Fatalf("%v", err)
		}
		for _, res := range out.Reports[0].Results {
			switch {
			case res.Step.ID.Equal(lbID) && !errors.Is(res.Err, reconcile.ErrNotAttempted):
				t.Errorf("the balancer: %v", res.Err)
			case res.Step.ID.Equal(ipID("a")) && res.Err != nil:
				t.Errorf("address a: %v", res.Err)
			}
		}
		if slices.Contains(l.log, "put lb") {
			t.Error("the balancer was written without an address that it refers to")
		}
	})
}

func TestConvergePlansAnewWhenADocumentChangedUnderneath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		if _, err := converge(t, l, "a"); err != nil {
			t.Fatal(err)
		}
		meddled := 0
		l.before = func(l *ledger, _ string, id azure.ID) error {
			if id.Equal(lbID) && meddled < 2 {
				meddled++
				doc := l.docs[lbID.Key()]
				doc["foreign"] = fmt.Sprint("by hand ", meddled)
				l.store(lbID, doc)
			}
			return nil
		}
		if _, err := converge(t, l, "a", "b"); err != nil {
			t.Fatal(err)
		}
		if meddled != 2 || l.docs[lbID.Key()]["foreign"] != "by hand 2" {
			t.Errorf("another client's write was lost: %v", l.docs[lbID.Key()])
		}
	})
}

// If a document has disappeared after it was read, Converge plans anew at once, as for a changed document.
func TestConvergePlansAnewWhenADocumentIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		if _, err := converge(t, l, "a"); err != nil {
			t.Fatal(err)
		}
		gone := false
		l.before = func(l *ledger, _ string, id azure.ID) error {
			if !id.Equal(lbID) || gone {
				return nil
			}
			gone = true
			delete(l.docs, lbID.Key())
			return &azure.Error{Kind: azure.NotFound, ID: id}
		}
		start := time.Now()
		const writes = 3 * time.Second // the address, and the balancer twice
		if _, err := converge(t, l, "a", "b"); err != nil || l.docs[lbID.Key()] == nil || time.Since(start) > writes {
			t.Errorf("after %v: %v, %v", time.Since(start), l.docs[lbID.Key()], err)
		}
	})
}

func TestConvergeGivesUpOnADocumentThatNeverRests(t *testing.T) {
	for _, c := range []struct {
		name   string
		cause  azure.Error
		tries  int
		waited time.Duration
	}{
		{"changed", azure.Error{Kind: azure.Changed}, 4, 3 * time.Second},
		{"changed, and Azure asks for time", azure.Error{Kind: azure.Changed, RetryAfter: 10 * time.Second}, 4, 30 * time.Second},
		{"busy", azure.Error{Kind: azure.Busy}, 2, 2 * time.Second},
		{"not found at a creation", azure.Error{Kind: azure.NotFound}, 1, 0},
		{"busy, and Azure asks for time", azure.Error{Kind: azure.Busy, RetryAfter: 10 * time.Second}, 2, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLedger()
				tries := 0
				l.before = func(_ *ledger, _ string, id azure.ID) error {
					if !id.Equal(lbID) {
						return nil
					}
					tries++
					e := c.cause
					e.ID = id
					return &e
				}
				start := time.Now()
				_, err := converge(t, l, "a")
				if azure.KindOf(err) != c.cause.Kind {
					t.Errorf("%v", err)
				}
				writes := time.Duration(1+tries) * time.Second // the address, and each try
				if waited := time.Since(start) - writes; tries != c.tries || waited != c.waited {
					t.Errorf("%d tries, and waited %v between them, want %d and %v", tries, waited, c.tries, c.waited)
				}
			})
		})
	}
}

func TestConvergeReadsPastTheCacheAfterAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		if _, err := converge(t, l, "a"); err != nil {
			t.Fatal(err)
		}
		l.cached = map[string]map[string]any{}
		for key, doc := range l.docs {
			stale := map[string]any{}
			maps.Copy(stale, doc)
			stale["etag"] = "old"
			l.cached[key] = stale
		}
		if _, err := converge(t, l, "a", "b"); err != nil {
			t.Fatal(err)
		}
		addresses, _ := l.docs[lbID.Key()]["properties"].(map[string]any)["addresses"].([]any)
		if len(addresses) != 2 {
			t.Errorf("the balancer refers to %v: the fresh read after the conflict was not used", addresses)
		}
	})
}

func TestCancelledConvergeStartsNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLedger()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := reconcile.Converge(ctx, l, service{[]string{"a"}})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if len(l.docs) > 0 {
			t.Errorf("written after the end: %v", l.log)
		}
	})
}

// A decision with an Ask is not applied before the caller has answered it.
func TestConvergeReturnsWhatADecisionAsks(t *testing.T) {
	l := newLedger()
	target := &asking{service: service{[]string{"a"}}, ask: question("does a exist?")}
	out, err := reconcile.Converge(t.Context(), l, target)
	if err != nil || out.Decision.Ask == nil || len(l.log) > 0 {
		t.Fatalf("asked %v, error %v, and written %v", out.Decision.Ask, err, l.log)
	}
	if err := reconcile.Achieve(t.Context(), l, target); err == nil || !strings.Contains(err.Error(), "does a exist?") {
		t.Errorf("without a caller: %v", err)
	}
	target.ask = nil
	synctest.Test(t, func(t *testing.T) {
		if _, err := reconcile.Converge(t.Context(), l, target); err != nil || l.allowed() != 1 {
			t.Errorf("after the answer: %v, %v", err, l.log)
		}
	})
}

type question string

func (q question) String() string { return string(q) }

// asking first asks for something.
type asking struct {
	service
	ask reconcile.Ask
}

func (a *asking) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	d, err := a.service.Decide(have)
	d.Ask = a.ask
	return d, err
}
