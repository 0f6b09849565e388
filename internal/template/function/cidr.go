package function

import (
	"errors"
	"math/big"
	"net/netip"
)

// networks has the functions of address ranges.
var networks = map[string]Function{
	"parsecidr":  {Least: 1, Most: 1, Do: parseCIDR},
	"cidrsubnet": {Least: 3, Most: 3, Do: cidrSubnet},
	"cidrhost":   {Least: 2, Most: 2, Do: cidrHost},
}

// rangeOf is the range of addresses in an argument.
func rangeOf(value any) (netip.Prefix, error) {
	text, _ := value.(string)
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, Expects("an address range such as 10.0.0.0/16")
	}
	return p.Masked(), nil
}

// offset is the address that is n after the first address of a range, and whether the range has it.
func offset(p netip.Prefix, n *big.Int) (netip.Addr, bool) {
	sum := new(big.Int).Add(new(big.Int).SetBytes(p.Addr().AsSlice()), n)
	if sum.Sign() < 0 || sum.BitLen() > p.Addr().BitLen() {
		return netip.Addr{}, false
	}
	addr, _ := netip.AddrFromSlice(sum.FillBytes(make([]byte, p.Addr().BitLen()/8)))
	return addr, p.Contains(addr)
}

// span is how many addresses a range has.
func span(p netip.Prefix) *big.Int {
	return new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
}

// mask is the network mask of a prefix length.
func mask(addr netip.Addr, bits int) string {
	ones := make([]byte, addr.BitLen()/8)
	for i := range ones {
		ones[i] = 0xff
	}
	all, _ := netip.AddrFromSlice(ones)
	return netip.PrefixFrom(all, bits).Masked().Addr().String()
}

func parseCIDR(args []any) (any, error) {
	p, err := rangeOf(args[0])
	if err != nil {
		return nil, err
	}
	last, _ := offset(p, new(big.Int).Sub(span(p), big.NewInt(1)))
	parsed := map[string]any{"network": p.Addr().String(), "netmask": mask(p.Addr(), p.Bits()), "cidr": Number(p.Bits()),
		"firstUsable": p.Addr().String(), "lastUsable": last.String()}
	if p.Addr().Is6() {
		return parsed, nil
	}
	parsed["broadcast"] = last.String()
	if p.Bits() < p.Addr().BitLen()-1 {
		parsed["firstUsable"], parsed["lastUsable"] = p.Addr().Next().String(), last.Prev().String()
	}
	return parsed, nil
}

// cidrSubnet is cidrSubnet(range, prefix length, index).
func cidrSubnet(args []any) (any, error) {
	p, err := rangeOf(args[0])
	if err != nil {
		return nil, err
	}
	bits, ok := Whole(args[1])
	index, also := Whole(args[2])
	if !ok || !also || index < 0 || bits < int64(p.Bits()) || bits > int64(p.Addr().BitLen()) {
		return nil, Expects("an address range, a prefix length that is not shorter than that of the range, and an index")
	}
	size := span(netip.PrefixFrom(p.Addr(), int(bits)))
	first, inside := offset(p, size.Mul(size, big.NewInt(index)))
	if !inside {
		return nil, errors.New("the index of the function 'cidrSubnet' is out of the address range")
	}
	return netip.PrefixFrom(first, int(bits)).String(), nil
}

// cidrHost is cidrHost(range, index): index 0 is the first address after that of the network.
func cidrHost(args []any) (any, error) {
	p, err := rangeOf(args[0])
	if err != nil {
		return nil, err
	}
	index, ok := Whole(args[1])
	if !ok || index < 0 {
		return nil, Expects("an address range and an index")
	}
	host, inside := offset(p, big.NewInt(index+1))
	if !inside {
		return nil, errors.New("the index of the function 'cidrHost' is out of the address range")
	}
	return host.String(), nil
}
