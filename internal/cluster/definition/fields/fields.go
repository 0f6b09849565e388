// Package fields has the table of the fields of a cluster definition: the meaning of each field, its default, the values that are allowed,
// and what a change of it does to a cluster. The Go types in package definition say which fields exist. Layer L1: pure.
package fields

import (
	"fmt"
	"maps"
	"regexp"
	"strings"

	"kaz/internal/cluster/limit"
)

// Change is what a change of a field does to a cluster that exists.
type Change string

// The changes.
const (
	// Fixed fields cannot change: the cluster has to be made anew.
	Fixed Change = "fixed"
	// Replaces means that an upgrade replaces machines, which get the new value.
	Replaces Change = "replaces machines"
	// Upgrades means that an upgrade brings the new value into effect, without other machines.
	Upgrades Change = "by an upgrade"
	// Live fields change in place.
	Live Change = "live"
)

// Machines are kinds of machines.
type Machines int

// The machines.
const (
	Members Machines = 1 << iota
	Nodes
)

// Rule is what a field may contain.
type Rule struct {
	Pattern *regexp.Regexp
	Says    string // what the rule allows, as errors say it
	// checks are what a pattern cannot say. Each returns what a consumer of the field wants instead, "" for a text that it takes.
	checks []check
}

// check returns what is wanted instead of a text, "" if nothing is.
type check func(text string) string

func matching(pattern, says string, checks ...check) *Rule {
	return &Rule{regexp.MustCompile(`^(?:` + pattern + `)$`), says, checks}
}

// Wants is what the rule wants instead of a text, "" if it allows the text.
func (r *Rule) Wants(text string) string {
	if r == nil {
		return ""
	}
	if !r.Pattern.MatchString(text) {
		return r.Says
	}
	for _, check := range r.checks {
		if want := check(text); want != "" {
			return want
		}
	}
	return ""
}

