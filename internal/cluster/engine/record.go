package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
)

// Record is a change of a cluster that has begun and not ended. Azure keeps it, in a template spec, so that any machine can go on.
type Record struct {
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

// target is what the cluster is to be.
func (r Record) target() change.Target {
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
		t.Pools = append(t.Pools, change.PoolTarget{Limits: limitsFor(p),
			Name: p.Metadata.Name, Replicas: p.Spec.Replicas, Autoscaled: p.Spec.Autoscaling != nil,
			Revision: definition.Revision(r.Definition, p.Metadata.Name), Surge: change.Amount(p.Spec.Upgrade.MaxSurge),
			Unavailable: change.Amount(p.Spec.Upgrade.MaxUnavailable)})
	}
	return t
}

func (e *Engine) writeRecord(ctx context.Context, n naming.Names, r Record) error {
	if err := e.keep(ctx, n, r.Definition.Cluster, changeVersion, r); err != nil {
		return fmt.Errorf("record of the change: %w", err)
	}
	return nil
}

// Open reads the change that has begun and not ended, nil for none.
func (e *Engine) Open(ctx context.Context, n naming.Names) (*Record, error) {
	var r Record
	if kept, err := e.kept(ctx, n, changeVersion, &r); kept || err != nil {
		return &r, err
	}
	return e.openDeployment(ctx, n)
}

// openDeployment reads a change that an earlier version of kaz has begun: the parameter of a deployment without resources.
func (e *Engine) openDeployment(ctx context.Context, n naming.Names) (*Record, error) {
	doc, err := e.Azure.Get(ctx, deploymentID(n.Group(), n.Change()))
	if azure.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var d deployment
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	var r Record
	if err := json.Unmarshal(d.Properties.Parameters["change"].Value, &r); err != nil {
		return nil, fmt.Errorf("the change in deployment %s: %w", n.Change(), err)
	}
	return &r, nil
}

// Close forgets the change that has begun. What it did stays.
func (e *Engine) Close(ctx context.Context, n naming.Names) error {
	for _, id := range []azure.ID{versionID(n, changeVersion), deploymentID(n.Group(), n.Change())} {
		if _, err := azure.Do(ctx, e.Azure, azure.Request{Verb: azure.Delete, ID: id}); err != nil && !azure.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// same reports whether two records want the same.
func (r Record) same(other Record) bool {
	return same(r.Definition, other.Definition) && slices.Equal(r.Replace, other.Replace) &&
		len(r.Tokens) > 0 == (len(other.Tokens) > 0) && r.rotatesKeys() == other.rotatesKeys() &&
		r.Authorities == other.Authorities
}

// rotatesKeys says what a record wants of the key of service accounts, or of the one that encrypts Secrets.
func (r Record) rotatesKeys() string {
	if r.Keys == nil {
		return ""
	}
	return fmt.Sprintf("secrets %t, finish %t", r.Keys.Secrets, r.Keys.Finish)
}

func same(a, b definition.Definition) bool { return sameText(a, b) }
