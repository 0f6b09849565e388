package change

import (
	"fmt"
	"slices"
)

// clone is a copy that shares nothing that [Apply] changes.
func (c Cluster) clone() Cluster {
	c.Members, c.Pools, c.Tokens = slices.Clone(c.Members), slices.Clone(c.Pools), slices.Clone(c.Tokens)
	for i := range c.Pools {
		c.Pools[i].Nodes = slices.Clone(c.Pools[i].Nodes)
	}
	return c
}

// Apply returns what is there after a step that succeeds.
func Apply(c Cluster, s Step) Cluster {
	c = c.clone()
	switch s.Action {
	case Save:
		c.Saved = true
	case SetVersion:
		c.Version, c.Stale = s.Version, false
	case AddMember, Unbalance, DrainMember, UpgradeMember, RemoveVoter, ForgetMember, DeleteMember, RestartPods:
		c.applyMember(s)
	case MakeToken, PublishToken, EndToken:
		c.applyToken(s)
	case NextKey, SignKey, NoteKey, DropKeys, NextSecretsKey, UseSecretsKey, RewriteSecrets, DropSecretsKeys:
		c.applyKeys(s)
	case EditAuthorities:
		c.Authorities, c.Published = s.Phase, false
	case AwaitAuthorities:
		c.Published = true
	default:
		c.applyPool(s)
	}
	return c
}

func (c *Cluster) applyMember(s Step) {
	i := slices.IndexFunc(c.Members, func(m Member) bool { return m.ID() == s.Member })
	if i < 0 {
		c.Members = append(c.Members, Member{Index: s.index, Generation: s.generation})
		i = len(c.Members) - 1
	}
	m := &c.Members[i]
	switch s.Action {
	case AddMember:
		m.Revision = s.Revision
		m.Version, m.Machine, m.Node, m.Voter, m.Learner, m.Healthy, m.Balanced = s.Version, true, true, true, false, true, true
		m.OldPods = m.OldPods || c.Authorities == Trust && !c.Published
	case Unbalance:
		m.Balanced = false
	case DrainMember:
		m.Drained = true
	case UpgradeMember:
		m.Version, m.Drained = s.Version, false
	case RemoveVoter:
		if m.Leader {
			c.elect(s.Member)
		}
		m.Voter, m.Learner, m.Leader, m.Healthy = false, false, false, false
	case ForgetMember:
		m.Node = false
	case RestartPods:
		m.OldPods = false
	case DeleteMember:
		c.Members = slices.Delete(c.Members, i, i+1)
	}
}

// elect makes the newest other voter the leader.
func (c *Cluster) elect(without string) {
	for i := len(c.Members) - 1; i >= 0; i-- {
		if m := &c.Members[i]; m.Voter && m.Healthy && m.ID() != without {
			m.Leader = true
			return
		}
	}
}

func (c *Cluster) applyPool(s Step) {
	if s.Action == DeletePool {
		c.Pools = slices.DeleteFunc(c.Pools, func(p Pool) bool { return p.Name == s.Pool })
		return
	}
	p := c.pool(s.Pool)
	if p == nil {
		return
	}
	node := slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == s.Node })
	switch s.Action {
	case SetModel:
		p.Model, p.Revision, p.Desired = s.Version, s.Revision, s.Count
		p.setLimits(s.Limits)
	case Release:
		p.setLimits(s.Limits)
	case Grow:
		p.grow(s.Count)
	case Cordon:
		for i := range p.Nodes {
			p.Nodes[i].Cordoned = p.Nodes[i].Cordoned || slices.Contains(s.Names, p.Nodes[i].Name)
		}
	case Drain:
		p.Nodes[node].Cordoned, p.Nodes[node].Drained, p.Nodes[node].Pods = true, true, 0
	case DeleteNode:
		p.Nodes = slices.Delete(p.Nodes, node, node+1)
	}
}

// grow adds nodes, and makes those that wait ready.
func (p *Pool) grow(count int) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; !n.Failed {
			n.Ready = true
			if n.Version == "" {
				n.Version, n.Revision = p.Model, p.Revision
			}
		}
	}
	for i := 0; len(p.Nodes) < count; i++ {
		name := fmt.Sprintf("%s-%d", p.Name, i)
		if !slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Name == name }) {
			p.Nodes = append(p.Nodes, Node{Name: name, Version: p.Model, Revision: p.Revision, Zone: p.emptiest(), Ready: true})
		}
	}
}

// emptiest is the zone with the fewest nodes, where Azure makes a new one.
func (p *Pool) emptiest() string {
	if len(p.Zones) == 0 {
		return ""
	}
	count := map[string]int{}
	for _, n := range p.Nodes {
		count[n.Zone]++
	}
	return slices.MinFunc(p.Zones, func(a, b string) int { return count[a] - count[b] })
}
