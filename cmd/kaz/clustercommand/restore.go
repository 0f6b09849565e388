package clustercommand

import (
	"github.com/spf13/cobra"

	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/record"
)

func backupCommand() *cobra.Command {
	var f changeFlags
	command := placeCommand(&cobra.Command{
		Use:   "backup NAME",
		Short: "Save the etcd of a cluster in its storage account",
		Long: `Saves etcd as a blob in the container of the cluster, and checks the backup first. Machines
do the same every hour, and each change of the control plane does.`,
		Example: `  kaz cluster backup prod --subscription 00000000-0000-0000-0000-000000000001`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		p, err := f.enter(command, e, at)
		if err != nil {
			return err
		}
		saved, err := e.Etcd.Save(command.Context())
		if err != nil {
			return err
		}
		answer := struct {
			Cluster string `json:"cluster"`
			Backup  string `json:"backup"`
		}{p.Names.Cluster, saved}
		return say(command, answer, "%s", saved)
	})
	f.defineKubernetes(command)
	return command
}

func restoreCommand() *cobra.Command {
	var f changeFlags
	var from string
	var unsigned bool
	command := placeCommand(&cobra.Command{
		Use:   "restore NAME",
		Short: "Bring the control plane back from a backup after the loss of every member",
		Long: `Deletes what is left of the members, makes a new first member whose etcd begins with the
backup, and then the other members. What was written to the API server after the backup is
lost. The nodes of pools stay and find the new members by the same address.

A backup must have a signature by the certificate authority of the cluster's etcd, which is in
the key vault. So the right to write blobs is not enough to plant one.

It refuses to begin while the API server answers: kaz cluster repair replaces single members.
A restore that stops goes on with kaz cluster resume.`,
		Example: `  kaz cluster restore prod --subscription 00000000-0000-0000-0000-000000000001
  kaz cluster restore prod --from etcd/20260102T030405Z-1234.db`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		p, err := f.enter(command, e, at)
		if err != nil {
			return err
		}
		e.Unsigned = unsigned
		if f.dryRun {
			steps, err := e.RestoreSteps(command.Context(), p.Names, from)
			if err != nil {
				return err
			}
			return showSteps(command, p.Names, steps)
		}
		return ended(command, e, p.Names, e.Restore(command.Context(), p.Names, from))
	})
	f.define(command)
	command.Flags().StringVar(&from, "from", "", "name of the backup below the container (default the newest)")
	command.Flags().BoolVar(&unsigned, "allow-unsigned", false,
		"restore a backup although it has no valid signature of the cluster, as one of an earlier kaz")
	return command
}
