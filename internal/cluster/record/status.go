package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/rotate"
)

// UnitStatus is the state of a unit in Azure.
type UnitStatus struct {
	Name  string `json:"name"`
	State string `json:"state"` // that of its deployment
	Since string `json:"since"`
	// Began is when its deployment began, zero if Azure does not say it.
	Began time.Time `json:"-"`
}

const (
	// Absent is the state of a cluster that was not deployed.
	Absent = "Absent"
	// Forgotten is the state of a cluster after Azure has deleted its last deployment from the history.
	Forgotten = "Forgotten"
)

// Status is the state of a cluster in Azure.
type Status struct {
	Cluster       string   `json:"cluster"`
	ResourceGroup string   `json:"resourceGroup"`
	State         string   `json:"state"` // that of the last deployment, "Absent" for none, "Forgotten" if Azure no longer has it
	Since         string   `json:"since,omitempty"`
	Version       string   `json:"version,omitempty"`
	APIServer     string   `json:"apiServer,omitempty"`
	Pools         []string `json:"pools,omitempty"`
	Change        string   `json:"change,omitempty"` // that has begun and not ended
	// Authorities is how far a rotation of the certificate authorities has come.
	Authorities string `json:"authorities,omitempty"`
	// Secrets says whether Secrets are encrypted in etcd.
	Secrets string `json:"secrets,omitempty"`
	// OwnKeys says that API servers encrypt Secrets with the file of a flag of the definition.
	OwnKeys bool         `json:"-"`
	Units   []UnitStatus `json:"units,omitempty"`
	// Resources is the number of resources with the tag of the cluster.
	Resources int `json:"resources"`
}

// Status reads the state of a cluster.
func (st Store) Status(ctx context.Context, n naming.Names) (Status, error) {
	s, open, err := st.readWithChange(ctx, n)
	return s.status(n, open), err
}

// readWithChange reads the state of a cluster, with its open change if there is one.
func (st Store) readWithChange(ctx context.Context, n naming.Names) (State, *Change, error) {
	s, err := st.Read(ctx, n)
	if err != nil || s.absent() {
		return s, nil, err
	}
	open, err := st.Open(ctx, n)
	return s, open, err
}

// absent reports whether a cluster was not deployed.
func (s State) absent() bool { return s.Main == nil && s.Definition == nil }

// status sums up the state of a cluster with its open change, nil for none.
func (s State) status(n naming.Names, open *Change) Status {
	status := Status{Cluster: n.Cluster, ResourceGroup: n.Group().Name(), State: Absent}
	if s.absent() {
		return status
	}
	if open != nil {
		status.Change = fmt.Sprintf("to version %s, since %s", open.Definition.Cluster.Spec.Kubernetes.Version, open.Began)
		if open.Authorities != "" {
			status.Change = fmt.Sprintf("certificate authorities: %s, since %s", open.Authorities, open.Began)
		}
	}
	status.State = Forgotten
	if s.Main != nil {
		status.State, status.Since = s.Main.Properties.ProvisioningState, s.Main.Properties.Timestamp
	}
	if d := s.Definition; d != nil {
		known := naming.Of(d.Cluster)
		status.Version, status.APIServer = d.Cluster.Spec.Kubernetes.Version, known.Host()
		status.Authorities, status.Secrets = rotate.Progress(*d), rotate.EncryptionOf(*d)
		_, status.OwnKeys = d.Cluster.Spec.Kubernetes.APIServer.ExtraArgs[definition.EncryptionFlag]
		for _, pool := range d.Pools {
			status.Pools = append(status.Pools, pool.Metadata.Name)
		}
	}
	for name, d := range s.Units {
		unit := UnitStatus{Name: name, State: d.Properties.ProvisioningState, Since: d.Properties.Timestamp, Began: d.Began()}
		status.Units = append(status.Units, unit)
	}
	slices.SortFunc(status.Units, func(a, b UnitStatus) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Name, b.Name)) })
	for _, r := range s.Resources {
		if strings.EqualFold(r.Tags[naming.ClusterTag], n.Cluster) {
			status.Resources++
		}
	}
	return status
}
