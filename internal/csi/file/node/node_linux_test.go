package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/secret"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/csi/file/node"
	"kaz/internal/csi/mount"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/share"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shares mounts directories instead of shares: the kernel may know neither SMB nor NFS.
type shares struct {
	dir    string
	fail   error
	accept func(file.Credentials) error // may be nil
	mu     sync.Mutex
	mounts []share.Mount
	given  []file.Credentials
	at     map[string]share.Mount // the last one, by path
}

// options are the type and the options of an SMB mount as the kernel shows them.
func (s *shares) options(path string) (string, []string, error) {
	mounted, err := mount.New(1).Mounted(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.at[path]
	if err != nil || !mounted || m.Type != "cifs" {
		return "", nil, err
	}
	return m.Type, append(slices.Clone(m.Options), "uid=0", "gid=0", "vers=3.1.1"), nil // the first counts
}

func (s *shares) Mount(_ context.Context, m share.Mount, target string, c file.Credentials) error {
	if s.fail != nil {
		return s.fail
	}
	if s.accept != nil {
		if err := s.accept(c); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.mounts, s.given = append(s.mounts, m), append(s.given, c)
	s.at[target] = m
	s.mu.Unlock()
	return syscall.Mount(s.dir, target, "", syscall.MS_BIND, "")
}

// machine is a node.
type machine struct {
	*node.Node
	t       *testing.T
	shares  *shares
	secrets map[string]map[string]string
	keys    int
	dir     string
}

func newMachine(t *testing.T, change func(*node.Config)) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts need root")
	}
	dir := t.TempDir()
	w := &machine{t: t, dir: dir, secrets: map[string]map[string]string{}, shares: &shares{dir: filepath.Join(dir, "server"), at: map[string]share.Mount{}}}
	if err := os.Mkdir(w.shares.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := node.Config{
		Driver: file.DefaultName, Node: "node-0", Mounter: w.shares, Mounts: mount.New(1),
		Cluster: share.Cluster{Subscription: "s", ResourceGroup: "rg", Suffix: "core.windows.net"},
		Secret: func(_ context.Context, namespace, name string) (map[string]string, error) {
			if values, ok := w.secrets[namespace+"/"+name]; ok {
				return values, nil
			}
			return nil, errors.New("not found")
		},
		Key: func(context.Context, azure.ID, bool) (secret.Text, error) {
			w.keys++
			return secret.New("key-of-azure"), nil
		},
		Defaults:   share.Defaults{NoShareSocket: true, NoReservedPort: true, AttributeCache: true},
		MountGroup: true, Stats: true, Permissions: 0o777, Options: w.shares.options,
	}
	if change != nil {
		change(&c)
	}
	w.Node = node.New(c)
	return w
}

func (w *machine) path(name string) string {
	path := filepath.Join(w.dir, name)
	w.t.Cleanup(func() {
		for syscall.Unmount(path, syscall.MNT_DETACH) == nil { // until nothing is mounted
		}
	})
	return path
}

const id = "rg#acct#share1###apps"

func capability(options ...string) *csispec.VolumeCapability {
	return &csispec.VolumeCapability{
		AccessType: &csispec.VolumeCapability_Mount{Mount: &csispec.VolumeCapability_MountVolume{MountFlags: options, FsType: "ext4"}},
		AccessMode: &csispec.VolumeCapability_AccessMode{Mode: csispec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}
}

// stage stages a volume with attributes, given as key and value in turns.
func (w *machine) stage(volume, path string, c *csispec.VolumeCapability, attributes ...string) error {
	values := map[string]string{}
	for i := 0; i+1 < len(attributes); i += 2 {
		values[attributes[i]] = attributes[i+1]
	}
	_, err := w.NodeStageVolume(w.t.Context(), &csispec.NodeStageVolumeRequest{
		VolumeId: volume, StagingTargetPath: path, VolumeCapability: c, VolumeContext: values,
	})
	return err
}

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: %s (%v), want %s", what, got, err, want)
	}
}

