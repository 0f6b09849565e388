// Package page compares and updates generated parts of the pages in docs/reference. Layer L4.
package page

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// Part is a part of a page, between <!-- NAME: written by HINT --> and <!-- end of NAME -->.
type Part struct {
	File string
	Name string
	Hint string // the command that updates it
}

// Check compares the part with want, or updates it.
func (p Part) Check(t *testing.T, want string, write bool) {
	t.Helper()
	text, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+p.Name+": written by "+p.Hint+" -->\n", "<!-- end of "+p.Name+" -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the %s", p.File, p.Name)
	}
	fresh := before + begin + want + end + after
	if write {
		if err := os.WriteFile(p.File, []byte(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(fresh, string(text)); diff != "" {
		t.Errorf("%s is out of date; run: %s\n%s", p.File, p.Hint, diff)
	}
}

// Flags returns tables of flags, one for each set.
func Flags(sets ...*pflag.FlagSet) string {
	var b strings.Builder
	for _, set := range sets {
		b.WriteString("\n| flag | default | meaning |\n|---|---|---|\n")
		set.VisitAll(func(f *pflag.Flag) {
			initial := ""
			if f.DefValue != "" {
				initial = "`" + f.DefValue + "`"
			}
			fmt.Fprintf(&b, "| `--%s` | %s | %s |\n", f.Name, initial, f.Usage)
		})
	}
	b.WriteString("\n")
	return b.String()
}
