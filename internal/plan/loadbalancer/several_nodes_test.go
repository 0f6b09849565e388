package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/problem"
)

// apart is a story with web at the second load balancer.
func apart(t *testing.T) *moving {
	m := newMoving(t, false, false)
	m.web.Annotations[key.Balancers.Name] = "lb2"
	m.commits(m.web, m.near)
	m.pools(map[string]string{"kubernetes/kubernetes": "4 5", "lb2/kubernetes": "6"})
	return m
}

// TestTheLastNodeOfALoadBalancerLeaves checks the last node of a load balancer, which is deleted or
// goes elsewhere. It leaves the pool, because its address belongs to another node by then, and the
// Services there get the problem that no node serves them. With one load balancer its pool is never
// emptied.
func TestTheLastNodeOfALoadBalancerLeaves(t *testing.T) {
	for name, leave := range map[string]func(m *moving){
		"gone": func(m *moving) { m.in.Nodes = m.in.Nodes[:2] },
		"elsewhere": func(m *moving) {
			m.in.Nodes[2].Spec.ProviderID = strings.Replace(m.in.Nodes[2].Spec.ProviderID, "/np2/", "/np/", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := apart(t)
			leave(m)
			found := m.commits(m.web, m.near)
			first := "4 5"
			if len(m.in.Nodes) == 3 {
				first = "4 5 6"
			}
			m.pools(map[string]string{"kubernetes/kubernetes": first, "lb2/kubernetes": ""})
			reported := slices.DeleteFunc(found, func(p plan.Problem) bool { return p.Reason != problem.NoNodes })
			if len(reported) != 1 || !reported[0].Warning || reported[0].Object != "default/web" ||
				!strings.Contains(reported[0].Message, "load balancer lb2") || !strings.Contains(reported[0].Message, "np2") {
				t.Errorf("got %v", found)
			}
		})
	}
}

// TestNodesThatServeAreSpread checks that nodes that do not serve take no place. The other nodes are spread as if they
// were not there.
func TestNodesThatServeAreSpread(t *testing.T) {
	m := newMoving(t, false, false)
	m.web.Annotations[key.Balancers.Name] = "lb2"
	m.in.Nodes = addressed(machines(5))
	for i, n := range m.in.Nodes {
		if n.Labels = map[string]string{v1.LabelNodeExcludeBalancers: "true"}; i > 2 {
			n.Labels = nil
			n.Spec.ProviderID = strings.Replace(n.Spec.ProviderID, "/np/", "/workers/", 1)
		}
	}
	m.commits(m.web, m.near)
	m.pools(map[string]string{"kubernetes/kubernetes": "7", "lb2/kubernetes": "8"})
}

// TestServicesLeftAtALoadBalancerThatIsNotConfigured checks a Service that shares the frontend of a
// deleted Service at a load balancer that is not configured any more. Its rules show that: it is
// served on there, and takes the frontend with it.
func TestServicesLeftAtALoadBalancerThatIsNotConfigured(t *testing.T) {
	m := apart(t)
	m.guest.Spec.LoadBalancerIP = m.web.Status.LoadBalancer.Ingress[0].IP
	m.commits(m.guest)
	m.are(map[string]string{"web": "lb2", "guest": "lb2", "near": "kubernetes"})
	m.web.DeletionTimestamp = &metav1.Time{}
	m.commits(m.web)
	m.web.UID = "00000000-1111-2222-3333-444455556666" // another one, which has nothing
	m.in.Config.Balancers = m.in.Config.Balancers[:1]
	m.in.Nodes = addressed(machines(2))
	m.guest.Spec.Ports[0].NodePort++
	if found := m.commits(m.guest, m.near); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	m.are(map[string]string{"guest": "lb2", "near": "kubernetes"})
	m.pools(map[string]string{"kubernetes/kubernetes": "4 5", "lb2/kubernetes": "4 5"})
	if got := len(m.guest.Status.LoadBalancer.Ingress); got != 1 {
		t.Errorf("guest has %d addresses", got)
	}
	m.guest.DeletionTimestamp = &metav1.Time{}
	m.commits(m.guest)
	m.are(map[string]string{"near": "kubernetes"})
	if _, there := m.docs[azure.ID(lb2ID).Key()]; there {
		t.Error("lb2 is left")
	}
}

// TestIPv6OnlyGoesBesideIPv4 checks that an IPv6-only Service goes to a load balancer with an IPv4
// frontend, however little room is there: Azure refuses it elsewhere.
func TestIPv6OnlyGoesBesideIPv4(t *testing.T) {
	for name, c := range map[string]struct {
		commit []string
		asks   string
		want   string // "" for nowhere
	}{
		"one is there":                 {[]string{"guest"}, "", "kubernetes"},
		"one comes with it":            {[]string{"near", "guest"}, "", "kubernetes"},
		"it names an empty one":        {[]string{"guest"}, "lb2", ""},
		"no Service with IPv4 is left": {[]string{"web", "near", "guest"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t, false, false)
			m.guest.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol}
			m.guest.Annotations = map[string]string{key.Balancers.Name: c.asks}
			all := map[string]*v1.Service{"web": m.web, "near": m.near, "guest": m.guest}
			var some []*v1.Service
			for _, one := range c.commit {
				some = append(some, all[one])
			}
			if slices.Contains(c.commit, "web") {
				m.web.DeletionTimestamp, m.near.DeletionTimestamp = &metav1.Time{}, &metav1.Time{}
			}
			m.commits(some...)
			want := map[string]string{"web": "kubernetes", "near": "kubernetes", "guest": c.want}
			if m.web.DeletionTimestamp != nil {
				want = map[string]string{"guest": ""}
			}
			if c.want == "" {
				delete(want, "guest")
			}
			m.are(want)
		})
	}
}
