package boot

import (
	"strings"
	"testing"
)

// TestLateKind checks that manifests are applied again if a kind is not known yet. The CustomResourceDefinition of the kind
// is in an earlier manifest. If a manifest cannot be applied, the boot fails.
func TestLateKind(t *testing.T) {
	for _, test := range []struct {
		failures string
		tries    int
		phase    string
	}{{"2", 3, `"failed": false`}, {"9", 5, `"phase": "manifests", "code": 70, "message": `}} {
		h := newHost(t, newCloud(t), "vm-a", "control-plane")
		h.write("failures", test.failures, 0o600)
		h.write("bin/kubectl", `#!/bin/sh
[ "$1" = version ] && { echo Client Version: v1.36.3; exit; }
echo "kubectl $*" >> "$KAZ_ROOT/calls"
case "$*" in *team-a-000.yaml)
  left=$(cat "$KAZ_ROOT/failures")
  [ "$left" -gt 0 ] || exit 0
  echo "$((left - 1))" > "$KAZ_ROOT/failures"
  echo "no matches for kind Route" >&2
  exit 1 ;;
esac
`, 0o755)
		calls, report, err := h.boot()
		if (err == nil) != (test.tries == 3) || strings.Count(calls, "team-a-000.yaml") != test.tries ||
			!strings.Contains(report, test.phase) {
			t.Errorf("%s failures: %v\n%s\n%s", test.failures, err, calls, report)
		}
		if applied := strings.Contains(calls, "applied.yaml"); applied != (test.tries == 3) {
			t.Errorf("%s failures: the inventory is applied: %t", test.failures, applied)
		}
	}
}
