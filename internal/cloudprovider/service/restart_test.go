package service_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"kaz/internal/localazure/core"
)

// recorded is an Event that an earlier controller sent for a Service.
func (w *serviceCluster) recorded(name, kind, reason string, ago time.Duration) {
	w.t.Helper()
	s := w.get(name)
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.Namespace, Name: name + "." + reason},
		InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: s.Namespace, Name: name, UID: s.UID},
		Type:           kind, Reason: reason, LastTimestamp: metav1.NewTime(time.Now().Add(-ago)),
	}
	if err := w.client.Tracker().Create(corev1.SchemeGroupVersion.WithResource("events"), e, e.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

// TestAFailureIsFollowedByAnEvent checks a Service with a failure as its last event. It gets an event when a new
// controller finds all up to date, without a write to Azure. Other Services get none when the controller starts.
func TestAFailureIsFollowedByAnEvent(t *testing.T) {
	for name, denied := range map[string]bool{"": false, "Events may not be listed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 1)
				stop := w.start(config())
				all := []string{"failed", "nodes", "cured", "warned", "quiet"}
				for i, name := range all {
					w.create(w.newService(name, int32(80+i)))
				}
				w.allServed(all)
				w.settle()
				stop()
				w.recorded("failed", corev1.EventTypeNormal, "EnsuredLoadBalancer", time.Hour)
				w.recorded("failed", corev1.EventTypeWarning, "SyncLoadBalancerFailed", time.Minute)
				w.recorded("failed", corev1.EventTypeNormal, "EnsuringLoadBalancer", time.Second)
				w.recorded("nodes", corev1.EventTypeWarning, "UpdateLoadBalancerFailed", time.Minute)
				w.recorded("cured", corev1.EventTypeWarning, "SyncLoadBalancerFailed", time.Hour)
				w.recorded("cured", corev1.EventTypeNormal, "EnsuredLoadBalancer", time.Minute)
				w.recorded("warned", corev1.EventTypeWarning, "InvalidTags", time.Minute)
				if denied {
					w.client.PrependReactor("list", "events", func(kubetesting.Action) (bool, runtime.Object, error) {
						return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", nil)
					})
				}
				w.events.forget()
				w.Forget()
				defer w.start(config())()
				w.settle()
				want := []string{"EnsuringLoadBalancer", "EnsuredLoadBalancer"}
				for _, name := range all {
					reported := name == "failed" || name == "nodes"
					if d := cmp.Diff(want, w.events.reasons(name)); reported && !denied && d != "" {
						t.Errorf("%s got (-want +got):\n%s", name, d)
					}
					if got := w.events.list(name); (!reported || denied) && len(got) > 0 {
						t.Errorf("%s got %v", name, got)
					}
				}
				if wrote := w.Writes(); len(wrote) > 0 {
					t.Errorf("written was %v", wrote)
				}
			})
		})
	}
}
