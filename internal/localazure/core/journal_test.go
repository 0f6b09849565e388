package core_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

var writerState = flag.String("writer-state", "", "the state file of the process that TestKilledProcess starts and kills")

// TestWriterProcess is the process that [TestKilledProcess] kills: it writes, and prints a line for every answer.
func TestWriterProcess(t *testing.T) {
	path := *writerState
	if path == "" {
		t.Skip("only for TestKilledProcess")
	}
	a := start(t, core.Options{})
	if err := a.Open(path); err != nil {
		t.Fatal(err)
	}
	if got := a.do("GET", group, ""); got.status == 404 {
		a.group()
	}
	first := len(behaviour.Objects(a.must("GET", tables, "").body, "value"))
	for i := first; ; i++ {
		a.must("PUT", fmt.Sprintf("%s/t%d", tables, i), realistic)
		fmt.Printf("written %d\n", i)
		if i%3 == 2 {
			if err := a.SaveFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const tables = group + "/providers/Microsoft.Network/routeTables"

// A process that is killed at any time has lost none of the writes that it answered.
func TestKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	draw := rand.New(rand.NewPCG(1, 2))
	last := -1
	for range 25 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestWriterProcess$", "-writer-state", path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := draw.IntN(6); left >= 0 && lines.Scan(); left-- {
			if _, err := fmt.Sscanf(lines.Text(), "written %d", &last); err != nil {
				t.Fatalf("the writer says %q: %v", lines.Text(), err)
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it answered before it was killed
			_, _ = fmt.Sscanf(lines.Text(), "written %d", &last)
		}
		_ = child.Wait() // it was killed
		a := start(t, core.Options{})
		if err := a.LoadFile(path); err != nil {
			t.Fatal(err)
		}
		for i := range last + 1 {
			if got := a.do("GET", fmt.Sprintf("%s/t%d", tables, i), ""); got.status != 200 {
				t.Fatalf("table %d of %d is lost: %d", i, last+1, got.status)
			}
		}
	}
	if last < 25 {
		t.Errorf("the processes wrote %d tables only", last+1)
	}
}

// The journal alone restores what a saved state restores: documents, running and ended operations, and what is drawn next.
func TestJournalIsAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		journaled, saved := filepath.Join(dir, "journaled.json"), filepath.Join(dir, "saved.json")
		a := slow(t)
		if err := a.SaveFile(journaled); err != nil { // the resources before the journal
			t.Fatal(err)
		}
		b := start(t, core.Options{Latency: 1})
		if err := b.Open(journaled); err != nil {
			t.Fatal(err)
		}
		b.must("PUT", table, `{"location":"eastus"}`)
		b.must("PUT", account, `{"location":"eastus"}`)
		<-time.After(time.Minute)
		b.must("PUT", address, `{"location":"eastus"}`)
		b.must("DELETE", table, "")
		b.must("GET", address, "")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := b.SaveFile(saved); err != nil {
			t.Fatal(err)
		}
		var texts [2]string
		for i, path := range []string{journaled, saved} {
			c := start(t, core.Options{Latency: 1})
			if err := c.LoadFile(path); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			if err := c.Save(&b); err != nil {
				t.Fatal(err)
			}
			texts[i] = b.String()
		}
		if texts[0] != texts[1] {
			t.Errorf("from the journal:\n%s\nfrom the saved state:\n%s", texts[0], texts[1])
		}
	})
}

// BenchmarkJournal says what the journal costs a write, without HTTP.
func BenchmarkJournal(b *testing.B) {
	for _, mode := range []string{"without", "with"} {
		b.Run(mode, func(b *testing.B) {
			a := start(b, core.Options{})
			if mode == "with" {
				if err := a.Open(filepath.Join(b.TempDir(), "state.json")); err != nil {
					b.Fatal(err)
				}
				defer a.Close()
			}
			a.group()
			n := 0
			for b.Loop() {
				a.must("PUT", fmt.Sprintf("%s/t%d", tables, n%100), strings.Replace(realistic, "team", fmt.Sprint("team", n), 1))
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "PUT/s")
		})
	}
}
