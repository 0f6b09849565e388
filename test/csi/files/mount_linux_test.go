package files

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kaz/internal/testkit/guest"
)

// other is a user without rights, and without a name.
const other = 1234

// mountSMB mounts a share of the SMB server, with the key in a file that only root can read.
func mountSMB(t *testing.T, share string, options ...string) (string, error) {
	t.Helper()
	guest.Facts[facts](t)
	credentials := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(credentials, []byte("username="+account+"\npassword="+key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	source := "//" + guest.HostAddress + "/" + share
	return mountFrom(t, "cifs", source, append([]string{"credentials=" + credentials}, options...)...)
}

// mountNFS mounts a folder of the NFS server.
func mountNFS(t *testing.T, share string, options ...string) (string, error) {
	t.Helper()
	guest.Facts[facts](t)
	source := guest.HostAddress + ":/" + account + "/" + share
	return mountFrom(t, "nfs", source, append([]string{"vers=4.1"}, options...)...)
}

// mountFrom mounts a share until the test ends. Its error has what the program said.
func mountFrom(t *testing.T, fsType, source string, options ...string) (string, error) {
	t.Helper()
	path := "/shares" + t.TempDir() // other users cannot enter a temporary directory itself
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), "mount", "-t", fsType, "-o", strings.Join(options, ","), source, path).CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(output)))
	}
	t.Cleanup(func() {
		if err := unmount(path); err != nil {
			t.Errorf("unmount %s: %v", source, err)
		}
	})
	return path, nil
}

// unmount unmounts a path. Killed processes have files open until they have ended.
func unmount(path string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		err := unix.Unmount(path, 0)
		if !errors.Is(err, unix.EBUSY) || time.Now().After(end) {
			return err
		}
	}
}

// must returns the path of a mount that has to succeed.
func must(t *testing.T) func(path string, err error) string {
	return func(path string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// owner is what users see of a file.
type owner struct {
	mode     fs.FileMode
	uid, gid uint32
}

func look(t *testing.T, path string) owner {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	of := info.Sys().(*syscall.Stat_t)
	return owner{info.Mode().Perm(), of.Uid, of.Gid}
}

// as runs a program as the other user.
func as(t *testing.T, uid uint32, program string, args ...string) error {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	output, err := cmd.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(output)))
	}
	return nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// SMB shows the modes and owners that the mount was asked for, whatever the server keeps. The same share can be mounted with
// different ones at the same time.
func TestSMBModesAreThoseOfTheMount(t *testing.T) {
	open := must(t)(mountSMB(t, "files", "file_mode=0777,dir_mode=0777"))
	closed := must(t)(mountSMB(t, "files", "uid=70,gid=71,file_mode=0600,dir_mode=0700,nosharesock"))
	write(t, filepath.Join(open, "modes"), "text")
	for path, want := range map[string]owner{
		filepath.Join(open, "modes"):    {0o777, 0, 0},
		filepath.Join(open, "folder"):   {0o777, 0, 0},
		filepath.Join(closed, "modes"):  {0o600, 70, 71},
		filepath.Join(closed, "folder"): {0o700, 70, 71},
	} {
		if got := look(t, path); got != want {
			t.Errorf("%s is %v, want %v", filepath.Base(path), got, want)
		}
	}
	if err := as(t, other, "cat", filepath.Join(closed, "modes")); err == nil {
		t.Error("another user reads a file with mode 0600")
	}
	if err := as(t, 70, "cat", filepath.Join(closed, "modes")); err != nil {
		t.Errorf("the owner cannot read its file: %v", err)
	}
	if err := as(t, other, "touch", filepath.Join(open, "of-another")); err != nil {
		t.Errorf("a user cannot write a directory with mode 0777: %v", err)
	}
}

// Databases change the mode of their directory first of all. On SMB that succeeds without effect for root, and fails for all
// others, unless the mount has made them the owner.
func TestSMBKeepsNoModes(t *testing.T) {
	byDefault := must(t)(mountSMB(t, "files", "file_mode=0777,dir_mode=0777"))
	owned := must(t)(mountSMB(t, "files", "uid=70,gid=70,file_mode=0700,dir_mode=0700,nosharesock"))
	write(t, filepath.Join(byDefault, "kept"), "text")
	file := filepath.Join(byDefault, "kept")
	if err := os.Chmod(file, 0o600); err != nil {
		t.Errorf("root cannot call chmod: %v", err)
	}
	if err := os.Chown(file, other, other); err != nil {
		t.Errorf("root cannot call chown: %v", err)
	}
	if got, want := look(t, file), (owner{0o777, 0, 0}); got != want {
		t.Errorf("after chmod and chown the file is %v, want %v", got, want)
	}
	if err := as(t, 70, "chmod", "0700", file); err == nil || !strings.Contains(err.Error(), "Operation not permitted") {
		t.Errorf("got %v, want that a user who is not the owner cannot call chmod", err)
	}
	if err := as(t, 70, "chmod", "0700", filepath.Join(owned, "kept")); err != nil {
		t.Errorf("the owner cannot set the mode that the file has: %v", err)
	}
}

