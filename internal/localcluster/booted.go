package localcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	clusterplan "kaz/internal/cluster"
	"kaz/internal/cluster/boot"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/preflight"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/setup"
	"kaz/internal/host/atomicfile"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/controlplane"
)

// bootedNodes are the machines of a cluster of the cluster engine, also those of its control plane. They boot from an image.
type bootedNodes struct {
	*cluster
	fleet *Machines
	plan  clusterplan.Plan
	// announceDir has a file by which kaz cluster finds the local Azure.
	announceDir string
}

// clusterRecord names a cluster of the cluster engine.
type clusterRecord struct {
	Name          string `json:"name"`
	ResourceGroup string `json:"resourceGroup"`
	// Releases are the releases of Kubernetes in the image of its machines.
	Releases []string `json:"releases"`
}

// build makes the image of the machines.
func (b *bootedNodes) build(ctx context.Context) (controlplane.Binaries, error) {
	defer b.progress.begin("image of the machines")()
	var err error
	b.fleet, err = makeMachines(ctx, MachinesOptions{
		Dir: b.group.Dir(), Program: b.Program, Releases: b.record.Cluster.Releases, Say: func(line string) { b.progress.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	return b.fleet.programs, nil
}

// chooseReleases chooses the releases in the image: the given releases, else the releases of the last start, else the
// release of the definition.
func (b *bootedNodes) chooseReleases() error {
	if len(b.Releases) > 0 || b.isNew() {
		b.record.Cluster.Releases = b.Releases
	}
	if !b.isNew() && len(b.Definitions) == 0 {
		return nil // Azure has the definition
	}
	d, err := b.definition()
	if err != nil {
		return err
	}
	if len(b.record.Cluster.Releases) == 0 {
		b.record.Cluster.Releases = []string{d.Cluster.Spec.Kubernetes.Version}
	}
	return b.checkVersion(d)
}

// checkVersion refuses a definition if its machines would not find their release in the image.
func (b *bootedNodes) checkVersion(d definition.Definition) error {
	version, has := d.Cluster.Spec.Kubernetes.Version, b.record.Cluster.Releases
	if !slices.Contains(has, version) {
		return fmt.Errorf("--kubernetes %s: the definition has version %s; want that one, too", strings.Join(has, ","), version)
	}
	return nil
}

// isNew reports whether no deployment of the cluster has begun.
func (b *bootedNodes) isNew() bool { return b.record.Cluster.Name == "" }

// prepareAzure lets operations wait for machines, and kaz cluster find the local Azure.
func (b *bootedNodes) prepareAzure(o *server.Options) {
	o.Boots, o.AnnounceDir = true, b.announceDir
}

// later has nothing to do: all that the machines need is in their image.
func (b *bootedNodes) later(context.Context) {}

func (b *bootedNodes) steps() []step {
	return []step{{"network", b.startMachines}, {"cluster", b.deploy}, {"nodes ready", b.waitReady}}
}

// startMachines begins to boot the machines that Azure has now and later.
func (b *bootedNodes) startMachines(ctx context.Context) error {
	ctx, b.stopTasks = context.WithCancel(ctx)
	b.kubeletsSince = time.Now()
	if err := b.fleet.boot(ctx, b.tasks, b.azure, b.group, b.record.Instance); err != nil {
		return err
	}
	b.tasks.Go(func() error { return b.writeNetworkStatus(ctx, b.fleet.nodes) })
	return nil
}

// deploy brings the cluster to its definition, and writes the files of its clients.
func (b *bootedNodes) deploy(ctx context.Context) error {
	e, err := setup.OpenLocal(b.azure.Info(), "kaz-local", func(line string) { b.progress.say("%s", line) })
	if err != nil {
		return err
	}
	if b.plan, err = b.desired(ctx, e); err != nil {
		return err
	}
	found, err := preflight.Run(ctx, e.Deployer, b.plan)
	if err != nil {
		return err
	}
	if found.Stop() {
		return found
	}
	if len(found) > 0 {
		b.progress.say("%v", found)
	}
	b.record.Cluster.Name, b.record.Cluster.ResourceGroup = b.plan.Names.Cluster, b.plan.Names.Group().Name()
	if err := b.writeRecord(); err != nil {
		return err
	}
	if err := b.apply(ctx, e); err != nil {
		return err
	}
	if err := setup.ReachHere(ctx, e.Azure, b.plan, b.kubeconfig()); err != nil {
		return err
	}
	return b.writeClientFiles(b.cloudConfig())
}

// apply deploys the plan. Before that it waits for a deployment that runs: Azure goes on with that of a start that was interrupted.
func (b *bootedNodes) apply(ctx context.Context, e *engine.Engine) error {
	save := func(text []byte) error {
		_, err := setup.SaveKubeconfig(b.kubeconfig(), text)
		return err
	}
	tick := time.NewTicker(e.Poll)
	defer tick.Stop()
	for waits := false; ; waits = true {
		_, err := e.Deploy(ctx, b.plan, save)
		switch {
		case errors.Is(err, record.ErrOpen):
			b.progress.say("a change of the cluster has not ended; go on with: kaz cluster resume %s --local --kubeconfig %s",
				b.plan.Names.Cluster, b.kubeconfig())
			return nil
		case !errors.Is(err, deploy.ErrRunning):
			return err
		case !waits:
			b.progress.say("waiting for the deployment of the last start, with which Azure goes on")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// desired returns the plan of the given definition, or for an existing cluster that of the definition in Azure.
func (b *bootedNodes) desired(ctx context.Context, e *engine.Engine) (clusterplan.Plan, error) {
	info, had := b.azure.Info(), b.record.Cluster
	if !b.isNew() && len(b.Definitions) == 0 {
		at := record.Place{Subscription: info.Subscription, Group: had.ResourceGroup, Name: had.Name}
		p, found, err := e.Recorded(ctx, at.Names())
		if err != nil {
			return p, err
		}
		if found {
			if err := b.checkVersion(p.Definition); err != nil {
				return p, err
			}
			return resized(p, b.Nodes, b.group.Dir())
		}
	}
	d, err := b.definition()
	if err != nil {
		return clusterplan.Plan{}, err
	}
	if err := b.writeDefinition(); err != nil {
		return clusterplan.Plan{}, err
	}
	p, err := setup.LocalPlan(d, info)
	if err == nil && !b.isNew() && (p.Names.Cluster != had.Name || !strings.EqualFold(p.Names.Group().Name(), had.ResourceGroup)) {
		err = fmt.Errorf("--definition: cluster %s in resource group %s: %s has cluster %s in resource group %s; want its definition, or "+
			"another --dir", p.Names.Cluster, p.Names.Group().Name(), b.group.Dir(), had.Name, had.ResourceGroup)
	}
	return p, err
}

// writeDefinition writes the definition of a cluster that has none of the user, for kaz cluster upgrade.
func (b *bootedNodes) writeDefinition() error {
	if len(b.Definitions) > 0 {
		return nil
	}
	text, err := b.ownDefinition()
	if err != nil {
		return err
	}
	return atomicfile.Write(b.path(definitionFile), text, 0o600)
}

// resized is a plan of an existing cluster with a number of nodes, 0 for its present number. Nodes are only added: others must be
// drained first.
func resized(p clusterplan.Plan, nodes int, dir string) (clusterplan.Plan, error) {
	if nodes == 0 {
		return p, nil
	}
	pools, name := slices.Clone(p.Definition.Pools), p.Names.Cluster
	if len(pools) != 1 || pools[0].Spec.Autoscaling != nil {
		return p, fmt.Errorf("--nodes %d: cluster %s in %s does not have one pool with a fixed number of nodes; want --definition with "+
			"numbers", nodes, name, dir)
	}
	if has := pools[0].Spec.Replicas; nodes < has {
		return p, fmt.Errorf("--nodes %d: cluster %s in %s has %d nodes, which must be drained first; start it without --nodes, and then: "+
			"kaz cluster scale %s %s --count %d --local --kubeconfig %s", nodes, name, dir, has, name, pools[0].Metadata.Name, nodes,
			filepath.Join(dir, kubeconfigFile))
	}
	pools[0].Spec.Replicas = nodes
	d := p.Definition
	d.Pools = pools
	return clusterplan.New(d)
}

// cloudConfig is the azure.json of the cluster for clients on this machine, which use the identity of this machine.
func (b *bootedNodes) cloudConfig() map[string]any {
	config := boot.CloudConfig(b.plan.Definition)
	delete(config, "userAssignedIdentityID")
	config["resourceManagerEndpoint"], config["useInstanceMetadata"] = b.azure.Info().ARM, false
	return config
}

// bootTime is what machines need to boot beside what nodes need to be ready.
const bootTime = 5 * time.Minute

// waitReady waits until each machine has a node that can run pods. A cluster without add-ons has none.
func (b *bootedNodes) waitReady(ctx context.Context) error {
	spec := b.plan.Definition.Cluster.Spec
	if spec.Addons.Repository == "" || spec.Kubernetes.PodNetwork == "None" {
		b.progress.say("no waiting: without spec.addons and spec.kubernetes.podNetwork nodes need more than the definition has")
		return nil
	}
	client, err := newClient(b.kubeconfig())
	if err != nil {
		return err
	}
	if err := b.waitNodes(ctx, bootTime); err != nil {
		return err
	}
	return b.poll(ctx, readyTimeout(0), func(ctx context.Context) (bool, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(nodes.Items, keepsPodsAway), nil
	})
}

// keepsPodsAway reports whether a node takes no pods yet, as one without a route to its pods. The taint for that comes some time after the
// condition.
func keepsPodsAway(n corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNetworkUnavailable || t.Key == corev1.TaintNodeNotReady
	}) || slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeNetworkUnavailable && c.Status == corev1.ConditionTrue
	})
}

func (b *bootedNodes) describe(ctx context.Context, s *Status) error {
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig())
	if err != nil {
		return err
	}
	s.Server, s.ClusterName = config.Host, b.plan.Names.Cluster
	for _, pool := range b.plan.Definition.Pools {
		if pool.Spec.Backend != "StandaloneVM" {
			s.ScaleSets = append(s.ScaleSets, b.plan.Names.With(pool.Metadata.Name))
		}
	}
	return b.describeMachines(ctx, s)
}

// stop stops the network of the machines, which are off.
func (b *bootedNodes) stop(ctx context.Context) error {
	if b.fleet == nil || b.fleet.nodes == nil {
		return nil
	}
	return b.fleet.nodes.Stop(ctx)
}
