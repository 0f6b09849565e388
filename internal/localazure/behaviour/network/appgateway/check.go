package appgateway

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// unverified refuses with a code that no source shows. Codes that a source shows are refused with [behaviour.Invalid].
func unverified(code, format string, args ...any) error {
	return schema.Malformed(code, format, args...)
}

// checkSize checks the SKU, and how many instances there are.
func checkSize(g *gateway) error {
	name, tier := g.sku(), behaviour.Text(g.Doc, "properties.sku.tier")
	if name == "" {
		return schema.Missing(g.Call, "properties.sku.name")
	}
	want := name
	if !g.second() {
		want, _, _ = strings.Cut(name, "_")
	}
	if tier != "" && !strings.EqualFold(tier, want) {
		return unverified("ApplicationGatewaySkuTierMismatch",
			"Application gateway %s has the SKU %s with the tier %s. The tier must be %s.",
			g.ID, name, tier, want)
	}
	behaviour.Default(g.Doc, "properties.sku.tier", want)
	if behaviour.At(g.Doc, autoscale) != nil {
		return checkAutoscale(g)
	}
	limit := largest
	switch {
	case !g.second():
		limit = 32
	case strings.EqualFold(name, "Basic"):
		limit = 2
	}
	if capacity, fixed := behaviour.Int(g.Doc, "properties.sku.capacity"); !fixed || capacity < 1 || capacity > limit {
		return unverified("ApplicationGatewayInvalidCapacity",
			"Capacity %v of application gateway %s is invalid. Without an autoscale configuration it must be from 1 to %d.",
			behaviour.At(g.Doc, "properties.sku.capacity"), g.ID, limit)
	}
	return nil
}

const autoscale = "properties.autoscaleConfiguration"

func checkAutoscale(g *gateway) error {
	least, _ := behaviour.Int(g.Doc, autoscale+".minCapacity")
	most, bounded := behaviour.Int(g.Doc, autoscale+".maxCapacity")
	if least < 0 || least > largest || bounded && (most < max(least, 2) || most > largest) {
		return unverified("ApplicationGatewayInvalidAutoscaleConfiguration",
			"Autoscale configuration of application gateway %s with minCapacity %d and maxCapacity %d is invalid. minCapacity must be "+
				"from 0 to %d, and maxCapacity from 2 to %d and not less.", g.ID, least, most, largest, largest)
	}
	return nil
}

// largest is the most instances of a gateway.
const largest = 125

