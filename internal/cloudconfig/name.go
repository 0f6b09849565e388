package cloudconfig

import (
	"fmt"
	"regexp"
)

// longestBalancerName leaves room for the suffix of the internal load balancer in the 80 characters
// that Azure allows.
const longestBalancerName = 80 - len("-internal")

// balancerNames matches what Azure accepts as a name of a load balancer:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
var balancerNames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)

// badBalancerName returns what is wrong with the name of a load balancer that may get an internal
// sibling, or "".
func badBalancerName(name string) string {
	if balancerNames.MatchString(name) && len(name) <= longestBalancerName {
		return ""
	}
	return fmt.Sprintf("must be 1 to %d letters, digits and . _ - with a letter or digit first, and a letter, digit or _ last",
		longestBalancerName)
}

// CheckClusterName returns an error if Azure does not accept resources named after the cluster: load
// balancers, backend pools and public IPs. Without this check, a wrong name would delete the existing
// resources and fail to create new ones.
func CheckClusterName(name string) error {
	if problem := badBalancerName(name); problem != "" {
		return fmt.Errorf("--cluster-name %q: %s: load balancers are named after it", name, problem)
	}
	return nil
}
