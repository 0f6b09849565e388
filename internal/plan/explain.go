package plan

import (
	"fmt"
	"strings"
)

// String is the plan as a person reads it: one line a step with its reason, and
// indented under it each change of an update.
func (p Plan) String() string {
	if p.Empty() && len(p.Pending) == 0 {
		return "nothing to do\n"
	}
	var b strings.Builder
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "%d. %s", i+1, s)
		if len(s.After) > 0 {
			b.WriteString(" (after " + numbers(s.After) + ")")
		}
		b.WriteByte('\n')
		for _, c := range s.Changes {
			b.WriteString("     " + c.String() + "\n")
		}
		for _, l := range s.Late {
			if s.Op != Update { // the changes of an update name it
				fmt.Fprintf(&b, "     with %s of %s: known after %s\n", l.Path, l.ID.Name(), p.Steps[l.Step].done())
			}
		}
	}
	for _, what := range p.Pending {
		b.WriteString("then: " + what + "\n")
	}
	return b.String()
}

// String is the step in one line.
func (s Step) String() string {
	line := fmt.Sprintf("%s %s", s.Op, s.ID)
	if s.Op == Act {
		line = fmt.Sprintf("%s %s of %s", s.Op, s.Action, s.ID)
	}
	if s.Why != "" {
		line += ": " + s.Why
	}
	if len(s.For) > 0 {
		line += " [" + strings.Join(s.For, ", ") + "]"
	}
	return line
}

// done says in a few words that the step is done.
func (s Step) done() string {
	typ := s.ID.Type()
	name := typ[strings.LastIndexByte(typ, '/')+1:] + "/" + s.ID.Name()
	if s.Op == Act {
		return s.Action + " of " + name + " is run"
	}
	return fmt.Sprintf("%s is %sd", name, s.Op)
}

func numbers(indices []int) string {
	words := make([]string, len(indices))
	for i, n := range indices {
		words[i] = fmt.Sprint(n + 1)
	}
	return strings.Join(words, ", ")
}
