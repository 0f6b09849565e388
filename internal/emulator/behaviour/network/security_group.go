package network

import "kaz/internal/emulator/behaviour"

// The places where a security group is in use.
const (
	nicSecurityGroup    = "properties.networkSecurityGroup"
	subnetSecurityGroup = "properties.subnets.properties.networkSecurityGroup"
)

func securityGroupTypes() []behaviour.Type {
	return []behaviour.Type{securityGroups(), securityRules(), defaultSecurityRules()}
}

func securityGroups() behaviour.Type {
	return tracked("networkSecurityGroups", behaviour.Type{
		Style: waiting(3, 10),
		Own: []string{"properties.defaultSecurityRules", "properties.networkInterfaces", "properties.subnets",
			"properties.flowLogs"},
		Fill: func(c *behaviour.Call) error {
			if behaviour.At(c.Doc, "properties.defaultSecurityRules") == nil {
				behaviour.Set(c.Doc, "properties.defaultSecurityRules", newDefaultRules())
			}
			return list(c, "properties.securityRules")
		},
		Check: checkSecurityRules,
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			if set := scaleSetAmong(by); set != "" {
				return behaviour.Invalid("NetworkSecurityGroupInUseByVirtualMachineScaleSet", "Cannot delete network security group %s since it is in use by virtual machine scale set %s.", c.ID, set)
			}
			return behaviour.Invalid("InUseNetworkSecurityGroupCannotBeDeleted", "Network security group %s cannot be deleted because it is in use by the following resources: %s. In order to delete the Network security group, remove the association with the resource(s). To learn how to do this, see aka.ms/deletensg.", c.ID, joined(objects(by)))
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			show(view, "properties.networkInterfaces", users(c.World, c.ID, nicSecurityGroup))
			show(view, "properties.subnets", users(c.World, c.ID, subnetSecurityGroup))
		},
	})
}

// checkSecurityRules: no more than 1,000, with no more than 4,000 prefixes of sources and of
// destinations together, and no two of a direction with the same priority.
func checkSecurityRules(c *behaviour.Call) error {
	const most, mostPrefixes = 1000, 4000
	rules := behaviour.Objects(c.Doc, "properties.securityRules")
	if err := tooMany(c, "SecurityRuleCountLimitReached", "security rules", len(rules), most); err != nil {
		return err
	}
	for _, s := range ruleSides {
		n := 0
		for _, rule := range rules {
			n += len(behaviour.Texts(rule, s.addresses))
			if behaviour.Text(rule, s.address) != "" {
				n++
			}
		}
		if n > mostPrefixes {
			return behaviour.Invalid("SecurityRuleAddressesOrPortsPerSecurityGroupLimitReached", "Network security group %s has %d %s. No more than %d %[3]s are possible, which is the limit MaxSecurityRuleAddressesOrPortsPerSecurityGroup.", c.ID, n, field(s.addresses), mostPrefixes)
		}
	}
	type place struct {
		direction string
		priority  int
	}
	at := map[place]string{}
	for _, rule := range rules {
		priority, _ := behaviour.Int(rule, "properties.priority")
		p := place{behaviour.Text(rule, "properties.direction"), priority}
		if other, taken := at[p]; taken {
			return behaviour.Invalid("SecurityRuleConflict", "Security rule %s conflicts with rule %s. Rules cannot have the same Priority and Direction.", behaviour.Text(rule, "name"), other)
		}
		at[p] = behaviour.Text(rule, "name")
	}
	return nil
}

func defaultSecurityRules() behaviour.Type {
	t := inside("networkSecurityGroups/defaultSecurityRules", "properties.defaultSecurityRules", behaviour.Type{ReadOnly: true})
	t.Fill = nil // they are as newDefaultRules made them
	return t
}

// newDefaultRules are the rules that every security group has.
func newDefaultRules() []any {
	rule := func(name, description, source, destination, access string, priority int, direction string) any {
		return behaviour.Object{"name": name, "properties": behaviour.Object{
			"description": description, "protocol": "*", "sourcePortRange": "*", "destinationPortRange": "*",
			"sourceAddressPrefix": source, "destinationAddressPrefix": destination,
			"access": access, "priority": priority, "direction": direction,
			"sourcePortRanges": []any{}, "destinationPortRanges": []any{},
			"sourceAddressPrefixes": []any{}, "destinationAddressPrefixes": []any{},
		}}
	}
	return []any{
		rule("AllowVnetInBound", "Allow inbound traffic from all VMs in VNET", "VirtualNetwork", "VirtualNetwork", "Allow", 65000, "Inbound"),
		rule("AllowAzureLoadBalancerInBound", "Allow inbound traffic from azure load balancer", "AzureLoadBalancer", "*", "Allow", 65001, "Inbound"),
		rule("DenyAllInBound", "Deny all inbound traffic", "*", "*", "Deny", 65500, "Inbound"),
		rule("AllowVnetOutBound", "Allow outbound traffic from all VMs to all VMs in VNET", "VirtualNetwork", "VirtualNetwork", "Allow", 65000, "Outbound"),
		rule("AllowInternetOutBound", "Allow outbound traffic from all VMs to Internet", "*", "Internet", "Allow", 65001, "Outbound"),
		rule("DenyAllOutBound", "Deny all outbound traffic", "*", "*", "Deny", 65500, "Outbound"),
	}
}
