package storage

import (
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage/lease"
)

// leaseField is the field of a container or share with its lease.
const leaseField = behaviour.Private + "lease"

// LeaseOf returns the lease of a container or share.
func LeaseOf(doc behaviour.Object) lease.Lease {
	seconds, _ := behaviour.Int(doc, leaseField+".seconds")
	ends, err := time.Parse(time.RFC3339Nano, behaviour.Text(doc, leaseField+".ends"))
	if err != nil {
		ends = time.Time{}
	}
	return lease.Lease{ID: behaviour.Text(doc, leaseField+".id"), Seconds: seconds, Ends: ends,
		Breaks: behaviour.Bool(doc, leaseField+".breaks")}
}

// SetLease writes the lease of a container or share.
func SetLease(doc behaviour.Object, l lease.Lease) {
	if l.ID == "" {
		delete(doc, leaseField)
		return
	}
	kept := behaviour.Object{"id": l.ID, "seconds": l.Seconds, "breaks": l.Breaks}
	if !l.Ends.IsZero() {
		kept["ends"] = l.Ends.UTC().Format(time.RFC3339Nano)
	}
	doc[leaseField] = kept
}

// showLease shows a lease in the properties of a container or share. spell turns a word such as "locked" into the word of the type.
func showLease(view behaviour.Object, l lease.Lease, now time.Time, spell func(string) string) {
	behaviour.Set(view, "properties.leaseStatus", spell(l.Status(now)))
	behaviour.Set(view, "properties.leaseState", spell(string(l.State(now))))
	if duration := l.Duration(now); duration != "" {
		behaviour.Set(view, "properties.leaseDuration", spell(duration))
	}
}

func capitalised(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func asIs(word string) string { return word }

// leaseAction returns the action that acquires, renews, changes, releases and breaks the lease of a container or share.
func leaseAction(of lease.Resource) behaviour.Action {
	return behaviour.Action{Do: func(c *behaviour.Call) (any, error) {
		r, err := leaseRequest(c)
		if err != nil {
			return nil, err
		}
		was := LeaseOf(c.Doc)
		now, err := was.Act(of, r, c.Now())
		if err != nil {
			return nil, err
		}
		SetLease(c.Doc, now)
		switch r.Action {
		case "break":
			return behaviour.Object{"leaseTimeSeconds": strconv.Itoa(now.Remaining(c.Now()))}, nil
		case "release":
			return behaviour.Object{"leaseId": was.ID}, nil
		}
		return behaviour.Object{"leaseId": now.ID}, nil
	}}
}

// leaseNeeds are the fields that each action needs.
var leaseNeeds = map[string][]string{
	"acquire": {"leaseDuration"}, "renew": {"leaseId"}, "change": {"leaseId", "proposedLeaseId"}, "release": {"leaseId"}, "break": {},
}

// leaseRequest returns what the body of a request asks for.
func leaseRequest(c *behaviour.Call) (lease.Request, error) {
	r := lease.Request{Action: strings.ToLower(behaviour.Text(c.Body, "action"))}
	needs, known := leaseNeeds[r.Action]
	if !known {
		return r, invalidLease(c, "action")
	}
	for _, field := range needs {
		if behaviour.At(c.Body, field) == nil {
			return r, behaviour.Invalid("MissingRequiredProperty", "A required property is missing: %s.", field)
		}
	}
	for field, into := range map[string]*string{"leaseId": &r.ID, "proposedLeaseId": &r.Proposed} {
		if behaviour.At(c.Body, field) == nil {
			continue
		}
		id, ok := lease.ID(behaviour.Text(c.Body, field))
		if !ok {
			return r, invalidLease(c, field)
		}
		*into = id
	}
	err := leaseTimes(c, &r)
	return r, err
}

// leaseTimes reads the duration of an acquired lease and the period of a broken one.
func leaseTimes(c *behaviour.Call, r *lease.Request) error {
	switch r.Action {
	case "acquire":
		seconds, ok := behaviour.Int(c.Body, "leaseDuration")
		if !ok || !lease.ValidDuration(seconds) {
			return invalidLease(c, "leaseDuration")
		}
		r.Seconds = seconds
		if r.Proposed == "" {
			r.Proposed = c.GUID()
		}
	case "break":
		if behaviour.At(c.Body, "breakPeriod") == nil {
			return nil
		}
		seconds, ok := behaviour.Int(c.Body, "breakPeriod")
		if !ok || !lease.ValidBreak(seconds) {
			return invalidLease(c, "breakPeriod")
		}
		r.Break = &seconds
	}
	return nil
}

func invalidLease(c *behaviour.Call, field string) error {
	return behaviour.Invalid("InvalidRequestPropertyValue", "The value '%v' is not allowed for property %s.",
		behaviour.At(c.Body, field), field)
}

// refuseLeased refuses to delete a container with a lease: the request has no place for its ID.
func refuseLeased(c *behaviour.Call) error {
	return LeaseOf(c.Old).Check(lease.Container, "", true, c.Now())
}
