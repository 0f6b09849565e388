// Package shadow compares what kaz would write with what is there, round by round, while another controller is in charge. Layer L1.
package shadow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict is what kaz decided about one object in one round.
type Verdict struct {
	// Object is the name: NAMESPACE/NAME of a Service, the name of a Node.
	Object string
	// Writes say what kaz would write, a line for each write, none if all is as kaz wants it.
	Writes []string
	// Refused says why kaz would refuse the object and leave all as it is, "" if it would not.
	Refused string
}

// Agrees reports whether kaz would do nothing.
func (v Verdict) Agrees() bool { return len(v.Writes) == 0 && v.Refused == "" }

// Seen are the verdicts about all objects of a kind in one round, or why there are none.
type Seen struct {
	Kind     string
	Verdicts []Verdict
	Fault    string
}

// Report sums up rounds. Its zero value has none.
type Report struct {
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"`
	Rounds int       `json:"rounds"`
	Kinds  []Kind    `json:"kinds"`
}

// Kind is what was found about the objects of one kind.
type Kind struct {
	Name string `json:"name"`
	// Objects and Agree are numbers of the last round that could be read.
	Objects int `json:"objects"`
	Agree   int `json:"agree"`
	// Differences are those of all rounds, the present ones first.
	Differences []Difference `json:"differences,omitempty"`
	// Unread is the number of rounds that could not be read, and Fault why the last of these could not.
	Unread int    `json:"unread,omitempty"`
	Fault  string `json:"fault,omitempty"`
	// Known says that at least one round could be read.
	Known bool `json:"known"`
}

