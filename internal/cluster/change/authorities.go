package change

// AuthorityPhase is a phase of the rotation of the certificate authorities. Each phase replaces all machines.
type AuthorityPhase string

// The phases, in their order.
const (
	// Trust lets machines trust the next authorities.
	Trust AuthorityPhase = "trust"
	// Issue lets the next authorities issue the certificates of machines.
	Issue AuthorityPhase = "issue"
	// Finish lets machines forget the former authorities.
	Finish AuthorityPhase = "finish"
)

// Phases are the phases in their order.
func Phases() []AuthorityPhase { return []AuthorityPhase{Trust, Issue, Finish} }

// AuthorityPhaseAfter is the phase that comes next after a number of phases.
func AuthorityPhaseAfter(complete int) AuthorityPhase { return Phases()[complete%len(Phases())] }

// String is a phase as steps have it, "" for none.
func (p AuthorityPhase) String() string {
	return map[AuthorityPhase]string{Trust: "the next are trusted", Issue: "the next issue", Finish: "the former are forgotten"}[p]
}

// The actions of a rotation of the certificate authorities.
const (
	// EditAuthorities changes the key vault and what machines that join read.
	EditAuthorities Action = "edit the certificate authorities:"
	// AwaitAuthorities waits until pods that start get the authorities of the key vault.
	AwaitAuthorities Action = "wait until all namespaces have the certificate authorities"
	// RestartPods replaces the pods of a member that started too early to trust the next authorities.
	RestartPods Action = "start pods anew of member"
)

// publishAuthorities is what comes between the members and the pools of a rotation of the certificate authorities. The controller managers
// of new members publish the authorities to pods, which read them when they start. Pods of new members may have started before that.
func (c Cluster) publishAuthorities(t Target) *Step {
	if t.Authorities == "" {
		return nil
	}
	if !c.Published {
		return &Step{Action: AwaitAuthorities}
	}
	for _, m := range c.Members {
		if m.OldPods && t.Authorities == Trust {
			return m.step(RestartPods, "")
		}
	}
	return nil
}
