// Package publicip finds the public IPs of Services and decides what Azure must hold
// of them: those that are made, changed and deleted, with their tags and DNS labels. Layer L1.
package publicip

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/loadbalancer/tag"
)

// Target is the address that a Service asks for in a family, and what is wrong with it.
func Target(x *index.Index, s *spec.Spec, a spec.Address) (index.Target, problem.List) {
	if s.Internal {
		return index.Target{Private: a.Pinned}, nil
	}
	id, wrong := find(x, s, a)
	return index.Target{PublicIP: id}, wrong
}

// find is the public IP that a Service is to have: the one it names, one of
// the address it names, or its own.
func find(x *index.Index, s *spec.Spec, a spec.Address) (id azure.ID, wrong problem.List) {
	group := x.Config.PublicIPGroup(s.Group)
	switch {
	case a.PublicIP != "":
		id = group.Resource(network.PublicIPAddresses, a.PublicIP)
		if !x.PublicIP(id).Exists() {
			wrong.Refuse(s.Key(), problem.Address,
				"%s is not found in resource group %s, allowed is the name of a public IP that is there", a.Asked, group.Name())
			return "", wrong
		}
	case a.Pinned != "":
		at := x.PublicIPsAt[a.Pinned]
		i := slices.IndexFunc(at, func(id azure.ID) bool { return id.Parent().Equal(group) })
		if i < 0 {
			wrong.Refuse(s.Key(), problem.Address,
				"%s is not found in resource group %s, allowed is the address of a public IP that is there", a.Asked, group.Name())
			return "", wrong
		}
		id = at[i]
	default:
		id = group.Resource(network.PublicIPAddresses, naming.PublicIP(x.Config.ClusterName, s.Base, a.Prefix.Name(), a.Suffix))
		if ip := x.PublicIP(id); !ip.Exists() || ip.IsOnlyFor(s.Key()) {
			return id, nil
		}
	}
	ip := x.PublicIP(id)
	if !ip.HasFamily(a.Family) {
		wrong.Refuse(s.Key(), problem.Address, "%s: public IP %s has %s, allowed is one with %s", cmp.Or(a.Asked, "its own"),
			id.Name(), ip.Properties.PublicIPAddressVersion, a.Family)
		return "", wrong
	}
	checkLabelOwner(x, s, ip, &wrong)
	return ip.ID, wrong
}

// checkLabelOwner keeps a Service from naming a public IP that another one has named.
func checkLabelOwner(x *index.Index, s *spec.Spec, ip *index.PublicIP, wrong *problem.List) {
	owner := tag.LabelOwner(ip.Tags)
	if s.Label == nil || owner == "" || owner == s.Key() {
		return
	}
	named, asks := ip.Label(), asksForLabel(x, owner)
	if named == "" && !asks {
		return // the owner has taken it away again
	}
	or := ""
	if !asks {
		or = fmt.Sprintf("; that Service no longer asks for a label, but %q stays there until its annotation is \"\"", named)
	}
	wrong.Refuse(s.Key(), problem.DNSLabel,
		"annotation %s: %q cannot be set, Service %s has named public IP %s, allowed is one Service that does%s", key.DNSLabel.Name,
		*s.Label, owner, ip.ID.Name(), or)
}

// asksForLabel reports whether a Service, by its key, asks for a DNS label. A Service that is not
// known may do so.
func asksForLabel(x *index.Index, service string) bool {
	all := slices.Concat(x.Staying(), x.All())
	i := slices.IndexFunc(all, func(s *v1.Service) bool { return spec.KeyOf(s) == service })
	if i < 0 {
		return true
	}
	label, _ := key.DNSLabel.Read(all[i].Annotations)
	return label != ""
}

// AsksFor reports whether a Service is to be served at a public IP.
func AsksFor(x *index.Index, s *spec.Spec, id azure.ID) bool {
	return !s.Internal && slices.ContainsFunc(s.Addresses, func(a spec.Address) bool {
		found, _ := find(x, s, a)
		return found != "" && found.Equal(id)
	})
}

