package definition

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/limit"
	"kaz/internal/plan/poolnode"
)

// CloudOf is the Azure cloud of a region, which the beginning of its name tells.
func CloudOf(location string) string {
	low := strings.ToLower(location)
	for _, cloud := range []struct{ prefix, name string }{
		{"china", "AzureChinaCloud"}, {"usgov", "AzureUSGovernmentCloud"}, {"usdod", "AzureUSGovernmentCloud"},
	} {
		if strings.HasPrefix(low, cloud.prefix) {
			return cloud.name
		}
	}
	return "AzurePublicCloud"
}

// limits checks what the consumers of several fields allow together: Azure, kubeadm and the controller manager.
func (v *validator) limits() {
	a := v.d.Cluster.Spec.Azure
	if cloud := CloudOf(a.Location); cloud != a.Cloud {
		v.inCluster("spec.azure.cloud", "the region %s belongs to another cloud: want %s", a.Location, cloud)
	}
	v.tags()
	v.apiServerPort()
	v.outboundLimits()
	n := v.d.Cluster.Spec.Network
	v.sources("spec.network.apiServer.allowedSources", n.APIServer.AllowedSources)
	v.sources("spec.network.sshSources", n.SSHSources)
	v.featureGates()
	v.podRanges()
	v.addresses()
	for _, p := range v.d.Pools {
		v.poolLimits(p)
	}
}

// ownTags is how many tags kaz adds to a resource at most: at a scale set those of cluster, unit, role, pool, version and revision, the
// limits for the autoscaler, and two during an upgrade. A private DNS zone has those of cluster and unit.
const ownTags, ownZoneTags = 10, 2

func (v *validator) tags() {
	s := v.d.Cluster.Spec
	internal := s.Network.APIServer.Access != "Public"
	if most := limit.MostTags(zoneType) - ownZoneTags; internal && len(s.Azure.Tags) > most {
		v.inCluster("spec.azure.tags", "has %d tags: a private DNS zone has at most %d in Azure, two of which are kaz's: want at most "+
			"%d, or "+
			"spec.network.apiServer.access Public", len(s.Azure.Tags), limit.MostTags(zoneType), most)
	}
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(s.Azure.Tags)) {
		at, low := "spec.azure.tags."+key, strings.ToLower(key)
		if other, had := seen[low]; had {
			v.inCluster(at, "Azure compares names of tags without letter case, and %s is a tag, too: want one of both", other)
		}
		seen[low] = key
		switch {
		case strings.HasPrefix(low, "kaz_"):
			v.inCluster(at, "tags that begin with kaz_ are kaz's own: want another name")
		case low == "min" || low == "max":
			v.inCluster(at, "the autoscaler reads this tag of a scale set as a limit of a pool: want spec.autoscaling of the pool, or "+
				"another name")
		}
		if want := limit.TagName(accountType, key); want != "" && s.Storage.ID == "" {
			v.inCluster(at, "the storage account gets this tag: want %s", want)
		}
		if want := limit.TagName(zoneType, key); want != "" && internal {
			v.inCluster(at, "the private DNS zone gets this tag: want %s", want)
		}
	}
}

const (
	accountType = "Microsoft.Storage/storageAccounts"
	zoneType    = "Microsoft.Network/privateDnsZones"
)

// listeners are the programs that listen on machines of the control plane, by port. The API server listens on all addresses.
func listeners() map[int]string {
	return map[int]string{
		22: "sshd", 53: "systemd-resolved", 2379: "etcd", 2380: "etcd", 2381: "etcd", 10248: "kubelet", 10249: "kube-proxy",
		10250: "kubelet",
		10256: "kube-proxy", 10257: "kube-controller-manager", 10259: "kube-scheduler", 10263: "cloud-node-manager",
		10268: "cloud-controller-manager", 29604: "azuredisk-csi-driver", 29605: "azuredisk-csi-driver",
	}
}

func (v *validator) apiServerPort() {
	if program, used := listeners()[v.d.Cluster.Spec.Network.APIServer.Port]; used {
		v.inCluster("spec.network.apiServer.port", "%s listens on this port of the machine: want another one, such as 6443 or 443", program)
	}
}

// longestOutboundIdle is the longest idle timeout of an outbound rule of a load balancer. A NAT gateway has 120 minutes.
const longestOutboundIdle = 100

func (v *validator) outboundLimits() {
	o := v.d.Cluster.Spec.Network.Outbound
	if o.Type == "LoadBalancer" && o.IdleTimeoutMinutes > longestOutboundIdle {
		v.inCluster("spec.network.outbound.idleTimeoutMinutes", "an outbound rule of a load balancer has at most %d minutes: want 4 to "+
			"%d, or "+
			"spec.network.outbound.type NATGateway", longestOutboundIdle, longestOutboundIdle)
	}
}

