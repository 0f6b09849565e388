package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ErrInUse is returned by [Open] for a directory that another program holds.
var ErrInUse = errors.New("in use")

// Group is the processes of one directory. One program at a time can hold a directory.
type Group struct {
	dir    string
	lock   *Lock
	owner  Record
	failed chan *Process
	closed chan struct{}

	mu      sync.Mutex
	order   int
	started []*Process
	closing bool
}

// Open locks dir, which it creates if necessary, and stops the processes that a killed program left running there.
func Open(ctx context.Context, dir string) (*Group, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	lock, err := TryLock(filepath.Join(runDir(dir), "lock"))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if lock == nil {
		if o, ok := Owner(dir); ok {
			return nil, fmt.Errorf("directory %s is %w by process %d (%s)", dir, ErrInUse, o.PID, o.Path)
		}
		return nil, fmt.Errorf("directory %s is %w by another process", dir, ErrInUse)
	}
	g := &Group{dir: dir, lock: lock, failed: make(chan *Process), closed: make(chan struct{})}
	if err := g.take(ctx); err != nil {
		lock.Release()
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return g, nil
}

func (g *Group) take(ctx context.Context) error {
	if err := stopLeftovers(ctx, g.dir, leftoverGrace); err != nil {
		return err
	}
	boot, started, err := identify(os.Getpid())
	if err != nil {
		return err
	}
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	g.owner = Record{Name: OwnerName, PID: os.Getpid(), Boot: boot, Started: started, Path: path}
	return writeRecord(g.dir, g.owner)
}

// Dir returns the directory of the group as an absolute path.
func (g *Group) Dir() string { return g.dir }

// Start runs a process. It fails if a process with the same name runs.
func (g *Group) Start(spec Spec) (*Process, error) {
	spec, err := spec.complete(g.dir)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return nil, fmt.Errorf("start %s: the group is closed", spec.Name)
	}
	if p := g.find(spec.Name); p != nil {
		return nil, fmt.Errorf("start %s: it already runs as process %d", spec.Name, p.PID())
	}
	p, err := start(g.dir, spec, g.order+1)
	if err != nil {
		return nil, err
	}
	g.order++
	g.started = append(g.started, p)
	go g.watch(p)
	return p, nil
}

// find returns the running process with a name. The caller holds the mutex.
func (g *Group) find(name string) *Process {
	for _, p := range g.started {
		select {
		case <-p.done:
		default:
			if p.Name() == name {
				return p
			}
		}
	}
	return nil
}

func (g *Group) watch(p *Process) {
	<-p.done
	if p.wasStopped() {
		return
	}
	select {
	case g.failed <- p:
	case <-g.closed:
	}
}

// Failed returns a channel with each process that ended without a Stop.
func (g *Group) Failed() <-chan *Process { return g.failed }

// Processes returns the started processes in the order of their start.
func (g *Group) Processes() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.started)
}

// Close stops every process, the last started first, and unlocks the directory. Each process gets grace for its shutdown;
// when ctx is done Close kills the rest.
func (g *Group) Close(ctx context.Context, grace time.Duration) {
	g.mu.Lock()
	if g.closing {
		g.mu.Unlock()
		return
	}
	g.closing = true
	started := slices.Clone(g.started)
	g.mu.Unlock()
	for _, p := range slices.Backward(started) {
		p.Stop(ctx, grace)
	}
	close(g.closed)
	removeRecord(g.dir, g.owner)
	g.lock.Release()
}
