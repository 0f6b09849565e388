// Package file is the data plane of Azure Files in the local Azure: the REST API of shares, directories and files at
// https://ACCOUNT.file.core.windows.net. Layer L2.
//
// Shares are documents of Microsoft.Storage, so that this API and Azure Resource Manager show the same. Their content is directories,
// which a server of SMB or NFS can serve too.
package file

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/cloud"
	"kaz/internal/localazure/plane/file/content"
	"kaz/internal/localazure/plane/token"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Do(f func(w behaviour.World) error) error
	Subscribe() func(ctx context.Context, f func([]core.Change))
}

// Config is the configuration of a [Service]. All fields but Log are required.
type Config struct {
	// Tokens checks tokens of Entra ID.
	Tokens *token.Service
	Azure  Azure
	// Dir is the directory of the content.
	Dir string
	// Log receives internal errors. Nil is slog.Default.
	Log *slog.Logger
}

// Service serves the file services of all accounts. It is safe for concurrent use.
type Service struct {
	Config
	content *content.Store
	copies  copies

	stop context.CancelFunc
	done sync.WaitGroup

	// directories is held from the look at documents to the end of the changes of directories that follow from it. A directory that a
	// request has just created is not removed by a look from before.
	directories sync.Mutex

	following sync.Mutex
	changed   func([]Account) // called after changes of accounts and shares; nil for nothing

	mu   sync.Mutex
	used map[string]used // by name of the content
}

// localSuffix is the storage domain for clients that use the address of this local Azure. Its names resolve to this machine only.
const localSuffix = "core.localhost"

// Start starts a service, which follows the changes of shares until Close.
func Start(c Config) (*Service, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	store, err := content.Open(c.Dir)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{Config: c, content: store, copies: copies{running: map[string]*copyJob{}}, stop: stop, used: map[string]used{}}
	if err := c.Azure.Do(func(w behaviour.World) error { storage.NameContents(w); return nil }); err != nil {
		stop()
		return nil, err
	}
	changes := c.Azure.Subscribe() // before the first look
	s.refresh(ctx)
	s.done.Go(func() { changes(ctx, func(all []core.Change) { s.apply(ctx, all) }) })
	return s, nil
}

// Close ends the copies that run. The content stays.
func (s *Service) Close() error {
	s.stop()
	s.done.Wait()
	s.copies.close()
	return nil
}

// Answers reports whether a host, with or without a port, belongs to a file service.
func (s *Service) Answers(host string) bool { return accountOf(host) != "" }

// accountOf returns the account in the host of a file service, also behind a private endpoint.
func accountOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	suffixes := []string{localSuffix}
	for _, c := range cloud.Clouds() {
		suffixes = append(suffixes, c.Storage)
	}
	for _, suffix := range suffixes {
		if account, ok := strings.CutSuffix(host, ".file."+suffix); ok {
			account = strings.TrimSuffix(account, ".privatelink")
			if !strings.Contains(account, ".") {
				return account
			}
		}
	}
	return ""
}

// account is the part of an account's document that this package needs.
type account struct {
	id         azure.ID
	name       string
	keys       [2]string
	sharedKeys bool // requests may be signed with a key
	onlyHTTPS  bool
}

// find returns the account with a name.
func (s *Service) find(name string) (found account, ok bool) {
	s.Azure.Look(func(w behaviour.World) {
		for id, doc := range behaviour.Everywhere(w, storage.AccountType) {
			if strings.EqualFold(id.Name(), name) && behaviour.Text(doc, "properties.primaryEndpoints.file") != "" {
				found, ok = readAccount(id, doc), true
			}
		}
	})
	return found, ok
}

func readAccount(id azure.ID, doc behaviour.Object) account {
	return account{id: id, name: strings.ToLower(id.Name()), keys: storage.Keys(doc),
		sharedKeys: behaviour.At(doc, "properties.allowSharedKeyAccess") != false,
		onlyHTTPS:  behaviour.Bool(doc, "properties.supportsHttpsTrafficOnly")}
}

func (a account) service() azure.ID { return a.id.Child("fileServices", "default") }

func (a account) share(name string) azure.ID { return a.service().Child("shares", name) }

