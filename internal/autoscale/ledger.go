package autoscale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/nodes"
)

// ledger is what is known of one node group. Its methods are events and questions; none of them locks or waits.
type ledger struct {
	status nodegroup.Status
	index  map[string]int // in the status' instances, by the key of the id
	// leaving are machines of which the deletion or deallocation was accepted, by the key of the id.
	leaving map[string]departure
	// queued counts the machines that cluster-autoscaler asked for and that no request to Azure has yet. They can be taken
	// back. The machines of the request that is being made count in sending.
	queued, sending int
	waived          int // see nodegroup.Account
	refused         []placeholder
	wasNode         map[string]bool // machines that are or were nodes, by the key of the id

	under   int          // operations that are under way
	version string       // of the scale set when the instances were read
	read    time.Time    // when the instances were read, zero: never
	tried   time.Time    // when a read began
	shrunk  bool         // the last list lacked so many machines that it waits for another one
	stale   bool         // something tells that the instances changed
	err     error        // of the last read, nil if it succeeded
	seen    *corev1.Node // the last node of the group
	// unforced says that Azure refused to delete machines by force.
	unforced bool
	serial   int // of placeholders
}

// departure is how a machine leaves.
type departure struct{ deallocate bool }

// placeholder stands for a machine that Azure did not make.
type placeholder struct {
	id      string
	failure nodegroup.Failure
	// counted says that the capacity of the scale set counts it.
	counted bool
}

func newLedger(spec nodegroup.Group) ledger {
	return ledger{
		status: nodegroup.NewStatus(spec), index: map[string]int{}, leaving: map[string]departure{}, wasNode: map[string]bool{},
		stale: true,
	}
}

// account returns what is known of the group's size.
func (l *ledger) account() nodegroup.Account {
	return nodegroup.Account{
		Capacity: l.status.Capacity, Instances: l.status.Instances, Queued: l.queued + l.sending, Waived: l.waived,
		Refused: uncounted(l.refused),
		Leaving: func(i nodegroup.Instance) bool { _, leaves := l.leaving[i.Key]; return leaves },
	}
}

// target returns the size that the group is to have.
func (l *ledger) target() int { return l.account().Target() }

// spec returns what the scale set says of the group.
func (l *ledger) spec() nodegroup.Group { return l.status.Group }

// circumstances returns what is known of a group beside what Azure shows, as of now.
func (l *ledger) circumstances(isNode func(azure.ID) bool) nodegroup.Circumstances {
	leaving, was := maps.Clone(l.leaving), maps.Clone(l.wasNode)
	return nodegroup.Circumstances{
		Leaving:    func(i nodegroup.Instance) bool { d, leaves := leaving[i.Key]; return leaves && !d.deallocate },
		Registered: func(id azure.ID) bool { return was[id.Key()] || isNode(id) },
		Busy:       l.under > 0,
	}
}

// uncounted returns how many of the placeholders the capacity does not count.
func uncounted(all []placeholder) int {
	n := 0
	for _, r := range all {
		if !r.counted {
			n++
		}
	}
	return n
}

// instance returns a machine of the last list.
func (l *ledger) instance(machine azure.ID) (nodegroup.Instance, bool) {
	at, listed := l.index[machine.Key()]
	if !listed {
		return nodegroup.Instance{}, false
	}
	return l.status.Instances[at], true
}

// register notes that a machine is a node.
func (l *ledger) register(machine azure.ID) {
	l.wasNode[machine.Key()] = true
	if _, listed := l.index[machine.Key()]; !listed {
		l.stale = true
	}
}

// observe takes a node of the group as the example of the next one.
func (l *ledger) observe(machine azure.ID, node *corev1.Node) {
	l.register(machine)
	if usable(node) {
		l.seen = node
	}
}

// usable reports whether a node shows what the next one will be like.
func usable(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && len(node.Status.Allocatable) > 0
		}
	}
	return false
}

// due reports whether the instances are to be read.
func (l *ledger) due(now time.Time, every time.Duration) bool {
	const (
		underWay = 30 * time.Second
		evicted  = 2 * time.Minute
	)
	age := now.Sub(l.tried)
	switch {
	case l.tried.IsZero(), l.shrunk:
		return true
	case l.read.IsZero():
		return age >= underWay
	case l.under > 0 || l.stale || l.version != l.status.Group.Version():
		return age >= underWay
	case l.status.Group.EvictedStay:
		return age >= evicted
	}
	return age >= every
}

