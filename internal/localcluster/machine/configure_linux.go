package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/sys/unix"

	"kaz/internal/azure/registry"
	"kaz/internal/localcluster/cidr"
)

// Configuration files of a machine's programs. Each boot writes them.
const (
	containerdFile = "/run/kaz/containerd.toml"
	networkFile    = "/run/kaz/network.template"
	// nodeNetworkFile has the name that containerd gives the file that it makes of the template.
	nodeNetworkFile = "/run/cni/10-containerd-net.conflist"
	kubeletFile     = "/run/kaz/kubelet.yaml"
	proxyFile       = "/run/kaz/kube-proxy.yaml"
	credentialFile  = "/run/kaz/credential-provider.yaml"
	azureFile       = "/run/kaz/azure.json"
	// authorityFile is in the directory in which Go programs look for additional certificate authorities.
	authorityFile = "/etc/ssl/certs/kaz-local-azure.pem"
)

// containerdConfig is valid for containerd 1.6 and later. It leaves the OOM score unchanged, because many systems forbid to
// lower it.
var containerdConfig = template.Must(template.New("containerd").Parse(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "` + socket + `"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {{printf "%q" .PauseImage}}
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/run/cni"
    conf_template = "` + networkFile + `"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`))

// networkConfig is a template from which containerd writes the CNI configuration when the Node has its pod range. The machine writes it
// for a Node that has its range already, because the kubelet would look for it only every five seconds. Each pod has its own link, so
// that its packets are routed and pass the rules of kube-proxy. The second plugin publishes hostPorts.
const networkConfig = `{"cniVersion": "0.3.1", "name": "kaz", "plugins": [
  {"type": "ptp", "mtu": 1500, "ipam": {"type": "host-local",
    "ranges": [{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$r}}"}]{{end}}],
    "routes": [{{range $i, $r := .Routes}}{{if $i}}, {{end}}{"dst": "{{$r}}"}{{end}}]}},
  {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}
]}
`

// nodeNetwork returns the CNI configuration of a Node with pod ranges.
func nodeNetwork(ranges []string) ([]byte, error) {
	t, err := template.New("network").Parse(networkConfig)
	if err != nil {
		return nil, err
	}
	node := struct{ PodCIDRRanges, Routes []string }{PodCIDRRanges: ranges}
	for _, r := range ranges {
		all := "0.0.0.0/0"
		if strings.Contains(r, ":") {
			all = "::/0"
		}
		node.Routes = append(node.Routes, all)
	}
	var text bytes.Buffer
	err = t.Execute(&text, node)
	return text.Bytes(), err
}

type object = map[string]any

// configure writes the configuration files and loads the packet filter rules.
func configure(s Spec) error {
	var containerd bytes.Buffer
	if err := containerdConfig.Execute(&containerd, s); err != nil {
		return err
	}
	authority, err := os.ReadFile(s.AzureCA)
	if err != nil {
		return fmt.Errorf("authority of the local Azure: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(authorityFile), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("/etc/hostname", []byte(s.Name+"\n"), 0o644); err != nil {
		return err
	}
	if len(s.NodeRanges) > 0 {
		text, err := nodeNetwork(s.NodeRanges)
		if err != nil {
			return err
		}
		if err := os.WriteFile(nodeNetworkFile, text, 0o644); err != nil {
			return err
		}
	}
	for file, content := range map[string]any{
		containerdFile:     containerd.Bytes(),
		networkFile:        []byte(networkConfig),
		kubeletFile:        kubeletConfig(s),
		proxyFile:          proxyConfig(s),
		"/etc/hosts":       []byte(hosts(s)),
		"/etc/resolv.conf": []byte("nameserver " + s.Resolver.String() + "\nsearch " + s.Search + "\n"),
		credentialFile:     credentialConfig(s),
		azureFile:          azureConfig(s),
		authorityFile:      authority,
	} {
		text, ok := content.([]byte)
		if !ok {
			var err error
			if text, err = json.MarshalIndent(content, "", "  "); err != nil {
				return err
			}
		}
		// The existing file may be a link to a file that does not exist in the machine.
		_ = os.Remove(file)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return runWithInput(rules(s), "nft", "-f", "-")
}

// kubeletConfig returns the configuration of the kubelet.
func kubeletConfig(s Spec) object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": true}, "x509": object{"clientCAFile": s.ClientCA},
		},
		"authorization":            object{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + socket,
		"cgroupDriver":             "cgroupfs", "cgroupRoot": "/" + filepath.ToSlash(s.Cgroup), "failCgroupV1": false,
		"failSwapOn": false, "oomScoreAdj": 0,
		"clusterDNS": []string{s.DNS.String()}, "clusterDomain": "cluster.local",
		"resolvConf": "/etc/resolv.conf",
		// A disk is mounted after the node's status has it, and detached after the status has it no more.
		"nodeStatusUpdateFrequency": "1s",
		// The disk belongs to the host. A full disk of the host must not evict pods or delete images.
		"evictionHard": object{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
			"memory.available": "0%"},
		"systemReserved": reserved(s),
		// At a shutdown pods get the first 20 s, and then critical pods 10 s.
		"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s",
		"imageGCHighThresholdPercent": 100,
		"maxPods":                     110,
	}
}

// reserved returns what the kubelet keeps from pods: what the host has more than the machine.
func reserved(s Spec) map[string]string {
	keep := map[string]string{}
	if more := runtime.NumCPU() - s.VCPUs; s.VCPUs > 0 && more > 0 {
		keep["cpu"] = strconv.Itoa(more)
	}
	var host unix.Sysinfo_t
	if err := unix.Sysinfo(&host); err != nil {
		return keep
	}
	if more := int64(host.Totalram)*int64(host.Unit) - s.Memory; s.Memory > 0 && more > 0 {
		keep["memory"] = strconv.FormatInt(more, 10)
	}
	return keep
}

// credentialConfig returns the configuration by which the kubelet pulls from registries with the machine's identity.
func credentialConfig(s Spec) object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
		"providers": []object{{
			"name": filepath.Base(s.Programs[NodeManager]), "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
			"matchImages":          registry.MatchImages(),
			"defaultCacheDuration": "10m", "args": []string{registry.Program, azureFile},
		}},
	}
}

// azureConfig returns the machine's azure.json. In the virtual network all hosts of Azure have their public names.
func azureConfig(s Spec) object {
	return object{"cloud": "AzurePublicCloud", "tenantId": s.Tenant, "useManagedIdentityExtension": true}
}

// proxyConfig returns the configuration of kube-proxy.
func proxyConfig(s Spec) object {
	// Probes of load balancers use any address of the machine.
	healthz := "0.0.0.0:10256"
	if slices.ContainsFunc(s.Addresses, netip.Addr.Is6) {
		healthz = "[::]:10256"
	}
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		// In a small cluster kube-proxy can apply changes at once.
		"nftables": object{"minSyncPeriod": "200ms"},
		"mode":     "nftables", "clusterCIDR": cidr.Join(s.PodRanges), "hostnameOverride": s.Name,
		"clientConnection": object{"kubeconfig": s.Proxy},
		// The limits of connection tracking belong to the host.
		"conntrack":          object{"maxPerCore": 0, "min": 0},
		"healthzBindAddress": healthz, "metricsBindAddress": "127.0.0.1:10249",
	}
}

// hosts returns /etc/hosts with the name of the machine.
func hosts(s Spec) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, a := range s.Addresses {
		fmt.Fprintf(&b, "%s %s\n", a, s.Name)
	}
	return b.String()
}
