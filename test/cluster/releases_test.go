package cluster_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"kaz/internal/localcluster/controlplane"
)

// TestReleases runs each other release of Kubernetes with which kaz is said to work: its nodes are initialized, and Services come and go.
// All other tests run the default release.
func TestReleases(t *testing.T) {
	releases, err := controlplane.Releases()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range releases[1:] {
		t.Run(release, func(t *testing.T) {
			dir := newDir(t)
			c := startDetached(t, dir, "--kubernetes", release)
			var version struct{ ServerVersion struct{ GitVersion string } }
			if err := json.Unmarshal([]byte(c.must("", "version", "-o", "json")), &version); err != nil {
				t.Fatal(err)
			}
			if got := version.ServerVersion.GitVersion; got != "v"+release {
				t.Errorf("the API server is %s, want v%s", got, release)
			}
			for _, part := range []func(*cluster){checkNodes, externalServices, badAnnotation, sourceRanges, machines} {
				part(c)
			}
			refuses(t, exec.CommandContext(t.Context(), kaz(), "local", "up", "--dir", dir, "--kubernetes", releases[0]),
				"--kubernetes "+releases[0], dir, "has "+release)
		})
	}
}
