package election

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/reconcile"
	"kaz/internal/testkit"
)

const component = "cloud-controller-manager"

// candidate returns the leader election configuration of a replica, with the default times.
func candidate(client *fake.Clientset, identity string) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Name: component, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: component}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
	}
}

func holder(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("kube-system").Get(context.WithoutCancel(t.Context()), component, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// TestLeadersDoNotOverlap stops the leader of two replicas during a write. The write ends, the lease
// is released, and the second replica starts long before the lease would expire. No two writes
// overlap in Azure.
func TestLeadersDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local := testkit.NewAzure(t, core.Options{Latency: 3}, 1)
		client := fake.NewClientset()
		wire := &wire{carry: local.Transport()}
		replica := func(ctx context.Context, name string) error {
			sender, err := arm.New(arm.Config{Endpoint: "http://127.0.0.1", Transport: wire, UserAgent: name, Finish: StopGrace})
			if err != nil {
				return err
			}
			return lead(ctx, candidate(client, name), func(ctx context.Context) {
				commits := reconcile.NewCoalescer(func(ctx context.Context, _ string, batch []string) ([]string, error) {
					body := fmt.Sprintf(`{"location":%q,"sku":{"name":"Standard"},"tags":{"by":%q},"properties":{"publicIPAllocationMethod":"Static"}}`, testkit.Location, name)
					_, err := sender.Put(ctx,
						azure.Write{ID: testkit.Group.Resource(network.PublicIPAddresses, "shared"), Body: azure.Document(body),
							Unseen: true})
					wire.note(name + " wrote")
					return batch, err
				})
				for ctx.Err() == nil {
					if _, err := commits.Submit(ctx, "shared", name); err != nil && ctx.Err() == nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
				Drain(commits.Close)
				wire.note(name + " ended")
			})
		}
		first, stopFirst := context.WithCancel(t.Context())
		second, stopSecond := context.WithCancel(t.Context())
		var replicas sync.WaitGroup
		replicas.Go(func() {
			if err := replica(first, "a"); err != nil {
				t.Errorf("the first replica: %v", err)
			}
		})
		wire.await(t, "PUT by a")
		replicas.Go(func() {
			if err := replica(second, "b"); err != nil {
				t.Errorf("the second replica: %v", err)
			}
		})
		<-time.After(time.Minute)
		if got := holder(t, client); got != "a" {
			t.Errorf("the lease is held by %q before a leader stops", got)
		}
		stopFirst()
		wire.await(t, "b wrote")
		stopSecond()
		replicas.Wait()
		if got := holder(t, client); got != "" {
			t.Errorf("the lease is held by %q after all have stopped", got)
		}
		ended, began := wire.when("a ended"), wire.when("PUT by b")
		if ended.IsZero() || began.Before(ended) {
			t.Errorf("the second began at %v, before the first had ended at %v", began, ended)
		}
		if gap := began.Sub(ended); gap > 10*time.Second {
			t.Errorf("no leader for %v: the lease was not given up", gap)
		}
		if wire.most > 1 {
			t.Errorf("%d writes overlapped", wire.most)
		}
	})
}

// wire sends requests and records the time of each event.
type wire struct {
	carry http.RoundTripper

	mu      sync.Mutex
	events  []event
	flying  int
	most    int // concurrent writes
	changed chan struct{}
}

type event struct {
	what string
	at   time.Time
}

func (w *wire) Do(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPut {
		return w.carry.RoundTrip(req)
	}
	w.note("PUT by " + req.UserAgent())
	w.fly(1)
	defer w.fly(-1)
	return w.carry.RoundTrip(req)
}

func (w *wire) fly(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flying += n
	w.most = max(w.most, w.flying)
}

func (w *wire) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{what, time.Now()})
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// await waits for an event.
func (w *wire) await(t *testing.T, what string) {
	t.Helper()
	for {
		w.mu.Lock()
		if slices.ContainsFunc(w.events, func(e event) bool { return e.what == what }) {
			w.mu.Unlock()
			return
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(10 * time.Minute):
			t.Fatalf("%s never happened", what)
		}
	}
}

// when returns the time of the first occurrence of an event.
func (w *wire) when(what string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.what == what {
			return e.at
		}
	}
	return time.Time{}
}

// TestWaitingReplicaStopsAtOnce checks that a stopping standby does not touch the lease.
func TestWaitingReplicaStopsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		leading, stop := context.WithCancel(t.Context())
		var first sync.WaitGroup
		began := make(chan struct{})
		first.Go(func() {
			if err := lead(leading, candidate(client, "a"), func(ctx context.Context) { close(began); <-ctx.Done() }); err != nil {
				t.Error(err)
			}
		})
		<-began
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := lead(ctx, candidate(client, "b"), func(context.Context) { t.Error("two leaders") })
		if err != nil || holder(t, client) != "a" {
			t.Errorf("error %v, and the lease is held by %q", err, holder(t, client))
		}
		stop()
		first.Wait()
	})
}

// leaving returns a client of an API server that can go away: requests for leases then fail after wait.
func leaving(wait func()) (client *fake.Clientset, leave func()) {
	var away atomic.Bool
	client = fake.NewClientset()
	client.PrependReactor("*", "leases", func(kubetesting.Action) (bool, runtime.Object, error) {
		if !away.Load() {
			return false, nil, nil
		}
		wait()
		return true, nil, errors.New("the API server is away")
	})
	return client, func() { away.Store(true) }
}

// TestLostLease checks that a leader that cannot renew its lease ends at once, because there may be
// another leader.
func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, leave := leaving(func() {})
		start := time.Now()
		err := lead(t.Context(), candidate(client, "a"), func(ctx context.Context) {
			leave()
			<-ctx.Done()
		})
		if !errors.Is(err, ErrLost) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("it went on for %v, longer than the lease", took)
		}
	})
}

// TestStuckLeaderIsUnhealthy checks that the health check detects a leader with a renewal that hangs.
func TestStuckLeaderIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		client, leave := leaving(func() { <-hang })
		ctx, cancel := context.WithCancel(t.Context())
		election := candidate(client, "a")
		election.WatchDog = leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
		began := make(chan struct{})
		var replica sync.WaitGroup
		replica.Go(func() {
			_ = lead(ctx, election, func(ctx context.Context) { // ends when the lease is lost
				leave()
				close(began)
				<-ctx.Done()
			})
		})
		<-began
		if err := election.WatchDog.Check(nil); err != nil {
			t.Errorf("a leader at work: %v", err)
		}
		<-time.After(time.Minute)
		if err := election.WatchDog.Check(nil); err == nil {
			t.Error("a leader that has not renewed its lease for a minute says that it is healthy")
		}
		cancel()
		close(hang)
		replica.Wait()
	})
}

// TestDrainEnds checks that work that never ends does not keep the program from ending.
func TestDrainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, release := time.Now(), make(chan struct{})
		Drain(func() { <-release })
		if took := time.Since(start); took != stopAtMost {
			t.Errorf("it took %v, want %v", took, stopAtMost)
		}
		close(release)
	})
}
