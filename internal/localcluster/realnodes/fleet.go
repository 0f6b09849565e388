package realnodes

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/host/process"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/plane/fabric"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
	vm "kaz/internal/localcluster/machine"
)

// shutdownGrace is the time that the programs of a machine get to end.
const shutdownGrace = 10 * time.Second

// fleet keeps the machines of a cluster as Azure describes them. It boots running machines, powers off stopped machines,
// and removes the disks of deleted machines.
type fleet struct {
	config  Config
	network *fabric.Fabric
	// describe writes the files of a machine and returns the arguments with which kaz runs it.
	describe func(m inventory.Machine, at vm.Place, resolver netip.Addr) (args []string, err error)

	mu      sync.Mutex
	runners map[string]*runner // by name of the machine
	tasks   sync.WaitGroup
}

// update passes the machines of Azure to their runners. It does not wait for them.
func (f *fleet) update(ctx context.Context, machines []inventory.Machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	exists := map[string]bool{}
	for _, m := range machines {
		if exists[m.Name] {
			f.config.Log.Error("two machines have one computer name, but a node needs its own", "name", m.Name, "machine", string(m.ID))
			continue
		}
		exists[m.Name] = true
		r := f.runners[m.Name]
		if r == nil {
			r = &runner{fleet: f, name: m.Name, desired: make(chan desired, 1)}
			f.runners[m.Name] = r
			f.tasks.Go(func() { r.run(ctx) })
		}
		r.update(desired{machine: m})
	}
	for name, r := range f.runners {
		if !exists[name] {
			r.update(desired{deleted: true})
			delete(f.runners, name)
		}
	}
}

// wait returns when every machine is off, after the context of [fleet.update] has ended.
func (f *fleet) wait() { f.tasks.Wait() }

// desired is the desired state of a machine.
type desired struct {
	machine inventory.Machine
	deleted bool
}

// runner brings one machine to its desired state, one step at a time.
type runner struct {
	fleet   *fleet
	name    string
	desired chan desired // the newest state that run has not received

	process  *process.Process
	since    string // the boot that process belongs to
	attached []azure.ID
}

// update replaces an older state that run has not received.
func (r *runner) update(d desired) {
	select {
	case <-r.desired:
	default:
	}
	r.desired <- d
}

const (
	// retryDelay is the time until a failed step is tried again.
	retryDelay = 2 * time.Second
	// crashDelay is the time until a crashed machine boots again: long enough for the probes of load balancers to fail, as
	// in Azure.
	crashDelay = 15 * time.Second
)

// run brings the machine to its desired state until the machine is deleted or ctx is done. Then the machine is off.
func (r *runner) run(ctx context.Context) {
	var want desired
	var retry <-chan time.Time
	for {
		var ended <-chan struct{}
		if r.process != nil {
			ended = r.process.Done()
		}
		select {
		case <-ctx.Done():
			// The machine must be off before the program ends.
			r.report("power off", r.powerOff(context.WithoutCancel(ctx), shutdownGrace))
			return
		case want = <-r.desired:
		case <-ended:
			r.fleet.config.Log.Warn("machine ended", "machine", r.name, "error", r.process.Err())
			// Without this the kernel would forward packets to the ended machine.
			r.report("clean up after the machine", r.powerOff(ctx, 0))
			retry = time.After(crashDelay)
			continue
		case <-retry:
		}
		retry = nil
		if err := r.step(ctx, want); err != nil && ctx.Err() == nil {
			r.report("reach the state in Azure", err)
			retry = time.After(retryDelay)
		}
		if want.deleted {
			return
		}
	}
}

func (r *runner) report(action string, err error) {
	if err != nil {
		r.fleet.config.Log.Error("machine differs from its state in Azure", "machine", r.name, "action", action, "error", err)
	}
}

func (r *runner) step(ctx context.Context, d desired) error {
	if d.deleted {
		return errors.Join(r.shutDown(ctx), os.RemoveAll(r.disk()))
	}
	if r.process != nil && (!d.machine.Running || d.machine.Since != r.since) {
		end := r.shutDown
		if d.machine.Abrupt {
			end = func(ctx context.Context) error { return r.powerOff(ctx, 0) }
		}
		if err := end(ctx); err != nil {
			return err
		}
	}
	if r.process == nil && d.machine.Running {
		return r.boot(ctx, d.machine)
	}
	return nil
}

