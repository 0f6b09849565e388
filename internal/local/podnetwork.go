package local

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
)

// mostRoutes is how many routes a route table of Azure holds, of both families.
const mostRoutes = 400

// podNetwork are the flags with which the cloud-controller-manager gives each node a
// range of each family and the route table the routes to them. More nodes than a table
// has room for go without routes, as they would on Azure.
func (c *cluster) podNetwork(ctx context.Context) ([]string, error) {
	machines, err := c.azure.machines(ctx)
	if err != nil {
		return nil, err
	}
	site := c.memory.Site
	needed := len(machines) * len(site.podRanges())
	routes := needed <= mostRoutes
	if !routes {
		c.progress.say("no routes to pods: %d nodes need %d, and a route table of Azure holds %d", len(machines), needed, mostRoutes)
	}
	return []string{
		"--allocate-node-cidrs=true", "--cluster-cidr=" + commas(site.podRanges()),
		"--service-cluster-ip-range=" + commas(site.serviceRanges()),
		fmt.Sprintf("--configure-cloud-routes=%t", routes),
	}, nil
}

// commas is how flags of Kubernetes write ranges.
func commas(ranges []netip.Prefix) string {
	var all []string
	for _, r := range ranges {
		all = append(all, r.String())
	}
	return strings.Join(all, ",")
}
