package share

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// packages are the Debian packages of the programs.
const packages = "samba, libnss-wrapper, nfs-ganesha and nfs-ganesha-vfs"

// Check returns the reason why this machine cannot serve shares, nil if it can.
func Check() error {
	var missing []string
	for _, program := range []string{"smbd", "smbpasswd", "ganesha.nfsd"} {
		if _, err := programFile(program); err != nil {
			missing = append(missing, program)
		}
	}
	for name, patterns := range map[string][]string{"libnss_wrapper.so": wrapperPaths(), "libfsalvfs.so": fsalPaths()} {
		if find(patterns) == "" {
			missing = append(missing, name)
		}
	}
	switch {
	case os.Geteuid() != 0:
		return errors.New("file shares over SMB and NFS need root")
	case len(missing) > 0:
		return fmt.Errorf("file shares over SMB and NFS need %s; install %s", strings.Join(missing, ", "), packages)
	}
	return nil
}

// programFile returns the file of a program, also of one in a directory that is only in the PATH of root.
func programFile(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return exec.LookPath(filepath.Join("/usr/sbin", name))
}

func wrapperPaths() []string { return libraries("libnss_wrapper.so") }

func fsalPaths() []string { return libraries("ganesha/libfsalvfs.so") }

func libraries(name string) []string {
	return []string{"/usr/lib/*/" + name, "/usr/lib64/" + name, "/usr/lib/" + name}
}

// find returns the first file of the patterns, "" for none.
func find(patterns []string) string {
	for _, p := range patterns {
		if found, err := filepath.Glob(p); err == nil && len(found) > 0 {
			return found[0]
		}
	}
	return ""
}

var (
	accountForm = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	shareForm   = regexp.MustCompile(`^[a-z0-9$][a-z0-9-]{1,61}[a-z0-9]$`)
	pathForm    = regexp.MustCompile(`^/[A-Za-z0-9._/@:-]+$`)
)

// check refuses values that the files of the servers cannot hold.
func check(accounts []Account) error {
	for _, a := range accounts {
		if !accountForm.MatchString(a.Name) {
			return fmt.Errorf("account %q: want 3 to 24 lower-case letters and digits", a.Name)
		}
		if a.Key == "" || strings.ContainsAny(a.Key, "\n\r\x00") {
			return fmt.Errorf("account %s: its key is empty or has line breaks", a.Name)
		}
		for _, s := range a.Shares {
			if err := s.check(); err != nil {
				return fmt.Errorf("account %s: %w", a.Name, err)
			}
		}
	}
	return nil
}

func (s Share) check() error {
	switch {
	case !shareForm.MatchString(s.Name):
		return fmt.Errorf("share %q: want 3 to 63 lower-case letters, digits and hyphens", s.Name)
	case !pathForm.MatchString(s.Path):
		return fmt.Errorf("share %s: the path %q is not absolute, or has characters other than letters, digits and ._-@:/ in it", s.Name,
			s.Path)
	case s.Protocol != SMB && s.Protocol != NFS:
		return fmt.Errorf("share %s: the protocol %q is not supported: SMB and NFS are", s.Name, s.Protocol)
	case s.Squash != "" && squashes[s.Squash] == "":
		return fmt.Errorf("share %s: the squash %q is not supported: NoRootSquash, RootSquash and AllSquash are", s.Name, s.Squash)
	}
	return nil
}
