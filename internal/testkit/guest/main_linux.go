package guest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// inside is what [Main] tells the tests in the guest: the facts that the package's host function returned, as JSON.
var inside = flag.String("guest.facts", "", "set in a guest: what its host tells the tests, as JSON")

// outside is why the tests are not in a guest.
var outside = "TestMain does not call guest.Main"

// Main runs all tests of a package in a guest, and returns the exit code of the test binary, for TestMain. On the host it
// calls start, which starts the servers that the tests need and returns facts about them, such as addresses. Tests get the
// facts from [Facts]. Where guests cannot run, that function skips them.
//
// The guest sees the files of the host but changes none. Only -test flags that name files have no effect.
func Main[F any](m *testing.M, start func(context.Context, *Host) (F, error)) int {
	flag.Parse()
	if *inside != "" || flag.Lookup("test.list").Value.String() != "" {
		return m.Run()
	}
	if testing.Short() {
		outside = "boots a guest: not in short mode"
		return m.Run()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := onHost(ctx, start)
	if failed, ok := errors.AsType[*ExitError](err); ok {
		return failed.Code
	}
	if unavailable, ok := errors.AsType[*UnavailableError](err); ok {
		outside = unavailable.Error()
		return m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// onHost starts the servers and runs this test binary in a guest.
func onHost[F any](ctx context.Context, start func(context.Context, *Host) (F, error)) (err error) {
	if err := check(); err != nil {
		return err
	}
	host, err := newHost(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	facts, err := start(ctx, host)
	if err != nil {
		return errors.Join(err, host.logs())
	}
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	err = Run(ctx, Command{
		Args: append(append([]string{self}, forGuest(os.Args[1:])...), "-guest.facts="+string(text)),
		Dir:  dir, Output: os.Stdout, Network: host.Network,
	})
	if err != nil {
		err = errors.Join(err, host.logs())
	}
	return err
}

// forGuest returns the arguments of a test binary without those that name files of the host to be written.
func forGuest(arguments []string) []string {
	var kept []string
	for _, a := range arguments {
		if !strings.HasPrefix(a, "-test.testlogfile=") && !strings.HasPrefix(a, "-test.gocoverdir=") {
			kept = append(kept, a)
		}
	}
	return kept
}

// Facts returns what the host tells the tests. It skips a test that is not in a guest.
func Facts[F any](t testing.TB) F {
	t.Helper()
	var facts F
	if *inside == "" {
		t.Skip(outside)
	}
	if err := json.Unmarshal([]byte(*inside), &facts); err != nil {
		t.Fatal(err)
	}
	return facts
}
