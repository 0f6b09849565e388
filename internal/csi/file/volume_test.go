package file_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
	"kaz/internal/csi/file"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/share"
	"kaz/internal/testkit"
)

func (w *driverCluster) remove(id string) error {
	_, err := w.DeleteVolume(w.t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id})
	return err
}

// exists reports whether the share of a volume exists.
func (w *driverCluster) exists(id string) bool {
	w.t.Helper()
	v, err := share.ParseVolume(id)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.Client.Fresh().Get(w.t.Context(), cluster().ShareID(v))
	if err != nil && !azure.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// TestDelete checks row 55: a share is deleted once, and what is no share is no error.
func TestDelete(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	id := w.volume("pvc-1").GetVolumeId()
	for _, what := range []string{id, id, "garbage", "rg#none#none###default"} {
		if err := w.remove(what); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if w.exists(id) {
		t.Error("the share remains")
	}
	wantCode(t, "no id", w.remove(""), codes.InvalidArgument)
	if again := w.volume("pvc-1"); !w.exists(again.GetVolumeId()) {
		t.Error("38: a deleted share is not created again")
	}
}

// TestSharedShare checks row 39 and defect 7: a share that another persistent volume has stays until the last is deleted.
func TestSharedShare(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	class := []string{"shareName", "common", "folderName", "${pvc.metadata.name}"}
	a, b := w.volume("pvc-a", class...).GetVolumeId(), w.volume("pvc-b", class...).GetVolumeId()
	w.volumes = []file.Claimed{{Name: "pvc-a", Handle: a}, {Name: "pvc-b", Handle: b}}
	if err := w.remove(b); err != nil || !w.exists(a) {
		t.Errorf("%v: the share of another volume is deleted", err)
	}
	w.volumes[0].Released, w.volumes[1].Released = true, true
	for _, id := range []string{b, a} { // both are deleted at the same time: one deletes the share
		if err := w.remove(id); err != nil {
			t.Error(err)
		}
	}
	if w.exists(a) {
		t.Error("the share of two deleted volumes remains")
	}
}

// TestShareOfAnotherVolume checks that a share stays while another persistent volume has it. The other volume was written by
// hand for a share that the driver named, or it has the same volume id.
func TestShareOfAnotherVolume(t *testing.T) {
	for what, handle := range map[string]func(id string) string{
		"by hand":     func(id string) string { return strings.Replace(id, "###", "##mine#", 1) },
		"the same id": func(id string) string { return id },
	} {
		w := newDriverCluster(t, core.Options{})
		id := w.volume("pvc-a").GetVolumeId()
		w.volumes = []file.Claimed{{Name: "a-other", Handle: handle(id)}, {Name: "pvc-a", Handle: id, Released: true}}
		if err := w.remove(id); err != nil || !w.exists(id) {
			t.Errorf("%s: %v: the share of another volume is deleted", what, err)
		}
		w.volumes = w.volumes[:1]
		w.volumes[0].Released = true
		if err := w.remove(w.volumes[0].Handle); err != nil || w.exists(id) {
			t.Errorf("%s: %v: the share remains after its last volume", what, err)
		}
	}
}

// TestShareOfAttributes checks that a share stays while the attributes of another persistent volume name it, or may name it.
func TestShareOfAttributes(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	id := w.volume("pvc-a").GetVolumeId()
	account := accountOf(id)
	mine := file.Claimed{Name: "pvc-a", Handle: id, Released: true}
	for what, c := range map[string]struct {
		other file.Claimed
		want  codes.Code
	}{
		"its attributes name the share": {file.Claimed{Handle: "shared-ns-b-unique-id",
			Attributes: map[string]string{"storageAccount": account, "shareName": "pvc-a"}}, codes.OK},
		"they name no account": {file.Claimed{Handle: "shared-ns-b-unique-id",
			Attributes: map[string]string{"shareName": "pvc-a"}}, codes.FailedPrecondition},
		"its id has the name of the share": {file.Claimed{Handle: account + "/pvc-a"}, codes.FailedPrecondition},
		"a Secret has the account":         {file.Claimed{Handle: "#my-key#pvc-a#web#apps"}, codes.FailedPrecondition},
	} {
		c.other.Name = "static-b"
		w.volumes = []file.Claimed{mine, c.other}
		err := w.remove(id)
		wantCode(t, what, err, c.want)
		if err != nil && !strings.Contains(err.Error(), "static-b") {
			t.Errorf("%s: %v does not name the other volume", what, err)
		}
		if !w.exists(id) {
			t.Fatalf("%s: the share of another volume is deleted", what)
		}
	}
	w.volumes = []file.Claimed{{Name: "pvc-a", Handle: id, Attributes: map[string]string{"shareName": "other"}, Released: true}}
	wantCode(t, "its own attributes name another share", w.remove(id), codes.FailedPrecondition)
	w.volumes = []file.Claimed{mine, {Name: "static-b", Handle: "any", Attributes: map[string]string{"storageAccount": account, "shareName": "x"}}}
	if err := w.remove(id); err != nil || w.exists(id) {
		t.Errorf("%v: the share remains although no other volume has it", err)
	}
}

// TestShareOfAnotherNamespace checks that claims of the same name in two namespaces do not get one share, also if Azure ignores
// conditions of writes or the share was created before shares had owners in their metadata.
func TestShareOfAnotherNamespace(t *testing.T) {
	for what, change := range map[string]func(w *driverCluster, id string){
		"by metadata": func(*driverCluster, string) {},
		"by its persistent volume": func(w *driverCluster, id string) {
			w.volumes = []file.Claimed{{Name: "pvc-a", Handle: id, ClaimNamespace: "team-a", ClaimName: "data"}}
			v, err := share.ParseVolume(id)
			if err != nil {
				w.t.Fatal(err)
			}
			if _, err := w.Client.Patch(w.t.Context(), azure.Write{ID: cluster().ShareID(v),
				Body: []byte(`{"properties":{"metadata":{"createdBy":"file.csi.azure.com"}}}`)}); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		w := newDriverCluster(t, core.Options{})
		class := func(namespace string) []string {
			return []string{"shareName", "${pvc.metadata.name}", "csi.storage.k8s.io/pvc/name", "data", "csi.storage.k8s.io/pvc/namespace", namespace}
		}
		id := w.volume("pvc-a", class("team-a")...).GetVolumeId()
		before := w.share(id)
		change(w, id)
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Fault: core.FaultUnconditional}}); err != nil {
			t.Fatal(err)
		}
		larger := request("pvc-b", class("team-b")...)
		larger.CapacityRange.RequiredBytes = 20 * gib
		_, err := w.again().CreateVolume(t.Context(), larger)
		wantCode(t, what, err, codes.AlreadyExists)
		if err == nil || !strings.Contains(err.Error(), "team-a/data") {
			t.Errorf("%s: %v does not name the other claim", what, err)
		}
		if after := w.share(id); after.QuotaGiB != before.QuotaGiB {
			t.Errorf("%s: the share of the other claim has %d GiB now", what, after.QuotaGiB)
		}
		if again, err := w.again().CreateVolume(t.Context(), request("pvc-c", class("team-a")...)); err != nil {
			t.Errorf("%s: a claim that is made again: %v, %v", what, again, err)
		}
	}
	w := newDriverCluster(t, core.Options{})
	for _, namespace := range []string{"team-a", "team-b"} {
		w.volume("pvc-"+namespace, "shareName", "common", "csi.storage.k8s.io/pvc/name", "data", "csi.storage.k8s.io/pvc/namespace", namespace)
	}
}

