package loadbalancer

import (
	"encoding/json"

	"kaz/internal/plan"
)

// migrations have Azure turn pools of network interfaces into pools of addresses, where
// that is asked for. Otherwise the interfaces leave, and for a while nobody is in.
func (f *facts) migrations(all []*balancer, b batch) (nodes []plan.Node, waits []string) {
	if !f.Config.PoolByIP || !f.Config.MigrateByAPI {
		return nil, nil
	}
	for _, lb := range all {
		if !lb.stays || !f.fills(lb.side) || !f.byIP(lb.side) {
			continue
		}
		var names []string
		for _, id := range f.poolsOfInterfaces(lb) {
			names = append(names, id.Name())
			waits = append(waits, "pool "+id.Name()+" of "+lb.side.id.Name()+" is brought up to date when it has addresses")
		}
		if len(names) == 0 {
			continue
		}
		body, err := json.Marshal(map[string][]string{"pools": names})
		if err != nil {
			continue // a list of texts can be written
		}
		nodes = append(nodes, plan.Action(lb.side.id, "migrateToIpBased", body, "its pools list addresses from now on", b.names()...))
	}
	return nodes, waits
}
