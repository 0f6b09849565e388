package cloudprovider

import (
	"kaz/internal/cloudprovider/service"
	"kaz/internal/plan/loadbalancer"
)

// Services returns the controller of Services of type LoadBalancer, which replaces the framework's.
// The cloud adds its Azure settings to settings and d.
func (c *Cloud) Services(cluster string, settings service.Config, d service.Deps) (*service.Controller, error) {
	settings.LoadBalancer = BalancerOf(c.balancer, cluster)
	d.Azure, d.Zones = c.arm, c.zones
	d.Measure = func(operation string) func(error) {
		return c.measured.of(operation, c.balancer.ResourceGroup, c.balancer.NetworkSubscription)
	}
	return service.New(settings, d)
}

// BalancerOf returns the load balancer configuration of a cluster.
func BalancerOf(c loadbalancer.Config, cluster string) loadbalancer.Config {
	c.ClusterName = cluster
	if c.LoadBalancerName == "" {
		c.LoadBalancerName = cluster
	}
	return c
}