// reading is what a read of the group's instances begins with.
type reading struct {
	spec nodegroup.Group
	// changed says that the scale set may have changed since it was listed. first says that no instances were read yet.
	changed, first bool
}

// begin notes that a read of the instances begins.
func (l *ledger) begin(now time.Time) reading {
	l.tried = now
	spec := l.status.Group
	return reading{
		spec:    spec,
		changed: l.under > 0 || l.stale || l.status.Etag == "" || l.version != spec.Version(),
		first:   l.read.IsZero() && l.under == 0,
	}
}

// adopt takes what a list shows of the group's scale set. It returns what contradicts the capacity in the list, "" if
// nothing does.
func (l *ledger) adopt(spec nodegroup.Group, isNode func(azure.ID) bool) (doubt string) {
	if l.under > 0 { // while a change is under way, its own answers and the reads after it count
		l.status.Group = spec
		return ""
	}
	l.status = l.status.Shown(spec, l.circumstances(isNode))
	l.stale = l.stale || l.status.Doubt != ""
	return l.status.Doubt
}

// taken is what take says of a list of instances.
type taken struct {
	missing int    // nodes that the list lacks, if they are too many to use it
	doubt   string // what contradicts the capacity, "" if nothing does
}

// take takes what Azure shows of a group. If a list lacks most nodes of the group, take does not use it. It uses the next list in
// any case.
func (l *ledger) take(spec nodegroup.Group, machines []azure.Resource[compute.ScaledInstance], isNode func(azure.ID) bool,
	now time.Time,
) taken {
	next := l.status.Listed(spec, machines, l.circumstances(isNode))
	index := make(map[string]int, len(next.Instances))
	for n, i := range next.Instances {
		index[i.Key] = n
	}
	lost, had := 0, 0
	for _, i := range l.status.Instances {
		if _, leaves := l.leaving[i.Key]; leaves || i.State != nodegroup.Running || i.Deallocated {
			continue
		}
		had++
		if _, listed := index[i.Key]; !listed && isNode(i.ID) {
			lost++
		}
	}
	if lost*2 > had && !l.shrunk {
		l.shrunk = true
		return taken{missing: lost}
	}
	l.status, l.index, l.version = next, index, spec.Version()
	l.read, l.shrunk, l.stale, l.err = now, false, next.Doubt != "", nil
	l.settle()
	return taken{doubt: next.Doubt}
}

// hasLeft reports whether the last list lacks a machine that leaves, or shows it as being deleted or as deallocated.
func (l *ledger) hasLeft(key string) bool {
	n, listed := l.index[key]
	return !listed || l.status.Instances[n].State == nodegroup.Deleting && !l.leaving[key].deallocate || l.status.Instances[n].Deallocated
}

// settle drops what the new list of instances has settled. While an operation is under way, a machine that the list shows as
// leaving can still come back: its operation may fail.
func (l *ledger) settle() {
	maps.DeleteFunc(l.leaving, func(key string, _ departure) bool {
		_, listed := l.index[key]
		return !listed || l.under == 0 && l.hasLeft(key)
	})
	maps.DeleteFunc(l.wasNode, func(key string, _ bool) bool { _, listed := l.index[key]; return !listed })
	missing := l.account().Missing()
	l.waived = min(l.waived, missing)
	counted := 0
	l.refused = slices.DeleteFunc(l.refused, func(r placeholder) bool {
		if r.counted {
			counted++
		}
		return r.counted && counted > missing-l.waived // Azure made it after all, or another client lowered the capacity
	})
}

// age returns how old what is known of a group is.
func (l *ledger) age(now time.Time) time.Duration {
	if l.read.IsZero() {
		return 0
	}
	return now.Sub(l.read)
}

// shown is an instance as cluster-autoscaler sees it.
type shown struct {
	nodegroup.Instance
	providerID, node string // node is "" if it is none
	placeholder      bool
}

