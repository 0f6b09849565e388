package loadbalancer_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

// TestAConflictNamesBothSides checks the problem of a Service that cannot have its port. It names the port, and the owner
// of the port as far as that is known.
func TestAConflictNamesBothSides(t *testing.T) {
	const internal = "service.beta.kubernetes.io/azure-load-balancer-internal"
	for name, c := range map[string]struct {
		first, second map[string]string
		ip            string // of the second one's spec
		as            func(in *loadbalancer.Input, first, second *v1.Service)
		wants         []string
	}{
		"public IP by name": {
			second: map[string]string{key.PublicIPName.Name: "kubernetes-a3d2c1b0a111122223333444455aa5"}, as: others,
			wants: []string{"public IP kubernetes-a3d2c1b0a111122223333444455aa5 (20.1.0.2)", key.PublicIPName.Name +
				`: "kubernetes-a3d2c1b0a111122223333444455aa5"`, "Service default/first "},
		},
		"public IP by address": {
			ip: "20.1.0.2", as: together, wants: []string{"(20.1.0.2)", `spec.loadBalancerIP: "20.1.0.2"`, "Service default/first "},
		},
		"private address": {
			first:  map[string]string{internal: "true", key.IPv4.Name: "10.0.0.9"},
			second: map[string]string{internal: "true", key.IPv4.Name: "10.0.0.9"}, as: others,
			wants: []string{"address 10.0.0.9", key.IPv4.Name + `: "10.0.0.9"`, "Service default/first "},
		},
		"both are new": {
			first:  map[string]string{internal: "true", key.IPv4.Name: "10.0.0.9"},
			second: map[string]string{internal: "true", key.IPv4.Name: "10.0.0.9"},
			wants:  []string{"address 10.0.0.9", key.IPv4.Name + `: "10.0.0.9"`, "Service default/first "},
		},
		"known by a tag alone": {ip: "20.1.0.2", as: alone, wants: []string{"Service default/first "}},
		"unknown owner": {
			first:  map[string]string{internal: "true", key.IPv4.Name: "10.0.0.9"},
			second: map[string]string{internal: "true", key.IPv4.Name: "10.0.0.9"}, as: alone,
			wants: []string{" of an unknown owner "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			first, second := service("first", tcp(80, 30080)), service("second", tcp(80, 30081))
			first.UID, second.UID = "3d2c1b0a-1111-2222-3333-444455aa5", "3d2c1b0a-1111-2222-3333-444455aa6"
			first.Annotations, second.Annotations, second.Spec.LoadBalancerIP = c.first, c.second, c.ip
			in := loadbalancer.Input{Config: config(), Nodes: machines(2),
				Services: []loadbalancer.Service{{Service: first}, {Service: second}}}
			if c.as != nil {
				in.Services = in.Services[:1]
				if _, err := w.commit(in); err != nil {
					t.Fatal(err)
				}
				c.as(&in, first, second)
			}
			rounds, err := w.commit(in)
			if err != nil || len(rounds[0].problems) != 1 {
				t.Fatalf("%v, %v", err, rounds[0].problems)
			}
			found := rounds[0].problems[0]
			if found.Object != "default/second" || found.Warning || found.Reason != problem.Conflict {
				t.Errorf("found %v", found)
			}
			for _, want := range append(c.wants, "port 80/Tcp", `rule "a3d2c1b0a111122223333444455aa5-TCP-80"`, "allowed is") {
				if !strings.Contains(found.Message, want) {
					t.Errorf("got %q, and not %q", found.Message, want)
				}
			}
		})
	}
}

func others(in *loadbalancer.Input, first, second *v1.Service) {
	in.Others, in.Services = []*v1.Service{first}, []loadbalancer.Service{{Service: second}}
}

func together(in *loadbalancer.Input, _, second *v1.Service) {
	in.Services = append(in.Services, loadbalancer.Service{Service: second})
}

func alone(in *loadbalancer.Input, _, second *v1.Service) {
	in.Services = []loadbalancer.Service{{Service: second}}
}

// TestASharedAddressIsReportedWithItsServices checks that a Service that would take the address away
// from the other Services of its frontend gets a problem that names them.
func TestASharedAddressIsReportedWithItsServices(t *testing.T) {
	w := newSubscription(2)
	w.put(network+"publicIPAddresses/mine",
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9"}}`))
	first, second := service("first", tcp(80, 30080)), service("second", tcp(81, 30081))
	first.UID, second.UID = "3d2c1b0a-1111-2222-3333-444455aa5", "3d2c1b0a-1111-2222-3333-444455aa6"
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: first}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	second.Spec.LoadBalancerIP = "20.1.0.2"
	together(&in, first, second)
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	first.Annotations = map[string]string{key.PublicIPName.Name: "mine"}
	rounds, err := w.commit(in)
	if err != nil || len(rounds[0].problems) != 1 || rounds[0].problems[0].Object != "default/first" {
		t.Fatalf("%v, %v", err, rounds[0].problems)
	}
	for _, want := range []string{`"a3d2c1b0a111122223333444455aa6-TCP-81" of Service default/second`,
		`asked for is public IP mine (20.9.9.9), named by annotation ` + key.PublicIPName.Name + `: "mine"`} {
		if reported := rounds[0].problems[0].Message; !strings.Contains(reported, want) {
			t.Errorf("got %q, and not %q", reported, want)
		}
	}
}
