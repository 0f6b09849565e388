package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/plane/fabric"
	"kaz/internal/emulator/plane/fabric/netns"
	"kaz/internal/emulator/plane/fabric/wiring"
	vm "kaz/internal/local/machine"
	"kaz/internal/local/process"
)

// fleet keeps the virtual machines of a cluster as its Azure says: what runs there is
// booted here, what stopped is off, what is gone leaves nothing.
type fleet struct {
	group   *process.Group
	program string // kaz itself, which runs machines
	dir     string // of the machines' disks
	network *fabric.Fabric
	// instance is in the name of everything on this machine that is this cluster's.
	instance string
	// describe fills in what of a machine is not its own.
	describe func(machine) (vm.Spec, error)
	log      *slog.Logger

	mu      sync.Mutex
	keepers map[string]*keeper // by name of the machine
	tasks   sync.WaitGroup
}

// set brings the fleet to what Azure has. It does not wait.
func (f *fleet) set(ctx context.Context, machines []machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := map[string]bool{}
	for _, m := range machines {
		if there[m.Name] {
			f.log.Error("two machines have one computer name, which can be one node only", "name", m.Name, "machine", string(m.ID))
			continue
		}
		there[m.Name] = true
		k := f.keepers[m.Name]
		if k == nil {
			k = &keeper{fleet: f, name: m.Name, wants: make(chan wish, 1)}
			f.keepers[m.Name] = k
			f.tasks.Go(func() { k.run(ctx) })
		}
		k.want(wish{machine: m})
	}
	for name, k := range f.keepers {
		if !there[name] {
			k.want(wish{gone: true})
			delete(f.keepers, name)
		}
	}
}

// wait returns when every machine is off, after the context of [fleet.set] has ended.
func (f *fleet) wait() { f.tasks.Wait() }

// wish is what shall be of a machine.
type wish struct {
	machine machine
	gone    bool
}

// keeper brings one machine to what is wished, one step at a time.
type keeper struct {
	fleet *fleet
	name  string
	wants chan wish // the newest wish, if it was not looked at yet

	process  *process.Process
	since    string // which boot process is
	attached []azure.ID
}

// want replaces an older wish that nobody has looked at.
func (k *keeper) want(w wish) {
	select {
	case <-k.wants:
	default:
	}
	k.wants <- w
}

// againAfter is how long a machine that could not boot stays off, and crashed how long one
// that ended by itself does: longer than load balancers need to notice, as in Azure.
const (
	againAfter = 2 * time.Second
	crashed    = 15 * time.Second
)

// run looks after the machine until it is gone or ctx is done. At the end it is off.
func (k *keeper) run(ctx context.Context) {
	var wanted wish
	var again <-chan time.Time
	for {
		var ended <-chan struct{}
		if k.process != nil {
			ended = k.process.Done()
		}
		select {
		case <-ctx.Done():
			// It has to be off before the program ends.
			k.complain("power off", k.off(context.WithoutCancel(ctx), stopGrace))
			return
		case wanted = <-k.wants:
		case <-ended:
			k.fleet.log.Warn("machine ended", "machine", k.name, "error", k.process.Err())
			// Of what is dead the kernel must not go on forwarding.
			k.complain("clear up after the machine", k.off(ctx, 0))
			again = time.After(crashed)
			continue
		case <-again:
		}
		again = nil
		if err := k.step(ctx, wanted); err != nil && ctx.Err() == nil {
			k.complain("bring the machine to what Azure has", err)
			again = time.After(againAfter)
		}
		if wanted.gone {
			return
		}
	}
}

func (k *keeper) complain(what string, err error) {
	if err != nil {
		k.fleet.log.Error("machine is not what Azure has", "machine", k.name, "what", what, "error", err)
	}
}

func (k *keeper) step(ctx context.Context, w wish) error {
	if w.gone {
		return errors.Join(k.off(ctx, stopGrace), k.remove())
	}
	if k.process != nil && (!w.machine.Running || w.machine.Since != k.since) {
		grace := stopGrace
		if w.machine.Abrupt {
			grace = 0
		}
		if err := k.off(ctx, grace); err != nil {
			return err
		}
	}
	if k.process == nil && w.machine.Running {
		return k.boot(ctx, w.machine)
	}
	return nil
}

func (k *keeper) namespace() string { return wiring.Prefix(k.fleet.instance) + "-vm-" + k.name }

func (k *keeper) cgroup() string { return wiring.Prefix(k.fleet.instance) + "/" + k.name }

func (k *keeper) disk() string { return filepath.Join(k.fleet.dir, k.name) }

// boot gives the machine its network and starts it. What fails on the way is taken
// back, for the next attempt.
func (k *keeper) boot(ctx context.Context, m machine) error {
	err := k.start(ctx, m)
	if err != nil {
		err = errors.Join(err, k.off(context.WithoutCancel(ctx), 0))
	}
	return err
}

func (k *keeper) start(ctx context.Context, m machine) error {
	began := time.Now()
	if err := netns.Create(k.namespace()); err != nil {
		return err
	}
	path := netns.Path(k.namespace())
	var primary fabric.Port
	for i, nic := range m.NICs {
		port, err := k.fleet.network.Attach(ctx, nic, fabric.Machine{Namespace: path, Device: fmt.Sprintf("eth%d", i), Index: i})
		if err != nil {
			return err
		}
		k.attached = append(k.attached, nic)
		if i == 0 {
			primary = port
		}
	}
	s, err := k.fleet.describe(m)
	if err != nil {
		return err
	}
	s.Name, s.Dir, s.Namespace, s.Addresses, s.Resolver = m.Name, k.disk(), path, m.Addresses, primary.Resolver
	s.Cgroup = k.cgroup()
	file, err := s.Write()
	if err != nil {
		return err
	}
	k.process, err = k.fleet.group.Start(process.Spec{
		Name: machineProcess(m.Name), Path: k.fleet.program, Args: []string{"machine", "run", file},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + k.disk()},
	})
	if err != nil {
		return err
	}
	k.since = m.Since
	k.fleet.log.Info("machine is booting", "machine", m.Name, "addresses", fmt.Sprint(m.Addresses), "took", time.Since(began))
	return nil
}

// machinePrefix begins the names of the processes of machines.
const machinePrefix = "machine-"

func machineProcess(name string) string { return machinePrefix + strings.ReplaceAll(name, "_", "-") }

// isMachine reports whether a process is a machine: its end is no reason to stop the
// cluster, as it is none for Azure.
func isMachine(p *process.Process) bool { return strings.HasPrefix(p.Name(), machinePrefix) }

// off powers the machine off, giving its software that long to end, and takes its
// network.
func (k *keeper) off(ctx context.Context, grace time.Duration) error {
	var problems []error
	if k.process != nil {
		k.process.Stop(ctx, grace)
		k.process = nil
		// What was killed had no time to do so itself.
		problems = append(problems, vm.RemoveCgroups(k.cgroup()))
		k.fleet.log.Info("machine is off", "machine", k.name)
	}
	for _, nic := range slices.Backward(k.attached) {
		problems = append(problems, k.fleet.network.Detach(ctx, nic))
	}
	k.attached = nil
	return errors.Join(append(problems, netns.Remove(k.namespace()))...)
}

// remove takes the machine's disk.
func (k *keeper) remove() error { return os.RemoveAll(k.disk()) }
