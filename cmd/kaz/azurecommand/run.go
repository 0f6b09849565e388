package azurecommand

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/directory"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster"
)

// options is how a local Azure is to run.
type options struct {
	server   server.Options
	machines localcluster.MachinesOptions
	dir      string // "" for none
	detach   bool
	wait     time.Duration
}

func (r *options) flags(command *cobra.Command) {
	serverFlags(command, &r.server)
	BehaviourFlags(command, &r.server)
	f := command.Flags()
	f.StringVar(&r.machines.Dir, "machines-dir", "",
		"boot the machines that have custom data, with their disks in this directory; as root on Linux (default machines are documents)")
	f.StringSliceVar(&r.machines.Releases, "kubernetes", nil,
		"releases of Kubernetes in the image of these machines, such as 1.36.3,1.35.4; the first one is installed (default the release "+
			"that kaz is made for)")
	f.BoolVar(&r.machines.Ignition, "ignition", false,
		"make a second image for these machines, with Ignition and without cloud-init: those with an Ignition config boot from it")
	f.BoolVar(&r.machines.Bare, "bare", false,
		"boot these machines from Debian without a container runtime, and without Kubernetes, as an image of Azure; they install all of it")
	f.StringVar(&r.dir, "dir", "", "directory of the state, the keys, the certificate authority and the log, instead of --state "+
		"(default none, with --detach "+defaultDir()+")")
	f.BoolVar(&r.detach, "detach", false, "return when it serves and leave it running")
	f.DurationVar(&r.wait, "wait", 0, "with --detach, the longest time until it serves, such as 30s (default without limit)")
}

// defaultDir is the default directory of a local Azure in the background.
func defaultDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return filepath.Join(home, ".kaz", "azure")
}

// dirFlag defines --dir of the commands for a local Azure in the background.
func dirFlag(command *cobra.Command, dir *string) {
	command.Flags().StringVar(dir, "dir", defaultDir(), "directory of kaz local azure --detach, or of kaz local azure --dir")
}

// run serves a local Azure in this process, or in another one.
func (r *options) run(command *cobra.Command) error {
	if r.detach {
		r.dir = cmp.Or(r.dir, defaultDir())
	} else if r.wait != 0 {
		return errors.New("--wait: only --detach waits; add it")
	}
	if r.wait < 0 {
		return fmt.Errorf("--wait %s: want a duration that is not negative", r.wait)
	}
	if r.dir != "" {
		if err := directory.Prepare(r.dir, &r.server); err != nil {
			return err
		}
	}
	if err := errors.Join(r.server.Check(), r.machines.Check()); err != nil {
		return err
	}
	switch {
	case r.detach:
		return r.runDetached(command)
	case r.dir != "":
		group, err := directory.Hold(command.Context(), r.dir)
		if err != nil {
			return err
		}
		defer group.Close(context.WithoutCancel(command.Context()), 0) // it has no processes
	}
	if r.machines.Dir == "" {
		return r.serve(command.Context(), command.OutOrStdout(), nil)
	}
	return r.serveBooting(command)
}

// runDetached serves a local Azure in another process, and prints its description when it serves.
func (r *options) runDetached(command *cobra.Command) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ctx := command.Context()
	if r.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.wait)
		defer cancel()
	}
	args := cli.SameArguments(command, []string{"local", "azure"}, "detach", "wait", "dir")
	info, err := directory.Detach(ctx, r.dir, program, append(args, "--dir="+r.dir), command.ErrOrStderr())
	if err != nil {
		return err
	}
	return json.NewEncoder(command.OutOrStdout()).Encode(info)
}

// serveBooting serves a local Azure that boots machines, until the command's context is done.
func (r *options) serveBooting(command *cobra.Command) error {
	var err error
	prepare := r.machines
	if prepare.Program, err = os.Executable(); err != nil {
		return err
	}
	prepare.Say = func(line string) { _, _ = fmt.Fprintln(command.ErrOrStderr(), line) }
	if err := server.CheckFree(command.Context(), r.server); err != nil {
		return err // before an image is made, which takes minutes
	}
	machines, err := localcluster.PrepareMachines(command.Context(), prepare)
	if err != nil {
		return err
	}
	r.server.Boots, r.server.ConsoleLog = true, machines.ConsoleLog
	return r.serve(command.Context(), command.OutOrStdout(), machines)
}

// serve serves a local Azure until ctx is done. machines boots machines, nil if they are documents. They are stopped.
func (r *options) serve(ctx context.Context, out io.Writer, machines *localcluster.Machines) error {
	stop := func() error {
		if machines == nil {
			return nil
		}
		return machines.Stop(context.WithoutCancel(ctx))
	}
	var err error
	if r.server.AnnounceDir, err = client.AnnounceDir(); err != nil {
		return errors.Join(err, stop())
	}
	azure, err := server.Start(ctx, r.server)
	if err != nil {
		return errors.Join(err, stop())
	}
	if machines != nil {
		err = machines.Start(ctx, azure)
	}
	if err == nil && r.dir != "" {
		err = directory.Served(r.dir, azure.Info())
	}
	if err == nil {
		err = json.NewEncoder(out).Encode(azure.Info())
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, stop(), azure.Close())
}
