package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	distribution "github.com/google/go-containerregistry/pkg/registry"

	"kaz/internal/azure"
	"kaz/internal/localazure/core/keep"
)

// store has the images of one registry.
type store struct {
	created string // distinguishes a registry from an earlier one of its name
	images  http.Handler
	dir     string // of manifests, "" for none
	uploads *uploads
	log     *slog.Logger

	writing sync.Mutex // keeps the files and the served manifests the same
}

// store returns the images of a registry, none for a new registry.
func (s *Service) store(a account) (*store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := azure.ID(strings.ToLower(string(a.id)))
	if known := s.stores[id]; known != nil && known.created == a.created {
		return known, nil
	}
	made, err := openStore(s.Dir, a, s.Log)
	if err != nil {
		return nil, fmt.Errorf("images of %s: %w", a.server, err)
	}
	s.stores[id] = made
	return made, nil
}

func openStore(root string, a account, warnings *slog.Logger) (*store, error) {
	quiet := distribution.Logger(log.New(io.Discard, "", 0))
	referrers := distribution.WithReferrersSupport(true)
	if root == "" {
		return &store{created: a.created, images: distribution.New(quiet, referrers), uploads: newUploads(""), log: warnings}, nil
	}
	// Names of registries have letters and digits only, and are unique.
	name := strings.ToLower(a.id.Name()) + "-"
	place := filepath.Join(root, name+sum(strings.ToLower(string(a.id)), a.created)[:16])
	if err := removeOthers(root, name, place); err != nil {
		return nil, err
	}
	blobs := filepath.Join(place, "blobs")
	store := &store{created: a.created, log: warnings, dir: filepath.Join(place, "manifests")}
	sending := filepath.Join(place, "uploads")
	for _, dir := range []string{blobs, store.dir, sending} {
		// No upload outlives the server. The library names its temporary files in the same way.
		if err := errors.Join(os.MkdirAll(dir, 0o700), keep.RemoveTemporary(dir, uploadFile)); err != nil {
			return nil, err
		}
	}
	store.uploads = newUploads(sending)
	store.images = distribution.New(quiet, referrers, distribution.WithBlobHandler(distribution.NewDiskBlobHandler(blobs)))
	return store, store.load()
}

// removeOthers removes the images of earlier registries with the name.
func removeOthers(root, name, except string) error {
	left, err := filepath.Glob(filepath.Join(root, name+"*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if dir == except {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// sum returns a file name for texts.
func sum(texts ...string) string {
	b := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(b[:])
}

// serve answers an authorized request.
func (s *store) serve(w http.ResponseWriter, r *http.Request, n needs) error {
	switch {
	case n.part == "tags", n.part == "_catalog":
		if err := checkPage(r); err != nil {
			return err
		}
	case n.part == "uploads":
		return s.upload(w, r, n)
	case n.part == "manifests" && r.Method == http.MethodPut:
		return s.put(w, r, n)
	case n.part == "manifests" && r.Method == http.MethodDelete:
		return s.delete(w, r, n)
	case n.part == "blobs" && r.Method == http.MethodGet:
		var err error
		if r, err = s.bounded(r); err != nil {
			return err
		}
	}
	s.images.ServeHTTP(w, r)
	return nil
}

// checkPage refuses a size of a page that is no number of elements, for which go-containerregistry panics.
func checkPage(r *http.Request) error {
	const given = "n"
	query := r.URL.Query()
	if !query.Has(given) {
		return nil
	}
	if size, err := strconv.Atoi(query.Get(given)); err != nil || size < 0 {
		return refuse(http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", "The number n=%q is invalid: want a whole number from 0 on.",
			query.Get(given))
	}
	return nil
}

// bounded adds the end to a range without one, which go-containerregistry requires. Clients send such a range to resume
// a download.
func (s *store) bounded(r *http.Request) (*http.Request, error) {
	from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !ok || !strings.HasSuffix(from, "-") {
		return r, nil
	}
	size, err := strconv.ParseInt(s.ask(request(http.MethodHead, r.URL.Path, "", nil)).header.Get("Content-Length"), 10, 64)
	if err != nil {
		return r, nil // the blob does not exist, and the handler answers so
	}
	first, err := strconv.ParseInt(strings.TrimSuffix(from, "-"), 10, 64)
	if err != nil || first >= size {
		return nil, refuse(http.StatusRequestedRangeNotSatisfiable, "RANGE_INVALID", "The range %q is not in the %d bytes of the blob.",
			r.Header.Get("Range"), size)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", first, size-1))
	return r, nil
}

// largestManifest is the size that registries must accept.
const largestManifest = 4 << 20

// put stores a manifest if its digest is right and everything that it refers to exists.
func (s *store) put(w http.ResponseWriter, r *http.Request, n needs) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, largestManifest))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "MANIFEST_INVALID", "The manifest is larger than %d bytes.", largestManifest)
	}
	if strings.Contains(n.reference, ":") && n.reference != "sha256:"+sum(string(body)) {
		return refuse(http.StatusBadRequest, "DIGEST_INVALID", "The manifest is not the one of %s.", n.reference)
	}
	m := manifest{Repository: n.repository, Reference: n.reference, MediaType: r.Header.Get("Content-Type"), Body: body}
	if err := s.complete(m); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	answer := s.ask(m.request())
	if answer.status == http.StatusCreated {
		if err := s.save(m); err != nil {
			return err
		}
		w.Header().Set("Location", r.URL.Path)
	}
	answer.copyTo(w)
	return nil
}

