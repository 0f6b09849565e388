package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	component "k8s.io/component-base/version"
)

func TestUnreleased(t *testing.T) {
	const revision = "7dd1b62f0a9e4c1d8b3a5e6f7081920a1b2c3d4e"
	settings := func(pairs ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(pairs); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return info
	}
	for want, infos := range map[string][]*debug.BuildInfo{
		"v0.0.0-unversioned":         {nil, settings(), settings("vcs.modified", "true")},
		"v0.0.0-g7dd1b62f0a9e":       {settings("vcs.revision", revision), settings("vcs.revision", revision, "vcs.modified", "false")},
		"v0.0.0-g7dd1b62f0a9e-dirty": {settings("vcs.modified", "true", "vcs.revision", revision)},
		"v0.0.0-g7dd1":               {settings("vcs.revision", "7dd1")},
	} {
		for _, info := range infos {
			if got := unreleased(info); got != want || version.MustParseSemantic(got) == nil {
				t.Errorf("%v: %s, want %s", info, got, want)
			}
		}
	}
}

// TestLibrariesSayTheVersion checks that Kubernetes' libraries report the same version as this
// package.
func TestLibrariesSayTheVersion(t *testing.T) {
	if got := Version(); got == "" || strings.Contains(got, "$") || component.Get().GitVersion != got {
		t.Errorf("version %q, the libraries say %q", got, component.Get().GitVersion)
	}
}

// TestVersionOfACheckout checks the version that make build passes to the linker: the newest tag, the
// commit without a tag, and nothing outside a checkout.
func TestVersionOfACheckout(t *testing.T) {
	script, err := filepath.Abs("../../../tools/version.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	say := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", script, dir)
		cmd.Env = append(cmd.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git",
			append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if got := say(); got != "" {
		t.Errorf("outside of a checkout: %q", got)
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "first")
	if got := say(); !strings.HasPrefix(got, "v0.0.0-g") || version.MustParseSemantic(got) == nil {
		t.Errorf("without a tag: %q", got)
	}
	git("tag", "docs") // not a version
	git("tag", "v1.36.0")
	if got := say(); got != "v1.36.0" {
		t.Errorf("at a tag: %q", got)
	}
	git("commit", "-q", "--allow-empty", "-m", "second")
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "new")
	if got := say(); !strings.HasPrefix(got, "v1.36.0-1-g") || !strings.HasSuffix(got, "-dirty") || version.MustParseSemantic(got) == nil {
		t.Errorf("after a tag: %q", got)
	}
}