// shown returns all instances of a group: machines, and placeholders of machines that do not come. An instance with a node has the
// very provider id of the node.
func (l *ledger) shown(seen map[string]seenNode) []shown {
	a := l.account()
	surplus := map[string]bool{}
	for _, i := range a.Surplus() {
		surplus[i.Key] = true
	}
	all := make([]shown, 0, len(l.status.Instances)+len(l.refused))
	for _, i := range l.status.Instances {
		node, known := seen[i.Key]
		if !known {
			var err error
			if node.providerID, err = nodes.ProviderID(i.ID); err != nil {
				continue // no id of a machine
			}
		}
		if a.Leaving(i) || surplus[i.Key] {
			i.State, i.Failure = nodegroup.Deleting, nil
		}
		all = append(all, shown{Instance: i, providerID: node.providerID, node: node.name})
	}
	for _, r := range l.refused {
		all = append(all, shown{
			Instance:   nodegroup.Instance{State: nodegroup.Creating, Failure: &r.failure},
			providerID: r.id, placeholder: true,
		})
	}
	return all
}

// isPlaceholder reports whether a provider id stands for a machine that Azure did not make.
func (l *ledger) isPlaceholder(id string) bool {
	return slices.ContainsFunc(l.refused, func(r placeholder) bool { return strings.EqualFold(r.id, id) })
}

// increase queues machines.
func (l *ledger) increase(n int) error {
	if err := l.status.Group.Grow(l.target(), n); err != nil {
		return err
	}
	l.queued += n
	return nil
}

// decrease takes n machines that do not exist off the size of a group. It takes queued machines first, then those that Azure
// refused, then those that the capacity counts. waived reports whether the capacity is to be lowered.
func (l *ledger) decrease(n int) (waived bool, err error) {
	a := l.account()
	missing := max(a.Missing()-a.Waived, 0)
	if n > l.queued+a.Refused+missing {
		return false, fmt.Errorf("attempt to delete existing nodes targetSize:%d delta:%d existingNodes: %d",
			a.Target(), -n, len(a.Active()))
	}
	take := min(n, l.queued)
	l.queued -= take
	n -= take
	l.refused = slices.DeleteFunc(l.refused, func(r placeholder) bool {
		if n == 0 || r.counted {
			return false
		}
		n--
		return true
	})
	l.waived += n
	return n > 0, nil
}

// delete marks the machines of nodes as leaving. It returns the machines that were not leaving yet, and whether it removed
// placeholders that the capacity counts.
func (l *ledger) delete(list []*externalgrpc.ExternalGrpcNode) (leave []azure.ID, waived bool, err error) {
	a := l.account()
	lost := 0
	for _, node := range list {
		machine, ok := nodes.MachineID(node.GetProviderID())
		i, listed := l.instance(machine)
		if !ok || !listed || i.State == nodegroup.Deleting || i.Deallocated || a.Leaving(i) {
			continue
		}
		leave = append(leave, machine)
		if _, fake := node.GetAnnotations()[fakeReason]; !fake || l.wasNode[machine.Key()] {
			lost++
		}
	}
	if lost > 0 {
		if err := l.status.Group.Shrink(a.Target()-len(l.refused), lost); err != nil {
			return nil, false, err
		}
	}
	before := l.waived
	for _, node := range list {
		l.takePlaceholder(node.GetProviderID())
	}
	off := l.switchedOff()
	for _, machine := range leave {
		keep := l.keeps(machine, off)
		if keep {
			off++
		}
		l.leaving[machine.Key()] = departure{deallocate: keep}
	}
	return leave, l.waived > before, nil
}

// takePlaceholder removes a placeholder, if there is one. A machine that the capacity counts is waived.
func (l *ledger) takePlaceholder(id string) {
	l.refused = slices.DeleteFunc(l.refused, func(r placeholder) bool {
		is := strings.EqualFold(r.id, id)
		if is && r.counted {
			l.waived++
		}
		return is
	})
}

// switchedOff returns how many machines of the group are deallocated or to be deallocated.
func (l *ledger) switchedOff() int {
	n := 0
	for _, i := range l.status.Instances {
		if i.Deallocated || l.leaving[i.Key].deallocate {
			n++
		}
	}
	return n
}

// keeps reports whether a machine that leaves is deallocated instead of deleted. off is the number of machines that are
// deallocated so far. A machine that never was a node, or that Azure would not start again, is deleted.
func (l *ledger) keeps(machine azure.ID, off int) bool {
	o := l.status.Group.Options
	return o.Deallocate && (!l.status.Group.Spot || l.status.Group.EvictedStay) && l.wasNode[machine.Key()] &&
		l.status.Instances[l.index[machine.Key()]].Failure == nil && (o.MaxDeallocated == 0 || off < o.MaxDeallocated)
}
