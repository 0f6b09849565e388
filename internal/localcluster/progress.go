package localcluster

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints the steps of a start and their durations.
type progress struct {
	mu  sync.Mutex
	out io.Writer
	now func() time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, now: time.Now} }

// begin begins a step. The returned function prints the name and the duration of the step.
func (p *progress) begin(what string) func() {
	start := p.now()
	return func() { p.say("%s: %s", what, short(p.now().Sub(start))) }
}

// say prints a line.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A closed terminal does not stop the cluster.
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// short returns a duration rounded for reading.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}
