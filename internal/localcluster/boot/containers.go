package boot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kaz/internal/host/process"
	"kaz/internal/localcluster/image"
)

// store returns the directory of containerd with the container images of a control plane, a node and the add-ons. The images of
// kaz change with every build of kaz, so they are added to a copy of the directory with all others. That directory is in use until the
// lock is released.
func (c Catalogue) store(ctx context.Context, content Content, tree string) (string, *process.Lock, error) {
	wanted, own, err := content.Images(ctx, tree)
	if err != nil {
		return "", nil, err
	}
	base, err := c.once(ctx, "store", append(identities(wanted), content.Archives...), func(dir string) error {
		return c.fill(ctx, dir, wanted, content.Archives)
	})
	if err != nil || content.Kaz == "" {
		return base, nil, err
	}
	sum, err := checksum(content.Kaz)
	if err != nil {
		return "", nil, err
	}
	return c.latest(ctx, "store-kaz", append(identities([]image.Program{own}), base, sum), func(dir string) error {
		if err := copyStore(base, dir); err != nil {
			return err
		}
		return c.fill(ctx, dir, []image.Program{own}, nil)
	})
}

// fill imports images and archives into a directory of containerd.
func (c Catalogue) fill(ctx context.Context, dir string, images []image.Program, archives []string) error {
	work, err := os.MkdirTemp(c.Dir, ".archives-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	all := slices.Clone(archives)
	for i, p := range images {
		file := filepath.Join(work, fmt.Sprintf("%03d.tar", i))
		if err := p.Write(file); err != nil {
			return fmt.Errorf("container image %s: %w", p.References[0], err)
		}
		all = append(all, file)
	}
	return importImages(ctx, dir, all)
}

// checksum returns the checksum of a file.
func checksum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), errors.Join(err, f.Close())
}

// identities says what images are made from.
func identities(images []image.Program) []string {
	var all []string
	for _, p := range images {
		all = append(all, strings.Join(p.References, ",")+" "+strings.Join(p.Entrypoint, " "))
		for _, inside := range slices.Sorted(maps.Keys(p.Files)) {
			all = append(all, inside+"="+p.Files[inside])
		}
	}
	return all
}

// sandbox is the image of pods that containerd uses by default, as Debian has it.
const sandbox = "registry.k8s.io/pause:3.6"

// Images returns the images of all releases and of the add-ons, and the image of kaz, which has no references without [Content.Kaz]. tree
// is a tree of Debian, from which they have programs of the distribution.
func (content Content) Images(ctx context.Context, tree string) (all []image.Program, own image.Program, err error) {
	if all, err = content.images(ctx, tree); err != nil || content.Kaz == "" {
		return all, own, err
	}
	own, err = content.own(ctx, tree)
	return all, own, err
}

// images returns the images of all releases and of the add-ons, without those of kaz. An image has the program that was built, also
// if its tag names another version of etcd, CoreDNS or a program beside the disk driver.
func (content Content) images(ctx context.Context, tree string) ([]image.Program, error) {
	byReference := map[string]image.Program{}
	for _, r := range content.Releases {
		version, err := r.version(ctx)
		if err != nil {
			return nil, err
		}
		text, err := output(ctx, r.Programs["kubeadm"], "config", "images", "list", "--kubernetes-version", version)
		if err != nil {
			return nil, err
		}
		for reference := range strings.FieldsSeq(text) {
			if byReference[reference], err = program(ctx, reference, r.Programs, tree); err != nil {
				return nil, err
			}
		}
	}
	for name, reference := range content.Addons {
		if content.Programs[name] == "" {
			continue // of kaz
		}
		var err error
		if byReference[reference], err = program(ctx, reference, content.Programs, tree); err != nil {
			return nil, err
		}
	}
	var all []image.Program
	for _, reference := range slices.Sorted(maps.Keys(byReference)) {
		all = append(all, byReference[reference])
	}
	return all, nil
}

// protocols is the file with the names of the protocols of IP.
const protocols = "etc/protocols"

// program returns the image of the program that a reference names.
func program(ctx context.Context, reference string, programs map[string]string, tree string) (image.Program, error) {
	name, _, _ := strings.Cut(path.Base(reference), ":")
	p := image.Program{References: []string{reference}, Files: map[string]string{}}
	if programs[name] == "" {
		return p, fmt.Errorf("container image %s: no program %s", reference, name)
	}
	switch name {
	case "pause":
		// The kubelet starts no program in it that must know it by another name.
		p.References = append(p.References, sandbox)
		p.Files[name], p.Entrypoint = programs[name], []string{"/pause", "pause"}
	case "coredns":
		p.Files[name], p.Entrypoint = programs[name], []string{"/coredns"}
	default:
		p.Files["usr/local/bin/"+name], p.Entrypoint = programs[name], []string{"/usr/local/bin/" + name}
	}
	if name == "etcd" {
		for _, tool := range []string{"etcdctl", "etcdutl"} {
			p.Files["usr/local/bin/"+tool] = programs[tool]
		}
	}
	if name == "kube-proxy" {
		// Without the names of protocols nft prints their numbers, which kube-proxy takes for rules that are to go.
		p.Files[protocols] = filepath.Join(tree, protocols)
		return p, closure(ctx, tree, "/usr/sbin/nft", p.Files)
	}
	return p, nil
}

// diskTools are the programs that the disk driver runs.
func diskTools() []string {
	return []string{"/usr/bin/mount", "/usr/bin/umount", "/usr/sbin/blkid", "/usr/sbin/blockdev", "/usr/sbin/fsck", "/usr/sbin/fsck.ext4",
		"/usr/sbin/e2fsck", "/usr/sbin/mkfs.ext4", "/usr/sbin/resize2fs", "/usr/sbin/dumpe2fs"}
}

// diskDriver is the program that pods start without a command: it is the entry point of the image.
const diskDriver = "azuredisk-csi-driver"

// own returns the image of kaz, which has the names of all its components.
func (content Content) own(ctx context.Context, tree string) (image.Program, error) {
	const dir = "usr/local/bin/"
	p := image.Program{Files: map[string]string{dir + "kaz": content.Kaz}, Links: map[string]string{},
		Entrypoint: []string{"/" + dir + diskDriver}}
	for _, name := range slices.Sorted(maps.Keys(content.Addons)) {
		if content.Programs[name] == "" {
			p.References = append(p.References, content.Addons[name])
			p.Links[dir+name] = "kaz"
		}
	}
	if len(p.References) == 0 {
		return p, errors.New("no add-on is of kaz")
	}
	for _, tool := range diskTools() {
		if err := closure(ctx, tree, tool, p.Files); err != nil {
			return p, err
		}
	}
	return p, nil
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

// inside returns the path of a file of a tree. Symbolic links are followed within the tree.
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