// TestStage checks rows 64, 65, 67 to 70 and 80: sources and options of mounts.
func TestStage(t *testing.T) {
	w := newMachine(t, nil)
	w.secrets["apps/azure-storage-account-acct-secret"] = map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": "k1\n"}
	group := capability()
	group.GetMount().VolumeMountGroup = "5678"
	ownGroup := capability("gid=99")
	ownGroup.GetMount().VolumeMountGroup = "5678"
	reader := capability()
	reader.AccessMode.Mode = csispec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	const usual = "actimeo=30,mfsymlinks,nosharesock"
	for i, c := range []struct {
		row        string
		id         string
		capability *csispec.VolumeCapability
		attributes []string
		source     string
		options    string
	}{
		{"usual", id, capability(), nil, "//acct.file.core.windows.net/share1", "file_mode=0777,dir_mode=0777," + usual},
		{"64 two", id, capability("dir_mode=0700", "file_mode=0600"), nil, "//acct.file.core.windows.net/share1",
			"dir_mode=0700,file_mode=0600," + usual},
		{"64 one", id, capability("dir_mode=0700,file_mode=0600"), nil, "//acct.file.core.windows.net/share1",
			"dir_mode=0700,file_mode=0600," + usual},
		{"modes of the class", id, capability(), []string{"fileMode", "0700", "dirMode", "0700", "uid", "70", "gid", "70"},
			"//acct.file.core.windows.net/share1", "file_mode=0700,dir_mode=0700,uid=70,gid=70," + usual},
		{"the user's modes come first", id, capability("file_mode=0640", "uid=1"), []string{"fileMode", "0700", "uid", "70"},
			"//acct.file.core.windows.net/share1", "file_mode=0640,uid=1,dir_mode=0777," + usual},
		{"65", id, group, nil, "//acct.file.core.windows.net/share1", "file_mode=0777,dir_mode=0777,gid=5678,forcegid," + usual},
		{"65 own", id, ownGroup, nil, "//acct.file.core.windows.net/share1", "gid=99,file_mode=0777,dir_mode=0777," + usual},
		{"69", id, reader, nil, "//acct.file.core.windows.net/share1", "ro,file_mode=0777,dir_mode=0777," + usual},
		{"folder", id, capability(), []string{"folderName", "${pvc.metadata.name}/x", "csi.storage.k8s.io/pvc/name", "p1"},
			"//acct.file.core.windows.net/share1/p1/x", "file_mode=0777,dir_mode=0777," + usual},
		{"server", id, capability(), []string{"server", "acct.privatelink.file.core.windows.net"},
			"//acct.privatelink.file.core.windows.net/share1", "file_mode=0777,dir_mode=0777," + usual},
		{"any id", "mine", capability(), []string{"storageAccount", "acct", "shareName", "other", "secretNamespace", "apps"},
			"//acct.file.core.windows.net/other", "file_mode=0777,dir_mode=0777," + usual},
		{"80", "#acct#share2##apps", capability(), nil, "//acct.file.core.windows.net/share2", "file_mode=0777,dir_mode=0777," + usual},
		{"attribute times", id, capability("acregmax=10"), nil, "//acct.file.core.windows.net/share1",
			"acregmax=10,file_mode=0777,dir_mode=0777,mfsymlinks,nosharesock"},
		{"nfs", id, capability("nconnect=4"), []string{"protocol", "nfs"}, "acct.file.core.windows.net:/acct/share1",
			"nconnect=4,vers=4,minorversion=1,sec=sys,noresvport,actimeo=30"},
	} {
		path := w.path("stage-" + string(rune('a'+i)))
		for range 2 { // row 70
			if err := w.stage(c.id, path, c.capability, c.attributes...); err != nil {
				t.Fatalf("%s: %v", c.row, err)
			}
		}
		m := w.shares.mounts[len(w.shares.mounts)-1]
		if len(w.shares.mounts) != i+1 || m.Source != c.source || strings.Join(m.Options, ",") != c.options {
			t.Errorf("%s: %d mounts, %s %v\nwant %s", c.row, len(w.shares.mounts), m.Source, strings.Join(m.Options, ","), c.options)
		}
		given := w.shares.given[i]
		if nfs := m.Type == "nfs"; nfs != (given == file.Credentials{}) || !nfs && given.Key != secret.New("k1") {
			t.Errorf("%s: credentials of %s", c.row, given.Account)
		}
	}
	if w.keys > 0 {
		t.Errorf("%d keys were read from Azure", w.keys)
	}
}

