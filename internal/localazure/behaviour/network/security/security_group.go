package security

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The paths at which resources refer to a security group.
const (
	nicSecurityGroup    = "properties.networkSecurityGroup"
	subnetSecurityGroup = "properties.subnets.properties.networkSecurityGroup"
)

func securityGroups() behaviour.Type {
	return schema.Tracked("networkSecurityGroups", behaviour.Type{
		Style: schema.RetryAfter(3, 10),
		Own: []string{"properties.defaultSecurityRules", "properties.networkInterfaces", "properties.subnets",
			"properties.flowLogs"},
		Fill: func(c *behaviour.Call) error {
			if behaviour.At(c.Doc, "properties.defaultSecurityRules") == nil {
				behaviour.Set(c.Doc, "properties.defaultSecurityRules", newDefaultRules())
			}
			return schema.List(c, "properties.securityRules")
		},
		Check: checkSecurityRules,
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			if set := schema.ScaleSetAmong(by); set != "" {
				return behaviour.Invalid("NetworkSecurityGroupInUseByVirtualMachineScaleSet",
					"Cannot delete network security group %s since it is in use by virtual machine scale set %s.", c.ID, set)
			}
			return behaviour.Invalid("InUseNetworkSecurityGroupCannotBeDeleted",
				"Network security group %s cannot be deleted because it is in use by the following resources: %s. In order to "+
					"delete the Network security group, remove the association with the resource(s). To learn how to do this, see "+
					"aka.ms/deletensg.", c.ID, schema.JoinIDs(schema.ObjectIDs(by)))
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			schema.ShowReferences(view, "properties.networkInterfaces", schema.ReferrersAt(c.World, c.ID, nicSecurityGroup))
			schema.ShowReferences(view, "properties.subnets", schema.ReferrersAt(c.World, c.ID, subnetSecurityGroup))
		},
	})
}

// checkSecurityRules checks the limits of a group: 1,000 rules, 4,000 prefixes of sources and of destinations. No two
// rules of a direction have the same priority.
func checkSecurityRules(c *behaviour.Call) error {
	const most, mostPrefixes = 1000, 4000
	rules := behaviour.Objects(c.Doc, "properties.securityRules")
	if err := schema.CheckLimit(c, "SecurityRuleCountLimitReached", "security rules", len(rules), most); err != nil {
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
			return behaviour.Invalid("SecurityRuleAddressesOrPortsPerSecurityGroupLimitReached",
				"Network security group %s has %d %s. No more than %d %[3]s are possible, which is the limit "+
					"MaxSecurityRuleAddressesOrPortsPerSecurityGroup.", c.ID, n, field(s.addresses), mostPrefixes)
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
			return behaviour.Invalid("SecurityRuleConflict",
				"Security rule %s conflicts with rule %s. Rules cannot have the same Priority and Direction.",
				behaviour.Text(rule, "name"), other)
		}
		at[p] = behaviour.Text(rule, "name")
	}
	return nil
}

func defaultSecurityRules() behaviour.Type {
	t := schema.Inside("networkSecurityGroups/defaultSecurityRules", "properties.defaultSecurityRules", behaviour.Type{ReadOnly: true})
	t.Fill = nil // newDefaultRules has made them
	return t
}

// newDefaultRules returns the rules that every security group has.
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
		rule("AllowVnetInBound", "Allow inbound traffic from all VMs in VNET", "VirtualNetwork", "VirtualNetwork", "Allow", 65000,
			"Inbound"),
		rule("AllowAzureLoadBalancerInBound", "Allow inbound traffic from azure load balancer", "AzureLoadBalancer", "*", "Allow", 65001,
			"Inbound"),
		rule("DenyAllInBound", "Deny all inbound traffic", "*", "*", "Deny", 65500, "Inbound"),
		rule("AllowVnetOutBound", "Allow outbound traffic from all VMs to all VMs in VNET", "VirtualNetwork", "VirtualNetwork", "Allow",
			65000, "Outbound"),
		rule("AllowInternetOutBound", "Allow outbound traffic from all VMs to Internet", "*", "Internet", "Allow", 65001, "Outbound"),
		rule("DenyAllOutBound", "Deny all outbound traffic", "*", "*", "Deny", 65500, "Outbound"),
	}
}
