package disk_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestPublish checks rows 75 to 80, 98, 106, 107, 109, 114 and 117.
func TestPublish(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	var volumes []string
	for i := range slots + 2 {
		volumes = append(volumes, w.volume("v"+strconv.Itoa(i)))
	}
	publish := func(volume, node string, c *csispec.VolumeCapability) error {
		_, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
			VolumeId: volume, NodeId: node, VolumeCapability: c,
		})
		return err
	}
	wantCode(t, "75", publish("", "a", writer()), codes.InvalidArgument)
	wantCode(t, "75", publish(volumes[0], "", writer()), codes.InvalidArgument)
	wantCode(t, "75", publish(volumes[0], "a", nil), codes.InvalidArgument)
	wantCode(t, "76", publish(string(testkit.Group)+"/providers/Microsoft.Compute/disks/none", "a", writer()), codes.NotFound)
	wantCode(t, "77", publish(volumes[0], "unknown", writer()), codes.NotFound)
	for i, v := range volumes[:slots] {
		lun, err := w.publish(w.Controller, v, strings.ToUpper("a")) // row 117
		if err != nil || lun != strconv.Itoa(i) {
			t.Errorf("78: LUN %q of %s, %v", lun, v, err)
		}
	}
	w.Forget()
	if lun, err := w.publish(w.Controller, volumes[2], "a"); err != nil || lun != "2" || len(w.Writes()) > 0 {
		t.Errorf("79: LUN %q, %v, writes %v", lun, err, w.Writes())
	}
	wantCode(t, "98", publish(volumes[slots], "a", writer()), codes.ResourceExhausted)
	for range 2 { // row 109: the second time there is nothing to do
		if err := w.unpublish(w.Controller, volumes[1], "a"); err != nil {
			t.Error("107:", err)
		}
	}
	if writes := w.Writes(); len(writes) != 1 {
		t.Errorf("109: %v", writes)
	}
	if lun, err := w.publish(w.Controller, volumes[slots], "a"); err != nil || lun != "1" {
		t.Errorf("80: LUN %q, %v", lun, err)
	}
	wantCode(t, "114", w.unpublish(w.Controller, volumes[0], ""), codes.InvalidArgument)
	answer, err := w.ControllerPublishVolume(t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: volumes[0], NodeId: "a", VolumeCapability: writer(),
	})
	if err != nil || answer.GetPublishContext()["skuname"] != "StandardSSD_LRS" {
		t.Errorf("106: %v, %v", answer, err)
	}
}

// together calls f for each element at once and returns the errors.
func together[T any](all []T, f func(T) error) []error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, x := range all {
		group.Go(func() { errs[i] = f(x) })
	}
	group.Wait()
	return errs
}

// TestOneRequestForAMachine checks rows 81, 108 and 113: whatever arrives while a request is under way shares the next
// one, for attachments and detachments together.
func TestOneRequestForAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 1})
		var volumes []string
		for i := range 2 * slots {
			volumes = append(volumes, w.volume("v"+strconv.Itoa(i)))
		}
		w.Forget()
		lone, err := w.publish(w.Controller, volumes[0], "a")
		if err != nil || lone != "0" {
			t.Fatal(lone, err)
		}
		w.Forget()
		for _, err := range together(volumes[1:slots], func(v string) error {
			_, err := w.publish(w.Controller, v, "a")
			return err
		}) {
			if err != nil {
				t.Error(err)
			}
		}
		if writes := w.Writes(); len(writes) != 1 {
			t.Errorf("%d disks for one machine: %v", slots-1, writes)
		}
		w.Forget()
		errs := together(volumes, func(v string) error { // all disks of a go, as many come
			if i := indexOf(volumes, v); i < slots {
				return w.unpublish(w.Controller, v, "a")
			}
			_, err := w.publish(w.Controller, v, "a")
			return err
		})
		for i, err := range errs {
			if err != nil {
				t.Errorf("disk %d: %v", i, err)
			}
		}
		if writes := w.Writes(); len(writes) != 1 {
			t.Errorf("%d disks go and as many come: %v", slots, writes)
		}
	})
}

// TestMoreDisksThanSlots checks rows 98 and 194. Six disks come at once to a machine with four free slots, and four are
// attached with one request. The others are refused with the limit of the machine, and are attached when there is room.
func TestMoreDisksThanSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 1})
		var volumes []string
		for i := range slots + 2 {
			volumes = append(volumes, w.volume("v"+strconv.Itoa(i)))
		}
		w.Forget()
		var attached, refused []string
		for i, err := range together(volumes, func(v string) error { _, err := w.publish(w.Controller, v, "a"); return err }) {
			if err == nil {
				attached = append(attached, volumes[i])
				continue
			}
			refused = append(refused, volumes[i])
			wantCode(t, "194", err, codes.ResourceExhausted)
			want := fmt.Sprintf("attach v%d: machine a has the %d data disks that its size allows", i, slots)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("194: %v, want %q", err, want)
			}
		}
		at := w.attached("a")
		for _, v := range attached {
			if !slices.Contains(slices.Collect(maps.Values(at)), azure.ID(v).Name()) {
				t.Errorf("194: %s is not among %v", azure.ID(v).Name(), at)
			}
		}
		if len(at) != slots || len(attached) != slots || len(refused) != 2 || len(w.Writes()) != 1 {
			t.Fatalf("194: machine a has %v, %d were refused, writes %v, want %d disks and one write", at, len(refused), w.Writes(), slots)
		}
		if err := w.unpublish(w.Controller, attached[0], "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.publish(w.Controller, refused[0], "a"); err != nil {
			t.Errorf("194: a slot is free, and %v", err)
		}
	})
}