// TestDeletedByAnotherProcess checks that a share which another process deleted is created again, although this one read it
// less than a minute ago.
func TestDeletedByAnotherProcess(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	id := w.volume("pvc-1", "shareName", "common").GetVolumeId()
	if _, err := w.again().DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
	if w.volume("pvc-1", "shareName", "common"); !w.exists(id) {
		t.Error("the volume has no share")
	}
}

// inert is Azure that reports success for changes and does not make them.
type inert struct{ file.Azure }

func (i inert) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if r.Verb != azure.Patch {
		return i.Azure.Begin(ctx, r)
	}
	doc, err := i.Get(ctx, r.ID)
	return azure.Done(doc), err
}

// TestChangeThatIsNotMade checks that a change which Azure reports and does not make is no success.
func TestChangeThatIsNotMade(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	id := w.volume("pvc-1", "skuName", "PremiumV2_LRS").GetVolumeId()
	w.config.Azure = inert{w.config.Azure}
	_, err := w.again().ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
		VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 50 * gib},
	})
	wantCode(t, "grow", err, codes.Aborted)
	_, err = w.again().ControllerModifyVolume(t.Context(), &csispec.ControllerModifyVolumeRequest{
		VolumeId: id, MutableParameters: map[string]string{"provisionedIOPS": "4000"},
	})
	wantCode(t, "modify", err, codes.Aborted)
}

