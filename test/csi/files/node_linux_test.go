package files

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/csi/file"
	"kaz/internal/csi/file/node"
	"kaz/internal/csi/mount"
	"kaz/internal/plan/share"
	"kaz/internal/testkit/guest"
)

// volume is a volume of a node service with the kernel's clients.
type volume struct {
	*node.Node
	t       *testing.T
	staging *csispec.NodeStageVolumeRequest
}

const (
	everywhere = csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	readers    = csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
)

func newNode() *node.Node {
	return node.New(node.Config{
		Driver: file.DefaultName, Node: "guest", Mounter: node.Kernel{}, Mounts: mount.New(1), Cluster: share.Cluster{Suffix: "core.windows.net"},
		Defaults: share.Defaults{NoShareSocket: true, NoReservedPort: true, AttributeCache: true}, Permissions: 0o777,
		MountGroup: true, Stats: true, Log: slog.New(slog.DiscardHandler),
	})
}

// of returns a volume that is a share, with attributes given as key and value in turns.
func of(t *testing.T, name string, attributes ...string) *volume {
	t.Helper()
	guest.Facts[facts](t)
	values := map[string]string{"server": guest.HostAddress}
	for i := 0; i+1 < len(attributes); i += 2 {
		values[attributes[i]] = attributes[i+1]
	}
	return &volume{Node: newNode(), t: t, staging: &csispec.NodeStageVolumeRequest{
		VolumeId: "rg#" + account + "#" + name + "###default", StagingTargetPath: "/volumes" + t.TempDir(), VolumeContext: values,
		Secrets: map[string]string{"azurestorageaccountname": account, "azurestorageaccountkey": key},
		VolumeCapability: &csispec.VolumeCapability{
			AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{}},
			AccessMode: &csispec.VolumeCapability_AccessMode{Mode: everywhere},
		},
	}}
}

// stage stages the volume until the test ends, and returns where.
func (v *volume) stage(change func(*csispec.VolumeCapability)) (string, error) {
	v.t.Helper()
	if change != nil {
		change(v.staging.GetVolumeCapability())
	}
	path := v.staging.GetStagingTargetPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if _, err := v.NodeStageVolume(v.t.Context(), v.staging); err != nil {
		return "", err
	}
	v.t.Cleanup(v.unstage)
	return path, nil
}

func (v *volume) unstage() {
	_, err := v.NodeUnstageVolume(context.WithoutCancel(v.t.Context()), &csispec.NodeUnstageVolumeRequest{
		VolumeId: v.staging.GetVolumeId(), StagingTargetPath: v.staging.GetStagingTargetPath(),
	})
	if err != nil {
		v.t.Error(err)
	}
}

// publish shows the staged volume at a path until the test ends.
func (v *volume) publish(path string, readOnly bool) {
	v.t.Helper()
	_, err := v.NodePublishVolume(v.t.Context(), &csispec.NodePublishVolumeRequest{
		VolumeId: v.staging.GetVolumeId(), StagingTargetPath: v.staging.GetStagingTargetPath(), TargetPath: path, Readonly: readOnly,
		VolumeCapability: v.staging.GetVolumeCapability(), VolumeContext: v.staging.GetVolumeContext(), Secrets: v.staging.GetSecrets(),
	})
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *volume) unpublish(path string) {
	_, err := v.NodeUnpublishVolume(context.WithoutCancel(v.t.Context()), &csispec.NodeUnpublishVolumeRequest{
		VolumeId: v.staging.GetVolumeId(), TargetPath: path,
	})
	if err != nil {
		v.t.Error(err)
	}
}

func options(flags ...string) func(*csispec.VolumeCapability) {
	return func(c *csispec.VolumeCapability) { c.GetMount().MountFlags = flags }
}

func group(gid string) func(*csispec.VolumeCapability) {
	return func(c *csispec.VolumeCapability) { c.GetMount().VolumeMountGroup = gid }
}

// Pods see the modes and owners that the volume asks for.
func TestSMBVolumesHaveTheModesThatUsersAskFor(t *testing.T) {
	for name, row := range map[string]struct {
		attributes []string
		capability func(*csispec.VolumeCapability)
		file, dir  owner
	}{
		"by default":           {nil, nil, owner{0o777, 0, 0}, owner{0o777, 0, 0}},
		"of a group":           {nil, group("5678"), owner{0o777, 0, 5678}, owner{0o777, 0, 5678}},
		"of the storage class": {[]string{"fileMode", "0600", "dirMode", "0700", "uid", "70", "gid", "71"}, nil, owner{0o600, 70, 71}, owner{0o700, 70, 71}},
		"of mount options":     {nil, options("dir_mode=0700,file_mode=0640", "uid=70"), owner{0o640, 70, 0}, owner{0o700, 70, 0}},
		"mount options first":  {[]string{"fileMode", "0600", "uid", "70"}, options("file_mode=0640", "uid=71"), owner{0o640, 71, 0}, owner{0o777, 71, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			path := must(t)(of(t, "files", row.attributes...).stage(row.capability))
			write(t, filepath.Join(path, "seen"), "text")
			if got := look(t, filepath.Join(path, "seen")); got != row.file {
				t.Errorf("files are %v, want %v", got, row.file)
			}
			if got := look(t, path); got != row.dir {
				t.Errorf("directories are %v, want %v", got, row.dir)
			}
		})
	}
}

