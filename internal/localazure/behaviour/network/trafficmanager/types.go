// Package trafficmanager has the profiles of Traffic Manager and their endpoints: what Azure refuses and fills in, the states of
// endpoints, and the endpoints that answer a DNS query. Layer L2.
//
// The endpoints of a profile are in three lists of its document, one for each kind. A client sees one list and resources of their own.
package trafficmanager

import (
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
)

const (
	// Type is the type of profiles.
	Type = "Microsoft.Network/trafficManagerProfiles"
	// Domain is the domain of the names of profiles.
	Domain = "trafficmanager.net"

	azureKind, externalKind, nestedKind = "azureEndpoints", "externalEndpoints", "nestedEndpoints"

	// probeField of a stored endpoint is the state that the probes have found, absent before the first result.
	probeField = behaviour.Private + "probe"

	endpointsPath = "properties.endpoints"
)

// kinds are the kinds of endpoints.
func kinds() []string { return []string{azureKind, externalKind, nestedKind} }

func listOf(kind string) string { return "properties." + kind }

// Types returns the types of profiles and endpoints.
func Types() []behaviour.Type {
	style := behaviour.Plain("Microsoft.Network Traffic Manager")
	tagged := style
	tagged.EmptyTags = true
	types := []behaviour.Type{{
		Name: Type, Style: tagged, Where: behaviour.Global, NoState: true, Fill: fillProfile, Check: checkProfile, Show: showProfile,
	}}
	for _, kind := range kinds() {
		types = append(types, behaviour.Type{
			Name: Type + "/" + kind, Style: style, NoState: true, Inline: listOf(kind), Show: showEndpoint,
			Fill: func(c *behaviour.Call) error { return fillEndpoint(c, kind) },
		})
	}
	return types
}

// badRequest returns the error for an invalid profile or endpoint.
func badRequest(format string, args ...any) error {
	return behaviour.Invalid("BadRequest", format, args...)
}

// endpoints returns the endpoints of a stored profile.
func endpoints(profile behaviour.Object) []behaviour.Object {
	var all []behaviour.Object
	for _, kind := range kinds() {
		all = append(all, behaviour.Objects(profile, listOf(kind))...)
	}
	return all
}

// kindOf returns the kind of an endpoint with a type such as "Microsoft.Network/trafficManagerProfiles/azureEndpoints", "" for none.
func kindOf(endpoint behaviour.Object) string {
	text := behaviour.Text(endpoint, "type")
	text = text[strings.LastIndexByte(text, '/')+1:]
	for _, kind := range kinds() {
		if strings.EqualFold(kind, text) {
			return kind
		}
	}
	return ""
}

func fillProfile(c *behaviour.Call) error {
	sent, err := distribute(c)
	if err != nil {
		return err
	}
	if sent != nil {
		err = numberSent(c, sent)
	} else {
		numberMissing(c)
	}
	for _, check := range []func(*behaviour.Call) error{checkName, checkMonitor, checkMaxReturn} {
		if err == nil {
			err = check(c)
		}
	}
	return err
}

// distribute moves the endpoints that a request has into the list of their kind, and returns them in their order. A request without
// endpoints leaves those of the profile alone.
func distribute(c *behaviour.Call) ([]behaviour.Object, error) {
	if behaviour.At(c.Doc, endpointsPath) == nil {
		for _, kind := range kinds() {
			if old := behaviour.At(c.Old, listOf(kind)); old != nil && behaviour.At(c.Doc, listOf(kind)) == nil {
				behaviour.Set(c.Doc, listOf(kind), behaviour.Clone(old))
			}
		}
		return nil, nil
	}
	lists := map[string][]any{azureKind: {}, externalKind: {}, nestedKind: {}}
	sent := behaviour.Objects(c.Doc, endpointsPath)
	for _, e := range sent {
		kind, name := kindOf(e), behaviour.Text(e, "name")
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, badRequest("The endpoint '%s' of profile '%s' has no valid name and type.", name, c.ID.Name())
		}
		lists[kind] = append(lists[kind], e)
	}
	for kind, list := range lists {
		behaviour.Set(c.Doc, listOf(kind), list)
	}
	behaviour.Remove(c.Doc, endpointsPath)
	return sent, nil
}

