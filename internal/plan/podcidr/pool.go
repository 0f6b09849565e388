package podcidr

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrExhausted is the error of a pool without a free block of the size.
var ErrExhausted = errors.New("no free block")

// Pool allocates blocks in a range. Blocks of different sizes never overlap, and a held block stays
// held whatever sizes are allocated later. It is not safe for concurrent use.
//
// A released block is reused as late as possible, because clients may still send to the former pods.
type Pool struct {
	within netip.Prefix
	root   *block
	next   netip.Addr // start of the next search
}

// NewPool returns a pool for a range.
func NewPool(within netip.Prefix) *Pool {
	within = within.Masked()
	return &Pool{within: within, next: within.Addr()}
}

// Allocate holds a free block of the prefix length bits, 24 for a /24.
func (p *Pool) Allocate(bits int) (netip.Prefix, error) {
	if bits < p.within.Bits() || bits > p.within.Addr().BitLen() {
		return netip.Prefix{}, fmt.Errorf("a /%d is no part of %s", bits, p.within)
	}
	found, ok := p.root.first(p.within, bits, p.next)
	if !ok {
		found, ok = p.root.first(p.within, bits, p.within.Addr())
	}
	if !ok {
		return netip.Prefix{}, fmt.Errorf("%w of size /%d in %s", ErrExhausted, bits, p.within)
	}
	p.root = p.root.hold(p.within, found, 1)
	if p.next = last(found).Next(); !p.within.Contains(p.next) {
		p.next = p.within.Addr()
	}
	return found, nil
}

// Hold adds a holder to the part of a block that is in the range, even if others hold it. It reports
// whether any part is in the range.
func (p *Pool) Hold(r netip.Prefix) bool { return p.change(r, 1) }

// Release undoes one Hold or Allocate of exactly this block.
func (p *Pool) Release(r netip.Prefix) bool { return p.change(r, -1) }

func (p *Pool) change(r netip.Prefix, by int) bool {
	r = r.Masked()
	if !r.IsValid() || !r.Overlaps(p.within) {
		return false
	}
	if r.Bits() < p.within.Bits() {
		r = p.within
	}
	p.root = p.root.hold(p.within, r, by)
	return true
}

// Used returns the held fraction of the range, 0 to 1.
func (p *Pool) Used() float64 { return p.root.part() }

// block is a node of the binary tree of blocks; nil is a block without holders.
type block struct {
	holders int     // holders of exactly this block
	free    int     // prefix length of the largest free block in it, or none
	used    float64 // held fraction
	half    [2]*block
}

const none = 129 // longer than any prefix

func (b *block) part() float64 {
	if b == nil {
		return 0
	}
	return b.used
}

func (b *block) largest(bits int) int {
	if b == nil {
		return bits
	}
	return b.free
}

// hold adds by holders to r, in the block with the range base.
func (b *block) hold(base, r netip.Prefix, by int) *block {
	if b == nil {
		if by < 0 {
			return nil
		}
		b = &block{}
	}
	if base.Bits() == r.Bits() {
		b.holders = max(b.holders+by, 0)
	} else {
		for i := range b.half {
			if h := halfOf(base, i); h.Overlaps(r) {
				b.half[i] = b.half[i].hold(h, r, by)
			}
		}
	}
	if b.holders > 0 {
		b.free, b.used = none, 1
		return b
	}
	if b.half[0] == nil && b.half[1] == nil {
		return nil
	}
	b.free = min(b.half[0].largest(base.Bits()+1), b.half[1].largest(base.Bits()+1))
	b.used = (b.half[0].part() + b.half[1].part()) / 2
	return b
}

// first returns the first free block of the size in base that starts at from or later.
func (b *block) first(base netip.Prefix, bits int, from netip.Addr) (netip.Prefix, bool) {
	if last(base).Less(from) || b.largest(base.Bits()) > bits {
		return netip.Prefix{}, false
	}
	if b == nil {
		return align(base, bits, from)
	}
	for i := range b.half {
		if base.Bits() < bits {
			if found, ok := b.half[i].first(halfOf(base, i), bits, from); ok {
				return found, true
			}
		}
	}
	return netip.Prefix{}, false
}

// align returns the first block of the size in base that starts at from or later.
func align(base netip.Prefix, bits int, from netip.Addr) (netip.Prefix, bool) {
	if from.Less(base.Addr()) {
		from = base.Addr()
	}
	found := netip.PrefixFrom(from, bits).Masked()
	if found.Addr() != from {
		found = netip.PrefixFrom(last(found).Next(), bits)
	}
	return found, found.IsValid() && base.Contains(found.Addr())
}

func halfOf(base netip.Prefix, i int) netip.Prefix {
	address := base.Addr().AsSlice()
	if i == 1 {
		address[base.Bits()/8] |= 0x80 >> (base.Bits() % 8)
	}
	half, _ := netip.AddrFromSlice(address) // has the same length
	return netip.PrefixFrom(half, base.Bits()+1)
}

// last returns the last address of a block.
func last(p netip.Prefix) netip.Addr {
	address := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(address)*8; bit++ {
		address[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(address)
	return end
}
