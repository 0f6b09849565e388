package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
)

// CheckArchive returns an error if a file is not an archive with images. The check spares a failure later, in each
// machine, when containerd imports the file.
func CheckArchive(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	archive := tar.NewReader(f)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("not an archive of images: it has neither index.json nor manifest.json")
		}
		if err != nil {
			return fmt.Errorf("not an archive (tar) of images: %w", err)
		}
		switch h.Name {
		case "index.json", "./index.json", "manifest.json", "./manifest.json":
			return nil
		}
	}
}
