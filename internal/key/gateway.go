package key

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

const gateway = "appgw.ingress.kubernetes.io/"

const (
	allowedBool     = "true or false"
	mostSeconds     = 86400
	mostDraining    = 3600
	mostUnhealthy   = 20
	mostPort        = 65535
	mostPriority    = 20000
	lastFrontend    = 64999
	firewallType    = "Microsoft.Network/applicationGatewayWebApplicationFirewallPolicies"
	allowedOnGate   = "the name of one that the application gateway has"
	allowedSeconds  = "a whole number of seconds from 1 to 86400"
	allowedGatePath = "a path that begins with /, without blanks, ? and #"
	allowedHost     = "a domain name or an IP address, without port"
)

// Annotations of Ingresses: backends.
var (
	BackendPath = Annotation[string]{
		Name: gateway + "backend-path-prefix", parse: parseGatePath, Allowed: allowedGatePath,
		Doc: "Path that backends get instead of the part of the request's path that the rule matched. Probes use it, too.",
	}
	BackendHost = Annotation[string]{
		Name: gateway + "backend-hostname", parse: parseHost, Allowed: allowedHost,
		Doc: "Host name that backends and probes get instead of the request's.",
	}
	BackendProtocol = Annotation[string]{
		Name: gateway + "backend-protocol", parse: parseWordOf("http", "https"), Allowed: "http or https",
		Doc: "Protocol of the backends. Without it, it is https for port 443 of a Service, else http.",
	}
	BackendRoots = Annotation[[]string]{
		Name: gateway + "appgw-trusted-root-certificate", parse: parseList,
		Allowed: "names of trusted root certificates of the application gateway, separated by commas",
		Doc:     "Certificates that sign those of https backends. Without backend-hostname, a backend's certificate has its address.",
	}
	RequestTimeout = Annotation[int32]{
		Name: gateway + "request-timeout", Default: 30, parse: parseNumber(1, mostSeconds), Allowed: allowedSeconds,
		Doc: "Seconds until the gateway gives up waiting for a backend's answer.",
	}
	Draining = Annotation[bool]{
		Name: gateway + "connection-draining", parse: parseBool, Allowed: allowedBool,
		Doc: "Lets connections to a removed backend end by themselves.",
	}
	DrainingTimeout = Annotation[int32]{
		Name: gateway + "connection-draining-timeout", Default: 30, parse: parseNumber(1, mostDraining),
		Allowed: "a whole number of seconds from 1 to 3600",
		Doc:     "Seconds that connections to a removed backend may last, if connection-draining is true.",
	}
	Affinity = Annotation[bool]{
		Name: gateway + "cookie-based-affinity", parse: parseBool, Allowed: allowedBool,
		Doc: "Sends all requests of a client to the same backend, which a cookie names.",
	}
	AffinityOwnName = Annotation[bool]{
		Name: gateway + "cookie-based-affinity-distinct-name", parse: parseBool, Allowed: allowedBool,
		Doc: "Gives the cookie of each Service a name of its own, if cookie-based-affinity is true.",
	}
)

