package clustercommand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"kaz/cmd/kaz/cli"
	"kaz/internal/cluster"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/lock"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/setup"
	"kaz/internal/cluster/workload"
)

// changeFlags are the flags of commands that drain and replace machines.
type changeFlags struct {
	kubeconfig   string
	context      string
	dryRun       bool
	drainTimeout time.Duration
	etcdTimeout  time.Duration
	force        bool
	unlocked     bool
}

func (f *changeFlags) define(command *cobra.Command) {
	flags := command.Flags()
	f.defineKubernetes(command)
	flags.BoolVar(&f.dryRun, "dry-run", false, "only show the steps")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Minute, "how long the drain of a node may take")
	flags.DurationVar(&f.etcdTimeout, "etcd-timeout", time.Minute, "how long etcd may give no answer after a member has died")
	flags.BoolVar(&f.force, "force", false,
		"after --drain-timeout delete pods against their disruption budgets, and evict pods that have no controller")
	f.defineUnlocked(command)
}

// defineUnlocked defines the flag of commands that lock the cluster.
func (f *changeFlags) defineUnlocked(command *cobra.Command) {
	command.Flags().BoolVar(&f.unlocked, "allow-unlocked", false,
		"go on without the right to lock the cluster, although another process may then change it at the same time")
}

// defineKubernetes defines the flags that select the API server of the cluster.
func (f *changeFlags) defineKubernetes(command *cobra.Command) {
	command.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default NAME.kubeconfig)")
	command.Flags().StringVar(&f.context, "context", "", "context of the kubeconfig (default its current one)")
}

// connect connects an engine with a cluster. It returns how the API server is reached.
func (f *changeFlags) connect(e *engine.Engine, c definition.Cluster) (*rest.Config, error) {
	e.Patience.Etcd, e.Unlocked = f.etcdTimeout, f.unlocked
	e.Patience.Drain = workload.DrainOptions{Timeout: f.drainTimeout, Force: f.force}
	return setup.Connect(e, c, f.kubeconfig, f.context)
}

// enter reads what is deployed at a place, and connects an engine with that cluster.
func (f *changeFlags) enter(command *cobra.Command, e *engine.Engine, at record.Place) (cluster.Plan, error) {
	p, err := recorded(command, e, at)
	if err == nil {
		_, err = f.connect(e, p.Definition.Cluster)
	}
	return p, err
}

// run shows or makes a change.
func (f *changeFlags) run(command *cobra.Command, e *engine.Engine, r record.Change) error {
	if _, err := f.connect(e, r.Definition.Cluster); err != nil {
		return err
	}
	return f.perform(command, e, r)
}

// perform shows or makes a change with an engine that reaches the inside of the cluster.
func (f *changeFlags) perform(command *cobra.Command, e *engine.Engine, r record.Change) error {
	n := naming.Of(r.Definition.Cluster)
	if f.dryRun {
		steps, err := e.Steps(command.Context(), r)
		if err != nil {
			return err
		}
		return showSteps(command, n, steps)
	}
	return ended(command, e, n, e.Change(command.Context(), r))
}

// resume shows the steps that are left of an open change, or goes on with it. If another process ends it first, nothing is begun.
func (f *changeFlags) resume(command *cobra.Command, e *engine.Engine, open record.Change) error {
	if f.dryRun {
		return f.run(command, e, open)
	}
	if _, err := f.connect(e, open.Definition.Cluster); err != nil {
		return err
	}
	n := naming.Of(open.Definition.Cluster)
	_, err := e.Resume(command.Context(), n)
	return ended(command, e, n, err)
}

// changeAnswer is what a change would do, or how it ended.
type changeAnswer struct {
	Cluster string        `json:"cluster"`
	DryRun  bool          `json:"dryRun,omitempty"`
	Steps   []change.Step `json:"steps,omitempty"`
	// Done says that the cluster is as its definition says.
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"`
}

