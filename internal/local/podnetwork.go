package local

import (
	"context"
	"fmt"
	"net/netip"
)

// podRange is where the nodes get their ranges of pod addresses from: a /24 for each
// of as many nodes as a local cluster can have.
func podRange() netip.Prefix { return netip.MustParsePrefix("10.244.0.0/14") }

// serviceRange is the range of the addresses of Services.
func serviceRange() netip.Prefix { return netip.MustParsePrefix("10.96.0.0/16") }

// mostRoutes is how many nodes a route table of Azure can lead to.
const mostRoutes = 400

// podNetwork are the flags with which the cloud-controller-manager gives each node a
// range and the route table a route to it. More nodes than a table has room for go
// without routes, as they would on Azure.
func (c *cluster) podNetwork(ctx context.Context) ([]string, error) {
	machines, err := c.azure.machines(ctx)
	if err != nil {
		return nil, err
	}
	routes := len(machines) <= mostRoutes
	if !routes {
		c.progress.say("no routes to pods: %d nodes, and a route table of Azure holds %d routes", len(machines), mostRoutes)
	}
	return []string{
		"--allocate-node-cidrs=true", "--cluster-cidr=" + podRange().String(),
		"--service-cluster-ip-range=" + serviceRange().String(),
		fmt.Sprintf("--configure-cloud-routes=%t", routes),
	}, nil
}
