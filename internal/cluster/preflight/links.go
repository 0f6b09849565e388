package preflight

import (
	"strings"

	"kaz/internal/cluster/graph"
)

// linkActions are the actions that Azure asks for at a resource when another one is written that refers to it, by the beginning of the
// type of the resource. The right to write resources is asked for in any case. TestLinkedRights compares with the local Azure.
func linkActions() map[string]string {
	return map[string]string{
		"Microsoft.ManagedIdentity/userAssignedIdentities": "/assign/action",
		"Microsoft.Network/": "/join/action",
	}
}

// linked are the actions that the resources of the plan need at each other, and at resources that exist in the cluster's group.
// [checker.mayUse] checks those of other groups.
func (c *checker) linked() map[string]bool {
	needed := map[string]bool{}
	for _, u := range c.p.Graph.Units {
		for _, r := range u.Resources {
			graph.Walk(r.Body, func(value any) {
				port, ok := value.(graph.Port)
				if !ok {
					return
				}
				to := c.typeOf(graph.Of(port), u.Name, r.Symbol)
				for prefix, action := range linkActions() {
					if strings.HasPrefix(to, prefix) {
						needed[to+action] = true
					}
				}
			})
		}
	}
	return needed
}

// typeOf is the type of what a reference in a resource of a unit is about. It is "" for the resource itself, and for one of another group.
func (c *checker) typeOf(ref graph.Ref, unit, symbol string) string {
	if id, exists := ref.Exists(); exists {
		if id.Under(c.p.Names.Group()) {
			return id.Type()
		}
		return ""
	}
	if u, s := ref.Target(); u == unit && s == symbol {
		return ""
	}
	target := c.p.Graph.Resource(ref)
	if target == nil {
		return ""
	}
	to := []string{target.Type}
	for i, part := range ref.Parts() {
		if i%2 == 0 { // a type, and then a name
			to = append(to, part)
		}
	}
	return strings.Join(to, "/")
}
