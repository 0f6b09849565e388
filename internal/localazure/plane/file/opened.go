package file

import (
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// opened is a share or snapshot with its directory.
type opened struct {
	content  string
	root     *os.Root
	nfs      bool
	quotaGiB int
}

// share returns the document of a share.
func (s *Service) share(a account, name string) (azure.ID, behaviour.Object, error) {
	id := a.share(name)
	var doc behaviour.Object
	s.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(id) })
	if doc == nil {
		return id, nil, notFound("ShareNotFound", "share")
	}
	return id, doc, nil
}

// open opens the directory of a share. The caller closes it.
func (s *Service) open(r *http.Request, a account, t target) (*opened, error) {
	s.directories.Lock()
	defer s.directories.Unlock()
	_, doc, err := s.share(a, t.share)
	if err != nil {
		return nil, err
	}
	share := s.describe(doc)
	o := &opened{content: share.content, nfs: share.NFS, quotaGiB: share.QuotaGiB}
	var snapshot time.Time
	if t.snapshot != "" {
		if snapshot, err = findSnapshot(doc, t.snapshot); err != nil {
			return nil, err
		}
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
