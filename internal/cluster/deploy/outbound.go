package deploy

import (
	"context"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cluster/units"
)

// outbound gives the load balancer of outbound traffic the addresses and the timeout of the definition. The template does not
// write it when it exists, because the cloud-controller-manager keeps Services in it. outbound reports whether it wrote.
func (d Deployer) outbound(ctx context.Context, w work) (bool, error) {
	cluster, names := w.plan.Definition.Cluster, w.plan.Names
	id := names.Group().Resource(network.LoadBalancers, names.OutboundBalancer())
	if cluster.Spec.Network.Outbound.Type != "LoadBalancer" || !w.state.Has(id) { // or it was made as it must be
		return false, nil
	}
	const attempts = 3 // because others write it at the same time
	var last error
	for range attempts {
		have, err := d.Azure.Get(ctx, id)
		if err != nil {
			return false, err
		}
		next, changes, err := units.Outbound(cluster, have)
		if err != nil || len(changes) == 0 {
			return false, err
		}
		d.Sayf("change load balancer %s: %s", id.Name(), strings.Join(changes, ", "))
		_, last = azure.Do(ctx, d.Azure, azure.Request{Verb: azure.Put, ID: id, Body: next, IfMatch: have.Etag(), Unseen: true})
		if azure.KindOf(last) != azure.Changed {
			return last == nil, last
		}
	}
	return false, last
}
