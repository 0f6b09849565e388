package shadow_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/plan/shadow"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func services(verdicts ...shadow.Verdict) shadow.Seen {
	return shadow.Seen{Kind: "Services", Verdicts: verdicts}
}

func verdict(object string, writes ...string) shadow.Verdict {
	return shadow.Verdict{Object: object, Writes: writes}
}

func unread(why string) shadow.Seen { return shadow.Seen{Kind: "Services", Fault: why} }

// TestReport plays rounds, one a minute, and compares the summary.
func TestReport(t *testing.T) {
	for _, test := range []struct {
		name            string
		rounds          [][]shadow.Seen
		want            string
		differs, absent bool
	}{
		{"all agree", [][]shadow.Seen{{services(verdict("a"), verdict("b"))}, {services(verdict("a"), verdict("b"))}}, `
2 rounds from 2026-11-01T12:00:00Z to 2026-11-01T12:01:00Z

Services: 2 of 2 agree

A switch to kaz would write nothing.
`, false, false},
		{"a passing difference", [][]shadow.Seen{{services(verdict("a", "PUT x"), verdict("b"))}, {services(verdict("a"), verdict("b"))}}, `
2 rounds from 2026-11-01T12:00:00Z to 2026-11-01T12:01:00Z

Services: 2 of 2 agree
  - a, in 1 round since 2026-11-01T12:00:00Z; no longer after 2026-11-01T12:00:00Z
      PUT x

A switch to kaz would write nothing.
`, false, false},
		{"present ones first, with the last writes", [][]shadow.Seen{
			{services(verdict("a", "PUT x"), verdict("b", "PUT y"))},
			{services(verdict("a"), verdict("b", "PUT z", "PUT y"), shadow.Verdict{Object: "c", Refused: "no such subnet"})},
		}, `
2 rounds from 2026-11-01T12:00:00Z to 2026-11-01T12:01:00Z

Services: 1 of 3 agree
  ~ b, in 2 rounds since 2026-11-01T12:00:00Z
      PUT z
      PUT y
  ~ c, in 1 round since 2026-11-01T12:01:00Z
      refused: no such subnet
  - a, in 1 round since 2026-11-01T12:00:00Z; no longer after 2026-11-01T12:00:00Z
      PUT x

A switch to kaz would make 2 changes, and refuse 1 object: what is marked ~ above.
`, true, false},
		{"a round that is not read", [][]shadow.Seen{{services(verdict("a", "PUT x"))}, {unread("429")}}, `
2 rounds from 2026-11-01T12:00:00Z to 2026-11-01T12:01:00Z

Services: 0 of 1 agree; 1 round could not be read, the last time: 429
  ~ a, in 1 round since 2026-11-01T12:00:00Z
      PUT x

A switch to kaz would make 1 change: what is marked ~ above.
`, true, false},
		{"nothing is read", [][]shadow.Seen{{unread("no rights")}}, `
1 round from 2026-11-01T12:00:00Z to 2026-11-01T12:00:00Z

Services: not read: no rights

Not everything could be read, so what a switch would write is not known.
`, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r shadow.Report
			for i, round := range test.rounds {
				r.Add(noon.Add(time.Duration(i)*time.Minute), round)
			}
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), r.String()); diff != "" {
				t.Error(diff)
			}
			if r.Differs() != test.differs || r.Unknown() != test.absent {
				t.Errorf("differs %t, unknown %t", r.Differs(), r.Unknown())
			}
		})
	}
}

// TestMarkdown checks the summary for a change request: a text of users cannot change its structure.
func TestMarkdown(t *testing.T) {
	var r shadow.Report
	r.Add(noon, []shadow.Seen{services(verdict("a", "PUT `x`\n# y"), verdict("b")), {Kind: "nodes", Verdicts: []shadow.Verdict{verdict("n")}}})
	r.Add(noon.Add(time.Minute), []shadow.Seen{services(verdict("a", "PUT `x`\n# y"), shadow.Verdict{Object: "b", Refused: "no subnet"}),
		{Kind: "nodes", Fault: "429"}})
	want := `## Switch to kaz

**A switch to kaz would make 1 change, and refuse 1 object.**

2 rounds from 2026-11-01T12:00:00Z to 2026-11-01T12:01:00Z.

| kind | objects | agree | rounds not read |
|---|---|---|---|
| Services | 2 | 0 | 0 |
| nodes | 1 | 1 | 1 |

### Services

* 'a', in 2 rounds since 2026-11-01T12:00:00Z
  * 'PUT 'x' # y'
* 'b', in 1 round since 2026-11-01T12:01:00Z
  * refused: 'no subnet'

### nodes

Not read, the last time: '429'

`
	if diff := cmp.Diff(want, strings.ReplaceAll(r.Markdown(), "`", "'")); diff != "" {
		t.Error(diff)
	}
}
