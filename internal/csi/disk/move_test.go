package disk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/testkit"
)

// TestTakeADisk checks rows 83, 84, 87, 88 and 195: a disk is taken from another node exactly if Kubernetes does not want it
// there.
func TestTakeADisk(t *testing.T) {
	for _, c := range []struct {
		row     string
		prepare func(w *driverCluster, k *kube, v string)
		code    codes.Code
		want    string // a part of the message
	}{
		{"84 no VolumeAttachment", func(*driverCluster, *kube, string) {}, codes.OK, ""},
		{"83 a VolumeAttachment", func(_ *driverCluster, k *kube, v string) {
			k.add(pv("pv", v), attachment(v, "pv", "a"))
		}, codes.FailedPrecondition, "a VolumeAttachment at node a wants it"},
		{"83 of a volume with another letter case", func(_ *driverCluster, k *kube, v string) {
			v = strings.ToLower(v)
			k.add(pv("pv", v), attachment(v, "pv", "a"))
		}, codes.FailedPrecondition, "a VolumeAttachment at node a wants it"},
		{"83 the VolumeAttachment does not leave", func(_ *driverCluster, k *kube, v string) {
			leaving := attachment(v, "pv", "a")
			leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: time.Now()}, []string{"external-attacher/x"}
			k.add(pv("pv", v), leaving)
		}, codes.FailedPrecondition, "is being deleted"},
		{"84 the VolumeAttachment is of another node", func(_ *driverCluster, k *kube, v string) {
			k.add(pv("pv", v), attachment(v, "pv", "b"))
		}, codes.OK, ""},
		{"mounted", func(w *driverCluster, k *kube, v string) {
			n, err := k.CoreV1().Nodes().Get(w.t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName("kubernetes.io/csi/disk.csi.azure.com^" + v)}
			k.add(n)
		}, codes.FailedPrecondition, "node a reports it in use"},
		{"mounted at a node that is out of service", func(w *driverCluster, k *kube, v string) {
			n, err := k.CoreV1().Nodes().Get(w.t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
			n.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName("kubernetes.io/csi/disk.csi.azure.com^" + v)}
			k.add(n)
			k.taint("a")
		}, codes.OK, ""},
		{"87 the machine is deallocated", func(w *driverCluster, _ *kube, _ string) {
			if _, err := w.Client.Post(w.t.Context(), w.nodes.of["a"], "deallocate", nil); err != nil {
				w.t.Fatal(err)
			}
		}, codes.OK, ""},
		{"a machine that is no node", func(w *driverCluster, k *kube, _ string) {
			if err := k.CoreV1().Nodes().Delete(w.t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				w.t.Fatal(err)
			}
			synctest.Wait()
		}, codes.FailedPrecondition, "that machine is no node of this cluster"},
	} {
		t.Run(c.row, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDriverCluster(t, core.Options{Latency: 1, Seed: 2})
				k := w.kubernetes()
				v := w.volume("v")
				if _, err := w.publish(w.Controller, v, "a"); err != nil {
					t.Fatal(err)
				}
				c.prepare(w, k, v)
				w.Forget()
				_, err := w.publish(w.Controller, v, "b")
				wantCode(t, c.row, err, c.code)
				if err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %s", err, c.want)
				}
				if writes := w.accepted(); c.code != codes.OK && len(writes) > 0 {
					t.Errorf("a disk that must stay was written: %v", writes)
				}
				if got := w.attached("b"); (len(got) == 1) != (c.code == codes.OK) {
					t.Errorf("b has %v", got)
				}
			})
		})
	}
}

// TestStatesOfDisks checks row 88: a disk while its content is being read or written from outside is attached to no machine.
func TestStatesOfDisks(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("v")
	if _, err := w.Client.Post(t.Context(), azure.ID(v), "beginGetAccess",
		azure.Document(`{"access":"Read","durationInSeconds":3600}`)); err != nil {
		t.Fatal(err)
	}
	w.Forget()
	_, err := w.publish(w.Controller, v, "a")
	wantCode(t, "88", err, codes.FailedPrecondition)
	if writes := w.accepted(); !strings.Contains(fmt.Sprint(err), "ActiveSAS") || len(writes) > 0 {
		t.Errorf("%v, writes %v", err, writes)
	}
}

// TestADiskThatItsMachineLacks checks row 86: a disk that names a machine which does not list it is attached there.
func TestADiskThatItsMachineLacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 2})
		w.kubernetes()
		v := w.volume("v")
		to := &interposed{Azure: fresh{w.Client.Fresh(), w.Client}}
		to.get = func(id azure.ID, doc azure.Document) azure.Document {
			if !id.Equal(azure.ID(v)) {
				return doc
			}
			var fields map[string]any
			if err := json.Unmarshal(doc, &fields); err != nil {
				t.Fatal(err)
			}
			fields["managedBy"] = string(w.nodes.of["a"])
			doc, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			return doc
		}
		c := w.over(to)
		defer c.Close()
		if lun, err := w.publish(c, v, "a"); err != nil || lun != "0" {
			t.Errorf("LUN %q, %v", lun, err)
		}
	})
}

