package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/rotate"
)

// UnitStatus is the state of a unit in Azure.
type UnitStatus struct {
	Name  string `json:"name"`
	State string `json:"state"` // that of its deployment
	Since string `json:"since"`
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
	group := n.Group()
	status := Status{Cluster: n.Cluster, ResourceGroup: group.Name(), State: Absent}
	s, err := st.Read(ctx, n)
	if err != nil || s.Main == nil && s.Definition == nil {
		return status, err
	}
	open, err := st.Open(ctx, n)
	if err != nil {
		return status, err
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
		status.Units = append(status.Units, UnitStatus{name, d.Properties.ProvisioningState, d.Properties.Timestamp})
	}
	slices.SortFunc(status.Units, func(a, b UnitStatus) int { return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Name, b.Name)) })
	for _, r := range s.Resources {
		if strings.EqualFold(r.Tags[naming.ClusterTag], n.Cluster) {
			status.Resources++
		}
	}
	return status, nil
}
