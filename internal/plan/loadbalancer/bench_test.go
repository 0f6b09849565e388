package loadbalancer_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// crowd is a cluster with many Services and nodes, as Azure holds it when all are
// served.
func crowd(tb testing.TB, services, nodes int) (loadbalancer.Input, *world) {
	tb.Helper()
	in := loadbalancer.Input{Config: config(), Nodes: machines(nodes)}
	for i := range services {
		s := service(fmt.Sprintf("web-%d", i), tcp(80, int32(30000+i)))
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	return in, newWorld(nodes)
}

// The whole decision at as many Services as one load balancer takes, but two, and 1,000
// nodes: with nothing to change, with one Service to change, and with everything to
// make.
func BenchmarkPlan(b *testing.B) {
	const many, nodes = 298, 1000
	in, w := crowd(b, many, nodes)
	fresh := w.clone()
	if _, err := w.commit(in); err != nil {
		b.Fatal(err)
	}
	settled := in
	settled.Have = w.snapshot()
	one := settled
	one.Services = []loadbalancer.Service{{Service: service("web-7", tcp(80, 30007), tcp(443, 31007))}}
	all := in
	g, _, err := loadbalancer.Desired(withHave(in, fresh))
	if err != nil {
		b.Fatal(err)
	}
	ips, err := plan.Diff(fresh.snapshot(), g)
	if err != nil || fresh.apply(ips) != nil {
		b.Fatal(err)
	}
	all.Have = fresh.snapshot()
	gone := settled
	gone.Services = nil
	for _, s := range settled.Services {
		gone.Services = append(gone.Services, loadbalancer.Service{Service: s.Service, Gone: true})
	}
	half := settled
	half.Services = gone.Services[:many/2]
	for _, bench := range []struct {
		name  string
		in    loadbalancer.Input
		steps int
	}{{"unchanged", settled, 0}, {"one changed", one, 2}, {"all new", all, nodes + 3}, {"half gone", half, many/2 + 2}, {"all gone", gone, many + nodes + 3}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				g, problems, err := loadbalancer.Desired(bench.in)
				if err != nil || len(problems) > 0 {
					b.Fatal(err, problems)
				}
				p, err := plan.Diff(bench.in.Have, g)
				if err != nil || len(p.Steps) != bench.steps {
					b.Fatal(err, len(p.Steps))
				}
			}
		})
	}
}

// The decision at 1,000 Services over four load balancers with pools of addresses, and
// 5,000 nodes: with nothing to change, and with a node that comes.
func BenchmarkSeveral(b *testing.B) {
	const services, nodes = 1000, 5000
	in, w := crowd(b, services, 0)
	in.Config.PoolByIP = true
	for i := range 4 {
		in.Config.Balancers = append(in.Config.Balancers, loadbalancer.Balancer{Name: fmt.Sprintf("lb%d", i), AllowPlacement: true, PrimaryVMSet: fmt.Sprintf("np%d", i)})
	}
	for i, n := range machines(nodes) {
		n.Spec.ProviderID = fmt.Sprintf("azure://%snp%d/virtualMachines/%d", compute+"virtualMachineScaleSets/", i%4, i)
		n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", 1+i/40000, i/200, i%200)}}
		in.Nodes = append(in.Nodes, n)
	}
	in.Complete = true
	if _, err := w.commit(in); err != nil {
		b.Fatal(err)
	}
	settled := withHave(in, w)
	fewer := settled
	fewer.Nodes = settled.Nodes[1:]
	for _, bench := range []struct {
		name  string
		in    loadbalancer.Input
		steps int
	}{{"unchanged", settled, 0}, {"a node goes", fewer, 1}} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g, problems, err := loadbalancer.Desired(bench.in)
				if err != nil || len(problems) > 0 {
					b.Fatal(err, problems)
				}
				p, err := plan.Diff(bench.in.Have, g)
				if err != nil || len(p.Steps) != bench.steps {
					b.Fatal(err, len(p.Steps))
				}
			}
		})
	}
}

func withHave(in loadbalancer.Input, w *world) loadbalancer.Input {
	in.Have = w.snapshot()
	return in
}