// complete checks that the blobs of a manifest exist.
func (s *store) complete(m manifest) error {
	type blob struct {
		Digest string   `json:"digest"`
		URLs   []string `json:"urls"`
	}
	var named struct {
		Config *blob  `json:"config"`
		Layers []blob `json:"layers"`
	}
	if err := json.Unmarshal(m.Body, &named); err != nil {
		return refuse(http.StatusBadRequest, "MANIFEST_INVALID", "The manifest is not JSON.")
	}
	if named.Config != nil {
		named.Layers = append(named.Layers, *named.Config)
	}
	for _, b := range named.Layers {
		// Clients get layers with URLs from there.
		if len(b.URLs) > 0 || s.has("/v2/"+m.Repository+"/blobs/"+b.Digest) {
			continue
		}
		return refuse(http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN", "The blob %q of the manifest is unknown to the registry.", b.Digest)
	}
	return nil
}

func (s *store) has(path string) bool {
	return s.ask(request(http.MethodHead, path, "", nil)).status == http.StatusOK
}

// delete removes a tag, or a manifest with all its tags.
func (s *store) delete(w http.ResponseWriter, r *http.Request, n needs) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	answer := s.ask(request(http.MethodDelete, r.URL.Path, "", nil))
	if answer.status == http.StatusAccepted {
		if err := s.remove(n.repository, n.reference); err != nil {
			return err
		}
		if err := s.untag(n.repository, n.reference); err != nil {
			return err
		}
	}
	answer.copyTo(w)
	return nil
}

// untag removes the tags of a deleted manifest.
func (s *store) untag(repository, digest string) error {
	var list struct {
		Tags []string `json:"tags"`
	}
	if !strings.Contains(digest, ":") ||
		json.Unmarshal(s.ask(request(http.MethodGet, "/v2/"+repository+"/tags/list", "", nil)).body.Bytes(), &list) != nil {
		return nil // a tag has no tags
	}
	for _, tag := range list.Tags {
		path := "/v2/" + repository + "/manifests/" + tag
		if s.ask(request(http.MethodHead, path, "", nil)).header.Get("Docker-Content-Digest") != digest {
			continue
		}
		s.ask(request(http.MethodDelete, path, "", nil))
		if err := s.remove(repository, tag); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request to the handler of the images.
func (s *store) ask(r *http.Request) *answer {
	a := &answer{header: http.Header{}, status: http.StatusOK}
	s.images.ServeHTTP(a, r)
	return a
}

func request(method, path, mediaType string, body []byte) *http.Request {
	r := &http.Request{
		Method: method, URL: &url.URL{Path: path}, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	r.Header.Set("Content-Type", mediaType)
	return r
}

// answer records a response.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client is gone
}
