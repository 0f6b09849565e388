// Package atomicfile writes files in one step: a reader, and the next start after a crash or a power failure, sees the old
// content or the new content. After a successful write it is the new one. Layer L4.
package atomicfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces the file at path. It creates the directory, readable by its owner only, if that is missing.
func Write(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return replace(path, data, mode)
}

// WriteJSON replaces the file at path with v as indented JSON, readable by its owner only.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return Write(path, append(data, '\n'), 0o600)
}

// WriteChanged is [Write] for a file that other programs watch: equal content leaves the file untouched.
func WriteChanged(path string, data []byte, mode os.FileMode) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return nil
	}
	return Write(path, data, mode)
}
