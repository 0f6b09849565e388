package watcher

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/vnet"
)

// flow is a packet as rules see it. own are the ranges of the virtual network and of the networks that it has peerings with.
type flow struct {
	inbound                bool
	protocol               string // "TCP", "UDP" or "" for any
	source, destination    netip.Addr
	sourcePort, targetPort string
	own                    []netip.Prefix
}

// balancerAddress is the address of Azure's health probes.
const balancerAddress = "168.63.129.16"

// verifyFlow tells whether the rules of a machine let a flow pass, and which rule decides.
func verifyFlow(c *behaviour.Call) (any, error) {
	local, err := addressAt(c, "localIPAddress")
	if err != nil {
		return nil, err
	}
	remote, err := addressAt(c, "remoteIPAddress")
	if err != nil {
		return nil, err
	}
	at := interfaceOf(c, local.String())
	if at == nil {
		return nil, noInterface(c)
	}
	f := flow{inbound: strings.EqualFold(behaviour.Text(c.Body, "direction"), "Inbound"), protocol: behaviour.Text(c.Body, "protocol"),
		source: local, sourcePort: behaviour.Text(c.Body, "localPort"),
		destination: remote, targetPort: behaviour.Text(c.Body, "remotePort"),
		own: ownRanges(at)}
	if f.inbound {
		f.source, f.destination, f.sourcePort, f.targetPort = f.destination, f.source, f.targetPort, f.sourcePort
	}
	answer := behaviour.Object{"access": "Allow"}
	for _, group := range groupsInOrder(at, f.inbound) {
		rule, _ := f.decide(group)
		if rule == nil {
			continue
		}
		answer = behaviour.Object{"access": behaviour.Text(rule, "access"), "ruleName": behaviour.Text(rule, "name")}
		if behaviour.Text(rule, "access") == "Deny" {
			break
		}
	}
	return answer, nil
}

// diagnose evaluates the rules of a machine for flows, and shows which parts of each rule match.
func diagnose(c *behaviour.Call) (any, error) {
	at := interfaceOf(c, "")
	if at == nil {
		return nil, noInterface(c)
	}
	results := []any{}
	for _, profile := range behaviour.Objects(c.Body, "profiles") {
		source, errSource := netip.ParseAddr(behaviour.Text(profile, "source"))
		destination, errDestination := netip.ParseAddr(behaviour.Text(profile, "destination"))
		if errSource != nil || errDestination != nil {
			return nil, behaviour.Invalid("InvalidIPAddress", "The source '%s' or the destination '%s' of a profile is no IP address.",
				behaviour.Text(profile, "source"), behaviour.Text(profile, "destination"))
		}
		f := flow{inbound: strings.EqualFold(behaviour.Text(profile, "direction"), "Inbound"),
			protocol: behaviour.Text(profile, "protocol"), source: source, destination: destination,
			targetPort: behaviour.Text(profile, "destinationPort"), own: ownRanges(at)}
		access, evaluated := "Allow", []any{}
		for _, group := range groupsInOrder(at, f.inbound) {
			rule, evaluations := f.decide(group)
			one := behaviour.Object{"networkSecurityGroupId": string(behaviour.RefID(group, "networkSecurityGroup")),
				"rulesEvaluationResult": evaluations}
			for kind := range behaviour.Sub(group, "association") {
				one["appliedTo"] = behaviour.Text(group, "association."+kind+".id")
			}
			if rule != nil {
				one["matchedRule"] = behaviour.Object{"ruleName": evaluatedName(behaviour.Text(rule, "name")),
					"action": behaviour.Text(rule, "access")}
			}
			if evaluated = append(evaluated, one); behaviour.Text(rule, "access") == "Deny" {
				access = "Deny"
				break
			}
		}
		results = append(results, behaviour.Object{"profile": behaviour.Clone(profile), "networkSecurityGroupResult": behaviour.Object{
			"securityRuleAccessResult": access, "evaluatedNetworkSecurityGroups": evaluated}})
	}
	return behaviour.Object{"results": results}, nil
}

// evaluatedName is the name of an effective rule in the views of Network Watcher, such as UserRule_ssh for securityRules/ssh.
func evaluatedName(effective string) string {
	list, name, _ := strings.Cut(effective, "/")
	switch {
	case list == "securityRules":
		return "UserRule_" + name
	case strings.HasPrefix(name, "DenyAll"):
		return "Default" + strings.Replace(strings.TrimPrefix(name, "DenyAll"), "Bound", "bound", 1) + "DenyAll"
	}
	return "DefaultRule_" + name
}

