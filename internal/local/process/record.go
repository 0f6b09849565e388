package process

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// OwnerName is the record of the program that holds a directory.
const OwnerName = "owner"

// Record says which process runs under a name. It is kept as a file so that another program can find the process.
type Record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Boot and Started tell this process from a later one with the same pid: the kernel's boot id and the clock ticks
	// from that boot to the start of the process.
	Boot    string `json:"boot"`
	Started uint64 `json:"started"`
	// Order is the place in the order of starting, from 1. The owner has 0.
	Order   int    `json:"order"`
	Path    string `json:"path,omitempty"`
	LogFile string `json:"logFile,omitempty"`
}

// Alive reports whether exactly this process still runs.
func (r Record) Alive() bool {
	boot, started, err := identify(r.PID)
	return err == nil && boot == r.Boot && started == r.Started
}

func runDir(dir string) string { return filepath.Join(dir, "run") }

func recordFile(dir, name string) string { return filepath.Join(runDir(dir), name+".json") }

// writeRecord replaces the record of r.Name in one step, so that a reader never sees half of it.
func writeRecord(dir string, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record process %s: %w", r.Name, err)
	}
	if err := os.MkdirAll(runDir(dir), 0o700); err != nil {
		return fmt.Errorf("record process %s: %w", r.Name, err)
	}
	file := recordFile(dir, r.Name)
	if err := os.WriteFile(file+".new", append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("record process %s: %w", r.Name, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return fmt.Errorf("record process %s: %w", r.Name, err)
	}
	return nil
}

// removeRecord forgets a process, but only if the record is still the one of that process.
func removeRecord(dir string, r Record) {
	if kept, err := readRecord(recordFile(dir, r.Name)); err == nil && kept.PID == r.PID && kept.Started == r.Started {
		_ = os.Remove(recordFile(dir, r.Name))
	}
}

func readRecord(file string) (Record, error) {
	var r Record
	data, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("read process record: %w", err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read process record %s: %w", file, err)
	}
	if r.PID <= 1 {
		return r, fmt.Errorf("read process record %s: pid %d: want a number above 1", file, r.PID)
	}
	return r, nil
}

// Recorded lists the processes on record in dir, running or not, in the order they were started. The program that owns
// the directory is not among them: see [Owner].
func Recorded(dir string) ([]Record, error) {
	entries, err := os.ReadDir(runDir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list process records: %w", err)
	}
	var records []Record
	var problems []error
	for _, e := range entries {
		name, isRecord := strings.CutSuffix(e.Name(), ".json")
		if !isRecord || name == OwnerName {
			continue
		}
		r, err := readRecord(filepath.Join(runDir(dir), e.Name()))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name, b.Name))
	})
	return records, errors.Join(problems...)
}

// Owner returns the running program that holds dir open, if there is one.
func Owner(dir string) (Record, bool) {
	r, err := readRecord(recordFile(dir, OwnerName))
	return r, err == nil && r.Alive()
}
