package service_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"kaz/internal/localazure/core"
)

// A Service is deleted while no controller runs. The next controller gets its first answer from a replica of Azure
// that lags behind and does not have the resources. The finalizer stays until nothing of the Service is left in
// Azure.
func TestALaggingReplicaDoesNotReleaseAService(t *testing.T) {
	for _, fullType := range []string{"Microsoft.Network/loadBalancers", "Microsoft.Network/publicIPAddresses", ""} {
		synctest.Test(t, func(t *testing.T) {
			w := newServiceCluster(t, core.Options{}, 2)
			stop := w.start(config())
			w.allServed(w.createMany(1))
			w.settle()
			stop()
			w.remove("web-0")
			if err := w.SetFaults([]core.Fault{{Method: "GET", Type: fullType, Fault: core.FaultAbsent, Times: 1}}); err != nil {
				t.Fatal(err)
			}
			w.startWith(config(), w.OtherClient())
			w.until("the Service is gone", func() bool { return w.gone("web-0") })
			w.settle()
			for id := range w.Snapshot() {
				if strings.Contains(strings.ToLower(id), "/loadbalancers/") || strings.Contains(strings.ToLower(id), "/publicipaddresses/") {
					t.Errorf("%q: the Service is gone and left %s", fullType, id)
				}
			}
		})
	}
}
