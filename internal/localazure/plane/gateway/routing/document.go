package routing

import (
	"encoding/json"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// document has the members of a gateway's document that decide about traffic.
type document struct {
	ID         azure.ID `json:"id"`
	Properties struct {
		EnableHTTP2       bool                      `json:"enableHttp2"`
		SSLPolicy         sslPolicy                 `json:"sslPolicy"`
		Frontends         []child[frontend]         `json:"frontendIPConfigurations"`
		Ports             []child[port]             `json:"frontendPorts"`
		Certificates      []child[certificate]      `json:"sslCertificates"`
		Roots             []child[root]             `json:"trustedRootCertificates"`
		ClientRoots       []child[root]             `json:"trustedClientCertificates"`
		Profiles          []child[profile]          `json:"sslProfiles"`
		Pools             []child[pool]             `json:"backendAddressPools"`
		Settings          []child[setting]          `json:"backendHttpSettingsCollection"`
		StreamSettings    []child[setting]          `json:"backendSettingsCollection"`
		Listeners         []child[listener]         `json:"httpListeners"`
		StreamListeners   []child[listener]         `json:"listeners"`
		PathMaps          []child[pathMap]          `json:"urlPathMaps"`
		Rules             []child[rule]             `json:"requestRoutingRules"`
		StreamRules       []child[rule]             `json:"routingRules"`
		Redirects         []child[redirect]         `json:"redirectConfigurations"`
		RewriteSets       []child[rewriteSet]       `json:"rewriteRuleSets"`
		Probes            []child[probe]            `json:"probes"`
		DistributionRules []child[distributionRule] `json:"loadDistributionPolicies"`
	} `json:"properties"`
}

// child is a named element of a list.
type child[P any] struct {
	Name       string `json:"name"`
	Properties P      `json:"properties"`
}

// reference is {"id": id}. A missing reference has no name.
type reference struct {
	ID azure.ID `json:"id"`
}

// name is the name of the child that a reference leads to, in lower case.
func (r reference) name() string { return strings.ToLower(r.ID.Name()) }

func (r reference) given() bool { return r.ID != "" }

// number is a whole number, which Azure also reads from a text.
type number int

// UnmarshalJSON reads 80 and "80".
func (n *number) UnmarshalJSON(text []byte) error {
	var value json.Number
	if err := json.Unmarshal([]byte(strings.Trim(string(text), `"`)), &value); err != nil {
		return err
	}
	f, err := strconv.ParseFloat(value.String(), 64)
	*n = number(f)
	return err
}

type sslPolicy struct {
	PolicyName         string `json:"policyName"`
	MinProtocolVersion string `json:"minProtocolVersion"`
}

type frontend struct {
	PrivateIPAddress string    `json:"privateIPAddress"`
	PublicIPAddress  reference `json:"publicIPAddress"`
}

type port struct {
	Port number `json:"port"`
}

type certificate struct {
	KeyVaultSecretID string `json:"keyVaultSecretId"`
}

type root struct {
	Data string `json:"data"`
}

type profile struct {
	SSLPolicy   sslPolicy   `json:"sslPolicy"`
	ClientRoots []reference `json:"trustedClientCertificates"`
}

type pool struct {
	Addresses []struct {
		IPAddress string `json:"ipAddress"`
		FQDN      string `json:"fqdn"`
	} `json:"backendAddresses"`
}

// setting is an element of backendHttpSettingsCollection or, with fewer members, of backendSettingsCollection.
type setting struct {
	Port               number      `json:"port"`
	Protocol           string      `json:"protocol"`
	Path               string      `json:"path"`
	HostName           string      `json:"hostName"`
	PickHostName       bool        `json:"pickHostNameFromBackendAddress"`
	Affinity           string      `json:"cookieBasedAffinity"`
	AffinityCookieName string      `json:"affinityCookieName"`
	RequestTimeout     number      `json:"requestTimeout"`
	Timeout            number      `json:"timeout"`
	Probe              reference   `json:"probe"`
	Roots              []reference `json:"trustedRootCertificates"`
	SNIName            string      `json:"sniName"`
	ConnectionDraining struct {
		Enabled           bool   `json:"enabled"`
		DrainTimeoutInSec number `json:"drainTimeoutInSec"`
	} `json:"connectionDraining"`
}

// listener is an element of httpListeners or of listeners.
type listener struct {
	Protocol    string    `json:"protocol"`
	Frontend    reference `json:"frontendIPConfiguration"`
	Port        reference `json:"frontendPort"`
	HostName    string    `json:"hostName"`
	HostNames   []string  `json:"hostNames"`
	Certificate reference `json:"sslCertificate"`
	Profile     reference `json:"sslProfile"`
}

// target is where matched requests go.
type target struct {
	Pool         reference `json:"backendAddressPool"`
	Setting      reference `json:"backendHttpSettings"`
	Redirect     reference `json:"redirectConfiguration"`
	RewriteSet   reference `json:"rewriteRuleSet"`
	Distribution reference `json:"loadDistributionPolicy"`
}

type pathMap struct {
	Pool         reference `json:"defaultBackendAddressPool"`
	Setting      reference `json:"defaultBackendHttpSettings"`
	Redirect     reference `json:"defaultRedirectConfiguration"`
	RewriteSet   reference `json:"defaultRewriteRuleSet"`
	Distribution reference `json:"defaultLoadDistributionPolicy"`
	Rules        []child[struct {
		target
		Paths []string `json:"paths"`
	}] `json:"pathRules"`
}

// rule is an element of requestRoutingRules or of routingRules.
type rule struct {
	target
	Priority       number    `json:"priority"`
	Listener       reference `json:"httpListener"`
	PathMap        reference `json:"urlPathMap"`
	StreamListener reference `json:"listener"`
	StreamSetting  reference `json:"backendSettings"`
}

type redirect struct {
	Type               string    `json:"redirectType"`
	TargetListener     reference `json:"targetListener"`
	TargetURL          string    `json:"targetUrl"`
	IncludePath        bool      `json:"includePath"`
	IncludeQueryString bool      `json:"includeQueryString"`
}

type rewriteSet struct {
	Rules []struct {
		Name       string `json:"name"`
		Sequence   number `json:"ruleSequence"`
		Conditions []struct {
			Variable   string `json:"variable"`
			Pattern    string `json:"pattern"`
			IgnoreCase bool   `json:"ignoreCase"`
			Negate     bool   `json:"negate"`
		} `json:"conditions"`
		Actions struct {
			Request  []headerAction `json:"requestHeaderConfigurations"`
			Response []headerAction `json:"responseHeaderConfigurations"`
			URL      *struct {
				Path    string `json:"modifiedPath"`
				Query   string `json:"modifiedQueryString"`
				Reroute bool   `json:"reroute"`
			} `json:"urlConfiguration"`
		} `json:"actionSet"`
	} `json:"rewriteRules"`
}

type headerAction struct {
	Name    string `json:"headerName"`
	Value   string `json:"headerValue"`
	Matcher *struct {
		Pattern    string `json:"pattern"`
		IgnoreCase bool   `json:"ignoreCase"`
		Negate     bool   `json:"negate"`
	} `json:"headerValueMatcher"`
}

type probe struct {
	Protocol         string `json:"protocol"`
	Host             string `json:"host"`
	PickHostName     bool   `json:"pickHostNameFromBackendHttpSettings"`
	PickHostName4    bool   `json:"pickHostNameFromBackendSettings"`
	Port             number `json:"port"`
	Path             string `json:"path"`
	Interval         number `json:"interval"`
	Timeout          number `json:"timeout"`
	UnhealthyAfter   number `json:"unhealthyThreshold"`
	SendsProxyHeader bool   `json:"enableProbeProxyProtocolHeader"`
	Match            struct {
		Body        string   `json:"body"`
		StatusCodes []string `json:"statusCodes"`
	} `json:"match"`
}

type distributionRule struct {
	Algorithm string `json:"loadDistributionAlgorithm"`
	Targets   []child[struct {
		Pool   reference `json:"backendAddressPool"`
		Weight number    `json:"weightPerServer"`
	}] `json:"loadDistributionTargets"`
}
