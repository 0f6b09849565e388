package definition

import (
	"slices"

	"kaz/internal/cluster/definition/fields"
)

// APIVersion is the apiVersion of every document.
const APIVersion = "cluster.kaz/v1alpha1"

// Definition is a checked definition with its defaults.
type Definition struct {
	Cluster    Cluster         `json:"cluster"`
	Pools      []NodePool      `json:"pools"`
	Extensions []Extension     `json:"extensions"`
	Patches    []TemplatePatch `json:"patches"`
	// Authorities counts the phases of rotations of the certificate authorities that are complete, three each. It is no field of a file:
	// the deployment of the cluster records it.
	Authorities int `json:"authorities,omitempty"`
	// Encrypted says that the key vault has keys with which every member can read Secrets, and that members encrypt Secrets. It is no field
	// of a file: [Load] sets it for new clusters, and the deployment of a cluster records it. Clusters of an earlier kaz do not have it.
	Encrypted bool `json:"encrypted,omitempty"`
	// Rendered are the objects of the charts, in the order of the extensions. [LoadCharts] makes them, so that a definition that Azure
	// keeps needs no chart.
	Rendered []Rendered `json:"rendered,omitempty"`
}

// EncryptionFlag is the flag of API servers with which they encrypt Secrets.
const EncryptionFlag = "encryption-provider-config"

// Encrypts reports whether members take the keys of the key vault with which Secrets are encrypted. A flag of the definition replaces them.
func (d Definition) Encrypts() bool {
	_, own := d.Cluster.Spec.Kubernetes.APIServer.ExtraArgs[EncryptionFlag]
	return d.Encrypted && !own
}

// Metadata names a document.
type Metadata struct {
	Name string `json:"name"`
}

// Cluster describes a cluster without its node pools.
type Cluster struct {
	Metadata Metadata    `json:"metadata"`
	Spec     ClusterSpec `json:"spec"`
}

// ClusterSpec is the spec of a [Cluster].
type ClusterSpec struct {
	Azure        Azure        `json:"azure"`
	Kubernetes   Kubernetes   `json:"kubernetes"`
	Network      Network      `json:"network"`
	Identity     Identity     `json:"identity"`
	KeyVault     Existing     `json:"keyVault"`
	Storage      Existing     `json:"storage"`
	ControlPlane ControlPlane `json:"controlPlane"`
	Access       Access       `json:"access"`
	Addons       Addons       `json:"addons"`
	Machines     Machines     `json:"machines"`
}

// Machines is what all machines have for a network without a way to the internet.
type Machines struct {
	Packages []Package `json:"packages"`
	// CertificateAuthorities are those that machines trust beside those of their image, as PEM.
	CertificateAuthorities string `json:"certificateAuthorities"`
}

// Package is a package (.deb) at a URL.
type Package struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
}

// Attested reports whether machines prove what they are when they join: the cloud-controller-manager of the add-ons checks that.
func (s ClusterSpec) Attested() bool { return s.Addons.Repository != "" }

// Addons are the programs in the cluster that connect it with Azure.
type Addons struct {
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Disks      bool   `json:"disks"`
}

// Azure says where the cluster is.
type Azure struct {
	Cloud          string            `json:"cloud"`
	SubscriptionID string            `json:"subscriptionID"`
	TenantID       string            `json:"tenantID"`
	Location       string            `json:"location"`
	ResourceGroup  ResourceGroup     `json:"resourceGroup"`
	Tags           map[string]string `json:"tags"`
}

// ResourceGroup is the resource group of the cluster.
type ResourceGroup struct {
	Name      string `json:"name"`
	Lifecycle string `json:"lifecycle"`
}

