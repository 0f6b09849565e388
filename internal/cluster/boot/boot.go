// Package boot makes the boot files of machines, for cloud-init or for Ignition, with a script that makes a machine a node. They have no
// secret: a machine reads secrets from the key vault, with its identity. Layer L1: pure.
package boot

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kaz/internal/azure"
	"kaz/internal/azure/registry"
	"kaz/internal/cluster/addon"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

//go:embed bootstrap.sh
var script string

// Files are the boot files of a cluster.
type Files struct {
	ControlPlane []byte
	Pools        map[string][]byte
}

// Build makes the boot files of a definition.
func Build(d definition.Definition) (Files, error) {
	b := builder{d: d, spec: d.Cluster.Spec, names: naming.Of(d.Cluster)}
	if err := b.takeInventory(); err != nil {
		return Files{}, err
	}
	files := Files{Pools: map[string][]byte{}}
	var err error
	if files.ControlPlane, err = b.build(nil); err != nil {
		return files, err
	}
	for _, pool := range d.Pools {
		if files.Pools[pool.Metadata.Name], err = b.build(&pool); err != nil {
			return files, err
		}
	}
	return files, nil
}

// CustomData is a boot file as Azure takes it.
func CustomData(file []byte) (string, error) {
	zipped, err := compressed(file)
	if err == nil && isIgnition(file) {
		zipped, err = wrapped(zipped)
	}
	return base64.StdEncoding.EncodeToString(zipped), err
}

// compressed is a text, compressed with gzip.
func compressed(text []byte) ([]byte, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return zipped.Bytes(), err
}

// checksumFile has the checksums of programs that the definition has, and releasedFile those that kaz has of the version.
const (
	checksumFile = "/etc/kaz/checksums"
	releasedFile = "/etc/kaz/released-checksums"
)

type object = map[string]any

type builder struct {
	d     definition.Definition
	spec  definition.ClusterSpec
	names naming.Names
	// inventory is the text of the object that the first member applies after the manifests.
	inventory string
}

// file is a file on a machine, as cloud-init takes it.
type file struct {
	Path        string `yaml:"path"`
	Permissions string `yaml:"permissions"`
	Content     string `yaml:"content"`
}

// content is what a boot file brings, in whatever format.
type content struct {
	files []file
	// units are the units of systemd that are enabled and started, the first one without waiting for it.
	units []string
}

// build is the boot file of a pool's machines, or of the control plane's if pool is nil.
func (b builder) build(pool *definition.NodePool) ([]byte, error) {
	c, err := b.content(pool)
	if err != nil {
		return nil, err
	}
	if formatOf(b.spec, pool) == definition.Ignition {
		return b.ignition(pool, c)
	}
	return cloudInit(c)
}

