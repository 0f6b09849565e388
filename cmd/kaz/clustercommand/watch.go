package clustercommand

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/watch"
	"kaz/internal/host/live"
)

// watchFlags are the flags of kaz cluster status that follow what is under way.
type watchFlags struct {
	watch  bool
	every  time.Duration
	inside changeFlags
}

// shortestWatch is the least time between reads, because each reads all resources of the cluster.
const shortestWatch = time.Second

func (w *watchFlags) define(command *cobra.Command) {
	f := command.Flags()
	f.BoolVarP(&w.watch, "watch", "w", false, "show how far a deployment or a change has come, until it ends")
	f.DurationVar(&w.every, "every", 5*time.Second, "with --watch, the time between reads")
	f.StringVar(&w.inside.kubeconfig, "kubeconfig", "", "with --watch, kubeconfig of the cluster, to show the steps that a change has left")
	f.StringVar(&w.inside.context, "context", "", "context of the kubeconfig (default its current one)")
	w.inside.etcdTimeout = time.Minute
}

func (w *watchFlags) check(command *cobra.Command) error {
	var problems []error
	if w.every < shortestWatch {
		problems = append(problems, fmt.Errorf("--every %v: want %v or more", w.every, shortestWatch))
	}
	if format := format(command); format != "text" {
		problems = append(problems, fmt.Errorf("--watch and --output %s: want text", format))
	}
	return errors.Join(problems...)
}

// run shows how far Azure has come with a cluster until nothing is under way. Exit status 6: the deployment failed.
func (w *watchFlags) run(command *cobra.Command, e *engine.Engine, at record.Place) error {
	if err := w.check(command); err != nil {
		return err
	}
	var last record.Progress
	var steps *watch.Steps
	screen := live.Screen{In: command.InOrStdin(), Out: command.OutOrStdout(), Environment: os.Getenv, Every: w.every}
	err := screen.Show(command.Context(), func(ctx context.Context) (live.Frame, bool, error) {
		p, err := e.Progress(ctx, at.Names())
		if err == nil && p.State == record.Absent {
			err = notDeployed(at)
		}
		if err == nil && p.Open != nil && w.inside.kubeconfig != "" {
			if steps == nil {
				steps = &watch.Steps{}
			}
			err = w.look(ctx, e, *p.Open, steps)
		}
		if err != nil {
			return nil, false, err
		}
		last = p
		return func(now time.Time) []live.Line { return watch.Lines(p, steps, now) }, !p.UnderWay(), nil
	})
	if err == nil && last.State == "Failed" && last.Open == nil {
		return deploymentFailed
	}
	return err
}

// look notes which steps an open change has left. Only a kubeconfig that leads nowhere is an error.
func (w *watchFlags) look(ctx context.Context, e *engine.Engine, open record.Change, steps *watch.Steps) error {
	if e.Workload == nil {
		if _, err := w.inside.connect(e, open.Definition.Cluster); err != nil {
			return err
		}
	}
	left, err := e.Steps(ctx, open)
	if err != nil {
		steps.Missed(err)
		return nil
	}
	steps.Saw(left, time.Now())
	return nil
}
