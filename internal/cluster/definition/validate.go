package definition

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// validator checks what several fields say together.
type validator struct {
	d        Definition
	docs     []*document
	problems Problems
}

func (v *validator) validate() {
	d := v.d
	v.cluster()
	v.removed()
	v.artifacts()
	v.network()
	for _, pool := range d.Pools {
		v.pool(pool)
	}
	v.extensions()
	v.bootFormats()
	v.patches()
	v.limits()
}

// add records a problem at the field of a document.
func (v *validator) add(kind, name, path, format string, args ...any) {
	i := slices.IndexFunc(v.docs, func(d *document) bool { return d.kind == kind && d.name == name })
	at := v.docs[i].tree
	shown := ""
	for rest := path; rest != ""; {
		if entry := at.get(rest); entry != nil { // a name of a map may have dots
			at = entry
			break
		}
		var part string
		part, rest, _ = strings.Cut(rest, ".")
		part, index, isItem := strings.Cut(part, "[")
		next := at.get(part)
		if n, err := strconv.Atoi(strings.TrimSuffix(index, "]")); isItem && err == nil && next != nil && n < len(next.items) {
			next = next.items[n]
		}
		if next == nil {
			break
		}
		at = next
	}
	if at.kind != isMap && at.kind != isList {
		shown = at.shown()
	}
	v.problems = append(v.problems, Problem{At: at.at, Path: v.docs[i].String() + ": " + path, Value: shown,
		Message: fmt.Sprintf(format, args...)})
}

func (v *validator) inCluster(path, format string, args ...any) {
	v.add("Cluster", v.d.Cluster.Metadata.Name, path, format, args...)
}

func (v *validator) cluster() {
	s := v.d.Cluster.Spec
	if n := s.ControlPlane.Replicas; n%2 == 0 {
		v.inCluster("spec.controlPlane.replicas", "want 1, 3 or 5: an even number of members of etcd tolerates no more failures than "+
			"one less")
	}
	v.zones("Cluster", v.d.Cluster.Metadata.Name, "spec.controlPlane.zones", s.ControlPlane.Zones)
	for _, zonal := range []struct{ path, kind string }{
		{"spec.controlPlane.osDisk.type", s.ControlPlane.OSDisk.Type}, {"spec.controlPlane.etcdDisk.type", s.ControlPlane.EtcdDisk.Type},
	} {
		if strings.HasSuffix(zonal.kind, "_ZRS") && len(s.ControlPlane.Zones) == 0 {
			v.inCluster(zonal.path, "a disk in all zones needs a machine in a zone: want an LRS type, or spec.controlPlane.zones")
		}
	}
	for _, flags := range []struct {
		path string
		args map[string]string
		own  []string
	}{
		{"spec.kubernetes.apiServer.extraArgs", s.Kubernetes.APIServer.ExtraArgs,
			[]string{"advertise-address", "etcd-servers", "secure-port", "service-cluster-ip-range", "cloud-provider"}},
		{"spec.kubernetes.controllerManager.extraArgs", s.Kubernetes.ControllerManager.ExtraArgs,
			[]string{"cloud-provider", "cluster-cidr", "allocate-node-cidrs", "cluster-name", "service-cluster-ip-range"}},
		{"spec.kubernetes.scheduler.extraArgs", s.Kubernetes.Scheduler.ExtraArgs, []string{"kubeconfig"}},
	} {
		for _, name := range flags.own {
			if _, set := flags.args[name]; set {
				v.inCluster(flags.path+"."+name, "kaz sets this flag from other fields: want it removed")
			}
		}
	}
}

func (v *validator) zones(kind, name, path string, zones []int) {
	for i, zone := range zones {
		if zone < 1 || zone > 3 || slices.Index(zones, zone) != i {
			v.add(kind, name, fmt.Sprintf("%s[%d]", path, i), "want each of the zones 1, 2 and 3 at most once")
		}
	}
}

// addressRange is a range of addresses and the field that names it.
type addressRange struct {
	kind, name, path, text string
	prefix                 netip.Prefix
}

