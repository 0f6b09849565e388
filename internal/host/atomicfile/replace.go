//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// replace replaces a file. The content reaches the disk before the file has its name, and then the directory with the name does.
func replace(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(mode))
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.CloseAtomicallyReplace() // it syncs the file
	}
	if err != nil {
		return errors.Join(err, f.Cleanup())
	}
	return syncDir(dir)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
