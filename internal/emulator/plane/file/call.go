package file

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/storage"
)

// call is one request to a file service.
type call struct {
	service *Service
	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	id      string // of the request

	account account
	target  target
}

// scope is what a request is about.
type scope string

const (
	serviceScope   scope = "service"
	shareScope     scope = "share"
	directoryScope scope = "directory"
	fileScope      scope = "file"
)

// target is the resource of a request.
type target struct {
	scope    scope
	share    string
	parts    []string // of the path in the share
	snapshot string
}

// opened is a share or snapshot with its directory.
type opened struct {
	id       azure.ID
	doc      behaviour.Object
	content  string
	root     *os.Root
	nfs      bool
	readOnly bool
	quotaGiB int
}

// operation is a kind of request.
type operation struct {
	scope  scope
	method string
	comp   string // of the query
	do     func(c *call) error
	// allowedBy are the letters of a shared access signature, of which one is enough.
	allowedBy string
	// writes says that the operation changes content, which it cannot in a snapshot.
	writes bool
}

// operations are all kinds of requests. HEAD is GET.
var operations = []operation{
	{serviceScope, "GET", "list", (*call).listShares, "l", false},
	{serviceScope, "GET", "properties", (*call).getService, "r", false},
	{shareScope, "PUT", "", (*call).createShare, "cw", false},
	{shareScope, "GET", "", (*call).getShare, "r", false},
	{shareScope, "DELETE", "", (*call).deleteShare, "d", false},
	{shareScope, "PUT", "metadata", (*call).setShareMetadata, "w", false},
	{shareScope, "GET", "metadata", (*call).getShare, "r", false},
	{shareScope, "PUT", "properties", (*call).setShareProperties, "w", false},
	{shareScope, "PUT", "snapshot", (*call).snapshotShare, "cw", false},
	{shareScope, "GET", "stats", (*call).shareStats, "r", false},
	{shareScope, "PUT", "undelete", (*call).undeleteShare, "w", false},
	{directoryScope, "PUT", "", (*call).createDirectory, "cw", true},
	{directoryScope, "GET", "", (*call).getDirectory, "r", false},
	{directoryScope, "GET", "metadata", (*call).getDirectory, "r", false},
	{directoryScope, "DELETE", "", (*call).deleteDirectory, "d", true},
	{directoryScope, "PUT", "metadata", (*call).setMetadata, "w", true},
	{directoryScope, "PUT", "properties", (*call).setDirectoryProperties, "w", true},
	{directoryScope, "PUT", "rename", (*call).rename, "w", true},
	{directoryScope, "GET", "list", (*call).listDirectory, "l", false},
	{fileScope, "PUT", "", (*call).createFile, "cw", true},
	{fileScope, "GET", "", (*call).getFile, "r", false},
	{fileScope, "GET", "metadata", (*call).getFile, "r", false},
	{fileScope, "DELETE", "", (*call).deleteFile, "d", true},
	{fileScope, "PUT", "metadata", (*call).setMetadata, "w", true},
	{fileScope, "PUT", "properties", (*call).setFileProperties, "w", true},
	{fileScope, "PUT", "range", (*call).putRange, "w", true},
	{fileScope, "GET", "rangelist", (*call).listRanges, "r", false},
	{fileScope, "PUT", "copy", (*call).abortCopy, "w", true},
	{fileScope, "PUT", "rename", (*call).rename, "w", true},
}

// begin writes the headers of all answers.
func (c *call) begin() {
	h := c.w.Header()
	h.Set("Server", "Windows-Azure-File/1.0 Microsoft-HTTPAPI/2.0")
	h.Set("x-ms-request-id", c.id)
	if id := c.r.Header.Get("x-ms-client-request-id"); id != "" {
		h.Set("x-ms-client-request-id", id)
	}
	if version := c.r.Header.Get("x-ms-version"); version != "" {
		h.Set("x-ms-version", version)
	}
}

func (c *call) serve() error {
	var ok bool
	if c.account, ok = c.service.find(accountOf(c.r.Host)); !ok {
		// Azure does not resolve the name of an account that does not exist.
		return notFound("ResourceNotFound", "storage account")
	}
	if c.account.onlyHTTPS && c.r.TLS == nil {
		return refuse(http.StatusBadRequest, "AccountRequiresHttps", "The account being accessed does not support http.")
	}
	var err error
	if c.target, err = parseTarget(c.r.URL); err != nil {
		return err
	}
	o, err := c.operation()
	if err != nil {
		return err
	}
	if err := c.authorize(o); err != nil {
		return err
	}
	if o.writes && c.target.snapshot != "" {
		return refuse(http.StatusBadRequest, "InvalidQueryParameterValue", "A share snapshot cannot be changed.")
	}
	return o.do(c)
}

