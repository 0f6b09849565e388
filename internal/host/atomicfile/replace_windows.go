package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
)

// replace replaces a file. The content reaches the disk before the file has its name. Windows has no call for the directory.
func replace(path string, data []byte, _ os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
