// Package change plans what brings the machines of a cluster to a target: upgrades, repairs, another number of members or nodes,
// the removal of pools. Layer L1: pure.
//
// A plan has no memory. [Next] chooses the next step from what is there, and is asked again after each step. So a change goes on
// from any point at which it stopped, on any machine. [Plan] shows all steps with [Apply], the effect of a step on what is there.
package change

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/cluster/naming"
)

// Cluster is what there is of a cluster.
type Cluster struct {
	// Version is the version in the configuration of the cluster, from which new members take it.
	Version string
	Members []Member
	Pools   []Pool
	// Stale says that the configuration that new members of the control plane copy differs from the wanted one.
	Stale bool
	// Saved says that etcd was saved since the change began.
	Saved bool
	// Token is the ID of the join token in the key vault. Only the rotation of the token needs it.
	Token string
	// Tokens are the join tokens of kaz that the API server takes.
	Tokens []Token
	// Keys are the keys of service accounts in the key vault, or those that encrypt Secrets. Only their rotation needs them.
	Keys Keys
	// Authorities is the phase of the certificate authorities in the key vault. Only their rotation needs it.
	Authorities AuthorityPhase
	// Published says that pods which start get the certificate authorities of the key vault.
	Published bool
}

// Member is a machine of the control plane. A replacement has the index of the machine that it replaces and a higher generation.
type Member struct {
	Index, Generation int
	Version, Revision string
	Machine           bool // the machine exists
	Balanced          bool // the load balancers send requests to it
	Node              bool // it is a node
	Drained           bool // its node takes no pods and has none
	Voter, Learner    bool // its role in etcd
	Leader            bool
	Healthy           bool // its API server and its etcd answer
	OldPods           bool // it has pods that started before the next certificate authorities were published
}

// ID is the name of the member's unit, such as cp-0, and cp-0-2 for the second replacement.
func (m Member) ID() string { return naming.MemberUnit(m.Index, m.Generation) }

// Pool is a node pool.
type Pool struct {
	Name       string
	Standalone bool // its machines are not in a scale set
	// Model is the version that new machines of a scale set get, and Revision the revision.
	Model, Revision string
	// Desired is the number of nodes that an autoscaled pool had when its upgrade to Model began.
	Desired int
	// Limits are those of the autoscaler.
	Limits Limits
	// Zones are the availability zones of a scale set, none for a region without.
	Zones []string
	Nodes []Node
}

// Node is a machine of a pool.
type Node struct {
	Name, Version, Revision, Zone string
	Ready, Failed                 bool
	Cordoned, Drained             bool
	// First says that a person wants this node to go before others.
	First bool
	// Pods are the pods that a drain would evict, Volumes those that are attached.
	Pods, Volumes int
	// Age orders nodes: the oldest has the greatest.
	Age int64
}

// Target is what a cluster is to be.
//
// A revision stands for everything that machines are made from beside the version. One that is not known, "", counts as right.
type Target struct {
	Version string
	// Revision is that of the members.
	Revision string
	// Through are versions of minors on the way, such as 1.37 -> 1.37.4. The others are passed with their first patch.
	Through map[string]string
	Members int
	// InPlace says that members get another version without another machine.
	InPlace bool
	// Replace are members, by ID, that are replaced although they have the right version.
	Replace map[string]bool
	// Tokens are the join tokens, by ID, that are replaced by a new one. None for no rotation of the token.
	Tokens map[string]bool
	// Keys is the rotation of the key of service accounts or of that which encrypts Secrets, nil for none.
	Keys *KeyRotation
	// Authorities is the phase of the rotation of the certificate authorities that the change brings about, "" for none.
	Authorities AuthorityPhase
	Pools       []PoolTarget
}

// PoolTarget is what a pool is to be.
type PoolTarget struct {
	Name     string
	Replicas int
	// Autoscaled pools keep the number of nodes that they have.
	Autoscaled bool
	// Limits are those of an autoscaled pool.
	Limits Limits
	// Revision is that of the nodes.
	Revision string
	// Surge is the number of nodes that an upgrade makes before it removes one. At 0 it removes one first. A pool over zones gets up to
	// one a zone, until one is in the zone of an old node.
	Surge Amount
	// Unavailable is the number of nodes by which an upgrade may go below the number of the pool.
	Unavailable Amount
}

