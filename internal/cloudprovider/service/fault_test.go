package service_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// disturbances are what can go wrong with a write.
var disturbances = map[string]core.Fault{
	"crash":            {Fault: core.FaultCrash},
	"lost reply":       {Fault: core.FaultLost},
	"failed operation": {Fault: core.FaultOperation, Code: "InternalServerError"},
	"throttled":        {Fault: core.FaultError, Status: 429, RetryAfter: 7},
	"busy":             {Fault: core.FaultError, Status: 409, Code: "AnotherOperationInProgress"},
	"changed":          {Fault: core.FaultError, Status: 412},
	"broken":           {Fault: core.FaultError, Status: 500},
	"refused":          {Fault: core.FaultError, Status: 400, Code: "InvalidRequestFormat"},
}

// Whatever happens to any one write, the end is the same and nothing leaks.
func TestAnyWriteCanGoWrong(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 3
	}
	for name, fault := range disturbances {
		if testing.Short() && fault.Fault == core.FaultError {
			continue // what is merely refused changes nothing in Azure
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"PUT", "PATCH", "DELETE"} {
				for nth := 1; disturbed(t, fault, method, nth); nth += stride {
				}
			}
		})
	}
}

// disturbed runs the scenario with the nth write of a method disturbed, and reports
// whether there was one.
func disturbed(t *testing.T, fault core.Fault, method string, nth int) (happened bool) {
	t.Helper()
	t.Run(fmt.Sprintf("%s %d", method, nth), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fault.Method, fault.Times = method, 1
			crashes := make(crashes, 1)
			w := newServiceCluster(t, core.Options{Latency: 1, Crash: crashes.note}, 2)
			before := w.Snapshot()
			fault.Nth = nth
			if err := w.SetFaults([]core.Fault{fault}); err != nil {
				t.Fatal(err)
			}
			w.Forget()
			defer w.startAgain(crashes, func() {})()
			w.liveThrough()
			happened = sent(w.Writes(), method) >= nth
			w.restored(before, w.Snapshot)
		})
	})
	return happened
}

// crashes are the faults that stop a controller.
type crashes chan struct{}

func (c crashes) note(core.Fault) { c <- struct{}{} }

// startAgain runs a controller. When the controller has crashed, it calls meanwhile and runs another controller. The
// returned function ends the wait for a crash.
func (w *serviceCluster) startAgain(crashes crashes, meanwhile func()) (end func()) {
	w.t.Helper()
	return w.startAgainWith(config(), crashes, meanwhile)
}

func (w *serviceCluster) startAgainWith(c service.Config, crashes crashes, meanwhile func()) (end func()) {
	w.t.Helper()
	stop := w.start(c)
	var restarts sync.WaitGroup
	done := make(chan struct{})
	restarts.Go(func() {
		select {
		case <-crashes:
			stop()
			w.Reopen()
			meanwhile()
			w.start(c)
		case <-done:
		}
	})
	return func() {
		close(done)
		restarts.Wait()
	}
}

// restored waits until Azure is as it was before.
func (w *serviceCluster) restored(before map[string]string, now func() map[string]string) {
	w.t.Helper()
	w.restoredBut(before, now, "/microsoft.compute/")
}

// restoredBut is like restored, but resources with this part in their id may stay marked as failed.
func (w *serviceCluster) restoredBut(before map[string]string, now func() map[string]string, failed string) {
	w.t.Helper()
	const patience = 20
	d := ""
	for range patience {
		w.settle()
		after := now()
		for id, text := range after {
			if strings.Contains(strings.ToLower(id), failed) {
				// Machines are not written again without need, so they stay marked as failed after a failed write.
				after[id] = strings.ReplaceAll(text, `"provisioningState": "Failed"`, `"provisioningState": "Succeeded"`)
			}
		}
		if d = cmp.Diff(before, after); d == "" {
			return
		}
	}
	w.t.Errorf("Azure is not as it was before (-before +after):\n%s", d)
}

// liveThrough is the life of three Services, checked on the way.
func (w *serviceCluster) liveThrough() {
	w.t.Helper()
	names := w.createMany(3)
	w.allServed(names)
	w.change(names[0], func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 31000 })
	w.remove(names[1])
	w.until("one is gone", func() bool { return w.gone(names[1]) })
	w.until("the changed port is served", func() bool {
		for _, p := range testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties.Probes {
			if p.Properties.Port == 31000 {
				return true
			}
		}
		return false
	})
	w.settle()
	lb := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties
	ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)
	if len(lb.FrontendIPConfigurations) != 2 || len(lb.LoadBalancingRules) != 2 || len(ips) != 2 || w.members() != 2 {
		w.t.Errorf("two Services have %d frontends, %d rules, %d public IPs and %d members",
			len(lb.FrontendIPConfigurations), len(lb.LoadBalancingRules), len(ips), w.members())
	}
	for _, name := range []string{names[0], names[2]} {
		w.remove(name)
	}
	w.until("all are gone", func() bool { return w.gone(names[0]) && w.gone(names[2]) })
}

func sent(writes []string, method string) (total int) {
	for _, line := range writes {
		if strings.HasPrefix(line, method+" ") {
			total++
		}
	}
	return total
}

// A subnet that Azure began to change and did not finish is written again. Otherwise nothing that refers to the
// subnet could be written.
func TestASubnetThatAzureLeftHalfDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: network.Subnets, Times: 1, Fault: core.FaultOperation,
			Code: "InternalServerError"}}); err != nil {
			t.Fatal(err)
		}
		w.start(config())
		names := []string{"linked", "internal"}
		for _, n := range names {
			w.addKind(n)
			<-time.After(5 * time.Second)
		}
		w.allHaveAddresses(names)
		w.rest(config(), names)
	})
}
