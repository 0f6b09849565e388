package arm

import (
	"context"
	"net/http"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// A pod waits for the end of some operations: its disks are attached. Such operations are polled when they are likely to end,
// and a poll does not wait for the answers of earlier polls. Most polls are answered within 0.2 s, but one in a hundred takes
// longer than a second.

// isPrompt reports whether a pod waits for the end of a request's operation. Such requests are not sent in turn: drivers of
// disks have always changed the disks of many instances of a scale set at once.
func (c call) isPrompt() bool {
	return c.method == http.MethodPost && strings.HasSuffix(c.op, " attachDetachDataDisks")
}

// Half of the recorded changes of data disks took longer than these times: of a virtual machine, and of an instance of a
// Uniform scale set. Few took less than half as long.
const (
	machineMedian  = 7200 * time.Millisecond
	instanceMedian = 15 * time.Second
)

// promptPace is the time between two polls of an operation that a pod waits for. took is the time that the operation has
// taken. The first poll comes soon: a few operations take half a second. Polls are rare while few operations are over, and
// closest between three quarters of the usual time and twice that time, when most of them end. Azure allows 45 polls of one
// operation and 15 more a minute; this takes less.
func promptPace(median, took time.Duration) time.Duration {
	const first, rare, closest, refill = 500 * time.Millisecond, time.Second, 400 * time.Millisecond, 4 * time.Second
	switch {
	case took < first:
		return first
	case took < median/2:
		return min(rare, max(median/2-took, closest))
	case took < median*3/4:
		return min(rare, took/8)
	case took < 2*median:
		return max(took/24, closest)
	}
	return min(took/16, refill)
}

// promptMedian returns how long half of the operations of a request take.
func (c call) promptMedian() time.Duration {
	if c.id.Parent().Is(compute.ScaleSets) {
		return instanceMedian
	}
	return machineMedian
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
