package disk_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

func snapshotOf(volume, name string, parameters ...string) *csispec.CreateSnapshotRequest {
	r := &csispec.CreateSnapshotRequest{Name: name, SourceVolumeId: volume, Parameters: map[string]string{}}
	for i := 0; i+1 < len(parameters); i += 2 {
		r.Parameters[parameters[i]] = parameters[i+1]
	}
	return r
}

// TestCreateSnapshot checks rows 132 to 137: the parameters of a snapshot and its document.
func TestCreateSnapshot(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.Put(testkit.Group.Parent()+"/resourceGroups/backups", map[string]any{"location": testkit.Location})
	v, other := w.volume("v"), w.volume("other")
	for i, c := range []struct {
		row     string
		request *csispec.CreateSnapshotRequest
		code    codes.Code
		want    string // of the error, or of the document
	}{
		{"132 no name", snapshotOf(v, ""), codes.InvalidArgument, "name is missing"},
		{"132 no source", snapshotOf("", "s"), codes.InvalidArgument, "source_volume_id is missing"},
		{"132 the source is missing", snapshotOf(string(testkit.Group)+"/providers/Microsoft.Compute/disks/none", "s"), codes.NotFound, "none"},
		{"133", snapshotOf(v, "s", "foo", "bar"), codes.InvalidArgument, `parameter foo: "bar" is not allowed: the key is not known`},
		{"136 59", snapshotOf(v, "s", "instantAccessDurationMinutes", "59"), codes.InvalidArgument, "want a whole number from 60 to 300"},
		{"136 301", snapshotOf(v, "s", "instantAccessDurationMinutes", "301"), codes.InvalidArgument, "want a whole number from 60 to 300"},
		{"136 x", snapshotOf(v, "s", "instantAccessDurationMinutes", "x"), codes.InvalidArgument, "want a whole number from 60 to 300"},
		{"136 60", snapshotOf(v, "instant", "INSTANTACCESSDURATIONMINUTES", "60"), codes.OK, `"instantAccessDurationMinutes":60`},
		{"137", snapshotOf(v, "s", "location", "northeurope", "incremental", "false"), codes.InvalidArgument, "only without location"},
		{"134", snapshotOf(v, "usual"), codes.OK, `"incremental":true`},
		{"134 again", snapshotOf(v, "usual"), codes.OK, `"incremental":true`},
		{"135", snapshotOf(other, "usual"), codes.AlreadyExists, "a snapshot of this name exists, of disk v"},
		{"full", snapshotOf(v, "full", "incremental", "false"), codes.OK, `"incremental":false`},
		{"the region of the cluster", snapshotOf(v, "here", "location", "West Europe"), codes.OK, `"createOption":"Copy"`},
		{"another group", snapshotOf(v, "saved", "resourceGroup", "backups", "tags", "a=b"), codes.OK, `"a":"b"`},
		{"a group that does not exist", snapshotOf(v, "s", "resourceGroup", "none"), codes.NotFound, "'none'"},
		{"a subscription that does not exist", snapshotOf(v, "s", "subscriptionID", "00000000-0000-0000-0000-00000000000f"), codes.NotFound,
			"ubscription"},
	} {
		answer, err := w.CreateSnapshot(t.Context(), c.request)
		wantCode(t, c.row, err, c.code)
		got := fmt.Sprint(err)
		if err == nil {
			doc, err := w.Client.Fresh().Get(t.Context(), azure.ID(answer.GetSnapshot().GetSnapshotId()))
			if err != nil {
				t.Fatal(err)
			}
			got = strings.NewReplacer("\n", "", " ", "").Replace(string(doc))
			if answer.GetSnapshot().GetSourceVolumeId() != v || !answer.GetSnapshot().GetReadyToUse() {
				t.Errorf("%s: %v", c.row, answer)
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%d %s: %s, want %s", i, c.row, got, c.want)
		}
	}
}

// TestSnapshotOfAnotherSubscription checks a snapshot in a subscription of its own.
func TestSnapshotOfAnotherSubscription(t *testing.T) {
	const second = "00000000-0000-0000-0000-0000000000a2"
	w := newDriverCluster(t, core.Options{Subscriptions: []core.Subscription{{ID: second, Tenant: core.DefaultTenant}}})
	w.Put("/subscriptions/"+second+"/resourceGroups/backups", map[string]any{"location": testkit.Location})
	v := w.volume("v")
	answer, err := w.CreateSnapshot(t.Context(), snapshotOf(v, "s", "subscriptionID", second, "resourceGroup", "backups"))
	if err != nil || azure.ID(answer.GetSnapshot().GetSnapshotId()).Subscription() != second {
		t.Fatal(answer, err)
	}
	r := request("copy")
	size(20*gib, 0)(r)
	r.VolumeContentSource = fromSnapshot(answer.GetSnapshot().GetSnapshotId())
	if made, err := w.CreateVolume(t.Context(), r); err != nil || made.GetVolume().GetCapacityBytes() != 20*gib {
		t.Error(made, err)
	}
}

// copying is Azure with snapshots that are copied to a percentage.
func (w *driverCluster) copying(percent *float64, of func(azure.Resource[compute.Snapshot]) bool) *disk.Controller {
	to := &interposed{Azure: fresh{w.Client.Fresh(), w.Client}}
	change := func(doc azure.Document) azure.Document {
		s, err := azure.Decode[compute.Snapshot](doc)
		if err != nil || !s.ID.Is(compute.Snapshots) || !of(s) {
			return doc
		}
		var fields map[string]any
		if err := json.Unmarshal(doc, &fields); err != nil {
			w.t.Error(err)
		}
		fields["properties"].(map[string]any)["completionPercent"] = *percent
		changed, err := json.Marshal(fields)
		if err != nil {
			w.t.Error(err)
		}
		return changed
	}
	to.get = func(_ azure.ID, doc azure.Document) azure.Document { return change(doc) }
	to.answer = change
	return w.over(to)
}

// TestSnapshotBeingCopied checks row 139: a snapshot is ready when Azure has copied it.
func TestSnapshotBeingCopied(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	percent := 40.0
	c := w.copying(&percent, func(azure.Resource[compute.Snapshot]) bool { return true })
	defer c.Close()
	v := w.volume("v", "skuName", "PremiumV2_LRS")
	for _, want := range []bool{false, false, true} {
		answer, err := c.CreateSnapshot(t.Context(), snapshotOf(v, "s"))
		if err != nil || answer.GetSnapshot().GetReadyToUse() != want {
			t.Errorf("at %.0f %%: %v, %v", percent, answer, err)
		}
		percent += 30
	}
	percent = 40
	answer, err := c.CreateSnapshot(t.Context(), snapshotOf(v, "instant", "instantAccessDurationMinutes", "60"))
	if err != nil || !answer.GetSnapshot().GetReadyToUse() {
		t.Errorf("a snapshot with instant access: %v, %v", answer, err)
	}
}

// TestSnapshotInAnotherRegion checks row 138: the copy has its id at once and is ready when it is complete. Nothing else is
// left, also if the copy is deleted early.
func TestSnapshotInAnotherRegion(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	local, remote := 50.0, 50.0
	c := w.copying(&local, func(s azure.Resource[compute.Snapshot]) bool { return strings.HasPrefix(s.ID.Name(), "local_") })
	defer c.Close()
	far := w.copying(&remote, func(s azure.Resource[compute.Snapshot]) bool { return !strings.HasPrefix(s.ID.Name(), "local_") })
	defer far.Close()
	v := w.volume("v")
	names := func() (all []string) {
		for _, s := range testkit.List[compute.Snapshot](w.Azure, testkit.Group, compute.Snapshots) {
			all = append(all, s.ID.Name()+" "+s.Location)
		}
		return all
	}
	step := func(what string, c *disk.Controller, ready bool, want ...string) {
		t.Helper()
		answer, err := c.CreateSnapshot(t.Context(), snapshotOf(v, "s", "location", "northeurope"))
		s := answer.GetSnapshot()
		if err != nil || !strings.HasSuffix(s.GetSnapshotId(), "/snapshots/s") || s.GetReadyToUse() != ready || s.GetSourceVolumeId() != v {
			t.Errorf("%s: %v, %v", what, answer, err)
		}
		if got := names(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	remove := func(id string) {
		t.Helper()
		if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: id}); err != nil || len(names()) > 0 {
			t.Errorf("delete: %v, left: %v", err, names())
		}
	}
	const id = string(testkit.Group) + "/providers/Microsoft.Compute/snapshots/s"
	step("the first is not complete", c, false, "local_s westeurope")
	remove(id)
	step("the first is not complete", c, false, "local_s westeurope")
	step("the copy is not complete", far, false, "local_s westeurope", "s northeurope")
	remove(id)
	step("all is complete", w.Controller, true, "s northeurope")
	step("again", w.Controller, true, "s northeurope")
	_, err := w.CreateSnapshot(t.Context(), snapshotOf(w.volume("other"), "s", "location", "northeurope"))
	wantCode(t, "135 in another region", err, codes.AlreadyExists)
	remove(id)
}

// TestCopyToAnotherRegion checks that nothing is made of a copy, and that its source stays, before Azure has copied it. The
// snapshot has instant access, which the copy has not.
func TestCopyToAnotherRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 1})
		v := w.volume("v")
		early, began := 0, time.Now()
		for ready := false; !ready; <-time.After(10 * time.Second) {
			answer, err := w.CreateSnapshot(t.Context(),
				snapshotOf(v, "s", "location", "northeurope", "instantAccessDurationMinutes", "60"))
			if err != nil {
				t.Fatal(err)
			}
			ready = answer.GetSnapshot().GetReadyToUse()
			r := request(fmt.Sprintf("copy%d", early), "location", "northeurope")
			r.VolumeContentSource = fromSnapshot(answer.GetSnapshot().GetSnapshotId())
			_, source := testkit.Read[compute.Snapshot](w.Azure, testkit.Group.Resource(compute.Snapshots, "local_s"))
			_, err = w.CreateVolume(t.Context(), r)
			if ready {
				wantCode(t, "a disk of the copy", err, codes.OK)
				continue
			}
			wantCode(t, "a disk of an incomplete copy", err, codes.Aborted)
			early++
			if !source || time.Since(began) > 10*time.Minute {
				t.Fatalf("after %s: source %t", time.Since(began), source)
			}
		}
		if early < 5 {
			t.Errorf("the copy was complete after %d requests", early)
		}
		id := testkit.Group.Resource(compute.Disks, "direct")
		_, err := azure.Do(t.Context(), w.Client, azure.Request{Verb: azure.Put, ID: id, Body: azure.Document(`{"location":"northeurope",` +
			`"properties":{"creationData":{"createOption":"Copy","sourceResourceId":"` + string(testkit.Group) +
			`/providers/Microsoft.Compute/snapshots/s"}}}`)})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestThrottledSnapshot checks row 140: a throttled request ends when Azure's time is longer than that of the caller.
func TestThrottledSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		v := w.volume("v")
		if err := w.SetFaults([]core.Fault{
			{Method: "PUT", Type: compute.Snapshots, Fault: core.FaultError, Status: 429, RetryAfter: 3600, Times: 1},
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := w.CreateSnapshot(t.Context(), snapshotOf(v, "s"))
		wantCode(t, "140", err, codes.Unavailable)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the refusal took %s", took)
		}
	})
}

// TestListSnapshots checks rows 141 to 144.
func TestListSnapshots(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v, other := w.volume("v"), w.volume("other")
	for i := range 5 {
		if _, err := w.CreateSnapshot(t.Context(), snapshotOf([]string{v, other}[i%2], fmt.Sprintf("s%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	var pages []int
	token := ""
	for range 10 {
		answer, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, len(answer.GetEntries()))
		if token = answer.GetNextToken(); token == "" {
			break
		}
	}
	if !slices.Equal(pages, []int{2, 2, 1}) {
		t.Errorf("143: pages %v", pages)
	}
	for what, c := range map[string]struct {
		request *csispec.ListSnapshotsRequest
		want    int
	}{
		"144 a missing id":     {&csispec.ListSnapshotsRequest{SnapshotId: string(testkit.Group) + "/providers/Microsoft.Compute/snapshots/none"}, 0},
		"144 a missing source": {&csispec.ListSnapshotsRequest{SourceVolumeId: "none"}, 0},
		"a source":             {&csispec.ListSnapshotsRequest{SourceVolumeId: strings.ToUpper(v)}, 3},
		"a bare name":          {&csispec.ListSnapshotsRequest{SnapshotId: "s1"}, 1},
	} {
		answer, err := w.ListSnapshots(t.Context(), c.request)
		if err != nil || len(answer.GetEntries()) != c.want {
			t.Errorf("%s: %v, %v, want %d", what, answer, err, c.want)
		}
	}
	for _, id := range []string{"nonsense", "/subscriptions/x/nonsense"} { // rows 141 and 142
		if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
	}
}
