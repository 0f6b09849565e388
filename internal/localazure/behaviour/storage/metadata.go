package storage

import (
	"net/http"
	"strings"
	"unicode"

	"kaz/internal/localazure/behaviour"
)

// mostMetadata is how many bytes the names and values of metadata may have, as Azure documents it.
const mostMetadata = 8 << 10

// CheckMetadata refuses metadata in the headers of a request that is too large, and stored headers with other characters than
// ASCII. Files in JSON could not keep these.
func CheckMetadata(given http.Header) error {
	const prefix = "x-ms-meta-"
	size := 0
	for header, values := range given {
		lower, value := strings.ToLower(header), strings.Join(values, ",")
		meta := strings.HasPrefix(lower, prefix)
		switch {
		case meta && !isASCII(header+value):
			return behaviour.Refusal(http.StatusBadRequest, "InvalidMetadata",
				"The metadata specified is invalid. It has characters that are not permitted: %s is %q.", header, value)
		case meta:
			size += len(header) - len(prefix) + len(value)
		case (strings.HasPrefix(lower, "content-") || lower == "cache-control" || strings.HasPrefix(lower, "x-ms-")) && !isASCII(value):
			return behaviour.Refusal(http.StatusBadRequest, "InvalidHeaderValue",
				"The value for one of the HTTP headers is not in the correct format: %s is %q, want ASCII.", header, value)
		}
	}
	if size > mostMetadata {
		return behaviour.Refusal(http.StatusBadRequest, "MetadataTooLarge",
			"The size of the specified metadata exceeds the maximum size permitted: it has %d bytes, at most %d are allowed.", size,
			mostMetadata)
	}
	return nil
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}
