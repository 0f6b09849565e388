package check

import (
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/disk"
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

// Machine is a virtual machine or an instance of a scale set.
type Machine struct {
	ID azure.ID
	// InSet is whether the machine is in a scale set. Others may be no nodes, such as a jump host.
	InSet bool
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

// Usage is a quota of a region: what is used of it, and the limit. A negative limit means that there is none.
type Usage struct {
	Name        string
	Used, Limit int64
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
