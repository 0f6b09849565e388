package disk

import (
	"context"
	"reflect"
	"slices"
	"time"

	"k8s.io/utils/lru"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/pause"
	"kaz/internal/plan/disk"
	"kaz/internal/reconcile"
)

// attacher attaches and detaches disks. Changes of one machine that arrive while a request is under way share the next
// request. Different machines do not wait for each other.
type attacher struct {
	azure Azure
	limit func(ctx context.Context, size string) int
	// published returns the disks at a machine by the LUNs that its kubelet knows from Kubernetes, nil if they are not known.
	published func(ctx context.Context, machine azure.ID) map[int]azure.ID
	batches   *reconcile.Coalescer[disk.Change, int]
	last      *lru.Cache // of machineDisks: machines as Azure's last answers show them, by key of their ids
}

type machineDisks = azure.Resource[compute.MachineDisks]

// machinesKnown bounds how many machines an attacher remembers. Each takes about a kilobyte.
const machinesKnown = 5000

// The changes of a machine often come together: for all pods of a node, or for a pod that goes and a pod that comes. The
// first change waits until no other change has come for the time calm, at most gatherAtMost. All of them share one request. A
// change that comes later waits for the whole operation of the request, some 10 s.
const (
	calm         = 40 * time.Millisecond
	gatherAtMost = 150 * time.Millisecond
)

func newAttacher(c Config) *attacher {
	t := &attacher{azure: c.Azure, limit: c.Limit, last: lru.New(machinesKnown)}
	t.published = func(ctx context.Context, machine azure.ID) map[int]azure.ID {
		if node := c.Nodes.Node(ctx, machine); c.Uses != nil && node != "" {
			return c.Uses.LUNs(ctx, node)
		}
		return nil
	}
	t.batches = reconcile.NewCoalescer(t.commit)
	t.batches.Gather(calm, gatherAtMost)
	t.batches.Observe(c.Batches)
	return t
}

func (t *attacher) close() { t.batches.Close() }

// change makes one change of a machine and returns the LUN of an attached disk.
func (t *attacher) change(ctx context.Context, machine azure.ID, c disk.Change) (int, error) {
	return t.batches.Submit(ctx, string(machine), c)
}

// commitAttempts is how often a batch is decided anew when the machine changes between the decision and the request.
const commitAttempts = 3

// The first and the last wait before a request is sent again. Azure refuses a request while another write of the machine, or
// of its scale set, is under way. After the last wait the caller gets Azure's answer.
const firstBusyWait, lastBusyWait = time.Second, 4 * time.Second

// commit makes all changes of a batch at a machine with one request.
func (t *attacher) commit(ctx context.Context, key string, changes []disk.Change) ([]int, error) {
	for wait := firstBusyWait; ; wait *= 2 {
		luns, err := t.decide(ctx, azure.ID(key), changes)
		if azure.KindOf(err) != azure.Busy || wait > lastBusyWait {
			return luns, err
		}
		if pause.For(ctx, wait) != nil {
			return nil, err
		}
	}
}

// decide builds one request for all changes of a batch and sends it. It starts again if the machine changed meanwhile.
func (t *attacher) decide(ctx context.Context, machine azure.ID, changes []disk.Change) (luns []int, err error) {
	sent, luns, err := t.fromMemory(ctx, machine, changes)
	if !isRefused(err) {
		return luns, err
	}
	for range commitAttempts {
		have, failed := read[compute.MachineDisks](ctx, azure.At(t.azure, urgency(changes)), machine)
		if failed != nil {
			return nil, refuseAll(len(changes), failed) // no change alone is the culprit
		}
		request, errs := t.batch(ctx, have, changes)
		if refused := refusals(errs); len(refused.Culprits) > 0 {
			return nil, refused
		}
		if sent != nil && reflect.DeepEqual(request, *sent) {
			return nil, err // what Azure refused was right
		}
		sent = nil
		if luns, err = t.try(ctx, have, request, changes); azure.KindOf(err) != azure.Changed {
			break
		}
	}
	return luns, err
}