// GivesUp reports whether the owner of a frontend asks for another one, or for another address.
func GivesUp(x *index.Index, s *spec.Spec, at index.Frontend) bool {
	i := slices.IndexFunc(s.Addresses, func(a spec.Address) bool { return a.Frontend() == at.Name })
	if i < 0 || s.Internal != at.LB.Internal {
		return true
	}
	next, _ := Target(x, s, s.Addresses[i])
	return next.Key() != "" && next.Key() != index.TargetOf(at.State()).Key()
}

// ManagedOf lists the managed public IPs that a tag says serve a Service. A public IP that
// something else uses is not among them.
func ManagedOf(x *index.Index, s *spec.Spec) []azure.ID {
	var ids []azure.ID
	for _, ip := range x.PublicIPsFor[s.Key()] {
		if ip.Managed && isAt(x, ip, s) && !isOfSuccessor(x, ip, s) && !slices.ContainsFunc(ids, ip.ID.Equal) {
			ids = append(ids, ip.ID)
		}
	}
	return ids
}

// isOfSuccessor reports whether a public IP that nothing uses yet was made for another
// Service of the name of one that is gone.
func isOfSuccessor(x *index.Index, ip *index.PublicIP, s *spec.Spec) bool {
	if !s.Service.Gone || len(ip.Services) != 1 || ip.Properties.IPConfiguration != nil {
		return false
	}
	owner := naming.PublicIPOwner(x.Config.ClusterName, ip.ID.Name())
	return owner != "" && owner != s.Owner
}

// isAt reports whether a public IP is free, or at a frontend that a Service owns or shares.
func isAt(x *index.Index, ip *index.PublicIP, s *spec.Spec) bool {
	at := ip.Properties.IPConfiguration
	if at == nil {
		return true
	}
	f, known := x.FrontendAt(at.ID)
	return known && (f.Owner() == s.Owner || len(ip.Services) > 1 || f.UsedBy(s.Owner))
}

// WantsIPTags reports whether a Service asks for other IP tags than a public IP has.
func WantsIPTags(s *spec.Spec, have *index.PublicIP) bool {
	return s.IPTags != nil && !sameIPTags(have.Properties.IPTags, s.IPTags)
}

func sameIPTags(a, b []network.IPTag) bool {
	isIn := func(list []network.IPTag, x network.IPTag) bool {
		return slices.ContainsFunc(list, func(y network.IPTag) bool {
			return strings.EqualFold(x.IPTagType, y.IPTagType) && strings.EqualFold(x.Tag, y.Tag)
		})
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x network.IPTag) bool { return !isIn(b, x) })
}

// IPTagsText is a public IP's IP tags as an annotation has them.
func IPTagsText(ip *index.PublicIP) string {
	var pairs []string
	for _, tag := range ip.Properties.IPTags {
		pairs = append(pairs, tag.IPTagType+"="+tag.Tag)
	}
	return cmp.Or(strings.Join(pairs, ","), "none")
}

// IsOutdated reports whether a public IP must be recreated: its IP tags or its family differ from the
// request, and its tag names no other Service.
func IsOutdated(x *index.Index, s *spec.Spec, p batch.Placement) bool {
	have := p.Public
	return have.Exists() && p.Own && (!x.Config.IPTagsMayChange && WantsIPTags(s, have) || !have.HasFamily(p.Family)) &&
		have.IsOnlyFor(s.Key())
}

// TagsOfOther are the tags of a public IP for which a Service asks that this decision leaves unchanged.
func TagsOfOther(x *index.Index, service string, have *index.PublicIP) azure.Tags {
	tags := azure.Tags{}
	for _, o := range x.All() {
		if spec.KeyOf(o) != service {
			continue
		}
		asked, _ := key.PublicIPTags.Read(o.Annotations)
		for name := range asked.Values {
			if value, there := have.Tags.Get(name); there {
				tags[name] = value
			}
		}
	}
	return tags
}
