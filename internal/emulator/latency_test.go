package emulator

import (
	"fmt"
	"net/http"
	"testing"
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
		latency{factor: c.factor}.retryAfter(h, c.azure)
		if got := fmt.Sprintf("%s, ms %s", h.Get("Retry-After"), h.Get("retry-after-ms")); got != c.want {
			t.Errorf("factor %v of %d s: %s, want %s", c.factor, c.azure, got, c.want)
		}
	}
}

func TestParseLatency(t *testing.T) {
	for text, want := range map[string]float64{"off": 0, "": 0, "azure": 1, "0.1": 0.1, "2": 2} {
		if got, err := ParseLatency(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"slow", "-1", "NaN", "Inf"} {
		if _, err := ParseLatency(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
