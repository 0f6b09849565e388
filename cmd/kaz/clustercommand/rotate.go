package clustercommand

import (
	"github.com/spf13/cobra"

	"kaz/internal/engine"
)

func rotateCommand() *cobra.Command {
	var f changeFlags
	var token bool
	command := placeCommand(&cobra.Command{
		Use:   "rotate NAME",
		Short: "Give the control plane new certificates, or the cluster a new join token",
		Long: `Replaces every member of the control plane, one after the other, so that all certificates
of API servers, etcd and controllers are new and valid for a year. The certificate
authorities stay. Machines renew their certificates themselves, 30 days before they expire.

With --token it replaces the join token instead, and no machine. The new token is in the
cluster first, then in the key vault, from which machines that boot read it. The old one is
valid for another hour.`,
		Example: `  kaz cluster rotate prod --subscription 00000000-0000-0000-0000-000000000001 --dry-run
  kaz cluster rotate prod --token`,
	}, func(command *cobra.Command, e *engine.Engine, at engine.Place) error {
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		if _, err := f.inside(e, p.Definition.Cluster); err != nil {
			return err
		}
		rotation := e.Rotation
		if token {
			rotation = e.TokenRotation
		}
		r, err := rotation(command.Context(), at.Names())
		if err != nil {
			return err
		}
		return f.perform(command, e, r)
	})
	f.define(command)
	command.Flags().BoolVar(&token, "token", false, "replace the join token, and no machine")
	return command
}
