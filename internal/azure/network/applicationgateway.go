package network

import "kaz/internal/azure"

// ApplicationGateways is the full type of application gateways.
const ApplicationGateways = "Microsoft.Network/applicationGateways"

// Values of fields of application gateways.
const (
	GatewayHTTP  = "Http"
	GatewayHTTPS = "Https"
	GatewayTCP   = "Tcp"
	GatewayTLS   = "Tls"

	BasicRule = "Basic"
	PathRule  = "PathBasedRouting"

	PermanentRedirect = "Permanent"
	FoundRedirect     = "Found"
	SeeOtherRedirect  = "SeeOther"
	TemporaryRedirect = "Temporary"

	RoundRobin = "RoundRobin"

	SwitchedOn  = "Enabled"
	SwitchedOff = "Disabled"

	GatewayStopped  = "Stopped"
	GatewayStopping = "Stopping"
)

// ApplicationGateway is the properties of an application gateway: one document for all that it serves. The order of
// path rules says which of them matches first.
type ApplicationGateway struct {
	SKU               *azure.SKU                         `json:"sku,omitempty" azure:"read"`
	Frontends         []azure.Child[GatewayFrontend]     `json:"frontendIPConfigurations,omitempty" azure:"read"`
	SSLProfiles       []azure.Child[GatewaySSLProfile]   `json:"sslProfiles,omitempty" azure:"read"`
	OperationalState  string                             `json:"operationalState,omitempty" azure:"read"`
	ProvisioningState string                             `json:"provisioningState,omitempty" azure:"read"`
	Ports             []azure.Child[GatewayPort]         `json:"frontendPorts,omitempty"`
	Certificates      []azure.Child[GatewayCertificate]  `json:"sslCertificates,omitempty"`
	Pools             []azure.Child[GatewayPool]         `json:"backendAddressPools,omitempty"`
	Settings          []azure.Child[GatewaySettings]     `json:"backendHttpSettingsCollection,omitempty"`
	Probes            []azure.Child[GatewayProbe]        `json:"probes,omitempty"`
	Listeners         []azure.Child[GatewayListener]     `json:"httpListeners,omitempty"`
	PathMaps          []azure.Child[GatewayPathMap]      `json:"urlPathMaps,omitempty"`
	Rules             []azure.Child[GatewayRule]         `json:"requestRoutingRules,omitempty"`
	Redirects         []azure.Child[GatewayRedirect]     `json:"redirectConfigurations,omitempty"`
	RewriteSets       []azure.Child[GatewayRewriteSet]   `json:"rewriteRuleSets,omitempty"`
	TrustedRoots      []azure.Child[GatewayTrustedRoot]  `json:"trustedRootCertificates,omitempty"`
	Distributions     []azure.Child[GatewayDistribution] `json:"loadDistributionPolicies,omitempty"`

	// Connections of TCP and TLS have children of their own types. Their rules share the priorities of the others.
	StreamListeners []azure.Child[GatewayStreamListener] `json:"listeners,omitempty"`
	StreamSettings  []azure.Child[GatewayStreamSettings] `json:"backendSettingsCollection,omitempty"`
	StreamRules     []azure.Child[GatewayStreamRule]     `json:"routingRules,omitempty"`
}

// GatewayStreamListener accepts connections of TCP or TLS at a port: for some server names of TLS, or for all.
type GatewayStreamListener struct {
	Frontend    *azure.Reference `json:"frontendIPConfiguration" azure:"required"`
	Port        *azure.Reference `json:"frontendPort" azure:"required"`
	Protocol    string           `json:"protocol" azure:"fold"`
	HostNames   []string         `json:"hostNames,omitempty" azure:"set"`
	Certificate *azure.Reference `json:"sslCertificate,omitempty" azure:"exact"`
}

// GatewayStreamSettings say how the gateway connects to backends for clients of TCP or TLS.
type GatewayStreamSettings struct {
	Port         int32             `json:"port"`
	Protocol     string            `json:"protocol" azure:"fold"`
	Timeout      int32             `json:"timeout"` // seconds
	HostName     string            `json:"hostName,omitempty" azure:"exact"`
	Probe        *azure.Reference  `json:"probe,omitempty" azure:"exact"`
	TrustedRoots []azure.Reference `json:"trustedRootCertificates,omitempty"`
}

// GatewayStreamRule connects a listener of TCP or TLS with backends. Lower priorities go first.
type GatewayStreamRule struct {
	RuleType string           `json:"ruleType" azure:"fold"`
	Priority int32            `json:"priority"`
	Listener *azure.Reference `json:"listener" azure:"required"`
	Pool     *azure.Reference `json:"backendAddressPool,omitempty" azure:"exact"`
	Settings *azure.Reference `json:"backendSettings,omitempty" azure:"exact"`
}

