package local

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells a person what is being done and how long it took.
type progress struct {
	mu  sync.Mutex
	out io.Writer
	now func() time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, now: time.Now} }

// begin names a step; the function it returns says that the step is done.
func (p *progress) begin(what string) func() {
	start := p.now()
	return func() { p.say("%s: %s", what, short(p.now().Sub(start))) }
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// A terminal that has gone away is no reason to stop.
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}

// short is a duration as a person wants to read it.
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
