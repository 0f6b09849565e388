//go:build linux

package node_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"kaz/internal/csi/disk/node"
)

// TestBadPublishing checks the refusals of requests that lack something, and of volumes that are not staged (163).
func TestBadPublishing(t *testing.T) {
	w := newHost(t, node.Config{})
	target := w.path("pod/mount")
	for _, c := range []struct {
		row, want string
		change    func(r *csispec.NodePublishVolumeRequest)
		code      codes.Code
	}{
		{"id", "volume_id is missing", func(r *csispec.NodePublishVolumeRequest) { r.VolumeId = "" }, codes.InvalidArgument},
		{"staging path", "staging_target_path", func(r *csispec.NodePublishVolumeRequest) { r.StagingTargetPath = "" }, codes.InvalidArgument},
		{"target path", "target_path", func(r *csispec.NodePublishVolumeRequest) { r.TargetPath = "" }, codes.InvalidArgument},
		{"capability", "capability", func(r *csispec.NodePublishVolumeRequest) { r.VolumeCapability = nil }, codes.InvalidArgument},
		{"163: not staged", "must be staged first", func(*csispec.NodePublishVolumeRequest) {}, codes.FailedPrecondition},
		{"163: an empty directory", "must be staged first", func(r *csispec.NodePublishVolumeRequest) {
			r.StagingTargetPath = t.TempDir()
		}, codes.FailedPrecondition},
		{"161: block without LUN", `LUN ""`, func(r *csispec.NodePublishVolumeRequest) {
			r.VolumeCapability = capability("block")
		}, codes.InvalidArgument},
	} {
		r := &csispec.NodePublishVolumeRequest{
			VolumeId: volume, StagingTargetPath: w.path("staging-1"), TargetPath: target, VolumeCapability: capability("ext4"),
		}
		c.change(r)
		_, err := w.NodePublishVolume(t.Context(), r)
		want(t, c.row, err, c.code, c.want)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a refused request made the path of the pod")
	}
}

// TestPublish checks that pods see a volume, read-only where they ask for it (162). Paths that do not exist can be
// unpublished and unstaged (167).
func TestPublish(t *testing.T) {
	w := newHost(t, node.Config{})
	w.attach(1, 64*mib)
	c := capability("ext4")
	staged, err := w.stage(1, c)
	w.must(err)
	writer, reader := w.path("a/mount"), w.path("b/mount")
	for range 2 { // again without effect
		w.must(w.publish(1, c, writer, false))
		w.must(w.publish(1, c, reader, true))
	}
	w.must(os.WriteFile(filepath.Join(writer, "data"), []byte("seen"), 0o600))
	if text, err := os.ReadFile(filepath.Join(reader, "data")); err != nil || string(text) != "seen" {
		t.Errorf("the second pod reads %q, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(reader, "data"), nil, 0o600); !strings.Contains(err.Error(), "read-only") {
		t.Errorf("162: writing read-only: %v", err)
	}
	if fault := w.health(writer); len(fault) > 0 {
		t.Errorf("health of a volume that is read-only for one pod: %v", fault)
	}
	for range 2 {
		for _, path := range []string{writer, reader} {
			want(t, "167: unpublish", w.unpublish(path), codes.OK, "")
		}
		want(t, "167: unstage", w.unstage(staged), codes.OK, "")
	}
	for _, path := range []string{writer, reader, staged} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
}

// TestPublishBlock checks that a pod sees the device of a block volume (161).
func TestPublishBlock(t *testing.T) {
	w := newHost(t, node.Config{})
	device := w.attach(1, 64*mib)
	c := capability("block")
	path, err := w.stage(1, c)
	want(t, "161: stage", err, codes.OK, "")
	if _, err := os.Stat(path); err == nil {
		t.Error("161: a block volume is mounted at the staging path")
	}
	target := w.path("pod/device")
	for range 2 {
		want(t, "161", w.publish(1, c, target, false), codes.OK, "")
	}
	info, err := os.Stat(target)
	if err != nil || info.Mode()&fs.ModeDevice == 0 {
		t.Fatalf("161: the pod sees %v, %v", info, err)
	}
	w.must(writeAt(target, 0, []byte("written by a pod")))
	f, err := os.Open(device)
	w.must(err)
	have := make([]byte, 16)
	_, err = f.ReadAt(have, 0)
	w.must(err)
	w.must(f.Close())
	if !bytes.Equal(have, []byte("written by a pod")) {
		t.Errorf("161: the disk has %q", have)
	}
	answer, err := w.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: volume, VolumePath: target})
	w.must(err)
	if usage := answer.GetUsage(); len(usage) != 1 || usage[0].GetTotal() != 64*mib || usage[0].GetUnit() != csispec.VolumeUsage_BYTES {
		t.Errorf("177: %v", usage)
	}
	want(t, "unpublish", w.unpublish(target), codes.OK, "")
}

// TestOnePod checks that a volume of one pod has one path (164), and that this path can be published again without effect. A
// volume of several pods of a node can have several paths (165).
func TestOnePod(t *testing.T) {
	for _, fsType := range []string{"ext4", "block"} {
		t.Run(fsType, func(t *testing.T) {
			w := newHost(t, node.Config{})
			w.attach(1, 64*mib)
			c := capability(fsType)
			c.AccessMode.Mode = csispec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
			_, err := w.stage(1, c)
			w.must(err)
			first, second := w.path("a/mount"), w.path("b/mount")
			for range 2 {
				want(t, "first", w.publish(1, c, first, false), codes.OK, "")
			}
			want(t, "164", w.publish(1, c, second, false), codes.FailedPrecondition, first)
			// The kubelet binds the device of a block volume to a path of its own, and publishes again when it restarts.
			w.must(os.WriteFile(w.path("a/map"), nil, 0o600))
			if fsType == "block" {
				w.must(unix.Mount(first, w.path("a/map"), "", unix.MS_BIND, ""))
				want(t, "164: again", w.publish(1, c, first, false), codes.OK, "")
				w.must(unix.Unmount(w.path("a/map"), 0))
			}
			w.must(w.unpublish(first))
			want(t, "164: after the first", w.publish(1, c, second, false), codes.OK, "")
			w.must(w.unpublish(second))
			c.AccessMode.Mode = csispec.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
			want(t, "165", w.publish(1, c, first, false), codes.OK, "")
			want(t, "165", w.publish(1, c, second, false), codes.OK, "")
		})
	}
}
