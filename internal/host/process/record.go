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

	"kaz/internal/host/atomicfile"
)

// OwnerName is the record of the program that holds a directory.
const OwnerName = "owner"

// Record identifies the process with a name. It is stored in a file, by which other programs find the process.
type Record struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	// Boot and Started distinguish this process from a later process with the same pid. Boot is the kernel's boot id.
	// Started is the number of clock ticks from that boot to the start of the process.
	Boot    string `json:"boot"`
	Started uint64 `json:"started"`
	// Order is the position in the order of starts, from 1. The owner has 0.
	Order   int    `json:"order"`
	Path    string `json:"path,omitempty"`
	LogFile string `json:"logFile,omitempty"`
}

// Alive reports whether this process still runs.
func (r Record) Alive() bool {
	boot, started, err := identify(r.PID)
	return err == nil && boot == r.Boot && started == r.Started
}

func runDir(dir string) string { return filepath.Join(dir, "run") }

func recordFile(dir, name string) string { return filepath.Join(runDir(dir), name+".json") }

// writeRecord replaces the record of r.Name.
func writeRecord(dir string, r Record) error {
	if err := atomicfile.WriteJSON(recordFile(dir, r.Name), r); err != nil {
		return fmt.Errorf("record process %s: %w", r.Name, err)
	}
	return nil
}

// removeRecord removes the record of a process, unless another process has that record now.
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

// Recorded returns the records in dir, of running and ended processes, in the order of their start. It omits the program
// that owns the directory: see [Owner].
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

// Owner returns the running program that holds dir, false for none.
func Owner(dir string) (Record, bool) {
	r, err := readRecord(recordFile(dir, OwnerName))
	return r, err == nil && r.Alive()
}