func indexOf(all []string, one string) int {
	for i, x := range all {
		if x == one {
			return i
		}
	}
	return -1
}

// TestAMove checks rows 83, 85 and 195: a disk that another machine has is attached when that machine releases it, and
// never before.
func TestAMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{Latency: 1, Seed: 1})
		v := w.volume("v")
		if _, err := w.publish(w.Controller, v, "a"); err != nil {
			t.Fatal(err)
		}
		_, err := w.publish(w.Controller, v, "b")
		wantCode(t, "83", err, codes.FailedPrecondition)
		if !strings.Contains(fmt.Sprint(err), "the disk is attached to a") {
			t.Errorf("83: %v", err)
		}
		errs := together([]string{"leave a", "come to b"}, func(what string) error {
			if what == "leave a" {
				return w.unpublish(w.Controller, v, "a")
			}
			_, err := w.publish(w.Controller, v, "b")
			return err
		})
		for _, err := range errs {
			if err != nil {
				t.Error("195:", err)
			}
		}
		if a, b := w.attached("a"), w.attached("b"); len(a) != 0 || b[0] != "v" {
			t.Errorf("a has %v, b has %v", a, b)
		}
	})
}

// TestOneBadDisk checks rows 94 and 193: of a batch, only the disk that Azure refuses fails.
func TestOneBadDisk(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	var volumes []string
	for i := range slots {
		volumes = append(volumes, w.volume("v"+strconv.Itoa(i)))
	}
	// The machine has no zone, so that Azure refuses a disk with one.
	zonal := request("zonal")
	zones("westeurope-2")(zonal)
	answer, err := w.CreateVolume(t.Context(), zonal)
	if err != nil {
		t.Fatal(err)
	}
	bad := answer.GetVolume().GetVolumeId()
	volumes[2] = bad
	for i, err := range together(volumes, func(v string) error {
		_, err := w.publish(w.Controller, v, "a")
		return err
	}) {
		if (err != nil) != (volumes[i] == bad) {
			t.Errorf("disk %d: %v", i, err)
		}
	}
	if got := w.attached("a"); len(got) != slots-1 {
		t.Errorf("a has %v", got)
	}
}

// TestOthersDisks checks rows 102 and 197: disks that another program attached stay.
func TestOthersDisks(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	ours, theirs, more := w.volume("ours"), w.volume("theirs"), w.volume("more")
	if _, err := w.publish(w.Controller, ours, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Client.Post(t.Context(), w.nodes.of["a"], "attachDetachDataDisks",
		azure.Document(`{"dataDisksToAttach":[{"diskId":"`+theirs+`","lun":1}]}`)); err != nil {
		t.Fatal(err)
	}
	if lun, err := w.publish(w.Controller, more, "a"); err != nil || lun != "2" {
		t.Errorf("LUN %q, %v", lun, err)
	}
	want := map[int]string{0: "ours", 1: "theirs", 2: "more"}
	if got := w.attached("a"); !maps.Equal(got, want) {
		t.Errorf("a has %v, want %v", got, want)
	}
}

// TestTwoControllers checks row 116: two processes attach and detach at the same machine, and no change is lost.
func TestTwoControllers(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := newDriverCluster(t, core.Options{Latency: 1, Seed: seed})
			other := w.controller()
			defer other.Close()
			a, b := w.volume("a"), w.volume("b")
			c, d := w.volume("c"), w.volume("d")
			for _, v := range []string{a, b} {
				if _, err := w.publish(w.Controller, v, "a"); err != nil {
					t.Fatal(err)
				}
			}
			steps := []func() error{
				func() error { return w.unpublish(w.Controller, a, "a") },
				func() error { return w.unpublish(other, b, "a") },
				func() error { _, err := w.publish(w.Controller, c, "a"); return err },
				func() error { _, err := w.publish(other, d, "a"); return err },
			}
			for range 5 { // a refused change is asked for again, as the attacher does
				var failed []func() error
				for i, err := range together(steps, func(f func() error) error { return f() }) {
					if err != nil {
						failed = append(failed, steps[i])
					}
				}
				steps = failed
			}
			if len(steps) > 0 {
				t.Errorf("seed %d: %d changes are refused again and again", seed, len(steps))
			}
			var names []string
			for _, name := range w.attached("a") {
				names = append(names, name)
			}
			if len(names) != 2 || !strings.Contains("cd dc", strings.Join(names, "")) {
				t.Errorf("seed %d: the machine has %v, want c and d", seed, names)
			}
		})
	}
}

