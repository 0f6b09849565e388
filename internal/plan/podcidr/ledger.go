package podcidr

import (
	"fmt"
	"net/netip"
	"slices"

	"kaz/internal/plan"
)

// Reasons of problems.
const (
	ReasonInvalid = "InvalidPodCIDR"
	ReasonOutside = "PodCIDROutsideClusterCIDR"
)

// Ledger records which node holds which blocks of the cluster's ranges. It is not safe for concurrent
// use.
type Ledger struct {
	pools []*Pool
	held  map[string]holding // by node
}

type holding struct {
	uid    string // of the Node, to detect a new node of the same name
	blocks []netip.Prefix
}

// NewLedger returns a ledger for ranges, one for each IP family. reserved are the parts for Services.
func NewLedger(ranges, reserved []netip.Prefix) *Ledger {
	l := &Ledger{held: map[string]holding{}}
	for _, r := range ranges {
		pool := NewPool(r)
		for _, taken := range reserved {
			pool.Hold(taken)
		}
		l.pools = append(l.pools, pool)
	}
	return l
}

// Ranges returns the cluster's ranges, in the order of a node's blocks.
func (l *Ledger) Ranges() []netip.Prefix {
	ranges := make([]netip.Prefix, len(l.pools))
	for i, p := range l.pools {
		ranges[i] = p.within
	}
	return ranges
}

// Used returns the used fraction of the i-th range, 0 to 1.
func (l *Ledger) Used(i int) float64 { return l.pools[i].Used() }

// Record records the blocks of a node, whoever assigned them. Blocks outside the cluster's ranges are
// problems and are not recorded.
func (l *Ledger) Record(node, uid string, cidrs []string) []plan.Problem {
	var problems []plan.Problem
	var blocks []netip.Prefix
	for _, text := range cidrs {
		block, err := netip.ParsePrefix(text)
		if err != nil {
			problems = append(problems, plan.Problem{
				Object: node, Reason: ReasonInvalid, Warning: true,
				Message: fmt.Sprintf("pod CIDR %q is not a range such as 10.244.0.0/24", text),
			})
			continue
		}
		block = block.Masked()
		if !slices.ContainsFunc(l.pools, func(p *Pool) bool { return p.within.Overlaps(block) }) {
			problems = append(problems, plan.Problem{
				Object: node, Reason: ReasonOutside, Warning: true,
				Message: fmt.Sprintf("pod CIDR %s is not in the cluster CIDRs %v", block, l.Ranges()),
			})
			continue
		}
		blocks = append(blocks, block)
	}
	if have, ok := l.held[node]; !ok || !slices.Equal(have.blocks, blocks) {
		l.change(blocks, (*Pool).Hold)
		l.Forget(node)
	}
	l.held[node] = holding{uid, blocks}
	return problems
}

// Assign assigns blocks to a node, with bits[i] in the i-th range. Until the node has them, further
// calls return the same blocks.
func (l *Ledger) Assign(node, uid string, bits []int) ([]netip.Prefix, error) {
	if have, ok := l.held[node]; ok && have.uid == uid && len(have.blocks) == len(l.pools) {
		return have.blocks, nil
	}
	l.Forget(node)
	blocks := make([]netip.Prefix, 0, len(l.pools))
	for i, p := range l.pools {
		block, err := p.Allocate(bits[i])
		if err != nil {
			l.change(blocks, (*Pool).Release)
			return nil, fmt.Errorf("pod CIDR of node %s: %w", node, err)
		}
		blocks = append(blocks, block)
	}
	l.held[node] = holding{uid, blocks}
	return blocks, nil
}

// Forget releases all blocks of a node and reports whether there were any.
func (l *Ledger) Forget(node string) bool {
	have, ok := l.held[node]
	delete(l.held, node)
	l.change(have.blocks, (*Pool).Release)
	return ok && len(have.blocks) > 0
}

func (l *Ledger) change(blocks []netip.Prefix, do func(*Pool, netip.Prefix) bool) {
	for _, block := range blocks {
		for _, p := range l.pools {
			do(p, block)
		}
	}
}