// urgency is the priority of changes of one machine: that of the most urgent.
func urgency(changes []disk.Change) azure.Priority {
	if slices.ContainsFunc(changes, func(c disk.Change) bool { return !c.Attach }) {
		return azure.Detach
	}
	return azure.Attach
}

// errUnknown is the error of changes that need a read of their machine.
var errUnknown = &azure.Error{Kind: azure.Changed, Message: "the machine is not known"}

// fromMemory makes the changes from Azure's last answer for the machine, without a read of the machine, which takes a
// second. It returns the request that it sent, nil for none. Its error is errUnknown if a change needs no request or cannot
// be made: only a read of the machine can decide that. If another program has changed the machine since the answer, Azure
// refuses a LUN that is taken.
func (t *attacher) fromMemory(ctx context.Context, machine azure.ID, changes []disk.Change) (
	sent *compute.AttachDetach, luns []int, err error,
) {
	have, ok := t.remembered(ctx, machine)
	if !ok {
		return nil, nil, errUnknown
	}
	request, errs := t.batch(ctx, have, changes)
	if len(refusals(errs).Culprits) > 0 || len(request.Attach)+len(request.Detach) < len(changes) {
		return nil, nil, errUnknown
	}
	luns, err = t.try(ctx, have, request, changes)
	return &request, luns, err
}

// remembered returns a machine as Azure's last answer shows it. A machine without an answer yet is taken to have the disks
// that Kubernetes knows there. If it has other disks, Azure refuses a LUN that is taken, and too many disks.
func (t *attacher) remembered(ctx context.Context, machine azure.ID) (have machineDisks, ok bool) {
	if last, ok := t.last.Get(machine.Key()); ok {
		return last.(machineDisks), true
	}
	published := t.published(ctx, machine)
	have.ID = machine
	have.Properties.StorageProfile = disk.Expected(published)
	return have, published != nil
}

// isRefused reports whether a machine must be read because Azure refused a request as it is, or changed something else.
func isRefused(err error) bool {
	switch azure.KindOf(err) {
	case azure.Changed, azure.Invalid, azure.InUse, azure.NotFound, azure.Exists, azure.Quota:
		return err != nil
	}
	return false
}

func (t *attacher) batch(ctx context.Context, have machineDisks, changes []disk.Change) (compute.AttachDetach, []error) {
	return disk.Batch(have, changes, t.limit(ctx, sizeOf(have)), t.published(ctx, have.ID))
}

// try sends the request for the changes of a machine and returns the LUNs of attached disks. If no change needs a request,
// try repeats the attachments of the machine if its last operation failed.
func (t *attacher) try(ctx context.Context, have machineDisks, request compute.AttachDetach, changes []disk.Change) ([]int, error) {
	again := false
	if len(request.Attach)+len(request.Detach) == 0 {
		request, again = disk.Again(have, changes)
	}
	if len(request.Attach)+len(request.Detach) > 0 {
		now, err := t.send(ctx, have.ID, request)
		switch {
		case err == nil:
			have.Properties.StorageProfile, have.Properties.ProvisioningState = now, "Succeeded"
		case !again || !isRefused(err):
			t.last.Remove(have.ID.Key())
			return nil, err
		}
	}
	t.last.Add(have.ID.Key(), have)
	return t.check(have.ID, have.Properties.StorageProfile, changes)
}

// force detaches a disk without the consent of the machine's operating system. It does not wait for other changes of the
// machine, because the normal detachment before it may never end.
func (t *attacher) force(ctx context.Context, machine, id azure.ID) error {
	t.last.Remove(machine.Key())
	have, err := read[compute.MachineDisks](ctx, azure.At(t.azure, azure.Detach), machine)
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
	priority := azure.Attach
	if len(request.Detach) > 0 {
		priority = azure.Detach
	}
	answer, err := azure.Do(ctx, t.azure, azure.Request{
		Verb: azure.Post, ID: machine, Action: "attachDetachDataDisks", Body: body, Priority: priority,
	})
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
func sizeOf(machine machineDisks) string {
	if h := machine.Properties.HardwareProfile; h != nil && h.VMSize != "" {
		return h.VMSize
	}
	if machine.SKU != nil {
		return machine.SKU.Name
	}
	return ""
}
