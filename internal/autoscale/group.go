package autoscale

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// group is what is known of one node group.
type group struct {
	set  azure.ID
	name string
	// reading is held while the instances are read, so that an older answer does not replace a newer one.
	reading chan struct{}

	mu     sync.Mutex // guards what follows; not held while waiting
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

func newGroup(spec nodegroup.Group) *group {
	return &group{
		set: spec.Set, name: spec.Name, reading: make(chan struct{}, 1), status: nodegroup.NewStatus(spec),
		index: map[string]int{}, leaving: map[string]departure{}, wasNode: map[string]bool{}, stale: true,
	}
}

// account returns what is known of the group's size. The caller holds the lock.
func (g *group) account() nodegroup.Account {
	return nodegroup.Account{
		Capacity: g.status.Capacity, Instances: g.status.Instances, Queued: g.queued + g.sending, Waived: g.waived, Refused: g.uncounted(),
		Leaving: func(i nodegroup.Instance) bool { _, leaves := g.leaving[i.Key]; return leaves },
	}
}

// circumstances returns what is known of a group beside what Azure shows, as of now. The caller holds the lock.
func (g *group) circumstances(isNode func(azure.ID) bool) nodegroup.Circumstances {
	leaving, was := maps.Clone(g.leaving), maps.Clone(g.wasNode)
	return nodegroup.Circumstances{
		Leaving:    func(i nodegroup.Instance) bool { d, leaves := leaving[i.Key]; return leaves && !d.deallocate },
		Registered: func(id azure.ID) bool { return was[id.Key()] || isNode(id) },
		Busy:       g.under > 0,
	}
}

// uncounted returns how many placeholders the capacity does not count.
func (g *group) uncounted() int {
	n := 0
	for _, r := range g.refused {
		if !r.counted {
			n++
		}
	}
	return n
}

// lists reports whether a machine was in the last list.
func (g *group) lists(machine azure.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, listed := g.index[machine.Key()]
	return listed
}

// observe takes a node of the group as the example of the next one.
func (g *group) observe(machine azure.ID, node *corev1.Node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wasNode[machine.Key()] = true
	if _, listed := g.index[machine.Key()]; !listed {
		g.stale = true
	}
	if usable(node) {
		g.seen = node
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

// register notes that a machine is a node.
func (g *group) register(machine azure.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wasNode[machine.Key()] = true
	if _, listed := g.index[machine.Key()]; !listed {
		g.stale = true
	}
}

// doubt has the instances read again.
func (g *group) doubt() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stale = true
}

// refuse adds placeholders for n machines. The caller holds the lock.
func (g *group) refuse(n int, f nodegroup.Failure, counted bool) {
	for range n {
		g.serial++
		id := fmt.Sprintf("azure://%s/virtualMachines/placeholder-%d-%d", g.set, time.Now().UnixNano(), g.serial)
		g.refused = append(g.refused, placeholder{id: id, failure: f, counted: counted})
	}
}

// takePlaceholder removes a placeholder, and reports whether there was one. The caller holds the lock.
func (g *group) takePlaceholder(id string) bool {
	for i, r := range g.refused {
		if !strings.EqualFold(r.id, id) {
			continue
		}
		g.refused = append(g.refused[:i:i], g.refused[i+1:]...)
		if r.counted {
			g.waived++
		}
		return true
	}
	return false
}

// due reports whether the instances are to be read.
func (g *group) due(now time.Time, every time.Duration) bool {
	const (
		underWay = 30 * time.Second
		evicted  = 2 * time.Minute
	)
	g.mu.Lock()
	defer g.mu.Unlock()
	age := now.Sub(g.tried)
	switch {
	case g.tried.IsZero(), g.shrunk:
		return true
	case g.read.IsZero():
		return age >= underWay
	case g.under > 0 || g.stale || g.version != g.status.Group.Version():
		return age >= underWay
	case g.status.Group.EvictedStay:
		return age >= evicted
	}
	return age >= every
}
