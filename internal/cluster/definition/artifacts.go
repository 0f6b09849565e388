package definition

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/cluster/definition/fields"
)

// released has the SHA-256 of the programs of published versions, as sha256sum prints them. make checksums adds those of a version.
//
//go:embed checksums.txt
var released string

// ArtifactPath is the path of a program below a mirror.
func ArtifactPath(version, architecture, program string) string {
	return fmt.Sprintf("v%s/bin/linux/%s/%s", version, architecture, program)
}

// IsArtifact reports whether a path is that of a program of Kubernetes below a mirror.
func IsArtifact(path string) bool {
	return fields.Table()["Cluster.spec.kubernetes.artifactChecksums"].Key.Pattern.MatchString(path)
}

// artifacts refuses a mirror that anybody on the way can change, unless the definition says what its files are. Checksums for the version
// must be complete for each architecture that has some.
func (v *validator) artifacts() {
	k := v.d.Cluster.Spec.Kubernetes
	for _, architecture := range fields.Architectures() {
		var absent []string
		for _, program := range fields.Programs() {
			if path := ArtifactPath(k.Version, architecture, program); k.ArtifactChecksums[path] == "" {
				absent = append(absent, path)
			}
		}
		if len(absent) == len(fields.Programs()) {
			continue
		}
		if len(absent) > 0 {
			v.inCluster("spec.kubernetes.artifactChecksums", "some programs of version %s have a checksum: want those of %s, too",
				k.Version, strings.Join(absent, ", "))
		}
	}
	if strings.HasPrefix(k.ArtifactMirror, "http://") && !k.Pinned() {
		v.inCluster("spec.kubernetes.artifactMirror", "http does not protect programs on their way, and this kaz has no checksums of "+
			"version %s: want a URL with https, or the checksums in spec.kubernetes.artifactChecksums", k.Version)
	}
}

// Pinned reports whether the checksums of the programs of the version are in the definition or in this kaz.
func (k Kubernetes) Pinned() bool {
	return slices.ContainsFunc(fields.Architectures(), k.PinnedFor)
}

// PinnedFor reports whether those for an architecture are.
func (k Kubernetes) PinnedFor(architecture string) bool {
	return ReleasedChecksums(k.Version) != "" || k.ArtifactChecksums[ArtifactPath(k.Version, architecture, fields.Programs()[0])] != ""
}

// ReleasedChecksums are the checksums that this kaz has of the programs of a version, one a line before the path, as machines have them.
// There are none of a version that was published later than this kaz.
func ReleasedChecksums(version string) string {
	var text strings.Builder
	for line := range strings.Lines(released) {
		if sum, path, found := strings.Cut(line, "  "); found && strings.HasPrefix(path, "v"+version+"/") {
			text.WriteString(sum + " " + path)
		}
	}
	return text.String()
}

// DifferentChecksums are the paths of programs that have another checksum in the definition than in this kaz.
func (k Kubernetes) DifferentChecksums() []string {
	var different []string
	for line := range strings.Lines(ReleasedChecksums(k.Version)) {
		sum, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		if given := k.ArtifactChecksums[path]; given != "" && given != sum {
			different = append(different, path)
		}
	}
	return different
}

// ChecksumLines are the checksums of programs in the definition, one a line before the path, as machines have them.
func (k Kubernetes) ChecksumLines() string {
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(k.ArtifactChecksums)) {
		fmt.Fprintf(&text, "%s %s\n", k.ArtifactChecksums[path], path)
	}
	return text.String()
}