// groupsInOrder are the security groups of an interface in the order in which a packet meets them: the subnet's first on the way in.
func groupsInOrder(at *behaviour.Call, inbound bool) []behaviour.Object {
	groups := behaviour.Objects(vnet.EffectiveGroups(at), "value")
	if !inbound {
		slices.Reverse(groups)
	}
	return groups
}

// ownRanges are the ranges that the tag VirtualNetwork stands for.
func ownRanges(at *behaviour.Call) []netip.Prefix {
	var all []netip.Prefix
	for _, configuration := range behaviour.Objects(at.Doc, "properties.ipConfigurations") {
		network, _ := at.Get(behaviour.RefID(configuration, "properties.subnet").Parent())
		texts := ipam.AddressSpace(network)
		for _, peering := range behaviour.Objects(network, "properties.virtualNetworkPeerings") {
			texts = append(texts, behaviour.Texts(peering, "properties.remoteAddressSpace.addressPrefixes")...)
		}
		for _, text := range texts {
			if p, err := netip.ParsePrefix(text); err == nil {
				all = append(all, p)
			}
		}
	}
	return all
}

// decide is the first rule of a group that matches, and what was evaluated until then.
func (f flow) decide(group behaviour.Object) (behaviour.Object, []any) {
	rules := slices.DeleteFunc(behaviour.Objects(group, "effectiveSecurityRules"), func(rule behaviour.Object) bool {
		return (behaviour.Text(rule, "direction") == "Inbound") != f.inbound
	})
	slices.SortStableFunc(rules, func(a, b behaviour.Object) int {
		first, _ := behaviour.Int(a, "priority")
		second, _ := behaviour.Int(b, "priority")
		return cmp.Compare(first, second)
	})
	evaluations := []any{}
	for _, rule := range rules {
		parts := f.evaluate(rule)
		evaluation := behaviour.Object{"name": evaluatedName(behaviour.Text(rule, "name"))}
		all := true
		for name, matched := range parts {
			evaluation[name] = matched
			all = all && matched
		}
		evaluations = append(evaluations, evaluation)
		if all {
			return rule, evaluations
		}
	}
	return nil, evaluations
}

// evaluate tells which parts of a rule match.
func (f flow) evaluate(rule behaviour.Object) map[string]bool {
	protocol := behaviour.Text(rule, "protocol")
	return map[string]bool{
		"protocolMatched":        protocol == "All" || f.protocol == "" || strings.EqualFold(protocol, f.protocol),
		"sourceMatched":          f.covers(behaviour.Texts(rule, "sourceAddressPrefixes"), f.source),
		"destinationMatched":     f.covers(behaviour.Texts(rule, "destinationAddressPrefixes"), f.destination),
		"sourcePortMatched":      inRanges(behaviour.Texts(rule, "sourcePortRanges"), f.sourcePort),
		"destinationPortMatched": inRanges(behaviour.Texts(rule, "destinationPortRanges"), f.targetPort),
	}
}

// covers reports whether one of the prefixes or tags has an address. The addresses of services are not known here: their tags have none.
func (f flow) covers(prefixes []string, address netip.Addr) bool {
	own := slices.ContainsFunc(f.own, func(p netip.Prefix) bool { return p.Contains(address) })
	return slices.ContainsFunc(prefixes, func(text string) bool {
		switch strings.ToLower(text) {
		case "*":
			return true
		case "virtualnetwork":
			return own
		case "internet":
			return !own && !address.IsPrivate() && address.String() != balancerAddress
		case "azureloadbalancer":
			return address.String() == balancerAddress
		}
		if p, err := netip.ParsePrefix(text); err == nil {
			return p.Contains(address)
		}
		one, err := netip.ParseAddr(text)
		return err == nil && one == address
	})
}

// inRanges reports whether a port is in one of the ranges, such as "80-90". No port is in every range.
func inRanges(ranges []string, port string) bool {
	number, err := strconv.Atoi(port)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(ranges, func(text string) bool {
		low, high, _ := strings.Cut(text, "-")
		first, errLow := strconv.Atoi(low)
		last, errHigh := strconv.Atoi(high)
		return errLow == nil && errHigh == nil && first <= number && number <= last
	})
}
