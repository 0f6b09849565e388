package file_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/emulator"
	"kaz/internal/testkit"
)

// TestAnyWriteCanGoWrong checks that the lives of two volumes end the same whatever happens to any one write, with two controllers
// that take turns: one account with one private endpoint and one Secret, and no share or snapshot is left.
func TestAnyWriteCanGoWrong(t *testing.T) {
	var want []string
	synctest.Test(t, func(t *testing.T) {
		l := newLives(t, emulator.Options{})
		l.live()
		want = l.ids()
	})
	if len(want) == 0 {
		t.Fatal("nothing is in the group after a life without faults")
	}
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for name, fault := range testkit.WriteFaults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"PUT", "PATCH", "POST", "DELETE"} {
				for nth := 1; disturbed(t, fault, method, nth, want); nth += stride {
				}
			}
		})
	}
}

// disturbed lives the lives with the nth write of a method disturbed, and reports whether there was one. want are the ids of the
// resources in the end.
func disturbed(t *testing.T, fault emulator.Fault, method string, nth int, want []string) (happened bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d", method, nth), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			crashed := make(chan struct{}, 1)
			l := newLives(t, emulator.Options{Latency: 1, Seed: uint64(nth), Crash: func(emulator.Fault) { crashed <- struct{}{} }})
			l.replicas.Crashed = crashed
			if fault.Fault == "" {
				l.config.Azure = &idle{Azure: l.config.Azure, verb: azure.Verb(method), nth: nth}
			} else {
				fault.Method, fault.Nth, fault.Times = method, nth, 1
				if err := l.SetFaults([]emulator.Fault{fault}); err != nil {
					t.Fatal(err)
				}
			}
			l.Forget()
			l.live()
			if d := cmp.Diff(want, l.ids()); d != "" {
				t.Errorf("resources in the end (-without faults +now):\n%s", d)
			}
			happened = l.WritesBy(method) >= nth
			if i, ok := l.config.Azure.(*idle); ok {
				happened = i.happened
			}
		})
	})
	return happened
}

// idle is Azure that reports success for the nth change and does not make it. Creations, deletions and actions are carried out:
// nothing tells a program that they were not.
type idle struct {
	file.Azure
	verb     azure.Verb
	nth      int
	happened bool
}

func (i *idle) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if r.Verb != i.verb || r.Verb != azure.Patch {
		return i.Azure.Begin(ctx, r)
	}
	if i.nth--; i.nth != 0 {
		return i.Azure.Begin(ctx, r)
	}
	i.happened = true
	doc, err := i.Get(ctx, r.ID)
	return azure.Done(doc), err
}

// lives are the lives of two volumes of a class, as the sidecars ask for them: each request is repeated until it succeeds.
type lives struct {
	*world
	replicas testkit.Replicas[*file.Controller]
}

func newLives(t *testing.T, o emulator.Options) *lives {
	t.Helper()
	w := newWorld(t, o)
	return &lives{world: w, replicas: testkit.Replicas[*file.Controller]{Begin: w.again}}
}

func (l *lives) until(what string, request func(context.Context, *file.Controller) error) {
	l.t.Helper()
	l.replicas.Until(l.t, what, request)
}

func (l *lives) live() {
	l.t.Helper()
	var first, second, snapshot string
	create := func(name string) (id string) {
		l.until("create "+name, func(ctx context.Context, c *file.Controller) error {
			answer, err := c.CreateVolume(ctx, request(name, "skuName", "PremiumV2_LRS", "networkEndpointType", "privateEndpoint"))
			id = answer.GetVolume().GetVolumeId()
			return err
		})
		return id
	}
	first, second = create("pvc-1"), create("pvc-2")
	l.volumes = []file.Claimed{{Name: "pvc-1", Handle: first}, {Name: "pvc-2", Handle: second}}
	l.until("expand", func(ctx context.Context, c *file.Controller) error {
		_, err := c.ControllerExpandVolume(ctx, &csispec.ControllerExpandVolumeRequest{
			VolumeId: first, CapacityRange: &csispec.CapacityRange{RequiredBytes: 50 * gib},
		})
		return err
	})
	l.until("modify", func(ctx context.Context, c *file.Controller) error {
		_, err := c.ControllerModifyVolume(ctx, &csispec.ControllerModifyVolumeRequest{
			VolumeId: first, MutableParameters: map[string]string{"provisionedIOPS": "5000"},
		})
		return err
	})
	if s := l.share(first); s.QuotaGiB != 50 || *s.IOPS != 5000 {
		l.t.Errorf("the share has %d GiB and %d IOPS", s.QuotaGiB, *s.IOPS)
	}
	l.until("snapshot", func(ctx context.Context, c *file.Controller) error {
		answer, err := c.CreateSnapshot(ctx, &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: second})
		snapshot = answer.GetSnapshot().GetSnapshotId()
		return err
	})
	l.until("delete the snapshot", func(ctx context.Context, c *file.Controller) error {
		_, err := c.DeleteSnapshot(ctx, &csispec.DeleteSnapshotRequest{SnapshotId: snapshot})
		return err
	})
	for _, id := range []string{first, second} {
		l.until("delete", func(ctx context.Context, c *file.Controller) error {
			_, err := c.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: id})
			return err
		})
		if l.exists(id) {
			l.t.Errorf("the share of %s is there", id)
		}
	}
	if len(l.secrets.values) != 1 {
		l.t.Errorf("Secrets: %v, want one", slices.Collect(maps.Keys(l.secrets.values)))
	}
}

// ids are the ids of all resources in the cluster's group, and of the shares in its accounts.
func (l *lives) ids() []string {
	l.t.Helper()
	all := slices.Collect(maps.Keys(l.Snapshot()))
	for _, a := range l.accounts() {
		for _, s := range testkit.List[storage.Share](l.Azure, a.ID.Child("fileServices", "default"), storage.Shares) {
			all = append(all, string(s.ID))
		}
	}
	slices.Sort(all)
	return all
}
