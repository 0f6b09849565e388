package disk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/testkit"
)

// TestAnyWriteCanGoWrong checks that the life of a volume ends the same whatever happens to any one write. Two controllers
// take turns. Nothing is left, and no disk is ever at two machines.
func TestAnyWriteCanGoWrong(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for name, fault := range testkit.WriteFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"PUT", "PATCH", "POST", "DELETE"} {
				for nth := 1; disturbed(t, fault, method, nth); nth += stride {
				}
			}
		})
	}
}

// disturbed lives the life of a volume with the nth write of a method disturbed, and reports whether there was one.
func disturbed(t *testing.T, fault core.Fault, method string, nth int) (happened bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d", method, nth), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			crashed := make(chan struct{}, 1)
			w := newDriverCluster(t, core.Options{Latency: 1, Seed: uint64(nth), Crash: func(core.Fault) { crashed <- struct{}{} }})
			to := disk.Azure(fresh{w.Client.Fresh(), w.Client})
			if fault.Fault == "" {
				to = notApplied(to, azure.Verb(method), nth, &happened)
			} else {
				fault.Method, fault.Nth, fault.Times = method, nth, 1
				if err := w.SetFaults([]core.Fault{fault}); err != nil {
					t.Fatal(err)
				}
			}
			l := &life{driverCluster: w}
			l.replicas = testkit.Replicas[*disk.Controller]{
				Begin: func() *disk.Controller { return w.over(to) }, End: (*disk.Controller).Close, Crashed: crashed, After: l.alone,
			}
			defer l.replicas.Close()
			before := w.Snapshot()
			w.Forget()
			l.live()
			if fault.Fault != "" {
				happened = w.WritesBy(method) >= nth
			}
			if d := cmp.Diff(before, succeeded(w.Snapshot())); d != "" {
				t.Errorf("Azure is not as it was before (-before +after):\n%s", d)
			}
		})
	})
	return happened
}

// succeeded is a snapshot in which no write of a machine failed: machines are not written again for that.
func succeeded(all map[string]string) map[string]string {
	for id, text := range all {
		all[id] = strings.ReplaceAll(text, `"provisioningState": "Failed"`, `"provisioningState": "Succeeded"`)
	}
	return all
}

// notApplied is Azure that reports success for the nth request with a verb and changes nothing. Creations and deletions
// are carried out: nothing tells a program that they were not.
func notApplied(to disk.Azure, verb azure.Verb, nth int, happened *bool) disk.Azure {
	i, n := &interposed{Azure: to}, 0
	i.begin = func(ctx context.Context, r azure.Request) (*azure.Operation, error) {
		if r.Verb != verb || verb == azure.Put || verb == azure.Delete {
			return nil, nil
		}
		if n++; n != nth {
			return nil, nil
		}
		*happened = true
		doc, err := to.Get(ctx, r.ID)
		if err != nil || r.Verb != azure.Post {
			return azure.Done(doc), err
		}
		var machine struct {
			Properties struct{ StorageProfile json.RawMessage }
		}
		if err := json.Unmarshal(doc, &machine); err != nil {
			return nil, err
		}
		return azure.Done(azure.Document(machine.Properties.StorageProfile)), nil
	}
	return i
}

// life is the life of a volume, as the sidecars ask for it: each request is repeated until it succeeds.
type life struct {
	*driverCluster
	replicas testkit.Replicas[*disk.Controller]
}

func (l *life) until(what string, request func(context.Context, *disk.Controller) error) {
	l.t.Helper()
	l.replicas.Until(l.t, what, request)
}

// alone checks that no disk is at two machines.
func (l *life) alone() {
	l.t.Helper()
	at := map[string]string{}
	for node := range l.nodes.of {
		for _, name := range l.attached(node) {
			if other, twice := at[name]; twice {
				l.t.Errorf("disk %s is at %s and at %s", name, node, other)
			}
			at[name] = node
		}
	}
}

