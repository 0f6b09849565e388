package record

import (
	"context"
	"encoding/json"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/cluster/naming"
)

// NIC is a network interface as far as the load balancers are concerned.
type NIC struct {
	document map[string]any
	id       azure.ID
}

// NIC reads the network interface of a member.
func (st Store) NIC(ctx context.Context, n naming.Names, machine string) (NIC, error) {
	one := NIC{id: n.Group().Resource(NICType, machine+"-nic")}
	doc, err := st.Azure.Get(ctx, one.id)
	if azure.IsNotFound(err) {
		return one, nil
	}
	if err != nil {
		return one, err
	}
	return one, json.Unmarshal(doc, &one.document)
}

const backendPools = "loadBalancerBackendAddressPools"

// addresses are the properties of the IP configurations.
func (n NIC) addresses() []map[string]any {
	properties, _ := n.document["properties"].(map[string]any)
	configurations, _ := properties["ipConfigurations"].([]any)
	var all []map[string]any
	for _, one := range configurations {
		configuration, _ := one.(map[string]any)
		if p, ok := configuration["properties"].(map[string]any); ok {
			all = append(all, p)
		}
	}
	return all
}

// Balanced reports whether a load balancer sends connections to the network interface.
func (n NIC) Balanced() bool {
	return slices.ContainsFunc(n.addresses(), func(p map[string]any) bool {
		pools, _ := p[backendPools].([]any)
		return len(pools) > 0
	})
}

// Unbalance takes the network interface of a machine out of its load balancers. It reports whether there is one.
func (st Store) Unbalance(ctx context.Context, names naming.Names, machine string) (bool, error) {
	n, err := st.NIC(ctx, names, machine)
	if err != nil || n.document == nil {
		return false, err
	}
	return true, st.Rewrite(ctx, n.id, n.document, func(live map[string]any) (map[string]any, error) {
		for _, p := range (NIC{document: live}).addresses() {
			delete(p, backendPools)
		}
		return live, nil
	})
}
