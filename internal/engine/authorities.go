package engine

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"kaz/internal/engine/pki"
	"kaz/internal/plan/cluster/change"
	"kaz/internal/plan/cluster/definition"
	"kaz/internal/plan/cluster/naming"
)

// The secrets of the key vault with certificate authorities.
const (
	authorityName  = "pki-ca"
	etcdName       = "pki-etcd-ca"
	frontProxyName = "pki-front-proxy-ca"
)

// Client is a client of the API server, as its kubeconfig has it: the authorities that it trusts and its certificate, in PEM. Both may be
// empty.
type Client struct{ Roots, Certificate []byte }

// AuthorityRotation is the change of one phase of the rotation of the certificate authorities. The phases come in their order. client is
// the one that makes the change: it has to be accepted after the phase.
func (e *Engine) AuthorityRotation(ctx context.Context, n naming.Names, phase change.AuthorityPhase, client Client) (Record, error) {
	if e.Workload == nil {
		return Record{}, errInside
	}
	r, _, err := changer{e}.deployedRecord(ctx, n)
	if err != nil {
		return r, err
	}
	if next := change.AuthorityPhaseAfter(r.Definition.Authorities); next != phase {
		return r, fmt.Errorf("%s is not the next phase of the rotation of certificate authorities of cluster %s: "+
			"want kaz cluster rotate %s %s", flagsOf(phase), n.Cluster, n.Cluster, flagsOf(next))
	}
	if err := ownAuthorities(r.Definition.Cluster.Spec.Kubernetes); err != nil {
		return r, err
	}
	authority, err := vault{e}.authority(ctx, naming.Of(r.Definition.Cluster), authorityName)
	if err != nil {
		return r, err
	}
	switch {
	case phase == change.Issue && len(client.Roots) > 0 && !authority.TrustedBy(client.Roots):
		return r, fmt.Errorf("the kubeconfig does not trust the next certificate authority of cluster %s: make a new one with kaz cluster "+
			"kubeconfig %s, for each client outside of the cluster, too", n.Cluster, n.Cluster)
	case phase == change.Finish && len(client.Certificate) > 0 && !authority.Accepts(client.Certificate):
		return r, fmt.Errorf("the kubeconfig has a certificate of the former authority of cluster %s, which is to be forgotten: make a "+
			"new one with kaz cluster kubeconfig %s, for each client outside of the cluster, too", n.Cluster, n.Cluster)
	}
	r.Authorities = phase
	r.Definition.Authorities++
	return r, nil
}

// flagsOf are the flags of kaz cluster rotate for a phase.
func flagsOf(phase change.AuthorityPhase) string {
	return map[change.AuthorityPhase]string{
		change.Trust: "--authorities", change.Issue: "--authorities --issue", change.Finish: "--authorities --finish",
	}[phase]
}

// ownAuthorities refuses a definition whose programs have authorities of their own, which a rotation would not replace.
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

// authority reads a certificate authority from the key vault.
func (e vault) authority(ctx context.Context, n naming.Names, what string) (pki.Authority, error) {
	text, err := e.secret(ctx, n, what)
	if err != nil {
		return pki.Authority{}, err
	}
	return pki.Parse([]byte(text))
}

// inVault is how the key vault has an authority after a phase.
func inVault(phase change.AuthorityPhase) pki.Phase {
	return map[change.AuthorityPhase]pki.Phase{change.Trust: pki.Trusting, change.Issue: pki.Issuing, change.Finish: pki.Settled}[phase]
}

// observeAuthorities adds the authorities to what is there, for a phase of their rotation.
func (e observer) observeAuthorities(ctx context.Context, n naming.Names, phase change.AuthorityPhase, in *inside) error {
	for _, what := range []string{authorityName, etcdName, frontProxyName} {
		authority, err := vault(e).authority(ctx, n, what)
		if err != nil {
			return err
		}
		if authority.Phase() != inVault(phase) {
			return nil
		}
		if what != authorityName {
			continue
		}
		wrong, err := e.Workload.WithoutRoots(ctx, authority.SameTrust)
		if err != nil {
			return err
		}
		in.Published = len(wrong) == 0
	}
	in.Authorities = phase
	if !in.Published || phase != change.Trust {
		return nil
	}
	early, err := e.Workload.PodsBeforeRoots(ctx)
	for i, m := range in.Members {
		in.Members[i].OldPods = early[n.With(m.ID())] > 0
	}
	return err
}

