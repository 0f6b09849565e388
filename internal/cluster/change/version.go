package change

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// kubeletSkew is how many minor versions a kubelet may be older than the API server.
const kubeletSkew = 3

// numbers are the parts of a version such as 1.36.2. What is no number counts as 0.
func numbers(version string) [3]int {
	var all [3]int
	for i, part := range strings.SplitN(strings.TrimPrefix(version, "v"), ".", len(all)) {
		all[i], _ = strconv.Atoi(part)
	}
	return all
}

func minor(version string) int { return numbers(version)[1] }

func compare(a, b string) int {
	x, y := numbers(a), numbers(b)
	return slices.Compare(x[:], y[:])
}

// lowest is the lowest version of the members that have a machine.
func (c Cluster) lowest() string {
	var versions []string
	for _, m := range c.Members {
		if m.Machine {
			versions = append(versions, m.Version)
		}
	}
	if len(versions) == 0 {
		return ""
	}
	return slices.MinFunc(versions, compare)
}

// hop is the version to which the control plane goes now: the target, or the next minor version on the way to it.
func hop(c Cluster, t Target) (string, error) {
	from := c.lowest()
	if from == "" {
		return "", errors.New("the control plane has no machine: restore it from a backup")
	}
	next := minor(from) + 1
	if next >= minor(t.Version) {
		return t.Version, nil
	}
	return cmp.Or(t.Through[fmt.Sprintf("1.%d", next)], fmt.Sprintf("1.%d.0", next)), nil
}

// Check refuses targets that Kubernetes does not support.
func Check(c Cluster, t Target) error {
	for _, m := range c.Members {
		if m.Machine && minor(t.Version) < minor(m.Version) {
			return fmt.Errorf("member %s has version %s, and %s is older: Kubernetes has no way back to an earlier minor version "+
				"but a backup from before", m.ID(), m.Version, t.Version)
		}
	}
	if err := c.skew(); err != nil {
		return err
	}
	for _, version := range t.Through {
		if compare(version, t.Version) > 0 {
			return fmt.Errorf("version %s is not on the way to %s", version, t.Version)
		}
	}
	if t.Members != 1 && t.Members != 3 && t.Members != 5 {
		return fmt.Errorf("%d members: want 1, 3 or 5", t.Members)
	}
	return nil
}

// skew refuses nodes that Kubernetes does not support beside the control plane.
func (c Cluster) skew() error {
	for _, p := range c.Pools {
		for _, n := range p.Nodes {
			if n.Version != "" && compare(n.Version, c.lowest()) > 0 && minor(n.Version) > minor(c.lowest()) {
				return fmt.Errorf("node %s of pool %s has version %s, and member with %s: a kubelet must not be newer than the API server",
					n.Name, p.Name, n.Version, c.lowest())
			}
			if n.Version != "" && minor(c.lowest())-minor(n.Version) > kubeletSkew {
				return fmt.Errorf("node %s of pool %s has version %s, which is more than %d minor versions older than the control plane: "+
					"remove it", n.Name, p.Name, n.Version, kubeletSkew)
			}
		}
	}
	return nil
}

// DNS is the tag of the image of CoreDNS that kubeadm of a version installs, "" for a version that is not known. Patches of a minor
// version have the same one, except 1.31.
func DNS(version string) string {
	return map[int]string{
		31: "v1.11.3", 32: "v1.11.3", 33: "v1.12.0", 34: "v1.12.1", 35: "v1.13.1", 36: "v1.14.2", 37: "v1.14.6",
	}[minor(version)]
}

// Older reports whether a version such as 1.36.2 or v1.36.2 is older than another one.
func Older(a, b string) bool { return compare(a, b) < 0 }