// network checks that ranges are valid and do not overlap, and that what is inside of another is inside.
func (v *validator) network() {
	s, name := v.d.Cluster.Spec, v.d.Cluster.Metadata.Name
	existing := s.Network.Subnets.ControlPlane.ID != ""
	if existing != (s.Network.Subnets.Nodes.ID != "") {
		v.inCluster("spec.network.subnets", "want the id of both subnets, or of none: a new subnet has a new virtual network")
		return
	}
	v.existingNetwork(existing)
	var outer []netip.Prefix
	disjoint := []addressRange{
		{kind: "Cluster", name: name, path: "spec.kubernetes.podCIDR", text: s.Kubernetes.PodCIDR},
		{kind: "Cluster", name: name, path: "spec.kubernetes.serviceCIDR", text: s.Kubernetes.ServiceCIDR},
	}
	if !existing {
		for i, text := range s.Network.CIDRs {
			p := addressRange{kind: "Cluster", name: name, path: fmt.Sprintf("spec.network.cidrs[%d]", i), text: text}
			if v.parse(&p) {
				outer = append(outer, p.prefix)
			}
			if p.prefix.IsValid() && p.prefix.Bits() < largestNetwork {
				v.inCluster(p.path, "is too large: want a range of a virtual network, /%d to /29", largestNetwork)
			}
			disjoint = append(disjoint, p)
		}
	}
	v.disjoint(disjoint)
	if existing {
		return
	}
	subnets := []addressRange{
		{kind: "Cluster", name: name, path: "spec.network.subnets.controlPlane.cidr", text: s.Network.Subnets.ControlPlane.CIDR},
		{kind: "Cluster", name: name, path: "spec.network.subnets.nodes.cidr", text: s.Network.Subnets.Nodes.CIDR},
	}
	for _, pool := range v.d.Pools {
		if pool.Spec.Subnet.CIDR != "" {
			subnets = append(subnets, addressRange{kind: "NodePool", name: pool.Metadata.Name, path: "spec.subnet.cidr",
				text: pool.Spec.Subnet.CIDR})
		}
	}
	for _, p := range v.disjoint(subnets) {
		if !slices.ContainsFunc(outer, func(o netip.Prefix) bool { return o.Bits() <= p.prefix.Bits() && o.Contains(p.prefix.Addr()) }) {
			v.add(p.kind, p.name, p.path, "is outside of the virtual network: want a part of %s", strings.Join(s.Network.CIDRs, ", "))
		}
	}
	v.internalIP()
}

// existingNetwork checks what depends on whether the subnets exist.
func (v *validator) existingNetwork(existing bool) {
	n := v.d.Cluster.Spec.Network
	if existing && !strings.EqualFold(networkOf(n.Subnets.ControlPlane.ID), networkOf(n.Subnets.Nodes.ID)) {
		v.inCluster("spec.network.subnets.nodes.id", "want a subnet of the control plane's virtual network, %s",
			networkOf(n.Subnets.ControlPlane.ID))
	}
	if existing && n.Outbound.Type == "NATGateway" {
		v.inCluster("spec.network.outbound.type",
			"a NAT gateway belongs to a subnet, and kaz does not change subnets that exist: want UserDefinedRouting, LoadBalancer or None")
	}
	if existing && v.d.Cluster.Spec.Kubernetes.PodNetwork == "CloudRoutes" && n.RouteTableID == "" {
		v.inCluster("spec.network.routeTableID", "missing: want the id of the route table of the existing subnets, or podNetwork None")
	}
	if n.Outbound.Type == "LoadBalancer" && n.APIServer.Access == "Internal" {
		v.inCluster("spec.network.outbound.type",
			"the outbound rule of the control plane is at the public load balancer: want NATGateway, UserDefinedRouting or None, or "+
				"public access")
	}
}

func networkOf(subnet string) string {
	i := strings.LastIndex(strings.ToLower(subnet), "/subnets/")
	return subnet[:max(i, 0)]
}

// parse reads the range of a place and reports an invalid one.
func (v *validator) parse(p *addressRange) bool {
	prefix, err := netip.ParsePrefix(p.text)
	switch {
	case err != nil || !prefix.Addr().Is4():
		v.add(p.kind, p.name, p.path, "want a range of IPv4 addresses such as 10.244.0.0/16")
	case prefix != prefix.Masked():
		v.add(p.kind, p.name, p.path, "has bits behind its prefix: want %s", prefix.Masked())
	case prefix.Bits() > 29:
		v.add(p.kind, p.name, p.path, "is too small: want at most /29, because Azure keeps five addresses of a subnet")
	default:
		for _, reserved := range reservedRanges() {
			if prefix.Overlaps(reserved) {
				v.add(p.kind, p.name, p.path, "overlaps with %s, which Azure keeps: want another range", reserved)
				return false
			}
		}
		p.prefix = prefix
		return true
	}
	return false
}

// largestNetwork is the shortest prefix of a virtual network.
const largestNetwork = 2

