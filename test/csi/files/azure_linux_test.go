package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"time"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/file"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/localazure/providers"
	"kaz/internal/localazure/share"
	"kaz/internal/testkit/guest"
	"kaz/test/csi/driver"
)

// The ports of the host's Azure: that of Azure Resource Manager, and that of the API of file shares, with TLS.
const (
	managerPort = "80"
	filesPort   = "443"
)

// azure is a local Azure on the host. Its file shares are served to the guest.
type azure struct {
	manager *core.Emulator
	files   *file.Service
	servers *share.Server
	fixed   share.Account // beside those of the documents

	mu sync.Mutex
}

// serveAzure starts a local Azure with file shares over REST, SMB and NFS.
func serveAzure(ctx context.Context, h *guest.Host) error {
	servers, err := serveShares(ctx, h)
	if err != nil {
		return err
	}
	a := &azure{servers: servers}
	if a.fixed, err = fixedShares(filepath.Join(h.Dir, "content")); err != nil {
		return err
	}
	if a.manager, err = core.New(core.Options{Providers: providers.All()}); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	tokens, err := token.New(token.Config{Tenant: core.DefaultTenant, Key: key, World: a.manager.Look})
	if err != nil {
		return err
	}
	if a.files, err = file.Start(file.Config{Tokens: tokens, Azure: a.manager, Dir: filepath.Join(h.Dir, "azure")}); err != nil {
		return err
	}
	h.AtEnd(a.files.Close)
	plain, err := listen(managerPort, http.HandlerFunc(a.manage))
	if err != nil {
		return err
	}
	plain.Start()
	h.AtEnd(func() error { plain.Close(); return nil })
	secure, err := listen(filesPort, a.files)
	if err != nil {
		return err
	}
	secure.StartTLS()
	h.AtEnd(func() error { secure.Close(); return nil })
	return a.serve(ctx)
}

func listen(port string, handler http.Handler) (*httptest.Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(guest.HostAddress, port))
	if err != nil {
		return nil, err
	}
	quiet := log.New(&bytes.Buffer{}, "", 0) // clients that end with the guest are no news
	return &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}}, nil
}

// manage answers a request to Azure Resource Manager. The answer to a change is sent when its shares are served.
func (a *azure) manage(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		a.manager.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	a.manager.ServeHTTP(answer, r)
	if err := a.serve(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may have ended
}

// serve serves the shares of all accounts.
func (a *azure) serve(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	accounts := []share.Account{a.fixed}
	for _, one := range a.files.Accounts() {
		account := share.Account{Name: one.Name, Key: one.Keys[0]}
		for _, s := range one.Shares {
			protocol := share.SMB
			if s.NFS {
				protocol = share.NFS
			}
			if err := driver.Exists(ctx, s.Path); err != nil {
				return err
			}
			account.Shares = append(account.Shares, share.Share{
				Name: s.Name, Path: s.Path, Protocol: protocol, Squash: share.Squash(s.RootSquash), QuotaGiB: s.QuotaGiB,
			})
		}
		accounts = append(accounts, account)
	}
	return a.servers.Set(ctx, accounts)
}
