// Package byterange reads the ranges of bytes that clients of Azure Storage name, as bytes=FROM-TO and bytes=FROM-. Layer L2.
package byterange

import (
	"net/http"
	"strconv"
	"strings"
)

// Form is what Azure allows.
const Form = "bytes=FROM-TO"

// Of returns the range in the headers of a request, "" for none. Azure prefers its own header.
func Of(given http.Header) string {
	if text := given.Get("x-ms-range"); text != "" {
		return text
	}
	return given.Get("Range")
}

// Parse returns the first byte of a range, and the one after the last, below 0 for the end of the content.
func Parse(text string) (from, to int64, ok bool) {
	numbers, ok := strings.CutPrefix(text, "bytes=")
	first, last, dash := strings.Cut(numbers, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !ok || !dash || err != nil || from < 0 {
		return 0, 0, false
	}
	if last == "" {
		return from, -1, true
	}
	if to, err = strconv.ParseInt(last, 10, 64); err != nil || to < from {
		return 0, 0, false
	}
	return from, to + 1, true
}

// Within cuts a range to a size. It reports whether something is left.
func Within(from, to, size int64) (int64, bool) {
	if to < 0 || to > size {
		to = size
	}
	return to, from < size
}