// interposed is Azure with what a test puts between.
type interposed struct {
	Azure disk.Azure
	get   func(azure.ID, azure.Document) azure.Document
	begin func(context.Context, azure.Request) (*azure.Operation, error) // nil, nil: go on
	// answer changes what writes answer.
	answer func(azure.Document) azure.Document

	mu   sync.Mutex
	sent []azure.Request
}

func (i *interposed) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	doc, err := i.Azure.Get(ctx, id)
	if err == nil && i.get != nil {
		doc = i.get(id, doc)
	}
	return doc, err
}

func (i *interposed) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return i.Azure.List(ctx, q)
}

func (i *interposed) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	i.mu.Lock()
	i.sent = append(i.sent, r)
	i.mu.Unlock()
	if i.begin != nil {
		if op, err := i.begin(ctx, r); op != nil || err != nil {
			return op, err
		}
	}
	op, err := i.Azure.Begin(ctx, r)
	if err != nil || i.answer == nil {
		return op, err
	}
	return azure.Later(func(ctx context.Context) (azure.Document, error) {
		doc, err := op.Wait(ctx)
		if err == nil && len(doc) > 0 {
			doc = i.answer(doc)
		}
		return doc, err
	}), nil
}

// forced reports how many requests detached by force.
func (i *interposed) forced() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.sent {
		if strings.Contains(string(r.Body), "ForceDetach") {
			n++
		}
	}
	return n
}

// TestForceDetach checks rows 111, 112 and 196. A disk is detached by force only from a node that is out of service. Azure
// must have accepted a normal detachment before, which did not detach the disk.
func TestForceDetach(t *testing.T) {
	refused := func(kind azure.Kind, status int, code string) func(context.Context, azure.Request) (*azure.Operation, error) {
		return func(_ context.Context, r azure.Request) (*azure.Operation, error) {
			return nil, &azure.Error{Kind: kind, Op: r.Op(), ID: r.ID, Status: status, Code: code}
		}
	}
	failed := func(ctx context.Context, r azure.Request) (*azure.Operation, error) {
		return azure.Later(func(context.Context) (azure.Document, error) {
			return nil, &azure.Error{Kind: azure.Unavailable, Op: r.Op(), ID: r.ID, Status: 200, Code: "InternalServerError"}
		}), nil
	}
	hangs := func(ctx context.Context, _ azure.Request) (*azure.Operation, error) {
		return azure.Later(func(context.Context) (azure.Document, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), nil
	}
	for _, c := range []struct {
		name  string
		out   bool
		begin func(context.Context, azure.Request) (*azure.Operation, error)
		want  int // requests with force
	}{
		{"it fails", true, failed, 1},
		{"it never ends", true, hangs, 1},
		{"it fails, the node is in service", false, failed, 0},
		{"it never ends, the node is in service", false, hangs, 0},
		{"busy", true, refused(azure.Busy, 409, "AnotherOperationInProgress"), 0},
		{"throttled", true, refused(azure.Throttled, 429, "TooManyRequests"), 0},
		{"broken", true, refused(azure.Unavailable, 500, "InternalServerError"), 0},
		{"denied", true, refused(azure.Denied, 403, "AuthorizationFailed"), 0},
		{"superseded", true, refused(azure.Changed, 200, "OperationPreempted"), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDriverCluster(t, core.Options{Latency: 1, Seed: 3})
				k := w.kubernetes()
				v := w.volume("v")
				if _, err := w.publish(w.Controller, v, "a"); err != nil {
					t.Fatal(err)
				}
				if c.out {
					k.taint("a")
				}
				to := &interposed{Azure: fresh{w.Client.Fresh(), w.Client}}
				to.begin = func(ctx context.Context, r azure.Request) (*azure.Operation, error) {
					if strings.Contains(string(r.Body), "ForceDetach") {
						return nil, nil
					}
					return c.begin(ctx, r)
				}
				stuck := k.controller(to)
				defer stuck.Close()
				err := w.unpublishWithin(stuck, v, "a", 4*time.Minute)
				if to.forced() != c.want {
					t.Errorf("%d requests with force, want %d", to.forced(), c.want)
				}
				if (err == nil) != (c.want > 0) {
					t.Errorf("detach: %v", err)
				}
				if got := w.attached("a"); (len(got) == 0) != (c.want > 0) {
					t.Errorf("a has %v", got)
				}
			})
		})
	}
}

// TestDeletedNode checks row 110: the disk leads to the machine of a Node that was deleted. A disk that another machine has
// by now stays there.
func TestDeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 5})
		k := w.kubernetes()
		v := w.volume("v")
		if _, err := w.publish(w.Controller, v, "a"); err != nil {
			t.Fatal(err)
		}
		if err := k.CoreV1().Nodes().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := w.unpublish(w.Controller, v, "a"); err != nil {
			t.Error(err)
		}
		if got := w.attached("a"); len(got) > 0 {
			t.Errorf("a has %v", got)
		}
		if _, err := w.publish(w.Controller, v, "b"); err != nil {
			t.Fatal(err)
		}
		if err := w.unpublish(w.Controller, v, "a"); err != nil {
			t.Error("detach where it is no longer:", err)
		}
		if got := w.attached("b"); len(got) != 1 {
			t.Errorf("b has %v", got)
		}
	})
}

