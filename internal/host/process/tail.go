package process

import (
	"io"
	"os"
	"strings"
)

// tailBytes bounds the bytes that tail reads from the end of a log.
const tailBytes = 16 << 10

// tail returns the last lines of a file behind an offset.
func tail(file string, from int64, lines int) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.NewSectionReader(f, max(from, info.Size()-tailBytes), tailBytes))
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
