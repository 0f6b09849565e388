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

	"kaz/internal/azure"
	"kaz/internal/local/controlplane"
	"kaz/internal/local/process"
)

// The components of kaz itself, which [UpOptions.Without] leaves out so that another
// build, or another project's, can be run in their place.
const (
	CloudControllerManager = "cloud-controller-manager"
	CloudNodeManager       = "cloud-node-manager"
)

// Components are what `kaz local up` can do without.
func Components() []string {
	return []string{
		CloudControllerManager, CloudNodeManager, controlplane.ControllerManager, controlplane.Scheduler, controlplane.KWOK,
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
	// NodesKind is [NodesReal], [NodesHollow], or empty for real ones where the machine can.
	NodesKind string
	// IPFamilies are [IPv4], or that and [IPv6]; none for what there was, or IPv4.
	IPFamilies []string
	// Without names [Components] to leave out.
	Without []string
	// Images are archives with images that real nodes have from their boot on.
	Images []string
	// Example also runs an example on real nodes and waits until it answers.
	Example bool
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
	if !slices.Contains([]string{"", NodesReal, NodesHollow}, o.NodesKind) {
		problems = append(problems, fmt.Errorf("--nodes-kind %s: want %s or %s", o.NodesKind, NodesReal, NodesHollow))
	}
	if _, err := readFamilies(o.IPFamilies); err != nil {
		problems = append(problems, err)
	}
	for _, name := range o.Without {
		if !slices.Contains(Components(), name) {
			problems = append(problems, fmt.Errorf("--without %s: want one of %s", name, strings.Join(Components(), ", ")))
		}
	}
	for i, file := range o.Images {
		if err := checkImage(file); err != nil {
			problems = append(problems, fmt.Errorf("--image %s: %w", file, err))
		}
		if at, err := filepath.Abs(file); err == nil {
			o.Images[i] = at // machines have other working directories
		}
	}
	if len(o.Images) > 0 && o.NodesKind == NodesHollow {
		problems = append(problems, errors.New("--image: simulated nodes run no images"))
	}
	if _, err := o.Azure.read(); err != nil {
		problems = append(problems, err)
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
	if err = c.openLog(); err == nil {
		err = c.run(ctx, ready)
	}
	if err != nil && ctx.Err() != nil {
		// What was being done then says nothing about why.
		slog.Info("starting was interrupted", "error", err)
		err = errInterrupted
	}
	return errors.Join(err, c.stop(ctx))
}

var errInterrupted = errors.New("interrupted before the cluster was up; the next start goes on from here")

// cluster is a local cluster that is being started or runs.
type cluster struct {
	UpOptions
	group    *process.Group
	progress *progress
	log      *os.File // of this program itself
	memory   memory
	azure    *Azure
	plane    *controlplane.ControlPlane
	reality  reality
	greeting string // the URL of the example, once it answers
	// tasks are the goroutines of a running cluster; stopTasks ends them.
	tasks     *errgroup.Group
	stopTasks context.CancelFunc
}

func (c *cluster) path(name string) string { return filepath.Join(c.group.Dir(), name) }

func (c *cluster) without(name string) bool { return slices.Contains(c.Without, name) }

// openLog sends what this program logs to a file beside those of the components,
// so that the terminal shows the progress only.
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

// run goes through the steps of starting and then waits for the end.
func (c *cluster) run(ctx context.Context, ready func(Status)) error {
	c.tasks, ctx = errgroup.WithContext(ctx)
	var err error
	if c.memory, err = recall(c.path(memoryFile)); err != nil {
		return err
	}
	if err := c.chooseFamilies(); err != nil {
		return err
	}
	if err := c.chooseNodes(ctx); err != nil {
		return err
	}
	binaries, err := c.build(ctx)
	if err != nil {
		return err
	}
	for _, step := range c.steps(binaries) {
		done := c.progress.begin(step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		done()
	}
	status := c.status(ctx, binaries)
	if err := writeJSON(c.path(statusFile), status); err != nil {
		return err
	}
	ready(status)
	return c.watch(ctx)
}

// step is a part of starting.
type step struct {
	what string
	do   func(context.Context) error
}

func (c *cluster) steps(binaries controlplane.Binaries) []step {
	with := func(do func(context.Context, controlplane.Binaries) error) func(context.Context) error {
		return func(ctx context.Context) error { return do(ctx, binaries) }
	}
	azure := []step{
		{"local Azure", c.startAzure},
		{"resource group, network and scale sets", with(c.layResources)},
	}
	plane := step{"control plane", with(c.startControlPlane)}
	manager := step{CloudControllerManager, c.startCloudControllerManager}
	ready := step{"nodes ready", c.awaitNodes}
	if c.real() {
		return append(azure, step{"network", with(c.startNetwork)}, plane, step{"machines", with(c.startFleet)}, manager,
			step{"name server", with(c.startNameServer)}, ready, step{"example", with(c.startExample)})
	}
	return append(azure, plane, step{"nodes", c.startNodes}, manager, step{CloudNodeManager, c.startCloudNodeManager}, ready)
}

// watch returns when the cluster is to stop: nil for an orderly end.
func (c *cluster) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				return cause
			}
			return nil
		case p := <-c.group.Failed():
			if !isMachine(p) {
				return fmt.Errorf("%s has ended, its log is %s: %w", p.Name(), p.LogFile(), p.Err())
			}
		}
	}
}

