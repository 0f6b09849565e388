// Package watcher has the actions of Network Watcher that follow from the documents: which rule lets a flow pass, the next hop of a
// packet, the rules of a machine, the topology of a group, and flow logs. Layer L2.
package watcher

import (
	"net/http"
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
	"kaz/internal/localazure/behaviour/network/vnet"
)

// Complete gives network watchers their actions.
func Complete(t *behaviour.Type) {
	actions := map[string]behaviour.Action{"topology": {Do: topology}}
	for name, settle := range map[string]func(c *behaviour.Call) (any, error){
		"ipFlowVerify": verifyFlow, "nextHop": nextHop, "securityGroupView": securityView,
		"networkConfigurationDiagnostic": diagnose, "configureFlowLog": configureFlowLog, "queryFlowLogStatus": flowLogStatus,
	} {
		actions[name] = behaviour.Action{Status: http.StatusAccepted, Long: true, Busy: "-",
			Headers: behaviour.AsyncOperation | behaviour.Location, Do: checkTarget, Settle: settle}
	}
	for name, action := range t.Actions {
		if _, own := actions[name]; !own {
			actions[name] = action
		}
	}
	t.Actions = actions
	t.Own = append(t.Own, flowLogsField)
	t.Show = func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) }
}

// checkTarget refuses a request about a resource that does not exist.
func checkTarget(c *behaviour.Call) (any, error) {
	target := azure.ID(behaviour.Text(c.Body, "targetResourceId"))
	if target == "" {
		return nil, behaviour.Invalid("InvalidRequestFormat", "The request to %s has no targetResourceId.", c.ID)
	}
	if _, there := c.Get(target); !there {
		return nil, behaviour.NotFound(target)
	}
	return nil, nil
}

const interfacesPath = "properties.networkProfile.networkInterfaces"

// interfaceOf is the network interface of the machine that a request names: by its id, by an address, or the first one. It is in a call
// of its own, and nil if the machine has none such.
func interfaceOf(c *behaviour.Call, address string) *behaviour.Call {
	machine, _ := c.Get(azure.ID(behaviour.Text(c.Body, "targetResourceId")))
	named := azure.ID(behaviour.Text(c.Body, "targetNicResourceId"))
	var found *behaviour.Call
	for _, reference := range behaviour.Objects(machine, interfacesPath) {
		id := azure.ID(behaviour.Text(reference, "id"))
		doc, there := c.Get(id)
		if !there || named != "" && !id.Equal(named) {
			continue
		}
		at := *c
		at.ID, at.Doc = id, doc
		for _, configuration := range behaviour.Objects(doc, "properties.ipConfigurations") {
			if behaviour.Text(configuration, "properties.privateIPAddress") == address {
				return &at
			}
		}
		if found == nil {
			found = &at
		}
	}
	return found
}

// noInterface is the error for a machine without an interface as the request names it.
func noInterface(c *behaviour.Call) error {
	return behaviour.Invalid("NetworkInterfaceNotFound", "Virtual machine %s has no network interface %s.",
		behaviour.Text(c.Body, "targetResourceId"), behaviour.Text(c.Body, "targetNicResourceId"))
}

// addressAt is an address of the request.
func addressAt(c *behaviour.Call, path string) (netip.Addr, error) {
	text := behaviour.Text(c.Body, path)
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, behaviour.Invalid("InvalidIPAddress", "The value '%s' of %s is no IP address.", text, path)
	}
	return address, nil
}

// nextHop tells where a packet of a machine goes: along the longest prefix, and of equal ones along the route of the user.
func nextHop(c *behaviour.Call) (any, error) {
	to, err := addressAt(c, "destinationIPAddress")
	if err != nil {
		return nil, err
	}
	at := interfaceOf(c, behaviour.Text(c.Body, "sourceIPAddress"))
	if at == nil {
		return nil, noInterface(c)
	}
	routes, table := vnet.EffectiveRoutes(at)
	var best behaviour.Object
	longest := -1
	for _, route := range behaviour.Objects(routes, "value") {
		for _, text := range behaviour.Texts(route, "addressPrefix") {
			p, err := netip.ParsePrefix(text)
			if err == nil && p.Contains(to) && behaviour.Text(route, "state") == "Active" && p.Bits() > longest {
				best, longest = route, p.Bits()
			}
		}
	}
	if best == nil {
		return behaviour.Object{"nextHopType": "None"}, nil
	}
	hop := behaviour.Object{"nextHopType": behaviour.Text(best, "nextHopType"), "routeTableId": "System Route"}
	if behaviour.Text(best, "source") == "User" {
		hop["routeTableId"] = string(table)
	}
	if addresses := behaviour.Texts(best, "nextHopIpAddress"); len(addresses) > 0 {
		hop["nextHopIpAddress"] = addresses[0]
	}
	return hop, nil
}

