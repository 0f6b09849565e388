package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/local/azureserver"
	"kaz/internal/local/boot"
	"kaz/internal/local/controlplane"
	"kaz/internal/local/image"
	"kaz/internal/local/inventory"
	vm "kaz/internal/local/machine"
	"kaz/internal/local/process"
	"kaz/internal/local/realnodes"
)

// MachinesOptions are the options of [PrepareMachines].
type MachinesOptions struct {
	// Dir is the directory of the machines' disks.
	Dir string
	// Program is the kaz executable, which runs machines.
	Program string
	// Say gets a line for each step that takes long.
	Say func(line string)
}

// Machines boots the machines of a local Azure that have custom data.
type Machines struct {
	options MachinesOptions
	image   boot.Image
	group   *process.Group
	nodes   *realnodes.Nodes
	tasks   *errgroup.Group
	stop    context.CancelFunc
}

// bootedMachines is how many machines this machine must have room for, at least.
const bootedMachines = 2

// machinesGrace is the time that machines get to end.
const machinesGrace = 10 * time.Second

// PrepareMachines checks that this machine can run machines, and makes their image, once for each user.
func PrepareMachines(ctx context.Context, o MachinesOptions) (*Machines, error) {
	if problems := vm.Check(realnodes.DisksDir(o.Dir), bootedMachines); len(problems) > 0 {
		return nil, fmt.Errorf("--machines-dir: machines cannot run here: %w", errors.Join(problems...))
	}
	if err := errors.Join(realnodes.CheckDisks(), boot.Check()); err != nil {
		return nil, fmt.Errorf("--machines-dir: machines cannot run here: %w", err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	programs, err := nodePrograms(ctx, filepath.Join(user, "kaz", "images"), o.Say)
	if err != nil {
		return nil, err
	}
	m := &Machines{options: o}
	m.image, err = boot.Catalogue{Dir: filepath.Join(user, "kaz", "images"), Say: o.Say}.Kubernetes(ctx, boot.Release{Programs: programs})
	return m, err
}

// nodePrograms builds the programs of the image.
func nodePrograms(ctx context.Context, dir string, say func(string)) (map[string]string, error) {
	built, err := controlplane.Build(ctx, controlplane.BuildOptions{
		Without: append(controlplane.StoragePrograms(), controlplane.KWOK),
		Progress: func(s controlplane.Step) {
			if s.State == controlplane.Building {
				say(fmt.Sprintf("building %s %s (only once)", s.Program, s.Version))
			}
		},
	})
	if err != nil {
		return nil, err
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	programs := map[string]string(maps.Clone(built))
	programs["pause"], err = image.Box(ctx, dir, goCommand)
	return programs, err
}

// Start begins to boot machines. The caller stops them.
func (m *Machines) Start(ctx context.Context, azure *azureserver.Server) error {
	err := m.start(ctx, azure)
	if err != nil {
		err = errors.Join(err, m.Stop(context.WithoutCancel(ctx)))
	}
	return err
}

func (m *Machines) start(ctx context.Context, azure *azureserver.Server) error {
	var err error
	if m.group, err = process.Open(ctx, m.options.Dir); err != nil {
		return err
	}
	if m.nodes, err = realnodes.Start(ctx, realnodes.Config{
		Instance: newInstance(), Azure: azure, Dir: m.group.Dir(), Program: m.options.Program, Processes: m.group, Disks: true,
		Log: slog.Default(),
	}); err != nil {
		return err
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.tasks, m.stop = &errgroup.Group{}, stop
	m.nodes.BootImages(inner, m.tasks, func(inventory.Machine) (boot.Image, error) { return m.image, nil })
	return nil
}

// Stop ends all machines. Their disks stay.
func (m *Machines) Stop(ctx context.Context) error {
	var problems []error
	if m.stop != nil {
		m.stop()
		problems = append(problems, m.tasks.Wait())
	}
	if m.nodes != nil {
		problems = append(problems, m.nodes.Stop(ctx))
	}
	if m.group != nil {
		m.group.Close(ctx, machinesGrace)
	}
	return errors.Join(problems...)
}
