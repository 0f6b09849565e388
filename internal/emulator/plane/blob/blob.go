// Package blob is the data plane of blob storage in the local Azure. Clients with a token of Entra ID make and delete containers,
// write, read, list and delete whole block blobs, on conditions, and lease both. Layer L2.
//
// It keeps blobs in memory, and in files if it has a directory. Containers are documents of Microsoft.Storage, so that Azure Resource
// Manager shows the same containers and leases. Ranges, blocks, versions, shared keys and signatures are absent.
package blob

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/cloud"
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

	mu      sync.Mutex
	blobs   map[string]stored // by the key of the container and the name
	written uint64
}

// Answers reports whether a host is that of the blobs of an account.
func (s *Service) Answers(host string) bool { return account(host) != "" }

func account(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
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
	caller  *behaviour.Principal
	// blob is the name of the blob, "" for the container.
	blob string
	// container is the document of the container, now the time of the request. Both are set when the caller is allowed.
	container azure.ID
	now       time.Time
}

// operation is what a request can do.
type operation struct {
	// action is the last part of the right that the operation needs, after that of containers. It is a data action if data is set.
	action string
	data   bool
	// creates says that the container need not exist.
	creates bool
	do      func(c *call) error
}

// operations are the operations by method, by what the path names, and by the parameter comp.
var operations = map[string]operation{
	"GET container list":  {action: "blobs/read", data: true, do: (*call).list},
	"GET container":       {action: "read", do: (*call).properties},
	"HEAD container":      {action: "read", do: (*call).properties},
	"PUT container":       {action: "write", creates: true, do: (*call).createContainer},
	"DELETE container":    {action: "delete", do: (*call).deleteContainer},
	"PUT container lease": {action: "write", do: (*call).leaseContainer},
	"GET blob":            {action: "blobs/read", data: true, do: (*call).get},
	"HEAD blob":           {action: "blobs/read", data: true, do: (*call).get},
	"PUT blob":            {action: "blobs/write", data: true, do: (*call).put},
	"DELETE blob":         {action: "blobs/delete", data: true, do: (*call).delete},
	"PUT blob lease":      {action: "blobs/write", data: true, do: (*call).leaseBlob},
}

// storageAudience is the audience of tokens for all accounts.
const storageAudience = "https://storage.azure.com"

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	own := "https://" + strings.ToLower(r.Host)
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	caller, err := s.Authenticate(token, storageAudience, storageAudience+"/", own, own+"/")
	if err != nil {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer authorization_uri=%s resource_id=%s", s.Authority, storageAudience))
		fail(w, refuse(http.StatusUnauthorized, "InvalidAuthenticationInfo", "Server failed to authenticate the request: %v", err))
		return
	}
	c := &call{service: s, w: w, r: r, query: r.URL.Query(), caller: caller}
	if err := c.serve(); err != nil {
		fail(w, err)
	}
}

func (c *call) serve() error {
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
	return o.do(c)
}

// allow finds the container, and returns why the caller may not use it.
func (c *call) allow(o operation, account, container string) error {
	err := error(refuse(http.StatusNotFound, "ResourceNotFound", "The specified account does not exist."))
	c.service.Azure.Look(func(w behaviour.World) {
		c.now = w.Now()
		for id := range behaviour.Everywhere(w, "Microsoft.Storage/storageAccounts") {
			if strings.EqualFold(id.Name(), account) {
				c.container = id.Child("blobServices", "default").Child("containers", container)
				err = c.check(w, o)
			}
		}
	})
	return err
}

func (c *call) check(w behaviour.World, o operation) error {
	allowed := w.Allowed
	if o.data {
		allowed = w.AllowedData
	}
	if !allowed(c.caller, "Microsoft.Storage/storageAccounts/blobServices/containers/"+o.action, c.container) {
		return refuse(http.StatusForbidden, "AuthorizationPermissionMismatch",
			"This request is not authorized to perform this operation using this permission.")
	}
	if _, there := w.Get(c.container); !there && !o.creates {
		return noContainer()
	}
	return nil
}

// key is the key of the blob among those of all accounts.
func (c *call) key() string { return c.container.Key() + "/" + c.blob }
