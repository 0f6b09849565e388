// Package appgateway has the behaviour of application gateways: what Azure fills in and refuses, certificates, and the health of
// backends. Plane gateway serves what the documents say. Layer L2.
package appgateway

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/publicip"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The lists of a gateway.
const (
	addressesList       = "gatewayIPConfigurations"
	frontendsList       = "frontendIPConfigurations"
	portsList           = "frontendPorts"
	certificatesList    = "sslCertificates"
	rootsList           = "trustedRootCertificates"
	clientRootsList     = "trustedClientCertificates"
	authenticationList  = "authenticationCertificates"
	profilesList        = "sslProfiles"
	poolsList           = "backendAddressPools"
	settingsList        = "backendHttpSettingsCollection"
	streamSettingsList  = "backendSettingsCollection"
	listenersList       = "httpListeners"
	streamListenersList = "listeners"
	pathMapsList        = "urlPathMaps"
	rulesList           = "requestRoutingRules"
	streamRulesList     = "routingRules"
	probesList          = "probes"
	redirectsList       = "redirectConfigurations"
	rewritesList        = "rewriteRuleSets"
	distributionList    = "loadDistributionPolicies"
	privateLinksList    = "privateLinkConfigurations"
	jwtList             = "entraJWTValidationConfigs"
)

// SubnetPath is the path at which a gateway refers to the subnet of its instances.
const SubnetPath = "properties." + addressesList + ".properties.subnet"

// gatewayType is the type of application gateways.
const gatewayType = schema.Namespace + "applicationGateways"

// Types returns application gateways and the configurations of their addresses. The other children need nothing but their fields.
func Types() []behaviour.Type {
	return []behaviour.Type{
		schema.Tracked("applicationGateways", behaviour.Type{
			Style:  behaviour.Network(),
			Own:    []string{"properties.operationalState", certificatesField, healthField},
			Fill:   fill,
			Check:  check,
			Settle: settle,
			Show:   show,
			Actions: map[string]behaviour.Action{
				"start":         turn("Running"),
				"stop":          turn("Stopped"),
				"backendhealth": {Long: true, Busy: "-", Settle: backendHealth},
			},
		}),
		schema.Inside("applicationGateways/"+addressesList, "properties."+addressesList, behaviour.Type{
			ReadOnly: true,
			// The address of the gateway's instance. Azure has it too and does not show it.
			Own:  []string{"properties.privateIPAddress"},
			Show: func(_ *behaviour.Call, view behaviour.Object) { behaviour.Remove(view, "properties.privateIPAddress") },
		}),
	}
}

// fill checks the version of the request and takes the secrets out of the document.
func fill(c *behaviour.Call) error {
	if err := checkVersion(c); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.operationalState", "Stopped")
	return keepCertificates(c)
}

// settle starts the gateway: a PUT starts one that is stopped, too.
func settle(c *behaviour.Call) error {
	if c.Verb != behaviour.Patch {
		behaviour.Set(c.Doc, "properties.operationalState", "Running")
	}
	return nil
}

// turn returns the action that starts or stops a gateway.
func turn(state string) behaviour.Action {
	return behaviour.Action{Long: true, Settle: func(c *behaviour.Call) (any, error) {
		behaviour.Set(c.Doc, "properties.operationalState", state)
		return nil, nil
	}}
}

// gateway is a gateway during its check.
type gateway struct {
	*behaviour.Call
	// lists has the parts by the name of their list and their own name in lower case.
	lists map[string]map[string]behaviour.Object
}

// check checks the parts against each other, and allocates the private addresses.
func check(c *behaviour.Call) error {
	g := &gateway{Call: c, lists: map[string]map[string]behaviour.Object{}}
	for list := range behaviour.Sub(c.Doc, "properties") {
		g.lists[list] = map[string]behaviour.Object{}
		for _, part := range behaviour.Objects(c.Doc, "properties."+list) {
			g.lists[list][Key(part)] = part
		}
	}
	for _, check := range []func(*gateway) error{
		checkSize, checkNames, checkPresent, checkLimits, checkReferences, checkAddresses, checkPorts, checkListeners, checkTLS, checkPools,
		checkProbes, checkSettings, checkPathMaps, checkRules, checkRedirects, checkRewrites, checkReroutes,
	} {
		if err := check(g); err != nil {
			return err
		}
	}
	return nil
}

// Key is the name of a part in the form in which names compare.
func Key(part behaviour.Object) string { return strings.ToLower(behaviour.Text(part, "name")) }

// part is a part of a gateway with its id.
type part struct {
	behaviour.Object
	id azure.ID
}

// text is the text of a property.
func (p part) text(path string) string { return behaviour.Text(p.Object, "properties."+path) }

// has reports whether a property has a value.
func (p part) has(path string) bool { return behaviour.At(p.Object, "properties."+path) != nil }

// is reports whether a property has a word, in any case.
func (p part) is(path, word string) bool { return strings.EqualFold(p.text(path), word) }

// refers returns the id that a property refers to, "" for none.
func (p part) refers(path string) azure.ID { return behaviour.RefID(p.Object, "properties."+path) }

// parts returns the parts of lists with their ids.
func (g *gateway) parts(lists ...string) []part {
	var all []part
	for _, list := range lists {
		all = append(all, inside(g.ID, g.Doc, list)...)
	}
	return all
}

// inside returns the parts of a list in a document.
func inside(id azure.ID, doc behaviour.Object, list string) []part {
	var all []part
	for _, p := range behaviour.Objects(doc, "properties."+list) {
		all = append(all, part{p, id.Child(list, behaviour.Text(p, "name"))})
	}
	return all
}

// find returns the part that an id leads to.
func (g *gateway) find(list string, id azure.ID) part {
	return part{g.lists[list][strings.ToLower(id.Name())], id}
}

