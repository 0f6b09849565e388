package nodes

import (
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// The query types of lists for all instances of a scale set, and of a machine's instance view.
const (
	scaleSetInterfaces = compute.ScaleSets + "/networkInterfaces"
	scaleSetAddresses  = compute.ScaleSets + "/publicIPAddresses"
	instanceView       = "/instanceView"
)

// setsIn, and the functions below, are lists of machines. One list serves all machines of its scope.
func setsIn(group azure.ID) azure.Query { return azure.Query{Scope: group, Type: compute.ScaleSets} }

func instancesOf(set azure.ID) azure.Query {
	return azure.Query{Scope: set, Type: compute.ScaleSetInstances, Expand: "instanceView"}
}

func machinesIn(group azure.ID) azure.Query {
	return azure.Query{Scope: group, Type: compute.VirtualMachines}
}

// membersOf lists the machines of a Flexible scale set with their instance view, which the list of a
// resource group lacks.
func membersOf(set azure.ID) azure.Query {
	return azure.Query{
		Scope: set.Parent(), Type: compute.VirtualMachines, Expand: "instanceView",
		Filter: "'virtualMachineScaleSet/id' eq '" + string(set) + "'",
	}
}

// ViewOf is the query for the instance view of a machine. It reads a single document: see [IsView].
func ViewOf(machine azure.ID) azure.Query {
	return azure.Query{Scope: machine, Type: machine.Type() + instanceView}
}

// IsView reports whether the answer to a query is the single document q.Scope/instanceView.
func IsView(q azure.Query) bool { return strings.HasSuffix(q.Type, instanceView) }

// ListWith returns the list that contains a machine, and false if the id is not a machine's.
func ListWith(machine azure.ID) (azure.Query, bool) {
	switch {
	case isInstance(machine):
		return instancesOf(machine.Parent()), true
	case machine.Is(compute.VirtualMachines):
		return machinesIn(machine.Parent()), true
	}
	return azure.Query{}, false
}

// Listing is the indexed answer to a query. It is immutable.
type Listing struct {
	sets       []azure.Resource[compute.ScaleSet]
	machines   map[string]azure.Resource[compute.Instance]  // by id key
	named      map[string][]azure.ID                        // ids by computer name in lower case
	interfaces map[string]azure.Resource[network.Interface] // by id key
	addresses  map[string]string                            // of public IPs, by id key
	view       *compute.InstanceView
}

// Read indexes the answer to a query. A resource that does not exist has no documents. Machines that
// are being deleted are left out.
func Read(q azure.Query, docs []azure.Document) (*Listing, error) {
	l := &Listing{}
	var err error
	switch {
	case IsView(q):
		for _, d := range docs {
			l.view = &compute.InstanceView{}
			err = json.Unmarshal(d, l.view)
		}
	case strings.EqualFold(q.Type, compute.ScaleSets):
		for _, d := range docs {
			err = add(d, err, func(set azure.Resource[compute.ScaleSet]) { l.sets = append(l.sets, set) })
		}
	case strings.EqualFold(q.Type, compute.ScaleSetInstances), strings.EqualFold(q.Type, compute.VirtualMachines):
		l.machines, l.named = make(map[string]azure.Resource[compute.Instance], len(docs)), make(map[string][]azure.ID, len(docs))
		for _, d := range docs {
			err = add(d, err, l.addMachine)
		}
	case strings.EqualFold(q.Type, scaleSetInterfaces), strings.EqualFold(q.Type, network.Interfaces):
		l.interfaces = make(map[string]azure.Resource[network.Interface], len(docs))
		for _, d := range docs {
			err = add(d, err, func(nic azure.Resource[network.Interface]) { l.interfaces[nic.ID.Key()] = nic })
		}
	default:
		l.addresses = make(map[string]string, len(docs))
		for _, d := range docs {
			err = add(d, err, func(ip azure.Resource[network.PublicIPAddress]) { l.addresses[ip.ID.Key()] = ip.Properties.IPAddress })
		}
	}
	if err != nil {
		return nil, fmt.Errorf("answer to %s in %s: %w", q.Type, q.Scope, err)
	}
	return l, nil
}

func add[P any](d azure.Document, before error, to func(azure.Resource[P])) error {
	if before != nil {
		return before
	}
	r, err := azure.Decode[P](d)
	if err == nil {
		to(r)
	}
	return err
}

func (l *Listing) addMachine(vm azure.Resource[compute.Instance]) {
	if strings.EqualFold(vm.Properties.ProvisioningState, deleting) {
		return
	}
	l.machines[vm.ID.Key()] = vm
	if name := NodeName(vm); name != "" {
		l.named[name] = append(l.named[name], vm.ID)
	}
}

// Has reports whether the listing contains a machine and whether the machine is off permanently. The result known is
// false if the listing does not have that information.
func (l *Listing) Has(machine azure.ID) (there, off, known bool) {
	vm, ok := l.machines[machine.Key()]
	if !ok {
		return false, false, true
	}
	p := vm.Properties
	return true, Shutdown(p.ProvisioningState, PowerState(p.InstanceView)), p.InstanceView != nil
}

// Runs is like [Listing.Has] for the answer to [ViewOf].
func (l *Listing) Runs() (there, off bool) {
	if l.view == nil {
		return false, false
	}
	state := provisioning(l.view)
	return !strings.EqualFold(state, deleting), Shutdown(state, PowerState(l.view))
}
