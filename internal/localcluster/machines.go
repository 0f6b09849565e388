package localcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/cluster/addon"
	"kaz/internal/host/process"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/boot"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/image"
	vm "kaz/internal/localcluster/machine"
	"kaz/internal/localcluster/prebuilt"
	"kaz/internal/localcluster/realnodes"
)

// MachinesOptions are the options of [PrepareMachines].
type MachinesOptions struct {
	// Dir is the directory of the machines' disks.
	Dir string
	// Program is the kaz executable, which runs machines.
	Program string
	// Releases are the releases of Kubernetes that machines can run, see [controlplane.Releases]. No release means the default.
	Releases []string
	// Ignition says that machines can have an Ignition config. They boot from an image of their own.
	Ignition bool
	// Bare says that machines boot Debian without a container runtime, and without programs and images of Kubernetes.
	Bare bool
	// Say gets a line for each step that takes long.
	Say func(line string)
}

// Machines boots the machines of a local Azure that have custom data.
type Machines struct {
	options MachinesOptions
	image   boot.Image
	// ignition is the image of machines with an Ignition config. It has no layers if there is none.
	ignition boot.Image
	// programs are the programs of the first release.
	programs controlplane.Binaries
	instance string // part of the names of the machines' namespaces
	group    *process.Group
	nodes    *realnodes.Nodes
	tasks    *errgroup.Group
	stop     context.CancelFunc
}

// bootedMachines is how many machines this machine must have room for, at least.
const bootedMachines = 2

// machinesGrace is the time that machines get to end.
const machinesGrace = 10 * time.Second

// Check validates the options and reports all problems at once.
func (o MachinesOptions) Check() error {
	if o.Dir != "" {
		return errors.Join(o.checkBare(), checkReleases(o.Releases))
	}
	var problems []error
	if o.Bare {
		problems = append(problems, errors.New("--bare: only machines that boot have an image; add --machines-dir"))
	}
	if o.Ignition {
		problems = append(problems, errors.New("--ignition: only machines that boot have an image; add --machines-dir"))
	}
	if len(o.Releases) > 0 {
		problems = append(problems, fmt.Errorf("--kubernetes %s: only machines that boot have an image; add --machines-dir",
			strings.Join(o.Releases, ",")))
	}
	return errors.Join(problems...)
}

// checkBare refuses options of what a bare image does not have.
func (o MachinesOptions) checkBare() error {
	var problems []error
	if o.Bare && o.Ignition {
		problems = append(problems, errors.New("--ignition: the bare image boots with cloud-init; want --bare or --ignition"))
	}
	if o.Bare && len(o.Releases) > 0 {
		problems = append(problems, fmt.Errorf("--kubernetes %s: the bare image has no Kubernetes; want --bare or --kubernetes",
			strings.Join(o.Releases, ",")))
	}
	return errors.Join(problems...)
}

// checkReleases refuses releases of Kubernetes that cannot be built.
func checkReleases(given []string) error {
	known, err := controlplane.Releases()
	if err != nil {
		return err
	}
	var problems []error
	for _, release := range given {
		if !slices.Contains(known, release) {
			problems = append(problems, fmt.Errorf("--kubernetes %s: want some of %s", release, strings.Join(known, ", ")))
		}
	}
	return errors.Join(problems...)
}

// PrepareMachines checks that this machine can run machines, and then makes their image, once for each user. The caller stops the
// machines, also those that have not been started.
func PrepareMachines(ctx context.Context, o MachinesOptions) (*Machines, error) {
	instance := newInstance()
	if err := checkHere(ctx, o, instance); err != nil {
		return nil, fmt.Errorf("--machines-dir: machines cannot run here: %w", err)
	}
	group, err := process.Open(ctx, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("--machines-dir: %w", err)
	}
	m, err := makeMachines(ctx, o)
	if err != nil {
		group.Close(context.WithoutCancel(ctx), machinesGrace)
		return nil, err
	}
	m.instance, m.group = instance, group
	return m, nil
}

// checkHere removes what killed kaz processes left of machines, and returns the reasons why this machine cannot run machines.
func checkHere(ctx context.Context, o MachinesOptions, instance string) error {
	if os.Geteuid() != 0 { // only root can remove leftovers
		return errors.Join(append(vm.Check(realnodes.DisksDir(o.Dir), bootedMachines), checkBoot())...)
	}
	swept, err := realnodes.SweepAbandoned(ctx)
	for _, name := range swept {
		o.Say(fmt.Sprintf("removed leftovers of %s, a killed kaz process", name))
	}
	return errors.Join(append(realnodes.CheckMachine(ctx, instance, o.Dir, bootedMachines), err, checkBoot())...)
}

