// Package blob is the data plane of blob storage in the local Azure. Clients make, list and delete containers, write, read, list, copy
// and delete block blobs and append blobs, on conditions, and lease both. They have a token of Entra ID, a key of the account, or a shared
// access signature. Layer L2.
//
// It keeps blobs in memory, and in files if it has a directory. Containers are documents of Microsoft.Storage, so that Azure Resource
// Manager shows the same containers and leases. The consoles of machines are blobs, too. Page blobs and versions are absent.
package blob

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
	"kaz/internal/localazure/plane/sharedkey"
)

// Service serves the blobs of all storage accounts.
type Service struct {
	// Authenticate checks a token of Entra ID for one of the audiences.
	Authenticate func(token string, audiences ...string) (*behaviour.Principal, error)
	// Azure has the storage accounts and the role assignments.
	Azure account.Azure
	// Authority is the address of the login, as refusals name it.
	Authority string
	// Console opens what the console of a machine has shown, fs.ErrNotExist for nothing. It is nil if no machine runs.
	Console func(machine azure.ID) (io.ReadCloser, error)

	kept kept.Store
}

// Load has the service keep blobs in a directory, and reads those that it has. The log receives what is set aside.
func (s *Service) Load(dir string, log *slog.Logger) error {
	s.kept.Dir, s.kept.Log = dir, log
	return s.kept.Load()
}

// Answers reports whether a host serves the blobs of an account.
func (s *Service) Answers(host string) bool { return accountOf(host) != "" }

// accountOf returns the account in a host, "" for another host. It can be one in which Azure keeps consoles of machines.
func accountOf(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	if name, ok := strings.CutSuffix(host, "."+vm.ManagedStorage); ok {
		name, _, _ = strings.Cut(name, ".")
		return name
	}
	return account.Of(host, "blob")
}

// call is a request.
type call struct {
	service *Service
	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	// again serves a request that is part of this one.
	again http.HandlerFunc
	// caller is the principal that has sent a token, nil for a signature of any kind.
	caller *behaviour.Principal
	// byKey says that the request is signed with a key of the account, trusted that another request answers for it.
	byKey, trusted bool
	// onlyNew says that the request has the right to make blobs, and none to replace them.
	onlyNew bool
	// blob is the name of the blob, "" for the container. snapshot is the time of its snapshot, "" for the blob itself.
	blob, snapshot string
	// container is the id of the container, or of the service of the account. It is set when the caller is allowed, like now, the time
	// of the request.
	container azure.ID
	now       time.Time
	// made is when the container was made.
	made string
	// secondary says that the request was sent to the other region of the account.
	secondary bool
	// machine is the machine that has its console in the container, "" for none.
	machine azure.ID
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("x-ms-version", r.Header.Get("x-ms-version"))
	header.Set(account.RequestID, uuid.NewString())
	if id := r.Header.Get("x-ms-client-request-id"); id != "" {
		header.Set("x-ms-client-request-id", id)
	}
	if account.Share(w, r, s.Azure, accountOf(r.Host), "blobServices") {
		return
	}
	c := &call{service: s, w: w, r: r, query: r.URL.Query(), again: s.ServeHTTP}
	if err := c.serve(); err != nil {
		account.Fail(w, r, err)
	}
}

func (c *call) serve() error {
	o, err := c.begin(c.operation)
	if err != nil {
		return err
	}
	if c.machine != "" {
		return c.console()
	}
	return o.do(c)
}

// begin returns what the request does, once it is allowed. The function chooses that by the name of the container, "" for none.
func (c *call) begin(choose func(container string) (operation, error)) (operation, error) {
	if c.query.Get("sig") == "" && !sharedkey.Signed(c.r) && !c.trusted {
		var err error
		tokens := account.Tokens{Authenticate: c.service.Authenticate, Authority: c.service.Authority}
		if c.caller, err = tokens.Caller(c.w, c.r); err != nil {
			return operation{}, err
		}
	}
	if !utf8.ValidString(c.r.URL.Path) || strings.Contains(c.r.URL.Path, "\x00") {
		return operation{}, refuse(http.StatusBadRequest, "InvalidUri",
			"The requested URI does not represent any resource on the server: the path %q is not UTF-8 without zeros.", c.r.URL.Path)
	}
	if err := storage.CheckMetadata(c.r.Header); err != nil {
		return operation{}, err
	}
	container, name, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, "/"), "/")
	c.blob, c.snapshot = name, c.query.Get("snapshot")
	o, err := choose(container)
	if err != nil {
		return o, err
	}
	return o, c.allow(o, accountOf(c.r.Host), container)
}

// key is the key of the blob among the blobs of all accounts.
func (c *call) key() string {
	return c.container.Key() + "/" + kept.Version{Name: c.blob, Snapshot: c.snapshot}.String()
}