// GatewayFrontend is an address that clients reach: a public IP, or a private address in a subnet.
type GatewayFrontend struct {
	PublicIPAddress  *azure.Reference `json:"publicIPAddress,omitempty"`
	PrivateIPAddress string           `json:"privateIPAddress,omitempty"`
	Subnet           *azure.Reference `json:"subnet,omitempty"`
}

// GatewaySSLProfile is a profile of TLS settings. Only its name is read.
type GatewaySSLProfile struct{}

// GatewayTrustedRoot is a certificate that signs those of backends. One that is written without data keeps what it has.
type GatewayTrustedRoot struct {
	Data string `json:"data,omitempty"` // DER in base64
}

// GatewayPort is a port that listeners use.
type GatewayPort struct {
	Port int32 `json:"port"`
}

// GatewayCertificate is a certificate with its key. Azure never shows data and password; a certificate that is written
// without data keeps what it has.
type GatewayCertificate struct {
	Data     string `json:"data,omitempty"`
	Password string `json:"password,omitempty"`
}

// GatewayPool is a list of backends.
type GatewayPool struct {
	Addresses []GatewayAddress `json:"backendAddresses" azure:"key=ipAddress+fqdn"`
}

// GatewayAddress is one backend: an IP address or a domain name.
type GatewayAddress struct {
	IPAddress string `json:"ipAddress,omitempty"`
	FQDN      string `json:"fqdn,omitempty" azure:"fold"`
}

// GatewaySettings say how the gateway speaks to backends.
type GatewaySettings struct {
	Port                int32             `json:"port"`
	Protocol            string            `json:"protocol" azure:"fold"`
	CookieBasedAffinity string            `json:"cookieBasedAffinity" azure:"fold"`
	AffinityCookieName  string            `json:"affinityCookieName,omitempty" azure:"exact"`
	RequestTimeout      int32             `json:"requestTimeout"`
	Path                string            `json:"path,omitempty" azure:"exact"`
	HostName            string            `json:"hostName,omitempty" azure:"exact"`
	PickHostName        bool              `json:"pickHostNameFromBackendAddress"`
	Draining            *GatewayDraining  `json:"connectionDraining,omitempty" azure:"exact"`
	Probe               *azure.Reference  `json:"probe,omitempty" azure:"exact"`
	TrustedRoots        []azure.Reference `json:"trustedRootCertificates,omitempty"`
	// ServerName is what the gateway asks backends for by SNI, and checks their certificates for.
	ServerName string `json:"sniName,omitempty" azure:"exact"`
}

// GatewayDraining says how long connections to a removed backend may last.
type GatewayDraining struct {
	Enabled bool  `json:"enabled"`
	Timeout int32 `json:"drainTimeoutInSec"` // seconds
}

// GatewayProbe is a health probe.
type GatewayProbe struct {
	Protocol           string             `json:"protocol" azure:"fold"`
	Host               string             `json:"host,omitempty" azure:"exact"`
	PickHostName       bool               `json:"pickHostNameFromBackendHttpSettings"`
	Path               string             `json:"path,omitempty" azure:"exact"` // none for TCP and TLS
	Port               int32              `json:"port,omitempty" azure:"exact"`
	Interval           int32              `json:"interval"` // seconds
	Timeout            int32              `json:"timeout"`  // seconds
	UnhealthyThreshold int32              `json:"unhealthyThreshold"`
	Match              *GatewayProbeMatch `json:"match,omitempty"`
}

// GatewayProbeMatch says which answers are healthy.
type GatewayProbeMatch struct {
	StatusCodes []string `json:"statusCodes,omitempty"`
}

// GatewayListener accepts requests at a port for some hosts, or for all.
type GatewayListener struct {
	Frontend       *azure.Reference `json:"frontendIPConfiguration" azure:"required"`
	Port           *azure.Reference `json:"frontendPort" azure:"required"`
	Protocol       string           `json:"protocol" azure:"fold"`
	HostName       string           `json:"hostName,omitempty" azure:"exact"`
	HostNames      []string         `json:"hostNames,omitempty" azure:"set"`
	Certificate    *azure.Reference `json:"sslCertificate,omitempty" azure:"exact"`
	SSLProfile     *azure.Reference `json:"sslProfile,omitempty" azure:"exact"`
	FirewallPolicy *azure.Reference `json:"firewallPolicy,omitempty" azure:"exact"`
}

// GatewayPathMap leads paths to backends.
type GatewayPathMap struct {
	DefaultPool         *azure.Reference               `json:"defaultBackendAddressPool,omitempty" azure:"exact"`
	DefaultSettings     *azure.Reference               `json:"defaultBackendHttpSettings,omitempty" azure:"exact"`
	DefaultRedirect     *azure.Reference               `json:"defaultRedirectConfiguration,omitempty" azure:"exact"`
	DefaultRewriteSet   *azure.Reference               `json:"defaultRewriteRuleSet,omitempty" azure:"exact"`
	DefaultDistribution *azure.Reference               `json:"defaultLoadDistributionPolicy,omitempty" azure:"exact"`
	PathRules           []azure.Child[GatewayPathRule] `json:"pathRules" azure:"ordered"`
}