// checkNames checks the names of all parts, and of path rules.
func checkNames(g *gateway) error {
	lists := []string{addressesList, frontendsList, portsList, certificatesList, rootsList, clientRootsList, authenticationList,
		profilesList,
		poolsList, settingsList, streamSettingsList, listenersList, streamListenersList, pathMapsList, rulesList, streamRulesList,
		probesList,
		redirectsList, rewritesList, distributionList, privateLinksList, jwtList}
	for _, p := range g.parts(lists...) {
		if err := schema.CheckName(p.id); err != nil {
			return err
		}
		for _, rule := range inside(p.id, p.Object, "pathRules") {
			if err := schema.CheckName(rule.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPresent refuses a gateway without one of the parts that every gateway has.
func checkPresent(g *gateway) error {
	for _, either := range [][]string{{addressesList}, {frontendsList}, {portsList}, {poolsList}, {listenersList, streamListenersList},
		{rulesList, streamRulesList}} {
		if len(g.parts(either...)) == 0 {
			return schema.Missing(g.Call, "properties."+either[0])
		}
	}
	if n := len(g.parts(addressesList)); n > 1 {
		return unverified("ApplicationGatewayHasMultipleGatewayIPConfigurations",
			"Application gateway %s has %d gateway IP configurations. It must have one.", g.ID, n)
	}
	return nil
}

// limits are how many parts a gateway has at most, with the name of a part in the code of the refusal and of all in its message.
var limits = []struct {
	list, singular, plural string
	most                   int
}{
	{frontendsList, "FrontendIPConfiguration", "FrontendIPConfigurations", 4},
	{portsList, "FrontendPort", "FrontendPorts", 100},
	{poolsList, "BackendAddressPool", "BackendAddressPools", 100},
	{settingsList, "BackendHttpSettings", "BackendHttpSettingsCollection", 100},
	{streamSettingsList, "BackendSettings", "BackendSettingsCollection", 100},
	{listenersList, "HttpListener", "HttpListeners", 200},
	{streamListenersList, "Listener", "Listeners", 200},
	{rulesList, "RequestRoutingRule", "RequestRoutingRules", 400},
	{streamRulesList, "RoutingRule", "RoutingRules", 400},
	{probesList, "Probe", "Probes", 100},
	{certificatesList, "SslCertificate", "SslCertificates", 100},
	{rootsList, "TrustedRootCertificate", "TrustedRootCertificates", 100},
	{clientRootsList, "TrustedClientCertificate", "TrustedClientCertificates", 200},
	{redirectsList, "RedirectConfiguration", "RedirectConfigurations", 100},
	{rewritesList, "RewriteRuleSet", "RewriteRuleSets", 400},
}

func checkLimits(g *gateway) error {
	for _, l := range limits {
		if n := len(g.parts(l.list)); n > l.most {
			return tooMany(l.singular, l.plural, n, l.most)
		}
	}
	const mostServers, mostPaths = 1200, 100
	for _, p := range g.parts(poolsList) {
		if n := len(behaviour.Array(p.Object, "properties.backendAddresses")); n > mostServers {
			return tooMany("BackendAddress", "BackendAddresses of "+string(p.id), n, mostServers)
		}
	}
	for _, p := range g.parts(pathMapsList) {
		if n := len(inside(p.id, p.Object, "pathRules")); n > mostPaths {
			return tooMany("PathRule", "PathRules of "+string(p.id), n, mostPaths)
		}
	}
	return nil
}

func tooMany(singular, plural string, n, most int) error {
	return behaviour.Invalid("ApplicationGateway"+singular+"LimitReached",
		"The number of %s exceeds the maximum allowed value. The number of %s is %d and the maximum allowed is %d.", plural, plural, n,
		most)
}

// link is a property of the parts of a list that refers to parts of another list.
type link struct {
	list, property, to string
	required           bool
}

// links are the references between parts. Those of path rules have the list pathRules, those of distribution targets
// loadDistributionTargets.
var links = []link{
	{listenersList, "frontendIPConfiguration", frontendsList, true},
	{listenersList, "frontendPort", portsList, true},
	{listenersList, "sslCertificate", certificatesList, false},
	{listenersList, "sslProfile", profilesList, false},
	{streamListenersList, "frontendIPConfiguration", frontendsList, true},
	{streamListenersList, "frontendPort", portsList, true},
	{streamListenersList, "sslCertificate", certificatesList, false},
	{streamListenersList, "sslProfile", profilesList, false},
	{settingsList, "probe", probesList, false},
	{settingsList, "trustedRootCertificates", rootsList, false},
	{settingsList, "authenticationCertificates", authenticationList, false},
	{streamSettingsList, "probe", probesList, false},
	{streamSettingsList, "trustedRootCertificates", rootsList, false},
	{profilesList, "trustedClientCertificates", clientRootsList, false},
	{rulesList, "httpListener", listenersList, true},
	{rulesList, "backendAddressPool", poolsList, false},
	{rulesList, "backendHttpSettings", settingsList, false},
	{rulesList, "urlPathMap", pathMapsList, false},
	{rulesList, "redirectConfiguration", redirectsList, false},
	{rulesList, "rewriteRuleSet", rewritesList, false},
	{rulesList, "loadDistributionPolicy", distributionList, false},
	{rulesList, "entraJWTValidationConfig", jwtList, false},
	{streamRulesList, "listener", streamListenersList, true},
	{streamRulesList, "backendAddressPool", poolsList, true},
	{streamRulesList, "backendSettings", streamSettingsList, true},
	{pathMapsList, "defaultBackendAddressPool", poolsList, false},
	{pathMapsList, "defaultBackendHttpSettings", settingsList, false},
	{pathMapsList, "defaultRedirectConfiguration", redirectsList, false},
	{pathMapsList, "defaultRewriteRuleSet", rewritesList, false},
	{pathMapsList, "defaultLoadDistributionPolicy", distributionList, false},
	{"pathRules", "backendAddressPool", poolsList, false},
	{"pathRules", "backendHttpSettings", settingsList, false},
	{"pathRules", "redirectConfiguration", redirectsList, false},
	{"pathRules", "rewriteRuleSet", rewritesList, false},
	{"pathRules", "loadDistributionPolicy", distributionList, false},
	{"loadDistributionTargets", "backendAddressPool", poolsList, true},
	{redirectsList, "targetListener", listenersList, false},
	{frontendsList, "privateLinkConfiguration", privateLinksList, false},
}

// checkReferences refuses references to parts that are not there, or not of this gateway.
func checkReferences(g *gateway) error {
	nested := map[string]string{"pathRules": pathMapsList, "loadDistributionTargets": distributionList}
	for _, l := range links {
		parts := g.parts(l.list)
		if outer := nested[l.list]; outer != "" {
			for _, p := range g.parts(outer) {
				parts = append(parts, inside(p.id, p.Object, l.list)...)
			}
		}
		for _, p := range parts {
			if err := g.checkLink(p, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gateway) checkLink(p part, l link) error {
	path := "properties." + l.property
	var ids []azure.ID
	for _, element := range behaviour.Objects(p.Object, path) {
		ids = append(ids, azure.ID(behaviour.Text(element, "id")))
	}
	if behaviour.Sub(p.Object, path) != nil {
		ids = append(ids, behaviour.RefID(p.Object, path))
	}
	if len(ids) == 0 && l.required {
		return schema.Malformed("MissingJsonReferenceId", "Value for reference id is missing. Path %s of resource %s.", path, p.id)
	}
	for _, id := range ids {
		if _, err := azure.ParseID(string(id)); err != nil || !id.Is(gatewayType+"/"+l.to) {
			return schema.Malformed("InvalidJsonReferenceId",
				"Value for reference id '%s' is invalid. Path %s of resource %s must be the id of a %s.", id, path, p.id,
				gatewayType+"/"+l.to)
		}
		if !id.Parent().Equal(g.ID) || g.lists[l.to][strings.ToLower(id.Name())] == nil {
			return behaviour.InvalidReference(p.id, id)
		}
	}
	return nil
}

// number checks that a property is a whole number from 1 to most. An optional property may have no value.
func number(p part, path string, most int, optional bool) error {
	if !p.has(path) && optional {
		return nil
	}
	if n, ok := behaviour.Int(p.Object, "properties."+path); !ok || n < 1 || n > most {
		return unverified("InvalidPropertyValue",
			"Value %v of properties.%s of resource %s is invalid. It must be a whole number from %d to %d.",
			behaviour.At(p.Object, "properties."+path), path, p.id, 1, most)
	}
	return nil
}

func checkPorts(g *gateway) error {
	seen := map[int]bool{}
	const most = 65535
	for _, p := range g.parts(portsList) {
		if err := number(p, "port", most, false); err != nil {
			return err
		}
		n, _ := behaviour.Int(p.Object, "properties.port")
		if seen[n] {
			return unverified("ApplicationGatewayFrontendPortsUsingSamePortNumber",
				"Two Frontend Ports of Application Gateway %s are using the same port number %d.", g.ID, n)
		}
		seen[n] = true
	}
	return nil
}

// hostForm matches host names with the wildcards * and ?.
var hostForm = regexp.MustCompile(`^[A-Za-z0-9*?]([A-Za-z0-9.*?_-]*[A-Za-z0-9*?])?$`)

const mostHosts, longestHost = 5, 255

// hosts returns the host names of a listener.
func hosts(p part) []string {
	all := behaviour.Texts(p.Object, "properties.hostNames")
	if one := p.text("hostName"); one != "" {
		all = append(all, one)
	}
	return all
}

func checkListeners(g *gateway) error {
	type place struct{ frontend, port string }
	type site struct {
		place
		host string
	}
	sites, protocols := map[site]part{}, map[place]string{}
	for _, p := range g.parts(listenersList, streamListenersList) {
		if err := checkHosts(p); err != nil {
			return err
		}
		at := place{p.refers("frontendIPConfiguration").Key(), p.refers("frontendPort").Key()}
		if had := protocols[at]; had != "" && !strings.EqualFold(had, p.text("protocol")) {
			return unverified("ApplicationGatewayListenersUsingSamePortWithDifferentProtocols",
				"Listener %s has the protocol %s. Another listener with the same frontend IP configuration and frontend port %s has %s.",
				p.id,
				p.text("protocol"), p.refers("frontendPort"), had)
		}
		protocols[at] = p.text("protocol")
		names := hosts(p)
		if len(names) == 0 {
			names = []string{""}
		}
		for _, host := range names {
			s := site{at, strings.ToLower(host)}
			if other, taken := sites[s]; taken {
				return sameSite(g, other, p, host)
			}
			sites[s] = p
		}
	}
	return nil
}

func sameSite(g *gateway, a, b part, host string) error {
	if host == "" {
		return behaviour.Invalid("ApplicationGatewayHttpListenersUsingSameFrontendPort",
			"Two Http Listeners of Application Gateway %s are using the same Frontend Port %s.", g.ID, b.refers("frontendPort")).
			With("ApplicationGatewayHttpListenersUsingSameFrontendPort", "The listeners are %s and %s.", a.id, b.id)
	}
	return behaviour.Invalid("ApplicationGatewayHttpListenersUsingSameFrontendPortHostNameAndFrontendIpConfig",
		"Two Http Listeners of Application Gateway %s and %s are using the same Frontend Port %s, HostName %s and "+
			"FrontendIpConfiguration %s.",
		a.id.Name(), b.id.Name(), b.refers("frontendPort"), host, b.refers("frontendIPConfiguration"))
}

func checkHosts(p part) error {
	if p.text("hostName") != "" && len(behaviour.Texts(p.Object, "properties.hostNames")) > 0 {
		return unverified("ApplicationGatewayListenerHasHostNameAndHostNames",
			"Http Listener %s has HostName and HostNames. Only one of both can be specified.", p.id)
	}
	all := hosts(p)
	if len(all) > mostHosts {
		return unverified("ApplicationGatewayHttpListenerHostNamesLimitReached", "Http Listener %s has %d host names. The limit is %d.",
			p.id,
			len(all), mostHosts)
	}
	for _, h := range all {
		if len(h) > longestHost || !hostForm.MatchString(h) {
			return unverified("ApplicationGatewayHttpListenerHostNameInvalid",
				"Host name %q of Http Listener %s is invalid. It must have up to %d characters and be a DNS name, in which "+
					"* and ? are wildcards.",
				h, p.id, longestHost)
		}
	}
	return nil
}

// checkTLS checks that listeners over TLS have a certificate, and no others.
func checkTLS(g *gateway) error {
	for _, p := range g.parts(listenersList, streamListenersList) {
		secure := p.is("protocol", "Https") || p.is("protocol", "Tls")
		switch {
		case !p.has("protocol"):
			return schema.Missing(g.at(p), "properties.protocol")
		case secure && !p.has("sslCertificate"):
			return unverified("ApplicationGatewayHttpsListenerMustReferenceCert",
				"Http Listener %s has the protocol %s and no SslCertificate.", p.id,
				p.text("protocol"))
		case !secure && (p.has("sslCertificate") || p.has("sslProfile")):
			return unverified("ApplicationGatewayHttpListenerCannotReferenceCert",
				"Http Listener %s has the protocol %s. Only the protocols Https and Tls can have an SslCertificate and an SslProfile.",
				p.id,
				p.text("protocol"))
		}
	}
	return checkPolicies(g)
}

// checkPolicies refuses predefined TLS policies without a name.
func checkPolicies(g *gateway) error {
	policies := []behaviour.Object{behaviour.Sub(g.Doc, "properties.sslPolicy")}
	for _, p := range g.parts(profilesList) {
		policies = append(policies, behaviour.Sub(p.Object, "properties.sslPolicy"))
	}
	for _, policy := range policies {
		kind, name := behaviour.Text(policy, "policyType"), behaviour.Text(policy, "policyName")
		if (kind == "" || strings.EqualFold(kind, "Predefined")) && policy != nil && name == "" && policy["minProtocolVersion"] == nil {
			return unverified("ApplicationGatewaySslPolicyNameMissing",
				"The SSL policy of application gateway %s has the type Predefined and no policyName.", g.ID)
		}
	}
	return nil
}

func checkPools(g *gateway) error {
	for _, p := range g.parts(poolsList) {
		for _, a := range behaviour.Objects(p.Object, "properties.backendAddresses") {
			ip, fqdn := behaviour.Text(a, "ipAddress"), behaviour.Text(a, "fqdn")
			if (ip == "") == (fqdn == "") {
				return unverified("ApplicationGatewayBackendAddressInvalid",
					"A backend address of %s must have either ipAddress or fqdn; it has %q and %q.", p.id, ip, fqdn)
			}
			if strings.Contains(ip, ":") {
				return unverified("ApplicationGatewayBackendAddressInvalid",
					"Backend address %q of %s is an IPv6 address. Only IPv4 is supported.", ip, p.id)
			}
			if strings.ContainsAny(ip+fqdn, "/:?# ") {
				return unverified("ApplicationGatewayBackendAddressInvalid", "Backend address %q of %s is no address and no DNS name.",
					ip+fqdn, p.id)
			}
		}
	}
	return nil
}

const day = int(24 * time.Hour / time.Second)

func checkSettings(g *gateway) error {
	for _, p := range g.parts(settingsList, streamSettingsList) {
		const mostPort, longestDrain = 65535, 3600
		err := schema.FirstError(
			func() error { return number(p, "port", mostPort, false) },
			func() error { return number(p, "requestTimeout", day, true) },
			func() error { return number(p, "timeout", day, true) },
			func() error {
				if behaviour.Bool(p.Object, "properties.connectionDraining.enabled") {
					return number(p, "connectionDraining.drainTimeoutInSec", longestDrain, false)
				}
				return nil
			},
			func() error { return g.checkSetting(p) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// checkSetting checks what the properties of backend settings allow each other.
func (g *gateway) checkSetting(p part) error {
	secure := p.is("protocol", "Https") || p.is("protocol", "Tls")
	path := p.text("path")
	switch {
	case !p.has("protocol"):
		return schema.Missing(g.at(p), "properties.protocol")
	case p.text("hostName") != "" && behaviour.Bool(p.Object, "properties.pickHostNameFromBackendAddress"):
		return unverified("ApplicationGatewayBackendHttpSettingsHostNameAndPickHostName",
			"Backend settings %s have HostName and PickHostNameFromBackendAddress. Only one of both can be specified.", p.id)
	case !secure && len(behaviour.Array(p.Object, "properties.trustedRootCertificates")) > 0:
		return unverified("ApplicationGatewayBackendHttpSettingsCannotReferenceRootCert",
			"Backend settings %s have the protocol %s. Only Https and Tls can have trusted root certificates.", p.id, p.text("protocol"))
	case path != "" && !strings.HasPrefix(path, "/"):
		return unverified("ApplicationGatewayBackendHttpSettingsPathInvalid",
			"Path %q of backend settings %s must begin with '/'.", path, p.id)
	}
	if probe := g.find(probesList, p.refers("probe")); probe.Object != nil {
		return checkProbeOf(p, probe)
	}
	return nil
}

// checkProbeOf checks backend settings against their probe.
func checkProbeOf(p, probe part) error {
	picks := behaviour.Bool(probe.Object, "properties.pickHostNameFromBackendHttpSettings")
	named := p.text("hostName") != "" || behaviour.Bool(p.Object, "properties.pickHostNameFromBackendAddress")
	switch {
	case !strings.EqualFold(probe.text("protocol"), p.text("protocol")):
		return unverified("ApplicationGatewayProbeProtocolMismatch",
			"Probe %s has the protocol %s. Backend settings %s, which use it, have %s.",
			probe.id, probe.text("protocol"), p.id, p.text("protocol"))
	case picks && !named:
		return unverified("ApplicationGatewayProbeHostNameNotInBackendHttpSettings",
			"Probe %s takes its host from backend settings %s, which have neither HostName nor PickHostNameFromBackendAddress.",
			probe.id, p.id)
	}
	return nil
}

// codesForm matches a status code or a range of them.
var codesForm = regexp.MustCompile(`^[1-5][0-9][0-9]( *- *[1-5][0-9][0-9])?$`)

func checkProbes(g *gateway) error {
	const mostFailures, mostPort = 20, 65535
	for _, p := range g.parts(probesList) {
		if n, given := behaviour.Int(p.Object, "properties.unhealthyThreshold"); given && (n < 0 || n > mostFailures) {
			return behaviour.Invalid("ApplicationGatewayProbeUnhealthyThresholdIsInvalid",
				"Unhealthy threshold specified for Probe %s is not valid. Supported range is [0, 20].", p.id)
		}
		err := schema.FirstError(
			func() error { return number(p, "interval", day, true) },
			func() error { return number(p, "timeout", day, true) },
			func() error { return number(p, "port", mostPort, true) },
			func() error { return g.checkProbe(p) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *gateway) checkProbe(p part) error {
	picks := behaviour.Bool(p.Object, "properties.pickHostNameFromBackendHttpSettings")
	web := !p.is("protocol", "Tcp") && !p.is("protocol", "Tls")
	switch {
	case !p.has("protocol"):
		return schema.Missing(g.at(p), "properties.protocol")
	case p.text("host") != "" && picks:
		return unverified("ApplicationGatewayProbeHostAndPickHostName",
			"Probe %s has Host and PickHostNameFromBackendHttpSettings. Only one of both can be specified.", p.id)
	case web && p.text("host") == "" && !picks:
		return unverified("ApplicationGatewayProbeHostIsNull", "Probe %s must have Host or PickHostNameFromBackendHttpSettings.", p.id)
	case web && !strings.HasPrefix(p.text("path"), "/"):
		return unverified("ApplicationGatewayProbePathIsInvalid", "Path %q of Probe %s must begin with '/'.", p.text("path"), p.id)
	}
	for _, codes := range behaviour.Texts(p.Object, "properties.match.statusCodes") {
		if !codesForm.MatchString(strings.TrimSpace(codes)) {
			return unverified("ApplicationGatewayProbeStatusCodesInvalid",
				"Status codes %q of Probe %s are invalid. They must be a code or a range such as 200-399.", codes, p.id)
		}
	}
	return nil
}

// aim is where a rule, a path rule or a path map sends requests.
type aim struct{ pool, setting, redirect, distribution bool }

func aimOf(p part, prefix string) aim {
	has := func(name string) bool {
		if prefix != "" {
			name = prefix + strings.ToUpper(name[:1]) + name[1:]
		}
		return p.refers(name) != ""
	}
	return aim{has("backendAddressPool"), has("backendHttpSettings"), has("redirectConfiguration"), has("loadDistributionPolicy")}
}

// check refuses a target that is none, or a redirect and a backend. A pool beside a load distribution policy is no second target: Azure's
// documented examples have both. Kind names the part in messages.
func (a aim) check(kind string, p part) error {
	code := "ApplicationGateway" + strings.ReplaceAll(kind, " ", "")
	switch {
	case a.redirect && (a.pool || a.distribution):
		return unverified(code+"CannotReferenceBackendAddressPool",
			"%s %s cannot reference a BackendAddressPool when Redirect Setting is specified.",
			kind, p.id)
	case a.redirect && a.setting:
		return unverified(code+"CannotReferenceBackendHttpSettings",
			"%s %s cannot reference BackendHttpSettings when Redirect Setting is specified.", kind, p.id)
	case !a.redirect && (!a.setting || !a.pool && !a.distribution):
		return unverified(code+"HasNoTarget",
			"%s %s must reference a RedirectConfiguration, or BackendHttpSettings with a BackendAddressPool or a LoadDistributionPolicy.",
			kind, p.id)
	}
	return nil
}

func checkPathMaps(g *gateway) error {
	for _, m := range g.parts(pathMapsList) {
		if err := aimOf(m, "default").check("Url Path Map", m); err != nil {
			return err
		}
		rules := inside(m.id, m.Object, "pathRules")
		if len(rules) == 0 {
			return schema.Missing(g.at(m), "properties.pathRules")
		}
		for _, r := range rules {
			if err := aimOf(r, "").check("Path Rule", r); err != nil {
				return err
			}
			if len(behaviour.Texts(r.Object, "properties.paths")) == 0 {
				return schema.Missing(g.at(r), "properties.paths")
			}
			for _, path := range behaviour.Texts(r.Object, "properties.paths") {
				if err := checkPath(r, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkPath(r part, path string) error {
	star := strings.IndexByte(path, '*')
	switch {
	case path == "/":
		return behaviour.Invalid("ApplicationGatewayPathRulePathShouldHaveNonEmptyMatchValue",
			"Path %s should have a nonempty match value followed by '/'  in PathRule %s.", path, r.id)
	case !strings.HasPrefix(path, "/"), strings.ContainsAny(path, "?#"), star >= 0 && star != len(path)-1:
		return unverified("ApplicationGatewayPathRulePathInvalid",
			"Path %q in PathRule %s is invalid. It must begin with '/', have '*' at its end only, and have no '?' and no '#'.", path, r.id)
	}
	return nil
}

func checkRules(g *gateway) error {
	if err := checkPriorities(g); err != nil {
		return err
	}
	by := map[string]part{}
	for _, r := range g.parts(rulesList, streamRulesList) {
		listener := cmp.Or(r.refers("httpListener"), r.refers("listener"))
		if other, taken := by[listener.Key()]; taken {
			return unverified("ApplicationGatewayRequestRoutingRulesUsingSameListener",
				"Request Routing Rules %s and %s are using the same Http Listener %s. A listener has one rule.", other.id, r.id, listener)
		}
		by[listener.Key()] = r
		if r.id.Is(gatewayType + "/" + streamRulesList) {
			continue
		}
		if err := checkRule(r); err != nil {
			return err
		}
	}
	return nil
}

func checkRule(r part) error {
	a := aimOf(r, "")
	byPath, hasMap := r.is("ruleType", "PathBasedRouting"), r.refers("urlPathMap") != ""
	switch {
	case byPath && !hasMap:
		return unverified("ApplicationGatewayRequestRoutingRuleMustReferenceUrlPathMap",
			"Request Routing Rule %s has the type PathBasedRouting and no UrlPathMap.", r.id)
	case !byPath && hasMap:
		return unverified("ApplicationGatewayRequestRoutingRuleCannotReferenceUrlPathMap",
			"Request Routing Rule %s has the type Basic and references a UrlPathMap.", r.id)
	case byPath && a == (aim{}):
		return nil
	case byPath:
		return unverified("ApplicationGatewayRequestRoutingRuleCannotReferenceBackend",
			"Request Routing Rule %s has the type PathBasedRouting. Its targets are in its UrlPathMap.", r.id)
	}
	return a.check("Request Routing Rule", r)
}

// prioritized is the first API version in which rules must have a priority.
const prioritized = "2021-08-01"

func checkPriorities(g *gateway) error {
	const most = 20000
	by := map[int]part{}
	rules := g.parts(rulesList, streamRulesList)
	without := slices.IndexFunc(rules, func(r part) bool { return !r.has("priority") })
	for _, r := range rules {
		if !r.has("priority") {
			continue
		}
		if err := number(r, "priority", most, false); err != nil {
			return err
		}
		n, _ := behaviour.Int(r.Object, "properties.priority")
		if other, taken := by[n]; taken {
			return unverified("ApplicationGatewayRequestRoutingRulePriorityNotUnique",
				"Priority must be unique across all the request routing rules. %s and %s have the priority %d.", other.id, r.id, n)
		}
		by[n] = r
	}
	switch version := g.Query.Get("api-version"); {
	case without < 0:
	case len(by) > 0:
		return behaviour.Invalid("ApplicationGatewayRequestRoutingRulePartialPriorityDefined",
			"Either all or no rule should have the priority specified.").
			With("ApplicationGatewayRequestRoutingRulePartialPriorityDefined", "%s has no priority.", rules[without].id)
	case g.second() && version >= prioritized:
		return behaviour.Invalid("ApplicationGatewayRequestRoutingRulePriorityCannotBeEmpty",
			"Priority for the request routing rule %s cannot be empty. All request routing rules should have a priority defined "+
				"starting from "+
				"api-version %s", rules[without].id, prioritized)
	}
	return nil
}

func checkRedirects(g *gateway) error {
	for _, p := range g.parts(redirectsList) {
		url := p.text("targetUrl")
		switch {
		case !p.has("redirectType"):
			return schema.Missing(g.at(p), "properties.redirectType")
		case (p.refers("targetListener") != "") == (url != ""):
			return unverified("ApplicationGatewayRedirectConfigurationTargetInvalid",
				"Redirect Configuration %s must have either TargetListener or TargetUrl.", p.id)
		case url != "" && !strings.HasPrefix(strings.ToLower(url), "http://") && !strings.HasPrefix(strings.ToLower(url), "https://"):
			return unverified("ApplicationGatewayRedirectConfigurationTargetUrlInvalid",
				"TargetUrl %q of Redirect Configuration %s must begin with http:// or https://.", url, p.id)
		}
	}
	return nil
}

// endless are the rewrite rule sets, by the lower case of their ids, with a rule that evaluates the path map again: true for those in which
// each rule does so without a condition.
func (g *gateway) endless() map[string]bool {
	sets := map[string]bool{}
	for _, p := range g.parts(rewritesList) {
		again, always := false, true
		for _, r := range behaviour.Objects(p.Object, "properties.rewriteRules") {
			reroute := behaviour.Bool(r, "actionSet.urlConfiguration.reroute")
			again = again || reroute
			always = always && reroute && len(behaviour.Objects(r, "conditions")) == 0
		}
		if again {
			sets[strings.ToLower(string(p.id))] = always
		}
	}
	return sets
}

// checkReroutes refuses what would evaluate the path map forever: Azure's documentation says that a basic rule cannot do so, and that a
// rule with a path map needs at least one rewrite rule with a condition, or one that does not.
func checkReroutes(g *gateway) error {
	sets := g.endless()
	refuse := func(p part, kind, name string) error {
		always, again := sets[strings.ToLower(string(p.refers(name)))]
		switch {
		case again && kind == "Request Routing Rule":
			return unverified("ApplicationGatewayBasicRuleCannotReroute",
				"%s %s has the rewrite rule set %s, which evaluates a path map again. A basic rule has none.", kind, p.id, p.refers(name))
		case always:
			return unverified("ApplicationGatewayRewriteRuleSetReroutesAlways",
				"%s %s has the rewrite rule set %s, of which each rule evaluates the path map again without a condition.", kind, p.id,
				p.refers(name))
		}
		return nil
	}
	for _, p := range g.parts(rulesList) {
		if err := refuse(p, "Request Routing Rule", "rewriteRuleSet"); err != nil {
			return err
		}
	}
	for _, m := range g.parts(pathMapsList) {
		if err := refuse(m, "Url Path Map", "defaultRewriteRuleSet"); err != nil {
			return err
		}
		for _, p := range inside(m.id, m.Object, "pathRules") {
			if err := refuse(p, "Path Rule", "rewriteRuleSet"); err != nil {
				return err
			}
		}
	}
	return nil
}

// variableForm matches the variables of rewrite conditions.
var variableForm = regexp.MustCompile(`^(var|http_req|http_resp)_[A-Za-z0-9_-]+$`)

func checkRewrites(g *gateway) error {
	const mostInSet = 40
	for _, p := range g.parts(rewritesList) {
		headers, conditions := 0, 0
		for _, r := range behaviour.Objects(p.Object, "properties.rewriteRules") {
			rule := fmt.Sprintf("rewrite rule %s of %s", behaviour.Text(r, "name"), p.id)
			for _, c := range behaviour.Objects(r, "conditions") {
				conditions++
				if v := behaviour.Text(c, "variable"); !variableForm.MatchString(v) {
					return unverified("ApplicationGatewayRewriteRuleConditionVariableInvalid",
						"Variable %q of a condition of %s is invalid. It must begin with var_, http_req_ or http_resp_.", v, rule)
				}
			}
			for _, list := range []string{"actionSet.requestHeaderConfigurations", "actionSet.responseHeaderConfigurations"} {
				for _, h := range behaviour.Objects(r, list) {
					headers++
					name := behaviour.Text(h, "headerName")
					if name == "" || strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Upgrade") {
						return unverified("ApplicationGatewayRewriteRuleHeaderNameInvalid",
							"Header name %q of %s is invalid: it must not be empty, and Connection and Upgrade cannot be rewritten.",
							name, rule)
					}
				}
			}
		}
		if headers > mostInSet || conditions > mostInSet {
			return unverified("ApplicationGatewayRewriteRuleSetLimitReached",
				"Rewrite Rule Set %s has %d headers and %d conditions. The limit of each is %d.", p.id, headers, conditions, mostInSet)
		}
	}
	return nil
}
