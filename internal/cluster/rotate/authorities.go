package rotate

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/pki"
)

// Client is a client of the API server, as its kubeconfig has it: the authorities that it trusts and its certificate, in PEM. Both may be
// empty.
type Client struct{ Roots, Certificate []byte }

// CheckPhase checks that a phase of the rotation of the certificate authorities may begin. It must be the next phase of the
// deployed cluster. The client that makes the change must be accepted after the phase.
func (r Rotation) CheckPhase(ctx context.Context, deployed definition.Definition, phase change.AuthorityPhase, client Client) error {
	name := r.Names.Cluster
	if next := change.AuthorityPhaseAfter(deployed.Authorities); next != phase {
		return fmt.Errorf("%s is not the next phase of the rotation of certificate authorities of cluster %s: "+
			"want kaz cluster rotate %s %s", flagsOf(phase), name, name, flagsOf(next))
	}
	if err := ownAuthorities(deployed.Cluster.Spec.Kubernetes); err != nil {
		return err
	}
	authority, err := r.Authority(ctx, Authority)
	if err != nil {
		return err
	}
	switch {
	case phase == change.Issue && len(client.Roots) > 0 && !authority.TrustedBy(client.Roots):
		return fmt.Errorf("the kubeconfig does not trust the next certificate authority of cluster %s: make a new one with kaz cluster "+
			"kubeconfig %s, for each client outside of the cluster, too", name, name)
	case phase == change.Finish && len(client.Certificate) > 0 && !authority.Accepts(client.Certificate):
		return fmt.Errorf("the kubeconfig has a certificate of the former authority of cluster %s, which is to be forgotten: make a "+
			"new one with kaz cluster kubeconfig %s, for each client outside of the cluster, too", name, name)
	}
	return nil
}

// flagsOf are the flags of kaz cluster rotate for a phase.
func flagsOf(phase change.AuthorityPhase) string {
	return map[change.AuthorityPhase]string{
		change.Trust: "--authorities", change.Issue: "--authorities --issue", change.Finish: "--authorities --finish",
	}[phase]
}

// ownAuthorities refuses a definition that gives programs authorities of their own, which a rotation would not replace.
func ownAuthorities(k definition.Kubernetes) error {
	for program, args := range map[string]map[string]string{
		"apiServer": k.APIServer.ExtraArgs, "controllerManager": k.ControllerManager.ExtraArgs,
	} {
		for _, flag := range []string{"client-ca-file", "etcd-cafile", "requestheader-client-ca-file", "tls-cert-file", "root-ca-file",
			"cluster-signing-cert-file"} {
			if value, has := args[flag]; has {
				return fmt.Errorf("spec.kubernetes.%s.extraArgs.%s: %s: a rotation of the certificate authorities needs the file that "+
					"kubeadm sets: remove the flag, upgrade, and rotate then", program, flag, value)
			}
		}
	}
	return nil
}

// Authority reads a certificate authority from the key vault.
func (r Rotation) Authority(ctx context.Context, what string) (pki.Authority, error) {
	text, err := r.Secret(ctx, what)
	if err != nil {
		return pki.Authority{}, err
	}
	return pki.Parse([]byte(text))
}

// inVault returns the phase that an authority in the key vault has after a phase of the rotation.
func inVault(phase change.AuthorityPhase) pki.Phase {
	return map[change.AuthorityPhase]pki.Phase{change.Trust: pki.Trusting, change.Issue: pki.Issuing, change.Finish: pki.Settled}[phase]
}

// Authorities is the state of a phase of the rotation of the certificate authorities.
type Authorities struct {
	// Phase is the phase that was asked for, "" if the key vault does not have it completely.
	Phase change.AuthorityPhase
	// Published says that all namespaces have the authorities of the key vault.
	Published bool
	// Early counts the pods on nodes that started before the authorities were published, by the names of the nodes.
	Early map[string]int
}

// Authorities reads how far a phase is.
func (r Rotation) Authorities(ctx context.Context, phase change.AuthorityPhase) (Authorities, error) {
	var there Authorities
	for _, what := range []string{Authority, EtcdCA, FrontProxy} {
		authority, err := r.Authority(ctx, what)
		if err != nil || authority.Phase() != inVault(phase) {
			return there, err
		}
		if what != Authority {
			continue
		}
		wrong, err := r.trust().WithoutRoots(ctx, authority.SameTrust)
		if err != nil {
			return there, err
		}
		there.Published = len(wrong) == 0
	}
	there.Phase = phase
	if !there.Published || phase != change.Trust {
		return there, nil
	}
	var err error
	there.Early, err = r.trust().PodsBeforeRoots(ctx)
	return there, err
}

