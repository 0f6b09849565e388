package verify_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"kaz/internal/arm"
	"kaz/internal/arm/types"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/verify"
	"kaz/internal/verify/cassette"
	"kaz/internal/verify/probe"
)

// target is a local Azure inside of the test, with what a run needs to reach it.
type target struct {
	*core.Emulator
	options verify.Options
	said    *lines
}

// lines are what a run says.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

// way is a transport between a run and its Azure.
type way func(r *http.Request, azure http.RoundTripper) (*http.Response, error)

func (w way) Do(r *http.Request) (*http.Response, error) { return w(r, nil) }

// straight is a way without a change.
func straight(r *http.Request, azure http.RoundTripper) (*http.Response, error) {
	return azure.RoundTrip(r)
}

// newTarget starts a local Azure. Requests go a way to it.
func newTarget(t *testing.T, through way, only ...string) target {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	probes, err := probe.Select(only)
	if err != nil {
		t.Fatal(err)
	}
	recorder := cassette.NewRecorder(way(func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		answer, err := through(r, e.Transport())
		if err == nil && answer.Header.Get("Date") == "" { // a server adds it
			answer.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		}
		return answer, err
	}))
	client, err := arm.New(arm.Config{Endpoint: "https://management.azure.com", Transport: recorder, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	said := &lines{}
	return target{Emulator: e, said: said, options: verify.Options{
		Azure: client, Recorder: recorder, Subscription: core.DefaultSubscription, Location: "westeurope", Random: "test1234",
		Versions: func(fullType string) string { return types.NewIndex().Of(fullType).Version },
		Probes:   probes, Program: "test", Lifetime: time.Hour, Now: time.Now, Say: said.say,
		Removing: func() (context.Context, context.CancelFunc) {
			return context.WithCancel(context.WithoutCancel(t.Context()))
		},
	}}
}

func (w target) run(t *testing.T) verify.Report {
	t.Helper()
	report, err := verify.Run(t.Context(), w.options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// groups are the names of the resource groups that are there.
func (w target) groups(t *testing.T) (names []string) {
	t.Helper()
	found, err := verify.Find(context.WithoutCancel(t.Context()), w.options.Azure, w.options.Subscription, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Group)
	}
	return names
}

// has reports whether a line was said.
func (l *lines) has(line string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.all, line)
}
