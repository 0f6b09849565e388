package key

const service = "service.beta.kubernetes.io/"

// Annotations of Services of type LoadBalancer: forwarding.
var (
	IdleTimeout = Annotation[int32]{
		Name: service + "azure-load-balancer-tcp-idle-timeout", Default: 4, parse: parseNumber(4, 100),
		Doc:     "Minutes after which an idle connection is dropped, for all rules of the Service.",
		Allowed: "a whole number of minutes from 4 to 100",
	}
	DisableTCPReset = Annotation[bool]{
		Name: service + "azure-load-balancer-disable-tcp-reset", parse: parseSwitch, warnText: warnSwitch,
		Doc:     "Drops idle TCP connections without sending a reset.",
		Allowed: allowedSwitch,
	}
	NoRule = PortAnnotation[bool]{
		Name: service + "port_PORT_no_lb_rule", parse: parseSwitch, warnText: warnSwitch,
		Doc:     "Creates no load balancing rule for the port. The security group still allows it.",
		Allowed: allowedSwitch,
	}
	NoProbe = PortAnnotation[bool]{
		Name: service + "port_PORT_no_probe_rule", parse: parseSwitch, warnText: warnSwitch,
		Doc:     "Creates no health probe for the port: all nodes get its packets.",
		Allowed: allowedSwitch,
	}
)

// Annotations of Services: health probes.
var (
	ProbeProtocol = Annotation[string]{
		Name: service + "azure-load-balancer-health-probe-protocol", Default: "tcp", parse: parseWord, warnText: warnProtocol,
		Doc:     "Protocol of the health probes. The annotation of a port and its appProtocol take precedence.",
		Allowed: allowedProtocol,
	}
	ProbePath = Annotation[string]{
		Name: service + "azure-load-balancer-health-probe-request-path", Default: "/", parse: parseWord, warn: warnPath,
		Doc:     "Path that HTTP and HTTPS probes request.",
		Allowed: allowedPath,
	}
	ProbeInterval = Annotation[int32]{
		Name: service + "azure-load-balancer-health-probe-interval", Default: 5, parse: parseNumber(5, 119),
		Doc:     "Seconds between probes. Interval times number of probes must be less than 120.",
		Allowed: allowedInterval,
	}
	ProbeCount = Annotation[int32]{
		Name: service + "azure-load-balancer-health-probe-num-of-probe", Default: 2, parse: parseNumber(2, 119),
		Doc:     "Number of consecutive probes that change a node's state.",
		Allowed: allowedCount,
	}
	PortProbeProtocol = PortAnnotation[string]{
		Name: service + "port_PORT_health-probe_protocol", parse: parseWord, warnText: warnProtocol,
		Doc:     "Protocol of the port's health probe.",
		Allowed: allowedProtocol,
	}
	PortProbePort = PortAnnotation[string]{
		Name: service + "port_PORT_health-probe_port", parse: parseWord,
		Doc:     "Port that is probed instead of the port's node port.",
		Allowed: "the name or number of a port of the Service, whose node port is then probed, or another port number",
	}
	PortProbePath = PortAnnotation[string]{
		Name: service + "port_PORT_health-probe_request-path", parse: parseWord, warn: warnPath,
		Doc:     "Path that the port's HTTP or HTTPS probe requests.",
		Allowed: allowedPath,
	}
	PortProbeInterval = PortAnnotation[int32]{
		Name: service + "port_PORT_health-probe_interval", parse: parseNumber(5, 119),
		Doc:     "Seconds between probes of the port.",
		Allowed: allowedInterval,
	}
	PortProbeCount = PortAnnotation[int32]{
		Name: service + "port_PORT_health-probe_num-of-probe", parse: parseNumber(2, 119),
		Doc:     "Number of consecutive probes of the port that change a node's state.",
		Allowed: allowedCount,
	}
)

