package emulator

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// latency says how long requests and operations take: as on Azure times factor.
type latency struct {
	factor float64
	table  *catalog.Latencies
	random *random
}

// ParseLatency reads "off", "azure" or a factor such as "0.1", and returns the
// factor.
func ParseLatency(s string) (float64, error) {
	switch s {
	case "off", "":
		return 0, nil
	case "azure":
		return 1, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, fmt.Errorf("latency %q: want off, azure or a factor such as 0.1", s)
	}
	return f, nil
}

func (l latency) row(k *kind, v behaviour.Verb) catalog.Latency {
	name := k.Name
	if k.Latency != "" {
		name = k.Latency
	}
	if verb := k.Actions[string(v)].Latency; verb != "" {
		return l.table.Of(name, verb)
	}
	return l.table.Of(name, string(v))
}

func (l latency) draw(s catalog.Span) time.Duration {
	return time.Duration(l.factor * float64(s.Draw(l.random.normal())))
}

// reply is how long the reply to a request takes.
func (l latency) reply(k *kind, v behaviour.Verb) time.Duration {
	if l.factor == 0 {
		return 0
	}
	return l.draw(l.row(k, v).Reply)
}

// operation is how long the operation takes after the reply.
func (l latency) operation(k *kind, v behaviour.Verb) time.Duration {
	if l.factor == 0 {
		return 0
	}
	return l.draw(l.row(k, v).Operation)
}

// plain is how long a request takes that is for no resource type.
func (l latency) plain(verb string) time.Duration {
	if l.factor == 0 {
		return 0
	}
	return l.draw(l.table.Of("", verb).Reply)
}

// retryAfter sets Retry-After as Azure does, shortened as operations are. Where that
// would be less than the second that the header can say, a header in milliseconds,
// which clients of the official SDK prefer, says it. Without latency the operation
// has ended at the first poll, so that every reply asks for one at once.
func (l latency) retryAfter(h http.Header, azure int) {
	const atOnce = 10
	wait := l.factor * float64(azure)
	switch {
	case l.factor == 0:
		h.Set("retry-after-ms", strconv.Itoa(atOnce))
	case wait > 0 && wait < 1:
		h.Set("retry-after-ms", strconv.Itoa(max(atOnce, int(wait*1000))))
	}
	if azure > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait)))))
	}
}

// sleep waits, but no longer than the client does.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
