package providers_test

import (
	"bytes"
	"errors"
	"flag"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// The last measured numbers for the recordings of kaz. At least as many must pass.
const (
	replayPassed = 522
	replayAll    = 524
)

var recordingsFolder = flag.String("recordings", "", "a `folder` of recordings in the formats of go-vcr or vcrpy, for TestReplayOfAFolder")

var replayTotal = regexp.MustCompile(`(\d+) passed, (\d+) failed\s*$`)

// TestReplay sends recordings of real Azure to the local Azure, each folder to a new local Azure. The recordings are
// beside the repository.
func TestReplay(t *testing.T) {
	binary, recordings := buildReplayer(t), siblingDirectory(t, "recordings")
	folders, err := filepath.Glob(filepath.Join(recordings, "*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("folders in %s: %d, %v", recordings, len(folders), err)
	}
	var passed, all atomic.Int64
	t.Run("recordings", func(t *testing.T) {
		for _, folder := range folders {
			t.Run(filepath.Base(folder), func(t *testing.T) {
				t.Parallel()
				p, f, report := replay(t, binary, folder)
				passed.Add(int64(p))
				all.Add(int64(p + f))
				t.Logf("%d of %d\n%s", p, p+f, report)
			})
		}
	})
	share := 100 * float64(passed.Load()) / float64(all.Load())
	t.Logf("%d of %d interactions pass, %.1f %%", passed.Load(), all.Load(), share)
	if minimum := 100 * float64(replayPassed) / replayAll; share < minimum {
		t.Errorf("%.1f %% of the interactions pass, want at least %.1f %%", share, minimum)
	}
}

// TestReplayOfAFolder sends each recording of a folder to a new local Azure, to learn from recordings that are not beside the
// repository. Recordings of the Azure CLI use groups that they do not create.
func TestReplayOfAFolder(t *testing.T) {
	if *recordingsFolder == "" {
		t.Skip("no folder: -recordings DIR")
	}
	binary := buildReplayer(t)
	files, err := filepath.Glob(filepath.Join(*recordingsFolder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("recordings in %s: %d, %v", *recordingsFolder, len(files), err)
	}
	var passed, all int
	for _, file := range files {
		p, f, report := replay(t, binary, file, "-ensure-groups", "eastus", "-skip-unmade")
		passed, all = passed+p, all+p+f
		t.Logf("%s: %d of %d\n%s", filepath.Base(file), p, p+f, report)
	}
	t.Logf("%d of %d interactions pass, %.1f %%", passed, all, 100*float64(passed)/float64(all))
}

func buildReplayer(t *testing.T) string {
	t.Helper()
	tool, binary := siblingDirectory(t, "tools/armreplay"), filepath.Join(t.TempDir(), "armreplay")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Dir = tool
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building armreplay: %v\n%s", err, out)
	}
	return binary
}

func siblingDirectory(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../../../shared", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no recordings of real Azure here: %v", err)
	}
	return dir
}

func replay(t *testing.T, binary, path string, flags ...string) (passed, failed int, report []byte) {
	t.Helper()
	local, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(local)
	defer server.Close()
	flags = append([]string{"-base", server.URL, "-token", "any", "-poll-max", "20ms",
		"-subscription", core.DefaultSubscription, "-tenant", core.DefaultTenant}, append(flags, path)...)
	cmd := exec.CommandContext(t.Context(), binary, flags...)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("armreplay: %v\n%s", err, out)
	}
	total := replayTotal.FindSubmatch(bytes.TrimSpace(out))
	if total == nil {
		t.Fatalf("armreplay printed no total:\n%s", out)
	}
	passed, _ = strconv.Atoi(string(total[1])) // digits by the pattern
	failed, _ = strconv.Atoi(string(total[2]))
	_, report, _ = bytes.Cut(out, []byte("an operation without a result\n"))
	return passed, failed, report
}
