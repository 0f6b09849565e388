package check

import (
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/plan/disk"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/nodegroup"
)

// Source names a read.
type Source string

// The reads. Present is the second list of the Services: see [Facts].
const (
	AzureJSON     Source = "azure.json"
	SignIn        Source = "token"
	Rights        Source = "permissions"
	Clock         Source = "time of Azure"
	Components    Source = "pods of components"
	APIServer     Source = "version of the API server"
	Nodes         Source = "Nodes"
	Services      Source = "Services"
	Volumes       Source = "PersistentVolumes"
	Attachments   Source = "VolumeAttachments"
	Machines      Source = "machines"
	LoadBalancers Source = "load balancers"
	PublicIPs     Source = "public IPs"
	Disks         Source = "disks"
	Usages        Source = "usages"
	Paths         Source = "network path"
	Shares        Source = "file shares"
	Gateways      Source = "application gateways"
	Zones         Source = "DNS zones"
	Claims        Source = "PersistentVolumeClaims"
	Classes       Source = "StorageClasses"
	Pending       Source = "pending Pods"
	Events        Source = "warning Events"
	Present       Source = "Services after Azure"
)

// Mistake is a mistake in azure.json. The key is "" if the whole file has it.
type Mistake struct{ Key, Message string }

// Config is what was found in azure.json.
type Config struct {
	Path               string
	Problems, Warnings []Mistake
}

// Lack is a right that the identity lacks.
type Lack struct {
	Action string
	At     azure.ID
	// Why completes the sentence "it is needed to ...".
	Why string
	// Degrades means that the program works without the right, with fewer features.
	Degrades bool
}

// UnreadScope is a scope of which the rights cannot be read.
type UnreadScope struct {
	At    azure.ID
	Fault string
}

// Granted is the comparison of needed and granted rights.
type Granted struct {
	Missing []Lack
	Unread  []UnreadScope
}

// Component is a program of kaz in a version that runs in the cluster.
type Component struct {
	// Program is the name of the image without its registry, Version the tag, "" for an image without one.
	Program, Version string
	// Pods is in how many pods it runs.
	Pods int
}

// Obstacle is the kind of error that keeps an endpoint from being reached.
type Obstacle string

// The obstacles.
const (
	NoName        Obstacle = "name"        // its name has no address
	NoConnection  Obstacle = "connection"  // a connection is refused, or there is no route
	NoAnswer      Obstacle = "answer"      // nothing answers in time
	NoCertificate Obstacle = "certificate" // its certificate is not accepted
)

// Path is the way from this machine to an endpoint.
type Path struct {
	// Name says what is there, such as the API of Azure. At is its URL.
	Name, At string
	// Fault is why it is not reached, "" if it answers. Any answer will do.
	Fault    string
	Obstacle Obstacle
}

// Account is a storage account that volumes name, with its shares.
type Account struct {
	ID     azure.ID
	Absent bool
	// Fault is why it, or its shares, cannot be read.
	Fault  string
	Shares []azure.Resource[storage.Share]
}

// Gateway is an application gateway that a controller of the cluster writes.
type Gateway struct {
	ID     azure.ID
	Absent bool
	Doc    azure.Resource[network.ApplicationGateway]
	Health []health.Backend
	// HealthFault is why the health of its backends is not known.
	HealthFault string
}

// Zone is a DNS zone that the external-dns-webhook serves.
type Zone struct {
	ID     azure.ID
	Absent bool
	Doc    azure.Resource[network.DNSZone]
}

// Operation is an operation of Azure on a resource that is not finished, or failed.
type Operation struct {
	ID    azure.ID
	State string // the provisioning state
}

// Machine is a virtual machine or an instance of a scale set.
type Machine struct {
	ID azure.ID
	// Set is its scale set, "" for none. A machine without one may be no node, such as a jump host.
	Set azure.ID
	// Off is whether the machine is known to be off, or is being deleted.
	Off bool
}

// Disk is a managed disk.
type Disk struct {
	ID azure.ID
	// Ours is whether a disk driver made it. It may have done so for another cluster.
	Ours    bool
	Owner   disk.Owner
	Created time.Time
	// Holders are the machines that have the disk.
	Holders []azure.ID
}

// Usage is a named quota of a region.
type Usage struct {
	Name string
	nodegroup.Usage
}

// Facts are what was read. Services are read before Azure, and once more after it: an address that a Service had before must have a
// frontend, and only a Service that is absent afterwards is gone.
type Facts struct {
	// Now is the clock of this machine.
	Now time.Time
	// Group is the resource group for which the lists of machines and disks are complete.
	Group azure.ID
	// ClusterName is that of the cloud-controller-manager. Balancers are the names of its load balancers without the suffix of internal
	// ones.
	ClusterName string
	Balancers   []string
	// Faults are the errors of the reads that failed.
	Faults map[Source]string
	// Done has the reads that succeeded.
	Done map[Source]bool

	Config Config
	// TokenFault is why Azure refuses a token to the identity, "" if the identity gets one.
	TokenFault string
	Rights     Granted
	// Skew is how far the clock of this machine is ahead of Azure's.
	Skew          time.Duration
	APIServer     string // its version
	Components    []Component
	Nodes         []v1.Node
	Services      []v1.Service
	Present       []v1.Service
	Volumes       []v1.PersistentVolume
	Attachments   []storagev1.VolumeAttachment
	Machines      []Machine
	LoadBalancers []azure.Resource[network.LoadBalancer]
	PublicIPs     []azure.Resource[network.PublicIPAddress]
	Disks         []Disk
	Usages        []Usage
	Paths         []Path
	// Arguments are the flags of the components, by program.
	Arguments map[string]Arguments
	ScaleSets []azure.Resource[compute.ScaleSetModel]
	Accounts  []Account
	Gateways  []Gateway
	Zones     []Zone
	// Operations are those of the machines, scale sets, load balancers, public IPs and disks.
	Operations []Operation
	Claims     []v1.PersistentVolumeClaim
	Classes    []storagev1.StorageClass
	Pending    []v1.Pod
	Events     []v1.Event // warnings
}

// Note records the result of a read.
func (f *Facts) Note(s Source, err error) {
	if err != nil {
		if f.Faults == nil {
			f.Faults = map[Source]string{}
		}
		f.Faults[s] = err.Error()
		return
	}
	if f.Done == nil {
		f.Done = map[Source]bool{}
	}
	f.Done[s] = true
}

// fault returns why a read has no result. It is "" if the read was not made.
func (f *Facts) fault(s Source) (string, bool) {
	fault, failed := f.Faults[s]
	return fault, failed || !f.Done[s]
}
