package cloudconfig_test

import (
	"strings"
	"testing"

	"kaz/internal/cloudconfig"
)

// TestCheckClusterName: load balancers, pools and public IPs are named after the cluster.
func TestCheckClusterName(t *testing.T) {
	for _, name := range []string{"kubernetes", "k", "9", "Prod_1.eu-west_", strings.Repeat("k", 71)} {
		if err := cloudconfig.CheckClusterName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", " ", "a/b", "-a", "_a", ".a", "a-", "a.", "a b", "a%2fb", "ä", "a\n", "a#", "..",
		strings.Repeat("k", 72)} {
		err := cloudconfig.CheckClusterName(name)
		if err == nil || !strings.Contains(err.Error(), "--cluster-name") ||
			!strings.Contains(err.Error(), "must be 1 to 71 letters, digits and . _ -") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