// TestBadStage checks rows 62, 63 and 68.
func TestBadStage(t *testing.T) {
	w := newMachine(t, func(c *node.Config) { c.Key = nil })
	path := w.path("stage")
	for what, c := range map[string]struct {
		id         string
		attributes []string
		code       codes.Code
		want       string
	}{
		"62 share":    {"mine", []string{"storageAccount", "acct"}, codes.InvalidArgument, "shareName is missing"},
		"62 account":  {"mine", []string{"shareName", "s"}, codes.InvalidArgument, "storageAccount is missing"},
		"68":          {id, []string{"protocol", "nfs", "encryptInTransit", "true"}, codes.InvalidArgument, "aznfs"},
		"no key":      {id, nil, codes.FailedPrecondition, "azure-storage-account-acct-secret"},
		"bad mode":    {id, []string{"mountPermissions", "999"}, codes.InvalidArgument, "octal"},
		"a VHD":       {"rg#acct#share#a.vhd##default", nil, codes.InvalidArgument, "VHD"},
		"only Secret": {id, []string{"getAccountKeyFromSecret", "true"}, codes.FailedPrecondition, "getAccountKeyFromSecret is true"},
		"no helper":   {id, []string{"mountWithManagedIdentity", "true"}, codes.FailedPrecondition, "identity"},
	} {
		err := w.stage(c.id, path, capability(), c.attributes...)
		wantCode(t, what, err, c.code)
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	w.secrets["apps/azure-storage-account-acct-secret"] = map[string]string{"accountname": "acct", "accountkey": "secret-key"}
	w.shares.fail = &node.MountError{Program: "mount.cifs", Output: "mount error(13): Permission denied", Cause: errors.New("exit status 32")}
	err := w.stage(id, path, capability())
	wantCode(t, "63", err, codes.Unauthenticated)
	if !strings.Contains(err.Error(), "update the Secret") || strings.Contains(err.Error(), "secret-key") {
		t.Errorf("63: %v", err)
	}
}

// TestKeyFromAzure checks that the key is read from Azure if there is no Secret.
func TestKeyFromAzure(t *testing.T) {
	w := newMachine(t, nil)
	if err := w.stage(id, w.path("stage"), capability()); err != nil || w.keys != 1 || w.shares.given[0].Key != secret.New("key-of-azure") {
		t.Errorf("%v, %d keys", err, w.keys)
	}
}

// TestManyMountsOfAnAccount checks row 84: mounts at the same time that need the key of one account read it from Azure once.
func TestManyMountsOfAnAccount(t *testing.T) {
	cloud := testkit.NewAzure(t, core.Options{}, 0)
	account := testkit.Group.Resource(storage.Accounts, "acct")
	cloud.Put(account, map[string]any{"location": testkit.Location, "kind": "StorageV2", "sku": map[string]any{"name": "Standard_LRS"}})
	cloud.Forget()
	w := newMachine(t, func(c *node.Config) {
		c.Key = file.NewKeys(cloud.Client).Of
		c.Cluster.Subscription, c.Cluster.ResourceGroup = testkit.Subscription, testkit.ResourceGroup
	})
	const mounts = 20
	var group sync.WaitGroup
	for i := range mounts {
		path := w.path(fmt.Sprintf("stage-%d", i))
		group.Go(func() {
			if err := w.stage(fmt.Sprintf("%s#acct#share%d###apps", testkit.ResourceGroup, i), path, capability()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if requests := cloud.Requests(); len(requests) != 1 || !strings.HasSuffix(requests[0].Path, "/listKeys") {
		t.Errorf("%d requests, want one for the keys: %v", len(requests), requests)
	}
	if len(w.shares.given) != mounts {
		t.Fatalf("%d mounts, want %d", len(w.shares.given), mounts)
	}
	for _, c := range w.shares.given {
		if c.Account != "acct" || c.Key.IsZero() || c.Key != w.shares.given[0].Key {
			t.Errorf("a mount with credentials of %q, key given: %t", c.Account, !c.Key.IsZero())
		}
	}
}

func (w *machine) publish(staging, target string, change func(*csispec.NodePublishVolumeRequest)) error {
	r := &csispec.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: capability()}
	if change != nil {
		change(r)
	}
	_, err := w.NodePublishVolume(w.t.Context(), r)
	return err
}

// TestPublish checks rows 73, 74, 78 and 79.
func TestPublish(t *testing.T) {
	w := newMachine(t, nil)
	staging, target := w.path("stage"), w.path("pod/volume")
	wantCode(t, "not staged", w.publish(staging, target, nil), codes.FailedPrecondition)
	wantCode(t, "74", w.publish("", target, nil), codes.InvalidArgument)
	if err := w.stage(id, staging, capability()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.publish(staging, target, func(r *csispec.NodePublishVolumeRequest) { r.Readonly = true }); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(target, "x"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("73: %v", err)
	}
	stats, err := w.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target})
	if err != nil || stats.GetUsage()[0].GetTotal() == 0 {
		t.Errorf("%v, %v", stats, err)
	}
	_, err = w.NodeGetVolumeStats(t.Context(), &csispec.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: target + "none"})
	wantCode(t, "78", err, codes.NotFound)
	for range 2 { // row 79
		if _, err := w.NodeUnpublishVolume(t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
			t.Error(err)
		}
		if _, err := w.NodeUnstageVolume(t.Context(), &csispec.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Errorf("the path of the pod remains: %v", err)
	}
}

// deadMount mounts a file system at a path whose server ends at once, so that the path cannot be read.
func (w *machine) deadMount(path string) {
	w.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		w.t.Skipf("dead mounts need FUSE: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())
	if err := errors.Join(syscall.Mount("dead", path, "fuse", 0, options), server.Close()); err != nil {
		w.t.Fatal(err)
	}
	w.wantDead("a mount without a server", path)
}

// wantDead checks that a dead mount is still at a path.
func (w *machine) wantDead(what, path string) {
	w.t.Helper()
	if _, err := os.ReadDir(path); !errors.Is(err, syscall.ENOTCONN) {
		w.t.Errorf("%s: %s: %v, want the dead mount", what, path, err)
	}
}

// TestDeadMounts checks row 71: staging replaces a dead mount. Publishing does not unmount it, as the pod would then write to the
// node's own file system.
func TestDeadMounts(t *testing.T) {
	w := newMachine(t, nil)
	staging, target, other := w.path("stage"), w.path("pod/volume"), w.path("other/volume")
	w.deadMount(staging)
	err := w.publish(staging, other, nil)
	wantCode(t, "a dead mount at the staging path", err, codes.Internal)
	w.wantDead("publish", staging)
	if err := w.stage(id, staging, capability()); err != nil || len(w.shares.mounts) != 1 {
		t.Fatalf("stage: %v, %d mounts", err, len(w.shares.mounts))
	}
	if _, err := os.ReadDir(staging); err != nil {
		t.Errorf("stage: the mount still cannot be read: %v", err)
	}
	w.deadMount(target)
	for what, change := range map[string]func(*csispec.NodePublishVolumeRequest){
		"publish": nil,
		"publish inline": func(r *csispec.NodePublishVolumeRequest) {
			r.VolumeContext = map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": "apps",
				"shareName": "share1", "secretName": "s"}
		},
		"publish with a token": func(r *csispec.NodePublishVolumeRequest) {
			r.VolumeContext = map[string]string{"mountWithWorkloadIdentityToken": "true", "clientID": "c-1"}
			r.Secrets = map[string]string{"csi.storage.k8s.io/serviceAccount.tokens": `{"api://AzureADTokenExchange":{"token":"token"}}`}
		},
	} {
		err := w.publish(staging, target, change)
		wantCode(t, what, err, codes.Internal)
		if err != nil && !strings.Contains(err.Error(), "it stays mounted: delete the pod") {
			t.Errorf("%s: %v does not say what to do", what, err)
		}
		w.wantDead(what, target)
	}
	if len(w.shares.mounts) != 1 {
		t.Errorf("publish: %d mounts, want 1", len(w.shares.mounts))
	}
}

// hang mounts a file system at a path whose server does not answer until the returned function ends it.
func (w *machine) hang(path string) (end func()) {
	w.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	server, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		w.t.Skipf("servers that do not answer need FUSE: %v", err)
	}
	if err := syscall.Mount("hung", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server)); err != nil {
		w.t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		if err := syscall.Close(server); err != nil {
			w.t.Error(err)
		}
	})
}

