package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

// Change is a change of a cluster that has begun and not ended. Azure keeps it, in a template spec, so that any machine can go on.
type Change struct {
	Definition definition.Definition `json:"definition"`
	Through    map[string]string     `json:"through,omitempty"`
	Replace    []string              `json:"replace,omitempty"`
	// Tokens are the IDs of the join tokens that a new one replaces. They are no secrets.
	Tokens []string `json:"tokens,omitempty"`
	// Keys is the rotation of the key of service accounts or of the one that encrypts Secrets, nil for none.
	Keys *change.KeyRotation `json:"keys,omitempty"`
	// Authorities is the phase of the rotation of the certificate authorities, "" for none. The definition counts it already.
	Authorities change.AuthorityPhase `json:"authorities,omitempty"`
	// AllowRemoved lets an upgrade remove APIs that clients use.
	AllowRemoved bool `json:"allowRemoved,omitempty"`
	// Manifests says that manifests are applied which the cluster does not have, also those of a newer kaz for the same definition.
	Manifests bool   `json:"manifests,omitempty"`
	Began     string `json:"began"`
	// Saved is where the backup of etcd is that the change made.
	Saved string `json:"saved,omitempty"`
	// Restore is the restore with which the change begins, nil for none.
	Restore *change.Restore `json:"restore,omitempty"`
}

// Target is what the cluster is to be.
func (r Change) Target() change.Target {
	spec := r.Definition.Cluster.Spec
	t := change.Target{Version: spec.Kubernetes.Version, Revision: definition.Revision(r.Definition, ""), Through: r.Through,
		Members: spec.ControlPlane.Replicas, InPlace: spec.ControlPlane.Upgrade.Strategy == "InPlace", Replace: map[string]bool{}}
	for _, id := range r.Replace {
		t.Replace[id] = true
	}
	t.Tokens, t.Keys, t.Authorities = map[string]bool{}, r.Keys, r.Authorities
	for _, id := range r.Tokens {
		t.Tokens[id] = true
	}
	for _, p := range r.Definition.Pools {
		t.Pools = append(t.Pools, change.PoolTarget{Limits: LimitsFor(p),
			Name: p.Metadata.Name, Replicas: p.Spec.Replicas, Autoscaled: p.Spec.Autoscaling != nil,
			Revision: definition.Revision(r.Definition, p.Metadata.Name), Surge: change.Amount(p.Spec.Upgrade.MaxSurge),
			Unavailable: change.Amount(p.Spec.Upgrade.MaxUnavailable)})
	}
	return t
}

// WriteChange records a change.
func (st Store) WriteChange(ctx context.Context, n naming.Names, r Change) error {
	if err := st.Keep(ctx, n, r.Definition.Cluster, ChangeVersion, r); err != nil {
		return fmt.Errorf("record of the change: %w", err)
	}
	return nil
}

// Open reads the change that has begun and not ended, nil for none.
func (st Store) Open(ctx context.Context, n naming.Names) (*Change, error) {
	var r Change
	if kept, err := st.kept(ctx, n, ChangeVersion, &r); kept || err != nil {
		return &r, err
	}
	return st.openDeployment(ctx, n)
}

// openDeployment reads a change that an earlier version of kaz has begun: the parameter of a deployment without resources.
func (st Store) openDeployment(ctx context.Context, n naming.Names) (*Change, error) {
	doc, err := st.Azure.Get(ctx, DeploymentID(n.Group(), n.Change()))
	if azure.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var d Deployment
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	var r Change
	if err := json.Unmarshal(d.Properties.Parameters["change"].Value, &r); err != nil {
		return nil, fmt.Errorf("the change in deployment %s: %w", n.Change(), err)
	}
	return &r, nil
}

// Close forgets the change that has begun. What it did stays.
func (st Store) Close(ctx context.Context, n naming.Names) error {
	return st.Delete(ctx, VersionID(n, ChangeVersion), DeploymentID(n.Group(), n.Change()))
}

// Same reports whether two changes want the same.
func (r Change) Same(other Change) bool {
	return SameText(r.Definition, other.Definition) && slices.Equal(r.Replace, other.Replace) &&
		len(r.Tokens) > 0 == (len(other.Tokens) > 0) && r.rotatesKeys() == other.rotatesKeys() &&
		r.Authorities == other.Authorities
}

// rotatesKeys says what a change wants of the key of service accounts, or of the one that encrypts Secrets.
func (r Change) rotatesKeys() string {
	if r.Keys == nil {
		return ""
	}
	return fmt.Sprintf("secrets %t, finish %t", r.Keys.Secrets, r.Keys.Finish)
}

// ErrOpen is in the chain of an error about a change that has begun and not ended.
var ErrOpen = errors.New("another change of the cluster has begun and not ended: end it with kaz cluster resume, or forget it with " +
	"kaz cluster abort")

// WithSecrets returns the change with what the deployed definition says of the authorities and of the keys that encrypt Secrets. No file
// of a definition says it.
func (r Change) WithSecrets(deployed *definition.Definition) Change {
	if r.Authorities == "" && deployed != nil {
		r.Definition.Authorities = deployed.Authorities
	}
	if deployed != nil && (r.Keys == nil || !r.Keys.Secrets) {
		r.Definition.Encrypted = deployed.Encrypted
	}
	return r
}
