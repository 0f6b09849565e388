package machine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

// Files that a machine's programs are configured with. They are made at each boot.
const (
	containerdFile = "/run/kaz/containerd.toml"
	networkFile    = "/run/kaz/network.template"
	kubeletFile    = "/run/kaz/kubelet.yaml"
	proxyFile      = "/run/kaz/kube-proxy.yaml"
	credentialFile = "/run/kaz/credential-provider.yaml"
	azureFile      = "/run/kaz/azure.json"
	// authorityFile is where programs written in Go look for authorities besides those that the system comes with.
	authorityFile = "/etc/ssl/certs/kaz-local-azure.pem"
)

// containerdConfig keeps to what every version from 1.6 on understands. The score by which the kernel chooses whom to
// end when memory is short is left alone: raising a process's priority is refused in many places.
var containerdConfig = template.Must(template.New("containerd").Parse(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]
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

// networkConfig is a template of containerd's: it becomes the pods' network when the Node has its range. Each pod is
// on a link of its own, so that all that it sends is routed and passes the rules of kube-proxy.
const networkConfig = `{"cniVersion": "0.3.1", "name": "kaz", "plugins": [
  {"type": "ptp", "mtu": 1500, "ipam": {"type": "host-local",
    "ranges": [{{range $i, $r := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$r}}"}]{{end}}],
    "routes": [{{range $i, $r := .Routes}}{{if $i}}, {{end}}{"dst": "{{$r}}"}{{end}}]}}
]}
`

type object = map[string]any

// configure writes the configuration of a machine's programs.
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
		// What is there may be a link to a place that does not exist inside.
		_ = os.Remove(file)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return feed(rules(s), "nft", "-f", "-")
}

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
		// The disk is that of the machine on which all of this runs: it is not for a node to tidy up for it.
		"evictionHard":                object{"nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "memory.available": "0%"},
		"imageGCHighThresholdPercent": 100,
		"maxPods":                     110,
	}
}

// credentialConfig lets the kubelet pull from registries with the identity of the machine.
func credentialConfig(s Spec) object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
		"providers": []object{{
			"name": filepath.Base(s.Programs[NodeManager]), "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
			"matchImages":          []string{"*.azurecr.io", "*.azurecr.cn", "*.azurecr.us"},
			"defaultCacheDuration": "10m", "args": []string{"acr-credential-provider", azureFile},
		}},
	}
}

// azureConfig is the machine's azure.json: from inside, all of Azure is found by its own names.
func azureConfig(s Spec) object {
	return object{"cloud": "AzurePublicCloud", "tenantId": s.Tenant, "useManagedIdentityExtension": true}
}

func proxyConfig(s Spec) object {
	// Probes of load balancers may ask for it by every address of the machine.
	healthz := "0.0.0.0:10256"
	if slices.ContainsFunc(s.Addresses, netip.Addr.Is6) {
		healthz = "[::]:10256"
	}
	return object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		// A cluster this small need not save up changes.
		"nftables": object{"minSyncPeriod": "200ms"},
		"mode":     "nftables", "clusterCIDR": commas(s.PodRanges), "hostnameOverride": s.Name,
		"clientConnection": object{"kubeconfig": s.Proxy},
		// The limits of connection tracking are the whole machine's.
		"conntrack":          object{"maxPerCore": 0, "min": 0},
		"healthzBindAddress": healthz, "metricsBindAddress": "127.0.0.1:10249",
	}
}

// hosts lets the machine find itself by its name.
func hosts(s Spec) string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, a := range s.Addresses {
		fmt.Fprintf(&b, "%s %s\n", a, s.Name)
	}
	return b.String()
}

// commas puts ranges into one text.
func commas(ranges []netip.Prefix) string {
	var all []string
	for _, r := range ranges {
		all = append(all, r.String())
	}
	return strings.Join(all, ",")
}
