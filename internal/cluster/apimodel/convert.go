package apimodel

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/definition/fields"
)

type object = map[string]any

// entries are the entries of a map with free names. An entry with an empty value says something, and stays.
type entries map[string]string

const oldest = fields.OldestMinor

// converter makes the documents of a definition.
type converter struct {
	*model
	o                              Options
	properties, kubernetes, master field
	location, cloud                string
	private                        bool
	subnet                         string // that of the nodes, if it exists
}

// convert makes the documents.
func (m *model) convert(o Options) ([]document, error) {
	properties := m.root.get("properties")
	c := &converter{model: m, o: o, properties: properties, master: properties.get("masterProfile"),
		kubernetes: properties.get("orchestratorProfile").get("kubernetesConfig")}
	name := o.Name
	if prefix := c.master.get("dnsPrefix").text(m); name == "" {
		name = clusterName(prefix)
	}
	if name == "" {
		return nil, errors.New("properties.masterProfile.dnsPrefix: missing: want a name for the cluster, with --name")
	}
	if err := c.place(); err != nil {
		return nil, err
	}
	pools, err := c.pools()
	if err != nil {
		return nil, err
	}
	return append([]document{c.cluster(name)}, pools...), nil
}

// place finds the region, and the cloud that the region belongs to.
func (c *converter) place() error {
	region := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, " ", "")) }
	c.location = region(c.root.get("location").text(c.model))
	switch given := region(c.o.Location); {
	case c.location == "" && given == "":
		return errors.New("location: missing: want a region, with --location")
	case c.location == "":
		c.location = given
	case given != "" && given != c.location:
		return fmt.Errorf("location: %q: --location is %s: want the same region in both, or no --location", c.location, given)
	}
	c.cloud = definition.CloudOf(c.location)
	name := c.properties.get("customCloudProfile").get("environment").get("name")
	if text := name.text(c.model); text != "" && !strings.EqualFold(text, c.cloud) {
		return fmt.Errorf("%s: %q: the region %s belongs to the cloud %s: want a model whose cloud and region agree, of a cloud that kaz "+
			"knows",
			name.path, text, c.location, c.cloud)
	}
	return nil
}

// entries uses the entries of a map with free names. Values that are no texts are not used.
func (c *converter) entries(f field) entries {
	all := entries{}
	for _, entry := range f.fields() {
		if text := entry.text(c.model); c.used[entry.path] {
			all[entry.key] = text
		}
	}
	return all
}

// cluster is the document of the kind Cluster.
func (c *converter) cluster(name string) document {
	group := c.o.ResourceGroup
	if group == "" {
		group = name
	}
	c.private = c.kubernetes.get("privateCluster").get("enabled").truth(c.model)
	services := c.kubernetes.get("serviceCidr").text(c.model)
	if dns := c.kubernetes.get("dnsServiceIP"); dns.value == any(tenth(services)) {
		c.used[dns.path] = true
	}
	return document{"Cluster", name, object{
		"azure": object{"subscriptionID": c.o.Subscription, "tenantID": c.o.Tenant, "location": c.location,
			"cloud": c.cloud, "resourceGroup": object{"name": group}, "tags": c.entries(c.root.get("tags"))},
		"kubernetes": object{"version": c.version(), "podCIDR": c.podCIDR(), "serviceCIDR": services,
			"podNetwork":        c.podNetwork(),
			"apiServer":         object{"certSANs": c.texts(c.master.get("subjectAltNames")), "extraArgs": c.flags("apiServerConfig")},
			"controllerManager": object{"extraArgs": c.flags("controllerManagerConfig")},
			"scheduler":         object{"extraArgs": c.flags("schedulerConfig")}},
		"network":      c.network(),
		"identity":     c.identity(),
		"controlPlane": c.controlPlane(),
		"access":       c.access(),
	}}
}

// version is the version of Kubernetes, or the one that replaces it.
func (c *converter) version() string {
	profile := c.properties.get("orchestratorProfile")
	for _, name := range []string{"orchestratorVersion", "orchestratorRelease"} {
		f := profile.get(name)
		version := f.text(c.model)
		var minor, patch int
		if n, err := fmt.Sscanf(version, "1.%d.%d", &minor, &patch); err == nil && n == 2 && minor >= oldest {
			return version
		}
		if version != "" {
			c.drop(f, "kaz needs a patch of version 1.%d or later: the definition has %s", oldest, c.o.Version)
		}
	}
	return c.o.Version
}

// podCIDR is the range of pods. With Azure CNI the field has the range of the virtual network.
func (c *converter) podCIDR() any {
	f := c.kubernetes.get("clusterSubnet")
	if strings.EqualFold(c.kubernetes.get("networkPlugin").text(c.model), "azure") || c.kubernetes.get("networkPlugin").value == nil {
		c.drop(f, "with Azure CNI it has the addresses of the virtual network: spec.network.cidrs, and pods have a range of their own")
		return nil
	}
	first, second, dual := strings.Cut(f.text(c.model), ",")
	if dual {
		c.drop(f, "kaz has one range of IPv4 addresses for pods: it takes the first one, and not %s", second)
	}
	if first == "" {
		return nil
	}
	return first
}

