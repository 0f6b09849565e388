package nodes

import (
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// The query types of what all instances of a scale set have, and of what one
// machine says of itself while it runs.
const (
	scaleSetInterfaces = compute.ScaleSets + "/networkInterfaces"
	scaleSetAddresses  = compute.ScaleSets + "/publicIPAddresses"
	instanceView       = "/instanceView"
)

// The lists that tell of machines. One list serves all machines of its scope.
func setsIn(group azure.ID) azure.Query { return azure.Query{Scope: group, Type: compute.ScaleSets} }

func instancesOf(set azure.ID) azure.Query {
	return azure.Query{Scope: set, Type: compute.ScaleSetInstances, Expand: "instanceView"}
}

func machinesIn(group azure.ID) azure.Query {
	return azure.Query{Scope: group, Type: compute.VirtualMachines}
}

// membersOf lists the machines of a Flexible scale set as they run, which the list
// of a group does not tell.
func membersOf(set azure.ID) azure.Query {
	return azure.Query{
		Scope: set.Parent(), Type: compute.VirtualMachines, Expand: "instanceView",
		Filter: "'virtualMachineScaleSet/id' eq '" + string(set) + "'",
	}
}

// ViewOf is the question how one machine runs. It is a read of what has no name:
// see [IsView].
func ViewOf(machine azure.ID) azure.Query {
	return azure.Query{Scope: machine, Type: machine.Type() + instanceView}
}

// IsView reports whether a query is answered by one document, that of
// q.Scope/instanceView, and not by a list.
func IsView(q azure.Query) bool { return strings.HasSuffix(q.Type, instanceView) }

// ListWith is the list that holds a machine, false for an id that is no machine's.
func ListWith(machine azure.ID) (azure.Query, bool) {
	switch {
	case isInstance(machine):
		return instancesOf(machine.Parent()), true
	case machine.Is(compute.VirtualMachines):
		return machinesIn(machine.Parent()), true
	}
	return azure.Query{}, false
}

// Listing is what one query was answered, ready to be looked up. It is never
// changed.
type Listing struct {
	sets       []azure.Resource[compute.ScaleSet]
	machines   map[string]azure.Resource[compute.Instance]  // by id key
	named      map[string][]azure.ID                        // machines by computer name, in lower case
	interfaces map[string]azure.Resource[network.Interface] // by id key
	addresses  map[string]string                            // of public IPs, by id key
	view       *compute.InstanceView
}

// Read reads the answer to a query; what does not exist has no documents. Machines
// that are being deleted are left out: nobody can have a node there any more.
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

// Has reports whether the listing holds a machine, and whether that is off for
// good as far as the listing tells; told is false where it tells nothing of that.
func (l *Listing) Has(machine azure.ID) (there, off, told bool) {
	vm, ok := l.machines[machine.Key()]
	if !ok {
		return false, false, true
	}
	p := vm.Properties
	return true, Shutdown(p.ProvisioningState, PowerState(p.InstanceView)), p.InstanceView != nil
}

// Runs is what [Listing.Has] says of the answer to [ViewOf].
func (l *Listing) Runs() (there, off bool) {
	if l.view == nil {
		return false, false
	}
	state := provisioning(l.view)
	return !strings.EqualFold(state, deleting), Shutdown(state, PowerState(l.view))
}