func TestSMBLinks(t *testing.T) {
	// The kernel keeps a file open for a second after it was closed, with its lease. Samba takes that lease for one name only, so
	// that the kernel's open of a hard link of the file fails meanwhile.
	path := filepath.Join(must(t)(mountSMB(t, "files", "mfsymlinks", "closetimeo=0")), "links")
	if err := os.Mkdir(path, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	})
	write(t, filepath.Join(path, "target"), "text")
	for name, link := range map[string]func(target, path string) error{"symbolic": os.Symlink, "hard": os.Link} {
		at := filepath.Join(path, name)
		if err := link(filepath.Join(path, "target"), at); err != nil {
			t.Errorf("%s link: %v", name, err)
			continue
		}
		if text, err := os.ReadFile(at); string(text) != "text" {
			t.Errorf("%s link: read %q, %v", name, text, err)
		}
	}
}

func TestNFSKeepsModesAndOwners(t *testing.T) {
	path := must(t)(mountNFS(t, "exports"))
	file := filepath.Join(path, "file")
	write(t, file, "text")
	if err := errors.Join(os.Chmod(file, 0o640), os.Chown(file, 70, 71), os.Symlink("file", file+"-link"), os.Link(file, file+"-hard")); err != nil {
		t.Fatal(err)
	}
	again := must(t)(mountNFS(t, "exports", "nosharecache"))
	for _, name := range []string{"file", "file-link", "file-hard"} {
		if got, want := look(t, filepath.Join(again, name)), (owner{0o640, 70, 71}); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if err := as(t, other, "cat", filepath.Join(again, "file")); err == nil {
		t.Error("another user reads a file with mode 0640")
	}
}

func TestNFSSquashesRoot(t *testing.T) {
	const anonymous = 4294967294
	path := must(t)(mountNFS(t, "squashed"))
	file := filepath.Join(path, "file")
	write(t, file, "text")
	if got := look(t, file); got.uid != anonymous {
		t.Errorf("a file of root has the owner %d, want %d", got.uid, uint32(anonymous))
	}
	if err := os.Chown(file, 70, 70); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("chown gives %v, want that root may not", err)
	}
}

func TestMountsOfFolders(t *testing.T) {
	for share, mounts := range map[string]func(*testing.T, string, ...string) (string, error){"files": mountSMB, "exports": mountNFS} {
		t.Run(share, func(t *testing.T) {
			whole, folder := must(t)(mounts(t, share)), must(t)(mounts(t, share+"/folder"))
			write(t, filepath.Join(folder, "deep"), "text")
			if text, err := os.ReadFile(filepath.Join(whole, "folder", "deep")); string(text) != "text" {
				t.Errorf("read %q, %v", text, err)
			}
			readOnly := must(t)(mounts(t, share+"/folder", "ro"))
			if _, err := os.Create(filepath.Join(readOnly, "new")); !errors.Is(err, unix.EROFS) {
				t.Errorf("create on a read-only mount gives %v, want %v", err, unix.EROFS)
			}
		})
	}
}

func TestMountsThatFail(t *testing.T) {
	guest.Facts[facts](t)
	wrong := filepath.Join(t.TempDir(), "wrong")
	write(t, wrong, "username="+account+"\npassword=wrong\n")
	for name, row := range map[string]struct {
		mount func() (string, error)
		want  string
	}{
		"a wrong key":         {func() (string, error) { return mountSMB(t, "files", "credentials="+wrong) }, "mount error(13)"},
		"no such SMB share":   {func() (string, error) { return mountSMB(t, "missing") }, "mount error(2)"},
		"no such SMB folder":  {func() (string, error) { return mountSMB(t, "files/missing") }, "mount error(2)"},
		"no such NFS share":   {func() (string, error) { return mountNFS(t, "missing") }, "No such file or directory"},
		"no such SMB option":  {func() (string, error) { return mountSMB(t, "files", "nonsense") }, "mount error(22)"},
		"a mode for SMB only": {func() (string, error) { return mountNFS(t, "exports", "file_mode=0700") }, "incorrect mount option"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := row.mount()
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}
