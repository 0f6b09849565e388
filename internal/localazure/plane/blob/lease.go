package blob

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/behaviour/storage/lease"
	"kaz/internal/localazure/plane/account"
)

// showLease writes the headers about a lease.
func showLease(h http.Header, l lease.Lease, now time.Time) {
	h.Set("x-ms-lease-status", l.Status(now))
	h.Set("x-ms-lease-state", string(l.State(now)))
	if duration := l.Duration(now); duration != "" {
		h.Set("x-ms-lease-duration", duration)
	}
}

// leaseID returns the ID of a lease in a header, "" if the header is not there and not required.
func leaseID(h http.Header, name string, required bool) (string, error) {
	text := h.Get(name)
	if text == "" {
		if required {
			return "", account.MissingHeader(name)
		}
		return "", nil
	}
	id, ok := lease.ID(text)
	if !ok {
		return "", account.InvalidHeader(name, text, "a GUID")
	}
	return id, nil
}

// leaseReplies are the actions on a lease, with the statuses of their replies.
var leaseReplies = map[string]int{
	"acquire": http.StatusCreated, "renew": http.StatusOK, "change": http.StatusOK, "release": http.StatusOK, "break": http.StatusAccepted,
}

// leaseRequest returns what the headers of a request ask for.
func (c *call) leaseRequest() (r lease.Request, err error) {
	h := c.r.Header
	r.Action = strings.ToLower(h.Get("x-ms-lease-action"))
	switch {
	case r.Action == "":
		return r, account.MissingHeader("x-ms-lease-action")
	case leaseReplies[r.Action] == 0:
		return r, account.InvalidHeader("x-ms-lease-action", r.Action, "acquire, renew, change, release or break")
	}
	holder := r.Action == "renew" || r.Action == "change" || r.Action == "release"
	if r.ID, err = leaseID(h, "x-ms-lease-id", holder); err != nil {
		return r, err
	}
	if r.Proposed, err = leaseID(h, "x-ms-proposed-lease-id", r.Action == "change"); err != nil {
		return r, err
	}
	err = c.leaseTimes(&r)
	return r, err
}

// leaseTimes reads the duration of an acquired lease and the period of a broken one.
func (c *call) leaseTimes(r *lease.Request) (err error) {
	const duration, period = "x-ms-lease-duration", "x-ms-lease-break-period"
	switch {
	case r.Action == "acquire":
		r.Seconds, err = seconds(c.r.Header, duration, "-1, or 15 to 60", lease.ValidDuration)
		if r.Proposed == "" {
			r.Proposed = c.guid()
		}
	case r.Action == "break" && c.r.Header.Get(period) != "":
		var given int
		given, err = seconds(c.r.Header, period, "0 to 60", lease.ValidBreak)
		r.Break = &given
	}
	return err
}

func seconds(h http.Header, name, want string, valid func(int) bool) (int, error) {
	text := h.Get(name)
	if text == "" {
		return 0, account.MissingHeader(name)
	}
	n, err := strconv.Atoi(text)
	if err != nil || !valid(n) {
		return 0, account.InvalidHeader(name, text, want)
	}
	return n, nil
}

// guid draws a GUID from the source of the local Azure.
func (c *call) guid() (id string) {
	_ = c.service.Azure.Do(func(w behaviour.World) error { id = w.GUID(); return nil }) // it returns no error
	return id
}

// leaseBlob does an action on the lease of a blob, which leaves its etag as it is.
func (c blobCall) leaseBlob() error {
	r, err := c.leaseRequest()
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	b, err := c.find(leases)
	if err != nil {
		return err
	}
	if b.Lease, err = b.Lease.Act(lease.Blob, r, c.now); err != nil {
		return err
	}
	if err := c.service.kept.Keep(c.key(), b); err != nil {
		return err
	}
	stamp(c.w, b)
	c.leased(r, b.Lease)
	return nil
}

// leaseContainer does an action on the lease of a container.
func (c containerCall) leaseContainer() error {
	r, err := c.leaseRequest()
	if err != nil {
		return err
	}
	var after lease.Lease
	err = c.service.Azure.Do(func(w behaviour.World) error {
		doc, there := w.Get(c.container)
		if !there {
			return noContainer()
		}
		var refused error
		if after, refused = storage.LeaseOf(doc).Act(lease.Container, r, c.now); refused != nil {
			return refused
		}
		w.Edit(c.container, func(doc behaviour.Object) { storage.SetLease(doc, after) })
		return nil
	})
	if err != nil {
		return err
	}
	c.containerHeaders()
	c.leased(r, after)
	return nil
}

// leased answers an action on a lease.
func (c *call) leased(r lease.Request, l lease.Lease) {
	switch r.Action {
	case "break":
		c.w.Header().Set("x-ms-lease-time", strconv.Itoa(l.Remaining(c.now)))
	case "release":
	default:
		c.w.Header().Set("x-ms-lease-id", l.ID)
	}
	c.w.WriteHeader(leaseReplies[r.Action])
}
