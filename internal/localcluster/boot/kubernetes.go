package boot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Release is a release of Kubernetes: its programs, by name.
type Release struct {
	Programs map[string]string
}

// Content is what the image of a node has beside Debian.
type Content struct {
	// Releases are releases of Kubernetes. The programs of the first one are installed. If there are several, machines find all of them in
	// a directory that is laid out as their mirror.
	Releases []Release
	// Addons are the container images of add-ons by the name of their program, and Programs the programs that are not of a release.
	Addons, Programs map[string]string
	// Kaz is the program kaz. It runs as each component of kaz by that component's name.
	Kaz string
	// Archives are archives of further container images.
	Archives []string
}

// nodePrograms are the programs of a release that are in the image itself. The others are in container images.
func nodePrograms() []string { return []string{"kubeadm", "kubelet", "kubectl"} }

// mirror is the directory of the image with the programs of several releases.
const mirror = "usr/local/share/kaz/mirror"

// hostSettings fit kubeadm and the kubelet to a host with control groups of version 1.
func hostSettings() map[string]string {
	return map[string]string{
		"etc/kaz/image.env": "KAZ_IGNORE_PREFLIGHT=SystemVerification\n" +
			"if [ -e /" + mirror + "/v$KAZ_VERSION ]; then KAZ_MIRROR=file:///" + mirror + "; fi\n",
		"etc/kaz/patches/kubeletconfiguration0+strategic.yaml": "apiVersion: kubelet.config.k8s.io/v1beta1\n" +
			"kind: KubeletConfiguration\nfailCgroupV1: false\nfailSwapOn: false\noomScoreAdj: 0\nlocalStorageCapacityIsolation: false\n" +
			"evictionHard: {nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, memory.available: 0%}\n" +
			"imageGCHighThresholdPercent: 100\n",
	}
}

// Kubernetes returns the image of Debian with Kubernetes, so that a node needs no internet to boot.
func (c Catalogue) Kubernetes(ctx context.Context, content Content) (Image, error) {
	base, err := c.Debian(ctx)
	if err != nil {
		return base, err
	}
	layer, err := c.programs(ctx, "kubernetes-", "usr/local/bin", content.Releases)
	if err != nil {
		return base, err
	}
	store, lock, err := c.store(ctx, content, base.Layers[len(base.Layers)-1])
	return Image{Layers: append([]string{layer}, base.Layers...), Store: store, inUse: lock}, err
}

// version returns the version of a release, such as v1.36.3.
func (r Release) version(ctx context.Context) (string, error) {
	return output(ctx, r.Programs["kubeadm"], "version", "-o", "short")
}

// programs returns the layer with the programs of releases that run outside containers, those of the first one in the directory bin.
func (c Catalogue) programs(ctx context.Context, name, bin string, releases []Release) (string, error) {
	files, versions, from := hostSettings(), []string(nil), []string{"all releases in the mirror"}
	for _, r := range releases {
		version, err := r.version(ctx)
		if err != nil {
			return "", err
		}
		versions, from = append(versions, version), append(from, version)
		for _, name := range nodePrograms() {
			from = append(from, r.Programs[name])
		}
	}
	return c.once(ctx, name+strings.Join(versions, "-"), append(from, hashInputs(files, nil)...), func(dir string) error {
		if err := write(dir, files, nil); err != nil {
			return err
		}
		if err := releases[0].install(filepath.Join(dir, bin)); err != nil || len(releases) == 1 {
			return err
		}
		for i, r := range releases {
			if err := r.publish(filepath.Join(dir, mirror, versions[i], "bin/linux", runtime.GOARCH)); err != nil {
				return err
			}
		}
		return nil
	})
}

// install copies the programs of a node into a directory.
func (r Release) install(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range nodePrograms() {
		text, err := os.ReadFile(r.Programs[name])
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// publish copies the programs of a node into a directory of a mirror, with their checksums.
func (r Release) publish(dir string) error {
	if err := r.install(dir); err != nil {
		return err
	}
	for _, name := range nodePrograms() {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name+".sha256"), fmt.Appendf(nil, "%x", sha256.Sum256(text)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program. A failure contains the end of its output.
func run(ctx context.Context, program string, args ...string) error {
	_, err := output(ctx, program, args...)
	return err
}

// output runs a program and returns what it prints.
func output(ctx context.Context, program string, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		const most = 2000
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, text[max(0, len(text)-most):])
	}
	return strings.TrimSpace(string(text)), nil
}