// securityView shows the security rules of the interfaces of a machine, where each group applies.
func securityView(c *behaviour.Call) (any, error) {
	machine, _ := c.Get(azure.ID(behaviour.Text(c.Body, "targetResourceId")))
	shown := []any{}
	for _, reference := range behaviour.Objects(machine, interfacesPath) {
		id := azure.ID(behaviour.Text(reference, "id"))
		doc, there := c.Get(id)
		if !there {
			continue
		}
		at := *c
		at.ID, at.Doc = id, doc
		defaults, effective, rules := []any{}, []any{}, behaviour.Object{}
		for _, group := range behaviour.Objects(vnet.EffectiveGroups(&at), "value") {
			for _, rule := range behaviour.Objects(group, "effectiveSecurityRules") {
				rule["name"] = evaluatedName(behaviour.Text(rule, "name"))
				effective = append(effective, rule)
			}
			view, _ := c.View(behaviour.RefID(group, "networkSecurityGroup"))
			defaults = behaviour.Array(view, "properties.defaultSecurityRules")
			for kind := range behaviour.Sub(group, "association") {
				rules[kind+"Association"] = behaviour.Object{"id": behaviour.Text(group, "association."+kind+".id"),
					"securityRules": behaviour.Array(view, "properties.securityRules")}
			}
		}
		rules["defaultSecurityRules"], rules["effectiveSecurityRules"] = defaults, effective
		shown = append(shown, behaviour.Object{"id": string(id), "securityRuleAssociations": rules})
	}
	return behaviour.Object{"networkInterfaces": shown}, nil
}

// flowLogsField is the field of a network watcher with the flow logs of resources, by their ids in lower case.
const flowLogsField = behaviour.Private + "flowLogs"

// configureFlowLog keeps what a request says of the flow log of a resource.
func configureFlowLog(c *behaviour.Call) (any, error) {
	log := behaviour.Object{}
	for _, name := range []string{"targetResourceId", "properties", "flowAnalyticsConfiguration", "identity"} {
		if value := c.Body[name]; value != nil {
			log[name] = behaviour.Clone(value)
		}
	}
	identities := behaviour.Sub(log, "identity.userAssignedIdentities")
	for id := range identities {
		if view, there := c.View(azure.ID(id)); there {
			identities[id] = behaviour.Object{"principalId": behaviour.At(view, "properties.principalId"),
				"clientId": behaviour.At(view, "properties.clientId")}
		}
	}
	logs := behaviour.Sub(c.Doc, flowLogsField)
	if logs == nil {
		logs = behaviour.Object{}
		c.Doc[flowLogsField] = logs
	}
	logs[strings.ToLower(behaviour.Text(c.Body, "targetResourceId"))] = log
	return behaviour.Clone(log), nil
}

// flowLogStatus shows the flow log of a resource, which is off before it is configured.
func flowLogStatus(c *behaviour.Call) (any, error) {
	target := behaviour.Text(c.Body, "targetResourceId")
	if log, ok := behaviour.Sub(c.Doc, flowLogsField)[strings.ToLower(target)]; ok {
		return behaviour.Clone(log), nil
	}
	return behaviour.Object{"targetResourceId": target, "properties": behaviour.Object{"enabled": false, "storageId": ""}}, nil
}

// topology shows the network resources and machines of a group, and what belongs together.
func topology(c *behaviour.Call) (any, error) {
	group := azure.GroupID(c.ID.Subscription(), behaviour.Text(c.Body, "targetResourceGroupName"))
	for _, path := range []string{"targetVirtualNetwork", "targetSubnet"} {
		if id := behaviour.RefID(c.Body, path); id != "" {
			group = azure.GroupID(id.Subscription(), id.Group())
		}
	}
	if _, there := c.Get(group); !there {
		return nil, behaviour.NotFound(group)
	}
	resources := []any{}
	for id, doc := range c.In(group) {
		if !strings.HasPrefix(id.Type(), schema.Namespace) && !id.Is("Microsoft.Compute/virtualMachines") {
			continue
		}
		resources = append(resources, member(id, doc, doc))
		for _, subnet := range behaviour.Objects(doc, "properties.subnets") {
			if id.Is(schema.Namespace + "virtualNetworks") {
				resources = append(resources, member(id.Child("subnets", behaviour.Text(subnet, "name")), subnet, doc))
			}
		}
	}
	now := behaviour.Timestamp(c.Now())
	return behaviour.Object{"id": c.GUID(), "createdDateTime": now, "lastModified": now, "resources": resources}, nil
}

// member is a resource of a topology with what it contains, or is associated with.
func member(id azure.ID, doc, holder behaviour.Object) behaviour.Object {
	associations := []any{}
	add := func(other azure.ID, kind string) {
		if other != "" {
			associations = append(associations,
				behaviour.Object{"name": other.Name(), "resourceId": string(other), "associationType": kind})
		}
	}
	switch {
	case id.Is(schema.Namespace + "virtualNetworks"):
		for _, subnet := range behaviour.Objects(doc, "properties.subnets") {
			add(id.Child("subnets", behaviour.Text(subnet, "name")), "Contains")
		}
	case id.Is("Microsoft.Compute/virtualMachines"):
		for _, reference := range behaviour.Objects(doc, interfacesPath) {
			add(azure.ID(behaviour.Text(reference, "id")), "Contains")
		}
	}
	for _, path := range []string{"networkSecurityGroup", "routeTable", "natGateway"} {
		add(behaviour.RefID(doc, "properties."+path), "Associated")
	}
	for _, configuration := range behaviour.Objects(doc, "properties.ipConfigurations") {
		add(behaviour.RefID(configuration, "properties.publicIPAddress"), "Associated")
	}
	return behaviour.Object{"id": string(id), "name": id.Name(), "location": behaviour.Text(holder, "location"),
		"associations": associations}
}