// GatewayPathRule leads requests with one of its paths to a backend, or redirects them.
type GatewayPathRule struct {
	Paths          []string         `json:"paths"`
	Pool           *azure.Reference `json:"backendAddressPool,omitempty" azure:"exact"`
	Settings       *azure.Reference `json:"backendHttpSettings,omitempty" azure:"exact"`
	Redirect       *azure.Reference `json:"redirectConfiguration,omitempty" azure:"exact"`
	RewriteSet     *azure.Reference `json:"rewriteRuleSet,omitempty" azure:"exact"`
	Distribution   *azure.Reference `json:"loadDistributionPolicy,omitempty" azure:"exact"`
	FirewallPolicy *azure.Reference `json:"firewallPolicy,omitempty" azure:"exact"`
}

// GatewayRule connects a listener with what serves its requests. Lower priorities go first.
type GatewayRule struct {
	RuleType     string           `json:"ruleType" azure:"fold"`
	Priority     int32            `json:"priority"`
	Listener     *azure.Reference `json:"httpListener" azure:"required"`
	Pool         *azure.Reference `json:"backendAddressPool,omitempty" azure:"exact"`
	Settings     *azure.Reference `json:"backendHttpSettings,omitempty" azure:"exact"`
	Redirect     *azure.Reference `json:"redirectConfiguration,omitempty" azure:"exact"`
	PathMap      *azure.Reference `json:"urlPathMap,omitempty" azure:"exact"`
	RewriteSet   *azure.Reference `json:"rewriteRuleSet,omitempty" azure:"exact"`
	Distribution *azure.Reference `json:"loadDistributionPolicy,omitempty" azure:"exact"`
}

// GatewayDistribution shares requests among pools.
type GatewayDistribution struct {
	Algorithm string                                   `json:"loadDistributionAlgorithm" azure:"fold"`
	Targets   []azure.Child[GatewayDistributionTarget] `json:"loadDistributionTargets"`
}

// GatewayDistributionTarget is a pool with the weight of each of its members.
type GatewayDistributionTarget struct {
	Weight int32            `json:"weightPerServer"` // 1 to 100
	Pool   *azure.Reference `json:"backendAddressPool" azure:"required"`
}

// GatewayRedirect sends clients to a listener or to a URL.
type GatewayRedirect struct {
	Type       string           `json:"redirectType" azure:"fold"`
	Listener   *azure.Reference `json:"targetListener,omitempty" azure:"exact"`
	URL        string           `json:"targetUrl,omitempty" azure:"exact"`
	KeepsPath  bool             `json:"includePath"`
	KeepsQuery bool             `json:"includeQueryString"`
}

// GatewayRewriteSet is a list of rules that change requests and answers.
type GatewayRewriteSet struct {
	Rules []GatewayRewriteRule `json:"rewriteRules" azure:"key=name"`
}

// GatewayRewriteRule changes what its conditions match. Lower sequences go first.
type GatewayRewriteRule struct {
	Name       string                    `json:"name"`
	Sequence   int32                     `json:"ruleSequence"`
	Conditions []GatewayRewriteCondition `json:"conditions,omitempty" azure:"positional"`
	Actions    GatewayRewriteActions     `json:"actionSet"`
}

// GatewayRewriteCondition compares a variable with a regular expression.
type GatewayRewriteCondition struct {
	Variable   string `json:"variable"`
	Pattern    string `json:"pattern"`
	IgnoreCase bool   `json:"ignoreCase"`
	Negate     bool   `json:"negate"`
}

// GatewayRewriteActions are what a rewrite rule does.
type GatewayRewriteActions struct {
	RequestHeaders  []GatewayHeader   `json:"requestHeaderConfigurations,omitempty" azure:"positional"`
	ResponseHeaders []GatewayHeader   `json:"responseHeaderConfigurations,omitempty" azure:"positional"`
	URL             *GatewayURLChange `json:"urlConfiguration,omitempty" azure:"exact"`
}

// GatewayHeader is a header and its new value. An empty value removes the header.
type GatewayHeader struct {
	Name  string `json:"headerName"`
	Value string `json:"headerValue"`
}

// GatewayURLChange replaces the path or the query of a request.
type GatewayURLChange struct {
	Path    string `json:"modifiedPath,omitempty" azure:"exact"`
	Query   string `json:"modifiedQueryString,omitempty" azure:"exact"`
	Reroute bool   `json:"reroute"`
}
