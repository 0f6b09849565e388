package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OfficialArtifacts is the URL of the project's own programs of Kubernetes. Only there a checksum beside a program counts.
const OfficialArtifacts = "https://dl.k8s.io"

// architectures are those of processors, as in the paths of programs.
func architectures() []string { return []string{"amd64", "arm64"} }

// programs are the programs of Kubernetes that machines install.
func programs() []string { return []string{"kubeadm", "kubelet", "kubectl"} }

// artifactPath is the path of a program below a mirror.
func artifactPath(version, architecture, program string) string {
	return fmt.Sprintf("v%s/bin/linux/%s/%s", version, architecture, program)
}

// artifacts refuses a mirror that anybody on the way can change, unless the definition says what its files are. Checksums for the version
// must be complete for each architecture that has some.
func (v *validator) artifacts() {
	k := v.d.Cluster.Spec.Kubernetes
	for _, architecture := range architectures() {
		var absent []string
		for _, program := range programs() {
			if path := artifactPath(k.Version, architecture, program); k.ArtifactChecksums[path] == "" {
				absent = append(absent, path)
			}
		}
		if len(absent) == len(programs()) {
			continue
		}
		if len(absent) > 0 {
			v.inCluster("spec.kubernetes.artifactChecksums", "some programs of version %s have a checksum: want those of %s, too",
				k.Version, strings.Join(absent, ", "))
		}
	}
	if strings.HasPrefix(k.ArtifactMirror, "http://") && !k.Pinned() {
		v.inCluster("spec.kubernetes.artifactMirror", "http does not protect programs on their way: want a URL with https, or the "+
			"checksums of version %s in spec.kubernetes.artifactChecksums", k.Version)
	}
}

// Pinned reports whether the definition has checksums of the programs of its version.
func (k Kubernetes) Pinned() bool {
	return slices.ContainsFunc(architectures(), func(architecture string) bool {
		return k.ArtifactChecksums[artifactPath(k.Version, architecture, programs()[0])] != ""
	})
}

// ChecksumLines are the checksums of programs, one a line before the path, as machines have them.
func (k Kubernetes) ChecksumLines() string {
	var text strings.Builder
	for _, path := range slices.Sorted(maps.Keys(k.ArtifactChecksums)) {
		fmt.Fprintf(&text, "%s %s\n", k.ArtifactChecksums[path], path)
	}
	return text.String()
}
