package disk

import (
	"context"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/disk"
	"kaz/internal/reconcile"
)

// attacher attaches and detaches disks. Changes of one machine that arrive while a request is under way share the next
// request. Different machines do not wait for each other.
type attacher struct {
	azure Azure
	limit func(ctx context.Context, size string) int
	// told returns the LUNs of disks at a machine that Kubernetes has told its kubelet.
	told    func(ctx context.Context, machine azure.ID) map[int]azure.ID
	batches *reconcile.Coalescer[disk.Change, int]
}

// The changes of a machine often come together: the pods of a node, or one that goes and one that comes. The first change
// waits until no other came for the time calm, so that all share one request.
const (
	calm         = 5 * time.Millisecond
	gatherAtMost = 100 * time.Millisecond
)

func newAttacher(c Config) *attacher {
	t := &attacher{azure: c.Azure, limit: c.Limit, told: func(ctx context.Context, machine azure.ID) map[int]azure.ID {
		if node := c.Nodes.Node(ctx, machine); c.Uses != nil && node != "" {
			return c.Uses.LUNs(ctx, node)
		}
		return nil
	}}
	t.batches = reconcile.NewCoalescer(t.commit)
	t.batches.Observe(c.Batches)
	t.batches.Gather(calm, gatherAtMost)
	return t
}

func (t *attacher) close() { t.batches.Close() }

// change makes one change of a machine and returns the LUN of an attached disk.
func (t *attacher) change(ctx context.Context, machine azure.ID, c disk.Change) (int, error) {
	return t.batches.Submit(ctx, string(machine), c)
}

// commitAttempts is how often a batch is decided anew when the machine changes between the decision and the request.
const commitAttempts = 3

// commit makes all changes of a batch at a machine with one request.
func (t *attacher) commit(ctx context.Context, key string, changes []disk.Change) (luns []int, err error) {
	for range commitAttempts {
		if luns, err = t.try(ctx, azure.ID(key), changes); azure.KindOf(err) != azure.Changed {
			break
		}
	}
	return luns, err
}

func (t *attacher) try(ctx context.Context, machine azure.ID, changes []disk.Change) ([]int, error) {
	have, err := read[compute.MachineDisks](ctx, t.azure, machine)
	if err != nil {
		return nil, refuseAll(len(changes), err) // no change alone is the culprit
	}
	request, errs := disk.Batch(have, changes, t.limit(ctx, sizeOf(have)), t.told(ctx, machine))
	if refused := refusals(errs); len(refused.Culprits) > 0 {
		return nil, refused
	}
	now := have.Properties.StorageProfile
	if len(request.Attach)+len(request.Detach) > 0 {
		if now, err = t.send(ctx, machine, request); err != nil {
			return nil, err
		}
	}
	return t.check(machine, now, changes)
}

// force detaches a disk without the consent of the machine's operating system. It does not wait for other changes of the
// machine, because the normal detachment before it may never end.
func (t *attacher) force(ctx context.Context, machine, id azure.ID) error {
	have, err := read[compute.MachineDisks](ctx, t.azure, machine)
	if err != nil {
		return err
	}
	change := disk.Change{Disk: id, Force: true}
	request, _ := disk.Batch(have, []disk.Change{change}, 0, nil)
	if len(request.Detach) == 0 {
		return nil
	}
	now, err := t.send(ctx, machine, request)
	if err != nil {
		return err
	}
	_, err = t.check(machine, now, []disk.Change{change})
	return err
}

// send sends a request and returns the machine's disks after it.
func (t *attacher) send(ctx context.Context, machine azure.ID, request compute.AttachDetach) (compute.DataDisks, error) {
	body, _, err := azure.Overlay(nil, request)
	if err != nil {
		return compute.DataDisks{}, err
	}
	answer, err := azure.Do(ctx, t.azure, azure.Request{Verb: azure.Post, ID: machine, Action: "attachDetachDataDisks", Body: body})
	if err != nil {
		return compute.DataDisks{}, err
	}
	return disk.ReadAnswer(answer)
}

// check returns the LUNs of attached disks. The changes that Azure did not apply are refused.
func (t *attacher) check(machine azure.ID, now compute.DataDisks, changes []disk.Change) ([]int, error) {
	luns := make([]int, len(changes))
	errs := make([]error, len(changes))
	for i, c := range changes {
		if err := c.Check(machine, now); err != nil {
			errs[i] = &azure.Error{Kind: azure.Changed, Op: "attachDetachDataDisks", ID: machine, Message: err.Error()}
		} else if d, ok := disk.Find(now, c.Disk); ok {
			luns[i] = d.LUN
		}
	}
	if refused := refusals(errs); len(refused.Culprits) > 0 {
		return nil, refused
	}
	return luns, nil
}

func refusals(errs []error) *reconcile.Refusal {
	refused := &reconcile.Refusal{Culprits: map[int]error{}}
	for i, err := range errs {
		if err != nil {
			refused.Culprits[i] = err
		}
	}
	return refused
}

func refuseAll(n int, err error) *reconcile.Refusal {
	refused := &reconcile.Refusal{Culprits: map[int]error{}}
	for i := range n {
		refused.Culprits[i] = err
	}
	return refused
}

// sizeOf returns the size of a machine. An instance of a Uniform scale set has it as its SKU.
func sizeOf(machine azure.Resource[compute.MachineDisks]) string {
	if h := machine.Properties.HardwareProfile; h != nil && h.VMSize != "" {
		return h.VMSize
	}
	if machine.SKU != nil {
		return machine.SKU.Name
	}
	return ""
}
