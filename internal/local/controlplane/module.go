package controlplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
)

// module is one of the embedded modules and the programs that are built from it.
type module struct {
	name     string
	requires string            // the module path whose version names the build
	programs map[string]string // program: its package
	stamps   []string          // packages that the linker tells the version
}

// modules lists what is built. Etcd and kwok carry their versions in their source.
func modules() []module {
	return []module{
		{
			name:     "etcd",
			requires: "go.etcd.io/etcd/server/v3",
			programs: map[string]string{Etcd: "go.etcd.io/etcd/server/v3"},
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
			},
			stamps: []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"},
		},
		{
			name:     "kwok",
			requires: "sigs.k8s.io/kwok",
			programs: map[string]string{KWOK: "sigs.k8s.io/kwok/cmd/kwok"},
		},
		{
			// What a name server has is chosen when it is compiled, by a program of a few lines.
			name:     "coredns",
			requires: "github.com/coredns/coredns",
			programs: map[string]string{CoreDNS: "."},
		},
	}
}

// files returns the module's files by the names that the go command wants.
func (m module) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, kept := range map[string]string{"go.mod": "module.mod", "go.sum": "module.sum", "main.go": "module.main"} {
		text, err := moduleFiles.ReadFile("modules/" + m.name + "/" + kept)
		if name == "main.go" && errors.Is(err, fs.ErrNotExist) {
			continue // only programs of others are built from it
		}
		if err != nil {
			return nil, fmt.Errorf("module %s: %w", m.name, err)
		}
		files[name] = text
	}
	return files, nil
}

// version is the pinned version of what the module is for, such as v1.36.3.
func (m module) version() (string, error) {
	files, err := m.files()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(files["go.mod"])) {
		if f := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require ")); len(f) > 1 && f[0] == m.requires {
			return f[1], nil
		}
	}
	return "", fmt.Errorf("module %s: its go.mod does not require %s", m.name, m.requires)
}

// linkerFlags strips debug tables, which halves the files, and stamps the version where the source has none.
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

// folder names the place of a build in the cache: by version to be read, and by everything that went into it.
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
	parts := []string{string(files["go.mod"]), string(files["go.sum"]), string(files["main.go"]), m.linkerFlags(version), tc.version, tc.platform()}
	for _, name := range m.names() {
		parts = append(parts, name, m.programs[name])
	}
	for _, part := range parts {
		_, _ = io.WriteString(h, part+"\x00")
	}
	return fmt.Sprintf("%s-%s-%s", m.name, version, hex.EncodeToString(h.Sum(nil))[:12]), nil
}

// names lists the module's programs in the order they are built: what a start waits for first comes first.
func (m module) names() []string {
	return slices.DeleteFunc(programs(), func(name string) bool { return m.programs[name] == "" })
}

// programs lists every program in the order it is built.
func programs() []string {
	return []string{Etcd, APIServer, Kubectl, ControllerManager, Scheduler, Kubelet, KubeProxy, KWOK, CoreDNS}
}