// sources checks that the ranges of a security rule are of one address family, and do not overlap.
func (v *validator) sources(path string, sources []string) {
	var all []netip.Prefix
	for i, text := range sources {
		prefix, err := netip.ParsePrefix(text)
		if address, notAddress := netip.ParseAddr(text); err != nil && notAddress == nil {
			prefix, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		if j := slices.Index(sources, text); j < i {
			v.inCluster(at, "is element %d, too: want each source once", j)
			continue
		}
		if err != nil {
			continue // a service tag
		}
		for _, other := range all {
			switch {
			case other.Addr().Is4() != prefix.Addr().Is4():
				v.inCluster(at, "is of another address family than %s: want ranges of one family, as Azure does in a security rule", other)
			case other.Overlaps(prefix):
				v.inCluster(at, "overlaps with %s: want ranges without common addresses, as Azure does in a security rule", other)
			default:
				continue
			}
			break
		}
		all = append(all, prefix)
	}
}

// featureGates checks the form of feature gates, which programs of Kubernetes read when they start.
func (v *validator) featureGates() {
	k := v.d.Cluster.Spec.Kubernetes
	for _, of := range []struct {
		program string
		args    map[string]string
	}{
		{"apiServer", k.APIServer.ExtraArgs}, {"controllerManager", k.ControllerManager.ExtraArgs}, {"scheduler", k.Scheduler.ExtraArgs},
	} {
		gates, set := of.args["feature-gates"]
		if !set {
			continue
		}
		for one := range strings.SplitSeq(gates, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(one), "=")
			if _, err := strconv.ParseBool(strings.TrimSpace(value)); name == "" || err != nil {
				v.inCluster("spec.kubernetes."+of.program+".extraArgs.feature-gates", "%q is no feature gate, and the program would not "+
					"start: "+
					"want NAME=true or NAME=false, with commas between them", one)
			}
		}
	}
}

const (
	maskFlag = "node-cidr-mask-size"
	// usualMask is the size of the range of a node's pods.
	usualMask = 24
	// Services have at least ten addresses for the one of the cluster's DNS, and kubeadm takes at most 2^20.
	largestServices, smallestServices = 12, 28
	// mostMaskBits is how much longer the prefix of a node is than that of all pods, at most.
	mostMaskBits = 16
	// mostRoutes is how many routes a route table has.
	mostRoutes = 400
)

// podRanges checks the ranges of pods and Services as kubeadm and the controller manager do.
func (v *validator) podRanges() {
	k := v.d.Cluster.Spec.Kubernetes
	if services,
		err := netip.ParsePrefix(k.ServiceCIDR); err == nil && (services.Bits() < largestServices || services.Bits() > smallestServices) {
		v.inCluster("spec.kubernetes.serviceCIDR", "is not of a size that kubeadm takes: want /%d to /%d", largestServices,
			smallestServices)
	}
	mask, at := usualMask, "spec.kubernetes.controllerManager.extraArgs."+maskFlag
	for name, text := range k.ControllerManager.ExtraArgs {
		if name != maskFlag && name != maskFlag+"-ipv4" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 30 {
			v.inCluster("spec.kubernetes.controllerManager.extraArgs."+name, "want the length of a prefix, 1 to 30")
			return
		}
		mask, at = n, "spec.kubernetes.controllerManager.extraArgs."+name
	}
	pods, err := netip.ParsePrefix(k.PodCIDR)
	if err != nil {
		return // reported
	}
	if mask < pods.Bits() || mask-pods.Bits() > mostMaskBits {
		if mask == usualMask {
			at = "spec.kubernetes.podCIDR"
		}
		v.inCluster(at, "each node gets a /%d of spec.kubernetes.podCIDR, %s, and kubeadm takes prefixes that are up to %d bits longer: "+
			"want "+
			"a podCIDR of /%d to /%d", mask, k.PodCIDR, mostMaskBits, max(mask-mostMaskBits, 1), mask)
		return
	}
	if k.PodNetwork == "CloudRoutes" {
		v.nodeRanges(mask, mask-pods.Bits())
	}
}

// nodeRanges checks that the ranges of pods are enough for all nodes, and large enough for each of them.
func (v *validator) nodeRanges(mask, bits int) {
	nodes := v.d.Cluster.Spec.ControlPlane.Replicas
	for _, p := range v.d.Pools {
		nodes += most(p.Spec)
		// The network, the bridge and the broadcast have an address each.
		if addresses := 1<<(32-mask) - 3; p.Spec.MaxPods > addresses {
			v.add("NodePool", p.Metadata.Name, "spec.maxPods", "a node has a /%d of spec.kubernetes.podCIDR: want at most %d, or a "+
				"smaller "+
				"--%s", mask, addresses, maskFlag)
		}
	}
	if ranges := 1 << bits; nodes > ranges {
		v.inCluster("spec.kubernetes.podCIDR", "has %d ranges of /%d, one for each node, and the control plane and all pools have up to "+
			"%d "+
			"nodes: want a larger range, or smaller pools", ranges, mask, nodes)
	}
	if nodes > mostRoutes {
		v.inCluster("spec.kubernetes.podNetwork", "a route table has at most %d routes in Azure, one for each node, and the control plane "+
			"and all pools have up to %d nodes: want podNetwork None with a network plugin, or smaller pools", mostRoutes, nodes)
	}
}

