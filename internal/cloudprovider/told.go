package cloudprovider

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

// reasonMachine is the reason of Events on nodes whose machine is not as it must be.
const reasonMachine = "MachineUnclear"

const (
	// arriving is for how long a node may be there before its machine is seen, whole.
	arriving = time.Minute
	// toldAtMost bounds the nodes whose trouble is remembered.
	toldAtMost = 1000
)

// told tells users what is wrong with the machines of their nodes, each thing once.
type told struct {
	mu     sync.Mutex
	events record.EventRecorder
	said   map[types.UID]string
}

func newTold() *told {
	return &told{events: &record.FakeRecorder{}, said: map[types.UID]string{}}
}

// to has Events go to a recorder.
func (t *told) to(events record.EventRecorder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = events
}

// about tells what came of a question about a node's machine. Trouble of Azure's or
// of the way to it is no Event, the node cannot help it; and a machine that is just
// arriving need not have all that it will have.
func (t *told) about(node *corev1.Node, err error) {
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
	if len(t.said) >= toldAtMost {
		clear(t.said)
	}
	t.said[node.UID] = err.Error()
	t.events.Event(node, corev1.EventTypeWarning, reasonMachine, err.Error())
}
