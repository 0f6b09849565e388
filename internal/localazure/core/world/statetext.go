package world

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// encodeState writes a state as one JSON object with a line for each record. Indented records would grow with the depth to
// which they are nested.
func encodeState(w io.Writer, file stateFile) error {
	frame, err := json.Marshal(struct {
		stateFile
		Resources  any `json:"resources,omitempty"`
		Operations any `json:"operations,omitempty"`
	}{stateFile: file})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	_, err = out.Write(frame[:len(frame)-1])
	err = errors.Join(err, encodeRecords(out, "resources", file.Resources), encodeRecords(out, "operations", file.Operations))
	if err != nil {
		return err
	}
	if _, err := out.WriteString("\n}\n"); err != nil {
		return err
	}
	return out.Flush()
}

// encodeRecords writes an array of a state.
func encodeRecords[R any](out *bufio.Writer, name string, records []R) error {
	encoder := json.NewEncoder(out) // it ends each record with the end of a line
	encoder.SetEscapeHTML(false)
	separator := fmt.Sprintf(",\n%q: [\n", name)
	for _, r := range records {
		if _, err := out.WriteString(separator); err != nil {
			return err
		}
		if err := encoder.Encode(r); err != nil {
			return err
		}
		separator = ","
	}
	if len(records) == 0 {
		separator += "]"
	} else {
		separator = "]"
	}
	_, err := out.WriteString(separator)
	return err
}

// decodeState reads a state. Records that cannot be decoded are returned apart: one that is nested too deep does not keep the
// others from being read.
func decodeState(text []byte) (file stateFile, lost []lostRecord, err error) {
	frame, records, err := splitState(text)
	if err == nil {
		err = json.Unmarshal(frame, &file)
	}
	if err != nil {
		return file, nil, fmt.Errorf("state of the local Azure: not a state file: %w", err)
	}
	if file.Format != stateFormat {
		return file, nil, fmt.Errorf("state of the local Azure: format %q: want %q", file.Format, stateFormat)
	}
	file.Resources, lost = decodeRecords[savedResource]("resource", records["resources"], lost)
	file.Operations, lost = decodeRecords[savedOp]("operation", records["operations"], lost)
	return file, lost, nil
}

func decodeRecords[R any](what string, texts [][]byte, lost []lostRecord) (all []R, _ []lostRecord) {
	for i, text := range texts {
		var r R
		if err := json.Unmarshal(text, &r); err != nil {
			where := fmt.Sprintf("%s %d of the state file: %s", what, i+1, recordID.Find(text))
			lost = append(lost, lostRecord{What: where, Error: where + ": " + err.Error(), Record: text})
			continue
		}
		all = append(all, r)
	}
	return all, lost
}

// recordID finds the id of a record that cannot be decoded.
var recordID = regexp.MustCompile(`"id": *"[^"]*"`)

// splitState takes the objects out of the arrays at the top of a JSON object. It returns the text without them, and the objects
// by the names of their arrays. It does not decode, so the depth of an object does not matter.
func splitState(text []byte) (frame []byte, records map[string][][]byte, err error) {
	s := splitter{text: text, records: map[string][][]byte{}}
	for s.at < len(text) {
		if s.quoted {
			s.quotedByte()
		} else {
			s.plainByte()
		}
		s.at++
	}
	if s.depth != 0 || s.quoted {
		return nil, nil, io.ErrUnexpectedEOF
	}
	return s.frame, s.records, nil
}

// splitter is splitState on its way through the text.
type splitter struct {
	text    []byte
	at      int
	depth   int  // of objects and arrays
	quoted  bool // inside of a string
	array   bool // the value at depth 2 is an array
	begin   int  // of the last string, or of the object
	name    string
	frame   []byte
	records map[string][][]byte
}

// inRecords reports whether the byte is behind the bracket of an array of records.
func (s *splitter) inRecords() bool { return s.depth > 2 || s.depth == 2 && s.array }

func (s *splitter) keep() {
	if !s.inRecords() {
		s.frame = append(s.frame, s.text[s.at])
	}
}

func (s *splitter) quotedByte() {
	s.keep()
	switch s.text[s.at] {
	case '\\':
		s.at++
		if s.at < len(s.text) {
			s.keep()
		}
	case '"':
		s.quoted = false
		if s.depth == 1 {
			s.name = string(s.text[s.begin+1 : s.at])
		}
	}
}

func (s *splitter) plainByte() {
	switch c := s.text[s.at]; c {
	case '"':
		s.quoted = true
		if s.depth == 1 {
			s.begin = s.at
		}
		s.keep()
	case '{', '[':
		s.keep()
		s.depth++
		switch {
		case s.depth == 2:
			s.array = c == '['
		case s.depth == 3 && s.array:
			s.begin = s.at
		}
	case '}', ']':
		if s.depth == 3 && s.array {
			s.records[s.name] = append(s.records[s.name], s.text[s.begin:s.at+1])
		}
		s.depth--
		s.keep()
	default:
		s.keep()
	}
}
