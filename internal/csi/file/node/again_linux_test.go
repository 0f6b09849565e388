package node_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"kaz/internal/csi/mount"
)

// TestStageAgain checks defect 25: a volume that is staged again is mounted as its options say now, or the request says why not.
func TestStageAgain(t *testing.T) {
	w := newMachine(t, nil)
	staging, target := w.path("stage"), w.path("pod/volume")
	stage := func(options ...string) error { return w.stage(id, staging, capability(options...)) }
	for i, c := range []struct {
		options []string
		mounts  int
	}{
		{[]string{"dir_mode=0700", "file_mode=0600"}, 1},
		{[]string{"dir_mode=0700,file_mode=0600"}, 1}, // as after a restart of the kubelet
		{[]string{"dir_mode=700", "file_mode=0600", "uid=0"}, 1},
		{[]string{"dir_mode=0700", "file_mode=0600", "uid=70"}, 2},
		{[]string{"dir_mode=0750", "file_mode=0600", "uid=70"}, 3},
	} {
		if err := stage(c.options...); err != nil || len(w.shares.mounts) != c.mounts {
			t.Errorf("%d: %v, %d mounts, want %d", i, err, len(w.shares.mounts), c.mounts)
		}
	}
	if err := w.publish(staging, target, nil); err != nil {
		t.Fatal(err)
	}
	err := stage("dir_mode=0755", "file_mode=0600", "uid=70")
	wantCode(t, "25", err, codes.AlreadyExists)
	if err == nil || !strings.Contains(err.Error(), "dir_mode=0750") || !strings.Contains(err.Error(), target) {
		t.Errorf("%v names neither the option nor the pod", err)
	}
	if err := stage("dir_mode=0750", "file_mode=0600", "uid=70"); err != nil || len(w.shares.mounts) != 3 {
		t.Errorf("the same options: %v, %d mounts", err, len(w.shares.mounts))
	}
}

// TestGroupsOfPods checks defect 25: a second pod on a node can use an SMB volume with its own group. The volume was staged
// for a pod with another group.
func TestGroupsOfPods(t *testing.T) {
	for modes, own := range map[string]bool{"file_mode=0660,dir_mode=0770": true, "file_mode=0660,dir_mode=0777": true,
		"file_mode=0777,dir_mode=0777": false, "file_mode=0660,dir_mode=0770,gid=7": false} {
		w := newMachine(t, nil)
		of := func(group string) *csispec.VolumeCapability {
			c := capability(modes)
			c.GetMount().VolumeMountGroup = group
			return c
		}
		staging := w.path("stage")
		if err := w.stage(id, staging, of("5678")); err != nil {
			t.Fatal(err)
		}
		for pod, group := range map[string]string{"first/volume": "5678", "second/volume": "99", "third/volume": ""} {
			path := w.path(pod)
			before := len(w.shares.mounts)
			for range 2 { // the kubelet repeats the request
				if err := w.publish(staging, path, func(r *csispec.NodePublishVolumeRequest) { r.VolumeCapability = of(group) }); err != nil {
					t.Fatalf("%s: %s: %v", modes, pod, err)
				}
			}
			want := 0
			if own && group == "99" {
				want = 1
			}
			if n := len(w.shares.mounts) - before; n != want {
				t.Errorf("%s: %s: %d mounts of its own, want %d", modes, pod, n, want)
			}
			if want > 0 && !slices.Contains(w.shares.at[path].Options, "gid=99") {
				t.Errorf("%s: options %v", modes, w.shares.at[path].Options)
			}
			if _, err := w.NodeUnpublishVolume(t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: path}); err != nil {
				t.Error(err)
			}
		}
		if err := w.stage(id, staging, of("99")); err != nil {
			t.Errorf("%s: staged again with the group of another pod: %v", modes, err)
		}
	}
}

// TestGroupsOfPodsByNFS checks defect 25: the files of an NFS volume get the group of a second pod on a node.
func TestGroupsOfPodsByNFS(t *testing.T) {
	for policy, want := range map[string]int{"None": 0, "OnRootMismatch": 99, "Always": 99} {
		w := newMachine(t, nil)
		of := func(group string) *csispec.VolumeCapability {
			c := capability()
			c.GetMount().VolumeMountGroup = group
			return c
		}
		class := []string{"protocol", "nfs", "fsGroupChangePolicy", policy}
		staging := w.path("stage")
		if err := w.stage(id, staging, of("5678"), class...); err != nil {
			t.Fatal(err)
		}
		if err := w.publish(staging, w.path("pod/volume"), func(r *csispec.NodePublishVolumeRequest) {
			r.VolumeCapability, r.VolumeContext = of("99"), map[string]string{"protocol": "nfs", "fsGroupChangePolicy": policy}
		}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(w.shares.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := int(info.Sys().(*syscall.Stat_t).Gid); got != want {
			t.Errorf("%s: group %d, want %d", policy, got, want)
		}
	}
}

// TestOptions checks that the options of a mount are those that the kernel shows, also below a symbolic link.
func TestOptions(t *testing.T) {
	w := newMachine(t, nil)
	path := w.path("fs")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", path, "tmpfs", syscall.MS_NOSUID, "uid=70,mode=0700"); err != nil {
		t.Fatal(err)
	}
	link := w.path("link")
	if err := os.Symlink(w.dir, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link + "/fs"} {
		fsType, options, err := mount.Options(p)
		if err != nil || fsType != "tmpfs" || !slices.Contains(options, "uid=70") || !slices.Contains(options, "nosuid") {
			t.Errorf("%s: %s %v, %v", p, fsType, options, err)
		}
	}
	if fsType, options, err := mount.Options(w.dir); err != nil || fsType != "" || len(options) > 0 {
		t.Errorf("a directory: %s %v, %v", fsType, options, err)
	}
}
