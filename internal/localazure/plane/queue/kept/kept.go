// Package kept has the messages of queues: in memory, and in a journal if it has a directory. Layer L2.
package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/journal"
)

// Message is a message of a queue.
type Message struct {
	ID string `json:"id"`
	// Text is as the client has sent it. In a record of the journal it is nil if it has not changed.
	Text *string `json:"text,omitempty"`
	// Inserted is when it came. It is deleted when it Expires, never at the zero time, and hidden until it is Visible.
	Inserted time.Time `json:"inserted"`
	Expires  time.Time `json:"expires,omitzero"`
	Visible  time.Time `json:"visible"`
	// Taken is how often it was handed out, and Receipt is what its last reader or writer got to change it.
	Taken   int    `json:"taken,omitempty"`
	Receipt string `json:"receipt"`
}

// Store keeps messages by the keys of their queues. Its lock guards what several of its methods do together.
type Store struct {
	sync.Mutex
	queues  map[string]*queue
	size    int // of all texts, in bytes
	journal *journal.Journal
	whole   int64 // size of the journal after it was written as a whole
}

// queue is a queue with messages in the order in which they came. It was made at a time, which tells it from those of its name before.
type queue struct {
	made     string
	messages []*Message
	known    map[string]bool // their ids
	expires  time.Time       // no message expires before, zero if none ever does
}

// record is a change of a queue: messages that are new or changed, and the ids of deleted ones, or its end.
type record struct {
	Queue  string    `json:"queue"`
	Made   string    `json:"made"`
	Put    []Message `json:"put,omitempty"`
	Forget []string  `json:"forget,omitempty"`
	Gone   bool      `json:"gone,omitempty"`
}

// Load reads the messages in a directory, and has the store keep them there. It creates the directory, but no parent. The log receives what
// cannot be read.
func (s *Store) Load(dir string, log *slog.Logger) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	path := filepath.Join(dir, "messages.journal")
	if err := os.Remove(path + journal.NewSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.Lock()
	defer s.Unlock()
	s.queues, s.size = nil, 0
	size, err := journal.Read(path, func(_ int, text []byte) error {
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		s.apply(r)
		return nil
	}, func(line int, _ []byte) {
		log.Warn("a change of a queue is unreadable and left out", "file", path, "line", line)
	})
	if err != nil {
		return err
	}
	s.journal, err = journal.Open(path, size)
	return err
}

// Close ends what Load began.
func (s *Store) Close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// mostText is how many bytes all messages may have together: they are in memory.
const mostText = 1 << 30

// Put keeps messages of a queue, new ones behind the others. The text of a known message may be nil: it stays. The caller holds the lock.
func (s *Store) Put(key, made string, messages ...Message) error {
	grown := 0
	for _, m := range messages {
		if m.Text != nil {
			grown += len(*m.Text)
		}
	}
	if s.size+grown > mostText {
		return behaviour.Refusal(http.StatusConflict, "QuotaExceeded",
			"The messages of the local Azure have %d bytes. At most %d are allowed.", s.size, mostText)
	}
	return s.do(record{Queue: key, Made: made, Put: messages})
}

// Forget deletes messages of a queue. The caller holds the lock.
func (s *Store) Forget(key, made string, ids ...string) error {
	return s.do(record{Queue: key, Made: made, Forget: ids})
}

// Live returns the messages of a queue that have not expired, in the order in which they came. Those of an earlier queue of the same name
// are gone. The caller holds the lock, and does not change the messages.
func (s *Store) Live(key, made string, now time.Time) []*Message {
	q := s.queues[key]
	if q == nil || q.made != made {
		s.drop(key)
		return nil
	}
	if q.expires.IsZero() || now.Before(q.expires) {
		return q.messages
	}
	q.expires = time.Time{}
	q.messages = slices.DeleteFunc(q.messages, func(m *Message) bool {
		if m.Expires.IsZero() || now.Before(m.Expires) {
			q.expire(m.Expires)
			return false
		}
		s.size -= len(*m.Text)
		delete(q.known, m.ID)
		return true
	})
	return q.messages
}

// expire notes that a message expires at a time, zero for never.
func (q *queue) expire(at time.Time) {
	if !at.IsZero() && (q.expires.IsZero() || at.Before(q.expires)) {
		q.expires = at
	}
}

// Drop forgets all messages of a queue that was deleted. The caller holds the lock.
func (s *Store) Drop(key string) error {
	if s.queues[key] == nil {
		return nil
	}
	return s.do(record{Queue: key, Gone: true})
}

// do notes a change in the journal, and carries it out.
func (s *Store) do(r record) error {
	if s.journal != nil {
		if err := s.journal.Append(r); err != nil {
			return behaviour.Refusal(http.StatusInternalServerError, "InternalError", "The change of the queue cannot be written: %v", err)
		}
	}
	s.apply(r)
	return s.shorten()
}

func (s *Store) apply(r record) {
	q := s.queues[r.Queue]
	if q == nil || q.made != r.Made || r.Gone {
		s.drop(r.Queue)
		q = &queue{made: r.Made, known: map[string]bool{}}
		if s.queues == nil {
			s.queues = map[string]*queue{}
		}
		s.queues[r.Queue] = q
	}
	for _, m := range r.Put {
		s.put(q, m)
	}
	for _, id := range r.Forget {
		s.forget(q, id)
	}
	if len(q.messages) == 0 {
		delete(s.queues, r.Queue)
	}
}

func (s *Store) put(q *queue, m Message) {
	if !q.known[m.ID] {
		if m.Text == nil { // its first record was unreadable
			return
		}
		s.size += len(*m.Text)
		q.known[m.ID] = true
		q.messages = append(q.messages, &m)
	} else {
		i := q.index(m.ID)
		if m.Text == nil {
			m.Text = q.messages[i].Text
		}
		s.size += len(*m.Text) - len(*q.messages[i].Text)
		q.messages[i] = &m
	}
	q.expire(m.Expires)
}

func (q *queue) index(id string) int {
	return slices.IndexFunc(q.messages, func(m *Message) bool { return m.ID == id })
}

func (s *Store) forget(q *queue, id string) {
	if !q.known[id] {
		return
	}
	i := q.index(id)
	s.size -= len(*q.messages[i].Text)
	delete(q.known, id)
	copy(q.messages[1:i+1], q.messages[:i]) // those that are read come first: few move
	q.messages[0] = nil
	q.messages = q.messages[1:]
}

func (s *Store) drop(key string) {
	if q := s.queues[key]; q != nil {
		for _, m := range q.messages {
			s.size -= len(*m.Text)
		}
		delete(s.queues, key)
	}
}

func values(messages []*Message) (all []Message) {
	for _, m := range messages {
		all = append(all, *m)
	}
	return all
}

// shorten writes the journal as a whole when it has grown far beyond the messages that there are.
func (s *Store) shorten() error {
	const least, times = 1 << 20, 4
	if s.journal == nil {
		return nil
	}
	size := s.journal.Size()
	if size < least || size < times*s.whole {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.queues)) {
		q := s.queues[key]
		for part := range slices.Chunk(q.messages, 64) {
			if err := s.journal.Append(record{Queue: key, Made: q.made, Put: values(part)}); err != nil {
				return fmt.Errorf("queues: %w", err)
			}
		}
	}
	if err := s.journal.Drop(size); err != nil {
		return fmt.Errorf("queues: %w", err)
	}
	s.whole = s.journal.Size()
	return nil
}
