package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// leasesPath is the API path of node leases.
const leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

// leaseList is a list of leases with the fields that releaseLeases reads.
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

// releaseLeases deletes the leases of an earlier KWOK process. KWOK has a new name at each start and would wait until they
// expire. A kubelet holds the lease under the name of its node, so its lease stays.
func (r *run) releaseLeases(ctx context.Context) error {
	data, err := r.serverClient.do(ctx, http.MethodGet, r.server+leasesPath)
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
		if _, err := r.serverClient.do(ctx, http.MethodDelete, r.server+leasesPath+"/"+l.Metadata.Name); err != nil {
			return fmt.Errorf("release the lease of node %s: %w", l.Metadata.Name, err)
		}
	}
	return nil
}