func (r *runner) namespace() string { return wiring.Prefix(r.fleet.config.Instance) + "-vm-" + r.name }

func (r *runner) cgroup() string { return wiring.Prefix(r.fleet.config.Instance) + "/" + r.name }

func (r *runner) disk() string { return filepath.Join(DisksDir(r.fleet.config.Dir), r.name) }

// boot connects the machine to its network and starts it. A failed boot is undone for the next attempt.
func (r *runner) boot(ctx context.Context, m inventory.Machine) error {
	err := r.start(ctx, m)
	if err != nil {
		err = errors.Join(err, r.powerOff(context.WithoutCancel(ctx), 0))
	}
	return err
}

func (r *runner) start(ctx context.Context, m inventory.Machine) error {
	began := time.Now()
	if err := netns.Create(r.namespace()); err != nil {
		return err
	}
	path := netns.Path(r.namespace())
	primary, err := r.attach(ctx, m.NICs, path)
	if err != nil {
		return err
	}
	args, err := r.fleet.describe(m, vm.Place{Name: m.Name, Dir: r.disk(), Namespace: path, Cgroup: r.cgroup()}, primary.Resolver)
	if err != nil {
		return err
	}
	r.process, err = r.fleet.config.Processes.Start(process.Spec{
		Name: processPrefix + strings.ReplaceAll(m.Name, "_", "-"), Path: r.fleet.config.Program, Args: args,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + r.disk()},
	})
	if err != nil {
		return err
	}
	r.since = m.Since
	r.fleet.config.Log.Info("machine is booting", "machine", m.Name, "addresses", fmt.Sprint(m.Addresses), "took", time.Since(began))
	return nil
}

// attach connects network interfaces to a namespace, and returns the port of the first one.
func (r *runner) attach(ctx context.Context, nics []azure.ID, namespace string) (primary fabric.Port, err error) {
	for i, nic := range nics {
		port, err := r.fleet.network.Attach(ctx, nic, fabric.Machine{Namespace: namespace, Device: fmt.Sprintf("eth%d", i), Index: i})
		if err != nil {
			return primary, err
		}
		r.attached = append(r.attached, nic)
		if i == 0 {
			primary = port
		}
	}
	return primary, nil
}

// processPrefix begins the names of the processes of machines.
const processPrefix = "machine-"

// IsMachine reports whether a process name belongs to a machine. The end of a machine does not stop the cluster, as in
// Azure.
func IsMachine(process string) bool { return strings.HasPrefix(process, processPrefix) }

// shutDown lets the machine leave its load balancers and end its pods, as Azure does when it stops or deletes a machine. It
// returns when the machine is off. If ctx ends, the machine is powered off.
func (r *runner) shutDown(ctx context.Context) error {
	if r.process == nil {
		return r.powerOff(ctx, 0)
	}
	if err := vm.ShutDown(r.disk()); err != nil {
		r.report("shut down", err)
		return r.powerOff(ctx, shutdownGrace)
	}
	select {
	case <-r.process.Done():
	case <-time.After(vm.ShutdownTime):
	case <-ctx.Done():
	}
	return r.powerOff(context.WithoutCancel(ctx), shutdownGrace)
}

// powerOff ends the machine's programs within grace, and removes its network.
func (r *runner) powerOff(ctx context.Context, grace time.Duration) error {
	var problems []error
	if r.process != nil {
		r.process.Stop(ctx, grace)
		r.process = nil
		// A killed machine has not removed its cgroups.
		problems = append(problems, vm.RemoveCgroups(r.cgroup()))
		r.fleet.config.Log.Info("machine is off", "machine", r.name)
	}
	for _, nic := range slices.Backward(r.attached) {
		problems = append(problems, r.fleet.network.Detach(ctx, nic))
	}
	r.attached = nil
	return errors.Join(append(problems, netns.Remove(r.namespace()))...)
}
