package arm

import (
	"context"
	"net/http"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

// For some types, Azure wants the first poll soon, when most operations are over, and the next poll much later. For
// security groups, these are after 3 and then 10 seconds. One operation in ten would be seen to have ended ten
// seconds late, and all its callers would wait. The resource shows its state too, and reading it is a read like any
// other. So the client also reads the resource between two polls, at growing intervals.

const (
	// lateWait is how much longer than the first wait a later wait has to be.
	lateWait = 5 * time.Second
	// firstRead is the time from a poll to the first read, and readsAtMost bounds the reads in one wait.
	firstRead   = time.Second
	readsAtMost = 4
)

// isLate reports whether the resource is to be read before the next poll. The read must be able to tell the new
// document from the one before, which takes a precondition. Compute is left out, because it counts the reads of each
// resource.
func (op *operation) isLate(wait time.Duration) bool {
	return op.form == inStatus && op.call.method == http.MethodPut && !op.call.subject.CountsEach &&
		wait >= op.first+lateWait && (op.call.header.Get("If-Match") != "" || op.call.header.Get("If-None-Match") != "")
}

// watch waits for the next poll, and reads the resource meanwhile.
func (d *Client) watch(ctx context.Context, op *operation, wait time.Duration) (ended bool, err error) {
	poll := time.Now().Add(wait)
	for look := range readsAtMost {
		step := firstRead << look
		if time.Until(poll) <= step {
			break
		}
		if err := pause.For(ctx, step); err != nil {
			return false, err
		}
		if d.shows(ctx, op) {
			return true, nil
		}
	}
	return false, pause.For(ctx, time.Until(poll))
}

// shows reads the resource and reports whether what was written is in force. If the read does not show it, the next
// poll does.
func (d *Client) shows(ctx context.Context, op *operation) bool {
	c := d.follow(op.call, op.call.url, "get")
	c.document = true
	r, failure := d.send(ctx, c)
	if failure != nil || !strings.EqualFold(provisioningState(r.body), "Succeeded") {
		return false
	}
	if before := op.call.header.Get("If-Match"); before != "" && azure.Document(r.body).Etag() == before {
		return false // an old answer
	}
	op.form, op.last = inResource, r
	return true
}
