// Package blob is the data plane of blob storage in the local Azure. Clients with a token of Entra ID write, read, list and
// delete whole block blobs, on conditions. Layer L2.
//
// It keeps blobs in memory. Leases, ranges, blocks, versions, shared keys and signatures are absent.
package blob

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/cloud"
)

// Service serves the blobs of all storage accounts.
type Service struct {
	// Authenticate checks a token of Entra ID for one of the audiences.
	Authenticate func(token string, audiences ...string) (*behaviour.Principal, error)
	// World gives access to the storage accounts and the role assignments.
	World func(func(w behaviour.World))
	// Authority is the address of the login, as refusals name it.
	Authority string

	mu      sync.Mutex
	blobs   map[string]stored // by the key of the container and the name
	written uint64
}

// stored is a blob.
type stored struct {
	content  []byte
	kind     string // Content-Type
	etag     string
	modified time.Time
	metadata map[string]string // by header
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
		fail(w, http.StatusUnauthorized, "InvalidAuthenticationInfo", "Server failed to authenticate the request: "+err.Error())
		return
	}
	container, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	query := r.URL.Query()
	if r.Method == http.MethodGet && name == "" && query.Get("restype") == "container" && query.Get("comp") == "list" {
		s.list(w, r, caller, container)
		return
	}
	actions := map[string]string{http.MethodGet: "read", http.MethodHead: "read", http.MethodPut: "write", http.MethodDelete: "delete"}
	action := actions[r.Method]
	if !ok || name == "" || action == "" || query.Get("comp") != "" {
		fail(w, http.StatusNotImplemented, "NotImplemented",
			"The local Azure serves GET, HEAD, PUT and DELETE of whole blobs, and lists of a container.")
		return
	}
	key, refusal := s.allowed(caller, account(r.Host), container, action)
	if refusal != nil {
		fail(w, refusal.status, refusal.code, refusal.message)
		return
	}
	s.serve(w, r, key+"/"+name)
}

type refusal struct {
	status        int
	code, message string
}

// allowed returns the key of a container, or why the caller may not use it.
func (s *Service) allowed(caller *behaviour.Principal, name, container, action string) (key string, refused *refusal) {
	refused = &refusal{http.StatusNotFound, "ResourceNotFound", "The specified account does not exist."}
	s.World(func(w behaviour.World) {
		for id := range behaviour.Everywhere(w, "Microsoft.Storage/storageAccounts") {
			if strings.EqualFold(id.Name(), name) {
				key, refused = check(w, caller, id.Child("blobServices", "default").Child("containers", container), action)
			}
		}
	})
	return key, refused
}

func check(w behaviour.World, caller *behaviour.Principal, container azure.ID, action string) (string, *refusal) {
	if !w.AllowedData(caller, "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/"+action, container) {
		return "", &refusal{http.StatusForbidden, "AuthorizationPermissionMismatch",
			"This request is not authorized to perform this operation using this permission."}
	}
	if _, there := w.Get(container); !there {
		return "", &refusal{http.StatusNotFound, "ContainerNotFound", "The specified container does not exist."}
	}
	return container.Key(), nil
}

// serve answers a request for the blob with a key.
func (s *Service) serve(w http.ResponseWriter, r *http.Request, key string) {
	var content []byte
	if r.Method == http.MethodPut {
		const most = 256 << 20
		var err error
		if content, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most)); err != nil {
			fail(w, http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", err.Error())
			return
		}
		if kind := r.Header.Get("x-ms-blob-type"); kind != "BlockBlob" {
			fail(w, http.StatusBadRequest, "InvalidHeaderValue", fmt.Sprintf("x-ms-blob-type %q: the local Azure has BlockBlob", kind))
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	had, there := s.blobs[key]
	if refused := conditions(r, had, there); refused != nil {
		fail(w, refused.status, refused.code, refused.message)
		return
	}
	switch r.Method {
	case http.MethodPut:
		s.put(w, r, key, content)
	case http.MethodDelete:
		delete(s.blobs, key)
		w.WriteHeader(http.StatusAccepted)
	default:
		had.write(w, r.Method == http.MethodGet)
	}
}

// conditions returns why a request must not be carried out on the blob as it is.
func conditions(r *http.Request, had stored, there bool) *refusal {
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	same := there && none != "" && none == had.etag
	write := r.Method == http.MethodPut
	switch {
	case write && there && none == "*":
		return &refusal{http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists."}
	case same && r.Method == http.MethodGet:
		return &refusal{http.StatusNotModified, "ConditionNotMet", ""}
	case same || !matches(match, had, there):
		return &refusal{http.StatusPreconditionFailed, "ConditionNotMet",
			"The condition specified using HTTP conditional header(s) is not met."}
	case !there && !write:
		return &refusal{http.StatusNotFound, "BlobNotFound", "The specified blob does not exist."}
	}
	return nil
}

// matches reports whether the blob is as If-Match wants it.
func matches(match string, had stored, there bool) bool {
	return match == "" || there && (match == "*" || match == had.etag)
}

func (s *Service) put(w http.ResponseWriter, r *http.Request, key string, content []byte) {
	s.written++
	b := stored{
		content: content, kind: r.Header.Get("Content-Type"), modified: time.Now().UTC(), metadata: map[string]string{},
		etag: fmt.Sprintf(`"0x%016X"`, uint64(time.Now().UnixNano())+s.written),
	}
	for header := range r.Header {
		if strings.HasPrefix(strings.ToLower(header), "x-ms-meta-") {
			b.metadata[header] = r.Header.Get(header)
		}
	}
	if s.blobs == nil {
		s.blobs = map[string]stored{}
	}
	s.blobs[key] = b
	b.headers(w)
	w.WriteHeader(http.StatusCreated)
}

func (b stored) headers(w http.ResponseWriter) {
	w.Header().Set("ETag", b.etag)
	w.Header().Set("Last-Modified", b.modified.Format(http.TimeFormat))
}

func (b stored) write(w http.ResponseWriter, body bool) {
	b.headers(w)
	w.Header().Set("Content-Type", b.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(b.content)))
	w.Header().Set("x-ms-blob-type", "BlockBlob")
	for header, value := range b.metadata {
		w.Header().Set(header, value)
	}
	w.WriteHeader(http.StatusOK)
	if body {
		_, _ = w.Write(b.content) // the client is gone
	}
}

type fault struct {
	XMLName xml.Name `xml:"Error"`
	Code    string   `xml:"Code"`
	Message string   `xml:"Message"`
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("x-ms-error-code", code)
	if status == http.StatusNotModified {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	text, err := xml.Marshal(fault{Code: code, Message: message})
	if err == nil {
		_, _ = w.Write(append([]byte(xml.Header), text...)) // the client is gone
	}
}
