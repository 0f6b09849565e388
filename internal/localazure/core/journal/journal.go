// Package journal is the file to which the local Azure appends every change before it answers a request. A killed process
// therefore loses no change that it acknowledged. Each line is a record: its checksum, a blank, and JSON. Layer L2: the
// standard library only.
//
// The package writes records to the operating system and does not wait for the disk. Records survive the end of the
// process, but not a crash of the machine.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// Journal is an open journal. It is safe for use by several goroutines.
type Journal struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64 // of the valid records
}

var table = crc32.MakeTable(crc32.Castagnoli)

const sumDigits = 8

// Read calls f with the JSON of every record in a journal, and damaged with every line before a record that is none. What
// follows the last record was cut off and is left out. Read returns the size of all before it.
func Read(path string, f func(line int, record []byte) error, damaged func(line int, text []byte)) (size int64, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("journal: %w", err)
	}
	return scan(path, text, f, damaged)
}

func scan(path string, text []byte, f func(int, []byte) error, damaged func(int, []byte)) (size int64, err error) {
	for line := 1; len(text) > 0; line++ {
		record, rest, whole := bytes.Cut(text, []byte("\n"))
		body, ok := check(record)
		if !whole || !ok && !anyRecord(rest) {
			return size, nil // the process ended while it wrote this
		}
		if !ok {
			damaged(line, record)
		} else if err := f(line, body); err != nil {
			return 0, fmt.Errorf("journal %s: line %d: %w", path, line, err)
		}
		size += int64(len(record)) + 1
		text = rest
	}
	return size, nil
}

// check returns the JSON of a record, and whether its checksum is right.
func check(record []byte) ([]byte, bool) {
	sum, body, ok := bytes.Cut(record, []byte(" "))
	return body, ok && string(sum) == checksum(body)
}

func checksum(body []byte) string { return fmt.Sprintf("%0*x", sumDigits, crc32.Checksum(body, table)) }

// anyRecord reports whether a valid record is in the text.
func anyRecord(text []byte) bool {
	for line := range bytes.Lines(text) {
		if record, whole := bytes.CutSuffix(line, []byte("\n")); whole {
			if _, ok := check(record); ok {
				return true
			}
		}
	}
	return false
}

// Open opens a journal to append to it behind the valid records. Read returned their size. What follows them is cut off.
func Open(path string, size int64) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{path: path, file: file, size: size}
	if err := j.cut(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: %w", err), file.Close())
	}
	return j, nil
}

// cut ends the file behind the valid records.
func (j *Journal) cut() error {
	if err := j.file.Truncate(j.size); err != nil {
		return err
	}
	_, err := j.file.Seek(j.size, io.SeekStart)
	return err
}

// Append writes a record, which is encoded as JSON. After an error the journal is as it was before. A record that cannot be
// decoded again, such as one that is nested too deep, is an error.
func (j *Journal) Append(record any) error {
	body, err := json.Marshal(record)
	if err == nil && !json.Valid(body) {
		err = errors.New("the record is nested too deep to be read again")
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	line := make([]byte, 0, len(body)+sumDigits+2)
	line = append(append(append(append(line, checksum(body)...), ' '), body...), '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(line); err != nil {
		return fmt.Errorf("journal: %w", errors.Join(err, j.cut()))
	}
	j.size += int64(len(line))
	return nil
}

// Size is the size of the records so far.
func (j *Journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// NewSuffix ends the name of the file that replaces a journal.
const NewSuffix = ".new"

// Drop removes the records at the beginning, up to a size that Size returned. The file is replaced as a whole.
func (j *Journal) Drop(size int64) (err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	rest, err := os.OpenFile(j.path+NewSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer func() {
		if err != nil {
			_ = rest.Close() // the error that counts is another
		}
	}()
	if _, err := io.Copy(rest, io.NewSectionReader(j.file, size, j.size-size)); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := os.Rename(rest.Name(), j.path); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	old := j.file
	j.file, j.size = rest, j.size-size
	if err := old.Close(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