// Kubernetes configures the control plane's programs.
type Kubernetes struct {
	Version           string    `json:"version"`
	DNSDomain         string    `json:"dnsDomain"`
	PodCIDR           string    `json:"podCIDR"`
	ServiceCIDR       string    `json:"serviceCIDR"`
	PodNetwork        string    `json:"podNetwork"`
	APIServer         APIServer `json:"apiServer"`
	ControllerManager Program   `json:"controllerManager"`
	Scheduler         Program   `json:"scheduler"`
	ArtifactMirror    string    `json:"artifactMirror"`
	// ArtifactChecksums are the SHA-256 of programs by their path below the mirror.
	ArtifactChecksums map[string]string `json:"artifactChecksums"`
	// ImageRepository has the images of Kubernetes, "" for the project's own.
	ImageRepository string `json:"imageRepository"`
}

// Program has the arguments of a program.
type Program struct {
	ExtraArgs map[string]string `json:"extraArgs"`
}

// APIServer configures the API server.
type APIServer struct {
	CertSANs  []string          `json:"certSANs"`
	ExtraArgs map[string]string `json:"extraArgs"`
}

// Network describes the network of the machines.
type Network struct {
	CIDRs        []string  `json:"cidrs"`
	Subnets      Subnets   `json:"subnets"`
	RouteTableID string    `json:"routeTableID"`
	Outbound     Outbound  `json:"outbound"`
	APIServer    Endpoints `json:"apiServer"`
	SSHSources   []string  `json:"sshSources"`
	PodMetadata  string    `json:"podMetadata"`
}

// Subnets are the subnets of a network.
type Subnets struct {
	ControlPlane Subnet `json:"controlPlane"`
	Nodes        Subnet `json:"nodes"`
}

// Subnet is made in the cluster's network, or exists.
type Subnet struct {
	ID   string `json:"id"`
	CIDR string `json:"cidr"`
}

// Outbound is how machines reach the internet.
type Outbound struct {
	Type               string `json:"type"`
	PublicIPs          int    `json:"publicIPs"`
	IdleTimeoutMinutes int    `json:"idleTimeoutMinutes"`
}

// Endpoints are the addresses of the API server.
type Endpoints struct {
	Access         string   `json:"access"`
	Port           int      `json:"port"`
	AllowedSources []string `json:"allowedSources"`
	InternalIP     string   `json:"internalIP"`
	DNSLabel       string   `json:"dnsLabel"`
}

// Identity has the identities of the machines.
type Identity struct {
	ControlPlane Existing `json:"controlPlane"`
	Nodes        Existing `json:"nodes"`
	Roles        string   `json:"roles"`
	RegistryIDs  []string `json:"registryIDs"`
}

// Existing is a resource that exists if it has an id, and is made if not.
type Existing struct {
	ID string `json:"id"`
}

// ControlPlane describes the machines of the control plane.
type ControlPlane struct {
	Replicas int    `json:"replicas"`
	VMSize   string `json:"vmSize"`
	Zones    []int  `json:"zones"`
	Image    Image  `json:"image"`
	// BootFormat is that of the machines' boot file, as in a [NodePoolSpec].
	BootFormat string `json:"bootFormat"`
	OSDisk     Disk   `json:"osDisk"`
	EtcdDisk   Disk   `json:"etcdDisk"`
	// EtcdBackups is how many backups are kept, 0 for all.
	EtcdBackups int           `json:"etcdBackups"`
	Upgrade     MemberUpgrade `json:"upgrade"`
}

// MemberUpgrade is how the members of the control plane get another version: Replace or InPlace.
type MemberUpgrade struct {
	Strategy string `json:"strategy"`
}

// Image is an image by its id, or of the marketplace.
type Image struct {
	ID        string `json:"id"`
	Publisher string `json:"publisher"`
	Offer     string `json:"offer"`
	SKU       string `json:"sku"`
	Version   string `json:"version"`
}

// Ignition is the boot format of images such as Flatcar Container Linux. The other one is CloudInit.
const Ignition = fields.Ignition

// Disk is a managed disk.
type Disk struct {
	SizeGiB int    `json:"sizeGiB"`
	Type    string `json:"type"`
}

// Access is how people log in to machines.
type Access struct {
	AdminUser     string   `json:"adminUser"`
	SSHPublicKeys []string `json:"sshPublicKeys"`
}

// NodePool describes machines that are alike.
type NodePool struct {
	Metadata Metadata     `json:"metadata"`
	Spec     NodePoolSpec `json:"spec"`
}