// TestSizeThatIsNotReported checks that a share without a reported size is not written: the new size could be smaller.
func TestSizeThatIsNotReported(t *testing.T) {
	for name, quota := range map[string]any{"absent": nil, "0": 0} {
		t.Run(name, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{})
			id := w.volume("pvc-1").GetVolumeId()
			w.Forget()
			if err := w.SetFaults([]core.Fault{{Method: "GET", Fault: core.FaultAnswer, Path: "properties.shareQuota", Value: quota,
				Type: "Microsoft.Storage/storageAccounts/fileServices/shares"}}); err != nil {
				t.Fatal(err)
			}
			_, err := w.ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
				VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 1 * gib},
			})
			wantCode(t, "grow", err, codes.Unavailable)
			if writes := w.Writes(); len(writes) > 0 {
				t.Error(writes)
			}
		})
	}
}

// refusing are Secrets that may not be written.
type refusing struct{}

func (refusing) Check(context.Context, string, string, string) error { return nil }

func (refusing) Put(context.Context, string, string, file.Credentials) error {
	return status.Error(codes.PermissionDenied, "secrets is forbidden")
}

// TestErrorAfterCreation checks that an error after the share was created makes the provisioner repeat the request. With a final
// code it would forget the volume, and the share would remain.
func TestErrorAfterCreation(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.config.Secrets = refusing{}
	_, err := w.again().CreateVolume(t.Context(), request("pvc-1"))
	wantCode(t, "a secret that cannot be written", err, codes.Aborted)
	if err == nil || !strings.Contains(err.Error(), "PermissionDenied") {
		t.Errorf("%v does not say why", err)
	}
}

// TestSecretThatCannotBeUsed checks that a Secret with the key of another account stays as it is, and that the request fails before a
// share exists.
func TestSecretThatCannotBeUsed(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	other := file.SecretOf(file.Credentials{Account: "other", Key: secret.New("theirs")})
	w.secrets.values["apps/mine"] = other
	_, err := w.CreateVolume(t.Context(), request("pvc-1", "secretName", "mine", "secretNamespace", "apps"))
	wantCode(t, "a Secret of another account", err, codes.FailedPrecondition)
	if w.calls()["PUT shares"] > 0 || !maps.Equal(w.secrets.values["apps/mine"], other) {
		t.Errorf("%v, the Secret: %d values", w.calls(), len(w.secrets.values["apps/mine"]))
	}
}

// TestRefusedCopies checks that a copy that can never succeed creates neither a share nor an account.
func TestRefusedCopies(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	source := w.volume("pvc-source").GetVolumeId()
	w.Forget()
	small := request("pvc-small")
	small.CapacityRange.RequiredBytes = gib
	for want, r := range map[codes.Code]*csispec.CreateVolumeRequest{codes.OutOfRange: small, codes.Unimplemented: request("pvc-nfs", "protocol", "nfs")} {
		r.VolumeContentSource = fromVolume(source)
		_, err := w.CreateVolume(t.Context(), r)
		wantCode(t, r.GetName(), err, want)
	}
	if writes := w.Writes(); len(writes) > 0 {
		t.Errorf("%q", writes)
	}
}

func (w *driverCluster) snapshot(volume, name string, parameters ...string) (*csispec.Snapshot, error) {
	r := &csispec.CreateSnapshotRequest{Name: name, SourceVolumeId: volume, Parameters: map[string]string{}}
	for i := 0; i+1 < len(parameters); i += 2 {
		r.Parameters[parameters[i]] = parameters[i+1]
	}
	answer, err := w.CreateSnapshot(w.t.Context(), r)
	return answer.GetSnapshot(), err
}

