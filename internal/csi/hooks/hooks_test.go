package hooks_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"kaz/internal/csi/hooks"
	"kaz/internal/testkit/kubeclient"
)

const (
	driver = "disk.csi.azure.com"
	taint  = driver + "/agent-not-ready"
	node   = "node-1"
)

func nodeWith(taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
	return n
}

func csiNode(drivers ...string) *storagev1.CSINode {
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, d := range drivers {
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: d, NodeID: node})
	}
	return n
}

// taints returns the keys of the node's taints.
func taints(t *testing.T, client *fake.Clientset) string {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, x := range n.Spec.Taints {
		keys = append(keys, x.Key)
	}
	return strings.Join(keys, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTaint checks row 183: the taint goes when the driver is registered, those of others stay, and failures are tried
// again for ever.
func TestTaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(nodeWith("other", taint), csiNode())
		var failing atomic.Bool
		failing.Store(true)
		client.PrependReactor("patch", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
			return failing.Load(), nil, errors.New("conflict")
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		remove := hooks.Taint{Client: kubeclient.Of(client), Driver: driver, Node: node, Delay: 30 * time.Second, Log: slog.New(slog.DiscardHandler)}
		go func() { defer close(ended); remove.Run(ctx) }()
		after := func(d time.Duration, want string) {
			t.Helper()
			<-time.After(d)
			synctest.Wait()
			if got := taints(t, client); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		after(10*time.Minute, "other "+taint) // the kubelet has not registered the driver
		must(t, client.Tracker().Update(storagev1.SchemeGroupVersion.WithResource("csinodes"), csiNode("x", driver), ""))
		after(10*time.Minute, "other "+taint) // the API server fails
		failing.Store(false)
		after(2*time.Minute, "other")
		must(t, client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), nodeWith(taint), ""))
		after(6*time.Minute, "")
		cancel()
		<-ended
	})
}

// TestTaintOnce checks that the removal ends when there is nothing to remove.
func TestTaintOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(nodeWith(taint), csiNode(driver))
		began := time.Now()
		remove := hooks.Taint{Client: kubeclient.Of(client), Driver: driver, Node: node, Delay: time.Second, Once: true,
			Log: slog.New(slog.DiscardHandler)}
		remove.Run(t.Context())
		if took := time.Since(began); took != time.Second || taints(t, client) != "" {
			t.Errorf("after %s: %q", took, taints(t, client))
		}
	})
}

func attachment(name, attacher, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: attacher, NodeName: node}}
}

// TestStop checks row 184.
func TestStop(t *testing.T) {
	others := []runtime.Object{attachment("file", "file.csi.azure.com", node), attachment("elsewhere", driver, "node-2")}
	for name, c := range map[string]struct {
		objects []runtime.Object
		waits   bool
	}{
		"a node that stays": {[]runtime.Object{nodeWith("other"), attachment("a", driver, node)}, false},
		"no volumes":        {append(others, nodeWith("node.kubernetes.io/unschedulable")), false},
		"drained":           {append(others, nodeWith("node.kubernetes.io/unschedulable"), attachment("a", driver, node)), true},
		"scaled down":       {[]runtime.Object{nodeWith("ToBeDeletedByClusterAutoscaler"), attachment("a", driver, node)}, true},
		"disrupted":         {[]runtime.Object{nodeWith("karpenter.sh/disrupted"), attachment("a", driver, node)}, true},
		"deleted":           {[]runtime.Object{attachment("a", driver, node)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(c.objects...)
				var log bytes.Buffer
				stop := hooks.Stop{Client: kubeclient.Of(client), Driver: driver, Node: node, Log: slog.New(slog.NewTextHandler(&log, nil))}
				ended := make(chan error)
				go func() { ended <- stop.Wait(t.Context()) }()
				if c.waits {
					<-time.After(time.Minute)
					synctest.Wait()
					select {
					case err := <-ended:
						t.Fatal("it did not wait:", err)
					default:
					}
					if !strings.Contains(log.String(), "attachments=[a]") {
						t.Error(log.String())
					}
					must(t, client.Tracker().Delete(storagev1.SchemeGroupVersion.WithResource("volumeattachments"), "", "a"))
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStopIsBounded checks that the wait ends with its context.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		stop := hooks.Stop{Client: kubeclient.Of(fake.NewClientset(attachment("a", driver, node))), Driver: driver, Node: node,
			Log: slog.New(slog.DiscardHandler)}
		if err := stop.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "still has 1 volumes") {
			t.Error(err)
		}
	})
}