// sku is the name of the SKU.
func (g *gateway) sku() string { return behaviour.Text(g.Doc, "properties.sku.name") }

// second reports whether the SKU is of the second version, or Basic, which is like it.
func (g *gateway) second() bool {
	return strings.HasSuffix(g.sku(), "_v2") || strings.EqualFold(g.sku(), "Basic")
}

// version is a property that package ipam reads, and that the parts of gateways do not have.
const version = "privateIPAddressVersion"

// checkAddresses checks the frontends and the subnet, and allocates private addresses.
func checkAddresses(g *gateway) error {
	var wanted []ipam.Configuration
	for _, p := range g.parts(addressesList) {
		subnet, err := schema.Reference(g.at(p), "properties.subnet", schema.Namespace+"virtualNetworks/subnets")
		if err != nil {
			return err
		}
		if err := checkSubnet(g, p, subnet); err != nil {
			return err
		}
		wanted = append(wanted, g.configuration(p, addressesList))
	}
	var attached []publicip.Attachment
	for _, p := range g.parts(frontendsList) {
		if err := g.checkFrontend(p); err != nil {
			return err
		}
		if public := p.refers("publicIPAddress"); public != "" {
			attached = append(attached, publicip.Attachment{Object: p.id, Address: public})
		} else {
			wanted = append(wanted, g.configuration(p, frontendsList))
		}
	}
	if err := publicip.Attach(g.Call, attached); err != nil {
		return err
	}
	for _, a := range attached {
		if doc, _ := g.Get(a.Address); g.second() && !schema.IsStandard(doc) {
			return unverified("ApplicationGatewayPublicIPAddressSkuMismatch",
				"Application gateway %s has the SKU %s and references the public IP address %s, whose SKU must be Standard.", g.ID, g.sku(),
				a.Address)
		}
	}
	err := ipam.AssignPrivate(g.Call, wanted)
	for _, p := range g.parts(addressesList, frontendsList) {
		behaviour.Remove(p.Object, "properties."+version)
	}
	return err
}

// configuration is a part with a private address as package ipam reads it.
func (g *gateway) configuration(p part, list string) ipam.Configuration {
	old := behaviour.Clone(behaviour.Sub(behaviour.Named(g.Old, "properties."+list, p.id.Name()), "properties"))
	for _, properties := range []behaviour.Object{behaviour.Sub(p.Object, "properties"), old} {
		if properties != nil {
			properties[version] = ipam.IPv4
		}
	}
	return ipam.Configuration{ID: p.id, Now: behaviour.Sub(p.Object, "properties"), Was: old}
}

// checkFrontend refuses a frontend that has not one of both kinds of addresses.
func (g *gateway) checkFrontend(p part) error {
	public, private := p.refers("publicIPAddress") != "", p.has("subnet")
	switch {
	case public && private:
		return unverified("ApplicationGatewayFrontendIPConfigurationHasSubnetAndPublicIP",
			"Frontend IP configuration %s references a subnet and a public IP address. It must reference one of both.", p.id)
	case !public && !private:
		return unverified("ApplicationGatewayFrontendIPConfigurationHasNoAddress",
			"Frontend IP configuration %s must reference a subnet or a public IP address.", p.id)
	case public:
		return nil
	}
	_, err := schema.Reference(g.at(p), "properties.subnet", schema.Namespace+"virtualNetworks/subnets")
	return err
}

// at is the call as it is for a part.
func (g *gateway) at(p part) *behaviour.Call {
	call := *g.Call
	call.ID, call.Doc = p.id, p.Object
	return &call
}

// checkSubnet refuses a subnet with anything but application gateways.
func checkSubnet(g *gateway, p part, subnet azure.ID) error {
	if _, there := g.Get(subnet); !there {
		return behaviour.InvalidReference(p.id, subnet)
	}
	for _, r := range g.Referrers(subnet) {
		if !r.Resource.Is(gatewayType) && !r.Resource.Equal(subnet.Parent()) && strings.HasSuffix(r.Path, "ubnet") {
			return unverified("ApplicationGatewaySubnetNotEmpty",
				"Subnet %s cannot be used for application gateway %s since subnet is not empty: it has %s.", subnet, g.ID.Name(), r.Object)
		}
	}
	return nil
}

// show hides what clients do not see, and shows which parts refer to each part.
func show(c *behaviour.Call, view behaviour.Object) {
	behaviour.Hide(view)
	hideNewer(c, view)
	for _, set := range behaviour.Objects(view, "properties."+rewritesList) {
		delete(set, "type") // the only parts without one
	}
	byID := map[string]behaviour.Object{}
	eachPart(view, func(_ string, part behaviour.Object) { byID[azure.ID(behaviour.Text(part, "id")).Key()] = part })
	eachPart(view, func(list string, from behaviour.Object) {
		property := strings.TrimSuffix(list, "Collection")
		for _, value := range behaviour.Sub(from, "properties") {
			reference, _ := value.(behaviour.Object)
			to := byID[azure.ID(behaviour.Text(reference, "id")).Key()]
			if to == nil || len(reference) != 1 {
				continue
			}
			path := "properties." + property
			behaviour.Set(to, path, append(behaviour.Array(to, path), behaviour.Ref(azure.ID(behaviour.Text(from, "id")))))
		}
	})
}

// eachPart calls f with the parts in the lists of a document, and the names of the lists.
func eachPart(doc behaviour.Object, f func(list string, part behaviour.Object)) {
	for list := range behaviour.Sub(doc, "properties") {
		for _, part := range behaviour.Objects(doc, "properties."+list) {
			if behaviour.Text(part, "id") != "" && part["properties"] != nil {
				f(list, part)
				eachPart(part, f)
			}
		}
	}
}
