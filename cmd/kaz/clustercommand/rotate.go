package clustercommand

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/engine"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/rotate"
)

// rotateFlags say what is rotated. Without one it is the certificates of the control plane.
type rotateFlags struct{ token, serviceAccount, encryption, authorities, issue, finish, atOnce bool }

func (f *rotateFlags) define(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&f.token, "token", false, "replace the join token, and no machine")
	flags.BoolVar(&f.serviceAccount, "service-account", false, "replace the key that signs tokens of service accounts")
	flags.BoolVar(&f.encryption, "encryption", false, "replace the key that encrypts Secrets in etcd, or begin to encrypt them")
	flags.BoolVar(&f.authorities, "authorities", false, "replace the certificate authorities: let machines trust the next ones")
	flags.BoolVar(&f.issue, "issue", false, "with --authorities: let the next ones issue the certificates of machines")
	flags.BoolVar(&f.finish, "finish", false,
		"with --service-account: accept tokens of the former keys no longer; with --encryption: forget the former keys; "+
			"with --authorities: trust the former ones no longer")
	flags.BoolVar(&f.atOnce, "at-once", false, "with --finish: although pods or Secrets may have tokens of the former keys")
	command.MarkFlagsMutuallyExclusive("token", "service-account", "encryption", "authorities")
	command.MarkFlagsMutuallyExclusive("issue", "finish")
}

// record is the change that the flags ask for.
func (f rotateFlags) record(ctx context.Context, e *engine.Engine, n naming.Names, config *rest.Config) (record.Change, error) {
	switch {
	case f.issue && !f.authorities:
		return record.Change{}, errors.New("--issue is for --authorities: want both")
	case f.finish && !f.serviceAccount && !f.encryption && !f.authorities:
		return record.Change{}, errors.New("--finish is for --service-account, --encryption or --authorities: want one of them, too")
	case f.atOnce && (!f.finish || !f.serviceAccount):
		return record.Change{}, errors.New("--at-once is for --service-account --finish: want all of them")
	case f.authorities:
		return f.authorityRecord(ctx, e, n, config)
	case f.token:
		return e.TokenRotation(ctx, n)
	case f.serviceAccount:
		return e.KeyRotation(ctx, n, f.finish, f.atOnce)
	case f.encryption:
		return e.EncryptionRotation(ctx, n, f.finish)
	}
	return e.Rotation(ctx, n)
}

// authorityRecord is the change of a phase of the rotation of the certificate authorities.
func (f rotateFlags) authorityRecord(ctx context.Context, e *engine.Engine, n naming.Names, config *rest.Config) (record.Change, error) {
	phase := change.Trust
	switch {
	case f.issue:
		phase = change.Issue
	case f.finish:
		phase = change.Finish
	}
	own := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(own); err != nil {
		return record.Change{}, fmt.Errorf("kubeconfig of cluster %s: %w", n.Cluster, err)
	}
	return e.AuthorityRotation(ctx, n, phase, rotate.Client{Roots: own.CAData, Certificate: own.CertData})
}

func rotateCommand() *cobra.Command {
	var f changeFlags
	var flags rotateFlags
	command := placeCommand(&cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a cluster new certificates, certificate authorities, a new join token or key of service accounts",
		Long: `Replaces every member of the control plane, one after the other, so that all certificates
of API servers, etcd and controllers are new and valid for a year. The certificate
authorities stay. Machines renew their certificates themselves, 30 days before they expire.

With --token it replaces the join token instead, and no machine. The new token is in the
cluster first, then in the key vault, from which machines that boot read it. The old one is
valid for another hour.

With --service-account it replaces the key that signs tokens of service accounts. Every
member is replaced twice: first all accept the new key, then all sign with it. The former
key is accepted until --service-account --finish, which replaces every member once more.

With --encryption it replaces the key with which members encrypt Secrets in etcd. Every member
is replaced twice: first all can read with the new key, then all write with it. All Secrets are
written with it at the end. Former keys stay for reading, also of backups, until --encryption
--finish, which replaces every member once more. In a cluster of an earlier kaz, whose Secrets
are not encrypted, --encryption makes the first key.

With --authorities it replaces the certificate authorities, in three phases. Each one replaces
every member and then every node, as an upgrade does:
  --authorities            all machines and pods trust the next authorities
  --authorities --issue    all machines have certificates of the next authorities
  --authorities --finish   no machine trusts the former authorities
Between the phases make the kubeconfigs of all clients outside of the cluster anew, with
kaz cluster kubeconfig. kaz cluster status shows the phase.`,
		Example: `  kaz cluster rotate prod --subscription 00000000-0000-0000-0000-000000000001 --dry-run
  kaz cluster rotate prod --token
  kaz cluster rotate prod --service-account
  kaz cluster rotate prod --service-account --finish
  kaz cluster rotate prod --encryption
  kaz cluster rotate prod --authorities
  kaz cluster rotate prod --authorities --issue
  kaz cluster rotate prod --authorities --finish`,
	}, func(command *cobra.Command, e *engine.Engine, at record.Place) error {
		p, err := recorded(command, e, at)
		if err != nil {
			return err
		}
		config, err := f.connect(e, p.Definition.Cluster)
		if err != nil {
			return err
		}
		r, err := flags.record(command.Context(), e, at.Names(), config)
		if err != nil {
			return err
		}
		return f.perform(command, e, r)
	})
	f.define(command)
	flags.define(command)
	return command
}