// TestSnapshots checks rows 50 to 54 and defect 8.
func TestSnapshots(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v, other := w.volume("pvc-1").GetVolumeId(), w.volume("pvc-2").GetVolumeId()
	first, err := w.snapshot(v, "s1", "metadata", "team=a", "useDataPlaneAPI", "false",
		// as csi-snapshotter sends with --extra-create-metadata
		"csi.storage.k8s.io/volumesnapshot/name", "s1", "csi.storage.k8s.io/volumesnapshot/namespace", "default",
		"csi.storage.k8s.io/volumesnapshotcontent/name", "snapcontent-1")
	if err != nil || first.GetSizeBytes() != 10*gib || !first.GetReadyToUse() || !strings.HasPrefix(first.GetSnapshotId(), v+"#") {
		t.Fatalf("%v, %v", first, err)
	}
	if again, err := w.snapshot(v, "s1"); err != nil || again.GetSnapshotId() != first.GetSnapshotId() {
		t.Errorf("50: %v, %v", again, err)
	}
	r := &csispec.CreateSnapshotRequest{Name: "s1", SourceVolumeId: v}
	if again, err := w.again().CreateSnapshot(t.Context(), r); err != nil || again.GetSnapshot().GetSnapshotId() != first.GetSnapshotId() {
		t.Errorf("50, a new process: %v, %v", again, err)
	}
	_, err = w.snapshot(other, "s1")
	wantCode(t, "51", err, codes.AlreadyExists)
	for what, parameters := range map[string][]string{"52": {"metadata", "initiator=x"}, "52 key": {"foo", "bar"}, "52 pair": {"metadata", "x"}} {
		_, err := w.snapshot(v, "s2", parameters...)
		wantCode(t, what, err, codes.InvalidArgument)
	}
	_, err = w.snapshot("rg#none#none###default", "s3")
	wantCode(t, "no source", err, codes.NotFound)
	wantCode(t, "54", w.remove(v), codes.FailedPrecondition)
	if !w.exists(v) {
		t.Error("54: a share with a snapshot was deleted")
	}
	for _, id := range []string{first.GetSnapshotId(), first.GetSnapshotId(), "garbage", "rg#none#none###default#2026-01-02T03:04:05.0000000Z#"} {
		if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: id}); err != nil {
			t.Errorf("53: delete %s: %v", id, err)
		}
	}
	if err := w.remove(v); err != nil {
		t.Error(err)
	}
}

// TestSnapshotsAreNotDoubled checks defect 6: while a snapshot cannot be read, no second one of its name is taken.
func TestSnapshotsAreNotDoubled(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("pvc-1").GetVolumeId()
	if _, err := w.snapshot(v, "s1"); err != nil {
		t.Fatal(err)
	}
	id := azure.ID(string(testkit.Group) + "/providers/Microsoft.Storage/storageAccounts/" + accountOf(v))
	if err := w.SetFaults([]core.Fault{{Method: "GET", Type: "Microsoft.Storage/storageAccounts/fileServices/shares", Nth: 3,
		Fault: core.FaultError, Status: 403, Code: "AuthorizationFailed"}}); err != nil {
		t.Fatal(err)
	}
	_, err := w.again().CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "s1", SourceVolumeId: v})
	wantCode(t, "the snapshot cannot be read", err, codes.PermissionDenied)
	if err := w.SetFaults(nil); err != nil {
		t.Fatal(err)
	}
	answer, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SourceVolumeId: v})
	if err != nil || len(answer.GetEntries()) != 1 {
		t.Errorf("%v, %v of %s", answer, err, id)
	}
}