// reservedRanges are those that no virtual network of Azure has, because machines use them for themselves or reach Azure with them.
func reservedRanges() []netip.Prefix {
	var all []netip.Prefix
	for text := range strings.FieldsSeq("224.0.0.0/4 255.255.255.255/32 127.0.0.0/8 169.254.0.0/16 168.63.129.16/32") {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// disjoint reports overlaps and returns the valid places.
func (v *validator) disjoint(all []addressRange) []addressRange {
	var valid []addressRange
	for _, p := range all {
		if !p.prefix.IsValid() && !v.parse(&p) {
			continue
		}
		for _, other := range valid {
			if p.prefix.Overlaps(other.prefix) {
				v.add(p.kind, p.name, p.path, "overlaps with %s of %s %s, %s: want ranges without common addresses", other.path, other.kind,
					other.name, other.text)
			}
		}
		valid = append(valid, p)
	}
	return valid
}

func (v *validator) internalIP() {
	n := v.d.Cluster.Spec.Network
	if n.APIServer.Access == "Public" {
		return
	}
	subnet, err := netip.ParsePrefix(n.Subnets.ControlPlane.CIDR)
	if err != nil {
		return // reported
	}
	address, err := netip.ParseAddr(n.APIServer.InternalIP)
	first := subnet.Masked().Addr()
	for range 4 { // the network's own address, and three of Azure
		first = first.Next()
	}
	if err != nil || !subnet.Contains(address) || address.Less(first) || !subnet.Contains(address.Next()) {
		v.inCluster("spec.network.apiServer.internalIP", "want an address of the control plane's subnet %s, from %s on and without the "+
			"last one",
			subnet, first)
	}
}

func (v *validator) pool(p NodePool) {
	name, s := p.Metadata.Name, p.Spec
	v.zones("NodePool", name, "spec.zones", s.Zones)
	v.autoscaling(name, s)
	if s.Backend == "StandaloneVM" && s.Replicas > 100 {
		v.add("NodePool", name, "spec.replicas", "want at most 100 standalone machines, or a scale set")
	}
	if s.OSDisk.Ephemeral && s.Priority == "Spot" && s.Spot.EvictionPolicy == "Deallocate" {
		v.add("NodePool", name, "spec.spot.evictionPolicy", "a machine with an ephemeral disk cannot be deallocated: want Delete")
	}
	v.poolSubnet(name, s.Subnet)
	if strings.Trim(s.Upgrade.MaxSurge, "0%")+strings.Trim(s.Upgrade.MaxUnavailable, "0%") == "" {
		v.add("NodePool", name, "spec.upgrade.maxSurge", "with neither further nodes nor missing ones no node can be replaced: want more "+
			"than 0, or spec.upgrade.maxUnavailable")
	}
	seen := map[string]bool{}
	for i, taint := range s.Taints {
		key, effect, _ := strings.Cut(taint, ":")
		key, _, _ = strings.Cut(key, "=")
		if seen[key+":"+effect] {
			v.add("NodePool", name, fmt.Sprintf("spec.taints[%d]", i), "want each key and effect once")
		}
		seen[key+":"+effect] = true
	}
}

func (v *validator) autoscaling(name string, s NodePoolSpec) {
	if a := s.Autoscaling; a != nil {
		if a.Min > a.Max {
			v.add("NodePool", name, "spec.autoscaling.min", "want at most spec.autoscaling.max, %d", a.Max)
		}
		if s.Replicas < a.Min || s.Replicas > a.Max {
			v.add("NodePool", name, "spec.replicas", "want the number at first between spec.autoscaling.min and max, %d to %d", a.Min,
				a.Max)
		}
		if s.Backend == "StandaloneVM" {
			v.add("NodePool", name, "spec.autoscaling", "standalone machines cannot be autoscaled: want the backend VMSSUniform or "+
				"VMSSFlexible")
		}
	}
}

func (v *validator) poolSubnet(name string, s Subnet) {
	if s.ID != "" && s.CIDR != "" {
		v.add("NodePool", name, "spec.subnet", "want one of id and cidr")
	}
	network := v.d.Cluster.Spec.Network.Subnets
	if s.CIDR != "" && network.Nodes.ID != "" {
		v.add("NodePool", name, "spec.subnet.cidr", "kaz adds no subnet to a virtual network that exists: want spec.subnet.id")
	}
	if s.ID != "" && network.Nodes.ID == "" {
		v.add("NodePool", name, "spec.subnet.id", "the cluster makes its own virtual network: want spec.subnet.cidr, or existing "+
			"subnets of the cluster")
	}
}

func (v *validator) extensions() {
	var pools []string
	for _, p := range v.d.Pools {
		pools = append(pools, p.Metadata.Name)
	}
	owner := map[string]string{}
	for _, e := range v.d.Extensions {
		name := e.Metadata.Name
		for i, pool := range e.Spec.AppliesTo.Pools {
			if pool != "*" && !slices.Contains(pools, pool) {
				v.add("Extension", name, fmt.Sprintf("spec.appliesTo.pools[%d]", i), "no NodePool has this name: want * or one of %s%s",
					strings.Join(pools, ", "), hint(pool, pools))
			}
		}
		if !e.Spec.AppliesTo.ControlPlane && len(e.Spec.AppliesTo.Pools) == 0 && len(e.Spec.Files)+len(e.Spec.Commands) > 0 {
			v.add("Extension", name, "spec.appliesTo", "no machine gets the files and commands: want controlPlane: true, or pools")
		}
		for i, file := range e.Spec.Files {
			v.content(name, fmt.Sprintf("spec.files[%d]", i), file)
			if other, had := owner[file.Path]; had {
				v.add("Extension", name, fmt.Sprintf("spec.files[%d].path", i), "Extension %s has this file, too: want another path", other)
			}
			owner[file.Path] = name
		}
		v.charts(e)
		v.manifests(e)
		for i, r := range e.Spec.Resources {
			v.resource(name, fmt.Sprintf("spec.resources[%d]", i), r)
		}
	}
}

// The type and the API version of a resource in an ARM template.
var (
	resourceType    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9.]*(/[A-Za-z][A-Za-z0-9]*)+$`)
	resourceVersion = regexp.MustCompile(`^\d{4}-\d\d-\d\d(-[a-z]+)?$`)
)

// resource checks what every resource of an ARM template has.
func (v *validator) resource(extension, at string, r map[string]any) {
	text := map[string]string{}
	for _, key := range []string{"type", "apiVersion", "name"} {
		value, ok := r[key].(string)
		if !ok || value == "" {
			v.add("Extension", extension, at, "%s is missing: want a text, as in an ARM template", key)
			return
		}
		text[key] = value
	}
	expression := func(key string) bool { return strings.ContainsAny(text[key], "[$") }
	if !expression("type") && !resourceType.MatchString(text["type"]) {
		v.add("Extension", extension, at+".type", "want the type of a resource such as Microsoft.Network/privateEndpoints")
		return
	}
	if !expression("apiVersion") && !resourceVersion.MatchString(text["apiVersion"]) {
		v.add("Extension", extension, at+".apiVersion", "want a date in quotes, such as \"2024-05-01\" or \"2024-05-01-preview\"")
	}
	if want := strings.Count(text["type"], "/"); !expression("name") && !expression("type") && strings.Count(text["name"], "/")+1 != want {
		v.add("Extension", extension, at+".name", "a resource of the type %s has a name of %d parts: want as many, with / between them",
			text["type"], want)
	}
}

// manifests checks that the API server can take the objects of manifests.
func (v *validator) manifests(e Extension) {
	for i, text := range e.Spec.Manifests {
		at := fmt.Sprintf("spec.manifests[%d]", i)
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var object struct {
				APIVersion string `yaml:"apiVersion"`
				Kind       string `yaml:"kind"`
				Metadata   struct {
					Name     string `yaml:"name"`
					Generate string `yaml:"generateName"`
				} `yaml:"metadata"`
				Items []any `yaml:"items"`
			}
			err := decoder.Decode(&object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				v.add("Extension", e.Metadata.Name, at, "cannot be read as YAML: %v", err)
				break
			}
			if reflect.ValueOf(object).IsZero() {
				continue // an empty document
			}
			if object.APIVersion == "" || object.Kind == "" || object.Metadata.Name+object.Metadata.Generate == "" && object.Items == nil {
				v.add("Extension", e.Metadata.Name, at, "an object lacks apiVersion, kind or metadata.name: want an object of Kubernetes")
			}
		}
	}
}

// content checks that a file has one content, and one at a URL a checksum.
func (v *validator) content(extension, path string, f File) {
	switch {
	case f.Content == "" && f.URL == "":
		v.add("Extension", extension, path, "the file has no content: want content, or url and sha256")
	case f.Content != "" && f.URL != "":
		v.add("Extension", extension, path+".url", "the file has content, too: want one of both")
	case f.URL != "" && f.SHA256 == "":
		v.add("Extension", extension, path+".sha256", "missing: want the SHA-256 of the file at the URL")
	case f.URL == "" && f.SHA256 != "":
		v.add("Extension", extension, path+".sha256", "only a file at a URL has a checksum: want it removed, or url")
	}
}

func (v *validator) patches() {
	for _, p := range v.d.Patches {
		if p.Spec.Target == (Target{}) {
			v.add("TemplatePatch", p.Metadata.Name, "spec.target", "selects every resource: want unit, symbol or type")
		}
		for _, key := range []string{"type", "name", "apiVersion", "dependsOn"} {
			if _, set := p.Spec.Merge[key]; set {
				v.add("TemplatePatch", p.Metadata.Name, "spec.merge."+key, "a patch cannot change this field: want it removed")
			}
		}
	}
}