// Annotations of Ingresses: listeners.
var (
	SSLRedirect = Annotation[bool]{
		Name: gateway + "ssl-redirect", parse: parseBool, Allowed: allowedBool,
		Doc: "Redirects requests of port 80 to the HTTPS listener. An Ingress without a certificate is not served then.",
	}
	SSLCertificate = Annotation[string]{
		Name: gateway + "appgw-ssl-certificate", parse: parseWord, Allowed: allowedOnGate,
		Doc: "Certificate of the application gateway for the Ingress, if spec.tls has none for a host.",
	}
	SSLProfile = Annotation[string]{
		Name: gateway + "appgw-ssl-profile", parse: parseWord, Allowed: allowedOnGate,
		Doc: "TLS profile of the application gateway for the HTTPS listeners of the Ingress.",
	}
	FrontendPort = Annotation[int32]{
		Name: gateway + "override-frontend-port", parse: parseNumber(1, lastFrontend), Allowed: "a port number from 1 to 64999",
		Doc: "Port of the listeners, instead of 80 for HTTP and 443 for HTTPS. With a certificate, it is the port of HTTPS.",
	}
	PrivateIP = Annotation[bool]{
		Name: gateway + "use-private-ip", parse: parseBool, Allowed: allowedBool,
		Doc: "Serves the Ingress at the private address of the application gateway instead of the public one.",
	}
	MoreHosts = Annotation[[]string]{
		Name: gateway + "hostname-extension", parse: parseHosts, Allowed: "host names, separated by commas; * and ? are wildcards",
		Doc: "More hosts for each rule of the Ingress that has a host.",
	}
	FirewallPolicy = Annotation[string]{
		Name: gateway + "waf-policy-for-path", parse: parseFirewall, Allowed: "the id of a firewall policy: /subscriptions/.../" +
			"applicationGatewayWebApplicationFirewallPolicies/NAME",
		Doc: "Web application firewall policy for the paths of the Ingress. " +
			"Where a rule has a path for all requests, it is the listener's policy.",
	}
	RulePriority = Annotation[int32]{
		Name: gateway + "rule-priority", parse: parseNumber(1, mostPriority), Allowed: "a whole number from 1 to 20000",
		Doc: "Priority of the Ingress' listeners among those of the gateway; lower numbers go first. " +
			"A number that is taken becomes the next free one.",
	}
	RewriteSet = Annotation[string]{
		Name: gateway + "rewrite-rule-set", parse: parseWord, Allowed: allowedOnGate,
		Doc: "Rewrite rule set of the application gateway for all paths of the Ingress.",
	}
	RewriteObject = Annotation[string]{
		Name: gateway + "rewrite-rule-set-custom-resource", parse: parseWord,
		Allowed: "the name of an AzureApplicationGatewayRewrite in the namespace of the Ingress",
		Doc:     "Rewrite rules for all paths of the Ingress. It excludes rewrite-rule-set.",
	}
)

// Annotations of Ingresses: health probes. Without them, the readiness probe of the pods counts, or else their liveness probe.
var (
	GateProbeHost = Annotation[string]{
		Name: gateway + "health-probe-hostname", parse: parseHost, Allowed: allowedHost,
		Doc: "Host name in health probes.",
	}
	GateProbePort = Annotation[int32]{
		Name: gateway + "health-probe-port", parse: parseNumber(1, mostPort), Allowed: "a port number from 1 to 65535",
		Doc: "Port of health probes.",
	}
	GateProbePath = Annotation[string]{
		Name: gateway + "health-probe-path", parse: parseGatePath, Allowed: allowedGatePath,
		Doc: "Path of health probes.",
	}
	GateProbeCodes = Annotation[[]string]{
		Name: gateway + "health-probe-status-codes", parse: parseCodes,
		Allowed: "HTTP status codes or ranges such as 200-399, separated by commas",
		Doc:     "Status codes of healthy backends, instead of 200-399.",
	}
	GateProbeInterval = Annotation[int32]{
		Name: gateway + "health-probe-interval", parse: parseNumber(1, mostSeconds), Allowed: allowedSeconds,
		Doc: "Seconds from one health probe to the next.",
	}
	GateProbeTimeout = Annotation[int32]{
		Name: gateway + "health-probe-timeout", parse: parseNumber(1, mostSeconds), Allowed: allowedSeconds,
		Doc: "Seconds after which a probe without an answer has failed. It is at most the interval.",
	}
	GateProbeThreshold = Annotation[int32]{
		Name: gateway + "health-probe-unhealthy-threshold", parse: parseNumber(1, mostUnhealthy), Allowed: "a whole number from 1 to 20",
		Doc: "Failed probes after which a backend is unhealthy.",
	}
)

// gatewayGroups are all annotations of Ingresses.
var gatewayGroups = []group{
	{"Backends", []annotation{
		BackendPath, BackendHost, BackendProtocol, BackendRoots, RequestTimeout, Draining, DrainingTimeout, Affinity, AffinityOwnName,
	}},
	{"Listeners", []annotation{
		SSLRedirect, SSLCertificate, SSLProfile, FrontendPort, PrivateIP, MoreHosts, FirewallPolicy, RulePriority,
		RewriteSet, RewriteObject,
	}},
	{"Health probes", []annotation{
		GateProbeHost, GateProbePort, GateProbePath, GateProbeCodes, GateProbeInterval, GateProbeTimeout, GateProbeThreshold,
	}},
}

// gatewayNames are the names of all annotations of Ingresses.
var gatewayNames = func() (names []string) {
	for _, g := range gatewayGroups {
		for _, k := range g.keys {
			names = append(names, k.entry().Name)
		}
	}
	return names
}()

