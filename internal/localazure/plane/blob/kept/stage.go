package kept

import (
	"iter"
	"net/http"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// staged are the blocks of a blob that no list has committed, by their ids. They are in memory alone: a restart loses them.
type staged struct {
	content map[string][]byte
	made    string // when the container was made
}

// mostStaged is how many blocks of a blob wait for a list, as Azure documents it.
const mostStaged = 100_000

// Stage keeps a block of the blob with a key. All blocks that wait have ids of one length. The caller holds the lock.
func (s *Store) Stage(key, made, id string, content []byte) error {
	waiting := s.staged[key]
	if waiting.made != made {
		s.Unstage(key)
		waiting = staged{map[string][]byte{}, made}
	}
	if waiting.content == nil {
		waiting.content = map[string][]byte{}
	}
	for other := range waiting.content {
		if len(other) != len(id) {
			return behaviour.Refusal(http.StatusBadRequest, "InvalidBlobOrBlock",
				"The specified blob or block content is invalid: the id %q has another length than that of other blocks, %q.", id, other)
		}
		break
	}
	if _, again := waiting.content[id]; !again && len(waiting.content) >= mostStaged {
		return behaviour.Refusal(http.StatusConflict, "BlockCountExceedsLimit",
			"The uncommitted block count cannot exceed the maximum limit of %d blocks.", mostStaged)
	}
	grown := int64(len(content) - len(waiting.content[id]))
	if err := s.checkSpace(grown); err != nil {
		return err
	}
	s.size += grown
	waiting.content[id] = content
	if s.staged == nil {
		s.staged = map[string]staged{}
	}
	s.staged[key] = waiting
	return nil
}

// Unstage forgets the blocks of the blob with a key. The caller holds the lock.
func (s *Store) Unstage(key string) {
	for _, content := range s.staged[key].content {
		s.size -= int64(len(content))
	}
	delete(s.staged, key)
}

// Waiting returns the blocks that wait for a list, by their ids. They are of a container that was made at a time. The caller holds the
// lock.
func (s *Store) Waiting(key, made string) map[string][]byte {
	if waiting := s.staged[key]; waiting.made == made {
		return waiting.content
	}
	return nil
}

// WaitingUnder yields the rests of the keys that begin with a text, and have no blob but blocks that wait for a list. The caller holds the
// lock.
func (s *Store) WaitingUnder(before, made string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key, waiting := range s.staged {
			_, there := s.blobs[key]
			if rest, ours := strings.CutPrefix(key, before); ours && !there && waiting.made == made && !yield(rest) {
				return
			}
		}
	}
}
