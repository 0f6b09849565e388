package loadbalancer

import (
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
)

// A Service may name a resource group that may not be read, or does not exist. What is in
// it is not known, so whoever asks for anything there, or has it, is left as he is; all
// others are served. A subnet that may not be read holds up in the same way whoever asks for
// an address there; what he has there is known, and can go.

// refuseUnread refuses a Service that needs what cannot be read.
func (f *facts) refuseUnread(w wish, found *problems) {
	refuse := func(asked key.Annotation[string], name string, scope azure.ID, fullType string) {
		if why, unread := f.Have.Unread(scope, fullType); unread {
			found.refuse(w.service.Key(), ReasonUnread, "annotation %s: %q %s, allowed is %s; to do: %s",
				asked.Name, name, whyUnread(why), asked.Allowed, cureUnread(why, fullType))
		}
	}
	refuse(key.PublicIPGroup, w.group, f.Config.publicIPs(w.group), network.PublicIPAddresses)
	refuse(key.InternalSubnet, w.subnet, f.Config.subnet(w.subnet), network.Subnets)
	if w.link != nil {
		refuse(key.LinkGroup, w.link.group, f.Config.links(w.link.group), network.PrivateLinkServices)
		if w.link.subnet != w.subnet { // else it is the same one, and told
			refuse(key.LinkSubnet, w.link.subnet, f.Config.subnet(w.link.subnet), network.Subnets)
		}
	}
	if !found.blocking() {
		f.isReadable(w, found)
	}
}

func whyUnread(why azure.Kind) string {
	if why == azure.NotFound {
		return "is not found"
	}
	return "may not be read"
}

func cureUnread(why azure.Kind, fullType string) string {
	if why == azure.NotFound {
		return "make the group, or name another one"
	}
	return "give the cluster's identity the right " + fullType + "/read there, or name another one"
}

// isReadable reports whether what a Service has at load balancers can be read. One of which
// it cannot stays: nobody could tell what goes with it.
func (f *facts) isReadable(w wish, found *problems) bool {
	for _, ip := range f.publicIPsOf(w.base) {
		if why, unread := f.Have.Unread(ip.Parent(), network.PublicIPAddresses); unread {
			found.refuse(w.service.Key(), ReasonUnread, "the resource group %q of its public IP %s %s, allowed is one that can be read; to do: %s",
				ip.Parent().Name(), ip.Name(), whyUnread(why), cureUnread(why, network.PublicIPAddresses))
			return false
		}
	}
	stays := key.LinkStays(w.service.Annotations)
	groups := groupsOf(key.PrivateLinks, key.Noted(w.service.Status.Conditions))
	if stays {
		name, _ := key.LinkGroup.Read(w.service.Annotations)
		groups = append(groups, name)
	}
	for _, name := range groups {
		group := f.Config.links(name)
		if why, unread := f.Have.Unread(group, network.PrivateLinkServices); why != azure.NotFound && unread && len(f.ofOwner(w.base)) > 0 {
			found.refuse(w.service.Key(), ReasonUnread, "the resource group %q of its private link service %s, allowed is one that can be read; to do: %s",
				group.Name(), whyUnread(why), cureUnread(why, network.PrivateLinkServices))
			return false
		}
	}
	return stays && !w.service.Gone || f.mayBeCutOff(w, found)
}

// mayBeCutOff reports whether it can be read who is connected to the private link services of a
// Service that asks for none any more. They have to leave first.
func (f *facts) mayBeCutOff(w wish, found *problems) bool {
	for _, id := range slices.Sorted(maps.Keys(f.linksByID)) {
		l := f.linksByID[id]
		if owner, _ := l.Tags.Get(tagLinkOwner); owner != w.service.Key() || !f.Config.isManagedLink(l) {
			continue
		}
		if why, unread := f.Have.Unread(l.ID, network.PrivateEndpointConnections); unread && why != azure.NotFound {
			found.refuse(w.service.Key(), ReasonUnread, "who is connected to its private link service %s, which goes, %s; to do: give the cluster's identity the right %s/read there",
				l.ID.Name(), whyUnread(why), network.PrivateEndpointConnections)
			return false
		}
	}
	return true
}

// publicIPsOf are the public IPs of the frontends that a Service has, or stands at.
func (f *facts) publicIPsOf(base string) []azure.ID {
	spots := f.ofOwner(base)
	for _, s := range f.sides {
		for _, r := range s.ruled[strings.ToLower(base)] {
			if ref := r.FrontendIPConfiguration; ref != nil {
				spots = append(spots, spot{s, ref.ID.Name()})
			}
		}
	}
	var ips []azure.ID
	for _, at := range spots {
		if fe, _ := at.frontend(); fe.Properties.PublicIPAddress != nil {
			ips = append(ips, fe.Properties.PublicIPAddress.ID)
		}
	}
	return ips
}

// hasUnreadAddress reports whether a frontend has a public IP that could not be read: then
// it is not known whose a destination of a security rule is.
func (f *facts) hasUnreadAddress() bool {
	return slices.ContainsFunc(f.sides, func(s *side) bool {
		return slices.ContainsFunc(s.lb.Properties.FrontendIPConfigurations, func(fe azure.Child[network.FrontendIPConfiguration]) bool {
			ip := fe.Properties.PublicIPAddress
			if ip == nil {
				return false
			}
			_, unread := f.Have.Unread(ip.ID.Parent(), network.PublicIPAddresses)
			return unread
		})
	})
}
