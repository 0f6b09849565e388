// Package latency says how long requests and operations of the local Azure take: as
// on Azure, times a factor. Layer L2: behaviour, kind, catalog.
package latency

import (
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/random"
)

// Model says how long requests and operations take.
type Model struct {
	// Factor is 0 for no time, 1 for as long as on Azure. Nil is 0.
	Factor *Factor
	// Table has the spans, as medians with their spread.
	Table *catalog.Latencies
	// Random draws from the spans.
	Random *random.Source
}

// Factor is a number that may change while it is read.
type Factor struct{ bits atomic.Uint64 }

// NewFactor returns a factor.
func NewFactor(value float64) *Factor {
	f := &Factor{}
	f.Set(value)
	return f
}

// Set changes the factor. Requests and operations that have begun keep theirs.
func (f *Factor) Set(value float64) { f.bits.Store(math.Float64bits(value)) }

// Value returns the factor.
func (f *Factor) Value() float64 {
	if f == nil {
		return 0
	}
	return math.Float64frombits(f.bits.Load())
}

// Row is the row of the table for a verb of a type.
func (l Model) Row(k *kind.Kind, v behaviour.Verb) catalog.Latency {
	name := k.Name
	if k.Latency != "" {
		name = k.Latency
	}
	if verb := k.Actions[string(v)].Latency; verb != "" {
		return l.Table.Of(name, verb)
	}
	return l.Table.Of(name, string(v))
}

func (l Model) draw(s catalog.Span) time.Duration {
	return time.Duration(l.Factor.Value() * float64(s.Draw(l.Random.Normal())))
}

// longestReply is behind all recorded replies. Azure Resource Manager waits 60 s for that of a provider, and then answers itself, as its
// contract with providers says. The draw has no end.
const longestReply = 55 * time.Second

// Reply is how long the reply to a request takes.
func (l Model) Reply(k *kind.Kind, v behaviour.Verb) time.Duration {
	if l.Factor.Value() == 0 {
		return 0
	}
	return min(l.draw(l.Row(k, v).Reply), time.Duration(l.Factor.Value()*float64(longestReply)))
}

// Operation is how long the operation takes after the reply.
func (l Model) Operation(k *kind.Kind, v behaviour.Verb) time.Duration {
	if l.Factor.Value() == 0 {
		return 0
	}
	return l.draw(l.Row(k, v).Operation)
}

// Plain is how long a request takes that is for no resource type.
func (l Model) Plain(verb string) time.Duration {
	if l.Factor.Value() == 0 {
		return 0
	}
	return l.draw(l.Table.Of("", verb).Reply)
}

// RetryAfter sets Retry-After as Azure does, shortened by the same factor as operations. The shortest value of this header
// is one second. For a shorter time RetryAfter also sets retry-after-ms, a header in milliseconds that clients of the
// official SDK prefer. Without latency the operation ends before the first poll, so every reply asks the client to poll at
// once.
func (l Model) RetryAfter(h http.Header, azure int) {
	const atOnce = 10
	factor := l.Factor.Value()
	wait := factor * float64(azure)
	switch {
	case factor == 0:
		h.Set("retry-after-ms", strconv.Itoa(atOnce))
	case wait > 0 && wait < 1:
		h.Set("retry-after-ms", strconv.Itoa(max(atOnce, int(wait*1000))))
	}
	if azure > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait)))))
	}
}