const priorityPath = "properties.priority"

// numberSent gives the endpoints of a request without priorities the priorities 1, 2, 3 in their order. Priorities of some endpoints
// alone are refused.
func numberSent(c *behaviour.Call, sent []behaviour.Object) error {
	given := 0
	for _, e := range sent {
		if behaviour.At(e, priorityPath) != nil {
			given++
		}
	}
	switch given {
	case 0:
		for i, e := range sent {
			behaviour.Set(e, priorityPath, i+1)
		}
	case len(sent):
	default:
		return badRequest("Some endpoints of profile '%s' have a priority. If one has, all must have one.", c.ID.Name())
	}
	return nil
}

// numberMissing gives an endpoint that is written alone and without a priority the priority that it had, or the one after the largest.
func numberMissing(c *behaviour.Call) {
	all, largest, taken := endpoints(c.Doc), 0, map[int]bool{}
	for _, e := range all {
		if p := wholeNumber(behaviour.At(e, priorityPath)); p > 0 {
			largest, taken[p] = max(largest, p), true
		}
	}
	for _, kind := range kinds() {
		for _, e := range behaviour.Objects(c.Doc, listOf(kind)) {
			if behaviour.At(e, priorityPath) != nil {
				continue
			}
			old := behaviour.Named(c.Old, listOf(kind), behaviour.Text(e, "name"))
			p := wholeNumber(behaviour.At(old, priorityPath))
			if p == 0 || taken[p] {
				p = largest + 1
			}
			for p > mostPriority || taken[p] { // the numbers after the largest are used up: the smallest that is free
				p = p%mostPriority + 1
			}
			largest, taken[p] = max(largest, p), true
			behaviour.Set(e, priorityPath, p)
		}
	}
}

// wholeNumber reads a number that can also be a text, as Azure does. It returns 0 for other values.
func wholeNumber(value any) int {
	if text, ok := value.(string); ok {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0
		}
		return n
	}
	n, _ := behaviour.Int(behaviour.Object{"n": value}, "n")
	return n
}

// fillEndpoint completes and checks an endpoint. Its rules that depend on the whole profile are in checkProfile.
func fillEndpoint(c *behaviour.Call, kind string) error {
	if probed := c.Old[probeField]; probed != nil && !c.Changed("properties.target") && !c.Changed("properties.targetResourceId") {
		c.Doc[probeField] = probed
	} else {
		delete(c.Doc, probeField)
	}
	c.Doc["type"] = Type + "/" + kind
	if err := fillTarget(c, kind); err != nil {
		return err
	}
	return checkEndpoint(c)
}

// fillTarget checks what an endpoint leads to, and writes the name of an Azure resource into it.
func fillTarget(c *behaviour.Call, kind string) error {
	name, target := c.ID.Name(), azure.ID(behaviour.Text(c.Doc, "properties.targetResourceId"))
	if kind == externalKind {
		switch {
		case target != "":
			return badRequest("The endpoint '%s' is external and must not have a 'targetResourceId'.", name)
		case !isTarget(behaviour.Text(c.Doc, "properties.target")):
			return badRequest("The target '%s' of endpoint '%s' must be a DNS name or an IP address.",
				behaviour.Text(c.Doc, "properties.target"), name)
		}
		return nil
	}
	if target == "" {
		return badRequest("The endpoint '%s' must have a 'targetResourceId'.", name)
	}
	isProfile := strings.EqualFold(target.Type(), Type)
	if isProfile != (kind == nestedKind) {
		return badRequest("The resource '%s' cannot be the target of endpoint '%s': a profile belongs to a nested endpoint, and a nested "+
			"endpoint to a profile.", target, name)
	}
	doc, ok := c.Get(target)
	if !ok {
		if !c.Known(target.Type()) || c.Old != nil && !c.Changed("properties.targetResourceId") {
			return nil
		}
		return badRequest("The target resource '%s' of endpoint '%s' does not exist.", target, name)
	}
	if isProfile {
		behaviour.Set(c.Doc, "properties.target", behaviour.Text(doc, "properties.dnsConfig.fqdn"))
		return checkNesting(c.World, c.ID, target)
	}
	if region, known := catalog.FindRegion(behaviour.Text(doc, "location")); known {
		behaviour.Set(c.Doc, "properties.endpointLocation", region.Display)
	}
	fqdn := behaviour.Text(doc, "properties.dnsSettings.fqdn")
	if fqdn == "" && strings.EqualFold(target.Type(), "Microsoft.Network/publicIPAddresses") {
		return badRequest("The public IP address '%s' of endpoint '%s' must have a DNS name.", target, name)
	}
	if fqdn != "" {
		behaviour.Set(c.Doc, "properties.target", fqdn)
	}
	return nil
}

