package share_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kaz/internal/host/process"
	"kaz/internal/localazure/share"
)

const (
	firstKey  = "Zmlyc3Qga2V5IG9mIHRoZSBhY2NvdW50Cg=="
	secondKey = "c2Vjb25kIGtleSBvZiB0aGUgYWNjb3VudAo="
)

// servers are share servers with clients.
type servers struct {
	*testing.T
	*share.Server
	dir, smb, nfs string
	processes     *process.Group
}

func start(t *testing.T) *servers {
	t.Helper()
	if err := share.Check(); err != nil {
		t.Skip(err)
	}
	for _, client := range []string{"smbclient", "nfs-ls", "nfs-cat", "nfs-cp"} {
		if _, err := exec.LookPath(client); err != nil {
			t.Skipf("%v: install smbclient and libnfs-utils", err)
		}
	}
	dir := t.TempDir()
	group, err := process.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Close(context.WithoutCancel(t.Context()), 5*time.Second) })
	s := &servers{T: t, dir: dir, smb: free(t), nfs: free(t), processes: group}
	s.serve()
	return s
}

func (s *servers) serve() {
	s.Helper()
	var err error
	s.Server, err = share.Start(s.Context(), share.Config{Dir: s.dir, SMB: s.smb, NFS: s.nfs, NFS40: true, Processes: s.processes})
	if err != nil {
		s.Fatal(err)
	}
}

// free returns a free address of the loopback interface.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (s *servers) set(accounts ...share.Account) {
	s.Helper()
	if err := s.Set(s.Context(), accounts); err != nil {
		s.Fatal(err)
	}
}

// of returns a share with a new directory.
func (s *servers) of(account, name string, protocol share.Protocol) share.Share {
	s.Helper()
	path := filepath.Join(s.dir, "content", account, name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		s.Fatal(err)
	}
	return share.Share{Name: name, Path: path, Protocol: protocol}
}

// smbclient runs commands of smbclient and returns what it prints.
func (s *servers) smbclient(account, key, name, commands string) string {
	s.Helper()
	_, port, _ := net.SplitHostPort(s.smb)
	cmd := exec.CommandContext(s.Context(), "smbclient", "//127.0.0.1/"+name, "-p", port, "-m", "SMB3", "-s", "/dev/null", "-U", account,
		"-c", commands)
	cmd.Env, cmd.Dir = []string{"PASSWD=" + key, "PATH=/usr/bin:/bin"}, s.dir
	out, _ := cmd.CombinedOutput() // errors are in the text
	return string(out)
}

// nfs runs a program of libnfs with the URL of a path and returns what it prints.
func (s *servers) nfsRun(path, program string, args ...string) string {
	s.Helper()
	_, port, _ := net.SplitHostPort(s.nfs)
	args = append(args, fmt.Sprintf("nfs://127.0.0.1%s?version=4&nfsport=%s", path, port))
	out, _ := exec.CommandContext(s.Context(), program, args...).CombinedOutput() // errors are in the text
	return string(out)
}

func (s *servers) want(what, got, part string) {
	s.Helper()
	if !strings.Contains(got, part) {
		s.Errorf("%s: got %q, want %q in it", what, got, part)
	}
}

func (s *servers) write(name, text string) string {
	s.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

const (
	refusedLogin = "NT_STATUS_LOGON_FAILURE"
	missingShare = "NT_STATUS_BAD_NETWORK_NAME"
)

func TestAccountsHaveTheirOwnKeysAndShares(t *testing.T) {
	s := start(t)
	one, two := s.of("account1", "data", share.SMB), s.of("account2", "data", share.SMB)
	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{one}},
		share.Account{Name: "account2", Key: secondKey, Shares: []share.Share{two}})
	s.write("file", "of account1")

	s.want("upload", s.smbclient("account1", firstKey, "data", "put file"), "putting file")
	if got, err := os.ReadFile(filepath.Join(one.Path, "file")); err != nil || string(got) != "of account1" {
		t.Errorf("uploaded file: %q, %v", got, err)
	}
	s.want("the share of the same name in another account", s.smbclient("account2", secondKey, "data", "get file -"), "NOT_FOUND")
	s.want("the domain that Windows clients send", s.smbclient(`AZURE\account1`, firstKey, "data", "get file -"), "of account1")
	s.want("the key of another account", s.smbclient("account1", secondKey, "data", "ls"), refusedLogin)
	s.want("an unknown account", s.smbclient("account3", firstKey, "data", "ls"), refusedLogin)
	s.want("no login", s.smbclient("", "", "data", "ls"), "NT_STATUS_")
	s.want("an unknown share", s.smbclient("account1", firstKey, "other", "ls"), missingShare)
}