// podNetwork says how packets reach pods. Kubenet has routes in a route table, as kaz has.
func (c *converter) podNetwork() string {
	f := c.kubernetes.get("networkPlugin")
	if strings.EqualFold(f.text(c.model), "kubenet") {
		return "CloudRoutes"
	}
	c.drop(f, "a network plugin is an add-on: add it as manifests of an Extension")
	return "None"
}

// texts uses a list of texts.
func (c *converter) texts(f field) []any {
	all := []any{}
	for _, item := range f.items() {
		if text := item.text(c.model); text != "" {
			all = append(all, text)
		}
	}
	return all
}

// flags uses the flags of a program that mean the same in a new cluster.
func (c *converter) flags(of string) entries {
	all := entries{}
	own := map[string]bool{}
	for name := range strings.FieldsSeq("advertise-address etcd-servers secure-port service-cluster-ip-range cloud-provider cloud-config " +
		"cluster-cidr allocate-node-cidrs cluster-name kubeconfig bind-address insecure-port v configure-cloud-routes") {
		own[name] = true
	}
	for _, flag := range c.kubernetes.get(of).fields() {
		name, value := strings.TrimPrefix(flag.key, "--"), flag.text(c.model)
		switch {
		case own[name]:
			c.drop(flag, "kaz or kubeadm sets this flag")
		case name == "feature-gates":
			c.drop(flag, "programs refuse gates that their version does not know: check them for the new version")
		case strings.Contains(value, "/etc/kubernetes") || strings.Contains(value, "/var/"):
			c.drop(flag, "it names a file of the old machines: add the file with an Extension, and the flag")
		case value == "":
			c.drop(flag, "the flag has no value")
		default:
			all[name] = value
		}
	}
	return all
}

// network is the network of the machines. Subnets that exist are used again.
func (c *converter) network() object {
	m := c.model
	outbound := object{"type": "LoadBalancer"}
	if n := c.kubernetes.get("loadBalancerOutboundIPs").number(m); n > 0 {
		outbound["publicIPs"] = n
	}
	if n := c.kubernetes.get("outboundRuleIdleTimeoutInMinutes").number(m); n > 0 {
		outbound["idleTimeoutMinutes"] = n
	}
	network := object{"outbound": outbound}
	members := c.master.get("vnetSubnetId").text(m)
	if c.private {
		network["apiServer"] = object{"access": "Internal"}
		outbound["type"] = "NATGateway"
		if members != "" {
			outbound["type"] = "UserDefinedRouting"
		}
	}
	if members != "" {
		nodes := c.subnet
		if nodes == "" {
			nodes = members
		}
		network["subnets"] = object{"controlPlane": object{"id": members}, "nodes": object{"id": nodes}}
	} else if c.subnet != "" {
		for _, p := range c.properties.get("agentPoolProfiles").items() {
			if f := p.get("vnetSubnetId"); f.value == any(c.subnet) {
				c.drop(f, "the control plane has no subnet that exists, so the cluster makes a virtual network: set both subnets in "+
					"spec.network.subnets to use it")
			}
		}
	}
	return network
}

// identity uses an identity that exists.
func (c *converter) identity() object {
	m := c.model
	managed := c.kubernetes.get("useManagedIdentity")
	if !managed.truth(m) {
		c.drop(managed, "machines of kaz have managed identities")
	}
	id := c.kubernetes.get("userAssignedID")
	text := id.text(m)
	if !strings.HasPrefix(text, "/") {
		c.drop(id, "kaz makes the identities of a cluster, with its names")
		return object{}
	}
	return object{"controlPlane": object{"id": text}}
}

func (c *converter) controlPlane() object {
	m := c.model
	spec := object{"vmSize": c.master.get("vmSize").text(m), "zones": c.zones(c.master)}
	if n := c.master.get("count").number(m); n > 0 {
		spec["replicas"] = n
	}
	spec["osDisk"] = c.osDisk(c.master)
	if n := c.kubernetes.get("etcdDiskSizeGB").number(m); n > 0 {
		spec["etcdDisk"] = object{"sizeGiB": n}
	}
	spec["image"] = c.image(c.master)
	return spec
}

// zones are the zones of machines.
func (c *converter) zones(profile field) []any {
	all := []any{}
	for _, zone := range profile.get("availabilityZones").items() {
		if n := zone.number(c.model); n > 0 {
			all = append(all, n)
		}
	}
	return all
}

// osDisk uses the size of the disk. Images of kaz need more than the default of old ones.
func (c *converter) osDisk(profile field) object {
	size := profile.get("osDiskSizeGB")
	n := size.number(c.model)
	if n == 0 {
		return object{}
	}
	if n < 30 {
		c.drop(size, "the image needs a disk of at least 30 GiB")
		return object{}
	}
	return object{"sizeGiB": n}
}

