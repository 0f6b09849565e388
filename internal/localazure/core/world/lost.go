package world

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// lostRecord is a record of a state or a journal that cannot be restored, and why.
type lostRecord struct {
	What   string // and where it was
	Error  string
	Record []byte
}

// newLostRecord is the record of a resource or an operation that was decoded.
func newLostRecord(what string, record any, err error) lostRecord {
	text, marshalErr := json.Marshal(record)
	if marshalErr != nil {
		text = fmt.Append(nil, record)
	}
	return lostRecord{What: what, Error: err.Error(), Record: text}
}

// firstLost is an error if there is an unreadable record.
func firstLost(all []lostRecord) error {
	if len(all) == 0 {
		return nil
	}
	return errors.New(all[0].Error)
}

// asideOf is the file beside a state file that receives unreadable records.
func asideOf(path string) string {
	return strings.TrimSuffix(path, filepath.Ext(path)) + "-unreadable.jsonl"
}

// setAside appends unreadable records to the file beside a state file, a line for each.
func setAside(path string, all []lostRecord) (err error) {
	if len(all) == 0 {
		return nil
	}
	f, err := os.OpenFile(asideOf(path), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("set unreadable records aside: %w", err)
	}
	encoder := json.NewEncoder(f)
	for _, u := range all {
		// The record is a string of the line: as an object it would make the line unreadable, too.
		line := struct{ What, Error, Record string }{u.What, u.Error, string(u.Record)}
		err = errors.Join(err, encoder.Encode(line))
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("set unreadable records aside: %w", err)
	}
	return nil
}