// editAuthorities brings the key vault to a phase, and what machines that join read. The secret of the front proxy comes last, so that
// everything is done when all secrets have the phase.
func (w worker) editAuthorities(ctx context.Context, s change.Step) error {
	v := vault{w.Engine}
	edit := map[change.AuthorityPhase]func(pki.Authority) (pki.Authority, error){
		change.Trust: func(a pki.Authority) (pki.Authority, error) { return a.Trust(w.now()) },
		change.Issue: pki.Authority.Issue, change.Finish: pki.Authority.Finish,
	}[s.Phase]
	for _, what := range []string{authorityName, etcdName, frontProxyName} {
		before, err := v.authority(ctx, w.names, what)
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil {
			return fmt.Errorf("secret %s of the key vault: %w", w.names.Secret(what), err)
		}
		if what == authorityName {
			if err := w.pin(ctx, s.Phase, after); err != nil {
				return err
			}
		}
		if after.Phase() != before.Phase() {
			text, err := after.Bundle()
			if err != nil {
				return err
			}
			if err := v.writeSecret(ctx, w.names, what, string(text)); err != nil {
				return err
			}
		}
		if what == authorityName {
			if err := w.Workload.SetDiscovery(ctx, after.Trusted()); err != nil {
				return err
			}
		}
	}
	return nil
}

// pin lets machines that join recognise the cluster by the authority that issues from a phase on.
func (w worker) pin(ctx context.Context, phase change.AuthorityPhase, authority pki.Authority) error {
	if phase != change.Issue {
		return nil
	}
	text, err := vault{w.Engine}.secret(ctx, w.names, tokenName)
	if err != nil {
		return err
	}
	join, err := pki.ParseJoin(text)
	if err != nil || join.CACertHash == authority.Pin() {
		return err
	}
	join.CACertHash = authority.Pin()
	if text, err = join.Text(); err != nil {
		return err
	}
	return vault{w.Engine}.writeSecret(ctx, w.names, tokenName, text)
}

func (w worker) awaitAuthorities(ctx context.Context, _ change.Step) error {
	authority, err := vault{w.Engine}.authority(ctx, w.names, authorityName)
	if err != nil {
		return err
	}
	return w.Workload.AwaitRoots(ctx, w.waits.Join, authority.SameTrust)
}

func (w worker) restartPods(ctx context.Context, s change.Step) error {
	return w.Workload.RestartPods(ctx, w.names.With(s.Member), w.waits.Drain.Timeout)
}

// settleAuthorities gives machines that join, and API servers of extensions, the authorities of the key vault. After a restore the
// cluster may have those of before a rotation, and API servers take none away that is there.
func (e changer) settleAuthorities(ctx context.Context, n naming.Names, r Record) error {
	if r.Definition.Authorities == 0 {
		return nil
	}
	authority, err := vault(e).authority(ctx, n, authorityName)
	if err != nil {
		return err
	}
	frontProxy, err := vault(e).authority(ctx, n, frontProxyName)
	if err != nil {
		return err
	}
	if err := e.Workload.SetDiscovery(ctx, authority.Trusted()); err != nil {
		return err
	}
	return e.Workload.SetClients(ctx, authority.Trusted(), frontProxy.Trusted())
}

// sayNext says what has to be done before the next phase.
func (e changer) sayNext(n naming.Names, r Record) {
	switch r.Authorities {
	case change.Trust:
		e.say("machines and pods trust the next certificate authorities; clients outside of the cluster need them, too: make their "+
			"kubeconfigs anew with kaz cluster kubeconfig %[1]s, and go on with kaz cluster rotate %[1]s %[2]s", n.Cluster,
			flagsOf(change.Issue))
	case change.Issue:
		e.say("machines have certificates of the new authorities, and accept those of the former ones until "+
			"kaz cluster rotate %[1]s %[2]s; clients outside of the cluster need others before: kaz cluster kubeconfig %[1]s", n.Cluster,
			flagsOf(change.Finish))
	}
}

// withAuthorities is a record whose machines have the authorities of the cluster, which no file says. deployed is the cluster's definition.
func (r Record) withAuthorities(deployed *definition.Definition) Record {
	if r.Authorities == "" && deployed != nil {
		r.Definition.Authorities = deployed.Authorities
	}
	return r
}

// untrusted adds to an error that a kubeconfig of before a rotation does not trust the API server.
func untrusted(d definition.Definition, err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
		return err
	}
	return fmt.Errorf("%w: the kubeconfig does not trust the API server: if the certificate authorities were replaced, make a new one "+
		"with kaz cluster kubeconfig %s", err, d.Cluster.Metadata.Name)
}

// phaseOf is how far the rotation of the certificate authorities of a definition has come, for people. "" for no rotation.
func phaseOf(d definition.Definition) string {
	return map[change.AuthorityPhase]string{
		change.Issue: "the next are trusted, and the former issue", change.Finish: "the new issue, and the former are trusted",
	}[change.AuthorityPhaseAfter(d.Authorities)]
}
