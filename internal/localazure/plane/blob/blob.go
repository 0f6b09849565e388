// Package blob is the data plane of blob storage in the local Azure. Clients make and delete containers, write, read, list and delete
// whole block blobs, on conditions, and lease both. They have a token of Entra ID or a shared access signature. Layer L2.
//
// It keeps blobs in memory, and in files if it has a directory. Containers are documents of Microsoft.Storage, so that Azure Resource
// Manager shows the same containers and leases. The consoles of machines are blobs, too. Ranges, blocks, versions and Shared Key are
// absent.
package blob

import (
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/cloud"
	"kaz/internal/localazure/plane/sharedkey"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Do(f func(w behaviour.World) error) error
}

// Service serves the blobs of all storage accounts.
type Service struct {
	// Authenticate checks a token of Entra ID for one of the audiences.
	Authenticate func(token string, audiences ...string) (*behaviour.Principal, error)
	// Azure has the storage accounts and the role assignments.
	Azure Azure
	// Authority is the address of the login, as refusals name it.
	Authority string
	// Dir has a file for each blob, which [Service.Load] reads. Without it blobs are in memory only.
	Dir string
	// Log receives what Load sets aside. Nil is slog.Default.
	Log *slog.Logger
	// Console opens what the console of a machine has shown, fs.ErrNotExist for nothing. It is nil if no machine runs.
	Console func(machine azure.ID) (io.ReadCloser, error)

	mu      sync.Mutex
	blobs   map[string]stored // by the key of the container and the name
	size    int64             // of the content of all blobs, in bytes
	made    map[string]string // when the containers with known blobs were made, by their keys
	written uint64
}

// Answers reports whether a host serves the blobs of an account.
func (s *Service) Answers(host string) bool { return account(host) != "" }

// account returns the account in a host, "" for another host. It can be one in which Azure keeps consoles of machines.
func account(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	if name, ok := strings.CutSuffix(host, "."+vm.ManagedStorage); ok {
		name, _, _ = strings.Cut(name, ".")
		return name
	}
	for _, c := range cloud.Clouds() {
		if name, ok := strings.CutSuffix(host, ".blob."+c.Storage); ok {
			return name
		}
	}
	return ""
}

// call is a request.
type call struct {
	service *Service
	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	// caller is the principal that has sent a token, nil for a signature of any kind.
	caller *behaviour.Principal
	// blob is the name of the blob, "" for the container.
	blob string
	// container is the document of the container, now the time of the request. Both are set when the caller is allowed.
	container azure.ID
	now       time.Time
	// made is when the container was made.
	made string
	// machine is the machine that has its console in the container, "" for none.
	machine azure.ID
}

// operation is what a request can do.
type operation struct {
	// action is the last part of the right that the operation needs, after the right of containers. It is a data action if data is set.
	action string
	data   bool
	// signed are letters of a signature. The operation needs one of them.
	signed string
	// creates says that the container need not exist.
	creates bool
	do      func(c *call) error
}

// operations are the operations by method, by what the path names, and by the parameter comp.
var operations = map[string]operation{
	"GET container list":  {action: "blobs/read", data: true, signed: "l", do: (*call).list},
	"GET container":       {action: "read", signed: "r", do: (*call).properties},
	"HEAD container":      {action: "read", signed: "r", do: (*call).properties},
	"PUT container":       {action: "write", signed: "cw", creates: true, do: (*call).createContainer},
	"DELETE container":    {action: "delete", signed: "d", do: (*call).deleteContainer},
	"PUT container lease": {action: "write", signed: "w", do: (*call).leaseContainer},
	"GET blob":            {action: "blobs/read", data: true, signed: "r", do: (*call).get},
	"HEAD blob":           {action: "blobs/read", data: true, signed: "r", do: (*call).get},
	"PUT blob":            {action: "blobs/write", data: true, signed: "w", do: (*call).put},
	"DELETE blob":         {action: "blobs/delete", data: true, signed: "d", do: (*call).delete},
	"PUT blob lease":      {action: "blobs/write", data: true, signed: "w", do: (*call).leaseBlob},
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	c := &call{service: s, w: w, r: r, query: r.URL.Query()}
	if err := c.serve(); err != nil {
		fail(w, err)
	}
}

func (c *call) serve() error {
	if c.query.Get("sig") == "" && !sharedkey.Signed(c.r) {
		if err := c.authenticate(); err != nil {
			return err
		}
	}
	if !utf8.ValidString(c.r.URL.Path) {
		return refuse(http.StatusBadRequest, "InvalidUri",
			"The requested URI does not represent any resource on the server: the path %q is not UTF-8.", c.r.URL.Path)
	}
	if err := storage.CheckMetadata(c.r.Header); err != nil {
		return err
	}
	container, name, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, "/"), "/")
	c.blob = name
	target := "blob"
	if name == "" && c.query.Get("restype") == "container" {
		target = "container"
	}
	o, known := operations[strings.TrimSpace(c.r.Method+" "+target+" "+c.query.Get("comp"))]
	if !known || container == "" || target == "blob" && name == "" {
		return refuse(http.StatusNotImplemented, "NotImplemented",
			"The local Azure serves GET, HEAD, PUT and DELETE of containers and whole blobs, their leases, and lists of a container.")
	}
	if err := c.allow(o, account(c.r.Host), container); err != nil {
		return err
	}
	if c.machine != "" {
		return c.console()
	}
	return o.do(c)
}

// key is the key of the blob among the blobs of all accounts.
func (c *call) key() string { return c.container.Key() + "/" + c.blob }
