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

// A test binary runs three times: as go test starts it, as the host, and in the guest.
var (
	isHost = flag.Bool("guest.host", false, "set in the process that is the host of a guest")
	inside = flag.String("guest.facts", "", "set in a guest: what its host tells the tests, as JSON")
)

// outside is why the tests are not in a guest.
var outside = "TestMain does not call guest.Main"

// Main runs all tests of a package in a guest, and returns the exit code of the test binary, for TestMain. On the host it
// calls start, which starts the servers that the tests need and returns facts about them, such as shares. Tests get the
// facts from [Facts]. Where guests cannot run, that function skips them.
//
// The race detector does not work in a guest.
func Main[F any](m *testing.M, start func(context.Context, *Host) (F, error)) int {
	flag.Parse()
	if *inside != "" || flag.Lookup("test.list").Value.String() != "" {
		return m.Run()
	}
	if testing.Short() {
		outside = "boots a guest: not in short mode"
		return m.Run()
	}
	err := check()
	if err == nil && *isHost {
		err = withGuest(start)
	} else if err == nil {
		err = asHost()
	}
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

// withGuest starts the servers and runs this test binary in a guest.
func withGuest[F any](start func(context.Context, *Host) (F, error)) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	host, err := newHost(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.close()) }()
	facts, err := start(ctx, host)
	if err != nil {
		return err
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
	return Run(ctx, Command{
		Args: append(append([]string{self}, forGuest(os.Args[1:])...), "-guest.facts="+string(text)),
		// A guest has one processor, but parallel tests wait for servers most of the time.
		Env: map[string]string{"GOMAXPROCS": "4"}, Dir: dir, Output: os.Stdout, Linked: true,
	})
}

// forGuest returns the arguments of a test binary without those for the host. Files that tests write end with the guest.
func forGuest(arguments []string) []string {
	var kept []string
	for _, a := range arguments {
		name, _, _ := strings.Cut(a, "=")
		switch name {
		case "-guest.host", "-test.testlogfile", "-test.gocoverdir":
		default:
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
