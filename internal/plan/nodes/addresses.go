package nodes

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// providedIPs is the annotation in which a kubelet with --node-ip records its addresses.
const providedIPs = "alpha.kubernetes.io/provided-node-ip"

// NewAddresses returns the addresses of a node: those of its machine, and the kubelet's host name if
// the machine has none. It returns false if the node already has them; order does not matter. It
// returns an error if the kubelet uses an address that the machine does not have.
func NewAddresses(node *v1.Node, machine []v1.NodeAddress) ([]v1.NodeAddress, bool, error) {
	if len(machine) == 0 {
		return nil, false, nil
	}
	if err := provided(node, machine); err != nil {
		return nil, false, err
	}
	want := slices.Clone(machine)
	if at := indexOfType(want, v1.NodeHostName); at < 0 {
		if at = indexOfType(node.Status.Addresses, v1.NodeHostName); at >= 0 {
			want = append(want, node.Status.Addresses[at])
		}
	}
	return want, !sameAddresses(node.Status.Addresses, want), nil
}

func provided(node *v1.Node, machine []v1.NodeAddress) error {
	for text := range strings.SplitSeq(node.Annotations[providedIPs], ",") {
		text = strings.TrimSpace(text)
		if text != "" && !slices.ContainsFunc(machine, func(a v1.NodeAddress) bool { return sameAddress(a.Address, text) }) {
			return fmt.Errorf("the kubelet of node %s uses the address %q (annotation %s), which its machine does not have: it has %s",
				node.Name, text, providedIPs, addressTexts(machine))
		}
	}
	return nil
}

func sameAddress(a, b string) bool {
	if a == b {
		return true
	}
	x, err := netip.ParseAddr(a)
	if err != nil {
		return false
	}
	y, err := netip.ParseAddr(b)
	return err == nil && x == y
}

func addressTexts(all []v1.NodeAddress) string {
	var texts []string
	for _, a := range all {
		if a.Type != v1.NodeHostName {
			texts = append(texts, a.Address)
		}
	}
	return strings.Join(texts, ", ")
}

func indexOfType(all []v1.NodeAddress, t v1.NodeAddressType) int {
	return slices.IndexFunc(all, func(a v1.NodeAddress) bool { return a.Type == t })
}

func sameAddresses(a, b []v1.NodeAddress) bool {
	if len(a) != len(b) {
		return false
	}
	count := map[v1.NodeAddress]int{}
	for i := range a {
		count[a[i]]++
		count[b[i]]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

// KeepOutside adds a node's external addresses to those of its machine. Use it when the machine's
// external addresses could not be read.
func KeepOutside(node *v1.Node, machine []v1.NodeAddress) []v1.NodeAddress {
	all := slices.Clone(machine)
	for _, a := range node.Status.Addresses {
		if a.Type == v1.NodeExternalIP && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}