// editAuthorities brings the key vault to a phase, and what machines that join read. The secret of the front proxy comes last, so that
// everything is done when all secrets have the phase.
func (r Rotation) editAuthorities(ctx context.Context, s change.Step) error {
	edit := map[change.AuthorityPhase]func(pki.Authority) (pki.Authority, error){
		change.Trust: func(a pki.Authority) (pki.Authority, error) { return a.Trust(r.Now()) },
		change.Issue: pki.Authority.Issue, change.Finish: pki.Authority.Finish,
	}[s.Phase]
	for _, what := range []string{Authority, EtcdCA, FrontProxy} {
		before, err := r.Authority(ctx, what)
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil {
			return fmt.Errorf("secret %s of the key vault: %w", r.Names.Secret(what), err)
		}
		if what == Authority {
			if err := r.pin(ctx, s.Phase, after); err != nil {
				return err
			}
		}
		if after.Phase() != before.Phase() {
			text, err := after.Bundle()
			if err != nil {
				return err
			}
			if err := r.write(ctx, what, string(text)); err != nil {
				return err
			}
		}
		if what == Authority {
			if err := r.trust().SetDiscovery(ctx, after.Trusted()); err != nil {
				return err
			}
		}
	}
	return nil
}

// pin lets machines that join recognise the cluster by the authority that issues from a phase on.
func (r Rotation) pin(ctx context.Context, phase change.AuthorityPhase, authority pki.Authority) error {
	if phase != change.Issue {
		return nil
	}
	join, err := r.join(ctx)
	if err != nil || join.CACertHash == authority.Pin() {
		return err
	}
	join.CACertHash = authority.Pin()
	return r.writeJoin(ctx, join)
}

func (r Rotation) awaitAuthorities(ctx context.Context, _ change.Step) error {
	authority, err := r.Authority(ctx, Authority)
	if err != nil {
		return err
	}
	return r.trust().AwaitRoots(ctx, r.Join, authority.SameTrust)
}

func (r Rotation) restartPods(ctx context.Context, s change.Step) error {
	return r.trust().RestartPods(ctx, r.Names.With(s.Member), r.Drain)
}

// Settle gives machines that join, and API servers of extensions, the authorities of the key vault. After a restore the cluster may have
// those of before a rotation, and API servers take none away that is there. A cluster without a rotation stays as it is.
func (r Rotation) Settle(ctx context.Context, d definition.Definition) error {
	if d.Authorities == 0 {
		return nil
	}
	authority, err := r.Authority(ctx, Authority)
	if err != nil {
		return err
	}
	frontProxy, err := r.Authority(ctx, FrontProxy)
	if err != nil {
		return err
	}
	if err := r.trust().SetDiscovery(ctx, authority.Trusted()); err != nil {
		return err
	}
	return r.trust().SetClients(ctx, authority.Trusted(), frontProxy.Trusted())
}

// SayNext says what has to be done before the phase after another one.
func (r Rotation) SayNext(phase change.AuthorityPhase) {
	switch phase {
	case change.Trust:
		r.Say("machines and pods trust the next certificate authorities; clients outside of the cluster need them, too: make their "+
			"kubeconfigs anew with kaz cluster kubeconfig %[1]s, and go on with kaz cluster rotate %[1]s %[2]s", r.Names.Cluster,
			flagsOf(change.Issue))
	case change.Issue:
		r.Say("machines have certificates of the new authorities, and accept those of the former ones until "+
			"kaz cluster rotate %[1]s %[2]s; clients outside of the cluster need others before: kaz cluster kubeconfig %[1]s",
			r.Names.Cluster, flagsOf(change.Finish))
	}
}

// Untrusted adds a hint to an error if the kubeconfig does not trust the API server. Its authorities may be older than a
// rotation.
func Untrusted(d definition.Definition, err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
		return err
	}
	return fmt.Errorf("%w: the kubeconfig does not trust the API server: if the certificate authorities were replaced, make a new one "+
		"with kaz cluster kubeconfig %s", err, d.Cluster.Metadata.Name)
}

// Progress is how far the rotation of the certificate authorities of a definition has come, for people. "" for no rotation.
func Progress(d definition.Definition) string {
	return map[change.AuthorityPhase]string{
		change.Issue: "the next are trusted, and the former issue", change.Finish: "the new issue, and the former are trusted",
	}[change.AuthorityPhaseAfter(d.Authorities)]
}