// TestFaultsOfAttachments checks that an attachment and a detachment succeed when they are asked for again after a request
// went wrong. Nothing is attached twice.
func TestFaultsOfAttachments(t *testing.T) {
	for name, fault := range map[string]core.Fault{
		"lost reply":       {Fault: core.FaultLost},
		"failed operation": {Fault: core.FaultOperation, Code: "InternalServerError"},
		"throttled":        {Fault: core.FaultError, Status: 429, RetryAfter: 7},
		"busy":             {Fault: core.FaultError, Status: 409, Code: "AnotherOperationInProgress"},
		"changed":          {Fault: core.FaultError, Status: 412},
		"broken":           {Fault: core.FaultError, Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDriverCluster(t, core.Options{Latency: 1, Seed: 4})
				v := w.volume("v")
				fault.Method, fault.Type, fault.Times = "POST", compute.VirtualMachines, 1
				again := func(f func() error) {
					t.Helper()
					if err := w.SetFaults([]core.Fault{fault}); err != nil {
						t.Fatal(err)
					}
					err := f()
					for range 3 {
						if err != nil {
							err = f()
						}
					}
					if err != nil {
						t.Error(err)
					}
				}
				again(func() error { _, err := w.publish(w.Controller, v, "a"); return err })
				if got := w.attached("a"); len(got) != 1 || got[0] != "v" {
					t.Errorf("a has %v", got)
				}
				again(func() error { return w.unpublish(w.Controller, v, "a") })
				if got := w.attached("a"); len(got) != 0 || w.disk(v).Properties.DiskState != "Unattached" {
					t.Errorf("a has %v, the disk is %s", got, w.disk(v).Properties.DiskState)
				}
			})
		})
	}
}

// TestDetachFromNothing checks row 110: a machine that is deleted has no disks.
func TestDetachFromNothing(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	v := w.volume("v")
	if _, err := w.publish(w.Controller, v, "a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Delete(t.Context(), w.nodes.of["a"]); err != nil {
		t.Fatal(err)
	}
	if err := w.unpublish(w.Controller, v, "a"); err != nil {
		t.Error(err)
	}
	if _, err := w.publish(w.Controller, v, "b"); err != nil {
		t.Error(err)
	}
}

// TestUnknownMachine checks the first change of a machine since the controller's start. It is made from what Kubernetes
// knows of the machine, without a read. If the machine has disks that Kubernetes does not know, or too many, the driver
// reads it.
func TestUnknownMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		k := w.kubernetes()
		known, foreign := w.volume("known"), w.volume("foreign")
		k.add(pv("known", known))
		if _, err := w.publish(w.Controller, known, "a"); err != nil {
			t.Fatal(err)
		}
		k.add(attachment(known, "known", "a"))
		if _, err := w.publish(w.Controller, foreign, "b"); err != nil { // no VolumeAttachment has it
			t.Fatal(err)
		}
		for _, c := range []struct {
			node, lun     string
			writes, reads int
		}{{"a", "1", 1, 0}, {"b", "1", 2, 1}, {"c", "0", 1, 0}} {
			restarted := k.controller(fresh{w.Client.Fresh(), w.Client})
			v := w.volume("to-" + c.node)
			got := w.measured(func() {
				if lun, err := w.publish(restarted, v, c.node); err != nil || lun != c.lun {
					t.Errorf("attach to %s: LUN %s, %v, want %s", c.node, lun, err, c.lun)
				}
			})
			if got.writes != c.writes || got.reads != c.reads {
				t.Errorf("attach to %s: %s, want %d writes and %d reads", c.node, got, c.writes, c.reads)
			}
			restarted.Close()
		}
		restarted := k.controller(fresh{w.Client.Fresh(), w.Client})
		defer restarted.Close()
		got := w.measured(func() {
			if lun, err := w.publish(restarted, known, "a"); err != nil || lun != "0" {
				t.Errorf("attach what is attached: LUN %s, %v", lun, err)
			}
		})
		if got.writes != 0 {
			t.Errorf("attach what is attached: %s, want no write", got)
		}
		// Two are attached already, and the size allows two more.
		full := k.controller(fresh{w.Client.Fresh(), w.Client})
		defer full.Close()
		var many []string
		for i := range slots {
			many = append(many, w.volume("many"+strconv.Itoa(i)))
		}
		refused := 0
		for _, err := range together(many, func(v string) error { _, err := w.publish(full, v, "a"); return err }) {
			if err != nil {
				wantCode(t, "more than the machine can have", err, codes.ResourceExhausted)
				refused++
			}
		}
		if at := w.attached("a"); len(at) != slots || refused != 2 {
			t.Errorf("machine a has %v, %d were refused, want %d disks and 2 refused", at, refused, slots)
		}
	})
}