// most is the greatest number of nodes of a pool.
func most(s NodePoolSpec) int {
	if s.Autoscaling != nil {
		return max(s.Replicas, s.Autoscaling.Max)
	}
	return s.Replicas
}

// reservedAddresses is how many addresses of a subnet Azure keeps.
const reservedAddresses = 5

// addresses checks that new subnets have an address for each machine.
func (v *validator) addresses() {
	s, name := v.d.Cluster.Spec, v.d.Cluster.Metadata.Name
	if s.Network.Subnets.Nodes.ID != "" || s.Network.Subnets.ControlPlane.ID != "" {
		return
	}
	check := func(kind, of, path, cidr string, machines int) {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil || prefix.Bits() > 29 || !prefix.Addr().Is4() {
			return // reported
		}
		if has := 1<<(32-prefix.Bits()) - reservedAddresses; machines > has {
			v.add(kind, of, path, "has %d addresses, without those that Azure keeps, and up to %d are needed: want a larger range", has,
				machines)
		}
	}
	members := s.ControlPlane.Replicas
	if s.Network.APIServer.Access != "Public" {
		members++ // the internal load balancer
	}
	check("Cluster", name, "spec.network.subnets.controlPlane.cidr", s.Network.Subnets.ControlPlane.CIDR, members)
	nodes := 0
	for _, p := range v.d.Pools {
		if p.Spec.Subnet.CIDR != "" {
			check("NodePool", p.Metadata.Name, "spec.subnet.cidr", p.Spec.Subnet.CIDR, most(p.Spec))
			continue
		}
		nodes += most(p.Spec)
	}
	check("Cluster", name, "spec.network.subnets.nodes.cidr", s.Network.Subnets.Nodes.CIDR, nodes)
}

// autoscalerTags checks that the tags of an autoscaled scale set can have the labels and taints of its nodes.
func (v *validator) autoscalerTags(p NodePool) {
	name, seen := p.Metadata.Name, map[string]string{}
	described := len(p.Spec.Labels) + len(p.Spec.Taints) + 1
	if used := len(v.d.Cluster.Spec.Azure.Tags) + described + ownTags; used > azure.MostTags {
		v.add("NodePool", name, "spec.labels", "the scale set of an autoscaled pool has a tag for each label and taint, those of "+
			"spec.azure.tags, and %d of kaz, together %d: want at most %d", ownTags+1, used, azure.MostTags)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Spec.Labels)) {
		low := strings.ToLower(key)
		if other, had := seen[low]; had {
			v.add("NodePool", name, "spec.labels."+key, "the autoscaler reads labels in names of tags, which Azure compares without "+
				"letter case, "+
				"and %s is a label, too: want one of both", other)
		}
		seen[low] = key
	}
	clear(seen)
	for i, text := range p.Spec.Taints {
		low := strings.ToLower(poolnode.ReadTaint(text).Key)
		if other, had := seen[low]; had {
			v.add("NodePool", name, fmt.Sprintf("spec.taints[%d]", i), "the autoscaler reads taints in tags, one for each key, and %s is "+
				"a taint, "+
				"too: want one of both, or no autoscaling", other)
		}
		seen[low] = text
	}
}

// mostFromImage is how many instances a scale set of a managed image has. One of a gallery image or of the marketplace has 1000.
const mostFromImage = 600

// poolLimits checks what Azure, kubelet and an upgrade allow for a pool.
func (v *validator) poolLimits(p NodePool) {
	name, s := p.Metadata.Name, p.Spec
	if s.Backend == "StandaloneVM" && name == "cp" {
		v.add("NodePool", name, "metadata.name", "standalone machines of this pool would have the names of members of the control plane: "+
			"want "+
			"another name, or a scale set")
	}
	if azure.ID(s.Image.ID).Is("Microsoft.Compute/images") && most(s) > mostFromImage {
		v.add("NodePool", name, "spec.replicas", "a scale set of a managed image has at most %d instances: want fewer, or an image of a "+
			"gallery",
			mostFromImage)
	}
	if s.Autoscaling != nil {
		v.autoscalerTags(p)
	}
	for _, amount := range []struct{ path, text string }{
		{"spec.upgrade.maxSurge", s.Upgrade.MaxSurge}, {"spec.upgrade.maxUnavailable", s.Upgrade.MaxUnavailable},
	} {
		if n, err := strconv.Atoi(strings.TrimSuffix(amount.text, "%")); err == nil && strings.HasSuffix(amount.text, "%") && n > 100 {
			v.add("NodePool", name, amount.path, "want at most 100%% of the pool")
		}
	}
}
