package local

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute"
	"kaz/internal/emulator/catalog"
)

// machineTypes are the resources that are a virtual machine: instances of uniform
// scale sets, and all others.
func machineTypes() []string {
	return []string{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "Microsoft.Compute/virtualMachines"}
}

// machines are all virtual machines that there are. They are read from the
// emulator itself: this is the hardware's view, not a client's.
func (a *Azure) machines(ctx context.Context) ([]machine, error) {
	var all []machine
	a.emulator.Look(func(w behaviour.World) {
		for _, kind := range machineTypes() {
			for id, doc := range behaviour.Everywhere(w, kind) {
				if m, ok := machineOf(w, id, doc); ok {
					all = append(all, m)
				}
			}
		}
	})
	return all, ctx.Err()
}

func machineOf(w behaviour.World, id azure.ID, doc behaviour.Object) (machine, bool) {
	name := strings.ToLower(behaviour.Text(doc, "properties.osProfile.computerName"))
	if name == "" {
		return machine{}, false
	}
	set, _ := w.Get(id.Parent())
	size, _ := catalog.FindSize(cmp.Or(behaviour.Text(doc, "sku.name"), behaviour.Text(doc, "properties.hardwareProfile.vmSize"), behaviour.Text(set, "sku.name")))
	m := machine{
		ID:      id,
		Name:    name,
		Running: compute.PowerOf(doc) == compute.Running,
		Since:   compute.PowerSince(doc),
		Abrupt:  compute.Abrupt(doc),
		VCPUs:   size.VCPUs,
		Memory:  int64(math.Round(size.MemoryGiB * (1 << 30))),
	}
	m.NICs, m.Addresses = interfacesOf(w, doc)
	return m, true
}

// interfacesOf are the network interfaces of a machine, the primary one first, and
// that one's private addresses: the primary one of each family, IPv4 first.
func interfacesOf(w behaviour.World, doc behaviour.Object) (nics []azure.ID, addresses []netip.Addr) {
	for _, ref := range behaviour.Objects(doc, "properties.networkProfile.networkInterfaces") {
		nics = append(nics, azure.ID(behaviour.Text(ref, "id")))
	}
	isPrimary := func(id azure.ID) bool {
		nic, _ := w.Get(id)
		return behaviour.Bool(nic, "properties.primary")
	}
	slices.SortStableFunc(nics, func(a, b azure.ID) int { return -compareBool(isPrimary(a), isPrimary(b)) })
	if len(nics) == 0 {
		return nil, nil
	}
	nic, _ := w.Get(nics[0])
	for _, c := range behaviour.Objects(nic, "properties.ipConfigurations") {
		a, err := netip.ParseAddr(behaviour.Text(c, "properties.privateIPAddress"))
		if err == nil && !slices.ContainsFunc(addresses, func(b netip.Addr) bool { return a.Is4() == b.Is4() }) {
			addresses = append(addresses, a)
		}
	}
	slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return -compareBool(a.Is4(), b.Is4()) })
	return nics, addresses
}

// compareBool puts false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// metadataOf answers as 169.254.169.254 does to a machine, which is known by the
// network interface that it asks from.
func (a *Azure) metadataOf(nic azure.ID) http.Handler {
	owner := nic.Parent()
	if !slices.ContainsFunc(machineTypes(), owner.Is) {
		a.emulator.Look(func(w behaviour.World) {
			doc, _ := w.Get(nic)
			owner = behaviour.RefID(doc, "properties.virtualMachine")
		})
	}
	if owner == "" {
		return http.NotFoundHandler()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path, r.URL.RawPath = "/vm"+string(owner)+r.URL.Path, ""
		a.managed.ServeHTTP(w, r)
	})
}

// machineChanges wakes its reader at once and then when something happened to
// machines, until ctx is done.
func (a *Azure) machineChanges(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{}, 1)
	poke(changed) // for what happens before the watch begins
	go a.emulator.Changes(ctx, func(batch []emulator.Change) {
		for _, c := range batch {
			if slices.ContainsFunc(machineTypes(), c.ID.Is) {
				poke(changed)
				return
			}
		}
	})
	return changed
}
