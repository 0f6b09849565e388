package process_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/host/process"
)

const patience = 10 * time.Second

func TestAProcessGetsItsEnvironmentAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	g := open(t, dir)
	defer g.Close(t.Context(), patience)
	p := start(t, g, process.Spec{Name: "env", Path: "/usr/bin/env", Env: []string{"ONLY=this"}})
	ended(t, p)
	got, err := os.ReadFile(filepath.Join(dir, "logs", "env.log"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ONLY=this\n", string(got)); diff != "" {
		t.Error(diff)
	}
	if err := p.Err(); err != nil {
		t.Errorf("a clean exit gives %v", err)
	}
}

func TestStopLetsAProcessFinish(t *testing.T) {
	g := open(t, t.TempDir())
	defer g.Close(t.Context(), patience)
	p := start(t, g, shell("polite", `trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done`))
	says(t, p, "up")
	p.Stop(t.Context(), patience)
	if got := p.Tail(1); got != "bye" {
		t.Errorf("its last word is %q", got)
	}
	if err := p.Err(); err != nil {
		t.Errorf("a process that was asked to end gives %v", err)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	g := open(t, t.TempDir())
	defer g.Close(t.Context(), patience)
	p := start(t, g, self(t, "stubborn", "stubborn"))
	says(t, p, "deaf")
	p.Stop(t.Context(), time.Millisecond)
	if runs(p.PID()) {
		t.Error("it still runs")
	}
}

func TestAProcessThatEndsByItselfIsReportedWithTheEndOfItsLog(t *testing.T) {
	dir := t.TempDir()
	g := open(t, dir)
	defer g.Close(t.Context(), patience)
	start(t, g, sleeper("other"))
	failing := start(t, g, shell("failing", `echo one; echo two >&2; exit 7`))
	select {
	case p := <-g.Failed():
		if p != failing {
			t.Fatalf("%s was reported", p.Name())
		}
	case <-time.After(patience):
		t.Fatal("nothing was reported")
	}
	want := "failing ended (exit status 7); its log is " + filepath.Join(dir, "logs", "failing.log") + " and ends with:\none\ntwo"
	if got := failing.Err(); got == nil || got.Error() != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}

func TestTailShowsOnlyTheLastRun(t *testing.T) {
	g := open(t, t.TempDir())
	defer g.Close(t.Context(), patience)
	ended(t, start(t, g, shell("twice", "echo first")))
	second := start(t, g, shell("twice", "echo second; echo third"))
	ended(t, second)
	if got := second.Tail(10); got != "second\nthird" {
		t.Errorf("got %q", got)
	}
}

func TestNothingOfAProcessGroupOutlivesItsLeader(t *testing.T) {
	g := open(t, t.TempDir())
	defer g.Close(t.Context(), patience)
	p := start(t, g, self(t, "parent", "parent"))
	ended(t, p)
	pid, err := strconv.Atoi(p.Tail(1))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the grandchild is gone", func() bool { return !runs(pid) })
}

func TestCloseStopsTheLastStartedFirst(t *testing.T) {
	dir := t.TempDir()
	g := open(t, dir)
	for _, name := range []string{"a", "b", "c"} {
		script := fmt.Sprintf(`trap 'echo %s >> %s/order; exit 0' TERM; echo up; while :; do sleep 0.01; done`, name, dir)
		says(t, start(t, g, shell(name, script)), "up")
	}
	g.Close(t.Context(), patience)
	got, err := os.ReadFile(filepath.Join(dir, "order"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("c\nb\na\n", string(got)); diff != "" {
		t.Error(diff)
	}
	if left, err := process.Recorded(dir); len(left) != 0 || err != nil {
		t.Errorf("still on record: %v, %v", left, err)
	}
	if _, err := g.Start(sleeper("late")); err == nil {
		t.Error("a closed group started a process")
	}
}

func TestOneNameRunsOnce(t *testing.T) {
	g := open(t, t.TempDir())
	defer g.Close(t.Context(), patience)
	first := start(t, g, sleeper("one"))
	if _, err := g.Start(sleeper("one")); err == nil || !strings.Contains(err.Error(), strconv.Itoa(first.PID())) {
		t.Errorf("a second one: %v", err)
	}
	first.Stop(t.Context(), patience)
	start(t, g, sleeper("one"))
}

func TestBadSpecs(t *testing.T) {
	g := open(t, t.TempDir())
	defer g.Close(t.Context(), patience)
	for _, c := range []struct {
		spec process.Spec
		want string
	}{
		{process.Spec{Name: "../up", Path: "/bin/true"}, `process name "../up": want lower-case letters, digits and dashes`},
		{process.Spec{Name: "", Path: "/bin/true"}, `process name "": want lower-case letters, digits and dashes`},
		{process.Spec{Name: "owner", Path: "/bin/true"}, `process name "owner" is reserved for the program that owns the directory`},
		{process.Spec{Name: "none"}, `process none: Path is missing`},
		{process.Spec{Name: "gone", Path: "/no/such/program"}, `start gone: fork/exec /no/such/program: no such file or directory`},
	} {
		if _, err := g.Start(c.spec); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestADirectoryHasOneHolder(t *testing.T) {
	dir := t.TempDir()
	g := open(t, dir)
	_, err := process.Open(t.Context(), dir)
	if !errors.Is(err, process.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second holder: %v", err)
	}
	if o, ok := process.Owner(dir); !ok || o.PID != os.Getpid() {
		t.Errorf("the owner is %+v, %t", o, ok)
	}
	g.Close(t.Context(), patience)
	if o, ok := process.Owner(dir); ok {
		t.Errorf("a closed directory is owned by %+v", o)
	}
	open(t, dir).Close(t.Context(), patience)
}