func showSteps(command *cobra.Command, n naming.Names, steps []change.Step) error {
	answer := changeAnswer{Cluster: n.Cluster, DryRun: true, Steps: steps, Done: len(steps) == 0}
	return show(command, answer, func(out io.Writer) error {
		for _, step := range steps {
			if _, err := fmt.Fprintln(out, step); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(out, "%d steps\n", len(steps))
		return err
	})
}

// ended says how a change ended. An error before it began is no exit status of its own.
func ended(command *cobra.Command, e *engine.Engine, n naming.Names, failed error) error {
	answer := changeAnswer{Cluster: n.Cluster, Done: failed == nil}
	if failed == nil {
		return say(command, answer, "cluster %s is as its definition says", n.Cluster)
	}
	open, err := e.Open(context.WithoutCancel(command.Context()), n)
	if err != nil || open == nil || begunNothing(failed) {
		return failed
	}
	answer.Error = failed.Error()
	if err := show(command, answer, func(io.Writer) error { return nil }); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(command.ErrOrStderr(), "%v\nkaz cluster resume %s goes on, kaz cluster abort %s leaves it as it is\n", failed,
		n.Cluster, n.Cluster); err != nil {
		return err
	}
	return cmp.Or(statusOf(failed), changeFailed)
}

// begunNothing reports whether a change failed before it began.
func begunNothing(failed error) bool {
	return errors.Is(failed, record.ErrOpen) || errors.Is(failed, lock.ErrHeld) || errors.Is(failed, lock.ErrUnlocked)
}

func upgradeCommand() *cobra.Command {
	var target targetFlags
	var f changeFlags
	var through []string
	var removed bool
	command := &cobra.Command{
		Use:   "upgrade FILE...",
		Short: "Bring the machines of a cluster to its definition",
		Long: `Replaces machines until all are as the definition says: their version, size, image, disks,
labels, taints, flags, and the files and commands of extensions. The control plane and the
pools get its numbers of machines. Pools that the definition no longer has are drained and
removed.

Minor versions are passed one by one. Each member of the control plane is replaced by a
new machine, which joins before the old one leaves; etcd is saved first. Pools get further
nodes, one or spec.upgrade.maxSurge, and each old node is drained and deleted.

A change that stops is in Azure: kaz cluster resume goes on, also on another machine.
Exit status 3: the definition has mistakes. 5: Azure has no room. 7: a node or a member
stopped the change. 8: another process makes a change, or one has begun and not ended.`,
		Example: `  kaz cluster upgrade cluster.yaml --dry-run
  kaz cluster upgrade cluster.yaml team-a.yaml --through 1.37.4`,
		Args: cli.Wants(1, 100, layerArguments),
		RunE: func(command *cobra.Command, args []string) error {
			p, err := target.plan(command, args)
			if err != nil {
				return err
			}
			e, err := target.engine(p.Definition.Cluster.Spec.Azure, command.ErrOrStderr())
			if err != nil {
				return err
			}
			r := record.Change{Definition: p.Definition, AllowRemoved: removed, Manifests: true}
			if r.Through, err = minors(through); err != nil {
				return err
			}
			return f.run(command, e, r)
		},
	}
	target.define(command)
	f.define(command)
	command.Flags().BoolVar(&removed, "allow-removed-apis", false,
		"upgrade although clients use APIs that the version no longer has")
	command.Flags().StringSliceVar(&through, "through", nil,
		"versions of the minors on the way, such as 1.37.4 (default the first of each minor)")
	return command
}

// minors are versions by their minors.
func minors(versions []string) (map[string]string, error) {
	all := map[string]string{}
	for _, version := range versions {
		parts := strings.Split(version, ".")
		if len(parts) != 3 {
			return nil, fmt.Errorf("--through %s: want a version such as 1.37.4", version)
		}
		all[parts[0]+"."+parts[1]] = version
	}
	return all, nil
}

// deployedCommand is a command that changes a cluster from the definition that Azure records. change gets that definition.
func deployedCommand(command *cobra.Command, args cobra.PositionalArgs,
	change func(*definition.Definition, []string) (record.Change, error),
) *cobra.Command {
	var target targetFlags
	var place clusterPlace
	var f changeFlags
	target.define(command)
	place.define(command)
	f.define(command)
	command.Args = args
	command.RunE = func(command *cobra.Command, args []string) error {
		e, at, err := place.open(command, &target, args[0])
		if err != nil {
			return err
		}
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		r, err := change(&p.Definition, args[1:])
		if err != nil {
			return err
		}
		return f.run(command, e, r)
	}
	return command
}

func scaleCommand() *cobra.Command {
	var count int
	command := deployedCommand(&cobra.Command{
		Use:   "scale NAME POOL",
		Short: "Change the number of nodes of a pool",
		Long: `Makes nodes, or drains and deletes some: first those that are not ready, are cordoned or
have the annotation kaz/delete-first, then those of the zone with the most nodes, those
with the fewest disks and pods, and the newest. Set the number in the definition, too: a later
deployment brings the pool to it.`,
		Example: `  kaz cluster scale prod general --count 5 --subscription 00000000-0000-0000-0000-000000000001`,
	}, cli.Wants(2, 2, "the name of one cluster and of one of its pools"), func(d *definition.Definition,
		args []string,
	) (record.Change, error) {
		i := slices.IndexFunc(d.Pools, func(p definition.NodePool) bool { return p.Metadata.Name == args[0] })
		const most = 1000
		switch {
		case i < 0:
			return record.Change{}, fmt.Errorf("cluster %s has no pool %s: want one of %s", d.Cluster.Metadata.Name, args[0],
				poolNames(d.Pools))
		case d.Pools[i].Spec.Autoscaling != nil:
			a := d.Pools[i].Spec.Autoscaling
			return record.Change{}, fmt.Errorf("pool %s is autoscaled from %d to %d nodes: set spec.autoscaling of the NodePool, and run "+
				"kaz cluster deploy", args[0], a.Min, a.Max)
		case count < 0 || count > most:
			return record.Change{}, fmt.Errorf("--count %d: want 0 to %d", count, most)
		}
		d.Pools[i].Spec.Replicas = count
		return record.Change{Definition: *d}, nil
	})
	command.Flags().IntVar(&count, "count", -1, "number of nodes")
	return command
}

func poolNames(pools []definition.NodePool) string {
	var all []string
	for _, p := range pools {
		all = append(all, p.Metadata.Name)
	}
	return strings.Join(all, ", ")
}

func repairCommand() *cobra.Command {
	return deployedCommand(&cobra.Command{
		Use:   "repair NAME [MEMBER...]",
		Short: "Replace members of the control plane",
		Long: `Replaces the named members, such as cp-1, and makes those anew whose machine is gone. A
member that answers leaves when its replacement has joined; one that does not answer
leaves first. Etcd keeps a majority at every moment: if it has none, nothing is done.`,
		Example: `  kaz cluster repair prod cp-1 --subscription 00000000-0000-0000-0000-000000000001`,
	}, cli.Wants(1, 6, "the name of one cluster, and of members such as cp-1"), func(d *definition.Definition,
		args []string,
	) (record.Change, error) {
		for _, id := range args {
			if _, _, ok := naming.MemberSlot(id); !ok {
				return record.Change{}, fmt.Errorf("%q is no member: want the end of the machine's name, such as cp-1", id)
			}
		}
		return record.Change{Definition: *d, Replace: args}, nil
	})
}

func kubeconfigCommand() *cobra.Command {
	var file string
	command := placeCommand(&cobra.Command{
		Use:   "kubeconfig NAME",
		Short: "Make a new kubeconfig of a cluster",
		Long: `Reads the certificate authority of the cluster from its key vault and issues a certificate
of the group system:masters, which is valid for a year. It needs the right to read
secrets of the vault. During a rotation of the certificate authorities the kubeconfig trusts
both, and its certificate is of the next one as soon as all members accept it.`,
		Example: `  kaz cluster kubeconfig prod --subscription 00000000-0000-0000-0000-000000000001`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		authority, err := setup.SecretAuthority(command.Context(), e.Planes, p.Names, "pki-ca")
		if err != nil {
			return err
		}
		if change.AuthorityPhaseAfter(p.Definition.Authorities) == change.Issue {
			authority = authority.Newest() // all members trust it, also after the rotation
		}
		text, err := authority.Kubeconfig(p.Names.Cluster, deploy.Server(p), time.Now())
		if err != nil {
			return err
		}
		if file == "" {
			file = p.Names.Cluster + ".kubeconfig"
		}
		if _, err := setup.SaveKubeconfig(file, text); err != nil {
			return err
		}
		if local, err := command.Flags().GetBool("local"); err != nil || local {
			if err := errors.Join(err, setup.ReachHere(command.Context(), e.Azure, p, file)); err != nil {
				return err
			}
		}
		answer := struct {
			Cluster    string `json:"cluster"`
			Kubeconfig string `json:"kubeconfig"`
		}{p.Names.Cluster, file}
		return say(command, answer, "kubeconfig: %s", file)
	})
	command.Flags().StringVar(&file, "kubeconfig", "", "file for the kubeconfig (default NAME.kubeconfig)")
	return command
}
