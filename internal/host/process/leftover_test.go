package process_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kaz/internal/host/process"
)

// onRecord reads the record of a process, and fails the test when there is none.
func onRecord(t *testing.T, dir, name string) process.Record {
	t.Helper()
	all, err := process.Recorded(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(r process.Record) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("%s is not among %v", name, all)
	}
	return all[i]
}

func TestAKilledHolderTakesItsChildrenWithIt(t *testing.T) {
	dir := t.TempDir()
	cmd := holder(t, dir)
	child := onRecord(t, dir, "child")
	if !child.Alive() {
		t.Fatal("the child does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	until(t, "the child is gone", func() bool { return !child.Alive() })

	// The records it left are no obstacle to the next holder.
	g := open(t, dir)
	defer g.Close(t.Context(), patience)
	start(t, g, sleeper("child"))
}

func TestStopRecordedStopsTheOwnerOfADirectory(t *testing.T) {
	dir := t.TempDir()
	cmd := holder(t, dir)
	child := onRecord(t, dir, "child")
	waited := make(chan error)
	go func() { waited <- cmd.Wait() }()
	stopped, err := process.StopRecorded(t.Context(), dir, patience)
	if err != nil || !slices.Equal(stopped, []string{"child", "owner"}) {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	if err := <-waited; err == nil {
		t.Error("the owner ended as if by itself")
	}
	if child.Alive() {
		t.Error("the child still runs")
	}
	if stopped, err := process.StopRecorded(t.Context(), dir, patience); len(stopped) != 0 || err != nil {
		t.Errorf("a second time: %v, %v", stopped, err)
	}
}

func TestStopRecordedStopsWhatItsOwnerCannot(t *testing.T) {
	dir := t.TempDir()
	g := open(t, dir)
	defer g.Close(t.Context(), patience)
	p := start(t, g, sleeper("left"))
	if stopped, err := process.StopRecorded(t.Context(), dir, patience); err != nil || !slices.Equal(stopped, []string{"left"}) {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	ended(t, p)
}

func TestAPIDThatNowBelongsToAnotherIsNotTouched(t *testing.T) {
	dir := t.TempDir()
	other := exec.CommandContext(t.Context(), "/bin/sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()

	g := open(t, dir)
	defer g.Close(t.Context(), patience)
	start(t, g, sleeper("mine"))
	old := onRecord(t, dir, "mine")
	old.Name, old.PID = "old", other.Process.Pid
	old.Started = 1 // the process of the record was started right after the machine
	data, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordFile(dir, "old"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, err := process.StopRecorded(t.Context(), dir, patience)
	if err != nil || !slices.Equal(stopped, []string{"mine"}) {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	if !runs(other.Process.Pid) {
		t.Error("the foreign process was stopped")
	}
	if left, err := process.Recorded(dir); len(left) != 0 || err != nil {
		t.Errorf("still on record: %v, %v", left, err)
	}
}

func TestADamagedRecordIsNamed(t *testing.T) {
	for _, text := range []string{"{", `{"name":"x","pid":0}`, `{"name":"x","pid":1}`} {
		dir := t.TempDir()
		file := recordFile(dir, "x")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := process.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNothingIsOnRecordInANewDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if stopped, err := process.StopRecorded(t.Context(), dir, patience); len(stopped) != 0 || err != nil {
		t.Errorf("stopped %v, %v", stopped, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("asking made the directory")
	}
}
