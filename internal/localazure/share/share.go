// Package share serves file shares as Azure Files does. Samba serves SMB, and the name of a storage account logs in with a
// key of the account. The server nfs-ganesha serves NFS 4.1, at /ACCOUNT/SHARE. Layer L4.
//
// Each account has its own names of shares. Shares, keys and quotas change while clients are connected. Both servers run as
// child processes, with configuration and state in their own directory. They use no file of a Samba that the machine runs
// itself.
package share

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kaz/internal/host/process"
)

// Config is the configuration of a [Server]. Dir, Processes and an address are required.
type Config struct {
	// Dir is the directory of the servers' configuration and state. Samba has sockets there, so its path is at most 75 bytes long.
	Dir string
	// SMB and NFS are the IP:PORT to serve at, "" for not serving the protocol.
	SMB, NFS string
	// NFS40 also allows NFS 4.0, which Azure does not have, for clients without 4.1, such as clients with libnfs.
	NFS40 bool
	// Processes runs the servers. They end with the group.
	Processes *process.Group
	// Log receives changes. Nil is slog.Default.
	Log *slog.Logger
}

// Account is a storage account with its shares.
type Account struct {
	Name string
	// Key is the password of the account for SMB.
	Key    string
	Shares []Share
}

// Protocol is the protocol of a share.
type Protocol string

// The protocols of shares.
const (
	SMB Protocol = "SMB"
	NFS Protocol = "NFS"
)

// Squash says which users of NFS clients are replaced by an anonymous user.
type Squash string

// The values of a share's rootSquash.
const (
	NoRootSquash Squash = "NoRootSquash"
	RootSquash   Squash = "RootSquash"
	AllSquash    Squash = "AllSquash"
)

// Share is a file share.
type Share struct {
	Name string
	// Path is the directory with the content.
	Path     string
	Protocol Protocol
	Squash   Squash // of NFS, NoRootSquash if empty
	// QuotaGiB is the size that SMB clients are shown. The servers do not enforce it.
	QuotaGiB int
}

// Server is a running Samba, a running ganesha, or both. It is safe for concurrent use.
type Server struct {
	mu       sync.Mutex
	backends []backend
	log      *slog.Logger
}

// backend is the server of one protocol.
type backend interface {
	// set makes the shares of the protocol equal to the shares of the accounts.
	set(ctx context.Context, accounts []Account) error
}

// LongestDir keeps the paths of Samba's sockets below the kernel's limit of 107 bytes.
const LongestDir = 75

// Start starts the servers without shares. They serve when Start returns.
func Start(ctx context.Context, c Config) (*Server, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	if len(c.Dir) > LongestDir || !filepath.IsAbs(c.Dir) {
		return nil, fmt.Errorf("directory of share servers %q: want an absolute path of at most %d bytes", c.Dir, LongestDir)
	}
	s := &Server{log: c.Log}
	if s.log == nil {
		s.log = slog.Default()
	}
	if c.SMB != "" {
		b, err := startSamba(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("SMB server: %w", err)
		}
		s.backends = append(s.backends, b)
	}
	if c.NFS != "" {
		b, err := startGanesha(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("NFS server: %w", err)
		}
		s.backends = append(s.backends, b)
	}
	return s, nil
}

// Set makes the accounts and shares that are served those given. When it returns, clients that connect find them, and keys that are
// not given are refused. Clients that are connected keep their sessions.
func (s *Server) Set(ctx context.Context, accounts []Account) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := check(accounts); err != nil {
		return err
	}
	for _, b := range s.backends {
		if err := b.set(ctx, accounts); err != nil {
			return err
		}
	}
	return nil
}

// startTime bounds the start of a server.
const startTime = 15 * time.Second

// await waits until the address accepts connections.
func await(ctx context.Context, p *process.Process, address string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var dialer net.Dialer
	for {
		c, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended before it served at %s: %w", p.Name(), address, p.Err())
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve at %s after %v: %w; its log is %s", p.Name(), address, startTime, err, p.LogFile())
		case <-tick.C:
		}
	}
}

// pollInterval is the time between looks at what only polling shows.
const pollInterval = 10 * time.Millisecond

// write replaces a file at once.
func write(file, text string, mode os.FileMode) error {
	if err := os.WriteFile(file+".new", []byte(text), mode); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