// TestSnapshotNamesAreReadOnce checks that after a restart the names of many snapshots cost few reads: Azure Resource Manager allows 800
// in 5 minutes. Where the file service does not answer, the newest snapshots are read first.
func TestSnapshotNamesAreReadOnce(t *testing.T) {
	const shares, each = 5, 40
	w := newDriverCluster(t, core.Options{})
	w.withFiles()
	ids := map[string]*csispec.Snapshot{}
	for i := range shares {
		v := w.volume(fmt.Sprintf("pvc-%d", i)).GetVolumeId()
		for j := range each {
			s, err := w.snapshot(v, fmt.Sprintf("s-%d-%d", i, j))
			if err != nil {
				t.Fatal(err)
			}
			ids[fmt.Sprintf("s-%d-%d", i, j)] = s
		}
	}
	repeat := func(c *file.Controller, name string) {
		t.Helper()
		r := &csispec.CreateSnapshotRequest{Name: name, SourceVolumeId: ids[name].GetSourceVolumeId()}
		got, err := c.CreateSnapshot(t.Context(), r)
		if err != nil || got.GetSnapshot().GetSnapshotId() != ids[name].GetSnapshotId() {
			t.Errorf("%s: %v, %v, want %s", name, got, err, ids[name].GetSnapshotId())
		}
	}
	w.Forget()
	c := w.again()
	for i := range shares {
		repeat(c, fmt.Sprintf("s-%d-0", i)) // the oldest
		repeat(c, fmt.Sprintf("s-%d-%d", i, each-1))
	}
	if reads := w.calls()["GET shares"]; reads > 4*shares {
		t.Errorf("%d reads for 2 snapshots of each of %d shares: %v", reads, shares, w.calls())
	}
	w.config.Files = nil
	w.Forget()
	repeat(w.again(), fmt.Sprintf("s-0-%d", each-1))
	if reads := w.calls()["GET shares"]; reads > 12 {
		t.Errorf("%d reads to find the newest snapshot: %v", reads, w.calls())
	}
}

// TestSnapshotNamesAreReadSlowly checks that a driver that does not reach the file service reads few names at once, because Azure allows
// 800 reads in 5 minutes for a storage account, and in the end takes one snapshot of each new name.
func TestSnapshotNamesAreReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shares, each, window = 2, 155, 5 * time.Minute
		w := newDriverCluster(t, core.Options{})
		var volumes []string
		for i := range shares {
			v := w.volume(fmt.Sprintf("pvc-%d", i)).GetVolumeId()
			volumes = append(volumes, v)
			for j := range each {
				if _, err := w.snapshot(v, fmt.Sprintf("s-%d-%d", i, j)); err != nil {
					t.Fatal(err)
				}
			}
		}
		<-time.After(window)
		c := w.again()
		var reads []time.Time // of each request for the shares
		refused, left := 0, slices.Clone(volumes)
		for len(left) > 0 {
			v := left[0]
			w.Forget()
			_, err := c.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "new-" + v, SourceVolumeId: v})
			for range w.calls()["GET shares"] {
				reads = append(reads, time.Now())
			}
			if err == nil {
				left = left[1:]
				continue
			}
			wantCode(t, "names are not known yet", err, codes.Unavailable)
			refused++
			<-time.After(30 * time.Second) // as the sidecar repeats
		}
		if refused == 0 {
			t.Error("no request was refused: the test reads too few names")
		}
		const most = 300 // in one moment
		for i, at := range reads {
			now := slices.DeleteFunc(slices.Clone(reads[i:]), func(other time.Time) bool { return other.Sub(at) > time.Second })
			if lists := 2 * (shares + refused); len(now) > most+lists {
				t.Fatalf("%d reads in one second, want at most %d names and %d lists", len(now), most, lists)
			}
		}
		for _, v := range volumes {
			answer, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SourceVolumeId: v})
			if err != nil || len(answer.GetEntries()) != each+1 {
				t.Errorf("%s: %d snapshots, %v; want %d", v, len(answer.GetEntries()), err, each+1)
			}
		}
	})
}

// TestSnapshotsAtOnce checks defect 39: requests for one name at the same time take one snapshot.
func TestSnapshotsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1})
		v := w.volume("pvc-1").GetVolumeId()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if _, err := w.snapshot(v, "s1"); err != nil {
					wantCode(t, "39", err, codes.Aborted)
				}
			})
		}
		group.Wait()
		first, err := w.snapshot(v, "s1")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			group.Go(func() {
				if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: first.GetSnapshotId()}); err != nil {
					wantCode(t, "39 delete", err, codes.Aborted)
				}
			})
			if answer, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SourceVolumeId: v}); err != nil || len(answer.GetEntries()) > 1 {
				t.Errorf("%v, %v, want at most one snapshot", answer, err)
			}
		}
		group.Wait()
	})
}

