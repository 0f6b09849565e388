package share

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/host/process"
)

// samba is a Samba server. After a login it reads the file of the account, which has the account's shares, so accounts can have
// shares of one name.
//
// nss_wrapper gives Samba a user for each account without a change of the machine's users.
type samba struct {
	dir     string
	process *process.Process

	keys   map[string]string // as Samba has them, by account
	shares map[string]string // the file of each account
}

// sambaDirs are the directories of Samba below its own.
var sambaDirs = []string{"private", "lock", "state", "cache", "run", "ncalrpc", "shares", "size"}

func startSamba(ctx context.Context, c Config) (*samba, error) {
	s := &samba{dir: filepath.Join(c.Dir, "smb"), keys: map[string]string{}, shares: map[string]string{}}
	// Everything here is made from the accounts anew.
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, err
	}
	for _, dir := range sambaDirs {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o700); err != nil {
			return nil, err
		}
	}
	config, err := s.config(c.SMB)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(write(s.file("smb.conf"), config, 0o600), s.writeUsers(nil)); err != nil {
		return nil, err
	}
	path, err := programFile("smbd")
	if err != nil {
		return nil, err
	}
	s.process, err = c.Processes.Start(process.Spec{
		Name: "smbd", Path: path, Args: []string{"--foreground", "--no-process-group", "--configfile=" + s.file("smb.conf")}, Env: s.env(),
	})
	if err != nil {
		return nil, err
	}
	return s, await(ctx, s.process, c.SMB)
}

func (s *samba) file(name string) string { return filepath.Join(s.dir, name) }

// env is the environment of Samba's programs. The users are in the files passwd and group.
func (s *samba) env() []string {
	return []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.dir, "LD_PRELOAD=" + find(wrapperPaths()),
		"NSS_WRAPPER_PASSWD=" + s.file("passwd"), "NSS_WRAPPER_GROUP=" + s.file("group"),
	}
}

// config is the part of smb.conf that never changes. %U is the account that logs in.
func (s *samba) config(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	bind := ""
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		bind = "interfaces = " + host + "\n  bind interfaces only = yes"
	}
	return strings.NewReplacer("{dir}", s.dir, "{port}", port, "{bind}", bind).Replace(`[global]
  server role = standalone server
  workgroup = AZURE
  netbios name = AZUREFILES
  disable netbios = yes
  smb ports = {port}
  {bind}
  private dir = {dir}/private
  lock directory = {dir}/lock
  state directory = {dir}/state
  cache directory = {dir}/cache
  pid directory = {dir}/run
  ncalrpc dir = {dir}/ncalrpc
  log file = {dir}/log
  passdb backend = tdbsam
  server min protocol = SMB2_10
  map to guest = never
  restrict anonymous = 2
  load printers = no
  printing = bsd
  printcap name = /dev/null
  disable spoolss = yes
  usershare max shares = 0
  unix extensions = no
  mangled names = no
  hide dot files = no
  store dos attributes = yes
  ea support = yes
  dfree cache time = 5
  include = {dir}/shares/%U.conf
`), nil
}

func (s *samba) set(ctx context.Context, accounts []Account) error {
	if err := s.writeUsers(accounts); err != nil {
		return err
	}
	changed := false
	given := map[string]bool{}
	for _, a := range accounts {
		given[a.Name] = true
		one, err := s.setAccount(ctx, a)
		if err != nil {
			return fmt.Errorf("account %s: %w", a.Name, err)
		}
		changed = changed || one
	}
	for name := range s.keys {
		if given[name] {
			continue
		}
		changed = true
		if err := s.remove(name); err != nil {
			return fmt.Errorf("account %s: %w", name, err)
		}
	}
	if changed {
		s.process.Reload() // for sessions that exist; others read the files by themselves
	}
	return nil
}

// writeUsers writes the users of Samba: an account is a user without rights. The owner of all files is root.
func (s *samba) writeUsers(accounts []Account) error {
	const first = 200000
	var users strings.Builder
	users.WriteString("root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/:/bin/false\n")
	sorted := slices.SortedFunc(slices.Values(accounts), func(a, b Account) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range sorted {
		fmt.Fprintf(&users, "%s:x:%d:65534::/:/bin/false\n", a.Name, first+i)
	}
	return errors.Join(write(s.file("passwd"), users.String(), 0o600), write(s.file("group"), "root:x:0:\nnogroup:x:65534:\n", 0o600))
}

// setAccount reports whether the account differs from before.
func (s *samba) setAccount(ctx context.Context, a Account) (bool, error) {
	newKey := s.keys[a.Name] != a.Key
	if newKey {
		if err := s.setPassword(ctx, a); err != nil {
			return false, err
		}
		s.keys[a.Name] = a.Key
	}
	text, err := s.sharesOf(a)
	if err != nil {
		return false, err
	}
	if s.shares[a.Name] == text {
		return newKey, nil
	}
	s.shares[a.Name] = text
	return true, write(s.file("shares/"+a.Name+".conf"), text, 0o600)
}

// remove removes the shares of an account. Without a line in the file of users the account cannot log in.
func (s *samba) remove(account string) error {
	delete(s.keys, account)
	delete(s.shares, account)
	if err := os.Remove(s.file("shares/" + account + ".conf")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setPassword runs smbpasswd. It reads the key from its input, so that no list of processes shows it.
func (s *samba) setPassword(ctx context.Context, a Account) error {
	path, err := programFile("smbpasswd")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, "-c", s.file("smb.conf"), "-L", "-s", "-a", a.Name)
	cmd.Env, cmd.Stdin = s.env(), strings.NewReader(a.Key+"\n"+a.Key+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("smbpasswd: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// sharesOf returns the file with the shares of an account, and writes the programs that tell their size.
func (s *samba) sharesOf(a Account) (string, error) {
	var text strings.Builder
	for _, share := range a.Shares {
		if share.Protocol != SMB {
			continue
		}
		fmt.Fprintf(&text, "[%s]\n  path = %s\n  read only = no\n  force user = root\n  force group = root\n"+
			"  create mask = 0777\n  directory mask = 0777\n", share.Name, share.Path)
		if share.QuotaGiB > 0 {
			file, err := s.writeSize(share)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "  dfree command = %s\n", file)
		}
	}
	return text.String(), nil
}

// writeSize writes the program that prints the size of a share and what is free, in KiB.
func (s *samba) writeSize(share Share) (string, error) {
	const kib = 1 << 20 // in a GiB
	file := s.file(fmt.Sprintf("size/%s-%d", strings.ReplaceAll(strings.Trim(share.Path, "/"), "/", "-"), share.QuotaGiB))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	return file, write(file, fmt.Sprintf(`#!/bin/sh
used=$(du -sk '%s' | cut -f1)
echo %d $(( %[2]d > used ? %[2]d - used : 0 )) 1024
`, share.Path, share.QuotaGiB*kib), 0o700)
}
