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

// azureOf counts what is written, and lets a test look while that is under way.
type azureOf struct {
	reconcile.Azure
	mu     sync.Mutex
	writes int
	during func()
}

func (a *azureOf) Put(context.Context, azure.Write) (azure.Document, error) {
	a.mu.Lock()
	a.writes++
	a.mu.Unlock()
	if a.during != nil {
		a.during()
	}
	return nil, nil
}

func (a *azureOf) Delete(ctx context.Context, id azure.ID) error {
	_, err := a.Put(ctx, azure.Write{ID: id})
	return err
}

// cluster has a Lease as somebody left it.
func cluster(t *testing.T, holder string, age time.Duration, previous string) *fake.Clientset {
	t.Helper()
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(900)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(-age)}},
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

// written are the verbs of what was written to Kubernetes.
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

// Who has held the lease, and since when, decides whether something is written to Azure.
// D27: nothing is that was decided before another one held it.
func TestLease(t *testing.T) {
	for name, c := range map[string]struct {
		client func(*testing.T) *fake.Clientset
		kind   azure.Kind // 0 for a write that is made
		says   string
	}{
		"106: another's":            {func(t *testing.T) *fake.Clientset { return cluster(t, "aks-rp", time.Minute, "") }, azure.Busy, "lease has not expired yet: aks-rp holds it until"},
		"107: ours":                 {func(t *testing.T) *fake.Clientset { return cluster(t, lease.Holder, time.Minute, "") }, 0, ""},
		"108: over":                 {func(t *testing.T) *fake.Clientset { return cluster(t, "aks-rp", time.Hour, "") }, 0, ""},
		"108: nobody's":             {func(t *testing.T) *fake.Clientset { return cluster(t, "", time.Minute, lease.Holder) }, 0, ""},
		"108: another had it since": {func(t *testing.T) *fake.Clientset { return cluster(t, "", time.Minute, "aks-rp") }, azure.Changed, "another controller had it"},
		"not there":                 {func(*testing.T) *fake.Clientset { return fake.NewClientset() }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := c.client(t)
				a := &azureOf{during: func() {
					if holder, _ := read(t, client); holder != lease.Holder {
						t.Errorf("%q holds it while we write", holder)
					}
				}}
				door := lease.New(client.CoordinationV1()).Door(a)
				_, err := door.Put(t.Context(), azure.Write{ID: balancer})
				if c.kind == 0 && (err != nil || a.writes != 1) || c.kind != 0 && (azure.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) || a.writes != 0) {
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
				if err := door.Delete(t.Context(), balancer); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// 109: who gives back what is not held writes nothing.
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
				if _, err := lease.New(client.CoordinationV1()).Door(a).Put(t.Context(), azure.Write{ID: balancer}); err != nil {
					t.Error(err)
				}
				if w := written(client); len(w) > 0 {
					t.Errorf("wrote %v", w)
				}
			})
		})
	}
}

// Writes side by side hold it together: it is taken once and given back once.
func TestWritesSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		a := &azureOf{during: func() { <-time.After(time.Minute) }}
		door := lease.New(client.CoordinationV1()).Door(a)
		var writers sync.WaitGroup
		for range 10 {
			writers.Go(func() {
				if _, err := door.Put(t.Context(), azure.Write{ID: balancer}); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if w := written(client); a.writes != 10 || !slices.Equal(w, []string{"create", "update"}) {
			t.Errorf("%d writes, the lease: %v", a.writes, w)
		}
		// Routes need no lock.
		a.during = nil
		if _, err := door.Put(t.Context(), azure.Write{ID: balancer.Parent().Resource(network.RouteTables, "rt")}); err != nil || len(written(client)) > 0 {
			t.Error("a lock for routes", err)
		}
	})
}

// Two who write the Lease at once both come through; an API server that does not let us
// keeps Azure as it is.
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
				_, err := lease.New(client.CoordinationV1()).Door(a).Put(t.Context(), azure.Write{ID: balancer})
				if (err != nil) != c.fails || c.fails && (azure.KindOf(err) != azure.Busy || a.writes > 0) {
					t.Errorf("%v after %d writes", err, a.writes)
				}
			})
		})
	}
}
