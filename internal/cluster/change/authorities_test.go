package change

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAuthorityRotation shows the plan of each phase for a cluster of one member and one node.
func TestAuthorityRotation(t *testing.T) {
	c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Saved: true, Pools: general(1, "1.36.2")}
	replaced := func(old, now string) string {
		return "add member " + now + " 1.36.2\nstop sending requests to member " + old + "\ndrain member " + old + "\nremove from etcd " + old +
			"\ndelete the node of member " + old + "\ndelete the machine of member " + old + "\n" +
			"wait until all namespaces have the certificate authorities\n"
	}
	for i, test := range []struct{ edit, published, node, next string }{
		{"edit the certificate authorities: the next are trusted\n", "start pods anew of member cp-0-1\n", "general-0", "general-1"},
		{"edit the certificate authorities: the next issue\n", "", "general-1", "general-0"},
		{"edit the certificate authorities: the former are forgotten\n", "", "general-0", "general-1"},
	} {
		revision := fmt.Sprintf("phase-%d", i+1)
		for j := range c.Members {
			c.Members[j].Revision = fmt.Sprintf("phase-%d", i)
		}
		to := Target{Version: "1.36.2", Revision: revision, Members: 1, Authorities: AuthorityPhaseAfter(i),
			Pools: []PoolTarget{{Name: "general", Replicas: 1, Surge: "1", Revision: revision}}}
		c.Pools[0].Nodes[0].Revision = fmt.Sprintf("phase-%d", i)
		steps, err := Plan(c, to)
		old := Member{Generation: i}.ID()
		want := test.edit + replaced(old, Member{Generation: i + 1}.ID()) + test.published + "set the model of pool general 1.36.2\n" +
			"grow pool general to 2\ndrain node general " + test.node + "\ndelete node general " + test.node
		if diff := cmp.Diff(want, lines(steps)); diff != "" || err != nil {
			t.Errorf("%s: %v %s", to.Authorities, err, diff)
		}
		for _, s := range steps {
			c = Apply(c, s)
		}
	}
}

// trusting follows a plan. It keeps the phase of the authorities that each machine has had since it booted, and the phase in
// which its pods started.
type trusting struct {
	Cluster
	machines, nodes map[string]int
	vault           int // the phase in the key vault
	published       int // the phase of the certificates that pods get when they start
	pods            map[string]int
}

func (k *trusting) clone() trusting {
	return trusting{k.Cluster, maps.Clone(k.machines), maps.Clone(k.nodes), k.vault, k.published, maps.Clone(k.pods)}
}

// after is what is there after a step.
func (k *trusting) after(s Step) trusting {
	next := k.clone()
	next.Cluster = Apply(k.Cluster, s)
	switch s.Action {
	case EditAuthorities:
		next.vault++
	case AddMember:
		if _, had := k.machines[s.Member]; !had {
			next.machines[s.Member], next.pods[s.Member] = k.vault, k.published
		}
	case DeleteMember:
		delete(next.machines, s.Member)
		delete(next.pods, s.Member)
	case AwaitAuthorities:
		next.published = next.vault
	case RestartPods:
		next.pods[s.Member] = next.published
	}
	for _, p := range next.Pools {
		for _, n := range p.Nodes {
			if _, had := next.nodes[n.Name]; !had {
				next.nodes[n.Name], next.pods[n.Name] = next.vault, next.published
			}
		}
	}
	for name := range k.nodes {
		if !slices.ContainsFunc(next.Pools, func(p Pool) bool {
			return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Name == name })
		}) {
			delete(next.nodes, name)
			delete(next.pods, name)
		}
	}
	return next
}

// trusts reports whether a client of a phase trusts a server of another one: from phase 2 on, servers have certificates of the next authority.
func trusts(client, server int) bool {
	if server < 2 {
		return client < 3
	}
	return client > 0
}

// outage names a machine that a member which gets requests does not accept, or pods that do not trust the member. "" means
// none. Machines accept each other if their phases are the same or neighbours. Pods have tokens, which do not depend on
// authorities.
func (k *trusting) outage() string {
	for _, m := range k.Members {
		if !m.Balanced || !m.Machine {
			continue
		}
		has := k.machines[m.ID()]
		for _, all := range []map[string]int{k.machines, k.nodes} {
			for name, phase := range all {
				if has-phase > 1 || phase-has > 1 {
					return fmt.Sprintf("%s has phase %d, and %s phase %d", m.ID(), has, name, phase)
				}
			}
		}
		for name, phase := range k.pods {
			if !trusts(phase, has) {
				return fmt.Sprintf("pods of %s have phase %d, and %s phase %d", name, phase, m.ID(), has)
			}
		}
	}
	return ""
}

// TestAuthoritiesAnywhere checks scenario 43 for the certificate authorities. At every moment all machines and pods accept
// the members that get requests, and these members accept them. That holds for each number of members. It also holds if a
// change is aborted at any step and begins anew, and if another change comes in between.
func TestAuthoritiesAnywhere(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		count := []int{1, 3, 5}[seed%3]
		k := trusting{Cluster: Cluster{Version: "1.36.2", Members: members(count, "1.36.2"), Pools: general(3, "1.36.2")},
			machines: map[string]int{}, nodes: map[string]int{}, pods: map[string]int{}}
		for i := range k.Members {
			k.Members[i].Revision = "phase-0"
			k.machines[k.Members[i].ID()], k.pods[k.Members[i].ID()] = 0, 0
		}
		k.Pools[0].Revision = "phase-0"
		for i, n := range k.Pools[0].Nodes {
			k.Pools[0].Nodes[i].Revision, k.nodes[n.Name], k.pods[n.Name] = "phase-0", 0, 0
		}
		for complete := range 3 {
			k = phased(t, random, k, complete)
			for name, phase := range k.pods {
				if phase == 0 {
					t.Errorf("seed %d: pods of %s do not trust the next authority after phase %d", seed, name, complete+1)
				}
			}
		}
	}
}

// phased carries a phase out. At random it is aborted, after which a change without a rotation may make machines as before.
func phased(t *testing.T, random *rand.Rand, k trusting, complete int) trusting {
	t.Helper()
	phase, count := AuthorityPhaseAfter(complete), len(k.machines)
	to := func(number int, phase AuthorityPhase) Target {
		revision := fmt.Sprintf("phase-%d", number)
		return Target{Version: "1.36.2", Revision: revision, Members: count, Authorities: phase,
			Pools: []PoolTarget{{Name: "general", Replicas: 3, Surge: "1", Revision: revision}}}
	}
	now := to(complete+1, phase)
	for range 3000 {
		switch {
		case random.IntN(40) == 0:
			now = to(complete, "") // it was aborted, and the cluster is upgraded
		case random.IntN(10) == 0:
			now = to(complete+1, phase)
		}
		step, err := Next(k.Cluster, now)
		if err != nil {
			t.Fatal(err)
		}
		if step == nil && now.Authorities != "" {
			return k
		}
		if step == nil {
			now = to(complete+1, phase)
			continue
		}
		if k = k.after(*step); k.outage() != "" {
			t.Fatalf("after %s of phase %s: %s", step, phase, k.outage())
		}
	}
	t.Fatal("the rotation does not end")
	return k
}
