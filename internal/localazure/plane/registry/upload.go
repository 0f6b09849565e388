package registry

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The limits of uploads that have not ended, for each registry.
const (
	mostUploads = 100
	// mostUploaded is how many bytes they have together.
	mostUploaded = 32 << 30
	// uploadTimeout is how long one without new data is kept.
	uploadTimeout = time.Hour
	// graceTimeout is how long one without new data is kept when there are too many.
	graceTimeout = time.Minute
)

// uploads are the blobs of a registry that clients are sending. Their data is in files, not in memory: the library of the images
// would keep it in memory for ever, and would let one slow client block all others.
type uploads struct {
	dir  string // "" for the directory of temporary files
	size atomic.Int64
	most int64 // bytes of all

	mu  sync.Mutex
	all map[string]*upload
}

// upload is a blob that is being sent.
type upload struct {
	id, repository string
	of             *uploads
	busy           sync.Mutex // held by the request that sends data or ends it
	file           *os.File
	sum            hash.Hash

	mu   sync.Mutex // of the fields below
	size int64
	last time.Time // of data
}

// uploadFile is the form of the names of files with the data of uploads.
var uploadFile = regexp.MustCompile(`upload-[0-9]+`)

func newUploads(dir string) *uploads {
	return &uploads{dir: dir, most: mostUploaded, all: map[string]*upload{}}
}

// begin makes an upload without data.
func (u *uploads) begin(repository string, now time.Time) (*upload, error) {
	u.expire(now, uploadTimeout)
	if u.count() >= mostUploads {
		u.expire(now, graceTimeout)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all) >= mostUploads {
		return nil, refuse(http.StatusTooManyRequests, "TOOMANYREQUESTS", "%d uploads have not ended. At most %d are allowed.", len(u.all),
			mostUploads)
	}
	file, err := os.CreateTemp(u.dir, "upload-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // a killed process leaves nothing; where this fails, end removes it
	made := &upload{id: rand.Text(), repository: repository, of: u, file: file, sum: sha256.New(), last: now}
	u.all[made.id] = made
	return made, nil
}

func (u *uploads) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.all)
}

// find returns the upload with an id in a repository.
func (u *uploads) find(n needs) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	found := u.all[n.reference]
	if found == nil || found.repository != n.repository {
		return nil, refuse(http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "The upload %q is unknown to the registry.", n.reference)
	}
	return found, nil
}

// expire ends the uploads that have had no data for a time.
func (u *uploads) expire(now time.Time, silent time.Duration) {
	u.mu.Lock()
	var old []*upload
	for _, one := range u.all {
		if one.silentFor(now) >= silent {
			old = append(old, one)
		}
	}
	u.mu.Unlock()
	for _, one := range old {
		if one.busy.TryLock() {
			one.end()
			one.busy.Unlock()
		}
	}
}

// end forgets an upload and its data. The caller holds busy.
func (o *upload) end() {
	o.of.mu.Lock()
	known := o.of.all[o.id] == o
	delete(o.of.all, o.id)
	o.of.mu.Unlock()
	if !known {
		return
	}
	o.of.size.Add(-o.length())
	_ = o.file.Close() // the data is not needed
	_ = os.Remove(o.file.Name())
}

func (o *upload) length() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size
}

func (o *upload) silentFor(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return now.Sub(o.last)
}

// Write implements io.Writer.
func (o *upload) Write(b []byte) (int, error) {
	if o.of.size.Add(int64(len(b))) > o.of.most {
		o.of.size.Add(-int64(len(b)))
		return 0, refuse(http.StatusRequestEntityTooLarge, "SIZE_INVALID",
			"The uploads that have not ended have more than %d bytes together.", o.of.most)
	}
	n, err := o.file.Write(b)
	_, _ = o.sum.Write(b[:n]) // never fails
	o.of.size.Add(int64(n - len(b)))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += int64(n)
	o.last = time.Now()
	return n, err
}

// receive appends the body of a request. What came before an error stays, so that the client can go on.
func (o *upload) receive(r *http.Request) error {
	if from, ok, err := rangeStart(r.Header.Get("Content-Range")); err != nil || ok && from != o.length() {
		return refuse(http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID",
			"The range %q does not follow the %d bytes of the upload.", r.Header.Get("Content-Range"), o.length())
	}
	if r.Body == nil {
		return nil
	}
	_, err := io.Copy(o, r.Body)
	if refused, ok := errors.AsType[*refusal](err); ok {
		return refused
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "BLOB_UPLOAD_INVALID", "The data of the upload could not be received: %v.", err)
	}
	return nil
}

// rangeStart returns the first byte of a range such as "0-99".
func rangeStart(text string) (from int64, ok bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	first, _, _ := strings.Cut(text, "-")
	from, err = strconv.ParseInt(first, 10, 64)
	return from, true, err
}

// headers say where the upload goes on.
func (o *upload) headers(w http.ResponseWriter) {
	w.Header().Set("Location", "/v2/"+o.repository+"/blobs/uploads/"+o.id)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(0, o.length()-1)))
	w.Header().Set("Docker-Upload-Uuid", o.id)
}

// upload answers a request about an upload.
func (s *store) upload(w http.ResponseWriter, r *http.Request, n needs) error {
	if n.reference == "" && r.Method == http.MethodPost {
		return s.beginUpload(w, r, n)
	}
	o, err := s.uploads.find(n)
	if err != nil {
		return err
	}
	if !o.busy.TryLock() {
		return refuse(http.StatusConflict, "BLOB_UPLOAD_INVALID", "Another request sends data of the upload %q.", o.id)
	}
	defer o.busy.Unlock()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		o.headers(w)
		w.WriteHeader(http.StatusNoContent)
		return nil
	case http.MethodDelete:
		o.end()
		w.WriteHeader(http.StatusNoContent)
		return nil
	case http.MethodPatch:
		if err := o.receive(r); err != nil {
			return err
		}
		o.headers(w)
		w.WriteHeader(http.StatusAccepted)
		return nil
	case http.MethodPut:
		if err := o.receive(r); err != nil {
			return err
		}
		return s.endUpload(w, r, o)
	}
	return refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "The method %s is not supported.", r.Method)
}

// beginUpload begins an upload, or stores a blob that the request has as a whole.
func (s *store) beginUpload(w http.ResponseWriter, r *http.Request, n needs) error {
	o, err := s.uploads.begin(n.repository, time.Now())
	if err != nil {
		return err
	}
	if !r.URL.Query().Has("digest") {
		o.headers(w)
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	o.busy.Lock()
	defer o.busy.Unlock()
	if err := o.receive(r); err != nil {
		o.end()
		return err
	}
	return s.endUpload(w, r, o)
}

// endUpload stores the blob of an upload if its digest is right. The upload ends in any case.
func (s *store) endUpload(w http.ResponseWriter, r *http.Request, o *upload) error {
	defer o.end()
	digest := r.URL.Query().Get("digest")
	if got := "sha256:" + hex.EncodeToString(o.sum.Sum(nil)); digest != got {
		return refuse(http.StatusBadRequest, "DIGEST_INVALID", "The data of the upload has the digest %s, not %q.", got, digest)
	}
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	put := request(http.MethodPost, "/v2/"+o.repository+"/blobs/uploads", "application/octet-stream", nil)
	put.URL.RawQuery = "digest=" + digest
	put.Body, put.ContentLength = io.NopCloser(o.file), o.length()
	answer := s.ask(put)
	if answer.status == http.StatusCreated {
		w.Header().Set("Location", "/v2/"+o.repository+"/blobs/"+digest)
	}
	answer.copyTo(w)
	return nil
}
