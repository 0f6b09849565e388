// Package metadata has the documents that a machine's own metadata service has about
// it: the members that kaz reads, spelled as Azure does. Layer L0: structs and
// nothing else.
package metadata

// Versions of the two documents that are asked for.
const (
	InstanceVersion     = "2021-10-01"
	LoadBalancerVersion = "2020-10-01"
)

// Instance is the answer of /metadata/instance. All its values are texts, numbers
// too; an empty text says that there is none.
type Instance struct {
	Compute *Compute `json:"compute"`
	Network *Network `json:"network"`
}

// Compute is the machine itself.
type Compute struct {
	Name                   string    `json:"name"`
	OSProfile              OSProfile `json:"osProfile"`
	ResourceID             string    `json:"resourceId"`
	Location               string    `json:"location"`
	Zone                   string    `json:"zone"`
	PlatformFaultDomain    string    `json:"platformFaultDomain"`
	PlatformSubFaultDomain string    `json:"platformSubFaultDomain"`
	VMSize                 string    `json:"vmSize"`
	TagsList               []Tag     `json:"tagsList"`

	StorageProfile StorageProfile `json:"storageProfile"`
}

// StorageProfile has the disks of the machine.
type StorageProfile struct {
	DataDisks []DataDisk `json:"dataDisks"`
}

// DataDisk is a disk that is attached to the machine.
type DataDisk struct {
	LUN         string      `json:"lun"`
	ManagedDisk ManagedDisk `json:"managedDisk"`
}

// ManagedDisk names the disk.
type ManagedDisk struct {
	ID string `json:"id"`
}

// OSProfile is what the machine's system got at its first start.
type OSProfile struct {
	ComputerName string `json:"computerName"`
}

// Tag is one of the machine's tags.
type Tag struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Network has the machine's interfaces, the primary one first.
type Network struct {
	Interfaces []Interface `json:"interface"`
}

// Interface is one network interface.
type Interface struct {
	MACAddress string `json:"macAddress"`
	IPv4       Family `json:"ipv4"`
	IPv6       Family `json:"ipv6"`
}

// Family are the addresses of one IP version, the primary one first.
type Family struct {
	Addresses []Address `json:"ipAddress"`
}

// Address is an address inside the network and, where the service shows it, the one
// outside that leads to it.
type Address struct {
	Private string `json:"privateIpAddress"`
	Public  string `json:"publicIpAddress"`
}

// LoadBalancer is the answer of /metadata/loadbalancer, which shows the public
// addresses that the other document does not: those of the standard SKU.
type LoadBalancer struct {
	LoadBalancer struct {
		PublicIPAddresses []PublicIPAddress `json:"publicIpAddresses"`
	} `json:"loadbalancer"`
}

// PublicIPAddress leads from a frontend to a private address. IPv6 addresses stand
// in brackets.
type PublicIPAddress struct {
	Frontend string `json:"frontendIpAddress"`
	Private  string `json:"privateIpAddress"`
}
