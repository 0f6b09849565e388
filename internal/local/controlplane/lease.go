package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// leasesPath is where node leases are.
const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

// leaseList is what is needed of a list of leases.
type leaseList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Holder string `json:"holderIdentity"`
		} `json:"spec"`
	} `json:"items"`
}

// releaseLeases removes the leases that an earlier KWOK of this cluster held. KWOK names itself anew at each start and
// would wait for them to run out; a kubelet, which holds its lease under the name of its node, would not.
func (r *run) releaseLeases(ctx context.Context) error {
	data, err := r.cluster.do(ctx, http.MethodGet, r.server+leasesPath)
	if err != nil {
		return fmt.Errorf("list node leases: %w", err)
	}
	var leases leaseList
	if err := json.Unmarshal(data, &leases); err != nil {
		return fmt.Errorf("list node leases: %w", err)
	}
	for _, l := range leases.Items {
		if l.Spec.Holder == l.Metadata.Name {
			continue
		}
		if _, err := r.cluster.do(ctx, http.MethodDelete, r.server+leasesPath+"/"+l.Metadata.Name); err != nil {
			return fmt.Errorf("release the lease of node %s: %w", l.Metadata.Name, err)
		}
	}
	return nil
}
