package engine

import (
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/record"
)

// progress is how far a change has come in this process.
type progress struct {
	began   time.Time // when the change began, maybe in another process
	pace    change.Pace
	planned []change.Step // those that are left, as far as they are known
}

func (e *Engine) newProgress(r record.Change) *progress {
	began, err := time.Parse(time.RFC3339, r.Began)
	if err != nil {
		began = e.Clock() // it is for people only
	}
	return &progress{began: began}
}

// next returns the text about a step that begins.
func (p *progress) next(c change.Cluster, t change.Target, s change.Step, now time.Time) string {
	if len(p.planned) == 0 || p.planned[0].String() != s.String() {
		all, err := change.Plan(c, t)
		if err != nil { // a later step is not safe as far as is known now
			p.planned = nil
			return s.String()
		}
		p.planned = all
	}
	return s.String() + " (" + p.pace.Text(p.planned, now.Sub(p.began)) + ")"
}

// done counts a step that has ended.
func (p *progress) done(s change.Step, took time.Duration) {
	p.pace.Took(s.Action, took)
	if len(p.planned) > 0 {
		p.planned = p.planned[1:]
	}
}