func (l *life) live() {
	l.t.Helper()
	var v, copied, snapshot string
	l.until("create", func(ctx context.Context, c *disk.Controller) error {
		answer, err := c.CreateVolume(ctx, request("v", "skuName", "PremiumV2_LRS"))
		v = answer.GetVolume().GetVolumeId()
		return err
	})
	attach := func(node string) {
		l.until("attach to "+node, func(ctx context.Context, c *disk.Controller) error {
			_, err := c.ControllerPublishVolume(ctx, &csispec.ControllerPublishVolumeRequest{
				VolumeId: v, NodeId: node, VolumeCapability: writer(), VolumeContext: map[string]string{plandisk.RequestedSize: "10"},
			})
			return err
		})
		if got := l.attached(node); got[0] != "v" || len(got) != 1 {
			l.t.Errorf("%s has %v", node, got)
		}
	}
	detach := func(node string) {
		l.until("detach from "+node, func(ctx context.Context, c *disk.Controller) error {
			_, err := c.ControllerUnpublishVolume(ctx, &csispec.ControllerUnpublishVolumeRequest{VolumeId: v, NodeId: node})
			return err
		})
	}
	attach("a")
	detach("a")
	attach("b")
	l.until("expand", func(ctx context.Context, c *disk.Controller) error {
		_, err := c.ControllerExpandVolume(ctx, &csispec.ControllerExpandVolumeRequest{
			VolumeId: v, CapacityRange: &csispec.CapacityRange{RequiredBytes: 20 * gib},
		})
		return err
	})
	l.until("modify", func(ctx context.Context, c *disk.Controller) error {
		_, err := c.ControllerModifyVolume(ctx, &csispec.ControllerModifyVolumeRequest{
			VolumeId: v, MutableParameters: map[string]string{"DiskIOPSReadWrite": "4000"},
		})
		return err
	})
	if have := l.disk(v).Properties; have.DiskSizeGB != 20 || *have.DiskIOPSReadWrite != 4000 {
		l.t.Errorf("the disk has %d GiB and %d IOPS", have.DiskSizeGB, *have.DiskIOPSReadWrite)
	}
	l.until("snapshot", func(ctx context.Context, c *disk.Controller) error {
		answer, err := c.CreateSnapshot(ctx, &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: v})
		snapshot = answer.GetSnapshot().GetSnapshotId()
		return err
	})
	l.until("restore", func(ctx context.Context, c *disk.Controller) error {
		r := request("copied")
		size(30*gib, 0)(r)
		r.VolumeContentSource = fromSnapshot(snapshot)
		answer, err := c.CreateVolume(ctx, r)
		copied = answer.GetVolume().GetVolumeId()
		return err
	})
	l.until("delete the snapshot", func(ctx context.Context, c *disk.Controller) error {
		_, err := c.DeleteSnapshot(ctx, &csispec.DeleteSnapshotRequest{SnapshotId: snapshot})
		return err
	})
	detach("b")
	for _, id := range []string{v, copied} {
		l.until("delete", func(ctx context.Context, c *disk.Controller) error {
			_, err := c.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: id})
			return err
		})
	}
}

func fromSnapshot(id string) *csispec.VolumeContentSource {
	return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
		Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: id},
	}}
}

// TestMachineDiesWhileAttaching checks that a disk that is being attached to a machine which is deleted ends at another
// machine, and nowhere else.
func TestMachineDiesWhileAttaching(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 3 * time.Second, 8 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{Latency: 1, Seed: 7})
			v := w.volume("v")
			deleted := make(chan error, 1)
			go func() {
				<-time.After(after)
				deleted <- w.Client.Delete(t.Context(), w.nodes.of["a"])
			}()
			_, _ = w.publish(w.Controller, v, "a") // the outcome depends on the moment
			if err := <-deleted; err != nil {
				t.Fatal(err)
			}
			if err := w.unpublish(w.Controller, v, "a"); err != nil {
				t.Errorf("after %s: detach: %v", after, err)
			}
			if lun, err := w.publish(w.Controller, v, "b"); err != nil || lun != "0" {
				t.Errorf("after %s: LUN %q, %v", after, lun, err)
			}
			if disks := testkit.List[compute.Disk](w.Azure, testkit.Group, compute.Disks); len(disks) != 4 { // 3 are of systems
				t.Errorf("after %s: %d disks", after, len(disks))
			}
		})
	}
}