// deepest is how many levels of profiles can be nested.
const deepest = 10

// checkNesting refuses an endpoint that leads from its profile to the profile again, or too deep.
func checkNesting(w behaviour.World, endpoint, target azure.ID) error {
	level := []azure.ID{target}
	for range deepest {
		var next []azure.ID
		for _, id := range level {
			if id.Equal(endpoint.Parent()) {
				return badRequest("The endpoint '%s' would make the profile '%s' its own child.", endpoint.Name(), endpoint.Parent().Name())
			}
			doc, _ := w.Get(id)
			for _, e := range behaviour.Objects(doc, listOf(nestedKind)) {
				next = append(next, azure.ID(behaviour.Text(e, "properties.targetResourceId")))
			}
		}
		if level = next; len(level) == 0 {
			return nil
		}
	}
	return badRequest("The endpoint '%s' nests profiles deeper than %d levels.", endpoint.Name(), deepest)
}

// showProfile shows the lists of endpoints as one, and the state of the profile.
func showProfile(c *behaviour.Call, view behaviour.Object) {
	all := []any{}
	for _, e := range endpoints(view) {
		all = append(all, e)
	}
	for _, kind := range kinds() {
		behaviour.Remove(view, listOf(kind))
	}
	behaviour.Set(view, endpointsPath, all)
	if doc, ok := c.Get(c.ID); ok {
		behaviour.Set(view, "properties.monitorConfig.profileMonitorStatus", string(ProfileState(c.World, doc)))
	}
}

func showEndpoint(c *behaviour.Call, view behaviour.Object) {
	if profile, ok := c.Get(c.ID.Parent()); ok {
		behaviour.Set(view, "properties.endpointMonitorStatus", string(EndpointState(c.World, profile, view)))
	}
	behaviour.Hide(view)
}

// Routes answers whether a DNS name of Traffic Manager is free.
func Routes() []behaviour.Route {
	do := func(c *behaviour.Call) (behaviour.Reply, error) {
		name := behaviour.Text(c.Body, "name")
		body := behaviour.Object{"name": name, "type": Type, "nameAvailable": true}
		switch _, _, taken := Find(c.World, name); {
		case !isRelativeName(name):
			body["nameAvailable"], body["reason"] = false, "Invalid"
			body["message"] = "Domain name " + name + "." + Domain + " is invalid. Please choose a different DNS prefix."
		case taken:
			body["nameAvailable"], body["reason"] = false, "AlreadyExists"
			body["message"] = "Domain name " + name + "." + Domain + " already exists. Please choose a different DNS prefix."
		}
		return behaviour.Reply{Status: 200, Body: body}, nil
	}
	return []behaviour.Route{
		{Method: "POST", Pattern: "/providers/Microsoft.Network/checkTrafficManagerNameAvailability", Do: do},
		{Method: "POST", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Network/checkTrafficManagerNameAvailabilityV2", Do: do,
			Permission: "Microsoft.Network/checkTrafficManagerNameAvailabilityV2/action"},
	}
}

// Find returns the profile with a relative name, in any case.
func Find(w behaviour.World, relative string) (azure.ID, behaviour.Object, bool) {
	for id, doc := range behaviour.Everywhere(w, Type) {
		if strings.EqualFold(behaviour.Text(doc, "properties.dnsConfig.relativeName"), relative) {
			return id, doc, true
		}
	}
	return "", nil, false
}
