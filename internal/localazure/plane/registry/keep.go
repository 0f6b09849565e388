package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/localazure/core/keep"
)

// manifest is a manifest as the client sent it, in the form of its file.
type manifest struct {
	Repository string `json:"repository"`
	Reference  string `json:"reference"` // tag or digest
	MediaType  string `json:"mediaType"`
	Body       []byte `json:"body"`
}

func (m manifest) request() *http.Request {
	return request(http.MethodPut, "/v2/"+m.Repository+"/manifests/"+m.Reference, m.MediaType, m.Body)
}

// isIndex reports whether the manifest refers to other manifests, which must exist first.
func (m manifest) isIndex() bool {
	return strings.Contains(m.MediaType, "index") || strings.Contains(m.MediaType, "manifest.list")
}

func (s *store) file(repository, reference string) string {
	return filepath.Join(s.dir, sum(repository, reference)+".json")
}

// save writes a manifest to the files of its tag and of its digest. The digest outlives the tag.
func (s *store) save(m manifest) error {
	if s.dir == "" {
		return nil
	}
	if err := s.write(m); err != nil {
		return err
	}
	m.Reference = "sha256:" + sum(string(m.Body))
	return s.write(m)
}

// write writes a file completely or not at all.
func (s *store) write(m manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	file := s.file(m.Repository, m.Reference)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func (s *store) remove(repository, reference string) error {
	if s.dir == "" {
		return nil
	}
	if err := os.Remove(s.file(repository, reference)); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// temporaryFile is the form of the names of files that are not manifests yet.
var temporaryFile = regexp.MustCompile(`[0-9a-f]{64}\.json\.new`)

// load reads the stored manifests. A file that cannot be read is renamed and named in the log.
func (s *store) load() error {
	if err := keep.RemoveTemporary(s.dir, temporaryFile); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.json"))
	if err != nil {
		return err
	}
	var waiting []manifest
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var m manifest
		if err := json.Unmarshal(text, &m); err != nil {
			aside, asideErr := keep.SetAside(file)
			if asideErr != nil {
				return fmt.Errorf("%s: %w", file, errors.Join(err, asideErr))
			}
			s.log.Warn("a manifest is unreadable and was set aside", "error", err, "file", aside)
			continue
		}
		if m.isIndex() {
			waiting = append(waiting, m)
			continue
		}
		s.ask(m.request())
	}
	// Each round loads the manifests with references to loaded manifests only.
	for before := len(waiting) + 1; len(waiting) > 0 && len(waiting) < before; {
		before = len(waiting)
		waiting = slices.DeleteFunc(waiting, func(m manifest) bool { return s.ask(m.request()).status == http.StatusCreated })
	}
	return nil
}