var (
	guid     = matching(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`, "a GUID such as 00000000-0000-0000-0000-000000000001")
	location = matching(`[a-z0-9]+`, "the name of a region such as westeurope: small letters and digits")
	group    = matching(`[-\w.()]{0,89}[-\w()]`, "1 to 90 letters, digits, '-', '_', '.', '(' and ')', without '.' at the end")
	release  = matching(`1\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})`, "a version of Kubernetes such as 1.36.3", oldEnough)
	domain   = matching(`[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*`, "a DNS domain such as cluster.local",
		serviceDomain)
	certName = matching(`[0-9a-fA-F.:]+|(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?`,
		"a DNS name such as api.example.com or *.example.com in small letters, or an IP address, without scheme and port", certSAN)
	url         = matching(`https?://[^\s?#]+`, "a URL such as https://mirror.example.com/kubernetes")
	packageURL  = matching(`https?://[^\s?#]+/[-A-Za-z0-9_.+~:%]+\.deb`, "a URL that ends with the name of a package (.deb)")
	authorities = matching(`(?s:-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----\s*)`, "certificates as PEM", certificates)
	checksum    = matching(`[0-9a-f]{64}`, "64 small hexadecimal digits, as sha256sum prints them")
	artifact    = matching(`v\d+\.\d+\.\d+/bin/linux/(`+strings.Join(Architectures(), "|")+`)/(`+strings.Join(Programs(), "|")+`)`,
		"the path of a program below the mirror such as v1.36.3/bin/linux/amd64/kubelet")
	cidr   = matching(`[0-9a-fA-F.:]+/\d{1,3}`, "a range of addresses such as 10.244.0.0/16")
	source = matching(`\*|[0-9a-fA-F.:]+(/\d{1,3})?|[A-Z][A-Za-z]+(\.[A-Za-z0-9]+)?`,
		"a range such as 198.51.100.0/24, a service tag such as Internet, or *", sourceRange)
	ipv4     = matching(`\d{1,3}(\.\d{1,3}){3}`, "an IPv4 address such as 10.224.0.100")
	dnsLabel = matching(`[a-z][a-z0-9-]{1,61}[a-z0-9]`, "3 to 63 small letters, digits and '-', first a letter, last not '-'",
		limit.PublicName)
	size = matching(`[A-Za-z]+_[A-Za-z0-9_-]+`, "the name of a size such as Standard_D4s_v5")
	name = matching(`[a-z]([a-z0-9-]{0,28}[a-z0-9])?`, "at most 30 small letters, digits and '-', first a letter, last not '-'")
	// Names of key vaults and of containers of blobs begin with that of the cluster, and have no two '-' together.
	clusterName = matching(`[a-z]([a-z0-9-]{0,28}[a-z0-9])?`,
		"at most 30 small letters, digits and single '-', first a letter, last not '-'", singleHyphens, limit.PublicName)
	poolName = matching(`[a-z][a-z0-9]{0,11}`, "at most 12 small letters and digits, first a letter", limit.PublicName)
	user     = matching(`[a-z_][a-z0-9_-]{0,31}`, "the name of a Linux user: at most 32 small letters, digits, '_' and '-'",
		limit.AdminUser)
	sshKey   = matching(`ssh-(rsa|ed25519) [A-Za-z0-9+/=]+( .*)?|ecdsa-.*`, "a public key such as 'ssh-ed25519 AAAA...'", limit.SSHKey)
	hostPath = matching(`/[^\x00-\x1f]*[^/\x00-\x1f]`, "an absolute path of a file")
	mode     = matching(`0?[0-7]{3}`, "the mode of a file in quotes, such as \"0644\"")
	flagName = matching(`[a-z][a-z0-9-]*`, "the name of a flag without '--'")
	amount   = matching(`\d{1,3}%?`, "a number of nodes such as 1, or a share of the pool such as 25%")
	price    = matching(`-1|\d*[1-9]\d*(\.\d{1,5})?|0+\.\d{0,4}[1-9]\d{0,4}`, "a price in US dollars for an hour in quotes, such as "+
		"\"0.05\", or \"-1\" for no limit")
	label = matching(`([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?`,
		"a label key of Kubernetes: a name of at most 63 letters, digits, '-', '_' and '.', after a DNS name and '/' or without", labelKey)
	labelValue = matching(`([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?`,
		"the value of a label: at most 63 letters, digits, '-', '_' and '.', first and last a letter or digit, or nothing")
	taint = matching(`([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?(=[-\w.]{0,63})?:`+
		`(NoSchedule|PreferNoSchedule|NoExecute)`, "KEY=VALUE:EFFECT with the effect NoSchedule, PreferNoSchedule or NoExecute",
		taintParts)
	tagKey = matching(`[^<>%&\\?/]{1,512}`, "1 to 512 characters without < > % & \\ ? /",
		func(name string) string { return limit.TagName("", name) })
	tagValue = matching(`[^\x00-\x1f]{0,256}`, "at most 256 characters in one line", limit.TagValue)
	imageID  = matching(`/subscriptions/[^/\s]+/resource[gG]roups/[^/\s]+/providers/(?i:Microsoft\.Compute)/`+
		`((?i:images)/[^/\s]+|(?i:galleries)/[^/\s]+/(?i:images)/[^/\s]+(/(?i:versions)/[^/\s]+)?)`,
		"the id of an image: /subscriptions/.../providers/Microsoft.Compute/images/NAME, or .../galleries/NAME/images/NAME with or "+
			"without /versions/VERSION")
	imagePart    = matching(`[A-Za-z0-9][-\w.]*`, "letters, digits, '-', '_' and '.', as az vm image list shows them")
	imageVersion = matching(`latest|\d+(\.\d+){0,2}`, "latest, or a version such as 24.04.202601010")
	// The last part is left out: it is the name of a program.
	repository = matching(`[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*`,
		"a registry and a path, such as registry.example.com/kaz")
	releaseName = matching(`[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?`, "at most 53 small letters, digits and '-', as Helm wants it")
	namespace   = matching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`, "the name of a namespace: at most 63 small letters, digits and '-'")
	chartPath   = matching(`[^\x00-\x1f]+`, "a path such as charts/ingress-nginx")
	apiVersion  = matching(`[a-z0-9.-]+(/[A-Za-z0-9]+){0,2}`, "GROUP/VERSION or GROUP/VERSION/KIND")
	imageTag    = matching(`\w[\w.-]{0,127}`, "a tag of a container image such as v1.36.0")
)

// idOf allows ids of a type.
func idOf(fullType string) *Rule {
	provider, says := "", ""
	switch fullType {
	case "Microsoft.Network/virtualNetworks/subnets":
		provider = `(?i:Microsoft\.Network)/(?i:virtualNetworks)/[^/\s]+/(?i:subnets)/[^/\s]+`
		says = "the id of a subnet: /subscriptions/.../virtualNetworks/NAME/subnets/NAME"
	default:
		provider = "(?i:" + regexp.QuoteMeta(fullType) + `)/[^/\s]+`
		says = "the id of a resource: /subscriptions/.../providers/" + fullType + "/NAME"
	}
	return matching(`/subscriptions/[^/\s]+/resource[gG]roups/[^/\s]+/providers/`+provider, says)
}

// Field says what a field means and what it may contain.
type Field struct {
	// Doc is one sentence, and more where needed.
	Doc string
	// Default is the value of a field that is not set, as JSON; "" for none.
	Default string
	// Required fields have no default and must be set.
	Required bool
	// OneOf has all values that a text may have, if it is not empty.
	OneOf []string
	// Min and Max bound whole numbers, and the number of elements of lists. Max 0 is no bound.
	Min, Max int
	Change   Change
	// Of are the machines that an upgrade replaces for the new value.
	Of Machines
	// Number says that a whole number may stand for its text.
	Number bool
	// Later says that some clusters were made before the field existed. A recorded definition without the field has its
	// default. The default does not count in revisions.
	Later bool
	// Union says that layers may each add elements to the list.
	Union bool

	// Rule is that of the text, nil for none. Key is the rule of the keys of a map, and Value that of its values.
	Rule, Key, Value *Rule
}

// Check returns an error if the field can never have contained the text. It leaves out the rules of consumers that a pattern does not say:
// a cluster that was made before there was such a rule can be named.
func (f Field) Check(text string) error {
	if f.Rule != nil && !f.Rule.Pattern.MatchString(text) {
		return fmt.Errorf("%q: want %s", text, f.Rule.Says)
	}
	return nil
}

// Text is what the field allows, as errors and pages say it.
func (f Field) Text() string {
	if f.Rule == nil {
		return ""
	}
	return f.Rule.Says
}

// Ignition is the boot format of images such as Flatcar Container Linux. The other one is CloudInit.
const Ignition = "Ignition"

const (
	subnetType   = "Microsoft.Network/virtualNetworks/subnets"
	identityType = "Microsoft.ManagedIdentity/userAssignedIdentities"
)

// diskTypes are the types of disks.
func diskTypes() []string {
	return []string{"Premium_LRS", "StandardSSD_LRS", "Standard_LRS", "Premium_ZRS", "StandardSSD_ZRS"}
}

// Table is the table of all fields, by path from the kind on. Elements of lists have the path of their list followed by [].
func Table() map[string]Field {
	all := map[string]Field{}
	for _, part := range []map[string]Field{
		clusterFields(), kubernetesFields(), networkFields(), controlPlaneFields(), poolFields(), extensionFields(),
	} {
		maps.Copy(all, part)
	}
	return all
}

func clusterFields() map[string]Field {
	return map[string]Field{
		"Cluster.metadata.name": {Doc: "Name of the cluster. Names of its resources begin with it.", Required: true,
			Rule: clusterName, Change: Fixed},
		"Cluster.spec.azure.cloud": {Doc: "Azure cloud, as in azure.json of the machines.", Default: `"AzurePublicCloud"`,
			OneOf: []string{"AzurePublicCloud", "AzureUSGovernmentCloud", "AzureChinaCloud"}, Change: Fixed},
		"Cluster.spec.azure.subscriptionID": {Doc: "Subscription of the cluster.", Required: true, Rule: guid, Change: Fixed},
		"Cluster.spec.azure.tenantID":       {Doc: "Tenant of the subscription.", Required: true, Rule: guid, Change: Fixed},
		"Cluster.spec.azure.location":       {Doc: "Region of the cluster.", Required: true, Rule: location, Change: Fixed},
		"Cluster.spec.azure.resourceGroup.name": {Doc: "Resource group of everything that kaz makes.", Required: true, Rule: group,
			Change: Fixed},
		"Cluster.spec.azure.resourceGroup.lifecycle": {Doc: "Owned: kaz makes the group and `destroy` deletes it. Existing: it must " +
			"exist, " +
			"and `destroy` deletes only what has the cluster's tag.", Default: `"Owned"`, OneOf: []string{"Owned", "Existing"},
			Change: Fixed},
		"Cluster.spec.azure.tags": {Doc: "Tags of every resource.", Default: `{}`, Max: 40, Key: tagKey, Value: tagValue,
			Change: Live},

		"Cluster.spec.identity.controlPlane.id": {Doc: "Identity of the control plane's machines. Empty: it is made.", Default: `""`,
			Rule: idOf(identityType), Change: Fixed},
		"Cluster.spec.identity.nodes.id": {Doc: "Identity of the nodes. Empty: it is made.", Default: `""`, Rule: idOf(identityType),
			Change: Fixed},
		"Cluster.spec.identity.roles": {Doc: "Roles that the control plane's identity gets at the resource group. Scoped: Network " +
			"Contributor, Virtual Machine Contributor and Disk Backup Reader, to copy disks. Contributor: that role. None: the roles " +
			"exist already.", Default: `"Scoped"`,
			OneOf: []string{"Scoped", "Contributor", "None"}, Change: Live},
		"Cluster.spec.identity.registryIDs": {Doc: "Container registries from which nodes may pull.", Default: `[]`, Max: 20, Union: true,
			Rule: idOf("Microsoft.ContainerRegistry/registries"), Change: Live},
		"Cluster.spec.keyVault.id": {Doc: "Key vault with the cluster's secrets. Empty: it is made.", Default: `""`,
			Rule: idOf("Microsoft.KeyVault/vaults"), Change: Fixed},
		"Cluster.spec.storage.id": {Doc: "Storage account with the blob that elects the first member. Empty: it is made.", Default: `""`,
			Rule: idOf("Microsoft.Storage/storageAccounts"), Change: Fixed},

		"Cluster.spec.addons.repository": {Doc: "Repository with the container images of kaz's cloud-controller-manager, " +
			"cloud-node-manager and azuredisk-csi-driver. Empty: they are not installed, and nodes stay uninitialized until another " +
			"cloud-controller-manager runs.", Default: `""`, Rule: repository, Change: Upgrades},
		"Cluster.spec.addons.tag": {Doc: "Tag of these images.", Default: `"devel"`, Rule: imageTag, Change: Upgrades},
		"Cluster.spec.addons.disks": {Doc: "Whether the driver of managed disks is installed, with the StorageClasses managed-csi and " +
			"managed-csi-premium.", Default: `true`, Change: Upgrades},

		"Cluster.spec.machines.packages": {Doc: "Packages (.deb) that machines install instead of those of their image's sources. They " +
			"must be complete: containerd, conntrack, nftables and what these need. Those of another architecture, by the end of their " +
			"names, are left out.", Default: `[]`, Max: 100, Change: Replaces, Of: Members | Nodes, Later: true},
		"Cluster.spec.machines.packages[].url": {Doc: "Where machines get the package.", Required: true, Rule: packageURL,
			Change: Replaces},
		"Cluster.spec.machines.packages[].sha256": {Doc: "SHA-256 of the package.", Required: true, Rule: checksum, Change: Replaces},
		"Cluster.spec.machines.certificateAuthorities": {Doc: "Certificate authorities, as PEM, that machines trust beside those of " +
			"their image: that of the mirror of programs and images.", Default: `""`, Rule: authorities, Change: Replaces,
			Of: Members | Nodes, Later: true},

		"Cluster.spec.access.adminUser": {Doc: "User of the machines for SSH.", Default: `"azureuser"`, Rule: user, Change: Fixed},
		"Cluster.spec.access.sshPublicKeys": {Doc: "Public keys of that user. Azure demands at least one for a Linux machine without a " +
			"password.", Required: true, Min: 1, Max: 20, Union: true, Rule: sshKey, Change: Replaces,
			Of: Members | Nodes},
	}
}

// kubernetesFields are the fields of Kubernetes itself.
func kubernetesFields() map[string]Field {
	return map[string]Field{
		"Cluster.spec.kubernetes.version":     {Doc: "Version of Kubernetes.", Required: true, Rule: release, Change: Replaces},
		"Cluster.spec.kubernetes.dnsDomain":   {Doc: "DNS domain of Services.", Default: `"cluster.local"`, Rule: domain, Change: Fixed},
		"Cluster.spec.kubernetes.podCIDR":     {Doc: "IPv4 addresses of pods.", Default: `"10.244.0.0/16"`, Rule: cidr, Change: Fixed},
		"Cluster.spec.kubernetes.serviceCIDR": {Doc: "IPv4 addresses of Services.", Default: `"10.0.0.0/16"`, Rule: cidr, Change: Fixed},
		"Cluster.spec.kubernetes.podNetwork": {Doc: "CloudRoutes: the cloud-controller-manager writes a route for each node to a route " +
			"table. None: an Extension brings a network plugin.", Default: `"CloudRoutes"`, OneOf: []string{"CloudRoutes", "None"},
			Change: Fixed},
		"Cluster.spec.kubernetes.apiServer.certSANs": {Doc: "Further names and addresses in the API server's certificate.", Default: `[]`,
			Max: 50, Union: true, Rule: certName, Change: Replaces, Of: Members},
		"Cluster.spec.kubernetes.apiServer.extraArgs": {Doc: "Flags of the API server.", Default: `{}`, Key: flagName,
			Change: Replaces, Of: Members},
		"Cluster.spec.kubernetes.controllerManager.extraArgs": {Doc: "Flags of the controller manager.", Default: `{}`, Key: flagName,
			Change: Replaces, Of: Members},
		"Cluster.spec.kubernetes.scheduler.extraArgs": {Doc: "Flags of the scheduler.", Default: `{}`, Key: flagName,
			Change: Replaces, Of: Members},
		"Cluster.spec.kubernetes.artifactMirror": {Doc: "URL below which machines find the programs of Kubernetes, laid out as at " +
			"dl.k8s.io. With http the checksums of the version must be in kaz or in artifactChecksums.",
			Default: `"` + OfficialArtifacts + `"`, Rule: url, Change: Replaces, Of: Members | Nodes},
		"Cluster.spec.kubernetes.artifactChecksums": {Doc: "SHA-256 of programs, by their path below the mirror such as " +
			"v1.36.3/bin/linux/amd64/kubelet. They count before those in kaz. Machines take others from https://dl.k8s.io, or else " +
			"from a mirror with https.",
			Default: `{}`, Key: artifact, Value: checksum, Change: Replaces, Of: Members | Nodes, Later: true},
		"Cluster.spec.kubernetes.imageRepository": {Doc: "Repository with the images of Kubernetes, of CoreDNS (coredns/coredns), and of " +
			"the programs beside the disk driver (sig-storage), as registry.k8s.io has them. Empty: registry.k8s.io.",
			Default: `""`, Rule: repository, Change: Replaces, Of: Members | Nodes, Later: true},
	}
}

func networkFields() map[string]Field {
	const n = "Cluster.spec.network."
	return map[string]Field{
		n + "cidrs": {Doc: "Addresses of the virtual network.", Default: `["10.224.0.0/12"]`, Min: 1, Max: 10, Rule: cidr, Change: Live},
		n + "subnets.controlPlane.id": {Doc: "Subnet of the control plane that exists. Empty: it is made. Both subnets exist or none.",
			Default: `""`, Rule: idOf(subnetType), Change: Fixed},
		n + "subnets.controlPlane.cidr": {Doc: "Addresses of the control plane's subnet.", Default: `"10.224.0.0/24"`, Rule: cidr,
			Change: Fixed},
		n + "subnets.nodes.id": {Doc: "Subnet of the nodes that exists. Empty: it is made. It is in the same virtual network.",
			Default: `""`,
			Rule:    idOf(subnetType), Change: Fixed},
		n + "subnets.nodes.cidr": {Doc: "Addresses of the nodes' subnet.", Default: `"10.225.0.0/16"`, Rule: cidr, Change: Fixed},
		n + "routeTableID": {Doc: "Route table that exists, for routes to pods. Empty: it is made if podNetwork is CloudRoutes.",
			Default: `""`,
			Rule:    idOf("Microsoft.Network/routeTables"), Change: Fixed},
		n + "outbound.type": {Doc: "How machines reach the internet. None and UserDefinedRouting make nothing: the mirror of programs " +
			"and " +
			"images must be reachable.", Default: `"NATGateway"`, OneOf: []string{"NATGateway", "LoadBalancer", "UserDefinedRouting",
			"None"},
			Change: Fixed},
		n + "outbound.publicIPs": {Doc: "Number of public addresses for outbound traffic.", Default: `1`, Min: 1, Max: 16,
			Change: Live},
		n + "outbound.idleTimeoutMinutes": {Doc: "Minutes after which an idle outbound connection ends.", Default: `4`, Min: 4,
			Max: 120, Change: Live},
		n + "podMetadata": {Doc: "Whether pods reach what Azure tells their machine, with the tokens of its identity. Allowed: for " +
			"programs in pods that need the identity of the machine and cannot be in its network (hostNetwork).",
			Default: `"Denied"`, OneOf: []string{"Denied", "Allowed"}, Change: Replaces, Of: Members | Nodes, Later: true},
		n + "apiServer.access": {Doc: "From where the API server can be reached. Internal: only in the virtual network.",
			Default: `"Public"`,
			OneOf:   []string{"Public", "Internal", "PublicAndInternal"}, Change: Fixed},
		n + "apiServer.port": {Doc: "Port of the API server.", Default: `6443`, Min: 1, Max: 65535, Change: Fixed},
		n + "apiServer.allowedSources": {Doc: "Sources that may reach the API server.", Default: `["*"]`, Min: 1, Max: 200, Rule: source,
			Change: Live},
		n + "apiServer.internalIP": {Doc: "Address of the internal load balancer in the control plane's subnet.", Default: `"10.224.0.100"`,
			Rule: ipv4, Change: Fixed},
		n + "apiServer.dnsLabel": {Doc: "First label of the API server's public name. Empty: the cluster's name and six characters.",
			Default: `""`, Rule: dnsLabel, Change: Fixed},
		n + "sshSources": {Doc: "Sources that may reach SSH of the control plane. Empty: no rule allows SSH.", Default: `[]`, Max: 200,
			Union: true, Rule: source, Change: Live},
	}
}

// imageFields are the fields of an image at a path, of machines.
func imageFields(at string, of Machines) map[string]Field {
	return map[string]Field{
		at + ".id": {Doc: "Image or version of a gallery image. Empty: the image of the marketplace.", Default: `""`,
			Rule: imageID, Change: Replaces, Of: of},
		at + ".publisher": {Doc: "Publisher of the image of the marketplace.", Default: `"Canonical"`, Rule: imagePart, Change: Replaces,
			Of: of},
		at + ".offer": {Doc: "Offer of the image of the marketplace.", Default: `"ubuntu-24_04-lts"`, Rule: imagePart, Change: Replaces,
			Of: of},
		at + ".sku": {Doc: "SKU of the image of the marketplace.", Default: `"server"`, Rule: imagePart, Change: Replaces, Of: of},
		at + ".version": {Doc: "Version of the image of the marketplace.", Default: `"latest"`, Rule: imageVersion, Change: Replaces,
			Of: of},
	}
}

// bootFormat is the field of that name, of machines.
func bootFormat(of Machines) Field {
	return Field{Doc: "What the image reads at its first boot. CloudInit: cloud-init, as on Ubuntu and Debian. Ignition: an Ignition " +
		"config, as on Flatcar Container Linux.", Default: `"CloudInit"`, OneOf: []string{"CloudInit", Ignition}, Change: Replaces, Of: of,
		Later: true}
}

func controlPlaneFields() map[string]Field {
	const c = "Cluster.spec.controlPlane"
	all := imageFields(c+".image", Members)
	maps.Copy(all, map[string]Field{
		c + ".replicas": {Doc: "Number of members: 1, 3 or 5. An even number tolerates no more failures than one less.", Default: `3`,
			Min: 1,
			Max: 5, Change: Replaces},
		c + ".vmSize":     {Doc: "Size of the machines.", Default: `"Standard_D4s_v5"`, Rule: size, Change: Replaces, Of: Members},
		c + ".bootFormat": bootFormat(Members),
		c + ".zones": {Doc: "Availability zones of the machines, in turn. An empty list puts them into an availability set.",
			Default: `[1, 2, 3]`, Max: 3, Change: Fixed},
		c + ".osDisk.sizeGiB": {Doc: "Size of the operating system's disk.", Default: `64`, Min: 30, Max: 4095, Change: Replaces,
			Of: Members},
		c + ".osDisk.type": {Doc: "Type of the operating system's disk.", Default: `"Premium_LRS"`, OneOf: diskTypes(),
			Change: Replaces, Of: Members},
		c + ".etcdDisk.sizeGiB": {Doc: "Size of etcd's disk.", Default: `64`, Min: 16, Max: 4095, Change: Replaces, Of: Members},
		c + ".etcdDisk.type":    {Doc: "Type of etcd's disk.", Default: `"Premium_LRS"`, OneOf: diskTypes(), Change: Replaces, Of: Members},
		c + ".upgrade.strategy": {Doc: "How members get another version. Replace: a new machine for each. InPlace: kubeadm upgrades the " +
			"machine, without a further one. Other changes replace machines.", Default: `"Replace"`,
			OneOf: []string{"Replace", "InPlace"}, Change: Live},
		c + ".etcdBackups": {Doc: "Number of backups of etcd that are kept; older ones are deleted. 0 keeps all. Machines that exist " +
			"keep the number that they were made with.", Default: `72`, Max: 10000, Change: Live},
	})
	return all
}

func poolFields() map[string]Field {
	const p = "NodePool.spec."
	all := imageFields(p+"image", Nodes)
	maps.Copy(all, map[string]Field{
		"NodePool.metadata.name": {Doc: "Name of the pool.", Required: true, Rule: poolName, Change: Fixed},
		p + "backend": {Doc: "What the machines are: a scale set in one of its two modes, or standalone machines.",
			Default: `"VMSSUniform"`,
			OneOf:   []string{"VMSSUniform", "VMSSFlexible", "StandaloneVM"}, Change: Fixed},
		p + "replicas": {Doc: "Number of nodes. With autoscaling it is the number at first.", Default: `1`, Min: 0, Max: 1000,
			Change: Live},
		p + "autoscaling.min": {Doc: "Least number of nodes of an autoscaled pool.", Required: true, Min: 0, Max: 1000, Change: Live},
		p + "autoscaling.max": {Doc: "Greatest number of nodes of an autoscaled pool.", Required: true, Min: 1, Max: 1000, Change: Live},
		p + "autoscaling":     {Doc: "Present: the autoscaler decides the number of nodes.", Change: Live},
		p + "vmSize":          {Doc: "Size of the machines.", Default: `"Standard_D4s_v5"`, Rule: size, Change: Replaces, Of: Nodes},
		p + "bootFormat":      bootFormat(Nodes),
		p + "zones": {Doc: "Availability zones of the machines. An empty list: no zones.", Default: `[1, 2, 3]`, Max: 3,
			Change: Fixed},
		p + "priority": {Doc: "Spot machines cost less, and Azure may take them back.", Default: `"Regular"`,
			OneOf: []string{"Regular", "Spot"}, Change: Fixed},
		p + "spot.maxPrice": {Doc: "Price above which Azure takes a Spot machine back.", Default: `"-1"`, Rule: price, Change: Fixed},
		p + "osDisk.sizeGiB": {Doc: "Size of the operating system's disk.", Default: `128`, Min: 30, Max: 4095, Change: Replaces,
			Of: Nodes},
		p + "osDisk.type": {Doc: "Type of the operating system's disk.", Default: `"Premium_LRS"`, OneOf: diskTypes(),
			Change: Fixed},
		p + "osDisk.ephemeral": {Doc: "Whether the disk is on the host: faster, and lost with the machine. It is in the cache, " +
			"or on the temporary or local NVMe disk if the cache is too small.", Default: `false`,
			Change: Fixed},
		p + "spot.evictionPolicy": {Doc: "What becomes of a Spot machine that is taken back.", Default: `"Delete"`,
			OneOf: []string{"Delete", "Deallocate"}, Change: Fixed},
		p + "dataDisks":           {Doc: "Empty disks of each machine.", Default: `[]`, Max: 16, Change: Replaces, Of: Nodes},
		p + "dataDisks[].sizeGiB": {Doc: "Size of the disk.", Required: true, Min: 1, Max: 32767, Change: Replaces, Of: Nodes},
		p + "dataDisks[].type":    {Doc: "Type of the disk.", Default: `"Premium_LRS"`, OneOf: diskTypes(), Change: Replaces, Of: Nodes},
		p + "subnet.id":           {Doc: "Subnet of this pool that exists.", Default: `""`, Rule: idOf(subnetType), Change: Fixed},
		p + "subnet.cidr": {Doc: "Addresses of a subnet that is made for this pool. Empty: the pool is in the nodes' subnet.",
			Default: `""`, Rule: cidr, Change: Fixed},
		p + "maxPods": {Doc: "Greatest number of pods on a node.", Default: `110`, Min: 10, Max: 250, Change: Replaces, Of: Nodes},
		p + "labels":  {Doc: "Labels of the nodes.", Default: `{}`, Key: label, Value: labelValue, Change: Replaces, Of: Nodes},
		p + "upgrade.maxSurge": {Doc: "Nodes that an upgrade makes before old ones go, at once: a number, or a share of the pool, " +
			"rounded up. A pool over zones gets up to one for each zone. Standalone machines have none.", Default: `"1"`, Rule: amount,
			Number: true, Change: Live},
		p + "upgrade.maxUnavailable": {Doc: "Nodes that may be missing during an upgrade: a number, or a share of the pool, rounded down.",
			Default: `"0"`, Rule: amount, Number: true, Change: Live},
		p + "taints": {Doc: "Taints of the nodes.", Default: `[]`, Rule: taint, Change: Replaces, Of: Nodes},
	})
	return all
}

// chartFields are the fields of a Helm chart, with the names that Helm and its operators use.
func chartFields() map[string]Field {
	const c = "Extension.spec.charts[]."
	return map[string]Field{
		c + "releaseName": {Doc: "Name of the release. Each is once in a namespace.", Required: true, Rule: releaseName, Change: Upgrades},
		c + "namespace": {Doc: "Namespace of the release, and of its objects that name none.", Default: `"default"`, Rule: namespace,
			Change: Upgrades},
		c + "createNamespace": {Doc: "Whether the namespace is made. Those that Kubernetes brings are never made.", Default: `true`,
			Change: Upgrades},
		c + "path": {Doc: "Folder or archive (.tgz) of the chart, relative to the file of the definition. Empty with url.", Default: `""`,
			Rule: chartPath, Change: Upgrades},
		c + "url":    {Doc: "Where kaz gets the archive of the chart.", Default: `""`, Rule: url, Change: Upgrades},
		c + "sha256": {Doc: "SHA-256 of the archive. With url it is required.", Default: `""`, Rule: checksum, Change: Upgrades},
		c + "values": {Doc: "Values, as in a file for helm install --values.", Default: `{}`, Change: Upgrades},
		c + "includeCRDs": {Doc: "Whether the CustomResourceDefinitions of the chart's folder crds are applied, too, before all else.",
			Default: `true`, Change: Upgrades},
		c + "apiVersions": {Doc: "Further API versions that templates see in .Capabilities.APIVersions, such as monitoring.coreos.com/v1.",
			Default: `[]`, Max: 100, Rule: apiVersion, Change: Upgrades},
		c + "atBoot": {Doc: "Whether the first member of the control plane applies the objects. false: only kaz cluster upgrade does, " +
			"for charts that are too large for a boot file.", Default: `true`, Change: Upgrades},
	}
}

func extensionFields() map[string]Field {
	const e, p = "Extension.spec.", "TemplatePatch.spec."
	all := chartFields()
	maps.Copy(all, map[string]Field{
		"Extension.metadata.name": {Doc: "Name of the extension.", Required: true, Rule: name, Change: Live},
		e + "appliesTo.controlPlane": {Doc: "Whether files and commands are for the control plane's machines.", Default: `false`,
			Change: Replaces},
		e + "appliesTo.pools": {Doc: "Pools whose nodes get files and commands; * for all.", Default: `[]`, Change: Replaces},
		e + "files":           {Doc: "Files on the machines.", Default: `[]`, Change: Replaces},
		e + "files[].path":    {Doc: "Path of the file.", Required: true, Rule: hostPath, Change: Replaces},
		e + "files[].content": {Doc: "Content of the file, or empty with url. It is no place for secrets: it is in the template.",
			Default: `""`, Change: Replaces},
		e + "files[].url": {Doc: "Where machines get the file when they boot.", Default: `""`, Rule: url, Change: Replaces},
		e + "files[].sha256": {Doc: "SHA-256 of the file at the URL. A machine with another file does not join.", Default: `""`,
			Rule: checksum, Change: Replaces},
		e + "files[].mode": {Doc: "Mode of the file.", Default: `"0644"`, Rule: mode, Change: Replaces},
		e + "commands": {Doc: "Shell commands that run after a machine has joined the cluster.", Default: `[]`,
			Change: Replaces},
		e + "manifests": {Doc: "Kubernetes manifests, such as an add-on, that the first member of the control plane applies.",
			Default: `[]`,
			Change:  Upgrades},
		e + "charts": {Doc: "Helm charts whose objects become manifests. They are rendered when the definition is read.", Default: `[]`,
			Max: 50, Change: Upgrades},
		e + "resources": {Doc: "Azure resources as in an ARM template, in a nested deployment of their own. \"${PORT}\" stands for the " +
			"id of " +
			"a port, and makes the resources wait for it.", Default: `[]`, Max: 100, Change: Live},

		"TemplatePatch.metadata.name": {Doc: "Name of the patch.", Required: true, Rule: name, Change: Live},
		p + "target.unit":             {Doc: "Unit whose resources are changed. Empty: every unit.", Default: `""`, Change: Live},
		p + "target.symbol":           {Doc: "Symbol of the resource that is changed. Empty: every symbol.", Default: `""`, Change: Live},
		p + "target.type":             {Doc: "Type of the resources that are changed. Empty: every type.", Default: `""`, Change: Live},
		p + "merge": {Doc: "JSON merge patch (RFC 7386) for the resources: null removes a field. It cannot change type, name and " +
			"dependsOn.",
			Required: true, Change: Live},
	})
	return all
}
