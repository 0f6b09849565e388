// Package network has the behaviour of Microsoft.Network: virtual networks, load
// balancers, addresses, security groups, private links and DNS zones. Layer L2.
//
// What refers to a resource is not stored in it: the references that Azure shows
// in both directions are computed from the world's reference index when the
// resource is read.
package network

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// namespace begins the names of this provider's types.
const namespace = "Microsoft.Network/"

// Provider is Microsoft.Network.
func Provider() behaviour.Provider {
	return behaviour.Provider{
		Types: slices.Concat(
			[]behaviour.Type{publicIPAddresses(), publicIPPrefixes()},
			virtualNetworkTypes(),
			securityGroupTypes(),
			[]behaviour.Type{routeTables(), routes()},
			networkInterfaceTypes(),
			loadBalancerTypes(),
			[]behaviour.Type{natGateways(), applicationSecurityGroups(), ipGroups()},
			privateLinkTypes(),
			privateZoneTypes(),
			zoneTypes(),
		),
		Routes: []behaviour.Route{usages(), domainNameAvailability()},
	}
}

// tracked is a top-level type with a location and a resourceGuid.
func tracked(name string, t behaviour.Type) behaviour.Type {
	t.Name = namespace + name
	t.Where = behaviour.Located
	t.Own = append(t.Own, "properties.resourceGuid")
	fill := t.Fill
	t.Fill = func(c *behaviour.Call) error {
		if err := checkName(c.ID); err != nil {
			return err
		}
		if behaviour.At(c.Doc, "properties.resourceGuid") == nil {
			behaviour.Set(c.Doc, "properties.resourceGuid", c.GUID())
		}
		if fill == nil {
			return nil
		}
		return fill(c)
	}
	return t
}

// inside is a type whose resources live in their parent's document.
func inside(name, inline string, t behaviour.Type) behaviour.Type {
	t.Name = namespace + name
	t.Inline = inline
	if t.Style.Name == "" {
		t.Style = behaviour.Network()
	}
	fill := t.Fill
	t.Fill = func(c *behaviour.Call) error {
		if err := checkName(c.ID); err != nil {
			return err
		}
		behaviour.Default(c.Doc, "properties", behaviour.Object{})
		if fill == nil {
			return nil
		}
		return fill(c)
	}
	return t
}

// waiting is the network style with the Retry-After of a type's writes.
func waiting(first, later int) behaviour.Style {
	s := behaviour.Network()
	s.Otherwise = behaviour.Wait{First: first, Later: later}
	return s
}

// users are those that refer to a resource at one of the paths, each once.
func users(w behaviour.World, id azure.ID, paths ...string) []behaviour.Referrer {
	var found []behaviour.Referrer
	seen := map[string]bool{}
	for _, r := range w.Referrers(id) {
		if slices.Contains(paths, r.Path) && !seen[r.Object.Key()] {
			seen[r.Object.Key()] = true
			found = append(found, r)
		}
	}
	return found
}

// objects are the ids of the objects in which the references are.
func objects(by []behaviour.Referrer) []azure.ID {
	ids := make([]azure.ID, len(by))
	for i, r := range by {
		ids[i] = r.Object
	}
	return ids
}

// show writes a list of references into a view, or nothing when there are none.
func show(view behaviour.Object, path string, by []behaviour.Referrer) {
	if len(by) > 0 {
		behaviour.Set(view, path, behaviour.Refs(objects(by)))
	}
}

// scaleSetOf is the scale set that an id belongs to or is of, "" for none.
func scaleSetOf(id azure.ID) azure.ID {
	const scaleSets = "/virtualmachinescalesets/"
	i := strings.Index(id.Key(), scaleSets)
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(string(id[i+len(scaleSets):]), "/")
	return id[:i+len(scaleSets)+len(name)]
}

// scaleSetAmong is the first scale set among referrers, "" for none.
func scaleSetAmong(by []behaviour.Referrer) azure.ID {
	for _, r := range by {
		if set := scaleSetOf(r.Resource); set != "" {
			return set
		}
	}
	return ""
}
