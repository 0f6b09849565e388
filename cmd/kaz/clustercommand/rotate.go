package clustercommand

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"kaz/internal/engine"
	"kaz/internal/plan/cluster/naming"
)

// rotateFlags say what is rotated. Without one it is the certificates of the control plane.
type rotateFlags struct{ token, serviceAccount, finish, atOnce bool }

func (f *rotateFlags) define(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&f.token, "token", false, "replace the join token, and no machine")
	flags.BoolVar(&f.serviceAccount, "service-account", false, "replace the key that signs tokens of service accounts")
	flags.BoolVar(&f.finish, "finish", false, "with --service-account: accept tokens of the former keys no longer")
	flags.BoolVar(&f.atOnce, "at-once", false, "with --finish: although pods or Secrets may have tokens of the former keys")
	command.MarkFlagsMutuallyExclusive("token", "service-account")
}

// record is the change that the flags ask for.
func (f rotateFlags) record(ctx context.Context, e *engine.Engine, n naming.Names) (engine.Record, error) {
	switch {
	case f.finish && !f.serviceAccount:
		return engine.Record{}, errors.New("--finish is for --service-account: want both")
	case f.atOnce && !f.finish:
		return engine.Record{}, errors.New("--at-once is for --finish: want both")
	case f.token:
		return e.TokenRotation(ctx, n)
	case f.serviceAccount:
		return e.KeyRotation(ctx, n, f.finish, f.atOnce)
	}
	return e.Rotation(ctx, n)
}

func rotateCommand() *cobra.Command {
	var f changeFlags
	var rotate rotateFlags
	command := placeCommand(&cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a cluster new certificates, a new join token or a new key of service accounts",
		Long: `Replaces every member of the control plane, one after the other, so that all certificates
of API servers, etcd and controllers are new and valid for a year. The certificate
authorities stay. Machines renew their certificates themselves, 30 days before they expire.

With --token it replaces the join token instead, and no machine. The new token is in the
cluster first, then in the key vault, from which machines that boot read it. The old one is
valid for another hour.

With --service-account it replaces the key that signs tokens of service accounts. Every
member is replaced twice: first all accept the new key, then all sign with it. The former
key is accepted until --service-account --finish, which replaces every member once more.`,
		Example: `  kaz cluster rotate prod --subscription 00000000-0000-0000-0000-000000000001 --dry-run
  kaz cluster rotate prod --token
  kaz cluster rotate prod --service-account
  kaz cluster rotate prod --service-account --finish`,
	}, func(command *cobra.Command, e *engine.Engine, at engine.Place) error {
		if _, err := f.enter(command, e, at); err != nil {
			return err
		}
		r, err := rotate.record(command.Context(), e, at.Names())
		if err != nil {
			return err
		}
		return f.perform(command, e, r)
	})
	f.define(command)
	rotate.define(command)
	return command
}
