// Package inventory lists the virtual machines of a local Azure, and says when they change. It reads the emulator
// itself, as the hardware below Azure would. Layer L4.
package inventory

import (
	"cmp"
	"context"
	"math"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/core/catalog"
)

// Machine is a virtual machine with what matters to a kubelet.
type Machine struct {
	ID      azure.ID
	Name    string // name of the Node: the computer name in lower case
	Running bool
	// Since changes with every start of the machine.
	Since string
	// Abrupt is true if the machine lost its power without a shutdown.
	Abrupt bool
	// NICs are the network interfaces, the primary one first.
	NICs []azure.ID
	// Addresses are the primary address of each family of the primary network interface, IPv4 first.
	Addresses []netip.Addr
	VCPUs     int
	Memory    int64 // bytes
	DataDisks int   // how many data disks the size can have, 0 if that is not known
	// Boot is how the machine boots, nil for one without custom data.
	Boot *Boot
}

// Boot is what a machine boots with.
type Boot struct {
	// Network is the virtual network of the primary network interface.
	Network azure.ID
	// ID is the unique id of the machine, User its administrator.
	ID, User string
	// CustomData is in base64.
	CustomData string
	// Image is the image that the machine was made from.
	Image ImageReference
}

// ImageReference names an image of the marketplace, or an image by its id.
type ImageReference struct{ ID, Publisher, Offer, SKU string }

// groupLabel is the Node label with the resource group of a machine outside the cluster's resource group.
const groupLabel = "kubernetes.azure.com/resource-group"

// NodeLabels returns the labels that the machine's kubelet gives its Node in a cluster with that resource group.
func (m Machine) NodeLabels(cluster azure.ID) map[string]string {
	if group := m.ID.Group(); !strings.EqualFold(group, cluster.Group()) {
		return map[string]string{groupLabel: strings.ToLower(group)}
	}
	return nil
}

// types are the resource types of virtual machines: instances of uniform scale sets, and all others.
func types() []string {
	return []string{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "Microsoft.Compute/virtualMachines"}
}

// IsMachine reports whether an id belongs to a virtual machine.
func IsMachine(id azure.ID) bool { return slices.ContainsFunc(types(), id.Is) }

// List returns all virtual machines of an emulator.
func List(ctx context.Context, e *core.Emulator) ([]Machine, error) {
	var all []Machine
	e.Look(func(w behaviour.World) {
		for _, kind := range types() {
			for id, doc := range behaviour.Everywhere(w, kind) {
				if m, ok := read(w, id, doc); ok {
					all = append(all, m)
				}
			}
		}
	})
	return all, ctx.Err()
}

// read returns a machine, false for one without a computer name.
func read(w behaviour.World, id azure.ID, doc behaviour.Object) (Machine, bool) {
	name := Name(doc)
	if name == "" {
		return Machine{}, false
	}
	set, _ := w.Get(id.Parent())
	size, _ := catalog.FindSize(cmp.Or(behaviour.Text(doc, "sku.name"), behaviour.Text(doc, "properties.hardwareProfile.vmSize"),
		behaviour.Text(set, "sku.name")))
	m := Machine{
		ID:        id,
		Name:      name,
		Running:   vm.PowerOf(doc) == vm.Running,
		Since:     vm.PowerSince(doc),
		Abrupt:    vm.Abrupt(doc),
		VCPUs:     size.VCPUs,
		DataDisks: size.DataDisks,
		Memory:    int64(math.Round(size.MemoryGiB * (1 << 30))),
	}
	m.NICs = interfaces(w, doc)
	if len(m.NICs) > 0 {
		m.Addresses = addresses(w, m.NICs[0])
	}
	if data := vm.CustomData(doc); data != "" && len(m.NICs) > 0 {
		m.Boot = bootOf(w, doc, m.NICs[0])
		m.Boot.CustomData = data
	}
	return m, true
}

// bootOf returns what a machine boots with, except its custom data.
func bootOf(w behaviour.World, doc behaviour.Object, primary azure.ID) *Boot {
	b := &Boot{ID: behaviour.Text(doc, "properties.vmId"), User: behaviour.Text(doc, "properties.osProfile.adminUsername")}
	image := behaviour.Sub(doc, "properties.storageProfile.imageReference")
	b.Image = ImageReference{ID: behaviour.Text(image, "id"), Publisher: behaviour.Text(image, "publisher"),
		Offer: behaviour.Text(image, "offer"), SKU: behaviour.Text(image, "sku")}
	nic, _ := w.Get(primary)
	for _, c := range behaviour.Objects(nic, "properties.ipConfigurations") {
		b.Network = behaviour.RefID(c, "properties.subnet").Parent()
	}
	return b
}

// Name returns the name of the Node of a machine: its computer name in lower case, "" without one.
func Name(doc behaviour.Object) string {
	return strings.ToLower(behaviour.Text(doc, "properties.osProfile.computerName"))
}

// interfaces returns the network interfaces of a machine, the primary one first.
func interfaces(w behaviour.World, doc behaviour.Object) []azure.ID {
	var primary, others []azure.ID
	for _, ref := range behaviour.Objects(doc, "properties.networkProfile.networkInterfaces") {
		id := azure.ID(behaviour.Text(ref, "id"))
		if nic, _ := w.Get(id); behaviour.Bool(nic, "properties.primary") {
			primary = append(primary, id)
		} else {
			others = append(others, id)
		}
	}
	return append(primary, others...)
}

// addresses returns the first private address of each family of a network interface, IPv4 first.
func addresses(w behaviour.World, id azure.ID) []netip.Addr {
	nic, _ := w.Get(id)
	var ipv4, ipv6 []netip.Addr
	for _, c := range behaviour.Objects(nic, "properties.ipConfigurations") {
		a, err := netip.ParseAddr(behaviour.Text(c, "properties.privateIPAddress"))
		switch {
		case err != nil:
		case a.Is4():
			ipv4 = append(ipv4, a)
		default:
			ipv6 = append(ipv6, a)
		}
	}
	return slices.Concat(ipv4[:min(1, len(ipv4))], ipv6[:min(1, len(ipv6))])
}

// Changes returns a channel that receives a value at once, and then after each change of a virtual machine, until ctx
// is done. Changes that the reader has not received yet are merged into one value.
func Changes(ctx context.Context, e *core.Emulator) <-chan struct{} {
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // for changes before the subscription begins
	go e.Changes(ctx, func(batch []core.Change) {
		if slices.ContainsFunc(batch, func(c core.Change) bool { return IsMachine(c.ID) }) {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	return changed
}
