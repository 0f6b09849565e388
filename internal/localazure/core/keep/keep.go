// Package keep has what all directories of the local Azure need at a start: they are freed of what a killed process left, and
// files that cannot be read are set aside. Layer L2: the standard library only.
package keep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// UnreadableSuffix ends the name of a file that was set aside.
const UnreadableSuffix = ".unreadable"

// RemoveTemporary removes the files in a directory if their whole name matches. Other names, directories and links stay. A missing
// directory has none.
func RemoveTemporary(dir string, name *regexp.Regexp) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() && name.FindString(e.Name()) == e.Name() {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// SetAside renames a file that cannot be read, so that the next start does not try it again. It returns the new name.
func SetAside(file string) (string, error) {
	aside := file + UnreadableSuffix
	return aside, os.Rename(file, aside)
}