// TestExpand checks rows 57 to 60.
func TestExpand(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	expand := func(id string, size, limit int64) (int64, error) {
		answer, err := w.ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: size, LimitBytes: limit},
		})
		return answer.GetCapacityBytes() / gib, err
	}
	v := w.volume("pvc-1", "skuName", "PremiumV2_LRS").GetVolumeId()
	for _, c := range []struct {
		row        string
		size, want int64
		writes     int
	}{{"57 up", 200*gib + 1, 201, 1}, {"57 same", 201 * gib, 201, 0}, {"57 down", 5 * gib, 201, 0}} {
		w.Forget()
		got, err := expand(v, c.size, 0)
		if err != nil || got != c.want || w.calls()["PATCH shares"] != c.writes {
			t.Errorf("%s: %d, %v, %v", c.row, got, err, w.calls())
		}
	}
	if s := w.share(v); *s.IOPS != 3201 {
		t.Errorf("the performance of a grown share: %+v", s)
	}
	for what, c := range map[string]struct {
		id          string
		size, limit int64
		want        codes.Code
	}{
		"60":         {"x", gib, 0, codes.InvalidArgument},
		"58":         {"rg#a#s#disk.vhd##default", gib, 0, codes.Unimplemented},
		"no id":      {"", gib, 0, codes.InvalidArgument},
		"no size":    {v, 0, 0, codes.InvalidArgument},
		"a limit":    {v, 300 * gib, 200 * gib, codes.OutOfRange},
		"no such":    {"rg#a#s###default", gib, 0, codes.NotFound},
		"over limit": {v, 300000 * gib, 0, codes.OutOfRange},
	} {
		_, err := expand(c.id, c.size, c.limit)
		wantCode(t, what, err, c.want)
	}
	if err := w.SetFaults([]core.Fault{{Method: "PATCH", Fault: core.FaultError, Status: 409,
		Code: "TotalSharesProvisionedCapacityExceedsAccountLimit"}}); err != nil {
		t.Fatal(err)
	}
	_, err := expand(v, 400*gib, 0)
	wantCode(t, "59", err, codes.ResourceExhausted)
}

// TestLargestShares checks that a share can grow to the size with which it can be created.
func TestLargestShares(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("pvc-1", "skuName", "PremiumV2_LRS").GetVolumeId()
	standard := w.volume("pvc-2").GetVolumeId()
	for id, want := range map[string]codes.Code{v: codes.OK, standard: codes.OutOfRange} {
		_, err := w.again().ControllerExpandVolume(t.Context(), &csispec.ControllerExpandVolumeRequest{
			VolumeId: id, CapacityRange: &csispec.CapacityRange{RequiredBytes: 150000 * gib},
		})
		wantCode(t, id, err, want)
	}
}

// TestModify checks row 61.
func TestModify(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("pvc-1", "skuName", "PremiumV2_LRS").GetVolumeId()
	modify := func(id string, parameters map[string]string) error {
		_, err := w.ControllerModifyVolume(t.Context(), &csispec.ControllerModifyVolumeRequest{VolumeId: id, MutableParameters: parameters})
		return err
	}
	if err := modify(v, map[string]string{"provisionedIOPS": "5000", "provisionedBandwidth": "200"}); err != nil {
		t.Error(err)
	}
	if s := w.share(v); *s.IOPS != 5000 || *s.BandwidthMiBs != 200 || s.QuotaGiB != 32 {
		t.Errorf("%+v", s)
	}
	w.Forget()
	if err := modify(v, map[string]string{"provisionedIOPS": "5000"}); err != nil || w.calls()["PATCH shares"] > 0 {
		t.Errorf("again: %v, %v", err, w.calls())
	}
	wantCode(t, "61 key", modify(v, map[string]string{"skuName": "x"}), codes.InvalidArgument)
	wantCode(t, "61 value", modify(v, map[string]string{"provisionedIOPS": "x"}), codes.InvalidArgument)
	wantCode(t, "61 id", modify("garbage", map[string]string{"provisionedIOPS": "1"}), codes.NotFound)
	wantCode(t, "61 empty", modify(v, nil), codes.OK)
}

