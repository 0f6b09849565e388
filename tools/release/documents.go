package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// writeSBOMs writes the software bill of materials of each archive, in the format of SPDX.
func (r *release) writeSBOMs(ctx context.Context) error {
	for _, a := range archivesOf(r.version, r.platforms) {
		scanned := filepath.Join(r.work, a.folder+".spdx.json")
		if err := r.command(ctx, []string{"SYFT_CHECK_FOR_APP_UPDATE=false"}, r.tool("syft"), "scan", "dir:"+r.stage(a),
			"--output", "spdx-json="+scanned, "--source-name", a.folder, "--source-version", r.version); err != nil {
			return fmt.Errorf("%s: %w", a.file(), err)
		}
		text, err := os.ReadFile(scanned)
		if err != nil {
			return err
		}
		if text, err = datedSBOM(text, r.date); err != nil {
			return fmt.Errorf("%s: %w", a.file(), err)
		}
		if err := os.WriteFile(filepath.Join(r.out, a.folder+".spdx.json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// datedSBOM returns an SBOM in SPDX with a date, and with a name that its content determines. syft gives it the present time and a random
// name.
func datedSBOM(text []byte, date time.Time) ([]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("SBOM: %w", err)
	}
	creation, ok := document["creationInfo"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("SBOM: creationInfo is %T, want an object", document["creationInfo"])
	}
	// One package is the archive itself. A scan that could not read its programs has no other.
	if packages, _ := document["packages"].([]any); len(packages) < 2 {
		return nil, fmt.Errorf("SBOM: it has %d packages, want those of the programs", len(packages))
	}
	creation["created"] = date.Format(time.RFC3339)
	delete(document, "documentNamespace")
	content, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	document["documentNamespace"] = "https://kaz.dev/sbom/" + hex.EncodeToString(sum[:])
	return json.MarshalIndent(document, "", " ")
}

// writeChangelog writes the changes since the last release.
func (r *release) writeChangelog(context.Context) error {
	file := "CHANGELOG-" + r.version + ".md"
	return os.WriteFile(filepath.Join(r.out, file), []byte(changelog(r.version, r.facts)), 0o644)
}

// area is the beginning of a commit's subject up to the colon, such as "kaz check".
var area = regexp.MustCompile(`^([a-zA-Z0-9./, _-]{1,60}): +(.*)$`)

// changelog groups the subjects of commits by their areas, which are sorted. Commits without an area come last.
func changelog(version string, f facts) string {
	const others = "others"
	groups := map[string][]string{}
	for _, subject := range f.subjects {
		if subject == "" {
			continue
		}
		group, what := others, subject
		if m := area.FindStringSubmatch(subject); m != nil {
			group, what = m[1], m[2]
		}
		groups[group] = append(groups[group], what)
	}
	rest := groups[others]
	delete(groups, others)
	names := slices.Sorted(maps.Keys(groups))
	if len(rest) > 0 {
		groups[others], names = rest, append(names, others)
	}
	var b strings.Builder
	since := "the first release"
	if f.previous != "" {
		since = "the changes since " + f.previous
	}
	fmt.Fprintf(&b, "# kaz %s\n\nCommit %s of %s: %s.\n", version, f.commit, f.date.Format(time.DateOnly), since)
	for _, name := range names {
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		for _, what := range groups[name] {
			fmt.Fprintf(&b, "* %s\n", what)
		}
	}
	return b.String()
}
