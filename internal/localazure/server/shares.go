package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kaz/internal/host/freeport"
	"kaz/internal/host/process"
	"kaz/internal/localazure/plane/file"
	"kaz/internal/localazure/share"
)

// shareAddresses are the flags of the addresses of share servers.
func (o *Options) shareAddresses() []address {
	var all []address
	for _, a := range []address{{"--smb-address", o.SMBAddress}, {"--nfs-address", o.NFSAddress}} {
		if a.text != "" {
			all = append(all, a)
		}
	}
	return all
}

// checkShares validates the options of share servers.
func (o *Options) checkShares() error {
	var problems []error
	for _, a := range o.shareAddresses() {
		problems = append(problems, a.check())
		if err := share.Check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", a.flag, err))
		}
	}
	return errors.Join(problems...)
}

// shareGrace is the time that share servers get to end.
const shareGrace = 5 * time.Second

// startShares starts the share servers that the options ask for, and keeps them as the documents are.
func (a *Server) startShares(ctx context.Context, o Options) error {
	if len(o.shareAddresses()) == 0 {
		return nil
	}
	dir, err := a.sharesDir(o)
	if err != nil {
		return err
	}
	for _, text := range []*string{&o.SMBAddress, &o.NFSAddress} {
		if strings.HasSuffix(*text, ":0") { // the servers need a number
			chosen, err := freeport.Choose(*text)
			if err != nil {
				return err
			}
			*text = chosen[0]
		}
	}
	group, err := process.Open(ctx, dir)
	if err != nil {
		return err
	}
	a.closers.add(func() error { group.Close(context.Background(), shareGrace); return nil })
	server, err := share.Start(ctx, share.Config{Dir: dir, SMB: o.SMBAddress, NFS: o.NFSAddress, Processes: group, Log: a.log})
	if err != nil {
		return err
	}
	a.info.SMB, a.info.NFS = o.SMBAddress, o.NFSAddress
	a.tasks.Go(func() { a.watchShares(group) })
	a.files.Follow(func(accounts []file.Account) {
		if err := server.Set(context.Background(), shareAccounts(accounts)); err != nil {
			a.log.Error("file shares are not served as Azure describes them", "error", err)
		}
	})
	a.closers.add(func() error { a.files.Follow(nil); return nil })
	return nil
}

// watchShares reports servers that end. The local Azure goes on without them.
func (a *Server) watchShares(group *process.Group) {
	for {
		select {
		case p := <-group.Failed():
			a.log.Error("share server ended", "server", p.Name(), "error", p.Err())
		case <-a.closing:
			return
		}
	}
}

// sharesDir returns the directory of the share servers, which is beside the state. Without a state, or if the path is too
// long for Samba's sockets, it creates a temporary directory. Close removes it.
func (a *Server) sharesDir(o Options) (string, error) {
	if o.State != "" {
		dir, err := filepath.Abs(strings.TrimSuffix(o.State, filepath.Ext(o.State)) + "-shares")
		if err != nil || len(dir) <= share.LongestDir {
			return dir, err
		}
	}
	dir, err := os.MkdirTemp("", "kaz-shares-")
	if err == nil {
		a.closers.add(func() error { return os.RemoveAll(dir) })
	}
	return dir, err
}

// shareAccounts are the accounts as the servers of SMB and NFS have them. Samba knows one password of a user, which is the first key.
// As in Azure, an account that allows encrypted connections only has no NFS, which is not encrypted.
func shareAccounts(accounts []file.Account) []share.Account {
	var all []share.Account
	for _, a := range accounts {
		one := share.Account{Name: a.Name, Key: a.Keys[0]}
		for _, s := range a.Shares {
			served := share.Share{Name: s.Name, Path: s.Path, Protocol: share.SMB, QuotaGiB: s.QuotaGiB}
			if s.NFS {
				served.Protocol, served.Squash = share.NFS, share.Squash(s.RootSquash)
			}
			if s.NFS && !a.OnlyEncrypted || !s.NFS && a.SharedKeys {
				one.Shares = append(one.Shares, served)
			}
		}
		if len(one.Shares) > 0 {
			all = append(all, one)
		}
	}
	return all
}