// TestSecrets checks that nodes find the key of an account, also after it was changed, and that no Secret is written where
// nodes need none.
func TestSecrets(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("pvc-1", "csi.storage.k8s.io/pvc/namespace", "apps")
	name := "apps/azure-storage-account-" + accountOf(v.GetVolumeId()) + "-secret"
	first := w.secrets.values[name]
	if c, ok, _ := file.ReadSecret(first); !ok || c.Account != accountOf(v.GetVolumeId()) {
		t.Fatalf("%s: %d values", name, len(first))
	}
	id := testkit.Group.Resource("Microsoft.Storage/storageAccounts", accountOf(v.GetVolumeId()))
	if _, err := azure.Do(t.Context(), w.Client, azure.Request{Verb: azure.Post, ID: id, Action: "regenerateKey",
		Body: azure.Document(`{"keyName":"key1"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.again().CreateVolume(t.Context(), request("pvc-2", "csi.storage.k8s.io/pvc/namespace", "apps")); err != nil {
		t.Fatal(err)
	}
	if now := w.secrets.values[name]; now["azurestorageaccountkey"] == first["azurestorageaccountkey"] {
		t.Error("defect 19: the Secret has the old key")
	}
	for what, parameters := range map[string][]string{
		"12": {"storeAccountKey", "false", "allowSharedKeyAccess", "false"}, "identity": {"mountWithManagedIdentity", "true"},
		"nfs": {"protocol", "nfs"},
	} {
		w.Forget()
		n := len(w.secrets.values)
		w.volume("pvc-"+what, parameters...)
		if len(w.secrets.values) != n || w.calls()["POST listKeys"] > 0 {
			t.Errorf("%s: %d secrets, %v", what, len(w.secrets.values)-n, w.calls())
		}
	}
	named := w.volume("pvc-3", "secretName", "mine", "secretNamespace", "storage")
	if _, ok := w.secrets.values["storage/mine"]; !ok || !strings.HasSuffix(named.GetVolumeId(), "#storage") {
		t.Errorf("%s: no Secret storage/mine", named.GetVolumeId())
	}
	for _, values := range []map[string]string{ // row 81
		{"accountname": "a", "accountkey": "k\n"}, {"AccountName": "a", "AccountKey": "k"}, {"azurestorageaccountname": " a", "azurestorageaccountkey": "k"},
	} {
		if c, ok, _ := file.ReadSecret(values); !ok || c != (file.Credentials{Account: "a", Key: secret.New("k")}) {
			t.Errorf("81: %v", ok)
		}
	}
}

// TestLists checks ListVolumes and ListSnapshots.
func TestLists(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	for _, name := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		if _, err := w.snapshot(w.volume(name).GetVolumeId(), "of-"+name); err != nil {
			t.Fatal(err)
		}
	}
	w.volumes = []file.Claimed{{Name: "pvc-2", Handle: "rg#" + w.accounts()[0].ID.Name() + "#pvc-2###apps"}}
	var ids []string
	for token := ""; ; {
		answer, err := w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range answer.GetEntries() {
			ids = append(ids, e.GetVolume().GetVolumeId())
		}
		if token = answer.GetNextToken(); token == "" {
			break
		}
	}
	if len(ids) != 3 || !strings.HasSuffix(ids[0], "#pvc-1###default") || !strings.HasSuffix(ids[1], "#pvc-2###apps") {
		t.Errorf("%v", ids)
	}
	all, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{})
	if err != nil || len(all.GetEntries()) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	one, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SnapshotId: all.GetEntries()[0].GetSnapshot().GetSnapshotId()})
	if err != nil || len(one.GetEntries()) != 1 {
		t.Errorf("%v, %v", one, err)
	}
	if none, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SnapshotId: "none"}); err != nil || len(none.GetEntries()) != 0 {
		t.Errorf("%v, %v", none, err)
	}
	_, err = w.ListVolumes(t.Context(), &csispec.ListVolumesRequest{StartingToken: "x"})
	wantCode(t, "a bad token", err, codes.Aborted)
}