func TestSharesAndKeysChangeWhileServersRun(t *testing.T) {
	s := start(t)
	one, two := s.of("account1", "one", share.SMB), s.of("account1", "two", share.SMB)
	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{one}})
	s.want("before it is added", s.smbclient("account1", firstKey, "two", "ls"), missingShare)

	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{one, two}})
	s.want("after it is added", s.smbclient("account1", firstKey, "two", "ls"), "blocks available")

	s.set(share.Account{Name: "account1", Key: secondKey, Shares: []share.Share{two}})
	s.want("old key", s.smbclient("account1", firstKey, "two", "ls"), refusedLogin)
	s.want("new key", s.smbclient("account1", secondKey, "two", "ls"), "blocks available")
	s.want("removed share", s.smbclient("account1", secondKey, "one", "ls"), missingShare)

	s.set()
	s.want("removed account", s.smbclient("account1", secondKey, "two", "ls"), refusedLogin)
	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{one}})
	s.want("account that is made again", s.smbclient("account1", firstKey, "one", "ls"), "blocks available")
}

func TestClientsSeeTheQuotaAsTheSize(t *testing.T) {
	s := start(t)
	small := s.of("account1", "small", share.SMB)
	small.QuotaGiB = 3
	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{small}})
	s.want("size", s.smbclient("account1", firstKey, "small", "ls"), fmt.Sprint(3<<20, " blocks of size 1024"))
	small.QuotaGiB = 4
	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{small}})
	s.want("size after growth", s.smbclient("account1", firstKey, "small", "ls"), fmt.Sprint(4<<20, " blocks of size 1024"))
}

func TestSharesOverNFS(t *testing.T) {
	s := start(t)
	open, squashed := s.of("account1", "open", share.NFS), s.of("account1", "squashed", share.NFS)
	squashed.Squash = share.RootSquash
	file := s.write("file", "text\n")
	account := func(shares ...share.Share) share.Account {
		return share.Account{Name: "account1", Key: firstKey, Shares: shares}
	}
	s.set(account(open))
	s.want("copy", s.nfsRun("/account1/open/file", "nfs-cp", file), "copied 5 bytes")
	s.want("list", s.nfsRun("/account1/open", "nfs-ls"), "file")
	s.want("content", s.nfsRun("/account1/open/file", "nfs-cat"), "text")
	s.want("before it is added", s.nfsRun("/account1/squashed", "nfs-ls"), "NOENT")

	s.set(account(open, squashed))
	s.want("root is squashed", s.nfsRun("/account1/squashed/file", "nfs-cp", file), "NFS4ERR_ACCESS")
	squashed.Squash = share.NoRootSquash
	s.set(account(squashed))
	s.want("root is not squashed any more", s.nfsRun("/account1/squashed/file", "nfs-cp", file), "copied 5 bytes")
	s.want("removed share", s.nfsRun("/account1/open", "nfs-ls"), "NOENT")
	s.want("a share of NFS over SMB", s.smbclient("account1", firstKey, "squashed", "ls"), missingShare)
}

func TestTheKeyIsInNoArgument(t *testing.T) {
	s := start(t)
	s.set(share.Account{Name: "account1", Key: firstKey, Shares: []share.Share{s.of("account1", "one", share.SMB)}})
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("processes: %d, %v", len(files), err)
	}
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), firstKey) {
			t.Errorf("%s has the key: %q", file, line)
		}
	}
}

func TestRefusedAccounts(t *testing.T) {
	s := start(t)
	good := share.Share{Name: "data", Path: "/tmp/data", Protocol: share.SMB}
	cases := map[string]struct {
		change func(*share.Account, *share.Share)
		says   string
	}{
		"name of the account": {func(a *share.Account, _ *share.Share) { a.Name = "Bad\nName" }, `account "Bad\nName"`},
		"no key":              {func(a *share.Account, _ *share.Share) { a.Key = "" }, "account1: its key is empty"},
		"name of the share":   {func(_ *share.Account, s *share.Share) { s.Name = "a]b" }, `share "a]b"`},
		"relative path":       {func(_ *share.Account, s *share.Share) { s.Path = "data" }, `path "data" is not absolute`},
		"protocol":            {func(_ *share.Account, s *share.Share) { s.Protocol = "FTP" }, `protocol "FTP"`},
		"squash":              {func(_ *share.Account, s *share.Share) { s.Squash = "Some" }, `squash "Some"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, one := share.Account{Name: "account1", Key: firstKey}, good
			c.change(&a, &one)
			a.Shares = []share.Share{one}
			err := s.Set(t.Context(), []share.Account{a})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q in it", err, c.says)
			}
		})
	}
}