// content is what the machines of a pool boot with, or those of the control plane if pool is nil.
func (b builder) content(pool *definition.NodePool) (content, error) {
	azureJSON, err := b.azureJSON(pool)
	if err != nil {
		return content{}, err
	}
	at := b.layout(pool)
	all := content{units: []string{bootstrapUnit}, files: []file{
		{"/etc/kaz/node.env", "0644", b.environment(pool)},
		// It has no secret. The cloud-controller-manager reads it, and is not root.
		{"/etc/kubernetes/azure.json", "0644", azureJSON},
		{"/etc/modules-load.d/kaz.conf", "0644", "overlay\nbr_netfilter\n"},
		{"/etc/sysctl.d/99-kaz.conf", "0644", "net.ipv4.ip_forward = 1\nnet.bridge.bridge-nf-call-iptables = 1\n" +
			"-net.netfilter.nf_conntrack_max = 262144\n"},
		{"/etc/containerd/config.toml", "0644", b.containerd(at)},
		{unitDir + "kubelet.service", "0644", kubeletService(at)},
		{unitDir + "kubelet.service.d/10-kubeadm.conf", "0644", kubeletArguments(at)},
		{at.script(), "0755", script},
		{unitDir + bootstrapUnit, "0644", bootstrapService(at)},
	}}
	if b.spec.Kubernetes.PodNetwork == "CloudRoutes" {
		all.files = append(all.files, b.podNetwork()...)
	}
	all.files = append(all.files, b.metadata()...)
	all.files = append(all.files, b.mirrored(at)...)
	if b.spec.Attested() {
		all.files = append(all.files, file{unitDir + "kubelet.service.d/30-identity.conf", "0644", kubeletIdentity(at)})
	}
	if pool != nil { // only their identity may have the right to pull
		text, err := documents(credentialProviders())
		if err != nil {
			return all, err
		}
		all.files = append(all.files, file{"/etc/kaz/credential-provider.yaml", "0644", string(text)})
	}
	configs := map[string]func(*definition.NodePool) ([]byte, error){"kubeadm-join.yaml": b.join}
	if pool == nil {
		configs["kubeadm-init.yaml"] = b.init
		all.files = append(all.files, file{unitDir + "kubelet.service.d/20-etcd.conf", "0644", kubeletAfterDisk})
		for _, t := range timers(at, b.spec.ControlPlane.EtcdBackups) {
			all.files = append(all.files, t.files(at)...)
			all.units = append(all.units, "kaz-"+t.name+".timer")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		text, err := configs[name](pool)
		if err != nil {
			return all, err
		}
		all.files = append(all.files, file{"/etc/kaz/" + name, "0600", string(text)})
	}
	all.files = append(all.files, b.checksums()...)
	all.files = append(all.files, b.extensions(pool)...)
	return all, nil
}

// checksums are the files with the checksums of programs: those that the definition gives, and those that kaz knows of the release.
func (b builder) checksums() []file {
	return slices.DeleteFunc([]file{
		{checksumFile, "0644", b.spec.Kubernetes.ChecksumLines()},
		{releasedFile, "0644", definition.ReleasedChecksums(b.spec.Kubernetes.Version)},
	}, func(f file) bool { return f.Content == "" })
}

// cloudInit is the file of cloud-init with a content.
func cloudInit(c content) ([]byte, error) {
	run := [][]string{{"systemctl", "daemon-reload"}}
	for i, unit := range c.units {
		command := []string{"systemctl", "enable", "--now", unit}
		if i == 0 {
			command = []string{"systemctl", "enable", "--now", "--no-block", unit}
		}
		run = append(run, command)
	}
	text, err := yaml.Marshal(struct {
		Files []file     `yaml:"write_files"`
		Run   [][]string `yaml:"runcmd"`
	}{c.files, run})
	return append([]byte("#cloud-config\n"), text...), err
}

// Manifest is the text of objects of Kubernetes, with a name.
type Manifest struct{ Name, Text string }

// Manifests are those of add-ons and then of extensions: the names of extensions begin with a letter. Those of an extension's charts
// come after its own.
func Manifests(d definition.Definition) []Manifest {
	return manifests(d, func(definition.Rendered) bool { return true })
}

// AtBoot are the manifests that the first member applies.
func AtBoot(d definition.Definition) []Manifest {
	return manifests(d, func(r definition.Rendered) bool { return r.AtBoot })
}

func manifests(d definition.Definition, has func(definition.Rendered) bool) []Manifest {
	var all []Manifest
	add := func(name string, texts []string) {
		for i, text := range texts {
			all = append(all, Manifest{fmt.Sprintf("%s-%03d", name, i), text})
		}
	}
	add("0-addons", addon.Manifests(d.Cluster))
	for _, e := range d.Extensions {
		texts := slices.Clone(e.Spec.Manifests)
		for _, r := range d.Rendered {
			if r.Extension != e.Metadata.Name || !has(r) {
				continue
			}
			for _, text := range r.Manifests {
				texts = append(texts, string(text))
			}
		}
		add(e.Metadata.Name, texts)
	}
	return all
}

// extensions are the manifests of add-ons, and the files, commands and manifests of extensions for a pool, or for the control plane.
func (b builder) extensions(pool *definition.NodePool) []file {
	var files []file
	if pool == nil {
		manifests := AtBoot(b.d)
		for _, m := range manifests {
			files = append(files, file{"/etc/kaz/manifests/" + m.Name + ".yaml", "0600", m.Text})
		}
		if len(manifests) > 0 {
			files = append(files, file{"/etc/kaz/applied.yaml", "0600", b.inventory})
		}
	}
	var downloads strings.Builder
	for _, e := range b.d.Extensions {
		name := e.Metadata.Name
		if !e.Spec.AppliesTo.Has(nameOf(pool)) {
			continue
		}
		for _, f := range e.Spec.Files {
			if f.URL != "" {
				fmt.Fprintf(&downloads, "%s %s %s %s\n", f.SHA256, f.Mode, f.URL, f.Path)
				continue
			}
			files = append(files, file{f.Path, f.Mode, f.Content})
		}
		for i, text := range e.Spec.Commands {
			files = append(files, file{fmt.Sprintf("/etc/kaz/commands/%s-%03d.sh", name, i), "0700", text + "\n"})
		}
	}
	if downloads.Len() > 0 {
		files = append(files, file{"/etc/kaz/downloads", "0600", downloads.String()})
	}
	return files
}

// takeInventory makes the text of the ConfigMap about the manifests that the first member applies.
func (b *builder) takeInventory() error {
	inventory, err := Inventory(AtBoot(b.d))
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(inventory.Object)
	b.inventory = string(text)
	return err
}

// nameOf is the name of a pool, "" for the control plane.
func nameOf(pool *definition.NodePool) string {
	if pool == nil {
		return ""
	}
	return pool.Metadata.Name
}

// identity is the id of the identity of a pool's machines, or of the control plane's.
func (b builder) identity(pool *definition.NodePool) string {
	name, existing := "control-plane", b.spec.Identity.ControlPlane.ID
	if pool != nil {
		name, existing = "nodes", b.spec.Identity.Nodes.ID
	}
	if existing != "" {
		return existing
	}
	return string(b.names.Group().Resource("Microsoft.ManagedIdentity/userAssignedIdentities", b.names.With(name)))
}

// quote is a text as a word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// environment are the settings of the boot script.
func (b builder) environment(pool *definition.NodePool) string {
	role := "control-plane"
	if pool != nil {
		role = "node"
	}
	hairpin := ""
	if b.names.Internal() {
		hairpin = b.names.InternalHost()
	}
	var text strings.Builder
	at := b.layout(pool)
	settings := [][2]string{
		{"CLUSTER", b.names.Cluster}, {"ROLE", role}, {"VERSION", b.spec.Kubernetes.Version}, {"MIRROR", b.spec.Kubernetes.ArtifactMirror},
		{"IDENTITY", b.identity(pool)}, {"VAULT_URL", b.names.VaultURL()}, {"VAULT_AUDIENCE", b.names.VaultAudience()},
		{"ELECTION_URL", b.names.ContainerURL()}, {"HAIRPIN", hairpin},
		{"PROGRAMS", at.programs}, {"SET_NAME", at.setName},
	}
	settings = append(settings, b.mirrorSettings()...)
	if pool == nil && b.d.Encrypts() {
		settings = append(settings, [2]string{"ENCRYPTION", "secretbox"})
	}
	for _, one := range settings {
		fmt.Fprintf(&text, "KAZ_%s=%s\n", one[0], quote(one[1]))
	}
	return text.String()
}

// azureJSON is the configuration of the cloud-controller-manager and of the drivers.
func (b builder) azureJSON(pool *definition.NodePool) (string, error) {
	text, err := json.MarshalIndent(b.cloudConfig(pool), "", "  ")
	return string(text) + "\n", err
}

// CloudConfig is the configuration of the cloud-controller-manager on the control plane of a definition, as in azure.json.
func CloudConfig(d definition.Definition) map[string]any {
	return builder{d: d, spec: d.Cluster.Spec, names: naming.Of(d.Cluster)}.cloudConfig(nil)
}

func (b builder) cloudConfig(pool *definition.NodePool) object {
	a := b.spec.Azure
	kind := "vmss"
	if slices.ContainsFunc(b.d.Pools, func(p definition.NodePool) bool { return p.Spec.Backend == "VMSSFlexible" }) {
		kind = "vmssflex"
	}
	subnet := azure.ID(b.spec.Network.Subnets.Nodes.ID)
	network, networkGroup, subnetName := b.names.With("vnet"), a.ResourceGroup.Name, "nodes"
	if subnet != "" {
		network, networkGroup, subnetName = subnet.Parent().Name(), subnet.Group(), subnet.Name()
	}
	config := object{
		"cloud": a.Cloud, "tenantId": a.TenantID, "subscriptionId": a.SubscriptionID, "resourceGroup": a.ResourceGroup.Name,
		"location": a.Location, "vmType": kind, "vnetName": network, "vnetResourceGroup": networkGroup, "subnetName": subnetName,
		"loadBalancerSku": "standard", "useManagedIdentityExtension": true, "userAssignedIdentityID": b.identity(pool),
		"useInstanceMetadata": true, "disableOutboundSNAT": true,
	}
	if b.spec.Network.Outbound.Type == "LoadBalancer" {
		config["loadBalancerName"] = b.names.OutboundBalancer()
	}
	if subnet == "" {
		config["securityGroupName"] = b.names.With("node-nsg")
	}
	switch table := azure.ID(b.spec.Network.RouteTableID); {
	case table != "":
		config["routeTableName"], config["routeTableResourceGroup"] = table.Name(), table.Group()
	case b.spec.Kubernetes.PodNetwork == "CloudRoutes":
		config["routeTableName"] = b.names.With("rt")
	}
	return config
}

// credentialProviders is the configuration by which the kubelet pulls images from registries in Azure with the identity of the
// machine. The kubelet takes it only on machines with the program, because it does not start without.
func credentialProviders() object {
	return object{
		"apiVersion": "kubelet.config.k8s.io/v1", "kind": "CredentialProviderConfig",
		"providers": []object{{
			"name": registry.Program, "apiVersion": "credentialprovider.kubelet.k8s.io/v1", "defaultCacheDuration": "10m",
			"matchImages": registry.MatchImages(), "args": []string{"/etc/kubernetes/azure.json"},
		}},
	}
}

// containerd configures containerd for Kubernetes.
func (b builder) containerd(at layout) string {
	// Containers may not lower their OOM score below that of containerd, which some hosts of machines forbid.
	text := `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
` + b.sandbox() + `[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".cni]
`
	if b.spec.Kubernetes.PodNetwork != "CloudRoutes" {
		return text + "  bin_dir = \"/opt/cni/bin\"\n"
	}
	return text + "  bin_dir = \"" + at.plugins + "\"\n  conf_template = \"/etc/kaz/cni.template\"\n"
}
