package server

import (
	"os"
	"path/filepath"
	"strings"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob"
	"kaz/internal/localazure/plane/file"
	"kaz/internal/localazure/plane/queue"
	"kaz/internal/localazure/plane/table"
)

// openFiles opens the file shares. Their content is beside the state, or in a temporary directory that Close removes.
func (a *Server) openFiles(o Options) error {
	dir := strings.TrimSuffix(o.State, filepath.Ext(o.State)) + "-files"
	if o.State == "" {
		var err error
		if dir, err = os.MkdirTemp("", "kaz-files-"); err != nil {
			return err
		}
		a.closers.add(func() error { return os.RemoveAll(dir) })
	}
	var err error
	if a.files, err = file.Start(file.Config{Tokens: a.tokens, Azure: a.emulator, Dir: dir, Log: a.log}); err != nil {
		return err
	}
	a.closers.add(a.files.Close)
	return nil
}

// openBlobs opens the blobs. Their content is beside the state, or in memory without one.
func (a *Server) openBlobs(o Options) error {
	a.blobs = &blob.Service{Authenticate: a.tokens.AuthenticateFor, Azure: a.emulator, Authority: a.login(), Console: a.openConsole}
	if o.State == "" {
		return nil
	}
	return a.blobs.Load(strings.TrimSuffix(o.State, filepath.Ext(o.State))+"-blobs", a.log)
}

// openTables opens the tables. Their entities are beside the state, or in memory without one.
func (a *Server) openTables(o Options) error {
	a.tables = &table.Service{Azure: a.emulator, Tokens: account.Tokens{Authenticate: a.tokens.AuthenticateFor, Authority: a.login()}}
	if o.State == "" {
		return nil
	}
	if err := a.tables.Open(strings.TrimSuffix(o.State, filepath.Ext(o.State))+"-tables.jsonl", a.log); err != nil {
		return err
	}
	a.closers.add(a.tables.Close)
	return nil
}

// openQueues opens the queues. Their messages are beside the state, or in memory without one.
func (a *Server) openQueues(o Options) error {
	a.queues = &queue.Service{Tokens: account.Tokens{Authenticate: a.tokens.AuthenticateFor, Authority: a.login()}, Azure: a.emulator}
	if o.State == "" {
		return nil
	}
	a.closers.add(a.queues.Close)
	return a.queues.Load(strings.TrimSuffix(o.State, filepath.Ext(o.State))+"-queues", a.log)
}

// Files returns the data plane of file shares.
func (a *Server) Files() *file.Service { return a.files }