// parseTarget returns the resource of a URL.
func parseTarget(u *url.URL) (target, error) {
	query := u.Query()
	t := target{scope: serviceScope, snapshot: query.Get("sharesnapshot")}
	escaped := strings.Trim(u.EscapedPath(), "/")
	if escaped == "" {
		return t, nil
	}
	for part := range strings.SplitSeq(escaped, "/") {
		name, err := url.PathUnescape(part)
		if err != nil || len(t.parts) > 0 && !validName(name) {
			return t, refuse(http.StatusBadRequest, "InvalidResourceName",
				"The specified resource name %q contains invalid characters.", part)
		}
		t.parts = append(t.parts, name)
	}
	t.share, t.parts = t.parts[0], t.parts[1:]
	switch kind := query.Get("restype"); {
	case kind == "share" && len(t.parts) == 0:
		t.scope = shareScope
	case kind == "directory":
		t.scope = directoryScope
	case kind == "" && len(t.parts) > 0:
		t.scope = fileScope
	default:
		return t, refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
			"Value for one of the query parameters specified in the request URI is invalid: restype is %q.", kind)
	}
	return t, nil
}

// validName reports whether a directory or file can have the name.
func validName(name string) bool {
	const longest = 255
	return name != "" && name != "." && name != ".." && len([]rune(name)) <= longest && !strings.ContainsAny(name, `\:*?"<>|/`) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' })
}

func (c *call) operation() (operation, error) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	comp := strings.ToLower(c.query.Get("comp"))
	i := slices.IndexFunc(operations, func(o operation) bool {
		return o.scope == c.target.scope && o.method == method && o.comp == comp
	})
	if i >= 0 {
		return operations[i], nil
	}
	if !slices.ContainsFunc(operations, func(o operation) bool { return o.method == method }) {
		return operation{}, refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb", "The resource doesn't support the HTTP verb %s.",
			method)
	}
	return operation{}, refuse(http.StatusBadRequest, "UnsupportedQueryParameter",
		"One of the query parameters specified in the request URI is not supported: %s of a %s with comp=%q.", method, c.target.scope, comp)
}

// share returns the document of the share of the request.
func (c *call) share() (azure.ID, behaviour.Object, error) {
	id := c.account.share(c.target.share)
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(id) })
	if doc == nil {
		return id, nil, notFound("ShareNotFound", "share")
	}
	return id, doc, nil
}

// open opens the directory of the share of the request. The caller closes it.
func (c *call) open() (*opened, error) { return c.service.open(c.r, c.account, c.target) }

func (s *Service) open(r *http.Request, a account, t target) (*opened, error) {
	at := call{service: s, account: a, target: t}
	s.directories.Lock()
	defer s.directories.Unlock()
	id, doc, err := at.share()
	if err != nil {
		return nil, err
	}
	share := s.describe(doc)
	o := &opened{id: id, doc: doc, content: share.content, nfs: share.NFS, quotaGiB: share.QuotaGiB}
	var snapshot time.Time
	if t.snapshot != "" {
		if snapshot, err = findSnapshot(doc, t.snapshot); err != nil {
			return nil, err
		}
		o.readOnly = true
	}
	// The request may be faster than the change of the document.
	if err := s.content.Ensure(r.Context(), share.content, share.snapshots); err != nil {
		return nil, err
	}
	o.root, err = os.OpenRoot(s.content.Path(share.content, snapshot))
	return o, err
}

func findSnapshot(share behaviour.Object, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return at, refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
			"Value for one of the query parameters specified in the request URI is invalid: sharesnapshot is %q.", text)
	}
	for _, s := range storage.Snapshots(share) {
		if s.Time.Equal(at) {
			return s.Time, nil
		}
	}
	return at, notFound("ShareSnapshotNotFound", "share snapshot")
}

// find returns the name of a file or directory as it is stored: names of SMB shares are the same in any case. It returns the name of
// a missing one too.
func (o *opened) find(t target) (string, fs.FileInfo, error) {
	at := "."
	for i, part := range t.parts {
		last := i == len(t.parts)-1
		next := path.Join(at, part)
		info, err := o.root.Lstat(next)
		if err != nil && !o.nfs {
			if other := o.otherCase(at, part); other != "" {
				next = path.Join(at, other)
				info, err = o.root.Lstat(next)
			}
		}
		switch {
		case err != nil && last:
			return next, nil, err
		case err != nil || !last && !info.IsDir():
			return next, nil, notFound("ParentNotFound", "parent path")
		case last:
			return next, info, nil
		}
		at = next
	}
	info, err := o.root.Lstat(at)
	return at, info, err
}

// otherCase returns the name in a directory that differs in case only, "" for none.
func (o *opened) otherCase(dir, name string) string {
	entries, err := fs.ReadDir(o.root.FS(), dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if strings.EqualFold(e.Name(), name) {
			return e.Name()
		}
	}
	return ""
}

// findKind is find for a directory or a file that must exist.
func (o *opened) findKind(t target) (string, fs.FileInfo, error) {
	name, info, err := o.find(t)
	if err == nil && info.IsDir() != (t.scope == directoryScope) {
		return name, info, wrongType()
	}
	return name, info, err
}

// with calls f with the open share.
func (c *call) with(f func(o *opened) error) error {
	o, err := c.open()
	if err != nil {
		return err
	}
	defer o.root.Close()
	return f(o)
}

// change is with for changes of content.
func (c *call) change(f func(o *opened) error) error {
	return c.with(func(o *opened) error { return c.service.content.Write(func() error { return f(o) }) })
}

func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
