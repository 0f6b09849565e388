package process_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/host/process"
)

// play as first argument makes the test binary play the part of another program.
const play = "play"

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != play {
		goleak.VerifyTestMain(m)
		return
	}
	switch os.Args[2] {
	case "holder":
		hold(os.Args[3])
	case "stubborn":
		stubborn()
	case "parent":
		parent()
	}
}

// hold opens a directory, runs a child there and waits for ever.
func hold(dir string) {
	g, err := process.Open(context.Background(), dir)
	if err == nil {
		_, err = g.Start(sleeper("child"))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("holding")
	select {}
}

// stubborn says when it is deaf to SIGTERM, then stays.
func stubborn() {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println("deaf")
	select {}
}

// parent leaves a grandchild behind.
func parent() {
	cmd := exec.Command("/bin/sleep", "600")
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(cmd.Process.Pid)
}

// self is a spec that runs the test binary in a role.
func self(t *testing.T, name, role string) process.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return process.Spec{Name: name, Path: exe, Args: []string{play, role}}
}

func sleeper(name string) process.Spec {
	return process.Spec{Name: name, Path: "/bin/sleep", Args: []string{"600"}}
}

func shell(name, script string) process.Spec {
	return process.Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}
}

func open(t *testing.T, dir string) *process.Group {
	t.Helper()
	g, err := process.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func start(t *testing.T, g *process.Group, s process.Spec) *process.Process {
	t.Helper()
	p, err := g.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func recordFile(dir, name string) string { return filepath.Join(dir, "run", name+".json") }

// holder runs another program that holds dir with one child, and returns when it does.
func holder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, play, "holder", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "holding\n" {
		t.Fatalf("the holder said %q (%v)", line, err)
	}
	return cmd
}

// until waits for a condition that no channel announces.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(10 * time.Second)
	defer late.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("not after 10 s: %s", what)
		}
	}
}

// says waits until the process has written text to its log.
func says(t *testing.T, p *process.Process, text string) {
	t.Helper()
	until(t, p.Name()+" says "+text, func() bool { return strings.Contains(p.Tail(100), text) })
}

func ended(t *testing.T, p *process.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatalf("%s still runs after 10 s", p.Name())
	}
}

func runs(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
