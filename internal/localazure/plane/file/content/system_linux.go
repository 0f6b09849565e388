package content

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"kaz/internal/localazure/plane/octets"
)

// attribute is the extended attribute with the properties that file systems do not have. It goes with a renamed file.
const attribute = "user.azure.file"

// ReadAttribute returns what WriteAttribute wrote, nil for nothing.
func ReadAttribute(f *os.File) ([]byte, error) {
	text := make([]byte, 64<<10)
	n, err := unix.Fgetxattr(int(f.Fd()), attribute, text)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return text[:n], nil
}

// WriteAttribute stores a text with a file or directory.
func WriteAttribute(f *os.File, text []byte) error {
	return unix.Fsetxattr(int(f.Fd()), attribute, text, 0)
}

// Clear makes a range of a file a hole.
func Clear(f *os.File, from, length int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from, length)
}

// Ranges returns the parts of a range of a file that are no holes.
func Ranges(f *os.File, within octets.Range) ([]octets.Range, error) {
	var all []octets.Range
	for at := within.From; at < within.To; {
		from, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // only a hole is left
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		to, err := unix.Seek(int(f.Fd()), from, unix.SEEK_HOLE)
		if err != nil {
			return nil, err
		}
		if from >= within.To {
			break
		}
		all = append(all, octets.Range{From: from, To: min(to, within.To)})
		at = to
	}
	return all, nil
}
