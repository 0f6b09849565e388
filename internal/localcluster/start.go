package localcluster

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/host/atomicfile"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/prebuilt"
	"kaz/internal/localcluster/realnodes"
	"kaz/internal/localcluster/site"
)

// buildPrograms returns the programs except those in without. It builds those that are neither prebuilt nor in the user's cache.
func (c *cluster) buildPrograms(ctx context.Context, what string, without []string) (controlplane.Binaries, error) {
	defer c.progress.begin(what)()
	return controlplane.Build(ctx, controlplane.BuildOptions{
		Release: c.record.Release, Without: without, Prebuilt: prebuilt.Beside(c.Program), Progress: newBuildLines(c.progress).say,
	})
}

// buildLines are the lines about a build.
type buildLines struct {
	progress *progress
	said     time.Time // the last line about packages
}

func newBuildLines(p *progress) *buildLines { return &buildLines{progress: p} }

// packagesEvery is the time between two lines about packages.
const packagesEvery = 20 * time.Second

func (l *buildLines) say(s controlplane.Step) {
	switch s.State {
	case controlplane.Waiting:
		l.progress.say("waiting for another kaz process, which is building")
	case controlplane.Compiling:
		if now := l.progress.now(); now.Sub(l.said) >= packagesEvery {
			l.said = now
			l.progress.say("compiling %s and %d more programs (only once): %s, %s", s.Program, s.Programs-1, packages(s), short(s.Took))
		}
	case controlplane.Building:
		l.progress.say("building %s %s (only once)", s.Program, s.Version)
	case controlplane.Built:
		l.progress.say("built %s in %s", s.Program, short(s.Took))
	case controlplane.Cached:
	}
}

func packages(s controlplane.Step) string {
	if s.Total == 0 {
		return fmt.Sprintf("%d packages", s.Done)
	}
	return fmt.Sprintf("%d of %d packages", min(s.Done, s.Total), s.Total)
}

// startAzure starts the local Azure with the state in the directory. It uses the recorded addresses, which azure.json
// names, if they are free.
func (c *cluster) startAzure(ctx context.Context) error {
	o := c.Azure
	o.CAFile, o.State, o.RequestLog = c.path("azure-ca.pem"), c.path("azure-state.json"), c.path("logs/azure-requests.jsonl")
	err := c.record.chooseAddresses()
	if err != nil {
		return err
	}
	o.Address, o.HTTPAddress, o.ProxyAddress = c.record.ARM, c.record.HTTP, c.record.Proxy
	o.DNSAddress = "127.0.0.1:0"
	o.Why = &c.why
	c.nodes.prepareAzure(&o)
	if c.azure, err = server.Start(ctx, o); err != nil {
		return err
	}
	return c.writeRecord()
}

func (c *cluster) writeRecord() error { return atomicfile.WriteJSON(c.path(recordFile), c.record) }

// defaultNodes is the number of nodes of a new cluster.
const defaultNodes = 3

// createResources creates the resources of the cluster in the local Azure, and the files for its clients.
func (c *cluster) createResources(ctx context.Context) error {
	if c.record.isNew() {
		info := c.azure.Info()
		c.record.Site = site.New(info.Tenant, info.Subscription, max(c.ScaleSets, 1))
		c.record.Site.IPFamilies = c.IPFamilies
	}
	if err := c.chooseGateways(); err != nil {
		return err
	}
	if err := c.writeRecord(); err != nil {
		return err
	}
	s, count := c.record.Site, c.Nodes
	if c.ScaleSets > 0 && c.ScaleSets != len(s.ScaleSets) {
		return fmt.Errorf("--scale-sets %d: the cluster in %s has %d, and that cannot be changed", c.ScaleSets, c.group.Dir(),
			len(s.ScaleSets))
	}
	if count == 0 {
		count = defaultNodes
	}
	client, err := c.azure.Client()
	if err != nil {
		return err
	}
	err = s.Create(ctx, client, count, c.Nodes > 0, func(id azure.ID, took time.Duration) {
		if took >= time.Second {
			c.progress.say("%s created in %s", id.Name(), short(took))
		}
	})
	if err != nil {
		return err
	}
	return c.writeClientFiles(s.CloudConfig(c.azure.Info().ARM))
}

// chooseGateways records the number of application gateways. It refuses fewer than the cluster has: none is ever deleted.
func (c *cluster) chooseGateways() error {
	s := &c.record.Site
	if !c.Gateway && c.Gateways == 0 {
		return nil
	}
	if have := len(s.GatewayIDs()); c.Gateways > 0 && c.Gateways < have {
		return fmt.Errorf("--gateways %d: the cluster in %s has %d; want at least %d", c.Gateways, c.group.Dir(), have, have)
	}
	s.Gateway, s.Gateways = site.GatewayName, max(c.Gateways, s.Gateways)
	return nil
}

// startControlPlane starts the control plane as programs of this machine, without the unused programs.
func (c *cluster) startControlPlane(ctx context.Context, unused []string) error {
	config := controlplane.Config{
		Processes: c.group, Binaries: c.binaries,
		PodCIDRs: c.record.Site.PodRanges(), ServiceCIDRs: c.record.Site.ServiceRanges(),
		Without: slices.DeleteFunc(slices.Concat(c.Without, unused), func(name string) bool {
			return slices.Contains(ownComponents(), name)
		}),
		Inside:  realnodes.APIServer(),
		Started: func(program string, took time.Duration) { c.progress.say("%s ready in %s", program, short(took)) },
	}
	if c.NodesKind == NodesReal {
		config.Egress = realnodes.EgressSocket(c.group.Dir())
	}
	var err error
	c.controlPlane, err = controlplane.Start(ctx, config)
	return err
}

// apply applies manifests with kubectl.
func (c *cluster) apply(ctx context.Context, manifests []byte) error {
	return c.kubectl(ctx, manifests, "apply", "--server-side", "--field-manager=kaz", "--force-conflicts", "-f", "-")
}

// kubectl runs kubectl with standard input. The first argument is the command.
func (c *cluster) kubectl(ctx context.Context, input []byte, args ...string) error {
	args = append([]string{"--kubeconfig", c.kubeconfig()}, args...)
	cmd := exec.CommandContext(ctx, c.binaries[controlplane.Kubectl], args...)
	cmd.Stdin, cmd.Env = bytes.NewReader(input), []string{"HOME=" + c.group.Dir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[2], err, bytes.TrimSpace(out))
	}
	return nil
}
