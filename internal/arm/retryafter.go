package arm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestWait is the most that is believed of a Retry-After.
const longestWait = 24 * time.Hour

// retryAfter reads how long Azure asks to wait: milliseconds in either of its own
// headers, else Retry-After in seconds or as a date. Zero means that it does not
// say.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, name := range []string{"Retry-After-Ms", "X-Ms-Retry-After-Ms"} {
		if d := number(h.Get(name), time.Millisecond); d > 0 {
			return d
		}
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if d := number(value, time.Second); d > 0 {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), longestWait)
	}
	return 0
}

// number reads a count of units, 0 for anything else.
func number(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	if n > int64(longestWait/unit) {
		return longestWait
	}
	return time.Duration(n) * unit
}
