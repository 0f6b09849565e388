package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
)

// placedLocally is a story with web of policy Local. Its endpoints are on the first node.
func placedLocally(t *testing.T) *moving {
	m := newMoving(t, false, false)
	m.web.Spec.ExternalTrafficPolicy, m.web.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 31000
	m.in.Endpoints = map[string][]string{"default/web": {"np000000"}}
	m.commits(m.web, m.near)
	m.pools(map[string]string{"kubernetes/kubernetes": "4 5 6", "kubernetes/default-web": "4"})
	return m
}

// pools checks the members of each pool, by the ends of the addresses.
func (m *moving) pools(want map[string]string) {
	m.t.Helper()
	got := map[string]string{}
	for _, id := range []string{lbID, innerID, lb2ID, inner2} {
		for _, pool := range children(sub(m.docs[azure.ID(id).Key()], "properties"), "backendAddressPools") {
			var ends []string
			for _, member := range children(sub(pool, "properties"), "loadBalancerBackendAddresses") {
				ip := sub(member, "properties")["ipAddress"].(string)
				ends = append(ends, ip[strings.LastIndexAny(ip, ".:")+1:])
			}
			slices.Sort(ends)
			got[fmt.Sprint(azure.ID(id).Name(), "/", pool["name"])] = strings.Join(ends, " ")
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		m.t.Errorf("pools are %v, want %v", got, want)
	}
}

// TestAnOwnPoolGoes checks that a Service's own pool goes when the Service does not need it any more,
// whatever the reason.
func TestAnOwnPoolGoes(t *testing.T) {
	for name, change := range map[string]func(m *moving){
		"several load balancers are given up": func(m *moving) {
			m.in.Config.Balancers, m.web.Annotations, m.near.Annotations = nil, nil, nil
		},
		"given up, and pools are of interfaces": func(m *moving) {
			m.in.Config.Balancers, m.in.Config.PoolByIP, m.web.Annotations, m.near.Annotations = nil, false, nil, nil
		},
		"deleted while no node is known": func(m *moving) { m.in.Nodes, m.web.DeletionTimestamp = nil, &metav1.Time{} },
		"deleted":                        func(m *moving) { m.web.DeletionTimestamp = &metav1.Time{} },
		"policy Cluster":                 func(m *moving) { m.web.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyCluster },
		"its load balancer is configured no more": func(m *moving) {
			m.in.Config.Balancers[0].Name = "other"
			delete(m.web.Annotations, key.Balancers.Name)
			m.near.Annotations[key.Balancers.Name] = "nope" // stays where it is
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := placedLocally(t)
			change(m)
			m.commits(m.web, m.near)
			for _, pool := range children(sub(m.docs[azure.ID(lbID).Key()], "properties"), "backendAddressPools") {
				if pool["name"] == "default-web" {
					t.Errorf("there is still the pool %v", pool)
				}
			}
		})
	}
}

// TestAnOwnPoolFollowsTheEndpoints checks a Service that is refused, or is not in the commit, while its endpoints move.
// Its own pool gets the endpoints' nodes all the same: nothing else is known to lead to them.
func TestAnOwnPoolFollowsTheEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *moving)
		commit func(m *moving) []*v1.Service
	}{
		"not of the commit": {func(*moving) {}, func(m *moving) []*v1.Service { return []*v1.Service{m.near} }},
		"refused": {
			func(m *moving) { m.web.Annotations[key.Balancers.Name] = "nope" },
			func(m *moving) []*v1.Service { return []*v1.Service{m.web, m.near} },
		},
		"refused alone": {
			func(m *moving) { m.web.Annotations[key.Balancers.Name] = "nope" },
			func(m *moving) []*v1.Service { return []*v1.Service{m.web} },
		},
		"refused as one of policy Cluster": {
			func(m *moving) {
				m.web.Annotations[key.Balancers.Name] = "nope"
				m.web.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyCluster
			},
			func(m *moving) []*v1.Service { return []*v1.Service{m.web, m.near} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := placedLocally(t)
			c.change(m)
			m.in.Endpoints["default/web"] = []string{"np000001", "np000002"}
			m.commits(c.commit(m)...)
			m.pools(map[string]string{"kubernetes/kubernetes": "4 5 6", "kubernetes/default-web": "5 6"})
		})
	}
}

// TestABasicBalancerStaysForRefusedServices checks that a load balancer of the retired SKU stays if all its Services are
// refused: it is all that they have.
func TestABasicBalancerStaysForRefusedServices(t *testing.T) {
	m := newMoving(t, false, false)
	m.docs[azure.ID(lbID).Key()]["sku"] = object{"name": "Basic"}
	m.web.Annotations[key.Balancers.Name], m.near.Annotations[key.Balancers.Name] = "nope", "nope"
	m.commits(m.web, m.near)
	m.are(map[string]string{"web": "kubernetes", "near": "kubernetes"})
}

// TestNodesOfServicesThatAreRefused checks a commit of which all Services are refused. They keep what they have, and the
// nodes come and go all the same.
func TestNodesOfServicesThatAreRefused(t *testing.T) {
	for _, several := range []bool{true, false} {
		t.Run(fmt.Sprint("several ", several), func(t *testing.T) {
			m := newMoving(t, false, false)
			m.in.Nodes = addressed(machines(2))
			if !several {
				m.in.Config.Balancers, m.web.Annotations, m.near.Annotations = nil, map[string]string{}, map[string]string{}
			}
			m.commits(m.web, m.near)
			m.pools(map[string]string{"kubernetes/kubernetes": "4 5"})
			for _, s := range []*v1.Service{m.web, m.near} {
				s.Annotations[key.IdleTimeout.Name] = "soon"
			}
			had := text(m.docs[azure.ID(nsgID).Key()])
			m.in.Nodes = addressed(machines(3))[1:]
			found := m.commits(m.web, m.near)
			if refused := slices.ContainsFunc(found, func(p plan.Problem) bool { return !p.Warning }); !refused {
				t.Fatalf("found %v", found)
			}
			m.pools(map[string]string{"kubernetes/kubernetes": "5 6"})
			m.are(map[string]string{"web": "kubernetes", "near": "kubernetes"})
			if now := text(m.docs[azure.ID(nsgID).Key()]); string(now) != string(had) {
				t.Errorf("the security group became\n%s\nfrom\n%s", now, had)
			}
		})
	}
}
