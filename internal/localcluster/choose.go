package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"kaz/internal/localazure/client"
	"kaz/internal/localcluster/controlplane"
	vm "kaz/internal/localcluster/machine"
	"kaz/internal/localcluster/realnodes"
	"kaz/internal/localcluster/site"
)

// choose sets the address families and the kind of nodes. An existing cluster keeps both.
func (c *cluster) choose(ctx context.Context) error {
	var err error
	if c.record.nodesKind() == NodesBooted {
		c.Engine = true
	}
	if c.Engine {
		return c.chooseEngine(ctx)
	}
	if c.IPFamilies, err = chooseFamilies(c.IPFamilies, c.record, c.group.Dir()); err != nil {
		return err
	}
	if c.record.Release, err = chooseRelease(c.Releases, c.record, c.group.Dir()); err != nil {
		return err
	}
	if c.record.Instance == "" {
		c.record.Instance = newInstance()
	}
	if c.NodesKind, err = c.chooseNodes(ctx); err != nil {
		return err
	}
	c.record.NodesKind = c.NodesKind
	if c.NodesKind == NodesReal {
		n := &realNodes{cluster: c}
		n.chooseStorage()
		c.nodes = n
	} else {
		c.nodes = hollowNodes{c}
	}
	return nil
}

// chooseEngine prepares a cluster of the cluster engine. An existing cluster of another kind stays what it is.
func (c *cluster) chooseEngine(ctx context.Context) error {
	if have := c.record.nodesKind(); have != "" && have != NodesBooted {
		return fmt.Errorf("--engine: the cluster in %s has %s nodes, and that cannot be changed; want another --dir", c.group.Dir(), have)
	}
	if err := c.checkEngine(); err != nil {
		return fmt.Errorf("the cluster in %s is made with --engine: %w", c.group.Dir(), err)
	}
	c.NodesKind = NodesBooted
	c.record.NodesKind = c.NodesKind
	if c.record.Instance == "" {
		c.record.Instance = newInstance()
	}
	b := &bootedNodes{cluster: c}
	if err := b.chooseReleases(); err != nil {
		return err
	}
	problems, err := c.checkMachines(ctx, max(c.Nodes+1, bootedMachines))
	if err != nil {
		return err
	}
	if err := errors.Join(append(problems, checkBoot())...); err != nil {
		return fmt.Errorf("--engine: machines cannot boot here: %w", err)
	}
	b.announceDir, err = client.AnnounceDir()
	c.nodes = b
	return err
}

// chooseFamilies returns the families of an existing cluster, else the given families.
func chooseFamilies(given []string, r startRecord, dir string) ([]string, error) {
	wanted, err := site.ReadFamilies(given)
	if err != nil || r.isNew() {
		return wanted, err
	}
	have := []string{site.IPv4}
	if r.Site.DualStack() {
		have = append(have, site.IPv6)
	}
	if len(wanted) > 0 && !slices.Equal(wanted, have) {
		return nil, fmt.Errorf("--ip-families %s: the cluster in %s has %s, and that cannot be changed", strings.Join(wanted, ","), dir,
			strings.Join(have, ","))
	}
	return have, nil
}

// chooseRelease returns the release of an existing cluster, else the given release, empty for the default. An API server of an older
// release may not read what a newer one stored.
func chooseRelease(given []string, r startRecord, dir string) (string, error) {
	if len(given) == 0 || r.isNew() {
		return strings.Join(given, ""), nil
	}
	have := r.Release
	if have == "" {
		known, err := controlplane.Releases()
		if err != nil {
			return "", err
		}
		have = known[0]
	}
	if given[0] != have {
		return "", fmt.Errorf("--kubernetes %s: the cluster in %s has %s, and that cannot be changed; want another --dir", given[0], dir,
			have)
	}
	return r.Release, nil
}

// chooseNodes returns the kind of nodes, and reports the reason if this machine cannot run real nodes.
func (c *cluster) chooseNodes(ctx context.Context) (string, error) {
	wanted, err := wantedNodes(c.UpOptions, c.record.nodesKind(), c.group.Dir())
	if err != nil || wanted == NodesHollow {
		return wanted, err
	}
	problems, err := c.checkMachines(ctx, cmp.Or(c.Nodes, defaultNodes))
	switch {
	case err != nil:
		return "", err
	case len(problems) == 0:
		c.progress.say("nodes are real: namespaces of this machine, each with a kubelet and a containerd")
		return NodesReal, nil
	case len(c.Images) > 0:
		return "", fmt.Errorf("--image: only real nodes run images, and this machine cannot run real nodes: %w", errors.Join(problems...))
	case wanted == NodesReal:
		return "", fmt.Errorf("real nodes: %w\n--nodes-kind hollow simulates nodes, in another --dir", errors.Join(problems...))
	}
	c.progress.say("nodes are hollow (simulated); this machine cannot run real nodes:")
	for _, p := range problems {
		c.progress.say("  %v", p)
	}
	return NodesHollow, nil
}

// checkMachines removes leftovers of killed kaz processes, and returns the reasons why this machine cannot run a number of machines.
func (c *cluster) checkMachines(ctx context.Context, count int) (problems []error, err error) {
	if os.Geteuid() != 0 { // only root can remove leftovers
		return vm.Check(realnodes.DisksDir(c.group.Dir()), count), nil
	}
	if err := c.record.sweep(ctx); err != nil {
		return nil, err
	}
	swept, err := realnodes.SweepAbandoned(ctx)
	for _, name := range swept {
		c.progress.say("removed leftovers of %s, a killed kaz process", name)
	}
	if err != nil {
		problems = append(problems, err)
	}
	return append(problems, realnodes.CheckMachine(ctx, c.record.Instance, c.group.Dir(), count)...), nil
}

// wantedNodes returns the required kind of nodes, "" for no requirement. have is the kind of an existing cluster.
func wantedNodes(o UpOptions, have, dir string) (string, error) {
	if have != "" && o.NodesKind != "" && o.NodesKind != have {
		return "", fmt.Errorf("--nodes-kind %s: the cluster in %s has %s nodes, and that cannot be changed", o.NodesKind, dir, have)
	}
	wanted := cmp.Or(o.NodesKind, have)
	if len(o.Images) == 0 {
		return wanted, nil
	}
	if wanted == NodesHollow {
		return "", fmt.Errorf("--image: the cluster in %s has %s nodes, which are simulated and run no images; --image is allowed with "+
			"real nodes, in another --dir", dir, have)
	}
	return NodesReal, nil
}
