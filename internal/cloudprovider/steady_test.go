package cloudprovider_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"

	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/testkit"
)

// TestSteadyStateIsCheap runs a large cluster with Services for an hour without changes. The only
// reads are those of two drift checks.
func TestSteadyStateIsCheap(t *testing.T) {
	count, services := 200, 3
	if !testing.Short() {
		count, services = 5000, 20
	}
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 0)
		var known []*corev1.Node
		for i := range count {
			n := atWork(instanceName(testkit.ScaleSet, i), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i)))
			n.Status.Addresses[0].Address = fmt.Sprintf("10.240.%d.%d", 1+i/250, 1+i%250)
			known = append(known, n)
		}
		r := newRun(t, w, known...)
		r.serve(30 * time.Minute)
		for i := range services {
			r.addService(i)
		}
		r.within(10*time.Minute, "all Services have addresses", func() bool {
			list, err := r.client.CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list.Items {
				if len(s.Status.LoadBalancer.Ingress) == 0 {
					return false
				}
			}
			return true
		})
		<-time.After(time.Hour) // other work has finished
		w.Forget()
		<-time.After(time.Hour)
		reads, writes := w.Reads(), w.Writes()
		if len(reads) == 0 || len(reads) > 60 || len(writes) > 0 {
			t.Errorf("%d reads (%v) and the writes %v in an hour, want at most one read a minute and no write", len(reads),
				countOf(reads), writes)
		}
		t.Logf("%d ready nodes and %d Services: %d reads in an hour", count, services, len(reads))
	})
}

// serve also runs the service controller.
func (r *run) serve(repair time.Duration) {
	r.t.Helper()
	factory := informers.NewSharedInformerFactory(r.client, 0)
	c, err := service.New(service.Config{
		Classes: service.Classes{""}, Syncs: 64, RepairPeriod: repair,
		LoadBalancer: loadbalancer.Config{
			ClusterName: testkit.ClusterName, LoadBalancerName: testkit.ClusterName,
			Location: testkit.Location, Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
			NetworkSubscription: testkit.Subscription, LoadBalancerResourceGroup: testkit.ResourceGroup,
			SecurityGroupName: testkit.SecurityGroup.Name(), SecurityGroupResourceGroup: testkit.ResourceGroup,
			VirtualNetwork: testkit.VNet.Name(), VirtualNetworkResourceGroup: testkit.ResourceGroup, Subnet: "nodes",
			PrivateLinkResourceGroup: testkit.ResourceGroup, PoolByIP: true,
		},
	}, service.Deps{Azure: r.Client, Client: r.client, Informers: factory, Events: &record.FakeRecorder{}})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	factory.Start(ctx.Done())
	r.t.Cleanup(func() {
		stop()
		running.Wait()
		factory.Shutdown()
	})
}

// addService creates a Service like an API server.
func (r *run) addService(i int) {
	r.t.Helper()
	port := int32(8000 + i)
	s := testkit.NewService(fmt.Sprintf("web-%d", i),
		corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: port, NodePort: 22000 + port})
	s.UID = types.UID(fmt.Sprintf("3d2c1b0a-1111-2222-3333-%012x", (i+1)<<4)) // names in Azure omit the last digit
	if err := r.client.Tracker().Create(corev1.SchemeGroupVersion.WithResource("services"), s, s.Namespace); err != nil {
		r.t.Fatal(err)
	}
}