// checkBoot returns why machines cannot boot here, beside what [vm.Check] finds.
func checkBoot() error { return errors.Join(realnodes.CheckDisks(), boot.Check()) }

// makeMachines makes the image of machines.
func makeMachines(ctx context.Context, o MachinesOptions) (*Machines, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(user, "kaz", "images")
	m, images := &Machines{options: o}, boot.Catalogue{Dir: dir, Say: o.Say}
	if o.Bare {
		m.image, err = images.Bare(ctx)
		return m, err
	}
	content, err := m.content(ctx, dir)
	if err != nil {
		return nil, err
	}
	if m.image, err = images.Kubernetes(ctx, content); err != nil || !o.Ignition {
		return m, err
	}
	m.ignition, err = images.Ignition(ctx, content, m.image)
	return m, err
}

// choose returns the image of a new machine.
func (m *Machines) choose(machine inventory.Machine) (boot.Image, error) {
	switch {
	case !boot.ReadsIgnition(machine.Boot.CustomData):
		return m.image, nil
	case len(m.ignition.Layers) == 0:
		return boot.Image{}, fmt.Errorf("machine %s has an Ignition config: start kaz local azure with --ignition", machine.Name)
	default:
		return m.ignition, nil
	}
}

// The images of kaz's own programs in the image of machines.
const (
	addonRepository = "localhost/kaz"
	addonTag        = "devel"
)

// content builds what the image of machines has.
func (m *Machines) content(ctx context.Context, dir string) (boot.Content, error) {
	o := m.options
	content := boot.Content{Kaz: o.Program, Addons: addon.Images(addonRepository, addonTag), Programs: map[string]string{}}
	images := image.Options{Dir: dir, Prebuilt: prebuilt.Beside(o.Program)}
	box, err := image.Box(ctx, images)
	if err != nil {
		return content, err
	}
	releases := o.Releases
	if len(releases) == 0 {
		releases = []string{""}
	}
	for _, release := range releases {
		built, err := o.buildRelease(ctx, release)
		if err != nil {
			return content, err
		}
		if m.programs == nil {
			m.programs = built
		}
		for _, name := range controlplane.StoragePrograms() {
			content.Programs[name] = built[name]
		}
		programs := map[string]string(maps.Clone(built))
		programs["pause"] = box
		content.Releases = append(content.Releases, boot.Release{Programs: programs})
	}
	examples, err := image.Make(ctx, images)
	content.Archives = []string{examples}
	return content, err
}

// buildRelease builds the programs of a release, the default if it is empty.
func (o MachinesOptions) buildRelease(ctx context.Context, release string) (controlplane.Binaries, error) {
	return controlplane.Build(ctx, controlplane.BuildOptions{
		Release: release, Without: []string{controlplane.KWOK}, Prebuilt: prebuilt.Beside(o.Program),
		Progress: func(s controlplane.Step) {
			if s.State == controlplane.Building {
				o.Say(fmt.Sprintf("building %s %s (only once)", s.Program, s.Version))
			}
		},
	})
}

// ConsoleLog returns the file with what the console of a machine has shown.
func (m *Machines) ConsoleLog(name string) string {
	return filepath.Join(realnodes.DisksDir(m.options.Dir), name, boot.ConsoleLog)
}

// Start begins to boot machines.
func (m *Machines) Start(ctx context.Context, azure *server.Server) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.tasks, m.stop = &errgroup.Group{}, stop
	return m.boot(inner, m.tasks, azure, m.group, m.instance)
}

// boot begins to boot machines as processes of a group, until ctx is done. instance is part of the names of their namespaces.
func (m *Machines) boot(ctx context.Context, tasks *errgroup.Group, azure *server.Server, group *process.Group,
	instance string,
) error {
	var err error
	if m.nodes, err = realnodes.Start(ctx, realnodes.Config{
		Instance: instance, Azure: azure, Dir: group.Dir(), Program: m.options.Program, Processes: group, Disks: true, Log: slog.Default(),
	}); err != nil {
		return err
	}
	m.nodes.BootImages(ctx, tasks, m.choose)
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