// GatewayWarnings returns what is wrong with the annotations of an Ingress: values that are not allowed, in the order of the reference,
// and names with the prefix that are unknown, which have no effect.
func GatewayWarnings(annotations map[string]string) []error {
	var all []error
	for _, g := range gatewayGroups {
		for _, k := range g.keys {
			for _, wrong := range k.warnings(annotations, nil) {
				all = append(all, wrong)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) {
		if !strings.HasPrefix(strings.ToLower(name), gateway) || slices.Contains(gatewayNames, name) {
			continue
		}
		text := name + ": there is no such annotation"
		if nearest := nearestTo(name, gatewayNames); nearest != "" {
			text += "; do you mean " + nearest + "?"
		}
		all = append(all, errors.New(text))
	}
	return all
}

func parseBool(text string) (bool, error) {
	is, err := strconv.ParseBool(strings.TrimSpace(text))
	if err != nil {
		return false, errors.New("not a truth value")
	}
	return is, nil
}

// parseWordOf returns one of some words, in lower case.
func parseWordOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if word := strings.ToLower(strings.TrimSpace(text)); slices.Contains(words, word) {
			return word, nil
		}
		return "", errors.New("another word")
	}
}

func parseGatePath(text string) (string, error) {
	path := strings.TrimSpace(text)
	switch {
	case path == "":
		return "", nil
	case !strings.HasPrefix(path, "/"):
		return "", errors.New("it does not begin with /")
	case strings.ContainsAny(path, " \t\r\n?#"):
		return "", errors.New("it has a blank, a ? or a #")
	}
	return path, nil
}

// hostName matches host names as listeners and probes take them; underscores occur in names that exist.
var hostName = regexp.MustCompile(`^(?i:[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.(?i:[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?))*$`)

const longestHost = 255

func parseHost(text string) (string, error) {
	host := strings.TrimSpace(text)
	if host != "" && (len(host) > longestHost || !hostName.MatchString(host)) {
		return "", errors.New("no host name")
	}
	return host, nil
}

func parseHosts(text string) ([]string, error) {
	hosts, _ := parseList(strings.ToLower(text))
	for _, host := range hosts {
		if len(host) > longestHost || !hostName.MatchString(strings.NewReplacer("*", "a", "?", "a").Replace(host)) {
			return nil, fmt.Errorf("%q is no host name", host)
		}
	}
	return hosts, nil
}

func parseFirewall(text string) (string, error) {
	text = strings.TrimSpace(text)
	if id, err := azure.ParseID(text); text != "" && (err != nil || !id.Is(firewallType)) {
		return "", errors.New("no id of a firewall policy")
	}
	return text, nil
}

var statusCodes = regexp.MustCompile(`^[1-5][0-9]{2}(-[1-5][0-9]{2})?$`)

func parseCodes(text string) ([]string, error) {
	codes, _ := parseList(text)
	for i, code := range codes {
		code = strings.ReplaceAll(code, " ", "")
		from, to, isRange := strings.Cut(code, "-")
		if !statusCodes.MatchString(code) || isRange && from > to {
			return nil, fmt.Errorf("%q is no status code", code)
		}
		codes[i] = code
	}
	return codes, nil
}

// gatewayIntroduction is the text before the tables of [GatewayReference].
const gatewayIntroduction = `<!-- Generated from internal/key by "go test ./internal/key -update". -->
# Annotations of Ingresses

This page lists the annotations of Ingresses that the application-gateway-controller reads. They are those of the Application Gateway
Ingress Controller (AGIC).

A value that is not allowed causes an event with the reason InvalidAnnotation on the Ingress, and the default is used. So does an unknown
name with the prefix. Other Ingresses are not affected.

Each name in the tables starts with ` + "`" + gateway + "`" + `, which is left out.
`

// GatewayReference returns the content of docs/resources/ingress/annotations.md.
func GatewayReference() string {
	var b strings.Builder
	b.WriteString(gatewayIntroduction)
	for _, g := range gatewayGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| annotation | what it does | allowed | default |\n|---|---|---|---|\n", g.title)
		for _, k := range g.keys {
			e := k.entry()
			if e.Default == "0" {
				e.Default = ""
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimPrefix(e.Name, gateway), e.Doc, e.Allowed, inDefault(e.Default))
		}
	}
	return b.String()
}
