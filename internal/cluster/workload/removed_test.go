package workload

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRemoved checks which APIs stop an upgrade: those that are in use and that the version no longer has.
func TestRemoved(t *testing.T) {
	const text = `# HELP apiserver_requested_deprecated_apis [STABLE] Gauge of deprecated APIs that have been requested
# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.37",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.37",resource="flowschemas",subresource="status",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="example.com",removed_release="1.40",resource="widgets",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="example.com",removed_release="1.36",resource="gone",subresource="",version="v1"} 0
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
# TYPE process_open_fds gauge
process_open_fds 12
`
	c := &Cluster{Metrics: func(context.Context) ([]byte, error) { return []byte(text), nil }}
	for version, want := range map[string][]string{
		"1.36.9": nil,
		"1.37.0": {"flowcontrol.apiserver.k8s.io/v1beta3 flowschemas (removed in 1.37)"},
		"1.40.1": {"example.com/v1 widgets (removed in 1.40)", "flowcontrol.apiserver.k8s.io/v1beta3 flowschemas (removed in 1.37)"},
	} {
		got, err := c.Removed(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
	}
	c.Metrics = func(context.Context) ([]byte, error) { return []byte("{"), nil }
	if _, err := c.Removed(t.Context(), "1.37.0"); err == nil || !strings.HasPrefix(err.Error(), "metrics of the API server: ") {
		t.Errorf("metrics that cannot be read: %v", err)
	}
}
