package core_test

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"kaz/internal/localazure/core"
)

// An operation whose end cannot be saved runs on: the log says so, nothing hangs, and a subscriber does not try in a loop. It ends when
// its end can be saved.
func TestEndThatIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a := start(t, core.Options{Latency: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
		file := filepath.Join(t.TempDir(), "state.json")
		if err := a.Open(file); err != nil {
			t.Fatal(err)
		}
		a.group()
		a.must("PUT", address, `{"location":"eastus"}`)
		journal := strings.TrimSuffix(file, ".json") + "-journal.jsonl"
		at := descriptorOf(t, journal)
		redirect(t, at, "/dev/full")
		go a.Changes(t.Context(), func([]core.Change) {})
		<-time.After(time.Minute)
		synctest.Wait()
		const line = "run on because their end cannot be saved"
		if got := strings.Count(log.String(), line); got == 0 || got > 61 {
			t.Errorf("the log has %d lines after a minute:\n%.2000s", got, log.String())
		}
		if got := state(a.must("GET", address, "")); got != "Updating" {
			t.Errorf("without a journal the operation is %s", got)
		}
		if got := a.do("PUT", table, `{"location":"eastus"}`); got.status != 500 {
			t.Errorf("a write without a journal: %d", got.status)
		}
		redirect(t, at, journal)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if got := state(a.must("GET", address, "")); got != "Succeeded" {
			t.Errorf("with a journal again the operation is %s\n%s", got, log.String()[max(0, log.Len()-700):])
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
}

// descriptorOf is the descriptor by which this process has a file open.
func descriptorOf(t *testing.T, file string) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", one.Name())); err == nil && to == file {
			n, _ := strconv.Atoi(one.Name())
			return n
		}
	}
	t.Fatalf("nothing has %s open", file)
	return -1
}

// redirect lets a descriptor be the end of another file.
func redirect(t *testing.T, descriptor int, file string) {
	t.Helper()
	to, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	_, _ = to.Seek(0, io.SeekEnd) // a device has no end
	if err := unix.Dup2(int(to.Fd()), descriptor); err != nil {
		t.Fatal(err)
	}
}