// Difference is an object about which kaz decided otherwise than the controller in charge.
type Difference struct {
	Object string `json:"object"`
	// Writes and Refused are those of the last round that had the difference.
	Writes  []string  `json:"writes,omitempty"`
	Refused string    `json:"refused,omitempty"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Rounds  int       `json:"rounds"`
	// Now says that the last round that could be read had it. Others were passing: a controller was at work.
	Now bool `json:"now"`
}

// mostDifferences is how many differences of a kind are kept. Further ones are counted alone.
const mostDifferences = 1000

// Add adds a round.
func (r *Report) Add(at time.Time, round []Seen) {
	if r.Rounds == 0 {
		r.Began = at
	}
	r.Rounds++
	r.Ended = at
	for _, s := range round {
		r.kind(s.Kind).add(at, s)
	}
}

func (r *Report) kind(name string) *Kind {
	i := slices.IndexFunc(r.Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		i = len(r.Kinds)
		r.Kinds = append(r.Kinds, Kind{Name: name})
	}
	return &r.Kinds[i]
}

func (k *Kind) add(at time.Time, s Seen) {
	if s.Fault != "" {
		k.Unread++
		k.Fault = s.Fault
		return
	}
	k.Known, k.Objects, k.Agree = true, len(s.Verdicts), 0
	for i := range k.Differences {
		k.Differences[i].Now = false
	}
	for _, v := range s.Verdicts {
		if v.Agrees() {
			k.Agree++
			continue
		}
		i := slices.IndexFunc(k.Differences, func(d Difference) bool { return d.Object == v.Object })
		if i < 0 && len(k.Differences) == mostDifferences {
			continue
		}
		if i < 0 {
			i = len(k.Differences)
			k.Differences = append(k.Differences, Difference{Object: v.Object, First: at})
		}
		d := &k.Differences[i]
		d.Writes, d.Refused, d.Last, d.Now = v.Writes, v.Refused, at, true
		d.Rounds++
	}
	slices.SortStableFunc(k.Differences, func(a, b Difference) int {
		return cmp.Or(compare(b.Now, a.Now), cmp.Compare(a.Object, b.Object))
	})
}

func text(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Writes is the number of writes of a switch now.
func (r *Report) Writes() (n int) {
	for _, k := range r.Kinds {
		for _, d := range k.Differences {
			if d.Now {
				n += len(d.Writes)
			}
		}
	}
	return n
}

// refused is the number of objects that kaz would refuse now.
func (r *Report) refused() (n int) {
	for _, k := range r.Kinds {
		for _, d := range k.Differences {
			if d.Now && d.Refused != "" {
				n++
			}
		}
	}
	return n
}

// Differs reports whether the last round has differences.
func (r *Report) Differs() bool {
	return slices.ContainsFunc(r.Kinds, func(k Kind) bool { return k.Agree < k.Objects })
}

// Unknown reports whether a kind could not be read in any round.
func (r *Report) Unknown() bool {
	return slices.ContainsFunc(r.Kinds, func(k Kind) bool { return !k.Known })
}

// String is the summary for a change request.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s to %s\n", counted(r.Rounds, "round"), text(r.Began), text(r.Ended))
	for _, k := range r.Kinds {
		k.write(&b)
	}
	marked := ""
	if r.Differs() && !r.Unknown() {
		marked = ": what is marked ~ above"
	}
	fmt.Fprintf(&b, "\n%s%s.\n", r.verdict(), marked)
	return b.String()
}

func (r *Report) verdict() string {
	switch {
	case r.Unknown():
		return "Not everything could be read, so what a switch would write is not known"
	case !r.Differs():
		return "A switch to kaz would write nothing"
	}
	refused := ""
	if n := r.refused(); n > 0 {
		refused = ", and refuse " + counted(n, "object")
	}
	return fmt.Sprintf("A switch to kaz would make %s%s", counted(r.Writes(), "change"), refused)
}

// Markdown is the summary as a text for a change request.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Switch to kaz\n\n**%s.**\n\n%s from %s to %s.\n\n", r.verdict(), counted(r.Rounds, "round"),
		text(r.Began), text(r.Ended))
	b.WriteString("| kind | objects | agree | rounds not read |\n|---|---|---|---|\n")
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", k.Name, k.Objects, k.Agree, k.Unread)
	}
	for _, k := range r.Kinds {
		if len(k.Differences) == 0 && k.Fault == "" {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", k.Name)
		if k.Fault != "" {
			fmt.Fprintf(&b, "Not read, the last time: %s\n\n", inline(k.Fault))
		}
		for _, d := range k.Differences {
			fmt.Fprintf(&b, "* %s, in %s since %s%s\n", inline(d.Object), counted(d.Rounds, "round"), text(d.First), d.passed())
			for _, w := range d.Writes {
				fmt.Fprintf(&b, "  * %s\n", inline(w))
			}
			if d.Refused != "" {
				fmt.Fprintf(&b, "  * refused: %s\n", inline(d.Refused))
			}
		}
	}
	return b.String()
}

// inline is a text of one line as code of Markdown.
func inline(text string) string {
	return "`" + strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "`", "'") + "`"
}

func (k Kind) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: ", k.Name)
	switch {
	case !k.Known:
		fmt.Fprintf(b, "not read: %s\n", k.Fault)
		return
	case k.Unread > 0:
		fmt.Fprintf(b, "%d of %d agree; %s could not be read, the last time: %s\n", k.Agree, k.Objects, counted(k.Unread, "round"), k.Fault)
	default:
		fmt.Fprintf(b, "%d of %d agree\n", k.Agree, k.Objects)
	}
	for _, d := range k.Differences {
		mark := "~"
		if !d.Now {
			mark = "-"
		}
		fmt.Fprintf(b, "  %s %s, in %s since %s%s\n", mark, d.Object, counted(d.Rounds, "round"), text(d.First), d.passed())
		for _, w := range d.Writes {
			fmt.Fprintf(b, "      %s\n", w)
		}
		if d.Refused != "" {
			fmt.Fprintf(b, "      refused: %s\n", d.Refused)
		}
	}
}

func (d Difference) passed() string {
	if d.Now {
		return ""
	}
	return "; no longer after " + text(d.Last)
}
