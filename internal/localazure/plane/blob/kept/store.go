package kept

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/keep"
)

// Store keeps blobs by keys: the key of the container, a slash and a [Version]. Without a Dir it keeps them in memory only. Its lock guards
// what several of its methods do together.
type Store struct {
	// Dir has a file for each blob, which [Store.Load] reads.
	Dir string
	// Log receives what Load sets aside. Nil is slog.Default.
	Log *slog.Logger

	sync.Mutex
	blobs   map[string]Blob
	staged  map[string]staged
	size    int64             // of all contents, in bytes
	made    map[string]string // when the containers with known blobs were made, by their keys
	written uint64
}

// header is the first line of the file of a blob. The content follows.
type header struct {
	Key  string `json:"key"`
	Kind string `json:"kind,omitempty"` // the Content-Type in the files of an older kaz, which knew no other property and no type
	Facts
}

// fileSuffix ends the names of the files of blobs.
const fileSuffix = ".blob"

// temporaryFile is the form of the names of files that are not blobs yet.
var temporaryFile = regexp.MustCompile(`\.new-[0-9]+`)

// Load reads the blobs in Dir. It creates the directory, but no parent. A file that cannot be read is renamed and named in the log.
func (s *Store) Load() error {
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
	s.Lock()
	defer s.Unlock()
	s.blobs, s.size = map[string]Blob{}, 0
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
		s.size += int64(len(b.Content))
	}
	return nil
}

func (s *Store) log() *slog.Logger {
	if s.Log == nil {
		return slog.Default()
	}
	return s.Log
}

// read reads the file of a blob.
func read(file string) (key string, b Blob, err error) {
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
	b.Facts = h.Facts
	if b.Type == "" {
		b.Type, b.Created, b.Properties = Blocks, b.Modified, Properties{"Content-Type": h.Kind}
	}
	b.Content, err = io.ReadAll(in)
	return h.Key, b, err
}

// mostContent is how many bytes all blobs may have together: they are in memory.
const mostContent int64 = 4 << 30

// checkSpace refuses what makes the content too large. The caller holds the lock.
func (s *Store) checkSpace(grown int64) error {
	if grown > 0 && s.size+grown > mostContent {
		return behaviour.Refusal(http.StatusConflict, "QuotaExceeded",
			"The blobs of the local Azure have %d bytes. At most %d are allowed.", s.size, mostContent)
	}
	return nil
}

// Keep stores a blob. The caller holds the lock.
func (s *Store) Keep(key string, b Blob) error {
	grown := int64(len(b.Content) - len(s.blobs[key].Content))
	if err := s.checkSpace(grown); err != nil {
		return err
	}
	if s.Dir != "" {
		if err := s.write(key, b); err != nil {
			return behaviour.Refusal(http.StatusInternalServerError, "InternalError", "The blob cannot be written: %v", err)
		}
	}
	if s.blobs == nil {
		s.blobs = map[string]Blob{}
	}
	s.blobs[key] = b
	s.size += grown
	return nil
}

// Forget deletes a blob with the blocks that wait for it. The caller holds the lock.
func (s *Store) Forget(key string) error {
	if s.Dir != "" {
		if err := os.Remove(s.file(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return behaviour.Refusal(http.StatusInternalServerError, "InternalError", "The blob cannot be deleted: %v", err)
		}
	}
	s.size -= int64(len(s.blobs[key].Content))
	delete(s.blobs, key)
	s.Unstage(key)
	return nil
}

// Renew forgets the blobs of containers that had the name of a container before. The caller holds the lock.
func (s *Store) Renew(container, made string) error {
	if s.made[container] == made {
		return nil
	}
	for v, b := range s.Under(container + "/") {
		if b.Made != "" && b.Made != made {
			if err := s.Forget(container + "/" + v.String()); err != nil {
				return err
			}
		}
	}
	if s.made == nil {
		s.made = map[string]string{}
	}
	s.made[container] = made
	return nil
}

// ForgetUnder deletes what is kept for keys with a beginning. The caller holds the lock.
func (s *Store) ForgetUnder(before string) (err error) {
	for v := range s.Under(before) {
		err = errors.Join(err, s.Forget(before+v.String()))
	}
	for key := range s.staged {
		if strings.HasPrefix(key, before) {
			s.Unstage(key)
		}
	}
	return err
}

// Get returns the blob with a key. The caller holds the lock.
func (s *Store) Get(key string) (b Blob, there bool) {
	b, there = s.blobs[key]
	return b, there
}

// Under yields the blobs with keys that begin with a text, by the rest of the key. The caller holds the lock.
func (s *Store) Under(before string) iter.Seq2[Version, Blob] {
	return func(yield func(Version, Blob) bool) {
		for key, b := range s.blobs {
			if rest, ours := strings.CutPrefix(key, before); ours && !yield(ParseVersion(rest), b) {
				return
			}
		}
	}
}

// Stamp gives a blob that is changed at a time a new etag. The caller holds the lock.
func (s *Store) Stamp(b *Blob, now time.Time) {
	s.written++
	b.Modified = now.UTC()
	b.ETag = fmt.Sprintf(`"0x%016X"`, uint64(now.UnixNano())+s.written)
}

// file is the file of the blob with a key.
func (s *Store) file(key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:])+fileSuffix)
}

// write replaces the file of a blob in one step.
func (s *Store) write(key string, b Blob) error {
	line, err := json.Marshal(header{Key: key, Facts: b.Facts})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.Dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	if err == nil {
		_, err = f.Write(b.Content)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), s.file(key))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
