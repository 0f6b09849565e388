// Package admission checks whether what a Service asks for exists and can be read: its
// subnets, resource groups and the security group. It leaves a Service as it is of which
// something cannot be read, because the decision could not tell what goes with it. Layer L1.
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
	checkReadable(x, s, wrong)
	checkSecurityGroup(x, s, wrong)
	checkSubnet(x, s, wrong)
	checkPrivateAddress(x, s, wrong)
}

// checkReadable refuses a Service that needs what cannot be read.
func checkReadable(x *index.Index, s *spec.Spec, wrong *problem.List) {
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
}

// refuseUnread refuses a Service if something that it has or names cannot be read, and reports whether it does.
func refuseUnread(x *index.Index, s *spec.Spec, scope azure.ID, fullType, what, allowed string, wrong *problem.List) bool {
	why, unread := x.Have.Unread(scope, fullType)
	if unread {
		wrong.Refuse(s.Key(), problem.Unread, "%s %s, allowed is %s; to do: %s", what, WhyUnread(why), allowed, ToDo(why, fullType))
	}
	return unread
}

// WhyUnread says why something could not be read.
func WhyUnread(why azure.Kind) string {
	if why == azure.NotFound {
		return "is not found"
	}
	return "may not be read"
}

// ToDo says what to do about something that could not be read.
func ToDo(why azure.Kind, fullType string) string {
	if why == azure.NotFound {
		return "make the group, or name another one"
	}
	return "give the cluster's identity the right " + fullType + "/read there, or name another one"
}

// CanRead reports whether what a Service has at load balancers can be read.
func CanRead(x *index.Index, s *spec.Spec, wrong *problem.List) bool {
	for _, at := range x.FrontendsServing(s.Owner) {
		if ip := at.State().PublicIPAddress.To(); ip != "" {
			group := ip.Parent()
			what := fmt.Sprintf("the resource group %q of its public IP %s", group.Name(), ip.Name())
			if refuseUnread(x, s, group, network.PublicIPAddresses, what, "one that can be read", wrong) {
				return false
			}
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
		if why, _ := x.Have.Unread(group, network.PrivateLinkServices); why == azure.NotFound || len(x.FrontendsOf(s.Owner)) == 0 {
			continue
		}
		what := fmt.Sprintf("the resource group %q of its private link service", group.Name())
		if refuseUnread(x, s, group, network.PrivateLinkServices, what, "one that can be read", wrong) {
			return false
		}
	}
	return stays && !s.Service.Gone || canReadConnections(x, s, wrong)
}

// canReadConnections reports whether the connections can be read of the private link services of a
// Service that asks for none any more. The connections have to go first.
func canReadConnections(x *index.Index, s *spec.Spec, wrong *problem.List) bool {
	for _, l := range x.Links {
		if index.LinkOwner(l) != s.Key() || !index.IsManagedLink(x.Config, l) {
			continue
		}
		if why, unread := x.Have.Unread(l.ID, network.PrivateEndpointConnections); unread && why != azure.NotFound {
			wrong.Refuse(s.Key(), problem.Unread,
				"the list of connections to its private link service %s, which is deleted, %s; to do: give the cluster's identity "+
					"the right %s/read there",
				l.ID.Name(), WhyUnread(why), network.PrivateEndpointConnections)
			return false
		}
	}
	return true
}

func checkSecurityGroup(x *index.Index, s *spec.Spec, wrong *problem.List) {
	switch {
	case x.Config.SecurityGroupName == "":
		wrong.Refuse(s.Key(), problem.SecurityGroup,
			"securityGroupName is not configured, allowed is the name of the nodes' network security group")
	case !x.HasSecurityGroup:
		id := x.Config.SecurityGroupID()
		wrong.Refuse(s.Key(), problem.SecurityGroup,
			"network security group %s is not found, allowed is one that is there: make it, or configure another securityGroupName%s",
			id, x.AzureSays(id))
	}
}

// checkSubnet refuses a subnet that does not exist, or has no range of the Service's families: Azure would
// say that it is full.
func checkSubnet(x *index.Index, s *spec.Spec, wrong *problem.List) {
	if !s.Internal {
		return
	}
	id := x.Config.SubnetID(s.Subnet)
	if id == "" {
		wrong.Refuse(s.Key(), problem.Subnet,
			"an internal Service needs a subnet: vnetName and subnetName are not configured, allowed is the name of a subnet in %s "+
				"or in the annotation %s",
			"the cloud configuration", key.InternalSubnet.Name)
		return
	}
	asked := "subnetName of the cloud configuration"
	if s.Subnet != "" {
		asked = "annotation " + key.InternalSubnet.Name
	}
	RequireSubnet(x, s, asked, id, wrong)
	for _, a := range s.Addresses {
		if subnet := x.Subnet(id); subnet.Lacks(a.Family) {
			wrong.Refuse(s.Key(), problem.Address,
				"%s: %q has no range of the family %s, it has %s, allowed is a subnet that has one, or a Service without %[3]s in "+
					"spec.ipFamilies",
				asked, id.Name(), a.Family, subnet)
		}
	}
}

// RequireSubnet refuses a Service that asks for an address in a subnet that does not exist.
func RequireSubnet(x *index.Index, s *spec.Spec, asked string, subnet azure.ID, wrong *problem.List) {
	vnet := x.Config.NetworkID()
	_, networkAbsent := x.Have.Absent(vnet)
	_, networkUnread := x.Have.Unread(vnet, network.VirtualNetworks)
	switch {
	case subnet == "":
		wrong.Refuse(s.Key(), problem.Subnet,
			"%s: vnetName or subnetName is missing in the cloud configuration, allowed is the name of a subnet of the virtual "+
				"network that is configured there", asked)
	case x.Subnet(subnet).Exists:
	case networkAbsent:
		wrong.Refuse(s.Key(), problem.Subnet,
			"%s: the virtual network %s of the subnet %q is not found, allowed is one that is there: make it, or configure another "+
				"vnetName or vnetResourceGroup%s",
			asked, vnet, subnet.Name(), x.AzureSays(vnet))
	default:
		or := ""
		if networkUnread {
			or = ", or the network is not there"
		}
		wrong.Refuse(s.Key(), problem.Subnet,
			"%s: %q is not found in virtual network %s%s, allowed is the name of one of its subnets", asked, subnet.Name(), vnet, or)
	}
}

// checkPrivateAddress refuses a private address that cannot be had: Azure would refuse the whole load balancer.
func checkPrivateAddress(x *index.Index, s *spec.Spec, wrong *problem.List) {
	id := x.Config.SubnetID(s.Subnet)
	for _, a := range s.Addresses {
		if ip, err := netip.ParseAddr(a.Pinned); s.Internal && err == nil && id != "" {
			RequireAddress(x, s, a.Asked, id, ip, wrong)
		}
	}
}

// RequireAddress refuses a Service that asks for an address of a subnet which nothing can have there, or which a node has.
func RequireAddress(x *index.Index, s *spec.Spec, asked string, subnet azure.ID, ip netip.Addr, wrong *problem.List) {
	if why := x.Subnet(subnet).Refuses(ip); why != "" {
		wrong.Refuse(s.Key(), problem.Address, "%s %s %q, allowed is another address of %s", asked, why, subnet.Name(), x.Subnet(subnet))
	} else if x.NodeIPs[ip] {
		wrong.Refuse(s.Key(), problem.Address, "%s is in use by a node, allowed is an address of the subnet %q that nothing else has",
			asked, subnet.Name())
	}
}
