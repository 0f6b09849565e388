package cloudprovider

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// reasonMachine is the reason of Events about nodes with unclear machines.
const reasonMachine = "MachineUnclear"

const (
	// arriving is how long a new node's machine may be missing or incomplete.
	arriving = time.Minute
	// mostNodes is the maximum number of remembered nodes.
	mostNodes = 1000
)

// machineEvents sends Events about the machines of nodes, each one once.
type machineEvents struct {
	mu     sync.Mutex
	events record.EventRecorder
	said   map[types.UID]string
}

func newMachineEvents() *machineEvents {
	return &machineEvents{events: &record.FakeRecorder{}, said: map[types.UID]string{}}
}

// to sets the recorder.
func (t *machineEvents) to(events record.EventRecorder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = events
}

// about sends an Event for an error about a node's machine. Errors of Azure or of the network cause
// no Event, because they are not about the node. Neither do errors of a new machine, which may be
// incomplete.
func (t *machineEvents) about(node *corev1.Node, err error) {
	if err != nil && (fromAzure(err) || time.Since(node.CreationTimestamp.Time) < arriving) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		delete(t.said, node.UID)
		return
	}
	if t.said[node.UID] == err.Error() {
		return
	}
	if len(t.said) >= mostNodes {
		clear(t.said)
	}
	t.said[node.UID] = err.Error()
	t.events.Event(node, corev1.EventTypeWarning, reasonMachine, err.Error())
}
