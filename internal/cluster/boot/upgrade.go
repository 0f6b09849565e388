package boot

import (
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/cluster/definition"
)

// UpgradeScript is the script for a run command that brings the control plane of a machine to another version. The machine gets the boot
// script of this kaz, the checksums of the definition and those that kaz has of the version, too, and where others are to be had.
func UpgradeScript(d definition.Definition, version string) string {
	k := d.Cluster.Spec.Kubernetes
	k.Version = version
	const end = "KAZ-END-OF-SCRIPT"
	return fmt.Sprintf(`set -eu
root=${KAZ_ROOT:-}
file=$root%s
[ -e "$file" ] || file=$root%s
cat > "$file.new" <<'%s'
%s%s
chmod 0755 "$file.new"
mv "$file.new" "$file"
cat > "$root%s" <<'%s'
%s%s
cat > "$root%s" <<'%s'
%s%s
sed -i "s/^KAZ_VERSION=.*/KAZ_VERSION=%s/; /^KAZ_OFFICIAL=/d" "$root/etc/kaz/node.env"
echo "KAZ_OFFICIAL='%s'" >> "$root/etc/kaz/node.env"
exec bash "$file" upgrade
`, layouts()[definition.Ignition].script(), layouts()["CloudInit"].script(), end, script, end,
		checksumFile, end, k.ChecksumLines(), end,
		releasedFile, end, definition.ReleasedChecksums(version), end, version, official(k))
}

// Report is what a machine says of its boot, or of an upgrade.
type Report struct {
	Failed  bool   `json:"failed"`
	Phase   string `json:"phase"`
	Message string `json:"message"`
}

// LastReport is the last report in the output of the boot script. It is false without one.
func LastReport(output string) (Report, bool) {
	i := strings.LastIndex(output, reportMark)
	if i < 0 {
		return Report{}, false
	}
	text, _, _ := strings.Cut(output[i+len(reportMark):], "\n")
	var r Report
	return r, json.Unmarshal([]byte(text), &r) == nil
}

// reportMark begins a report in the output.
const reportMark = "KAZ-STATUS "