// Amount is a number of nodes such as 1, or a share of a pool such as 25%. "" is none.
type Amount string

// of is the number of nodes of a pool with so many, a share rounded up or down.
func (a Amount) of(nodes int, up bool) int {
	text, share := strings.CutSuffix(string(a), "%")
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0
	case !share:
		return n
	case up:
		return (nodes*n + 99) / 100
	}
	return nodes * n / 100
}

// Action is what a step does.
type Action string

// The actions.
const (
	Save         Action = "save etcd"
	SetVersion   Action = "set the version of the cluster"
	AddMember    Action = "add member"
	Unbalance    Action = "stop sending requests to member"
	DrainMember  Action = "drain member"
	RemoveVoter  Action = "remove from etcd"
	ForgetMember Action = "delete the node of member"
	DeleteMember Action = "delete the machine of member"
	// UpgradeMember upgrades a machine that goes on as a member.
	UpgradeMember Action = "upgrade in place member"
	SetModel      Action = "set the model of pool"
	Grow          Action = "grow pool"
	Cordon        Action = "cordon nodes of pool"
	Drain         Action = "drain node"
	DeleteNode    Action = "delete node"
	DeletePool    Action = "delete pool"
)

// Step is one step of a plan.
type Step struct {
	Action  Action `json:"action"`
	Member  string `json:"member,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Node    string `json:"node,omitempty"`
	Version string `json:"version,omitempty"`
	// Revision is that of the machines that a pool gets from now on.
	Revision string `json:"revision,omitempty"`
	// Count is the number of nodes after the step.
	Count int `json:"count,omitempty"`
	// Names are the nodes that are cordoned.
	Names []string `json:"names,omitempty"`
	// Limits are those that the autoscaler gets with the step.
	Limits *Limits `json:"limits,omitempty"`
	// Backup is the backup of etcd that a restore begins with.
	Backup string `json:"backup,omitempty"`
	// Token is the ID of a join token, which is no secret.
	Token string `json:"tokenId,omitempty"`
	// Phase is that of the rotation of the certificate authorities.
	Phase AuthorityPhase `json:"phase,omitempty"`

	index, generation int
}

// Slot is the index and the generation of the member that a step is about.
func (s Step) Slot() (index, generation int) { return s.index, s.generation }

// OfControlPlane reports whether a step changes the control plane.
func (s *Step) OfControlPlane() bool {
	return s != nil && (s.Member != "" || s.Action.ofKeys() || slices.Contains([]Action{Save, SetVersion, EditAuthorities}, s.Action))
}

func (s Step) String() string {
	parts := []string{string(s.Action)}
	for _, part := range []string{s.Member, s.Pool, s.Node, strings.Join(s.Names, ", "), s.Backup, s.Token, s.Phase.String()} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if s.Action == Grow {
		parts = append(parts, fmt.Sprintf("to %d", s.Count))
	}
	if s.Version != "" {
		parts = append(parts, s.Version)
	}
	if text := s.Limits.text(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// most is the greatest number of steps of a plan. A plan with more does not end, which is a mistake here.
const most = 20000

// Plan returns all steps from what is there to the target.
func Plan(c Cluster, t Target) ([]Step, error) {
	if err := Check(c, t); err != nil {
		return nil, err
	}
	var steps []Step
	for range most {
		step, err := Next(c, t)
		if err != nil || step == nil {
			return steps, err
		}
		steps = append(steps, *step)
		c = Apply(c, *step)
	}
	return steps, fmt.Errorf("the plan has more than %d steps", most)
}

// Next returns the next step, nil if the target is reached. The error says why no step is safe.
func Next(c Cluster, t Target) (*Step, error) {
	hop, err := hop(c, t)
	if err != nil {
		return nil, err
	}
	if step := c.rotateToken(t); step != nil {
		return step, nil
	}
	if step := c.late(t, hop); step != nil {
		return step, nil
	}
	step, t, err := c.rotateKeys(t, hop)
	if step != nil || err != nil {
		return step, err
	}
	if step, err := c.members(t, hop); step != nil || err != nil {
		return step, err
	}
	for _, pool := range c.Pools {
		if !slices.ContainsFunc(t.Pools, func(p PoolTarget) bool { return p.Name == pool.Name }) {
			return pool.remove(), nil
		}
	}
	for _, want := range t.Pools {
		if pool := c.pool(want.Name); pool != nil {
			if step := pool.next(want, t.Version); step != nil {
				return step, nil
			}
		}
	}
	return nil, nil
}

// members chooses the next step of the control plane, and what comes before and after it in a rotation of the certificate authorities.
func (c Cluster) members(t Target, hop string) (*Step, error) {
	if t.Authorities != "" && c.Authorities != t.Authorities {
		return &Step{Action: EditAuthorities, Phase: t.Authorities}, nil
	}
	if step, err := c.member(t, hop); step != nil || err != nil {
		return step, err
	}
	return c.publishAuthorities(t), nil
}

func (c Cluster) pool(name string) *Pool {
	i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &c.Pools[i]
}

// late upgrades a pool before the control plane goes on, if the kubelet would become older than the API server supports.
func (c Cluster) late(t Target, hop string) *Step {
	for _, want := range t.Pools {
		pool := c.pool(want.Name)
		if pool == nil || pool.oldest() == "" || minor(hop)-minor(pool.oldest()) <= kubeletSkew {
			continue
		}
		if step := pool.next(want, c.Version); step != nil {
			return step
		}
	}
	return nil
}

// ErrNoMajority is in the chain of an error about an etcd that takes no writes.
var ErrNoMajority = errors.New("which is no majority: restore it from a backup")

// member chooses the next step of the control plane. An old member goes when its replacement is complete. So etcd has at most
// one member more than the target, and never fewer.
func (c Cluster) member(t Target, hop string) (*Step, error) {
	voters, healthy := c.voters()
	if 2*healthy <= voters {
		return nil, fmt.Errorf("%d of %d members of etcd answer, %w", healthy, voters, ErrNoMajority)
	}
	wanted := c.wanted(t, hop)
	if step, err := c.dead(t); step != nil || err != nil {
		return step, err
	}
	for i := range t.Members {
		if m := wanted[i]; m != nil && !m.complete() {
			return c.add(*m, t, hop)
		}
	}
	if m := c.behind(t, hop); m != nil {
		return c.upgrade(*m, t, hop)
	}
	if m := c.leaving(t, wanted); m != nil {
		return c.remove(*m)
	}
	next := c.missing(t, wanted)
	if next == nil {
		return nil, nil
	}
	return c.add(*next, t, hop)
}

// voters counts the voters of etcd, and those that answer.
func (c Cluster) voters() (all, healthy int) {
	for _, m := range c.Members {
		if m.Voter {
			all++
			if m.Healthy {
				healthy++
			}
		}
	}
	return all, healthy
}

func (m Member) complete() bool { return m.Machine && m.Voter && m.Healthy && m.Node && m.Balanced }

// differ reports whether a revision is known and is not the wanted one.
func differ(revision, want string) bool { return revision != "" && revision != want }

// wanted are the members that stay, by index.
func (c Cluster) wanted(t Target, hop string) map[int]*Member {
	all := map[int]*Member{}
	for _, m := range c.Members {
		if m.Index >= t.Members || m.Version != hop || differ(m.Revision, t.Revision) || t.Replace[m.ID()] || !m.Machine {
			continue
		}
		if had := all[m.Index]; had == nil || had.Generation < m.Generation {
			all[m.Index] = &m
		}
	}
	return all
}

// dead removes what is left of members without a machine, and members that do not answer and are to be replaced.
func (c Cluster) dead(t Target) (*Step, error) {
	for _, m := range c.Members {
		if !m.Machine || t.Replace[m.ID()] && !m.Healthy {
			return c.remove(m)
		}
	}
	return nil, nil
}

// behind chooses the member that is upgraded in place next, the leader of etcd last.
func (c Cluster) behind(t Target, hop string) *Member {
	var all []Member
	for _, m := range c.Members {
		if t.InPlace && m.Machine && m.Index < t.Members && m.Version != hop && !differ(m.Revision, t.Revision) && !t.Replace[m.ID()] {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Member) int { return rank(a.Leader) - rank(b.Leader) })
	return &all[0]
}

// upgrade upgrades a member in place. Its API server and its etcd restart, so the other members must answer and get requests.
// If it is the only member, it keeps getting requests, because there is no other one.
func (c Cluster) upgrade(m Member, t Target, hop string) (*Step, error) {
	voters, _ := c.voters()
	for _, other := range c.Members {
		if voters > 1 && other.ID() != m.ID() && other.Voter && !other.Balanced && other.Version == c.Version {
			return c.add(other, t, c.Version)
		}
	}
	if step, err := c.prepared(m, hop); step != nil || err != nil {
		return step, err
	}
	switch {
	case m.Balanced && voters > 1:
		return m.step(Unbalance, ""), nil
	case !m.Drained:
		return m.step(DrainMember, ""), nil
	}
	return m.step(UpgradeMember, hop), nil
}

// prepared returns the step that must come before a member is made or upgraded. The other members must answer, etcd must be
// saved, and the cluster must have the version.
func (c Cluster) prepared(m Member, hop string) (*Step, error) {
	for _, other := range c.Members {
		if other.Voter && !other.Healthy && other.ID() != m.ID() {
			return nil, fmt.Errorf("member %s does not answer: repair it first", other.ID())
		}
	}
	switch {
	case !c.Saved:
		return &Step{Action: Save}, nil
	case c.Version != hop || c.Stale:
		return &Step{Action: SetVersion, Version: hop}, nil
	}
	return nil, nil
}

// leaving chooses the member that goes next, the leader of etcd last.
func (c Cluster) leaving(t Target, wanted map[int]*Member) *Member {
	var all []Member
	complete := len(wanted) == t.Members
	for _, m := range c.Members {
		stays := wanted[m.Index]
		switch {
		case m.Index >= t.Members && complete, stays != nil && stays.Generation != m.Generation:
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(rank(a.Voter)-rank(b.Voter), rank(a.Leader)-rank(b.Leader), b.Index-a.Index, a.Generation-b.Generation)
	})
	return &all[0]
}

func rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// missing returns the member to make next. Indexes without a member come first, then those with an old member. The index of
// the leader comes last.
func (c Cluster) missing(t Target, wanted map[int]*Member) *Member {
	var all []Member
	for i := range t.Members {
		if wanted[i] != nil {
			continue
		}
		next := Member{Index: i}
		for t.Replace[next.ID()] {
			next.Generation++
		}
		for _, m := range c.Members {
			if m.Index == i {
				next.Node = true // it replaces a member
				next.Leader = next.Leader || m.Leader
				next.Generation = max(next.Generation, m.Generation+1)
			}
		}
		all = append(all, next)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Member) int { return cmp.Or(rank(a.Node)-rank(b.Node), rank(a.Leader)-rank(b.Leader)) })
	return &all[0]
}

// add makes a member, or goes on with it. Etcd takes one new member at a time, and only if the others answer.
func (c Cluster) add(m Member, t Target, hop string) (*Step, error) {
	if step, err := c.prepared(m, hop); step != nil || err != nil {
		return step, err
	}
	step := m.step(AddMember, hop)
	step.Revision = t.Revision
	return step, nil
}

func (m Member) step(a Action, version string) *Step {
	return &Step{Action: a, Member: m.ID(), Version: version, index: m.Index, generation: m.Generation}
}

// remove removes a member. It stops the use of a part of the member before it removes that part.
func (c Cluster) remove(m Member) (*Step, error) {
	voters, healthy := c.voters()
	if m.Voter && m.Healthy {
		healthy--
	}
	if m.Voter && 2*healthy <= voters-1 {
		return nil, fmt.Errorf("member %s cannot go: %d of the other %d members of etcd answer", m.ID(), healthy, voters-1)
	}
	alive := m.Machine && m.Healthy
	switch {
	case !c.Saved:
		return &Step{Action: Save}, nil
	case m.Machine && m.Balanced:
		return m.step(Unbalance, ""), nil
	case m.Node && !m.Drained && alive:
		return m.step(DrainMember, ""), nil
	case m.Voter || m.Learner:
		return m.step(RemoveVoter, ""), nil
	case m.Node:
		return m.step(ForgetMember, ""), nil
	}
	return m.step(DeleteMember, ""), nil
}