// NodePoolSpec is the spec of a [NodePool].
type NodePoolSpec struct {
	Backend     string            `json:"backend"`
	Replicas    int               `json:"replicas"`
	Autoscaling *Autoscaling      `json:"autoscaling"`
	VMSize      string            `json:"vmSize"`
	Zones       []int             `json:"zones"`
	Priority    string            `json:"priority"`
	Spot        Spot              `json:"spot"`
	Image       Image             `json:"image"`
	BootFormat  string            `json:"bootFormat"`
	OSDisk      OSDisk            `json:"osDisk"`
	DataDisks   []Disk            `json:"dataDisks"`
	Subnet      Subnet            `json:"subnet"`
	MaxPods     int               `json:"maxPods"`
	Labels      map[string]string `json:"labels"`
	Taints      []string          `json:"taints"`
	Upgrade     Upgrade           `json:"upgrade"`
}

// Upgrade bounds how many nodes of a pool are replaced at once. Both are numbers, or shares such as 25%.
type Upgrade struct {
	MaxSurge       string `json:"maxSurge"`
	MaxUnavailable string `json:"maxUnavailable"`
}

// Autoscaling are the limits of an autoscaled pool.
type Autoscaling struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// Spot are the terms of Spot machines.
type Spot struct {
	EvictionPolicy string `json:"evictionPolicy"`
	MaxPrice       string `json:"maxPrice"`
}

// OSDisk is the disk of the operating system.
type OSDisk struct {
	SizeGiB   int    `json:"sizeGiB"`
	Type      string `json:"type"`
	Ephemeral bool   `json:"ephemeral"`
}

// Extension adds files, Kubernetes manifests and Azure resources to a cluster.
type Extension struct {
	Metadata Metadata      `json:"metadata"`
	Spec     ExtensionSpec `json:"spec"`
}

// ExtensionSpec is the spec of an [Extension].
type ExtensionSpec struct {
	AppliesTo AppliesTo        `json:"appliesTo"`
	Files     []File           `json:"files"`
	Commands  []string         `json:"commands"`
	Manifests []string         `json:"manifests"`
	Charts    []Chart          `json:"charts"`
	Resources []map[string]any `json:"resources"`
}

// AppliesTo selects the machines of an extension.
type AppliesTo struct {
	ControlPlane bool     `json:"controlPlane"`
	Pools        []string `json:"pools"`
}

// Has reports whether the machines of a pool are among them, or for "" those of the control plane.
func (a AppliesTo) Has(pool string) bool {
	if pool == "" {
		return a.ControlPlane
	}
	return slices.Contains(a.Pools, pool) || slices.Contains(a.Pools, "*")
}

// File is a file on machines. Its content is here, or at a URL with a checksum.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	URL     string `json:"url"`
	SHA256  string `json:"sha256"`
	Mode    string `json:"mode"`
}

// Chart is a Helm chart with its values: a release. The chart is at a path, or at a URL with a checksum.
type Chart struct {
	ReleaseName     string         `json:"releaseName"`
	Namespace       string         `json:"namespace"`
	CreateNamespace bool           `json:"createNamespace"`
	Path            string         `json:"path"`
	URL             string         `json:"url"`
	SHA256          string         `json:"sha256"`
	Values          map[string]any `json:"values"`
	IncludeCRDs     bool           `json:"includeCRDs"`
	APIVersions     []string       `json:"apiVersions"`
	AtBoot          bool           `json:"atBoot"`
}

// TemplatePatch changes resources that kaz generates.
type TemplatePatch struct {
	Metadata Metadata  `json:"metadata"`
	Spec     PatchSpec `json:"spec"`
}

// PatchSpec is the spec of a [TemplatePatch].
type PatchSpec struct {
	Target Target         `json:"target"`
	Merge  map[string]any `json:"merge"`
}

// Target selects resources; an empty field selects all.
type Target struct {
	Unit   string `json:"unit"`
	Symbol string `json:"symbol"`
	Type   string `json:"type"`
}