// TestStatisticsOfAHungServer checks defect 27: requests for the statistics of a volume end although its server does not answer,
// and together hold one thread.
func TestStatisticsOfAHungServer(t *testing.T) {
	w := newMachine(t, nil)
	path := w.path("pod/volume")
	end := w.hang(path)
	defer end()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := w.NodeGetVolumeStats(ctx, &csispec.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: path})
		cancel()
		wantCode(t, "27", err, codes.DeadlineExceeded)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if n := strings.Count(string(stacks), "NodeGetVolumeStats.func1("); n != 1 {
		t.Errorf("%d reads of the statistics wait, want 1", n)
	}
}

// hanging mounts nothing until its context ends.
type hanging struct{}

func (hanging) Mount(ctx context.Context, _ share.Mount, _ string, _ file.Credentials) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestMountThatHangs checks defect 26: a mount that does not end is given up, and the volume can be staged later.
func TestMountThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mounter node.Mounter = hanging{}
		w := newMachine(t, func(c *node.Config) { c.Mounter = mounterFunc(func() node.Mounter { return mounter }) })
		path := w.path("stage")
		began := time.Now()
		wantCode(t, "26", w.stage(id, path, capability()), codes.DeadlineExceeded)
		if took := time.Since(began); took > 90*time.Second {
			t.Errorf("the mount was given up after %s", took)
		}
		mounter = w.shares
		if err := w.stage(id, path, capability()); err != nil || len(w.shares.mounts) != 1 {
			t.Errorf("%v, %d mounts", err, len(w.shares.mounts))
		}
	})
}

