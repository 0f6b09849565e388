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

// Target is the address that a Service asks for in a family, and what is wrong with it. That of an external Service
// is the public IP that it names, one of the address it names, or its own.
func Target(x *index.Index, s *spec.Spec, a spec.Address) (t index.Target, wrong problem.List) {
	if s.Internal {
		return index.Target{Private: a.Pinned}, nil
	}
	group := x.Config.PublicIPGroup(s.Group)
	var id azure.ID
	by := "name"
	switch {
	case a.PublicIP != "":
		id = group.Resource(network.PublicIPAddresses, a.PublicIP)
	case a.Pinned != "":
		by = "address"
		if i := slices.IndexFunc(x.PublicIPsAt[a.Pinned], func(id azure.ID) bool { return id.Parent().Equal(group) }); i >= 0 {
			id = x.PublicIPsAt[a.Pinned][i]
		}
	default:
		id = group.Resource(network.PublicIPAddresses, naming.PublicIP(x.Config.ClusterName, s.Base, a.Prefix.Name(), a.Suffix))
	}
	ip := x.PublicIP(id)
	switch {
	case !a.Given() && (!ip.Exists() || ip.IsOnlyFor(s.Key())):
		return index.Target{PublicIP: id}, nil
	case !ip.Exists():
		wrong.Refuse(s.Key(), problem.Address, "%s is not found in resource group %s, allowed is the %s of a public IP that is there",
			a.Asked, group.Name(), by)
		return index.Target{}, wrong
	case !ip.HasFamily(a.Family):
		wrong.Refuse(s.Key(), problem.Address, "%s: public IP %s has %s, allowed is one with %s", cmp.Or(a.Asked, "its own"),
			id.Name(), ip.Properties.PublicIPAddressVersion, a.Family)
		return index.Target{}, wrong
	}
	checkLabelOwner(x, s, ip, &wrong)
	return index.Target{PublicIP: ip.ID}, wrong
}

// checkLabelOwner keeps a Service from naming a public IP that another one has named. A Service that is not known
// may ask for a label.
func checkLabelOwner(x *index.Index, s *spec.Spec, ip *index.PublicIP, wrong *problem.List) {
	owner := tag.LabelOwner(ip.Tags)
	if s.Label == nil || owner == "" || owner == s.Key() {
		return
	}
	all := slices.Concat(x.Staying(), x.All())
	named, or := ip.Label(), ""
	if i := slices.IndexFunc(all, func(s *v1.Service) bool { return spec.KeyOf(s) == owner }); i >= 0 {
		if label, _ := key.DNSLabel.Read(all[i].Annotations); label == "" {
			or = fmt.Sprintf("; that Service no longer asks for a label, but %q stays there until its annotation is \"\"", named)
		}
	}
	if named == "" && or != "" {
		return // the owner has taken it away again
	}
	wrong.Refuse(s.Key(), problem.DNSLabel,
		"annotation %s: %q cannot be set, Service %s has named public IP %s, allowed is one Service that does%s", key.DNSLabel.Name,
		*s.Label, owner, ip.ID.Name(), or)
}

// AsksFor reports whether a Service is to be served at a public IP.
func AsksFor(x *index.Index, s *spec.Spec, id azure.ID) bool {
	return slices.ContainsFunc(s.Addresses, func(a spec.Address) bool {
		t, _ := Target(x, s, a)
		return t.PublicIP.Equal(id)
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
		isOther := false
		if at := ip.Properties.IPConfiguration.To(); at != "" {
			f, known := x.FrontendAt(at)
			isOther = !known || f.Owner() != s.Owner && len(ip.Services) <= 1 && !f.UsedBy(s.Owner)
		} else if s.Service.Gone && len(ip.Services) == 1 { // it may have been made for another Service of the name
			owner := naming.PublicIPOwner(x.Config.ClusterName, ip.ID.Name())
			isOther = owner != "" && owner != s.Owner
		}
		if ip.Managed && !isOther && !slices.ContainsFunc(ids, ip.ID.Equal) {
			ids = append(ids, ip.ID)
		}
	}
	return ids
}

// WantsIPTags reports whether a Service asks for other IP tags than a public IP has.
func WantsIPTags(s *spec.Spec, have *index.PublicIP) bool {
	return s.IPTags != nil && (len(s.IPTags) != len(have.Properties.IPTags) ||
		slices.ContainsFunc(have.Properties.IPTags, func(has network.IPTag) bool {
			return !slices.ContainsFunc(s.IPTags, func(asked network.IPTag) bool {
				return strings.EqualFold(asked.IPTagType, has.IPTagType) && strings.EqualFold(asked.Tag, has.Tag)
			})
		}))
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
