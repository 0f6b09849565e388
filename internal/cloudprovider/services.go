package cloudprovider

import (
	"kaz/internal/cloudprovider/service"
	"kaz/internal/plan/loadbalancer"
)

// Services is the controller of the cluster's Services of type LoadBalancer, which
// stands in the place of the framework's own. The cloud fills in what settings and
// d say of Azure.
func (c *Cloud) Services(cluster string, settings service.Config, d service.Deps) (*service.Controller, error) {
	settings.LoadBalancer = BalancerOf(c.balancer, cluster)
	d.Azure, d.Zones = c.door, c.zones
	d.Measure = func(operation string) func(error) {
		return c.measured.of(operation, c.balancer.ResourceGroup, c.balancer.NetworkSubscription)
	}
	return service.New(settings, d)
}

// BalancerOf is the load balancer configuration of a cluster.
func BalancerOf(c loadbalancer.Config, cluster string) loadbalancer.Config {
	c.ClusterName = cluster
	if c.LoadBalancerName == "" {
		c.LoadBalancerName = cluster
	}
	return c
}
