package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/internal/local/controlplane"
	"kaz/internal/local/process"
)

// CloudControllerManager is the component that [UpOptions.Without] leaves out so
// that another build, or another project's, can be run in its place.
const CloudControllerManager = "cloud-controller-manager"

// Components are what `kaz local up` can do without.
func Components() []string {
	return []string{
		CloudControllerManager, controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK,
	}
}

// UpOptions say what cluster to start. Dir and Program are required.
type UpOptions struct {
	// Dir holds everything of the cluster: state, keys, logs, files for clients.
	Dir string
	// Nodes is the number of nodes, 0 for as many as there were, or 3.
	Nodes int
	// ScaleSets they are spread over, 0 for as many as there were, or 1.
	ScaleSets int
	// Without names [Components] to leave out.
	Without []string
	// Azure says how the local Azure behaves; its files and addresses are Up's.
	Azure AzureOptions
	// Program is the kaz executable, which runs kaz's own components.
	Program string
	// Out gets the progress and, at the end, what to try.
	Out io.Writer
}

func (o *UpOptions) check() error {
	var problems []error
	if o.Nodes < 0 || o.Nodes > 1000 {
		problems = append(problems, fmt.Errorf("--nodes %d: want 1 to 1000", o.Nodes))
	}
	if o.ScaleSets < 0 || o.ScaleSets > 20 {
		problems = append(problems, fmt.Errorf("--scale-sets %d: want 1 to 20", o.ScaleSets))
	}
	for _, name := range o.Without {
		if !slices.Contains(Components(), name) {
			problems = append(problems, fmt.Errorf("--without %s: want one of %s", name, strings.Join(Components(), ", ")))
		}
	}
	return errors.Join(problems...)
}

// stopGrace is how long each process gets to end by itself.
const stopGrace = 10 * time.Second

// Up starts a local cluster, or continues the one that Dir holds, calls ready when
// it can be used, and runs it until ctx is done. Then it stops everything that it
// started.
func Up(ctx context.Context, o UpOptions, ready func(Status)) error {
	if err := o.check(); err != nil {
		return err
	}
	group, err := process.Open(ctx, o.Dir)
	if err != nil {
		return err
	}
	c := &cluster{UpOptions: o, group: group, progress: newProgress(o.Out)}
	defer func() {
		// The context that ends Up has ended; stopping must not end with it.
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		group.Close(stopping, stopGrace)
	}()
	return c.run(ctx, ready)
}

// cluster is a local cluster that is being started or runs.
type cluster struct {
	UpOptions
	group    *process.Group
	progress *progress
	site     Site
	azure    *Azure
	plane    *controlplane.ControlPlane
}

func (c *cluster) path(name string) string { return filepath.Join(c.group.Dir(), name) }

func (c *cluster) without(name string) bool { return slices.Contains(c.Without, name) }

func (c *cluster) run(ctx context.Context, ready func(Status)) error {
	if err := os.Remove(c.path(statusFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	binaries, err := c.build(ctx)
	if err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	if err := c.startAzure(ctx, tasks); err != nil {
		return err
	}
	// Azure is the last to go: components say goodbye to it.
	err = c.startCluster(ctx, tasks, binaries, ready)
	if err == nil {
		tasks.Go(func() error { return c.watch(ctx) })
	}
	err = errors.Join(err, untilDone(tasks, err))
	c.progress.say("stopping")
	return errors.Join(err, os.Remove(c.path(statusFile)))
}

func (c *cluster) build(ctx context.Context) (controlplane.Binaries, error) {
	defer c.progress.begin("control plane programs")()
	return controlplane.Build(ctx, controlplane.BuildOptions{
		Without: c.Without,
		Progress: func(s controlplane.Step) {
			switch s.State {
			case controlplane.Waiting:
				c.progress.say("another kaz is building, waiting for it")
			case controlplane.Building:
				c.progress.say("building %s %s (once; it is kept)", s.Program, s.Version)
			case controlplane.Built:
				c.progress.say("built %s in %s", s.Program, short(s.Took))
			}
		},
	})
}
