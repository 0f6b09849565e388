package boot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/local/image"
)

// Release is a release of Kubernetes: its programs, by name.
type Release struct {
	Programs map[string]string
}

// nodePrograms are the programs of a release that are in the image itself. The others are in container images.
func nodePrograms() []string { return []string{"kubeadm", "kubelet", "kubectl"} }

// hostSettings fit kubeadm and the kubelet to a host with control groups of version 1.
func hostSettings() map[string]string {
	return map[string]string{
		"etc/kaz/image.env": "KAZ_IGNORE_PREFLIGHT=SystemVerification\n",
		"etc/kaz/patches/kubeletconfiguration0+strategic.yaml": "apiVersion: kubelet.config.k8s.io/v1beta1\n" +
			"kind: KubeletConfiguration\nfailCgroupV1: false\nfailSwapOn: false\noomScoreAdj: 0\nlocalStorageCapacityIsolation: false\n" +
			"evictionHard: {nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, memory.available: 0%}\n" +
			"imageGCHighThresholdPercent: 100\n",
	}
}

// Kubernetes returns the image of Debian with a release of Kubernetes, so that a node needs no internet to boot.
func (c Catalogue) Kubernetes(ctx context.Context, r Release) (Image, error) {
	base, err := c.Debian(ctx)
	if err != nil {
		return base, err
	}
	version, err := output(ctx, r.Programs["kubeadm"], "version", "-o", "short")
	if err != nil {
		return base, err
	}
	files, from := hostSettings(), []string{version}
	for _, name := range nodePrograms() {
		from = append(from, r.Programs[name])
	}
	layer, err := c.once(ctx, "kubernetes-"+version, append(from, content(files, nil)...), func(dir string) error {
		if err := write(dir, files, nil); err != nil {
			return err
		}
		bin := filepath.Join(dir, "usr/local/bin")
		if err := os.MkdirAll(bin, 0o755); err != nil {
			return err
		}
		for _, name := range nodePrograms() {
			if err := copyFile(r.Programs[name], filepath.Join(bin, name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return base, err
	}
	store, err := c.store(ctx, r, version, base.Layers[len(base.Layers)-1])
	return Image{Layers: append([]string{layer}, base.Layers...), Store: store}, err
}

// store returns the directory of containerd with the container images of a control plane and a node.
func (c Catalogue) store(ctx context.Context, r Release, version, tree string) (string, error) {
	text, err := output(ctx, r.Programs["kubeadm"], "config", "images", "list", "--kubernetes-version", version)
	if err != nil {
		return "", err
	}
	names := strings.Fields(text)
	from := slices.Clone(names)
	for name, file := range r.Programs {
		from = append(from, name+"="+file)
	}
	slices.Sort(from)
	return c.once(ctx, "store-"+version, from, func(dir string) error {
		archives, err := c.archives(ctx, r, names, tree, dir)
		if err != nil {
			return err
		}
		if err := importImages(ctx, dir, archives); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Join(dir, "archives"))
	})
}

// sandbox is the image of pods that containerd uses by default, as Debian has it.
const sandbox = "registry.k8s.io/pause:3.6"

// archives makes an archive of each container image.
func (c Catalogue) archives(ctx context.Context, r Release, names []string, tree, dir string) ([]string, error) {
	to := filepath.Join(dir, "archives")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return nil, err
	}
	var all []string
	for _, reference := range names {
		program, _, _ := strings.Cut(path.Base(reference), ":")
		p := image.Program{References: []string{reference}, Files: map[string]string{}}
		switch program {
		case "pause":
			// The kubelet starts no program in it that must know it by another name.
			p.References = append(p.References, sandbox)
			p.Files["pause"], p.Entrypoint = r.Programs["pause"], []string{"/pause", "pause"}
		case "coredns":
			p.Files["coredns"], p.Entrypoint = r.Programs["coredns"], []string{"/coredns"}
		default:
			p.Files["usr/local/bin/"+program], p.Entrypoint = r.Programs[program], []string{"/usr/local/bin/" + program}
		}
		if program == "kube-proxy" {
			if err := closure(ctx, tree, "/usr/sbin/nft", p.Files); err != nil {
				return nil, err
			}
		}
		for name, file := range p.Files {
			if file == "" {
				return nil, fmt.Errorf("container image %s: no program %s", reference, name)
			}
		}
		file := filepath.Join(to, program+".tar")
		if err := p.Write(file); err != nil {
			return nil, fmt.Errorf("container image %s: %w", reference, err)
		}
		all = append(all, file)
	}
	return all, nil
}

// closure adds a program of a tree to files, with the libraries that it loads.
func closure(ctx context.Context, tree, program string, files map[string]string) error {
	text, err := output(ctx, "chroot", tree, "ldd", program)
	if err != nil {
		return err
	}
	add := func(name string) error {
		file, err := inside(tree, name)
		files[strings.TrimPrefix(name, "/")] = file
		return err
	}
	if err := add(program); err != nil {
		return err
	}
	for word := range strings.FieldsSeq(text) {
		if strings.HasPrefix(word, "/") {
			if err := add(word); err != nil {
				return err
			}
		}
	}
	return nil
}

// inside returns the path of a file of a tree. Links are followed within the tree.
func inside(tree, name string) (string, error) {
	const mostLinks = 20
	at := name
	for range mostLinks {
		dir, err := filepath.EvalSymlinks(filepath.Join(tree, filepath.Dir(at)))
		if err != nil {
			return "", err
		}
		file := filepath.Join(dir, filepath.Base(at))
		target, err := os.Readlink(file)
		if err != nil {
			_, err = os.Stat(file)
			return file, err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(at), target)
		}
		at = target
	}
	return "", fmt.Errorf("%s: more than %d links", name, mostLinks)
}

func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o755)
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
