package change

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// members are healthy members of a version; the first is the leader.
func members(count int, version string) []Member {
	var all []Member
	for i := range count {
		all = append(all, Member{Index: i, Version: version, Machine: true, Balanced: true, Node: true, Voter: true, Healthy: true,
			Leader: i == 0})
	}
	return all
}

// nodes are ready nodes of a version, in three zones in turn. The later ones are newer.
func nodes(pool string, count int, version string) []Node {
	var all []Node
	for i := range count {
		all = append(all, Node{Name: fmt.Sprintf("%s-%d", pool, i), Version: version, Ready: true, Zone: fmt.Sprint(i%3 + 1), Age: int64(count - i),
			Pods: 1})
	}
	return all
}

func general(count int, version string) []Pool {
	return []Pool{{Name: "general", Model: version, Nodes: nodes("general", count, version)}}
}

func lines(steps []Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.String())
	}
	return strings.Join(all, "\n")
}

// TestPlan shows the plans of common changes.
func TestPlan(t *testing.T) {
	pool := []PoolTarget{{Name: "general", Replicas: 2, Surge: "1"}}
	broken := members(3, "1.36.2")
	broken[1].Healthy = false
	gone := members(3, "1.36.2")
	gone[1].Healthy, gone[1].Machine, gone[1].Balanced = false, false, false
	for name, test := range map[string]struct {
		from Cluster
		to   Target
		want string
	}{
		"nothing": {Cluster{Version: "1.36.2", Members: members(3, "1.36.2"), Pools: general(2, "1.36.2")},
			Target{Version: "1.36.2", Members: 3, Pools: pool}, ""},
		"upgrade": {Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(2, "1.36.2")},
			Target{Version: "1.37.1", Members: 1, Pools: pool},
			`save etcd
set the version of the cluster 1.37.1
add member cp-0-1 1.37.1
stop sending requests to member cp-0
drain member cp-0
remove from etcd cp-0
delete the node of member cp-0
delete the machine of member cp-0
set the model of pool general 1.37.1
grow pool general to 3
drain node general general-1
delete node general general-1
grow pool general to 3
drain node general general-0
delete node general general-0`},
		"in place": {Cluster{Version: "1.36.2", Members: members(3, "1.36.2"), Pools: general(1, "1.36.2")},
			Target{Version: "1.37.1", Members: 3, InPlace: true, Pools: []PoolTarget{{Name: "general", Replicas: 1, Surge: "1"}}},
			`save etcd
set the version of the cluster 1.37.1
stop sending requests to member cp-1
drain member cp-1
upgrade in place member cp-1 1.37.1
add member cp-1 1.37.1
stop sending requests to member cp-2
drain member cp-2
upgrade in place member cp-2 1.37.1
add member cp-2 1.37.1
stop sending requests to member cp-0
drain member cp-0
upgrade in place member cp-0 1.37.1
add member cp-0 1.37.1
set the model of pool general 1.37.1
grow pool general to 2
drain node general general-0
delete node general general-0`},
		"the only member in place": {Cluster{Version: "1.36.2", Saved: true, Members: members(1, "1.36.2")},
			Target{Version: "1.37.1", Members: 1, InPlace: true},
			`set the version of the cluster 1.37.1
drain member cp-0
upgrade in place member cp-0 1.37.1`},
		"a member that does not answer": {Cluster{Version: "1.36.2", Members: broken},
			Target{Version: "1.36.2", Members: 3, Replace: map[string]bool{"cp-1": true}},
			`save etcd
stop sending requests to member cp-1
remove from etcd cp-1
delete the node of member cp-1
delete the machine of member cp-1
add member cp-1-1 1.36.2`},
		"a member without a machine": {Cluster{Version: "1.36.2", Members: gone}, Target{Version: "1.36.2", Members: 3},
			`save etcd
remove from etcd cp-1
delete the node of member cp-1
delete the machine of member cp-1
add member cp-1 1.36.2`},
		"three members to five": {Cluster{Version: "1.36.2", Members: members(3, "1.36.2")}, Target{Version: "1.36.2", Members: 5},
			"save etcd\nadd member cp-3 1.36.2\nadd member cp-4 1.36.2"},
		"three members to one": {Cluster{Version: "1.36.2", Members: members(3, "1.36.2"), Saved: true}, Target{Version: "1.36.2", Members: 1},
			`stop sending requests to member cp-2
drain member cp-2
remove from etcd cp-2
delete the node of member cp-2
delete the machine of member cp-2
stop sending requests to member cp-1
drain member cp-1
remove from etcd cp-1
delete the node of member cp-1
delete the machine of member cp-1`},
		"fewer nodes": {Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(4, "1.36.2")},
			Target{Version: "1.36.2", Members: 1, Pools: pool},
			`cordon nodes of pool general general-2, general-3
drain node general general-2
delete node general general-2
drain node general general-3
delete node general general-3`},
		"autoscaled": {Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(4, "1.36.2")},
			Target{Version: "1.36.2", Members: 1, Pools: []PoolTarget{{Name: "general", Replicas: 2, Autoscaled: true}}}, ""},
		"no pool": {Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(1, "1.36.2")}, Target{Version: "1.36.2", Members: 1},
			"cordon nodes of pool general general-0\ndrain node general general-0\ndelete node general general-0\ndelete pool general"},
	} {
		t.Run(name, func(t *testing.T) {
			steps, err := Plan(test.from, test.to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(steps)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestMinorByMinor checks that each minor version is passed, and that old nodes are upgraded before the control plane leaves them
// behind.
func TestMinorByMinor(t *testing.T) {
	c := Cluster{Version: "1.36.2", Members: members(3, "1.36.2"), Pools: general(2, "1.34.0")}
	steps, err := Plan(c, Target{Version: "1.39.1", Members: 3, Through: map[string]string{"1.37": "1.37.4"},
		Pools: []PoolTarget{{Name: "general", Replicas: 2, Surge: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		if s.Action == SetVersion || s.Action == SetModel {
			got = append(got, s.String())
		}
	}
	want := []string{"set the version of the cluster 1.37.4", "set the model of pool general 1.37.4", "set the version of the cluster 1.38.0",
		"set the version of the cluster 1.39.1", "set the model of pool general 1.39.1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRefused checks targets that are not supported, and states in which no step is safe.
func TestRefused(t *testing.T) {
	lost := members(3, "1.36.2")
	lost[1].Healthy, lost[2].Healthy = false, false
	ill := members(3, "1.36.2")
	ill[2].Healthy = false
	for name, test := range map[string]struct {
		from Cluster
		to   Target
		want string
	}{
		"downgrade": {Cluster{Members: members(3, "1.36.2")}, Target{Version: "1.35.9", Members: 3},
			"member cp-0 has version 1.36.2, and 1.35.9 is older"},
		"even": {Cluster{Members: members(3, "1.36.2")}, Target{Version: "1.36.2", Members: 4}, "4 members: want 1, 3 or 5"},
		"newer nodes": {Cluster{Members: members(1, "1.36.2"), Pools: general(1, "1.37.0")}, Target{Version: "1.37.0", Members: 1},
			"node general-0 of pool general has version 1.37.0"},
		"very old nodes": {Cluster{Members: members(1, "1.36.2"), Pools: general(1, "1.32.0")}, Target{Version: "1.37.0", Members: 1},
			"more than 3 minor versions older"},
		"no majority": {Cluster{Members: lost, Version: "1.36.2"}, Target{Version: "1.37.0", Members: 3}, "1 of 3 members of etcd answer"},
		"ill": {Cluster{Members: ill, Version: "1.36.2", Saved: true}, Target{Version: "1.37.0", Members: 3},
			"member cp-2 does not answer: repair it first"},
		"through a later version": {Cluster{Members: members(1, "1.36.2")},
			Target{Version: "1.37.0", Members: 1, Through: map[string]string{"1.38": "1.38.1"}}, "1.38.1 is not on the way to 1.37.0"},
		"two of three replaced": {Cluster{Members: lost, Version: "1.36.2", Saved: true},
			Target{Version: "1.36.2", Members: 3, Replace: map[string]bool{"cp-1": true, "cp-2": true}}, "restore it from a backup"},
		"nothing is left": {Cluster{}, Target{Version: "1.36.2", Members: 1}, "the control plane has no machine"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Plan(test.from, test.to); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestVictims checks the order in which nodes go.
func TestVictims(t *testing.T) {
	p := Pool{Name: "p", Model: "1.36.2", Nodes: nodes("p", 7, "1.36.2")}
	p.Nodes[1].Ready = false
	p.Nodes[2].First = true
	p.Nodes[4].Pods = 0
	p.Nodes[5].Version = "1.36.1"
	var got []string
	for _, n := range p.victims(model{"1.36.2", ""}, 7, p.Nodes) {
		got = append(got, n.Name)
	}
	// p-1 is not ready, p-2 is marked, p-5 is old. Zone 1 has the most of the other nodes. p-6 is newer than p-3 and p-0.
	if diff := cmp.Diff([]string{"p-1", "p-2", "p-5", "p-6", "p-3", "p-4", "p-0"}, got); diff != "" {
		t.Error(diff)
	}
}

// partly are states in which a step can stop: half of its effect is there.
func partly(c Cluster, s Step) []Cluster {
	var all []Cluster
	whole := Apply(c, s)
	switch s.Action {
	case AddMember:
		i := len(whole.Members) - 1
		for _, m := range []Member{
			{Machine: true}, {Machine: true, Node: true}, {Machine: true, Node: true, Learner: true},
			{Machine: true, Node: true, Voter: true, Healthy: true},
		} {
			if len(whole.Members) == len(c.Members) {
				break // it goes on with a member that is there
			}
			half := whole.clone()
			m.Index, m.Generation, m.Version = half.Members[i].Index, half.Members[i].Generation, half.Members[i].Version
			half.Members[i] = m
			all = append(all, half)
		}
	case Grow:
		half := c.clone()
		p := half.pool(s.Pool)
		before := len(p.Nodes)
		p.grow(s.Count)
		for i := before; i < len(p.Nodes); i++ {
			p.Nodes[i].Ready, p.Nodes[i].Version = false, ""
		}
		all = append(all, half)
	case Drain:
		half := c.clone()
		for i, n := range half.pool(s.Pool).Nodes {
			if n.Name == s.Node {
				half.pool(s.Pool).Nodes[i].Cordoned = true
			}
		}
		all = append(all, half)
	case UpgradeMember:
		half := c.clone()
		for i := range half.Members {
			if half.Members[i].ID() == s.Member {
				half.Members[i].Drained = false // it takes pods again, and its version is not noted yet
			}
		}
		all = append(all, half)
	case RemoveVoter:
		half := c.clone()
		for i := range half.Members {
			if half.Members[i].ID() == s.Member && half.Members[i].Leader {
				half.elect(s.Member)
				half.Members[i].Leader = false
			}
		}
		all = append(all, half)
	}
	return all
}

// run goes on to the end, checks each state on the way, and returns the last one.
func run(t *testing.T, c Cluster, to Target, visit func(Cluster, Step)) Cluster {
	t.Helper()
	for range 500 {
		safe(t, c, to)
		step, err := Next(c, to)
		if err != nil {
			t.Fatalf("%v\n%+v", err, c.Members)
		}
		if step == nil {
			return c
		}
		if visit != nil {
			visit(c, *step)
		}
		c = Apply(c, *step)
	}
	t.Fatal("the plan does not end")
	return c
}

// safe checks what holds at every moment of a change.
func safe(t *testing.T, c Cluster, to Target) {
	t.Helper()
	low, high := "", ""
	voters, healthy := c.voters()
	for _, m := range c.Members {
		if m.Voter && (low == "" || compare(m.Version, low) < 0) {
			low = m.Version
		}
		if m.Voter && compare(m.Version, high) > 0 {
			high = m.Version
		}
		if m.Balanced && !m.Voter && m.Healthy {
			t.Errorf("requests go to member %s, which is not in etcd", m.ID())
		}
	}
	if 2*healthy <= voters || voters > 6 {
		t.Errorf("%d of %d voters are healthy", healthy, voters)
	}
	if minor(high)-minor(low) > 1 {
		t.Errorf("members have %s and %s", low, high)
	}
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			if n.Version != "" && (minor(n.Version) > minor(low) || minor(high)-minor(n.Version) > kubeletSkew) {
				t.Errorf("node %s has %s, members %s to %s", n.Name, n.Version, low, high)
			}
		}
	}
}

// ready counts the nodes that take pods.
func ready(p *Pool) int {
	n := 0
	for _, node := range p.Nodes {
		n += rank(node.Ready && !node.Cordoned)
	}
	return n
}

// TestStoppedAnywhere stops changes before, in and after every step. Each ends in the same state as without a stop.
func TestStoppedAnywhere(t *testing.T) {
	sizes := []int{1, 3, 5}
	versions := []string{"1.36.2", "1.36.5", "1.37.1", "1.38.0"}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		count := sizes[random.IntN(3)]
		c := Cluster{Version: "1.36.2", Members: members(count, "1.36.2"), Pools: general(random.IntN(4), "1.36.2")}
		c.Pools = append(c.Pools, Pool{Name: "old", Model: "1.36.2", Nodes: nodes("old", 2, "1.36.2")},
			Pool{Name: "scaled", Model: "1.36.2", Nodes: nodes("scaled", 2, "1.36.2")})
		to := Target{Version: versions[random.IntN(4)], Members: sizes[random.IntN(3)], Replace: map[string]bool{},
			Pools: []PoolTarget{{Name: "general", Replicas: random.IntN(4), Surge: amount(random.IntN(3)), Unavailable: amount(random.IntN(3))},
				{Name: "scaled", Replicas: 1, Autoscaled: true, Surge: "1"}}}
		if random.IntN(2) == 0 {
			to.Revision, to.Pools[0].Revision = "new", "new"
			c.Members[0].Revision, c.Pools[0].Revision = "old", "old"
			for i := range c.Pools[0].Nodes {
				c.Pools[0].Nodes[i].Revision = "old"
			}
		}
		if random.IntN(2) == 0 {
			to.Replace["cp-0"] = true
		}
		to.InPlace = random.IntN(2) == 0
		if random.IntN(2) == 0 {
			c.Token, c.Tokens, to.Tokens = "aaaaaa", []Token{{ID: "aaaaaa"}}, map[string]bool{"aaaaaa": true}
		}
		var stops []Cluster
		want := run(t, c, to, func(before Cluster, s Step) {
			stops = append(stops, before)
			stops = append(stops, partly(before, s)...)
		})
		for _, stop := range stops {
			got := run(t, stop, to, nil)
			if diff := cmp.Diff(summary(want), summary(got)); diff != "" {
				t.Fatalf("seed %d: after a stop:\n%s", seed, diff)
			}
		}
	}
}

// summary is a state without what may differ: which member leads, and which names nodes have.
func summary(c Cluster) string {
	var b strings.Builder
	leaders := 0
	for _, m := range c.Members {
		leaders += rank(m.Leader)
	}
	fmt.Fprintf(&b, "%s, %d members, %d leaders, tokens %s %+v\n", c.Version, len(c.Members), leaders, c.Token, c.Tokens)
	for i := range 6 {
		for _, m := range c.Members {
			if m.Index == i {
				m.Leader = false
				fmt.Fprintf(&b, "%+v\n", m)
			}
		}
	}
	for _, p := range c.Pools {
		fmt.Fprintf(&b, "%s %s: %d ready\n", p.Name, p.Model, ready(&p))
		for _, n := range p.Nodes {
			fmt.Fprintln(&b, n.Version)
		}
	}
	return b.String()
}

// TestNodesStay checks that an upgrade never has fewer ready nodes than the pool, with a surge.
func TestNodesStay(t *testing.T) {
	for _, surge := range []int{0, 1, 2} {
		c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(5, "1.36.2")}
		to := Target{Version: "1.37.0", Members: 1, Pools: []PoolTarget{{Name: "general", Replicas: 5, Surge: amount(surge)}}}
		least := 5
		run(t, c, to, func(c Cluster, _ Step) { least = min(least, ready(c.pool("general"))) })
		if want := 5 - rank(surge == 0); least != want {
			t.Errorf("surge %d: %d nodes at least, want %d", surge, least, want)
		}
	}
}

func amount(n int) Amount { return Amount(strconv.Itoa(n)) }

// TestUnavailable checks scenario 38: during an upgrade a pool has at most its number of nodes and its surge. It never has
// fewer ready nodes than maxUnavailable allows. New nodes are made together.
func TestUnavailable(t *testing.T) {
	for _, test := range []struct {
		surge, unavailable Amount
		most, least, grows int
	}{
		{"1", "0", 6, 5, 5}, {"2", "0", 7, 5, 3}, {"25%", "", 7, 5, 3}, {"100%", "0", 10, 5, 1}, {"0", "1", 5, 4, 5}, {"", "2", 5, 3, 3},
		{"0", "59%", 5, 3, 3}, {"1", "1", 6, 4, 3}, {"0", "5", 5, 0, 1}, {"0", "10%", 5, 4, 5},
	} {
		c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: general(5, "1.36.2")}
		to := Target{Version: "1.37.0", Members: 1, Pools: []PoolTarget{{Name: "general", Replicas: 5, Surge: test.surge,
			Unavailable: test.unavailable}}}
		most, least, grows := 0, 5, 0
		run(t, c, to, func(c Cluster, s Step) {
			p := c.pool("general")
			most, least, grows = max(most, len(p.Nodes)), min(least, ready(p)), grows+rank(s.Action == Grow)
		})
		if most != test.most || least != test.least || grows != test.grows {
			t.Errorf("surge %s, %s unavailable: at most %d nodes, at least %d, made at %d times; want %d, %d, %d", test.surge, test.unavailable,
				most, least, grows, test.most, test.least, test.grows)
		}
	}
}

// TestRevision checks that members and nodes of another revision are replaced. Members and nodes of the right or an unknown
// revision stay. A pool gets the new model before its machines are replaced.
func TestRevision(t *testing.T) {
	c := Cluster{Version: "1.36.2", Saved: true, Members: members(3, "1.36.2"), Pools: general(3, "1.36.2")}
	c.Members[1].Revision, c.Members[2].Revision = "old", "new"
	c.Pools[0].Revision = "old"
	c.Pools[0].Nodes[0].Revision, c.Pools[0].Nodes[1].Revision = "old", "new"
	steps, err := Plan(c, Target{Version: "1.36.2", Revision: "new", Members: 3,
		Pools: []PoolTarget{{Name: "general", Replicas: 3, Revision: "new", Surge: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := `add member cp-1-1 1.36.2
stop sending requests to member cp-1
drain member cp-1
remove from etcd cp-1
delete the node of member cp-1
delete the machine of member cp-1
set the model of pool general 1.36.2
grow pool general to 4
drain node general general-0
delete node general general-0`
	if diff := cmp.Diff(want, lines(steps)); diff != "" {
		t.Error(diff)
	}
}

// TestZones checks scenario 38: before a node goes, another node of its zone is ready, as long as there is room. At the end
// the node with a disk is in the zone of the disk. Azure makes nodes in one of the zones with the fewest nodes.
func TestZones(t *testing.T) {
	for _, zones := range [][]string{{"1", "2"}, {"1", "2", "3"}, {"3", "1", "2"}} {
		for count := 1; count <= 5; count++ {
			pool := Pool{Name: "general", Model: "1.36.2", Zones: zones}
			for i := range count {
				pool.Nodes = append(pool.Nodes, Node{Name: fmt.Sprintf("n-%d", i), Version: "1.36.2", Zone: pool.emptiest(), Ready: true})
			}
			disk := pool.Nodes[count-1].Zone
			c := Cluster{Version: "1.36.2", Members: members(1, "1.36.2"), Pools: []Pool{pool}}
			to := Target{Version: "1.37.0", Members: 1, Pools: []PoolTarget{{Name: "general", Replicas: count, Surge: "1"}}}
			most := 0
			got := run(t, c, to, func(c Cluster, _ Step) {
				nodes := c.pool("general").Nodes
				most = max(most, len(nodes))
				if !slices.ContainsFunc(nodes, func(n Node) bool { return n.Zone == disk && n.Ready && !n.Cordoned }) {
					t.Errorf("%d nodes over %v: no node takes pods in zone %s:\n%+v", count, zones, disk, nodes)
				}
				place(nodes, disk)
			})
			if len(got.pool("general").Nodes) != count || most > count+len(zones) {
				t.Errorf("%d nodes over %v: %d in between, %d at the end", count, zones, most, len(got.pool("general").Nodes))
			}
		}
	}
}

// place attaches the disk to one node of its zone that takes pods, the newest.
func place(nodes []Node, zone string) {
	for i := range nodes {
		nodes[i].Volumes = 0
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		if n := &nodes[i]; n.Zone == zone && n.Ready && !n.Cordoned {
			n.Volumes = 1
			return
		}
	}
}

// TestUnready checks which nodes go when the upgrade of a pool stops: new ones that are not ready or have a failed machine.
func TestUnready(t *testing.T) {
	old := Node{Name: "old", Version: "1.36.3"}
	waits, failed := Node{Name: "waits"}, Node{Name: "failed", Failed: true}
	ready := Node{Name: "ready", Version: "1.37.1", Ready: true}
	for _, test := range []struct {
		nodes []Node
		late  bool
		want  []string
		begun bool
	}{
		{[]Node{old, waits, failed}, true, []string{"waits", "failed"}, false},
		{[]Node{old, waits, failed}, false, []string{"failed"}, false},
		{[]Node{old, ready, waits}, true, []string{"waits"}, true},
		{[]Node{waits, failed}, true, nil, false}, // a pool that grows, and is not upgraded
	} {
		p := Pool{Name: "a", Model: "1.37.1", Nodes: test.nodes}
		if got := p.Unready(test.late); !slices.Equal(got, test.want) || p.Begun() != test.begun {
			t.Errorf("%+v: %v %v, want %v %v", test.nodes, got, p.Begun(), test.want, test.begun)
		}
	}
}

// TestDNS checks that CoreDNS has an image for the versions that are known, and that a newer version never has an older one.
func TestDNS(t *testing.T) {
	last := "v0.0.0"
	for minor := 31; minor <= 37; minor++ {
		tag := DNS(fmt.Sprintf("1.%d.1", minor))
		if tag == "" || Older(tag, last) {
			t.Errorf("1.%d: %q after %s", minor, tag, last)
		}
		last = tag
	}
	if tag := DNS("1.99.0"); tag != "" {
		t.Errorf("an unknown version has %s", tag)
	}
}
