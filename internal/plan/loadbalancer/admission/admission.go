// Package admission checks whether what a Service asks for exists and can be read: its subnets, resource groups and the
// security group. If something of a Service cannot be read, the Service stays as it is: the decision could not tell what
// goes with it. Layer L1.
package admission

import (
	"fmt"
	"net/netip"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// Check finds what keeps a live Service from being served, whatever the other Services ask for.
func Check(x *index.Index, s *spec.Spec, wrong *problem.List) {
	require := func(asked key.Annotation[string], name string, scope azure.ID, fullType string) {
		refuseUnread(x, s, scope, fullType, fmt.Sprintf("annotation %s: %q", asked.Name, name), asked.Allowed, wrong)
	}
	require(key.PublicIPGroup, s.Group, x.Config.PublicIPGroup(s.Group), network.PublicIPAddresses)
	require(key.InternalSubnet, s.Subnet, x.Config.SubnetID(s.Subnet), network.Subnets)
	if s.Link != nil {
		require(key.LinkGroup, s.Link.Group, x.Config.LinkGroup(s.Link.Group), network.PrivateLinkServices)
		if s.Link.Subnet != s.Subnet { // else it is the same one, and reported
			require(key.LinkSubnet, s.Link.Subnet, x.Config.SubnetID(s.Link.Subnet), network.Subnets)
		}
	}
	if !wrong.Blocking() {
		CanRead(x, s, wrong)
	}
	switch {
	case x.Config.SecurityGroupName == "":
		wrong.Refuse(s.Key(), problem.SecurityGroup,
			"securityGroupName is not configured, allowed is the name of the nodes' network security group")
	case !x.HasSecurityGroup:
		wrong.Refuse(s.Key(), problem.SecurityGroup,
			"network security group %s is not found, allowed is one that is there: make it, or configure another securityGroupName%s",
			x.Config.SecurityGroupID(), x.AzureSays(x.Config.SecurityGroupID()))
	}
	if !s.Internal {
		return
	}
	id, asked := x.Config.SubnetID(s.Subnet), "subnetName of the cloud configuration"
	if s.Subnet != "" {
		asked = "annotation " + key.InternalSubnet.Name
	}
	if id == "" {
		wrong.Refuse(s.Key(), problem.Subnet,
			"an internal Service needs a subnet: vnetName and subnetName are not configured, allowed is the name of a subnet in the "+
				"cloud configuration or in the annotation %s", key.InternalSubnet.Name)
		return
	}
	RequireSubnet(x, s, asked, id, wrong)
	for _, a := range s.Addresses {
		if subnet := x.Subnet(id); subnet.Lacks(a.Family) { // Azure would say that it is full
			wrong.Refuse(s.Key(), problem.Address,
				"%s: %q has no range of the family %s, it has %s, allowed is a subnet that has one, or a Service without %[3]s in "+
					"spec.ipFamilies",
				asked, id.Name(), a.Family, subnet)
		}
		RequireAddress(x, s, a.Asked, id, a.Pinned, wrong)
	}
}

// refuseUnread refuses a Service if something that it has or names cannot be read, and reports whether it does.
func refuseUnread(x *index.Index, s *spec.Spec, scope azure.ID, fullType, what, allowed string, wrong *problem.List) bool {
	why, unread := x.Have.Unread(scope, fullType)
	if unread {
		is, toDo := Unread(why, fullType)
		wrong.Refuse(s.Key(), problem.Unread, "%s %s, allowed is %s; to do: %s", what, is, allowed, toDo)
	}
	return unread
}

// Unread says why something could not be read, and what to do about it.
func Unread(why azure.Kind, fullType string) (is, toDo string) {
	if why == azure.NotFound {
		return "is not found", "make the group, or name another one"
	}
	return "may not be read", "give the cluster's identity the right " + fullType + "/read there, or name another one"
}

// CanRead reports whether what a Service has at load balancers can be read.
func CanRead(x *index.Index, s *spec.Spec, wrong *problem.List) bool {
	isUnread := func(group azure.ID, fullType, of string) bool {
		what := fmt.Sprintf("the resource group %q of its %s", group.Name(), of)
		return refuseUnread(x, s, group, fullType, what, "one that can be read", wrong)
	}
	for _, at := range x.FrontendsServing(s.Owner) {
		ip := at.State().PublicIPAddress.To()
		if ip != "" && isUnread(ip.Parent(), network.PublicIPAddresses, "public IP "+ip.Name()) {
			return false
		}
	}
	stays := key.LinkStays(s.Service.Annotations)
	groups := spec.GroupsOf(key.PrivateLinks, key.Noted(s.Service.Status.Conditions))
	if stays {
		name, _ := key.LinkGroup.Read(s.Service.Annotations)
		groups = append(groups, name)
	}
	for _, name := range groups {
		group := x.Config.LinkGroup(name)
		why, _ := x.Have.Unread(group, network.PrivateLinkServices)
		if why != azure.NotFound && len(x.FrontendsOf(s.Owner)) > 0 &&
			isUnread(group, network.PrivateLinkServices, "private link service") {
			return false
		}
	}
	return stays && !s.Service.Gone || canReadConnections(x, s, wrong)
}

// canReadConnections reports whether the connections of a Service's private link services can be read. The Service no
// longer asks for a private link service, and the connections have to go first.
func canReadConnections(x *index.Index, s *spec.Spec, wrong *problem.List) bool {
	for _, l := range x.Links {
		why, unread := x.Have.Unread(l.ID, network.PrivateEndpointConnections)
		if unread && why != azure.NotFound && l.Owner == s.Key() {
			wrong.Refuse(s.Key(), problem.Unread,
				"the list of connections to its private link service %s, which is deleted, may not be read; to do: give the cluster's "+
					"identity the right %s/read there",
				l.ID.Name(), network.PrivateEndpointConnections)
			return false
		}
	}
	return true
}

// RequireSubnet refuses a Service that asks for an address in a subnet that does not exist.
func RequireSubnet(x *index.Index, s *spec.Spec, asked string, subnet azure.ID, wrong *problem.List) {
	vnet := x.Config.NetworkID()
	switch says := x.AzureSays(vnet); {
	case subnet == "":
		wrong.Refuse(s.Key(), problem.Subnet,
			"%s: vnetName or subnetName is missing in the cloud configuration, allowed is the name of a subnet of the virtual "+
				"network that is configured there", asked)
	case x.Subnet(subnet).Exists:
	case says != "":
		wrong.Refuse(s.Key(), problem.Subnet,
			"%s: the virtual network %s of the subnet %q is not found, allowed is one that is there: make it, or configure another "+
				"vnetName or vnetResourceGroup%s",
			asked, vnet, subnet.Name(), says)
	default:
		or := ""
		if _, unread := x.Have.Unread(vnet, network.VirtualNetworks); unread {
			or = ", or the network is not there"
		}
		wrong.Refuse(s.Key(), problem.Subnet,
			"%s: %q is not found in virtual network %s%s, allowed is the name of one of its subnets", asked, subnet.Name(), vnet, or)
	}
}

// RequireAddress refuses a Service that asks for an address that nothing can have in the subnet, or that a node has.
// Azure would refuse the whole load balancer.
func RequireAddress(x *index.Index, s *spec.Spec, asked string, subnet azure.ID, text string, wrong *problem.List) {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return // it asks for any address
	}
	if why := x.Subnet(subnet).Refuses(ip); why != "" {
		wrong.Refuse(s.Key(), problem.Address, "%s %s %q, allowed is another address of %s", asked, why, subnet.Name(), x.Subnet(subnet))
	} else if x.NodeIPs[ip] {
		wrong.Refuse(s.Key(), problem.Address, "%s is in use by a node, allowed is an address of the subnet %q that nothing else has",
			asked, subnet.Name())
	}
}
