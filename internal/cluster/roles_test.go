package cluster

import (
	"slices"
	"strings"
	"testing"

	"kaz/internal/cluster/addon"
	"kaz/internal/plan/rights"
)

// TestRolesOfDiskDriver checks that the roles have all actions that the add-on of the disk driver can be asked for: each program beside
// the driver calls some of its features.
func TestRolesOfDiskDriver(t *testing.T) {
	p := plan(t, example(t, "ha.yaml"))
	roles, err := p.Roles()
	if err != nil {
		t.Fatal(err)
	}
	var given []string
	for _, r := range roles {
		if r.Scope.Equal(p.Names.Group()) {
			given = append(given, r.Actions...)
		}
	}
	calls := map[string][]rights.Feature{
		"csi-provisioner": {rights.Volumes, rights.Clones},
		"csi-attacher":    {rights.Attachments},
		"csi-resizer":     {rights.Volumes},
		"csi-snapshotter": {rights.Snapshots, rights.Restores},
	}
	manifests := strings.Join(addon.Manifests(p.Definition.Cluster), "\n")
	used := 0
	for program, features := range calls {
		if !strings.Contains(manifests, "/"+program+":") {
			continue
		}
		used++
		for _, need := range rights.Needed(features...) {
			if !need.Degrades && !slices.Contains(given, need.Action) {
				t.Errorf("%s: no role has %s, to %s", program, need.Action, need.Why)
			}
		}
	}
	if used == 0 {
		t.Error("the add-on has none of the programs")
	}
}
