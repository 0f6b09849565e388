package boot

import (
	"bytes"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

const kubeadmAPI = "kubeadm.k8s.io/v1beta4"

// documents are YAML documents.
func documents(all ...object) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	for _, one := range all {
		if err := e.Encode(one); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), e.Close()
}

// arguments are flags as kubeadm takes them. Those of the definition win over the others.
func arguments(own map[string]string, given map[string]string) []object {
	all := maps.Clone(own)
	maps.Copy(all, given)
	list := []object{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, object{"name": name, "value": all[name]})
	}
	return list
}

// flexVolumes is a directory that kubeadm mounts into the controller manager. The usual one is below /usr, where nothing can make it on
// machines that boot with Ignition.
const flexVolumes = "/opt/libexec/kubernetes/kubelet-plugins/volume/exec/"

// Programs configure the programs of the control plane, by their part of kubeadm's ClusterConfiguration.
func Programs(c definition.Cluster) map[string]map[string]any {
	k, n := c.Spec.Kubernetes, naming.Of(c)
	names := slices.Clone(k.APIServer.CertSANs)
	for _, host := range []string{n.PublicHost(), n.InternalHost()} {
		if host != "" {
			names = append(names, host)
		}
	}
	if n.Internal() {
		names = append(names, c.Spec.Network.APIServer.InternalIP)
	}
	slices.Sort(names)
	manager := map[string]string{
		"cloud-provider": "external", "allocate-node-cidrs": fmt.Sprint(k.PodNetwork == "CloudRoutes"), "profiling": "false",
	}
	if formatOf(c.Spec, nil) == definition.Ignition {
		manager["flex-volume-plugin-dir"] = flexVolumes
	}
	return map[string]map[string]any{
		"apiServer": {"certSANs": slices.Compact(names),
			"extraArgs": arguments(map[string]string{"profiling": "false"}, k.APIServer.ExtraArgs)},
		"controllerManager": {"extraArgs": arguments(manager, k.ControllerManager.ExtraArgs)},
		"scheduler":         {"extraArgs": arguments(map[string]string{"profiling": "false"}, k.Scheduler.ExtraArgs)},
	}
}

// registration is how a node registers. The boot script fills in its name.
func (b builder) registration(pool *definition.NodePool) object {
	r := object{"name": "@NODE@", "criSocket": "unix:///run/containerd/containerd.sock"}
	// The address spares the wait for the cloud-node-manager, which gives a node its address. kube-proxy waits for that
	// address.
	flags := map[string]string{"cloud-provider": "external", "node-ip": "@ADDRESS@"}
	if pool != nil {
		n := definition.Node(b.d, *pool)
		flags["max-pods"], flags["node-labels"] = fmt.Sprint(n.Pods), n.NodeLabels()
		if taints := taintsOf(n.Taints); len(taints) > 0 {
			r["taints"] = taints
		}
	}
	r["kubeletExtraArgs"] = arguments(flags, nil)
	return r
}

func taintsOf(all []corev1.Taint) []object {
	var taints []object
	for _, t := range all {
		taints = append(taints, object{"key": t.Key, "value": t.Value, "effect": string(t.Effect)})
	}
	return taints
}

// join is the configuration with which a machine joins.
func (b builder) join(pool *definition.NodePool) ([]byte, error) {
	port := b.spec.Network.APIServer.Port
	config := object{
		"apiVersion": kubeadmAPI, "kind": "JoinConfiguration",
		"discovery": object{"bootstrapToken": object{
			"token": "@TOKEN@", "apiServerEndpoint": fmt.Sprintf("%s:%d", b.names.Host(), port), "caCertHashes": []string{"@CA_HASH@"},
		}},
		"nodeRegistration": b.registration(pool), "patches": patches(),
	}
	if pool == nil {
		config["controlPlane"] = object{"localAPIEndpoint": object{"advertiseAddress": "@ADDRESS@", "bindPort": port}}
	}
	return documents(config)
}

// init is the configuration with which the first member makes the cluster.
func (b builder) init(pool *definition.NodePool) ([]byte, error) {
	k, port, programs := b.spec.Kubernetes, b.spec.Network.APIServer.Port, Programs(b.d.Cluster)
	dns, err := dnsAddress(k.ServiceCIDR)
	if err != nil {
		return nil, err
	}
	cluster := object{
		"apiVersion": kubeadmAPI, "kind": "ClusterConfiguration", "clusterName": b.names.Cluster, "kubernetesVersion": "v" + k.Version,
		"controlPlaneEndpoint": fmt.Sprintf("%s:%d", b.names.Host(), port), "encryptionAlgorithm": "ECDSA-P256",
		"networking":        object{"podSubnet": k.PodCIDR, "serviceSubnet": k.ServiceCIDR, "dnsDomain": k.DNSDomain},
		"apiServer":         programs["apiServer"],
		"controllerManager": programs["controllerManager"], "scheduler": programs["scheduler"],
		"etcd": object{"local": object{"dataDir": "/var/lib/etcddisk/etcd", "extraArgs": arguments(map[string]string{
			"quota-backend-bytes": "8589934592", "auto-compaction-retention": "8",
		}, nil)}},
	}
	if k.ImageRepository != "" {
		// kubeadm looks for CoreDNS directly in another repository than the project's, where it is in a folder.
		cluster["imageRepository"], cluster["dns"] = k.ImageRepository, object{"imageRepository": k.ImageRepository + "/coredns"}
	}
	return documents(object{
		"apiVersion": kubeadmAPI, "kind": "InitConfiguration",
		"bootstrapTokens": []object{{
			// kaz-join-token.timer gives it a later end, again and again.
			"token": "@TOKEN@", "ttl": "36h0m0s", "usages": []string{"signing", "authentication"},
			"groups": []string{"system:bootstrappers:kubeadm:default-node-token"},
		}},
		"localAPIEndpoint": object{"advertiseAddress": "@ADDRESS@", "bindPort": port},
		"nodeRegistration": b.registration(pool), "patches": patches(),
	}, cluster, object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "systemd",
		"rotateCertificates": true,
		"clusterDomain":      k.DNSDomain, "clusterDNS": []string{dns},
		"shutdownGracePeriod": "60s", "shutdownGracePeriodCriticalPods": "20s",
	}, object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
		// The size of the connection table is a setting of the machine, see its sysctl file.
		"conntrack": object{"maxPerCore": 0, "min": 0},
	})
}

// patches is the directory in which an image may bring patches of kubeadm.
func patches() object { return object{"directory": "/etc/kaz/patches"} }

// dnsAddress is the address of the cluster's DNS: the tenth of the Services, as kubeadm chooses it.
func dnsAddress(services string) (string, error) {
	prefix, err := netip.ParsePrefix(services)
	if err != nil {
		return "", err
	}
	address := prefix.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	if !prefix.Contains(address) {
		return "", fmt.Errorf("%s has no tenth address for the cluster's DNS: want a larger range", services)
	}
	return address.String(), nil
}
