package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// Place is where a machine runs on this machine.
type Place struct {
	// Name is the computer name and the name of the Node.
	Name string `json:"name"`
	// Dir is the disk of the machine. Its files survive a power-off.
	Dir string `json:"dir"`
	// Namespace is the path of the network namespace with the machine's network interfaces.
	Namespace string `json:"namespace"`
	// Cgroup is the path of the machine's cgroup in each hierarchy, such as kaz-1f2e/nodes0-000000.
	Cgroup string `json:"cgroup"`
}

// CheckPlace returns what is missing or invalid.
func (p Place) CheckPlace() error {
	return missing(map[string]bool{
		"name": p.Name == "", "dir": !filepath.IsAbs(p.Dir), "namespace": !filepath.IsAbs(p.Namespace),
		"cgroup": p.Cgroup == "" || !filepath.IsLocal(p.Cgroup),
	})
}

// Spec describes a machine.
type Spec struct {
	Place
	// Addresses are the addresses of the primary network interface: IPv4, IPv6 or both.
	Addresses []netip.Addr `json:"addresses"`
	// PodRanges and ServiceRanges are the cluster's ranges, one per family. Packets of pods to other addresses leave with
	// the address of the machine.
	PodRanges     []netip.Prefix `json:"podRanges"`
	ServiceRanges []netip.Prefix `json:"serviceRanges"`
	// Network is the address space of the virtual network.
	Network []netip.Prefix `json:"network"`
	// DNS is the address of the cluster's name server.
	DNS netip.Addr `json:"dns"`
	// ClientCA is the file of the certificate authority for clients of the kubelet.
	ClientCA string `json:"clientCA"`
	// Resolver is the address of Azure's name server, Search the domain of the virtual network's machines.
	Resolver netip.Addr `json:"resolver"`
	Search   string     `json:"search"`
	// AzureCA is the file of the certificate authority of Azure's hosts. Tenant is the tenant of the machine's
	// identities.
	AzureCA string `json:"azureCA"`
	Tenant  string `json:"tenant"`
	// Disks runs the node service of the disk driver. DataDisks is the number of disks that the machine's size allows, 0 if
	// unknown. The driver needs it because the machine has no identity with which the driver could ask Azure.
	Disks     bool `json:"disks,omitempty"`
	DataDisks int  `json:"dataDisks,omitempty"`
	// Shares is the kubeconfig of the node service of the driver of file shares, "" without it.
	Shares string `json:"shares,omitempty"`
	// Kubelet, Proxy and NodeManager are the kubeconfigs of these programs.
	Kubelet     string `json:"kubelet"`
	Proxy       string `json:"proxy"`
	NodeManager string `json:"nodeManager"` // "" without a cloud-node-manager
	// NodeRanges are the ranges of the Node's pods, none if the Node is not known yet.
	NodeRanges []string `json:"nodeRanges,omitempty"`
	// WaitRoutes keeps pods off the node until Azure has a route to them.
	WaitRoutes bool `json:"waitRoutes"`
	// VCPUs and Memory (bytes) are the size of the machine. Its pods get at most this size. 0 is the size of the host.
	VCPUs  int   `json:"vcpus,omitempty"`
	Memory int64 `json:"memory,omitempty"`
	// Labels are the labels that the kubelet gives the Node.
	Labels map[string]string `json:"labels,omitempty"`
	// Programs are the paths of the programs inside, by name.
	Programs map[string]string `json:"programs"`
	// Images are archives that the machine imports at boot. PauseImage is the name of an image in them.
	Images     []string `json:"images"`
	PauseImage string   `json:"pauseImage"`
}

// dirs returns the directories of the files that the machine's programs read.
func (s Spec) dirs() []string {
	files := slices.Concat(slices.Collect(maps.Values(s.Programs)), s.Images,
		[]string{s.ClientCA, s.AzureCA, s.Kubelet, s.Proxy, s.NodeManager, s.Shares})
	dirs := map[string]bool{}
	for _, file := range files {
		if file != "" {
			dirs[filepath.Dir(file)] = true
		}
	}
	return slices.Sorted(maps.Keys(dirs))
}

// DevicesDir is the directory with the links to the disks of a machine, below the root and below [Spec.Dir].
const DevicesDir = "dev/disk"

// Names in [Spec.Programs].
const (
	Containerd  = "containerd"
	ctr         = "ctr"
	Kubelet     = "kubelet"
	KubeProxy   = "kube-proxy"
	NodeManager = "kaz" // as kaz cloud-node-manager, kaz acr-credential-provider and the CSI drivers
)

// Write writes the spec for [Run] and returns the name of the file.
func (s Spec) Write() (string, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(s.Dir, "machine.json")
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", err
	}
	return file, os.WriteFile(file, append(text, '\n'), 0o600)
}

// Read reads a file of [Spec.Write].
func Read(file string) (Spec, error) {
	var s Spec
	text, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("machine %s: %w", file, err)
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("machine %s: %w", file, err)
	}
	return s, nil
}

func (s Spec) check() error {
	return errors.Join(s.CheckPlace(), missing(map[string]bool{
		"resolver": !s.Resolver.IsValid(), "addresses": len(s.Addresses) == 0, "search": s.Search == "",
		"azureCA": !filepath.IsAbs(s.AzureCA),
	}))
}

// missing returns an error for each name that is true.
func missing(names map[string]bool) error {
	var problems []error
	for what, is := range names {
		if is {
			problems = append(problems, fmt.Errorf("%s is missing or invalid", what))
		}
	}
	return errors.Join(problems...)
}