// mounterFunc mounts with the mounter that it returns.
type mounterFunc func() node.Mounter

func (f mounterFunc) Mount(ctx context.Context, m share.Mount, target string, c file.Credentials) error {
	return f().Mount(ctx, m, target, c)
}

// TestKernel checks defects 17 and 26. The mount program gets the key through a pipe, not as an argument or in a variable.
// It ends with its request.
func TestKernel(t *testing.T) {
	dir := t.TempDir()
	program := "#!/bin/sh\n{ echo \"$@\"; env; } > " + dir + "/visible\ncat <&3 > " + dir + "/read\n" +
		"[ \"$2\" = quick ] && exit\necho $$ > " + dir + "/pid\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(dir, "mount.cifs"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	m := share.Mount{Source: "//acct.file.core.windows.net/share1", Type: "cifs", Options: []string{"ro"}}
	key := file.Credentials{Account: "acct", Key: secret.New("secret-key")}
	if err := (node.Kernel{}).Mount(t.Context(), m, "quick", key); err != nil {
		t.Fatal(err)
	}
	visible, err := os.ReadFile(filepath.Join(dir, "visible"))
	if err != nil || !strings.Contains(string(visible), "username=acct,ro") || strings.Contains(string(visible), "secret-key") {
		t.Errorf("defect 17: arguments or environment have the key, or not the options: %.120s, %v", visible, err)
	}
	if read, err := os.ReadFile(filepath.Join(dir, "read")); err != nil || string(read) != "secret-key" {
		t.Errorf("the pipe has %d bytes, %v", len(read), err)
	}
	started := filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- node.Kernel{}.Mount(ctx, m, "slow", key) }()
	text, err := os.ReadFile(started) // it waits for the program
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("defect 26: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("defect 26: the mount program %d still runs: %v", pid, err)
	}
}

