package file_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestAnyWriteCanGoWrong checks that the lives of volumes end the same whatever happens to any one write. Two controllers
// take turns. One account with one private endpoint and one Secret is left, or the accounts of copies. No share and no
// snapshot is left. A copy that is there is complete.
func TestAnyWriteCanGoWrong(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for story, live := range map[string]func(*lives){"volumes": (*lives).live, "copies": (*lives).liveAsCopies} {
		var want []string
		synctest.Test(t, func(t *testing.T) {
			l := newLives(t, core.Options{})
			live(l)
			want = l.ids()
		})
		if len(want) == 0 {
			t.Fatalf("%s: nothing is in the group after a life without faults", story)
		}
		for name, fault := range testkit.WriteFaults() {
			t.Run(story+"/"+name, func(t *testing.T) {
				t.Parallel()
				for _, method := range []string{"PUT", "PATCH", "POST", "DELETE", filesMethod} {
					for nth := 1; disturbed(t, live, fault, method, nth, want); nth += stride {
					}
				}
			})
		}
	}
}

// disturbed runs the lives with the nth write of a method disturbed, and reports whether there was such a write. At the end
// the ids of the resources must be want.
func disturbed(t *testing.T, live func(*lives), fault core.Fault, method string, nth int, want []string) (happened bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d", method, nth), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			crashed := make(chan struct{}, 1)
			crash := func(core.Fault) { crashed <- struct{}{} }
			l := newLives(t, core.Options{Latency: 1, Seed: uint64(nth), Crash: crash})
			l.replicas.Crashed = crashed
			reached := l.disturb(fault, method, nth, crash)
			l.Forget()
			live(l)
			if d := cmp.Diff(want, l.ids()); d != "" {
				t.Errorf("resources in the end (-without faults +now):\n%s", d)
			}
			happened = reached()
			<-time.After(endOfReads)
		})
	})
	return happened
}

// endOfReads is a time in which the reads end that the callers of a crashed controller have shared.
const endOfReads = 3 * time.Minute

// disturb lets the nth write of a method go wrong, and returns what reports whether it happened.
func (l *lives) disturb(fault core.Fault, method string, nth int, crash func(core.Fault)) (reached func() bool) {
	l.t.Helper()
	switch {
	case method == filesMethod:
		l.files.fault = &fileFault{rule: fault, nth: nth, crash: crash}
		return l.files.fault.reached
	case fault.Fault == "":
		i := &idle{Azure: l.config.Azure, verb: azure.Verb(method), nth: nth}
		l.config.Azure = i
		return func() bool { return i.happened }
	}
	fault.Method, fault.Nth, fault.Times = method, nth, 1
	if err := l.SetFaults([]core.Fault{fault}); err != nil {
		l.t.Fatal(err)
	}
	return func() bool { return l.WritesBy(method) >= nth }
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

// lives are the lives of volumes, as the sidecars ask for them: each request is repeated until it succeeds.
type lives struct {
	*driverCluster
	replicas testkit.Replicas[*file.Controller]
	files    *within
}

func newLives(t *testing.T, o core.Options) *lives {
	t.Helper()
	w := newDriverCluster(t, o)
	return &lives{driverCluster: w, replicas: testkit.Replicas[*file.Controller]{Begin: w.again}, files: w.withFiles()}
}

func (l *lives) until(what string, request func(context.Context, *file.Controller) error) {
	l.t.Helper()
	l.replicas.Until(l.t, what, func(ctx context.Context, c *file.Controller) error {
		err := request(ctx, c)
		if err != nil {
			<-time.After(untilRepeated)
		}
		return err
	})
}

// untilRepeated is the time until a request that failed is repeated. All repetitions together take longer than Azure takes
// to create a resource. A resource that a crashed controller has begun to create cannot be read before.
const untilRepeated = 10 * time.Second

// create creates a volume and returns its id.
func (l *lives) create(r *csispec.CreateVolumeRequest) (id string) {
	l.t.Helper()
	l.until("create "+r.GetName(), func(ctx context.Context, c *file.Controller) error {
		answer, err := c.CreateVolume(ctx, r)
		id = answer.GetVolume().GetVolumeId()
		return err
	})
	return id
}

// snapshotOf takes a snapshot of a volume and returns its id.
func (l *lives) snapshotOf(volume string) (id string) {
	l.t.Helper()
	l.until("snapshot", func(ctx context.Context, c *file.Controller) error {
		answer, err := c.CreateSnapshot(ctx, &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: volume})
		id = answer.GetSnapshot().GetSnapshotId()
		return err
	})
	return id
}

// end deletes a snapshot and then volumes.
func (l *lives) end(snapshot string, volumes ...string) {
	l.t.Helper()
	l.until("delete the snapshot", func(ctx context.Context, c *file.Controller) error {
		_, err := c.DeleteSnapshot(ctx, &csispec.DeleteSnapshotRequest{SnapshotId: snapshot})
		return err
	})
	for _, id := range volumes {
		l.until("delete", func(ctx context.Context, c *file.Controller) error {
			_, err := c.DeleteVolume(ctx, &csispec.DeleteVolumeRequest{VolumeId: id})
			return err
		})
		if l.exists(id) {
			l.t.Errorf("the share of %s is there", id)
		}
	}
}

// live is the life of two volumes of a class.
func (l *lives) live() {
	l.t.Helper()
	class := []string{"skuName", "PremiumV2_LRS", "networkEndpointType", "privateEndpoint"}
	first, second := l.create(request("pvc-1", class...)), l.create(request("pvc-2", class...))
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
	l.end(l.snapshotOf(second), first, second)
	if len(l.secrets.values) != 1 {
		l.t.Errorf("Secrets: %v, want one", slices.Collect(maps.Keys(l.secrets.values)))
	}
}

// liveAsCopies is the life of a volume, of a clone in its account and of a restored snapshot in another one.
func (l *lives) liveAsCopies() {
	l.t.Helper()
	content := map[string]string{"a/b/deep": "deep", "a/empty": "", "top": "top"}
	source := l.create(request("pvc-source"))
	l.fill(source, content)
	snapshot := l.snapshotOf(source)
	all := []string{source}
	for name, from := range map[string]*csispec.VolumeContentSource{"pvc-clone": fromVolume(source), "pvc-restored": fromSnapshot(snapshot)} {
		r := request(name)
		if r.VolumeContentSource = from; from.GetSnapshot() != nil {
			r.Parameters["skuName"] = "Premium_LRS"
		}
		id := l.create(r)
		l.check(name, id, content)
		all = append(all, id)
	}
	l.end(snapshot, all...)
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
