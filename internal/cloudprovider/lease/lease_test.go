package lease_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/lease"
	"kaz/internal/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const balancer = azure.ID("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/kubernetes")

// azureOf counts writes and calls a function during each one.
type azureOf struct {
	reconcile.Azure
	mu     sync.Mutex
	writes int
	during func()
}

func (a *azureOf) Begin(context.Context, azure.Request) (*azure.Operation, error) {
	a.mu.Lock()
	a.writes++
	a.mu.Unlock()
	if a.during != nil {
		a.during()
	}
	return azure.Done(nil), nil
}

// cluster has a Lease with a given state.
func cluster(t *testing.T, holder string, age time.Duration, previous string) *fake.Clientset {
	t.Helper()
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(900)),
			RenewTime: &metav1.MicroTime{Time: time.Now().Add(-age)}},
	}
	if previous != "" {
		l.Annotations = map[string]string{lease.PreviousHolder: previous}
	}
	return fake.NewClientset(l)
}

func read(t *testing.T, c *fake.Clientset) (holder, previous string) {
	t.Helper()
	l, err := c.CoordinationV1().Leases(lease.Namespace).Get(t.Context(), lease.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *l.Spec.HolderIdentity, l.Annotations[lease.PreviousHolder]
}

// written returns the verbs of the writes to Kubernetes.
func written(c *fake.Clientset) []string {
	var verbs []string
	for _, a := range c.Actions() {
		if a.GetVerb() != "get" {
			verbs = append(verbs, a.GetVerb())
		}
	}
	c.ClearActions()
	return verbs
}

// TestLease checks that the holder and the age of the lease decide whether Azure is written. D27:
// decisions from before another holder are not written.
func TestLease(t *testing.T) {
	for name, c := range map[string]struct {
		client func(*testing.T) *fake.Clientset
		kind   azure.Kind // 0 for a successful write
		says   string
	}{
		"106: another's": {func(t *testing.T) *fake.Clientset { return cluster(t, "aks-rp", time.Minute, "") }, azure.Busy,
			"lease has not expired yet: aks-rp holds it until"},
		"107: ours":      {func(t *testing.T) *fake.Clientset { return cluster(t, lease.Holder, time.Minute, "") }, 0, ""},
		"108: over":      {func(t *testing.T) *fake.Clientset { return cluster(t, "aks-rp", time.Hour, "") }, 0, ""},
		"108: no holder": {func(t *testing.T) *fake.Clientset { return cluster(t, "", time.Minute, lease.Holder) }, 0, ""},
		"108: another had it since": {func(t *testing.T) *fake.Clientset { return cluster(t, "", time.Minute, "aks-rp") }, azure.Changed,
			"another controller held it"},
		"not there": {func(*testing.T) *fake.Clientset { return fake.NewClientset() }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := c.client(t)
				a := &azureOf{during: func() {
					if holder, _ := read(t, client); holder != lease.Holder {
						t.Errorf("%q holds it while we write", holder)
					}
				}}
				locked := lease.New(client.CoordinationV1()).Client(a)
				_, err := azure.ByVerb(locked).Put(t.Context(), azure.Write{ID: balancer})
				if c.kind == 0 && (err != nil || a.writes != 1) || c.kind != 0 &&
					(azure.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) || a.writes != 0) {
					t.Errorf("%v after %d writes", err, a.writes)
				}
				if c.kind == azure.Busy {
					if w := written(client); len(w) > 0 {
						t.Errorf("wrote %v into another's lease", w)
					}
					return
				}
				if holder, previous := read(t, client); holder != "" || previous != lease.Holder {
					t.Errorf("left to %q after %q", holder, previous)
				}
				// What was looked at anew can be written.
				if err := azure.ByVerb(locked).Delete(t.Context(), balancer); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestGivingBackWhatIsNotHeld (109) checks that releasing a lease of another holder writes nothing.
func TestGivingBackWhatIsNotHeld(t *testing.T) {
	leases := func(c *fake.Clientset) clienttesting.ObjectTracker { return c.Tracker() }
	resource := coordinationv1.SchemeGroupVersion.WithResource("leases")
	for name, meanwhile := range map[string]func(*testing.T, *fake.Clientset){
		"another owns it": func(t *testing.T, c *fake.Clientset) {
			l, err := c.CoordinationV1().Leases(lease.Namespace).Get(t.Context(), lease.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			l.Spec.HolderIdentity = new("aks-rp")
			if err := leases(c).Update(resource, l, lease.Namespace); err != nil {
				t.Fatal(err)
			}
		},
		"it is gone": func(t *testing.T, c *fake.Clientset) {
			if err := leases(c).Delete(resource, lease.Namespace, lease.Name); err != nil {
				t.Fatal(err)
			}
		},
		"it is over": func(*testing.T, *fake.Clientset) { <-time.After(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				a := &azureOf{during: func() { meanwhile(t, client); client.ClearActions() }}
				if _, err := azure.ByVerb(lease.New(client.CoordinationV1()).Client(a)).Put(t.Context(),
					azure.Write{ID: balancer}); err != nil {
					t.Error(err)
				}
				if w := written(client); len(w) > 0 {
					t.Errorf("wrote %v", w)
				}
			})
		})
	}
}

// TestWritesSideBySide checks that concurrent writes share the lease: it is taken once and released
// once.
func TestWritesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a := &azureOf{during: func() { <-time.After(time.Minute) }}
		locked := lease.New(client.CoordinationV1()).Client(a)
		var writers sync.WaitGroup
		for range 10 {
			writers.Go(func() {
				if _, err := azure.ByVerb(locked).Put(t.Context(), azure.Write{ID: balancer}); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if w := written(client); a.writes != 10 || !slices.Equal(w, []string{"create", "update"}) {
			t.Errorf("%d writes, the lease: %v", a.writes, w)
		}
		// Route tables need no lock.
		a.during = nil
		if _, err := azure.ByVerb(locked).Put(t.Context(),
			azure.Write{ID: balancer.Parent().Resource(network.RouteTables, "rt")}); err != nil ||
			len(written(client)) > 0 {
			t.Error("a lock for routes", err)
		}
	})
}

// TestWritesOfTheLeaseThatFail checks that conflicting writes of the Lease both succeed, and that
// Azure stays unchanged if the API server rejects them.
func TestWritesOfTheLeaseThatFail(t *testing.T) {
	resource := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, c := range map[string]struct {
		err   error
		times int
		fails bool
	}{
		"a conflict": {apierrors.NewConflict(resource, lease.Name, errors.New("changed")), 2, false},
		"for ever":   {apierrors.NewConflict(resource, lease.Name, errors.New("changed")), 1000, true},
		"forbidden":  {apierrors.NewForbidden(resource, lease.Name, errors.New("no")), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := cluster(t, "", time.Minute, "")
				left := c.times
				client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
					left--
					return left >= 0, nil, c.err
				})
				a := &azureOf{}
				_, err := azure.ByVerb(lease.New(client.CoordinationV1()).Client(a)).Put(t.Context(), azure.Write{ID: balancer})
				if (err != nil) != c.fails || c.fails && (azure.KindOf(err) != azure.Busy || a.writes > 0) {
					t.Errorf("%v after %d writes", err, a.writes)
				}
			})
		})
	}
}
