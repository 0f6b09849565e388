package latency_test

import (
	"fmt"
	"net/http"
	"testing"

	"kaz/internal/localazure/core/latency"
)

func TestRetryAfterFollowsTheLatency(t *testing.T) {
	for _, c := range []struct {
		factor float64
		azure  int
		want   string
	}{
		{1, 10, "10, ms "}, {0.25, 10, "3, ms "}, {0.01, 10, "1, ms 100"}, {0, 10, "1, ms 10"}, {0, 0, ", ms 10"}, {1, 0, ", ms "},
	} {
		h := http.Header{}
		latency.Model{Factor: latency.NewFactor(c.factor)}.RetryAfter(h, c.azure)
		if got := fmt.Sprintf("%s, ms %s", h.Get("Retry-After"), h.Get("retry-after-ms")); got != c.want {
			t.Errorf("factor %v of %d s: %s, want %s", c.factor, c.azure, got, c.want)
		}
	}
}