// The group of a pod gets an NFS volume by a change of modes and owners, because NFS keeps both.
func TestNFSVolumesOfAGroup(t *testing.T) {
	v := of(t, "exports", "protocol", "nfs")
	path := must(t)(v.stage(nil))
	file := filepath.Join(path, "of-a-group")
	write(t, file, "text")
	v.unstage()
	again := must(t)(v.stage(group("5678")))
	if got, want := look(t, filepath.Join(again, "of-a-group")), (owner{0o664, 0, 5678}); got != want {
		t.Errorf("the file is %v, want %v", got, want)
	}
	info, err := os.Stat(again)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode(), os.ModeDir|os.ModeSetgid|0o777; got != want {
		t.Errorf("the root has mode %v, want %v", got, want)
	}
	if got := look(t, again).gid; got != 5678 {
		t.Errorf("the root has group %d, want 5678", got)
	}
}

func TestReadOnlyVolumes(t *testing.T) {
	for share, attributes := range map[string][]string{"files": nil, "exports": {"protocol", "nfs"}} {
		t.Run(share, func(t *testing.T) {
			whole := of(t, share, attributes...)
			staged := must(t)(whole.stage(nil))
			write(t, filepath.Join(staged, "read"), "text")
			target := staged + "-pod"
			whole.publish(target, true)
			t.Cleanup(func() { whole.unpublish(target) })
			reader := must(t)(of(t, share, attributes...).stage(func(c *csispec.VolumeCapability) { c.AccessMode.Mode = readers }))
			for what, path := range map[string]string{"a read-only target": target, "a volume for readers": reader} {
				if text, err := os.ReadFile(filepath.Join(path, "read")); string(text) != "text" {
					t.Errorf("%s: read %q, %v", what, text, err)
				}
				if _, err := os.Create(filepath.Join(path, "new")); !errors.Is(err, unix.EROFS) {
					t.Errorf("%s: create gives %v, want %v", what, err, unix.EROFS)
				}
			}
		})
	}
}

// The key is in no place that other users can read.
func TestTheKeyStaysSecret(t *testing.T) {
	must(t)(of(t, "files").stage(nil))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mounts), "username="+account) || strings.Contains(string(mounts), key) {
		t.Errorf("the table of mounts has the key, or not the account:\n%s", mounts)
	}
}

func TestVolumesThatCannotBeStaged(t *testing.T) {
	for name, row := range map[string]struct {
		volume func(t *testing.T) *volume
		code   codes.Code
		want   string
	}{
		"a wrong key": {func(t *testing.T) *volume {
			v := of(t, "files")
			v.staging.Secrets["azurestorageaccountkey"] = "d3Jvbmc="
			return v
		}, codes.Unauthenticated, "update the Secret"},
		"no such SMB share":  {func(t *testing.T) *volume { return of(t, "missing") }, codes.NotFound, "does not exist"},
		"no such SMB folder": {func(t *testing.T) *volume { return of(t, "files", "folderName", "missing") }, codes.NotFound, "does not exist"},
		"no such NFS share":  {func(t *testing.T) *volume { return of(t, "missing", "protocol", "nfs") }, codes.NotFound, "does not exist"},
		"no server":          {func(t *testing.T) *volume { return of(t, "files", "server", "missing.invalid") }, codes.Unavailable, "check DNS"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := row.volume(t).stage(nil)
			if status.Code(err) != row.code || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want code %s and %q", err, row.code, row.want)
			}
			if err != nil && strings.Contains(err.Error(), key) {
				t.Errorf("the error has the key: %v", err)
			}
		})
	}
}

func TestVolumeStatistics(t *testing.T) {
	v := of(t, "files")
	path := must(t)(v.stage(nil))
	answer, err := v.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: v.staging.GetVolumeId(), VolumePath: path})
	if err != nil {
		t.Fatal(err)
	}
	const quota = 100 << 30
	if u := answer.GetUsage()[0]; u.GetUnit() != csispec.VolumeUsage_BYTES || u.GetTotal() != quota {
		t.Errorf("got %v, want %d bytes", u, quota)
	}
}

// Staging takes no longer than the kernel's mount, and the kubelet's repeated requests cost next to nothing.
func TestTimesOfVolumes(t *testing.T) {
	const rounds = 7
	var bare, staging, republish []time.Duration
	took := func(all *[]time.Duration, f func()) {
		began := time.Now()
		f()
		*all = append(*all, time.Since(began))
	}
	for range rounds {
		// In turns, because other programs may need the machine meanwhile.
		t.Run("mount", func(t *testing.T) {
			took(&bare, func() { must(t)(mountSMB(t, "files", "mfsymlinks,actimeo=30,nosharesock")) })
		})
		t.Run("volume", func(t *testing.T) {
			v := of(t, "files")
			took(&staging, func() { must(t)(v.stage(nil)) })
			target := v.staging.GetStagingTargetPath() + "-pod"
			v.publish(target, false)
			t.Cleanup(func() { v.unpublish(target) })
			for range rounds {
				took(&republish, func() { v.publish(target, false) })
			}
		})
	}
	t.Logf("median times: mount %s, stage %s, republish %s", median(bare), median(staging), median(republish))
	if got, most := median(staging), max(500*time.Millisecond, 5*median(bare)/4); got > most {
		t.Errorf("staging takes %s, want at most %s", got, most)
	}
	if got, most := median(republish), max(5*time.Millisecond, median(bare)/20); got > most {
		t.Errorf("republishing takes %s, want at most %s", got, most)
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2].Round(10 * time.Microsecond)
}