// TestKeysOfSecrets checks defect 18: each mount has the key that its Secret has now, and a volume gets no key of another namespace.
func TestKeysOfSecrets(t *testing.T) {
	w := newMachine(t, func(c *node.Config) { c.Key = nil })
	secret := func(key string) map[string]string {
		return map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": key}
	}
	const name = "/azure-storage-account-acct-secret"
	for i, want := range []string{"first", "second"} {
		w.secrets["apps"+name] = secret(want)
		if err := w.stage(id, w.path(fmt.Sprintf("stage-%d", i)), capability()); err != nil {
			t.Fatal(err)
		}
		if got := w.shares.given[i].Key.Reveal(); got != want {
			t.Errorf("the key %s, want %s", got, want)
		}
	}
	err := w.stage("rg#acct#share1###other", w.path("other"), capability())
	wantCode(t, "a namespace without the Secret", err, codes.FailedPrecondition)
}

// TestKeyThatChanges checks defect 18. After a key was changed, a node that has read the old key mounts at once with the new
// one. It reads the new key once for all mounts. A key that Azure still names is not tried again.
func TestKeyThatChanges(t *testing.T) {
	cloud := testkit.NewAzure(t, core.Options{}, 0)
	account := testkit.Group.Resource(storage.Accounts, "acct")
	cloud.Put(account, map[string]any{"location": testkit.Location, "kind": "StorageV2", "sku": map[string]any{"name": "Standard_LRS"}})
	keys, now := file.NewKeys(cloud.Client), file.NewKeys(cloud.Client)
	w := newMachine(t, func(c *node.Config) {
		c.Key, c.Refused = keys.Of, keys.Refused
		c.Cluster.Subscription, c.Cluster.ResourceGroup = testkit.Subscription, testkit.ResourceGroup
	})
	valid, tried := "", 0
	w.shares.accept = func(c file.Credentials) error {
		if tried++; c.Key.Reveal() == valid {
			return nil
		}
		return &node.MountError{Program: "mount.cifs", Output: "mount error(13): Permission denied", Cause: errors.New("exit status 32")}
	}
	const volume = testkit.ResourceGroup + "#acct#share1###apps"
	for i, change := range []bool{false, true, false} {
		if change {
			if _, err := azure.Do(t.Context(), cloud.Client, azure.Request{Verb: azure.Post, ID: account, Action: "regenerateKey",
				Body: []byte(`{"keyName":"key1"}`)}); err != nil {
				t.Fatal(err)
			}
			now = file.NewKeys(cloud.Client)
		}
		key, err := now.Of(t.Context(), account, false)
		if err != nil {
			t.Fatal(err)
		}
		valid = key.Reveal()
		cloud.Forget()
		if err := w.stage(volume, w.path(fmt.Sprintf("stage-%d", i)), capability()); err != nil {
			t.Errorf("mount %d: %v", i, err)
		}
		if n, want := len(cloud.Requests()), []int{1, 1, 0}[i]; n != want {
			t.Errorf("mount %d: %d requests, want %d", i, n, want)
		}
	}
	valid, tried = "of nobody", 0
	wantCode(t, "18", w.stage(volume, w.path("refused"), capability()), codes.Unauthenticated)
	if tried != 1 {
		t.Errorf("%d mounts with one key, want 1", tried)
	}
}

