package key

const service = "service.beta.kubernetes.io/"

// Of Services of type LoadBalancer: how packets are forwarded.
var (
	IdleTimeout = Annotation[int32]{
		Name: service + "azure-load-balancer-tcp-idle-timeout", Default: 4, parse: parseNumber(4, 100),
		Doc:     "Minutes after which an idle connection is dropped, on all rules of the Service.",
		Allowed: "a whole number of minutes from 4 to 100",
	}
	DisableTCPReset = Annotation[bool]{
		Name: service + "azure-load-balancer-disable-tcp-reset", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Drops an idle TCP connection without telling its two ends.",
		Allowed: allowedSwitch,
	}
	NoRule = PortAnnotation[bool]{
		Name: service + "port_PORT_no_lb_rule", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Leaves the port out of the load balancer. The security group still lets it in.",
		Allowed: allowedSwitch,
	}
	NoProbe = PortAnnotation[bool]{
		Name: service + "port_PORT_no_probe_rule", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Forwards the port to all nodes without asking whether they are well.",
		Allowed: allowedSwitch,
	}
)

// Of Services: how the load balancer finds out which nodes are well.
var (
	ProbeProtocol = Annotation[string]{
		Name: service + "azure-load-balancer-health-probe-protocol", Default: "tcp", parse: parseWord, doubtText: doubtProtocol,
		Doc:     "Protocol of the health probes. A port's own key and its appProtocol come first.",
		Allowed: allowedProtocol,
	}
	ProbePath = Annotation[string]{
		Name: service + "azure-load-balancer-health-probe-request-path", Default: "/", parse: parseWord, doubt: doubtPath,
		Doc:     "Path that HTTP and HTTPS probes ask for.",
		Allowed: allowedPath,
	}
	ProbeInterval = Annotation[int32]{
		Name: service + "azure-load-balancer-health-probe-interval", Default: 5, parse: parseNumber(5, 119),
		Doc:     "Seconds from probe to probe. Interval times number must be less than 120.",
		Allowed: allowedInterval,
	}
	ProbeCount = Annotation[int32]{
		Name: service + "azure-load-balancer-health-probe-num-of-probe", Default: 2, parse: parseNumber(2, 119),
		Doc:     "How many probes in a row change a node's state.",
		Allowed: allowedCount,
	}
	PortProbeProtocol = PortAnnotation[string]{
		Name: service + "port_PORT_health-probe_protocol", parse: parseWord, doubtText: doubtProtocol,
		Doc:     "Protocol of the port's health probe.",
		Allowed: allowedProtocol,
	}
	PortProbePort = PortAnnotation[string]{
		Name: service + "port_PORT_health-probe_port", parse: parseWord,
		Doc:     "Port that is probed instead of the port's own node port.",
		Allowed: "the name or number of a port of the Service, whose node port is then probed, or another port number",
	}
	PortProbePath = PortAnnotation[string]{
		Name: service + "port_PORT_health-probe_request-path", parse: parseWord, doubt: doubtPath,
		Doc:     "Path that the port's HTTP or HTTPS probe asks for.",
		Allowed: allowedPath,
	}
	PortProbeInterval = PortAnnotation[int32]{
		Name: service + "port_PORT_health-probe_interval", parse: parseNumber(5, 119),
		Doc:     "Seconds from probe to probe of the port.",
		Allowed: allowedInterval,
	}
	PortProbeCount = PortAnnotation[int32]{
		Name: service + "port_PORT_health-probe_num-of-probe", parse: parseNumber(2, 119),
		Doc:     "How many probes of the port in a row change a node's state.",
		Allowed: allowedCount,
	}
)

// Of Services: who is let in.
var (
	AllowedIPRanges = Annotation[[]string]{
		Name: service + "azure-allowed-ip-ranges", parse: parseList,
		Doc:     "Address ranges that may connect; nobody else from the Internet may. Not together with spec.loadBalancerSourceRanges.",
		Allowed: allowedRanges,
	}
	SourceRanges = Annotation[[]string]{
		Name: service + "load-balancer-source-ranges", parse: parseList,
		Doc:     "Like azure-allowed-ip-ranges; both are taken together.",
		Allowed: allowedRanges,
	}
	AllowedServiceTags = Annotation[[]string]{
		Name: service + "azure-allowed-service-tags", parse: parseList,
		Doc:     "Azure service tags that may connect, beside the ranges.",
		Allowed: "service tags between commas",
	}
	DenyAllElse = Annotation[bool]{
		Name: service + "azure-deny-all-except-load-balancer-source-ranges", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Where ranges are given, keeps everything else out, the virtual network too; but not at an internal IPv6 address, unless floating IP is off.",
		Allowed: allowedSwitch,
	}
	DisableSecurityRules = Annotation[bool]{
		Name: service + "azure-disable-load-balancer-nsg-rule", parse: parseSwitch, doubtText: doubtSwitch,
		Doc:     "Writes no security group rule for the Service and removes those that are there.",
		Allowed: allowedSwitch,
	}
)

// Tags by which a public IP says whom it serves. Nobody else sets them.
const (
	TagServices = "k8s-azure-service"
	TagCluster  = "k8s-azure-cluster-name"
)

// PublicIPTags is of Services: tags of their public IP.
var PublicIPTags = Annotation[Pairs]{
	Name: service + "azure-pip-tags", parse: parsePairs(TagServices, TagCluster),
	Doc:     "Tags of the Service's public IP, over those of the cloud configuration.",
	Allowed: `name=value pairs between commas, names of at most 512 characters without < > % & \ ? / other than ` + TagServices + " and " + TagCluster + ", values of at most 256",
}

const (
	allowedSwitch   = "true or false"
	allowedProtocol = "tcp, http or https"
	allowedInterval = "a whole number of seconds, at least 5"
	allowedPath     = "a path that begins with / and has no blanks and no #"
	allowedCount    = "a whole number, at least 2"
	allowedRanges   = "address ranges like 10.0.0.0/8 between commas"
)

// Group is entries of the reference that belong together.
type Group struct {
	Title   string
	Entries []Entry
}

// annotation is a key, whatever its values are.
type annotation interface {
	entry() Entry
	doubts(annotations map[string]string, ports []int32) []*Error
}

type group struct {
	title string
	keys  []annotation
}

// serviceGroups are the keys of Services that kaz serves.
var serviceGroups = []group{
	{"Where the address is", []annotation{Internal, InternalSubnet, Balancers, PublicIPGroup}},
	{"Which address", addressKeys()},
	{"How packets are forwarded", []annotation{DisableFloatingIP, HAPorts, IdleTimeout, DisableTCPReset, NoRule, NoProbe}},
	{"Which nodes are well", []annotation{
		ProbeProtocol, ProbePath, ProbeInterval, ProbeCount, PortProbeProtocol, PortProbePort, PortProbePath, PortProbeInterval, PortProbeCount,
	}},
	{"Who is let in", []annotation{AllowedIPRanges, SourceRanges, AllowedServiceTags, DenyAllElse, DisableSecurityRules}},
	{"Private link service", linkKeys()},
}

// ServiceGroups are the keys of Services that kaz serves, for the reference.
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

// ServiceEntries are the keys of all groups.
func ServiceEntries() []Entry {
	var all []Entry
	for _, g := range ServiceGroups() {
		all = append(all, g.Entries...)
	}
	return all
}