// Annotations of Services: access.
var (
	AllowedIPRanges = Annotation[[]string]{
		Name: service + "azure-allowed-ip-ranges", parse: parseList,
		Doc: "Address ranges that may connect; other addresses of the Internet may not. " +
			"Cannot be combined with spec.loadBalancerSourceRanges.",
		Allowed: allowedRanges,
	}
	SourceRanges = Annotation[[]string]{
		Name: service + "load-balancer-source-ranges", parse: parseList,
		Doc:     "Like azure-allowed-ip-ranges; the ranges of both apply.",
		Allowed: allowedRanges,
	}
	AllowedServiceTags = Annotation[[]string]{
		Name: service + "azure-allowed-service-tags", parse: parseList,
		Doc:     "Azure service tags that may connect, in addition to the ranges.",
		Allowed: "service tags, separated by commas",
	}
	DenyAllElse = Annotation[bool]{
		Name: service + "azure-deny-all-except-load-balancer-source-ranges", parse: parseSwitch, warnText: warnSwitch,
		Doc: "If ranges are set, denies all other sources, including the virtual network; but not at an internal IPv6 address " +
			"unless floating IP is disabled.",
		Allowed: allowedSwitch,
	}
	DisableSecurityRules = Annotation[bool]{
		Name: service + "azure-disable-load-balancer-nsg-rule", parse: parseSwitch, warnText: warnSwitch,
		Doc:     "Creates no security group rule for the Service and deletes existing ones.",
		Allowed: allowedSwitch,
	}
)

// Tags of a public IP with the Services that use it and their cluster. Only controllers set them.
const (
	TagServices = "k8s-azure-service"
	TagCluster  = "k8s-azure-cluster-name"
)

// PublicIPTags is an annotation of Services.
var PublicIPTags = Annotation[Pairs]{
	Name: service + "azure-pip-tags", parse: parsePairs(TagServices, TagCluster),
	Doc: "Tags of the Service's public IP. They override tags of the cloud configuration.",
	Allowed: `name=value pairs, separated by commas; names of at most 512 characters without < > % & \ ? / other than ` + TagServices +
		" and " + TagCluster + ", values of at most 256",
}

const (
	allowedSwitch   = "true or false"
	allowedProtocol = "tcp, http or https"
	allowedInterval = "a whole number of seconds, at least 5"
	allowedPath     = "a path that begins with / and has no blanks and no #"
	allowedCount    = "a whole number, at least 2"
	allowedRanges   = "address ranges like 10.0.0.0/8, separated by commas"
)

// Group is a section of the reference.
type Group struct {
	Title   string
	Entries []Entry
}

// annotation is an annotation key with any type of value.
type annotation interface {
	entry() Entry
	warnings(annotations map[string]string, ports []int32) []*Error
}

type group struct {
	title string
	keys  []annotation
}

// serviceGroups are all annotations of Services.
var serviceGroups = []group{
	{"Load balancer and network", []annotation{Internal, InternalSubnet, Balancers, PublicIPGroup}},
	{"Addresses", addressKeys()},
	{"Forwarding", []annotation{DisableFloatingIP, HAPorts, IdleTimeout, DisableTCPReset, NoRule, NoProbe}},
	{"Health probes", []annotation{
		ProbeProtocol, ProbePath, ProbeInterval, ProbeCount, PortProbeProtocol, PortProbePort, PortProbePath, PortProbeInterval,
		PortProbeCount,
	}},
	{"Access", []annotation{AllowedIPRanges, SourceRanges, AllowedServiceTags, DenyAllElse, DisableSecurityRules}},
	{"Private link service", linkKeys()},
}

// ServiceGroups returns all annotations of Services, for the reference.
func ServiceGroups() []Group {
	var all []Group
	for _, g := range serviceGroups {
		one := Group{Title: g.title}
		for _, k := range g.keys {
			one.Entries = append(one.Entries, k.entry())
		}
		all = append(all, one)
	}
	return all
}

// ServiceEntries returns the annotations of all groups.
func ServiceEntries() []Entry {
	var all []Entry
	for _, g := range ServiceGroups() {
		all = append(all, g.Entries...)
	}
	return all
}
