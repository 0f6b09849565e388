package controlplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed modules/*/module.mod modules/*/module.sum modules/coredns/module.main
var moduleFiles embed.FS

// The programs of a control plane and of a node, by the names their projects give them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	KWOK              = "kwok"
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
	CoreDNS           = "coredns"
	Kubeadm           = "kubeadm"
	Etcdctl           = "etcdctl"
	Etcdutl           = "etcdutl"

	Provisioner        = "csi-provisioner"
	Attacher           = "csi-attacher"
	Resizer            = "csi-resizer"
	Snapshotter        = "csi-snapshotter"
	SnapshotController = "snapshot-controller"
)

// StoragePrograms returns the programs beside a CSI driver, which connect it with the API server.
func StoragePrograms() []string {
	return []string{Provisioner, Attacher, Resizer, Snapshotter, SnapshotController}
}

// MachinePrograms returns the programs that only machines with a kubeadm cluster need.
func MachinePrograms() []string { return []string{Kubeadm, Etcdctl, Etcdutl} }

// module is an embedded module and the programs that are built from it.
type module struct {
	name     string
	requires string            // module path whose version is the version of the build
	programs map[string]string // package by program
	stamps   []string          // packages into which the linker writes the version
}

// releases returns the modules of the releases of Kubernetes: the release in [modules], those before it, the newest first, and then those
// after it.
func releases() []module {
	all := modules()[1:2]
	for _, minor := range []string{"1.35", "1.34", "1.37"} {
		other := all[0]
		other.name += "-" + minor
		all = append(all, other)
	}
	return all
}

// Releases returns the releases of Kubernetes that can be built: the default, such as 1.36.3, then the releases before it, the newest
// first, and then those after it.
func Releases() ([]string, error) {
	var all []string
	for _, m := range releases() {
		version, err := m.version()
		if err != nil {
			return nil, err
		}
		all = append(all, strings.TrimPrefix(version, "v"))
	}
	return all, nil
}

// modulesOf returns the modules with a release of Kubernetes, the default if it is empty.
func modulesOf(release string) ([]module, error) {
	all := modules()
	known, err := Releases()
	if err != nil || release == "" {
		return all, err
	}
	i := slices.Index(known, release)
	if i < 0 {
		return nil, fmt.Errorf("kubernetes %s: want one of the releases %s", release, strings.Join(known, ", "))
	}
	all[1] = releases()[i]
	return all, nil
}

// modules returns the modules with the default release of Kubernetes, which is the second one. The sources of etcd and kwok
// contain their versions.
func modules() []module {
	return []module{
		{
			name:     "etcd",
			requires: "go.etcd.io/etcd/server/v3",
			programs: map[string]string{
				Etcd:    "go.etcd.io/etcd/server/v3",
				Etcdctl: "go.etcd.io/etcd/etcdctl/v3",
				Etcdutl: "go.etcd.io/etcd/etcdutl/v3",
			},
		},
		{
			name:     "kubernetes",
			requires: "k8s.io/kubernetes",
			programs: map[string]string{
				APIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
				Kubectl:           "k8s.io/kubernetes/cmd/kubectl",
				ControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
				Scheduler:         "k8s.io/kubernetes/cmd/kube-scheduler",
				Kubelet:           "k8s.io/kubernetes/cmd/kubelet",
				KubeProxy:         "k8s.io/kubernetes/cmd/kube-proxy",
				Kubeadm:           "k8s.io/kubernetes/cmd/kubeadm",
			},
			stamps: []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"},
		},
		{
			name:     "kwok",
			requires: "sigs.k8s.io/kwok",
			programs: map[string]string{KWOK: "sigs.k8s.io/kwok/cmd/kwok"},
		},
		{
			// A small main program selects the plugins of the name server at compile time.
			name:     "coredns",
			requires: "github.com/coredns/coredns",
			programs: map[string]string{CoreDNS: "."},
		},
		{
			name:     "csi",
			requires: "github.com/kubernetes-csi/external-provisioner/v6",
			programs: map[string]string{
				Provisioner:        "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner",
				Attacher:           "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher",
				Resizer:            "github.com/kubernetes-csi/external-resizer/v2/cmd/csi-resizer",
				Snapshotter:        "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter",
				SnapshotController: "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller",
			},
		},
	}
}

// files returns the files of the module by the names that the go command expects.
func (m module) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, kept := range map[string]string{"go.mod": "module.mod", "go.sum": "module.sum", "main.go": "module.main"} {
		text, err := moduleFiles.ReadFile("modules/" + m.name + "/" + kept)
		if name == "main.go" && errors.Is(err, fs.ErrNotExist) {
			continue // the module has no main program of its own
		}
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", m.name, err)
		}
		files[name] = text
	}
	return files, nil
}

// version returns the pinned version of the required module, such as v1.36.3.
func (m module) version() (string, error) {
	versions, err := m.versions()
	if err != nil {
		return "", err
	}
	if v := versions[m.requires]; v != "" {
		return v, nil
	}
	return "", fmt.Errorf("module %s: its go.mod does not require %s", m.name, m.requires)
}

// versions returns the pinned version of each required module.
func (m module) versions() (map[string]string, error) {
	files, err := m.files()
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(files["go.mod"])) {
		f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(f) > 1 && strings.HasPrefix(f[1], "v") && f[0] != "replace" {
			versions[f[0]] = f[1]
		}
	}
	return versions, nil
}

// versionOf returns the version of the module that has a program.
func (m module) versionOf(program string) (string, error) {
	versions, err := m.versions()
	if err != nil {
		return "", err
	}
	for folder := m.programs[program]; folder != "." && folder != "/"; folder = path.Dir(folder) {
		if v := versions[folder]; v != "" {
			return v, nil
		}
	}
	return m.version()
}

// linkerFlags returns flags that strip debug tables, which halves the files, and write the version into packages without
// one.
func (m module) linkerFlags(version string) string {
	flags := []string{"-s", "-w"}
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	for _, pkg := range m.stamps {
		for _, stamp := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor, "gitCommit=", "gitTreeState=archive",
		} {
			flags = append(flags, "-X", pkg+"."+stamp)
		}
	}
	return strings.Join(flags, " ")
}

// folder returns the cache directory of a build. Its name has the version and a hash of all inputs.
func (m module) folder(tc toolchain) (string, error) {
	version, err := m.version()
	if err != nil {
		return "", err
	}
	files, err := m.files()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	parts := []string{string(files["go.mod"]), string(files["go.sum"]), string(files["main.go"]), m.linkerFlags(version), tc.version,
		tc.platform()}
	for _, name := range m.names() {
		parts = append(parts, name, m.programs[name])
	}
	for _, part := range parts {
		_, _ = io.WriteString(h, part+"\x00")
	}
	return fmt.Sprintf("%s-%s-%s", m.name, version, hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// names returns the programs of the module in the order of the build, which is the order of the start.
func (m module) names() []string {
	return slices.DeleteFunc(programs(), func(name string) bool { return m.programs[name] == "" })
}

// Programs returns the names of all programs.
func Programs() []string { return programs() }

// programs returns all programs in the order of the build.
func programs() []string {
	return append([]string{
		Etcd, Etcdctl, Etcdutl, APIServer, Kubectl, ControllerManager, Scheduler, Kubelet, KubeProxy, Kubeadm, KWOK, CoreDNS,
	}, StoragePrograms()...)
}
