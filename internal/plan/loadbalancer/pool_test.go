package loadbalancer_test

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// TestAddressesOfNodesAreReassigned checks pools of addresses, with members by name, where Azure
// gives the address of a removed machine to the next one. The name of an address may then be another
// node's: each address is added all the same. An address stays as it is if no other node has its name.
func TestAddressesOfNodesAreReassigned(t *testing.T) {
	at := func(address string, nodes ...*v1.Node) (all []*v1.Node) {
		for _, n := range nodes {
			n = n.DeepCopy()
			n.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: address}}
			all = append(all, n)
		}
		return all
	}
	m := machines(3)
	excluded := m[1].DeepCopy()
	excluded.Labels = map[string]string{v1.LabelNodeExcludeBalancers: "true"}
	type pool = map[string]string // addresses by name
	for name, c := range map[string]struct {
		nodes [][]*v1.Node
		want  pool
	}{
		"to one without its name there": {
			[][]*v1.Node{at("10.0.0.5", m[2])}, pool{"np000000": "10.0.0.4", "np000001": "10.0.0.5"},
		},
		"and it comes back": {
			[][]*v1.Node{at("10.0.0.6", m[1]), at("10.0.0.5", m[2])},
			pool{"np000000": "10.0.0.4", "np000001": "10.0.0.6", "np000002": "10.0.0.5"},
		},
		"two change places": {
			[][]*v1.Node{at("10.0.0.4", m[1]), at("10.0.0.5", m[0])}, pool{"np000000": "10.0.0.4", "np000001": "10.0.0.5"},
		},
		"the Node that had it is still there": {
			[][]*v1.Node{at("10.0.0.5", m[1], m[2])}, pool{"np000000": "10.0.0.4", "np000001": "10.0.0.5"},
		},
		"two Nodes have one that is new": {
			[][]*v1.Node{at("10.0.0.5", m[1]), at("10.0.0.9", m[2], machines(4)[3])},
			pool{"np000000": "10.0.0.4", "np000001": "10.0.0.5", "np000002": "10.0.0.9"},
		},
		"the Node that had it is excluded": {
			[][]*v1.Node{at("10.0.0.5", excluded, m[2])}, pool{"np000000": "10.0.0.4", "np000001": "10.0.0.5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)),
				Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
			in.Config.PoolByIP = true
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			in.Nodes = in.Nodes[:1]
			for _, some := range c.nodes {
				if in.Nodes = append(in.Nodes, some...); some[0].Name == "np000000" || len(some) > 1 && some[1].Name == "np000000" {
					in.Nodes = in.Nodes[1:]
				}
			}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if again, err := w.commit(in); err != nil || writes(again) > 0 {
				t.Errorf("a second commit is not empty: %v, %v", err, again[0].plan)
			}
			got := pool{}
			for _, p := range children(sub(w.docs[azure.ID(lbID).Key()], "properties"), "backendAddressPools") {
				for _, member := range children(sub(p, "properties"), "loadBalancerBackendAddresses") {
					got[member["name"].(string)] = sub(member, "properties")["ipAddress"].(string)
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("members are %v, want %v", got, c.want)
			}
		})
	}
}

// TestNodePortsStayOpenWhileMembersChangeTheirKind checks pools of interfaces that become pools of
// addresses and again pools of interfaces, while packets arrive at the nodes' own addresses. Members
// that stay or join keep their allow rule, which stays where it is.
func TestNodePortsStayOpenWhileMembersChangeTheirKind(t *testing.T) {
	w := newSubscription(2)
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{key.DisableFloatingIP.Name: "true"}
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true,
		Services: []loadbalancer.Service{{Service: web}}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	for _, byIP := range []bool{true, false} {
		in.Config.PoolByIP = byIP
		rounds, err := w.commit(in)
		if err != nil || writes(rounds) < 3 {
			t.Errorf("pools of addresses %v: %v, %v", byIP, err, rounds)
		}
		for _, r := range rounds {
			for _, s := range r.plan.Steps {
				if s.ID.Equal(nsgID) {
					t.Errorf("pools of addresses %v: %s %v", byIP, s, s.Changes)
				}
			}
		}
	}
}
