package cloudconfig

import (
	"fmt"
	"regexp"
)

// longestBalancerName leaves room for the ending of the internal load balancer's name in the 80
// characters that Azure allows.
const longestBalancerName = 80 - len("-internal")

// balancerNames is what Azure takes as a name of a load balancer:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
var balancerNames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)

// badBalancerName is what is wrong with the name of a load balancer that gets an internal sibling, "" for
// nothing.
func badBalancerName(name string) string {
	if balancerNames.MatchString(name) && len(name) <= longestBalancerName {
		return ""
	}
	return fmt.Sprintf("must be 1 to %d letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last", longestBalancerName)
}

// CheckClusterName refuses the name of a cluster after which nothing can be named in Azure: load balancers,
// pools and public IPs. With it, what is there under the right name would be taken away for what cannot
// be made.
func CheckClusterName(name string) error {
	if problem := badBalancerName(name); problem != "" {
		return fmt.Errorf("--cluster-name %q: %s: load balancers are named after it", name, problem)
	}
	return nil
}
