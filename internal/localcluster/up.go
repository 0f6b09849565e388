package localcluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"kaz/internal/host/atomicfile"
	"kaz/internal/host/process"
	"kaz/internal/localazure/inventory"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/realnodes"
	"kaz/internal/localcluster/why"
)

// stopGrace is the time that each process gets for its shutdown.
const stopGrace = 10 * time.Second

// Up starts a local cluster, or continues the one in Dir, calls ready when the cluster is usable, and runs it until ctx
// is done. Then it stops everything that it started.
func Up(ctx context.Context, o UpOptions, ready func(Status)) error {
	if err := o.check(); err != nil {
		return err
	}
	group, err := process.Open(ctx, o.Dir)
	if err != nil {
		return err
	}
	c := &cluster{UpOptions: o, group: group, progress: newProgress(o.Out)}
	if err = c.openLog(); err == nil {
		err = c.run(ctx, ready)
	}
	if err != nil && ctx.Err() != nil {
		// The error is a consequence of the interrupt.
		slog.Info("starting was interrupted", "error", err)
		err = errInterrupted
	}
	return errors.Join(err, c.stop(ctx))
}

var errInterrupted = errors.New("interrupted before the cluster was up; the next start continues from here")

// cluster is a local cluster that starts or runs.
type cluster struct {
	UpOptions
	group        *process.Group
	progress     *progress
	log          *os.File // of this program itself
	record       startRecord
	binaries     controlplane.Binaries
	azure        *server.Server
	controlPlane *controlplane.ControlPlane
	nodes        nodes
	// kubeletsSince is when the machines began to boot, zero for simulated nodes, which have no kubelets.
	kubeletsSince time.Time
	why           why.Explainer
	example       string // the URL of the example, once it answers
	// tasks are the goroutines of a running cluster. The function stopTasks ends them.
	tasks     *errgroup.Group
	stopTasks context.CancelFunc
}

// nodes is what differs between the kinds of nodes.
type nodes interface {
	// build returns the programs that the cluster runs. It builds missing programs.
	build(ctx context.Context) (controlplane.Binaries, error)
	// prepareAzure changes the options of the local Azure before it starts.
	prepareAzure(o *server.Options)
	// steps returns the steps that start the cluster after the local Azure.
	steps() []step
	// later does what a usable cluster still lacks. It returns when ctx is done at the latest.
	later(ctx context.Context)
	// describe adds what the kind of nodes knows to a status.
	describe(ctx context.Context, s *Status) error
	// stop stops the network of the nodes.
	stop(ctx context.Context) error
}

func (c *cluster) path(name string) string { return filepath.Join(c.group.Dir(), name) }

// kubeconfig is the file of the administrator's kubeconfig.
func (c *cluster) kubeconfig() string { return c.path(kubeconfigFile) }

func (c *cluster) without(name string) bool { return slices.Contains(c.Without, name) }

// openLog directs the log of this program to a file, so that the terminal shows only the progress.
func (c *cluster) openLog() error {
	path := c.path("logs/kaz.log")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var err error
	if c.log, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(c.log, nil)))
	return nil
}

// run starts the cluster step by step, and returns when the cluster must stop.
func (c *cluster) run(ctx context.Context, ready func(Status)) error {
	c.tasks, ctx = errgroup.WithContext(ctx)
	var err error
	if c.record, err = readRecord(c.group.Dir()); err != nil {
		return err
	}
	if err := c.choose(ctx); err != nil {
		return err
	}
	if c.binaries, err = c.nodes.build(ctx); err != nil {
		return err
	}
	for _, step := range append([]step{{"local Azure", c.startAzure}}, c.nodes.steps()...) {
		done := c.progress.begin(step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		done()
	}
	status, err := c.status(ctx)
	if err != nil {
		return err
	}
	if err := atomicfile.WriteJSON(c.path(statusFile), status); err != nil {
		return err
	}
	if err := c.explain(); err != nil {
		return err
	}
	ready(status)
	c.tasks.Go(func() error {
		c.nodes.later(ctx)
		return nil
	})
	return c.watch(ctx)
}

// explain lets the web page explain objects from now on.
func (c *cluster) explain() error {
	running := why.Cluster{
		Program: c.Program, Dir: c.group.Dir(), Environment: c.components().environment(), Kubeconfig: c.kubeconfig(),
		Gateways: c.record.Site.GatewayIDs(),
	}
	if _, real := c.nodes.(*realNodes); real {
		running.Answers = answersName
	}
	return c.why.Begin(running)
}

// step is a part of the start.
type step struct {
	name string
	run  func(context.Context) error
}

// resourcesStep, controlPlaneStep and managerStep are steps of nodes beside a control plane of this machine.
func (c *cluster) resourcesStep() step {
	return step{"resource group, network and scale sets", c.createResources}
}

func (c *cluster) controlPlaneStep(unused []string) step {
	return step{"control plane", func(ctx context.Context) error { return c.startControlPlane(ctx, unused) }}
}

func (c *cluster) managerStep() step {
	return step{CloudControllerManager, c.components().startCloudControllerManager}
}

// gatewaySteps has the step of the controller of the application gateways, if the cluster has some.
func (c *cluster) gatewaySteps() []step {
	if !c.Gateway && c.Gateways == 0 && c.record.Site.Gateway == "" {
		return nil
	}
	return []step{{GatewayController, c.components().startGatewayController}}
}

// watch returns when the cluster must stop: nil after the end of ctx.
func (c *cluster) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		case p := <-c.group.Failed():
			if !realnodes.IsMachine(p.Name()) {
				return fmt.Errorf("%s has ended, its log is %s: %w", p.Name(), p.LogFile(), p.Err())
			}
		}
	}
}

// stop stops everything that run started: first the programs, which may use Azure until they end, then Azure, which saves
// its state.
func (c *cluster) stop(ctx context.Context) error {
	c.progress.say("stopping")
	// ctx is done already, so it must not limit the shutdown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	if err := os.Remove(c.path(statusFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.progress.say("%v", err)
	}
	if c.stopTasks != nil {
		c.stopTasks()
	}
	var err error
	if c.tasks != nil {
		err = c.tasks.Wait()
	}
	for _, p := range slices.Backward(c.group.Processes()) {
		p.Stop(ctx, stopGrace)
	}
	if c.nodes != nil {
		err = errors.Join(err, c.nodes.stop(ctx))
	}
	if c.azure != nil {
		err = errors.Join(err, c.azure.Close())
	}
	c.group.Close(ctx, stopGrace)
	if c.log != nil {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		err = errors.Join(err, c.log.Close())
	}
	return err
}

// machines returns the virtual machines of the local Azure.
func (c *cluster) machines(ctx context.Context) ([]inventory.Machine, error) {
	return inventory.List(ctx, c.azure.Emulator())
}

// newClient returns the Kubernetes client of a kubeconfig.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	return kubernetes.NewForConfig(config)
}