// TestKeysThatCannotBeRead checks defect 32: the code tells whether a repeated request can succeed.
func TestKeysThatCannotBeRead(t *testing.T) {
	for kind, want := range map[azure.Kind]codes.Code{
		azure.Throttled: codes.Unavailable, azure.Unavailable: codes.Unavailable, azure.Denied: codes.PermissionDenied,
		azure.NotFound: codes.NotFound,
	} {
		w := newMachine(t, func(c *node.Config) {
			c.Key = func(context.Context, azure.ID, bool) (secret.Text, error) {
				return secret.Text{}, &azure.Error{Kind: kind}
			}
		})
		wantCode(t, "32", w.stage(id, w.path("stage"), capability()), want)
	}
}

// TestInline checks rows 75 to 77.
func TestInline(t *testing.T) {
	var asked []string
	w := newMachine(t, func(c *node.Config) {
		c.Authorize = func(_ context.Context, namespace, account, secret string) error {
			asked = append(asked, namespace+"/"+account+"/"+secret)
			if account == "nobody" {
				return status.Error(codes.PermissionDenied, "refused")
			}
			return nil
		}
	})
	w.secrets["apps/s"] = map[string]string{"azurestorageaccountname": "acct", "azurestorageaccountkey": "k"}
	w.secrets["other/s"] = map[string]string{"azurestorageaccountname": "stolen", "azurestorageaccountkey": "k"}
	target := w.path("pod/inline")
	inline := func(attributes ...string) error {
		return w.publish("", target, func(r *csispec.NodePublishVolumeRequest) {
			r.VolumeId = "csi-inline"
			r.VolumeContext = map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": "apps",
				"csi.storage.k8s.io/serviceAccount.name": "web", "shareName": "share1", "secretName": "s"}
			for i := 0; i+1 < len(attributes); i += 2 {
				r.VolumeContext[attributes[i]] = attributes[i+1]
			}
		})
	}
	for what, attributes := range map[string][]string{
		"75 nfs": {"protocol", "nfs"}, "75 server": {"server", "a/b"}, "75 bind": {"mountOptions", "ro,bind"},
		"75 identity": {"mountWithManagedIdentity", "true"}, "75 colliding": {"ShareName", "x"}, "75 share": {"shareName", ".."},
		"75 no secret": {"secretName", ""}, "75 disk": {"diskName", "a.vhd"},
	} {
		wantCode(t, what, inline(attributes...), codes.InvalidArgument)
	}
	wantCode(t, "77", inline("csi.storage.k8s.io/serviceAccount.name", "nobody"), codes.PermissionDenied)
	if err := inline("secretNamespace", "other", "mountOptions", "dir_mode=0700"); err != nil {
		t.Fatal(err)
	}
	if m := w.shares.mounts[0]; m.Source != "//acct.file.core.windows.net/share1" || !slices.Contains(m.Options, "dir_mode=0700") {
		t.Errorf("76: %+v", m)
	}
	if last := asked[len(asked)-1]; last != "apps/web/s" {
		t.Errorf("asked for %s", last)
	}
}

// TestGroupOfNFS checks row 66: the owner of the files of an NFS volume.
func TestGroupOfNFS(t *testing.T) {
	for _, c := range []struct {
		policy       string
		rootFirst    bool // the root has the group before
		root, inside int
	}{{"None", false, 0, 0}, {"OnRootMismatch", false, 5678, 5678}, {"OnRootMismatch", true, 5678, 0}, {"Always", true, 5678, 5678}} {
		w := newMachine(t, nil)
		inside := filepath.Join(w.shares.dir, "f")
		if err := os.WriteFile(inside, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.rootFirst {
			if err := errors.Join(os.Chown(w.shares.dir, 0, 5678), os.Chmod(w.shares.dir, 0o777|os.ModeSetgid)); err != nil {
				t.Fatal(err)
			}
		}
		group := capability()
		group.GetMount().VolumeMountGroup = "5678"
		if err := w.stage(id, w.path("stage"), group, "protocol", "nfs", "fsGroupChangePolicy", c.policy, "mountPermissions", "0"); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]int{w.shares.dir: c.root, inside: c.inside} {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := int(info.Sys().(*syscall.Stat_t).Gid); got != want {
				t.Errorf("%s, root first %t: group of %s is %d, want %d", c.policy, c.rootFirst, filepath.Base(path), got, want)
			}
		}
	}
}

