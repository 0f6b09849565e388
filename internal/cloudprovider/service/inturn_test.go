package service_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
)

// A hundred instances of one scale set join while Azure refuses requests for them that come at the
// same time. None is refused, each is written once, and the time is that of the requests' first
// answers and one operation, not of a hundred operations.
func TestManyInstancesJoinInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const machines = 100
		w := newServiceCluster(t, core.Options{Latency: 1, Throttle: true}, machines+1)
		var joining []string
		for i := range machines {
			joining = append(joining, "nodes0-"+instanceSuffix(i+1))
			w.exclude(joining[i], "true")
		}
		w.start(config())
		w.allServed(w.createMany(2))
		w.settle()
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: compute.ScaleSetInstances, Fault: core.FaultOverlap}}); err != nil {
			t.Fatal(err)
		}
		w.Forget()
		began := time.Now()
		for _, name := range joining {
			w.editNode(name, func(n *corev1.Node) { n.Labels = nil })
		}
		w.until("all are in", func() bool { return w.members() == machines+1 })
		took := time.Since(began)
		w.settle()
		writes, refused, lists := 0, 0, 0
		for _, r := range w.Requests() {
			instance := strings.Contains(r.Path, "/virtualMachines/") && r.Method == "PUT"
			switch {
			case instance && r.Status == 409:
				refused++
			case instance:
				writes++
			case r.IsRead() && strings.HasSuffix(r.Path, "/virtualMachines"):
				lists++
			}
		}
		t.Logf("%v: %d writes, %d refused, %d lists", took, writes, refused, lists)
		if writes != machines || refused > 0 || lists > 5 {
			t.Errorf("%d writes, %d refused, %d lists; want %d, none and at most 5", writes, refused, lists, machines)
		}
		if most := machines*4*time.Second + 2*time.Minute; took > most {
			t.Errorf("it took %v, want at most %v", took, most)
		}
	})
}

// instanceSuffix is the number of an instance in the names of machines: in base 36.
func instanceSuffix(i int) string { return fmt.Sprintf("%06s", strconv.FormatInt(int64(i), 36)) }
