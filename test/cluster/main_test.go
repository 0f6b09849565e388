// Package cluster_test runs kaz like a user. It builds the programs of cmd, and `kaz local up` starts a whole cluster on a
// local Azure. kubectl and Azure's API show the result. The tests run on Linux only, because they find processes in /proc.
// Layer L4.
package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// programs is the folder with the programs of cmd, as [TestMain] built them.
var programs string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if programs, err = os.MkdirTemp("", "kaz-programs-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(programs)
	began := time.Now()
	build := exec.Command("go", "build", "-o", programs+string(filepath.Separator), "./cmd/...")
	build.Dir = filepath.Join("..", "..")
	// As make build does it: what is compiled here is compiled there, too.
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("build the programs of cmd: %w", err)
	}
	fmt.Printf("programs built in %s\n", short(time.Since(began)))
	return m.Run(), nil
}

// short is a duration for a person.
func short(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

func kaz() string { return filepath.Join(programs, "kaz") }