// stop ends what run started: first the programs, which may still have something
// to say to Azure, then Azure, which saves its state.
func (c *cluster) stop(ctx context.Context) error {
	c.progress.say("stopping")
	// The end of ctx is why we stop; stopping must not end with it.
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
	err = errors.Join(err, c.stopReality(ctx))
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

func (c *cluster) build(ctx context.Context) (controlplane.Binaries, error) {
	defer c.progress.begin("control plane programs")()
	return controlplane.Build(ctx, controlplane.BuildOptions{
		Without: c.leftOut(),
		Progress: func(s controlplane.Step) {
			switch s.State {
			case controlplane.Waiting:
				c.progress.say("another kaz is building, waiting for it")
			case controlplane.Building:
				c.progress.say("building %s %s (once; it is kept)", s.Program, s.Version)
			case controlplane.Built:
				c.progress.say("built %s in %s", s.Program, short(s.Took))
			case controlplane.Cached:
			}
		},
	})
}

// startAzure starts the local Azure with the state that the directory holds, at
// the addresses that azure.json already names if they are free.
func (c *cluster) startAzure(ctx context.Context) error {
	var err error
	o := c.Azure
	o.CAFile, o.State, o.RequestLog = c.path("azure-ca.pem"), c.path("azure-state.json"), c.path("logs/azure-requests.jsonl")
	if o.Address, o.HTTPAddress, o.ProxyAddress, err = c.memory.freeAddresses(); err != nil {
		return err
	}
	if c.azure, err = StartAzure(ctx, o); err != nil {
		return err
	}
	info := c.azure.Info()
	c.memory.remember(info)
	if c.memory.Health, err = freeAddress(c.memory.Health); err != nil {
		return err
	}
	if len(c.memory.Site.ScaleSets) == 0 {
		c.memory.Site = newSite(info.Tenant, info.Subscription, max(c.ScaleSets, 1))
		c.memory.Site.IPFamilies = c.IPFamilies
	}
	return writeJSON(c.path(memoryFile), c.memory)
}

func (c *cluster) layResources(ctx context.Context, binaries controlplane.Binaries) error {
	site, nodes := c.memory.Site, c.Nodes
	if c.ScaleSets > 0 && c.ScaleSets != len(site.ScaleSets) {
		return fmt.Errorf("--scale-sets %d: the cluster in %s has %d, and that cannot be changed", c.ScaleSets, c.group.Dir(), len(site.ScaleSets))
	}
	if nodes == 0 {
		nodes = defaultNodes
	}
	door, err := c.azure.Door()
	if err != nil {
		return err
	}
	err = site.lay(ctx, door, nodes, c.Nodes > 0, func(id azure.ID, took time.Duration) {
		if took >= time.Second {
			c.progress.say("%s made in %s", id.Name(), short(took))
		}
	})
	if err != nil {
		return err
	}
	return c.writeClientFiles(binaries)
}

const defaultNodes = 3

func (c *cluster) startControlPlane(ctx context.Context, binaries controlplane.Binaries) error {
	var err error
	c.plane, err = controlplane.Start(ctx, controlplane.Config{
		Processes: c.group, Binaries: binaries,
		PodCIDRs: c.memory.Site.podRanges(), ServiceCIDRs: c.memory.Site.serviceRanges(),
		Without: slices.DeleteFunc(slices.Concat(c.Without, c.leftOut()), func(name string) bool {
			return name == CloudControllerManager || name == CloudNodeManager
		}),
		Egress: c.egressSocket(), Inside: inside(),
		Started: func(program string, took time.Duration) { c.progress.say("%s ready in %s", program, short(took)) },
	})
	return err
}

// startNodes registers a Node for each machine from now on.
func (c *cluster) startNodes(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	ctx, c.stopTasks = context.WithCancel(ctx)
	r := registrar{
		client: client, group: c.memory.Site.group(), machines: c.azure.machines, changed: c.azure.machineChanges(ctx), listed: c.writeNodeList, log: slog.Default(),
	}
	c.tasks.Go(func() error { return r.Run(ctx) })
	return nil
}

func (c *cluster) client() (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.plane.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	return kubernetes.NewForConfig(config)
}

// startCloudControllerManager runs kaz's own, with the same files that another one
// would be given.
func (c *cluster) startCloudControllerManager(ctx context.Context) error {
	if c.without(CloudControllerManager) {
		c.progress.say("left out; its kubeconfig is %s", c.plane.Kubeconfig)
		return nil
	}
	kubeconfig, err := c.plane.IssueKubeconfig(CloudControllerManager, "system:cloud-controller-manager", "system:masters")
	if err != nil {
		return err
	}
	pods, err := c.podNetwork(ctx)
	if err != nil {
		return err
	}
	_, err = c.group.Start(process.Spec{
		Name: CloudControllerManager, Path: c.Program,
		Args: append([]string{
			CloudControllerManager,
			"--cloud-config=" + c.path(cloudConfigFile),
			"--kubeconfig=" + kubeconfig,
			"--cluster-name=" + c.memory.Site.ClusterName,
			"--controllers=" + c.controllers(),
			"--leader-elect=false",
			"--bind-address=127.0.0.1", "--secure-port=" + c.memory.healthPort(),
			"--authentication-skip-lookup=true",
			"--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics",
		}, pods...),
		Env: c.clientEnvironment(),
	})
	return err
}
