package cloudprovider

import "kaz/internal/cloudprovider/service"

// Services is the controller of the cluster's Services of type LoadBalancer, which
// stands in the place of the framework's own. The cloud fills in what settings and
// d say of Azure.
func (c *Cloud) Services(cluster string, settings service.Config, d service.Deps) (*service.Controller, error) {
	settings.LoadBalancer = c.balancer
	settings.LoadBalancer.ClusterName = cluster
	if settings.LoadBalancer.LoadBalancerName == "" {
		settings.LoadBalancer.LoadBalancerName = cluster
	}
	d.Azure = c.door
	return service.New(settings, d)
}
