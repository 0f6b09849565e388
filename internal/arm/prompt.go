package arm

import (
	"context"
	"net/http"
	"strings"
	"time"

	"kaz/internal/azure"
)

// A pod waits for the end of some operations: its disks are attached. Such operations are polled often, and a poll
// does not wait for the answers of earlier polls. Most polls are answered within 0.2 s, but one in a hundred takes
// longer than a second.

// isPrompt reports whether a pod waits for the end of a request's operation. Such requests are not sent in turn: drivers of
// disks have always changed the disks of many instances of a scale set at once.
func (c call) isPrompt() bool {
	return c.method == http.MethodPost && strings.HasSuffix(c.op, " attachDetachDataDisks")
}

// promptPace is the time between two polls of an operation that a pod waits for. It depends on the time that the
// operation has taken and on its polls so far. Azure allows 45 polls of one operation and 15 more a minute. Few
// operations take longer than the first part (12 s). After that, the remaining polls are spread, with at least one
// poll for each that Azure adds.
func promptPace(took time.Duration, polls int) time.Duration {
	const often, first, part = 350 * time.Millisecond, 12 * time.Second, 14
	const burst, refill = 45, 4 * time.Second
	if took < first {
		return often
	}
	left := burst + int(took/refill) - polls
	return min(took/time.Duration(max(part, left)), refill)
}

// promptRate bounds the polls a second of all operations that pods wait for.
const promptRate = 20

// pollsAtOnce bounds the polls of one operation that wait for an answer.
const pollsAtOnce = 3

// waitPromptly polls until the operation ended, and returns its failure.
func (d *Client) waitPromptly(ctx context.Context, op *operation) error {
	d.prompt.Add(1)
	defer d.prompt.Add(-1)
	polls, end := context.WithCancel(ctx)
	defer end()
	type answer struct {
		reply   reply
		failure *azure.Error
	}
	answers := make(chan answer, pollsAtOnce)
	next := time.NewTimer(d.pace(op))
	defer next.Stop()
	for waiting, failures := 0, 0; ; {
		select {
		case <-ctx.Done():
			return interrupted(ctx, op.call)
		case <-next.C:
			if waiting < pollsAtOnce {
				waiting++
				poll := d.follow(op.call, op.poll, "poll")
				go func() {
					r, failure := d.send(polls, poll)
					answers <- answer{r, failure}
				}()
			}
			next.Reset(d.pace(op))
		case a := <-answers:
			waiting--
			if failure := d.take(op, a.reply, a.failure); failure != nil {
				if failures++; ctx.Err() != nil || failures >= unreadable {
					return d.lost(ctx, op, failure)
				}
				continue
			}
			failures = 0
			if done, err := op.ended(); done || err != nil {
				return err
			}
			if wait := retryAfter(op.last.header, time.Now()); wait > 0 {
				next.Reset(d.pace(op))
			}
		}
	}
}
