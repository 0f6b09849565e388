package blob

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour/storage/lease"
	"kaz/internal/localazure/core/keep"
)

// header is the first line of the file of a blob. The content follows.
type header struct {
	Key      string            `json:"key"`
	Kind     string            `json:"kind"`
	ETag     string            `json:"etag"`
	Modified time.Time         `json:"modified"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Lease    lease.Lease       `json:"lease,omitzero"`
	Made     string            `json:"made,omitempty"`
}

// fileSuffix ends the names of the files of blobs.
const fileSuffix = ".blob"

// temporaryFile is the form of the names of files that are not blobs yet.
var temporaryFile = regexp.MustCompile(`\.new-[0-9]+`)

// Load reads the blobs in Dir. It creates the directory, but no parent. A file that cannot be read is renamed and named in the log.
func (s *Service) Load() error {
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := keep.RemoveTemporary(s.Dir, temporaryFile); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*"+fileSuffix))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs, s.size = map[string]stored{}, 0
	for _, file := range files {
		key, b, err := read(file)
		if err != nil {
			aside, asideErr := keep.SetAside(file)
			if asideErr != nil {
				return fmt.Errorf("blob %s: %w", file, errors.Join(err, asideErr))
			}
			s.log().Warn("a blob is unreadable and was set aside", "error", err, "file", aside)
			continue
		}
		s.blobs[key] = b
		s.size += int64(len(b.content))
	}
	return nil
}

func (s *Service) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

// read reads the file of a blob.
func read(file string) (key string, b stored, err error) {
	f, err := os.Open(file)
	if err != nil {
		return "", b, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return "", b, err
	}
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return "", b, err
	}
	b = stored{kind: h.Kind, etag: h.ETag, modified: h.Modified, metadata: h.Metadata, lease: h.Lease, made: h.Made}
	b.content, err = io.ReadAll(in)
	return h.Key, b, err
}

// mostContent is how many bytes all blobs may have together: they are in memory.
const mostContent int64 = 4 << 30

// keep stores a blob. The caller holds the lock.
func (s *Service) keep(key string, b stored) error {
	size := s.size - int64(len(s.blobs[key].content)) + int64(len(b.content))
	if size > mostContent && size > s.size {
		return refuse(http.StatusConflict, "QuotaExceeded", "The blobs of the local Azure have %d bytes. At most %d are allowed.", s.size,
			mostContent)
	}
	if s.Dir != "" {
		if err := s.write(key, b); err != nil {
			return refuse(http.StatusInternalServerError, "InternalError", "The blob cannot be written: %v", err)
		}
	}
	if s.blobs == nil {
		s.blobs = map[string]stored{}
	}
	s.blobs[key], s.size = b, size
	return nil
}

// forget deletes a blob. The caller holds the lock.
func (s *Service) forget(key string) error {
	if s.Dir != "" {
		if err := os.Remove(s.file(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return refuse(http.StatusInternalServerError, "InternalError", "The blob cannot be deleted: %v", err)
		}
	}
	s.size -= int64(len(s.blobs[key].content))
	delete(s.blobs, key)
	return nil
}

// renew forgets the blobs of containers that had the name of a container before.
func (s *Service) renew(container azure.ID, made string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := container.Key()
	if s.made[key] == made {
		return nil
	}
	for name, b := range s.blobs {
		if strings.HasPrefix(name, key+"/") && b.made != "" && b.made != made {
			if err := s.forget(name); err != nil {
				return err
			}
		}
	}
	if s.made == nil {
		s.made = map[string]string{}
	}
	s.made[key] = made
	return nil
}

// file is the file of the blob with a key.
func (s *Service) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:])+fileSuffix)
}

// write replaces the file of a blob in one step.
func (s *Service) write(key string, b stored) error {
	line, err := json.Marshal(header{key, b.kind, b.etag, b.modified, b.metadata, b.lease, b.made})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.Dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		_, err = f.Write(b.content)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.file(key))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