// TestMachineBeingDeleted checks that a disk leaves a machine that is being deleted, and is attached elsewhere.
func TestMachineBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 2})
		w.kubernetes()
		v := w.volume("v")
		if _, err := w.publish(w.Controller, v, "a"); err != nil {
			t.Fatal(err)
		}
		deleted := make(chan error, 1)
		go func() { deleted <- w.Client.Delete(t.Context(), w.nodes.of["a"]) }()
		<-time.After(2 * time.Second)
		began := time.Now()
		_, err := w.publish(w.Controller, v, "b")
		for ; err != nil; _, err = w.publish(w.Controller, v, "b") {
			if time.Since(began) > 10*time.Minute {
				t.Fatal(err)
			}
		}
		if err := <-deleted; err != nil || w.attached("b")[0] != "v" {
			t.Errorf("b has %v, deletion of a: %v", w.attached("b"), err)
		}
	})
}

// TestUnknownUse checks that no disk is taken from a machine while it is not known what Kubernetes wants.
func TestUnknownUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		v := w.volume("v")
		if _, err := w.publish(w.Controller, v, "a"); err != nil {
			t.Fatal(err)
		}
		c := w.with(noUses{})
		defer c.Close()
		w.Forget()
		if _, err := w.publish(c, v, "b"); err == nil || len(w.accepted()) > 0 {
			t.Errorf("%v, writes %v", err, w.accepted())
		}
	})
}

// noUses is a Kubernetes API that does not answer.
type noUses struct{}

func (noUses) Use(context.Context, azure.ID, string) (u disk.Use, err error) {
	return u, errors.New("the API server does not answer")
}

func (noUses) LUNs(context.Context, string) map[int]azure.ID { return nil }

func (noUses) Volumes(context.Context, azure.ID) ([]plandisk.PersistentVolume, error) {
	return nil, errors.New("the API server does not answer")
}

func (noUses) OutOfService(context.Context, string) (bool, error) {
	return false, errors.New("the API server does not answer")
}

// TestPublishedLUNs checks rows 100 and 101. A LUN that a VolumeAttachment shows for another disk is left free. A LUN that no
// machine can have is ignored.
func TestPublishedLUNs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		k := w.kubernetes()
		stale, fresh, huge := w.volume("stale"), w.volume("fresh"), w.volume("huge")
		wrong := attachment(huge, "huge", "a")
		wrong.Status.AttachmentMetadata["LUN"] = "64"
		k.add(pv("stale", stale), attachment(stale, "stale", "a"), pv("huge", huge), wrong)
		for _, c := range []struct{ volume, want string }{{fresh, "1"}, {huge, "2"}, {stale, "0"}} {
			if lun, err := w.publish(w.Controller, c.volume, "a"); err != nil || lun != c.want {
				t.Errorf("LUN %q of %s, %v, want %s", lun, c.volume, err, c.want)
			}
		}
	})
}

// TestStillLeaving checks rows 91 and 120: a disk that its machine is still detaching is attached there when it has left.
func TestStillLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 6})
		v := w.volume("v")
		if _, err := w.publish(w.Controller, v, "a"); err != nil {
			t.Fatal(err)
		}
		other := w.controller() // another process detaches
		defer other.Close()
		detached := make(chan error, 1)
		go func() { detached <- w.unpublish(other, v, "a") }()
		<-time.After(4 * time.Second)
		if at, ok := plandisk.Find(testkit.Must[compute.MachineDisks](w.Azure, w.nodes.of["a"]).Properties.StorageProfile,
			azure.ID(v)); !ok || !at.ToBeDetached {
			t.Fatalf("the detachment is not under way: %+v", at)
		}
		_, err := w.publish(w.Controller, v, "a")
		if second := <-detached; err != nil || second != nil {
			t.Errorf("attach: %v, detach: %v", err, second)
		}
		if got := w.attached("a"); got[0] != "v" {
			t.Errorf("a has %v", got)
		}
	})
}

// TestThrottledReads checks row 92: a read that Azure refuses for now does not look like a missing volume.
func TestThrottledReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		v := w.volume("v")
		if err := w.SetFaults([]core.Fault{
			{Method: "GET", Name: "v", Fault: core.FaultError, Status: 429, RetryAfter: 3600},
		}); err != nil {
			t.Fatal(err)
		}
		_, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: v, NodeId: "a", VolumeCapability: writer(),
		})
		wantCode(t, "92", err, codes.Unavailable)
		if _, err := w.publish(w.Controller, v, "a"); err != nil {
			t.Errorf("92: a volume whose context says all is attached without that read: %v", err)
		}
	})
}
