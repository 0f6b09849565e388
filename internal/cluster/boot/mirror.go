package boot

import (
	"encoding/pem"
	"fmt"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/definition/fields"
)

// packageFile has the packages that machines install, one a line: checksum and URL.
const packageFile = "/etc/kaz/packages"

// mirrored are the files of a machine that installs from a mirror: the authorities that it trusts, and its packages.
func (b builder) mirrored(at layout) []file {
	var files []file
	rest := []byte(b.spec.Machines.CertificateAuthorities)
	for i := 0; ; i++ { // update-ca-certificates wants one in each file
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		files = append(files, file{fmt.Sprintf("%s%d%s", at.authorities, i, at.authorityEnd), "0644", string(pem.EncodeToMemory(block))})
	}
	var packages strings.Builder
	for _, p := range b.spec.Machines.Packages {
		fmt.Fprintf(&packages, "%s %s\n", p.SHA256, p.URL)
	}
	if packages.Len() > 0 {
		files = append(files, file{packageFile, "0644", packages.String()})
	}
	return files
}

// official is where the project publishes the checksums of its programs, "" if no machine needs it: with a mirror, and known checksums for
// each architecture.
func official(k definition.Kubernetes) string {
	for _, architecture := range fields.Architectures() {
		if !k.PinnedFor(architecture) {
			return fields.OfficialArtifacts
		}
	}
	if k.ArtifactMirror == fields.OfficialArtifacts {
		return fields.OfficialArtifacts
	}
	return ""
}

// mirrorSettings are the settings of the boot script about mirrors.
func (b builder) mirrorSettings() [][2]string {
	k := b.spec.Kubernetes
	var settings [][2]string
	if from := official(k); from != "" {
		settings = append(settings, [2]string{"OFFICIAL", from})
	}
	if k.ImageRepository != "" {
		settings = append(settings, [2]string{"IMAGES", k.ImageRepository})
	}
	if b.spec.Machines.CertificateAuthorities != "" {
		settings = append(settings, [2]string{"AUTHORITIES", "true"})
	}
	return settings
}

// sandbox is the setting of containerd for the image of pods' sandboxes. The boot script fills in its version.
func (b builder) sandbox() string {
	if b.spec.Kubernetes.ImageRepository == "" {
		return ""
	}
	return "  sandbox_image = \"" + b.spec.Kubernetes.ImageRepository + "/pause\"\n"
}
