package local

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
)

// checkImage says what keeps a file from being an archive with images: containerd would
// say it in each machine, when it is too late.
func checkImage(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	archive := tar.NewReader(f)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("it is no archive of images: neither index.json nor manifest.json is in it")
		}
		if err != nil {
			return fmt.Errorf("it is no archive (tar) of images: %w", err)
		}
		switch h.Name {
		case "index.json", "./index.json", "manifest.json", "./manifest.json":
			return nil
		}
	}
}