// TestPermissions checks row 16: the mode of the root of an NFS volume.
func TestPermissions(t *testing.T) {
	for text, want := range map[string]os.FileMode{"": 0o777, "0": 0o755, "0700": 0o700, "2770": 0o770 | os.ModeSetgid} {
		w := newMachine(t, nil)
		if err := w.stage(id, w.path("stage"), capability(), "protocol", "nfs", "mountPermissions", text); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(w.shares.dir); err != nil || info.Mode()&^os.ModeDir != want {
			t.Errorf("%q: %v, %v", text, info.Mode(), err)
		}
	}
}

// TestToken checks row 72 and mounts with workload identity: the helper gets the token in a file that goes with the volume.
func TestToken(t *testing.T) {
	dir := t.TempDir()
	program, log := filepath.Join(dir, "helper"), filepath.Join(dir, "log")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$@\" >> "+log+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(dir, "tokens")
	w := newMachine(t, func(c *node.Config) {
		c.Tickets = node.Helper{Program: program, Dir: tokens, Authority: "https://login.microsoftonline.com"}
	})
	class := map[string]string{"mountWithWorkloadIdentityToken": "true", "clientID": "c-1", "tenantID": "t-1",
		"server": "acct.privatelink.file.core.windows.net"}
	staging, target := w.path("stage"), w.path("pod/volume")
	if _, err := w.NodeStageVolume(t.Context(), &csispec.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging,
		VolumeCapability: capability(), VolumeContext: class}); err != nil || len(w.shares.mounts) > 0 {
		t.Fatalf("72: %v, %v", err, w.shares.mounts)
	}
	publish := func() error {
		return w.publish(staging, target, func(r *csispec.NodePublishVolumeRequest) {
			r.VolumeContext = class
			r.Secrets = map[string]string{"csi.storage.k8s.io/serviceAccount.tokens": `{"api://AzureADTokenExchange":{"token":"secret-token"}}`}
		})
	}
	for range 2 { // the second renews the ticket
		if err := publish(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(log)
	if err != nil || strings.Count(string(text), "--workload-identity --tenant-id t-1 --client-id c-1 --token-file") != 2 ||
		strings.Contains(string(text), "secret-token") || !strings.Contains(string(text), "https://acct.file.core.windows.net") {
		t.Errorf("%s, %v", text, err)
	}
	if m := w.shares.mounts[0]; len(w.shares.mounts) != 1 || !slices.Contains(m.Options, "sec=krb5") ||
		m.Source != "//acct.file.core.windows.net/share1" {
		t.Errorf("%+v", w.shares.mounts)
	}
	if _, err := w.NodeUnpublishVolume(t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}); err != nil {
		t.Error(err)
	}
	inline := func(r *csispec.NodePublishVolumeRequest) {
		r.VolumeId = "csi-inline"
		r.VolumeContext = map[string]string{"csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.namespace": "apps",
			"shareName": "share1", "storageAccount": "acct", "mountWithWorkloadIdentityToken": "true", "clientID": "c-1"}
		r.Secrets = map[string]string{"csi.storage.k8s.io/serviceAccount.tokens": `{"api://AzureADTokenExchange":{"token":"secret-token"}}`}
	}
	if err := w.publish("", target, inline); err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadDir(tokens); err != nil || len(there) != 1 {
		t.Errorf("tokens of an inline volume: %v, %v, want one", there, err)
	}
	if _, err := w.NodeUnpublishVolume(t.Context(), &csispec.NodeUnpublishVolumeRequest{VolumeId: "csi-inline", TargetPath: target}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(tokens); err != nil || len(left) > 0 {
		t.Errorf("defect 28: tokens remain: %v, %v", left, err)
	}
}
