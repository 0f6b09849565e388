package appgateway

import (
	"fmt"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// newer are members with the first API version that has them, by the official models. Older versions neither show nor accept them, so a
// document that is read and written with an older version loses them.
var newer = []struct{ list, member, since string }{
	{settingsList, "dedicatedBackendConnection", "2025-01-01"},
	{settingsList, "validateCertChainAndExpiry", "2025-01-01"},
	{settingsList, "validateSNI", "2025-01-01"},
	{settingsList, "sniName", "2025-01-01"},
	{streamSettingsList, "enableL4ClientIpPreservation", "2025-01-01"},
	{probesList, "enableProbeProxyProtocolHeader", "2025-01-01"},
	{rulesList, "entraJWTValidationConfig", "2025-03-01"},
	{"", "entraJWTValidationConfigs", "2025-03-01"},
}

// eachNewer calls f with the properties that have a member which the version of the request lacks.
func eachNewer(c *behaviour.Call, doc behaviour.Object, f func(where string, properties behaviour.Object, member string)) {
	version := c.Query.Get("api-version")
	for _, n := range newer {
		switch {
		case version == "" || version >= n.since:
		case n.list == "":
			if properties := behaviour.Sub(doc, "properties"); properties[n.member] != nil {
				f("properties", properties, n.member)
			}
		default:
			for i, p := range behaviour.Objects(doc, "properties."+n.list) {
				if properties := behaviour.Sub(p, "properties"); properties[n.member] != nil {
					f(fmt.Sprintf("properties.%s[%d].properties", n.list, i), properties, n.member)
				}
			}
		}
	}
}

// checkVersion refuses members that the API version of the request does not have.
func checkVersion(c *behaviour.Call) error {
	var problem error
	eachNewer(c, c.Body, func(where string, _ behaviour.Object, member string) {
		if problem == nil {
			problem = schema.Malformed("InvalidJson",
				"Could not find member '%s' on an object of application gateway %s in api-version %s. Path '%s.%s'.",
				member, c.ID, c.Query.Get("api-version"), where, member)
		}
	})
	return problem
}

// hideNewer removes members that the API version of the request does not have from a view.
func hideNewer(c *behaviour.Call, view behaviour.Object) {
	eachNewer(c, view, func(_ string, properties behaviour.Object, member string) { delete(properties, member) })
}