// image is the id of an image that the model names.
func (c *converter) image(profile field) object {
	m, f := c.model, profile.get("imageReference")
	name, group := f.get("name").text(m), f.get("resourceGroup").text(m)
	if name == "" || group == "" {
		c.drop(f, "it names no image without name and resourceGroup: the definition has the image of the marketplace")
		return object{}
	}
	subscription := f.get("subscriptionId").text(m)
	if subscription == "" {
		subscription = c.o.Subscription
	}
	id := "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.Compute/"
	gallery, version := f.get("gallery").text(m), f.get("version").text(m)
	if gallery == "" {
		return object{"id": id + "images/" + name}
	}
	return object{"id": id + "galleries/" + gallery + "/images/" + name + "/versions/" + version}
}

func (c *converter) access() object {
	m, linux := c.model, c.properties.get("linuxProfile")
	keys := []any{}
	for _, key := range linux.get("ssh").get("publicKeys").items() {
		if text := strings.TrimSpace(key.get("keyData").text(m)); text != "" {
			keys = append(keys, text)
		}
	}
	return object{"adminUser": linux.get("adminUsername").text(m), "sshPublicKeys": keys}
}

// pools are the node pools.
func (c *converter) pools() ([]document, error) {
	var all []document
	for _, p := range c.properties.get("agentPoolProfiles").items() {
		name := p.get("name").text(c.model)
		if name == "" {
			return nil, fmt.Errorf("%s.name: missing: want the name of the pool", p.path)
		}
		if strings.EqualFold(p.get("osType").text(c.model), "Windows") {
			c.drop(p, "kaz has no Windows nodes")
			continue
		}
		all = append(all, document{"NodePool", name, c.pool(p)})
	}
	return all, nil
}

func (c *converter) pool(p field) object {
	m := c.model
	spec := object{"vmSize": p.get("vmSize").text(m), "zones": c.zones(p), "osDisk": c.osDisk(p), "image": c.image(p)}
	if n := p.get("count"); n.value != nil {
		spec["replicas"] = n.number(m)
	}
	profile := p.get("availabilityProfile")
	spec["backend"] = "VMSSUniform"
	if profile.text(m) == "AvailabilitySet" {
		spec["backend"] = "StandaloneVM"
		c.drop(profile, "standalone machines of a pool have no availability set: the definition has the backend StandaloneVM")
	}
	c.spot(p, spec)
	c.disks(p, spec)
	if subnet := p.get("vnetSubnetId").text(m); subnet != "" {
		if c.subnet == "" {
			c.subnet = subnet
		}
		if subnet != c.subnet {
			spec["subnet"] = object{"id": subnet}
		}
	}
	c.node(p, spec)
	return spec
}

func (c *converter) spot(p field, spec object) {
	m, priority := c.model, p.get("scaleSetPriority")
	switch priority.text(m) {
	case "Spot", "Low":
		terms := object{"evictionPolicy": p.get("scaleSetEvictionPolicy").text(m)}
		if price := p.get("spotMaxPrice").text(m); price != "" {
			terms["maxPrice"] = price
		}
		spec["priority"], spec["spot"] = "Spot", terms
	case "", "Regular":
	default:
		c.drop(priority, "want Regular, Spot or Low: the definition has the priority Regular")
	}
}

func (c *converter) disks(p field, spec object) {
	m := c.model
	disks := []any{}
	for _, size := range p.get("diskSizesGB").items() {
		disks = append(disks, object{"sizeGiB": size.number(m)})
	}
	if len(disks) > 0 {
		spec["dataDisks"] = disks
	}
	storage := p.get("storageProfile")
	switch storage.text(m) {
	case "Ephemeral":
		spec["osDisk"].(object)["ephemeral"] = true
	case "", "ManagedDisks":
	default:
		c.drop(storage, "disks of kaz are managed disks")
	}
}

// node are the labels, the taints and the number of pods of a pool's nodes.
func (c *converter) node(p field, spec object) {
	m := c.model
	spec["labels"] = c.entries(p.get("customNodeLabels"))
	own := p.get("kubernetesConfig").get("kubeletConfig")
	taints := []any{}
	if text := own.get("--register-with-taints").text(m); text != "" {
		for taint := range strings.SplitSeq(text, ",") {
			taints = append(taints, strings.TrimSpace(taint))
		}
		spec["taints"] = taints
	}
	for _, f := range []field{own.get("--max-pods"), p.get("kubernetesConfig").get("maxPods"),
		c.kubernetes.get("kubeletConfig").get("--max-pods"), c.kubernetes.get("maxPods")} {
		switch n := f.number(m); {
		case !c.used[f.path]:
		case spec["maxPods"] == nil:
			spec["maxPods"] = n
		case spec["maxPods"] != n && strings.HasPrefix(f.path, p.path+"."):
			c.drop(f, "another field of the pool has %v pods", spec["maxPods"])
		}
	}
}

// tenth is the address of the cluster's DNS in a range of Services.
func tenth(cidr string) string {
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return ""
	}
	address := prefix.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	return address.String()
}
