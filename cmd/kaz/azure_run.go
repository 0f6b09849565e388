package main

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

	"kaz/internal/localazure/client"
	"kaz/internal/localazure/directory"
	"kaz/internal/localazure/server"
	"kaz/internal/localcluster"
)

// azureRun is how a local Azure is to run.
type azureRun struct {
	server   server.Options
	machines localcluster.MachinesOptions
	dir      string // "" for none
	detach   bool
	wait     time.Duration
}

func (r *azureRun) flags(command *cobra.Command) {
	serverFlags(command, &r.server)
	behaviourFlags(command, &r.server)
	f := command.Flags()
	f.StringVar(&r.machines.Dir, "machines-dir", "",
		"boot the machines that have custom data, with their disks in this directory; as root on Linux (default machines are documents)")
	f.StringSliceVar(&r.machines.Releases, "kubernetes", nil,
		"releases of Kubernetes in the image of these machines, such as 1.36.3,1.35.4; the first one is installed (default the newest)")
	f.BoolVar(&r.machines.Ignition, "ignition", false,
		"make a second image for these machines, with Ignition and without cloud-init: those with an Ignition config boot from it")
	f.StringVar(&r.dir, "dir", "", "directory of the state, the keys, the certificate authority and the log, instead of --state "+
		"(default none, with --detach "+azureDir()+")")
	f.BoolVar(&r.detach, "detach", false, "return when it serves and leave it running")
	f.DurationVar(&r.wait, "wait", 0, "with --detach, the longest time until it serves, such as 30s (default without limit)")
}

// azureDir is the default directory of a local Azure in the background.
func azureDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return filepath.Join(home, ".kaz", "azure")
}

// azureDirFlag defines --dir of the commands for a local Azure in the background.
func azureDirFlag(command *cobra.Command, dir *string) {
	command.Flags().StringVar(dir, "dir", azureDir(), "directory of kaz local azure --detach, or of kaz local azure --dir")
}

// run serves a local Azure in this process, or in another one.
func (r *azureRun) run(command *cobra.Command) error {
	if r.detach {
		r.dir = cmp.Or(r.dir, azureDir())
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
		return runAzure(command.Context(), r.server, command.OutOrStdout(), nil)
	}
	return runBooting(command, r.server, r.machines)
}

// runDetached serves a local Azure in another process, and prints its description when it serves.
func (r *azureRun) runDetached(command *cobra.Command) error {
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
	args := sameArguments(command, []string{"local", "azure"}, "detach", "wait", "dir")
	info, err := directory.Detach(ctx, r.dir, program, append(args, "--dir="+r.dir), command.ErrOrStderr())
	if err != nil {
		return err
	}
	return json.NewEncoder(command.OutOrStdout()).Encode(info)
}

// runBooting serves a local Azure that boots machines, until the command's context is done.
func runBooting(command *cobra.Command, o server.Options, options localcluster.MachinesOptions) error {
	var err error
	if options.Program, err = os.Executable(); err != nil {
		return err
	}
	options.Say = func(line string) { _, _ = fmt.Fprintln(command.ErrOrStderr(), line) }
	if err := server.CheckFree(command.Context(), o); err != nil {
		return err // before an image is made, which takes minutes
	}
	machines, err := localcluster.PrepareMachines(command.Context(), options)
	if err != nil {
		return err
	}
	o.Boots, o.ConsoleLog = true, machines.ConsoleLog
	return runAzure(command.Context(), o, command.OutOrStdout(), machines)
}

// runAzure serves a local Azure until ctx is done. machines boots machines, nil if they are documents. They are stopped.
func runAzure(ctx context.Context, o server.Options, out io.Writer, machines *localcluster.Machines) error {
	stop := func() error {
		if machines == nil {
			return nil
		}
		return machines.Stop(context.WithoutCancel(ctx))
	}
	var err error
	if o.AnnounceDir, err = client.AnnounceDir(); err != nil {
		return errors.Join(err, stop())
	}
	azure, err := server.Start(ctx, o)
	if err != nil {
		return errors.Join(err, stop())
	}
	if machines != nil {
		err = machines.Start(ctx, azure)
	}
	if err == nil {
		err = json.NewEncoder(out).Encode(azure.Info())
	}
	if err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, stop(), azure.Close())
}
