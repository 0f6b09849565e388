package latency_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/random"
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

// Replies come before Azure Resource Manager would answer itself, however seldom a draw is beyond.
func TestRepliesHaveAnEnd(t *testing.T) {
	table, err := catalog.ReadLatencies()
	if err != nil {
		t.Fatal(err)
	}
	sets := &kind.Kind{Type: &behaviour.Type{Name: "Microsoft.Compute/virtualMachineScaleSets"}}
	for _, factor := range []float64{1, 0.1} {
		m := latency.Model{Factor: latency.NewFactor(factor), Table: table, Random: random.New(1)}
		longest := time.Duration(0)
		for range 100_000 {
			longest = max(longest, m.Reply(sets, behaviour.Patch))
		}
		if want := time.Duration(factor * float64(55*time.Second)); longest != want {
			t.Errorf("factor %v: the longest reply takes %s, want %s", factor, longest, want)
		}
	}
}
