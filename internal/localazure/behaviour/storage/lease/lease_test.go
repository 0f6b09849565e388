package lease_test

import (
	"errors"
	"testing"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage/lease"
)

const a, b, c = "00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b", "00000000-0000-0000-0000-00000000000c"

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// leases are leases of A in each state.
var leases = map[lease.State]lease.Lease{
	lease.Available: {},
	lease.Leased:    {ID: a, Seconds: 30, Ends: now.Add(20 * time.Second)},
	lease.Breaking:  {ID: a, Seconds: 30, Ends: now.Add(20 * time.Second), Breaks: true},
	lease.Broken:    {ID: a, Seconds: 30, Ends: now, Breaks: true},
	lease.Expired:   {ID: a, Seconds: 30, Ends: now},
}

var states = []lease.State{lease.Available, lease.Leased, lease.Breaking, lease.Broken, lease.Expired}

// code is the code of an error, "" for none.
func code(err error) string {
	if refusal, ok := errors.AsType[*behaviour.Error](err); ok {
		return refusal.Code
	}
	return ""
}

// The state after an action, or the code of the error, for each state of a lease of A: available, leased, breaking, broken, expired.
func TestActionsByState(t *testing.T) {
	const mismatch, absent = "LeaseIdMismatchWithLeaseOperation", "LeaseNotPresentWithLeaseOperation"
	const present, breaking, broken = "LeaseAlreadyPresent", "LeaseIsBreakingAndCannotBeAcquired", "LeaseIsBrokenAndCannotBeRenewed"
	seconds := func(n int) *int { return &n }
	for _, x := range []struct {
		name string
		does lease.Request
		want [5]string
	}{
		{"acquire A", lease.Request{Action: "acquire", Proposed: a, Seconds: 15},
			[5]string{"leased", "leased", breaking, "leased", "leased"}},
		{"acquire B", lease.Request{Action: "acquire", Proposed: b, Seconds: 15},
			[5]string{"leased", present, present, "leased", "leased"}},
		{"break now", lease.Request{Action: "break", Break: seconds(0)}, [5]string{absent, "broken", "broken", "broken", "broken"}},
		{"break later", lease.Request{Action: "break", Break: seconds(9)}, [5]string{absent, "breaking", "breaking", "broken", "broken"}},
		{"break", lease.Request{Action: "break"}, [5]string{absent, "breaking", "breaking", "broken", "broken"}},
		{"change A to B", lease.Request{Action: "change", ID: a, Proposed: b},
			[5]string{absent, "leased", "LeaseIsBreakingAndCannotBeChanged", absent, absent}},
		{"change B to A", lease.Request{Action: "change", ID: b, Proposed: a},
			[5]string{absent, "leased", "LeaseIsBreakingAndCannotBeChanged", absent, absent}},
		{"change B to C", lease.Request{Action: "change", ID: b, Proposed: c}, [5]string{absent, mismatch, mismatch, absent, absent}},
		{"renew A", lease.Request{Action: "renew", ID: a}, [5]string{mismatch, "leased", broken, broken, "leased"}},
		{"renew B", lease.Request{Action: "renew", ID: b}, [5]string{mismatch, mismatch, mismatch, mismatch, mismatch}},
		{"release A", lease.Request{Action: "release", ID: a}, [5]string{mismatch, "available", "available", "available", "available"}},
		{"release B", lease.Request{Action: "release", ID: b}, [5]string{mismatch, mismatch, mismatch, mismatch, mismatch}},
	} {
		for i, state := range states {
			after, err := leases[state].Act(lease.Blob, x.does, now)
			got := code(err)
			if err == nil {
				got = string(after.State(now))
			}
			if got != x.want[i] {
				t.Errorf("%s of a lease that is %s: %s, want %s", x.name, state, got, x.want[i])
			}
		}
	}
}

// What a write and a read with an ID get, for each state of a lease of A.
func TestUseByState(t *testing.T) {
	const missing, mismatch, absent = "LeaseIdMissing", "LeaseIdMismatchWithBlobOperation", "LeaseNotPresentWithBlobOperation"
	for _, x := range []struct {
		name, id string
		write    bool
		want     [5]string
	}{
		{"write without an ID", "", true, [5]string{"", missing, missing, "", ""}},
		{"write with A", a, true, [5]string{absent, "", "", "LeaseLost", "LeaseLost"}},
		{"write with B", b, true, [5]string{absent, mismatch, mismatch, absent, absent}},
		{"read without an ID", "", false, [5]string{"", "", "", "", ""}},
		{"read with A", a, false, [5]string{absent, "", "", "LeaseLost", "LeaseLost"}},
		{"read with B", b, false, [5]string{absent, mismatch, mismatch, absent, absent}},
	} {
		for i, state := range states {
			if got := code(leases[state].Check(lease.Blob, x.id, x.write, now)); got != x.want[i] {
				t.Errorf("%s of a blob with a lease that is %s: %q, want %q", x.name, state, got, x.want[i])
			}
		}
	}
}

// A lease ends with its time. A break period only shortens it. An infinite lease breaks at once unless a period is given.
func TestTimes(t *testing.T) {
	seconds := func(n int) *int { return &n }
	for _, x := range []struct {
		name      string
		duration  int
		period    *int
		remaining int
		after     lease.State // when the break period has ended
	}{
		{"fixed, no period", 30, nil, 30, lease.Broken},
		{"fixed, shorter", 30, seconds(10), 10, lease.Broken},
		{"fixed, longer", 30, seconds(60), 30, lease.Broken},
		{"infinite, no period", lease.Infinite, nil, 0, lease.Broken},
		{"infinite, period", lease.Infinite, seconds(60), 60, lease.Broken},
	} {
		l, err := lease.Lease{}.Act(lease.Container, lease.Request{Action: "acquire", Proposed: a, Seconds: x.duration}, now)
		if err != nil || l.State(now.Add(29*time.Second)) != lease.Leased {
			t.Fatalf("%s: %v, %v", x.name, l, err)
		}
		l, err = l.Act(lease.Container, lease.Request{Action: "break", Break: x.period}, now)
		end := now.Add(time.Duration(x.remaining) * time.Second)
		if err != nil || l.Remaining(now) != x.remaining || l.State(end) != x.after || l.Status(end) != "unlocked" {
			t.Errorf("%s: %v, %d seconds remain, want %d, then %s", x.name, err, l.Remaining(now), x.remaining, x.after)
		}
	}
}

// An expired lease can be renewed until the blob is written.
func TestWriteEndsTheMemoryOfALease(t *testing.T) {
	if l := leases[lease.Leased]; l.Written(now) != l {
		t.Error("a write ended a lease that was held")
	}
	l := leases[lease.Expired].Written(now)
	if _, err := l.Act(lease.Blob, lease.Request{Action: "renew", ID: a}, now); code(err) != "LeaseIdMismatchWithLeaseOperation" {
		t.Errorf("renewal after a write: %v", err)
	}
}

func TestIDs(t *testing.T) {
	const id = "0123abcd-4567-89ab-cdef-0123456789ab"
	for text, want := range map[string]string{
		id: id, "0123ABCD-4567-89AB-CDEF-0123456789AB": id, "0123abcd456789abcdef0123456789ab": id, "{" + id + "}": id, "(" + id + ")": id,
		"": "", "x": "", "{" + id: "", id + "0": "", "0123abcd-456789ab-cdef-0123456789ab": "",
	} {
		if got, ok := lease.ID(text); got != want || ok != (want != "") {
			t.Errorf("ID(%q) = %q, %v, want %q", text, got, ok, want)
		}
	}
}