// ServeHTTP implements http.Handler for hosts that [Service.Answers].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{service: s, r: r, query: r.URL.Query(), response: response{s.Log, w, newGUID()}}
	c.begin(r)
	if err := c.serve(); err != nil {
		c.fail(r, err)
	}
}

// try logs an error of something that no request waits for.
func (s *Service) try(what string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.Log.Error("file shares of the local azure", "action", what, "error", err)
	}
}

// apply follows changes of documents.
func (s *Service) apply(ctx context.Context, changes []core.Change) {
	for _, c := range changes {
		if c.ID.Is(storage.AccountType) || c.ID.Is(storage.AccountType+"/fileServices") || c.ID.Is(storage.ShareType) {
			s.refresh(ctx)
			return
		}
	}
}

// refresh makes the directories equal to the documents, and reports the accounts.
func (s *Service) refresh(ctx context.Context) {
	var keep map[string]bool
	s.following.Lock()
	defer s.following.Unlock()
	s.directories.Lock()
	accounts := s.Accounts()
	s.Azure.Look(func(w behaviour.World) { keep = storage.Contents(w) })
	for _, a := range accounts {
		for _, share := range a.Shares {
			s.try("create the directory of a share", s.content.Ensure(ctx, share.content, share.snapshots))
		}
	}
	s.try("remove the directories of deleted shares", s.content.Sweep(keep))
	s.directories.Unlock()
	if s.changed != nil {
		s.changed(accounts)
	}
}

// Account is an account with a file service, for servers of other protocols.
type Account struct {
	Name string
	Keys [2]string
	// SharedKeys says that clients may log in with a key, OnlyEncrypted that connections must be encrypted.
	SharedKeys, OnlyEncrypted bool
	Shares                    []Share
}

// Share is a share of an [Account].
type Share struct {
	Name, Path string
	NFS        bool
	RootSquash string
	QuotaGiB   int
	content    string
	snapshots  []time.Time
}

// Accounts returns the accounts with their shares.
func (s *Service) Accounts() []Account {
	var all []Account
	s.Azure.Look(func(w behaviour.World) {
		for id, doc := range behaviour.Everywhere(w, storage.AccountType) {
			a := readAccount(id, doc)
			one := Account{Name: a.name, Keys: a.keys, SharedKeys: a.sharedKeys, OnlyEncrypted: a.onlyHTTPS}
			for _, share := range w.List(a.service(), storage.ShareType) {
				one.Shares = append(one.Shares, s.describe(share))
			}
			all = append(all, one)
		}
	})
	return all
}

func (s *Service) describe(doc behaviour.Object) Share {
	quota, _ := behaviour.Int(doc, "properties.shareQuota")
	share := Share{Name: behaviour.Text(doc, "name"), NFS: behaviour.Text(doc, "properties.enabledProtocols") == "NFS",
		RootSquash: behaviour.Text(doc, "properties.rootSquash"), QuotaGiB: quota, content: storage.Content(doc)}
	share.Path = s.content.Path(share.content, time.Time{})
	for _, snapshot := range storage.Snapshots(doc) {
		share.snapshots = append(share.snapshots, snapshot.Time)
	}
	return share
}

// Follow calls f with the accounts now and after each change, until Close or Follow(nil). There is one follower.
func (s *Service) Follow(f func([]Account)) {
	s.following.Lock()
	defer s.following.Unlock()
	if s.changed = f; f != nil {
		f(s.Accounts())
	}
}

// reserve reports whether a share has space for some bytes. It looks at the files only when it has not for a while, or when little is
// left.
func (s *Service) reserve(name string, length, quota int64) (bool, error) {
	const fresh = 2 * time.Second
	s.mu.Lock()
	last := s.used[name]
	s.mu.Unlock()
	if time.Since(last.at) > fresh || last.bytes+length > quota {
		bytes, err := s.content.Usage(name)
		if err != nil {
			return false, err
		}
		last = used{bytes, time.Now()}
	}
	last.bytes += length
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[name] = last
	return last.bytes <= quota, nil
}

// used is the space that a share had at a time.
type used struct {
	bytes int64
	at    time.Time
}
