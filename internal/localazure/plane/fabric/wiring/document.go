package wiring

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"kaz/internal/azure"
)

// child is a named element of a list.
type child[P any] struct {
	Name       string `json:"name"`
	Properties P      `json:"properties"`
}

type reference struct {
	ID azure.ID `json:"id"`
}

// key returns the id in the form in which ids compare, "" for no reference.
func (r *reference) key() string {
	if r == nil {
		return ""
	}
	return r.ID.Key()
}

type resource[P any] struct {
	ID         azure.ID `json:"id"`
	SKU        struct{ Name string }
	Properties P `json:"properties"`
}

type virtualNetwork struct {
	AddressSpace struct {
		AddressPrefixes []string `json:"addressPrefixes"`
	} `json:"addressSpace"`
	Subnets []child[subnet] `json:"subnets"`
}

type subnet struct {
	AddressPrefix         string     `json:"addressPrefix"`
	AddressPrefixes       []string   `json:"addressPrefixes"`
	NetworkSecurityGroup  *reference `json:"networkSecurityGroup"`
	RouteTable            *reference `json:"routeTable"`
	NATGateway            *reference `json:"natGateway"`
	DefaultOutboundAccess *bool      `json:"defaultOutboundAccess"`
}

type networkInterface struct {
	MACAddress           string                   `json:"macAddress"`
	EnableIPForwarding   bool                     `json:"enableIPForwarding"`
	NetworkSecurityGroup *reference               `json:"networkSecurityGroup"`
	IPConfigurations     []child[ipConfiguration] `json:"ipConfigurations"`
}

type ipConfiguration struct {
	Primary                   bool        `json:"primary"`
	PrivateIPAddress          string      `json:"privateIPAddress"`
	Subnet                    *reference  `json:"subnet"`
	PublicIPAddress           *reference  `json:"publicIPAddress"`
	Pools                     []reference `json:"loadBalancerBackendAddressPools"`
	ApplicationSecurityGroups []reference `json:"applicationSecurityGroups"`
}

type routeTable struct {
	Routes []child[userRoute] `json:"routes"`
}

type userRoute struct {
	AddressPrefix    string `json:"addressPrefix"`
	NextHopType      string `json:"nextHopType"`
	NextHopIPAddress string `json:"nextHopIpAddress"`
}

type securityGroup struct {
	SecurityRules        []child[securityRule] `json:"securityRules"`
	DefaultSecurityRules []child[securityRule] `json:"defaultSecurityRules"`
}

type securityRule struct {
	Priority   int    `json:"priority"`
	Direction  string `json:"direction"`
	Access     string `json:"access"`
	Protocol   string `json:"protocol"`
	SourcePort string `json:"sourcePortRange"`
	DestPort   string `json:"destinationPortRange"`
	Source     string `json:"sourceAddressPrefix"`
	Dest       string `json:"destinationAddressPrefix"`

	SourcePorts  []string    `json:"sourcePortRanges"`
	DestPorts    []string    `json:"destinationPortRanges"`
	Sources      []string    `json:"sourceAddressPrefixes"`
	Dests        []string    `json:"destinationAddressPrefixes"`
	SourceGroups []reference `json:"sourceApplicationSecurityGroups"`
	DestGroups   []reference `json:"destinationApplicationSecurityGroups"`
}

type loadBalancer struct {
	Frontends     []child[frontend]      `json:"frontendIPConfigurations"`
	Pools         []child[backendPool]   `json:"backendAddressPools"`
	Rules         []child[balancingRule] `json:"loadBalancingRules"`
	Probes        []child[probe]         `json:"probes"`
	OutboundRules []child[outboundRule]  `json:"outboundRules"`
}

type frontend struct {
	PrivateIPAddress string     `json:"privateIPAddress"`
	Subnet           *reference `json:"subnet"`
	PublicIPAddress  *reference `json:"publicIPAddress"`
}

type applicationGateway struct {
	OperationalState string            `json:"operationalState"`
	Instances        []child[frontend] `json:"gatewayIPConfigurations"`
	Frontends        []child[frontend] `json:"frontendIPConfigurations"`
}

type backendPool struct {
	VirtualNetwork *reference              `json:"virtualNetwork"`
	Addresses      []child[backendAddress] `json:"loadBalancerBackendAddresses"`
}

type backendAddress struct {
	IPAddress      string     `json:"ipAddress"`
	VirtualNetwork *reference `json:"virtualNetwork"`
	Subnet         *reference `json:"subnet"`
	AdminState     string     `json:"adminState"`
}

type balancingRule struct {
	Protocol            string      `json:"protocol"`
	FrontendPort        int         `json:"frontendPort"`
	BackendPort         int         `json:"backendPort"`
	EnableFloatingIP    bool        `json:"enableFloatingIP"`
	LoadDistribution    string      `json:"loadDistribution"`
	DisableOutboundSNAT bool        `json:"disableOutboundSnat"`
	Frontend            *reference  `json:"frontendIPConfiguration"`
	Pool                *reference  `json:"backendAddressPool"`
	Pools               []reference `json:"backendAddressPools"`
	Probe               *reference  `json:"probe"`
}

type probe struct {
	Protocol          string `json:"protocol"`
	Port              int    `json:"port"`
	RequestPath       string `json:"requestPath"`
	IntervalInSeconds int    `json:"intervalInSeconds"`
	ProbeThreshold    int    `json:"probeThreshold"`
}

type outboundRule struct {
	Protocol  string      `json:"protocol"`
	Pool      *reference  `json:"backendAddressPool"`
	Frontends []reference `json:"frontendIPConfigurations"`
}

type natGateway struct {
	PublicIPAddresses []reference `json:"publicIpAddresses"`
}

type publicIPAddress struct {
	IPAddress string `json:"ipAddress"`
}

// Types returns the full types of the documents that Compile uses.
func Types() []string {
	return []string{
		"Microsoft.Network/virtualNetworks",
		"Microsoft.Network/networkInterfaces",
		"Microsoft.Network/routeTables",
		"Microsoft.Network/networkSecurityGroups",
		"Microsoft.Network/loadBalancers",
		"Microsoft.Network/publicIPAddresses",
		"Microsoft.Network/natGateways",
		"Microsoft.Network/applicationGateways",
		instanceInterfaces,
		instanceAddresses,
	}
}

// Instances of scale sets have other types of interfaces and public addresses than machines.
const (
	instanceInterfaces = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces"
	instanceAddresses  = instanceInterfaces + "/ipConfigurations/publicIPAddresses"
)

// Documents are the documents that Compile uses, by the keys of their ids.
type Documents struct {
	networks     map[string]*resource[virtualNetwork]
	interfaces   map[string]*resource[networkInterface]
	tables       map[string]*resource[routeTable]
	groups       map[string]*resource[securityGroup]
	balancers    map[string]*resource[loadBalancer]
	addresses    map[string]*resource[publicIPAddress]
	gateways     map[string]*resource[natGateway]
	applications map[string]*resource[applicationGateway]
	read         map[string]map[string]any // the maps of the last Read, to find changes
	held         map[string]bool
}

// NewDocuments returns no documents.
func NewDocuments() *Documents {
	return &Documents{
		networks:     map[string]*resource[virtualNetwork]{},
		interfaces:   map[string]*resource[networkInterface]{},
		tables:       map[string]*resource[routeTable]{},
		groups:       map[string]*resource[securityGroup]{},
		balancers:    map[string]*resource[loadBalancer]{},
		addresses:    map[string]*resource[publicIPAddress]{},
		gateways:     map[string]*resource[natGateway]{},
		applications: map[string]*resource[applicationGateway]{},
		read:         map[string]map[string]any{},
	}
}

// Hold says which interfaces, by their keys, stay although the next Read does not yield them. A machine that is deleted keeps its
// interfaces until it is off. An interface does not stay if another one has its address.
func (d *Documents) Hold(keys map[string]bool) { d.held = keys }

// stays reports whether an interface that was not listed stays.
func (d *Documents) stays(key string, listed map[string]bool) bool {
	gone, is := d.interfaces[key]
	if !is || !d.held[key] {
		return false
	}
	for other, r := range d.interfaces {
		if listed[other] && sharesAddress(gone.Properties, r.Properties) {
			return false
		}
	}
	return true
}

// sharesAddress reports whether two interfaces have the same address in one subnet.
func sharesAddress(a, b networkInterface) bool {
	for _, one := range a.IPConfigurations {
		for _, other := range b.IPConfigurations {
			if one.Properties.PrivateIPAddress == other.Properties.PrivateIPAddress &&
				one.Properties.Subnet.key() == other.Properties.Subnet.key() {
				return true
			}
		}
	}
	return false
}

// Read replaces the documents by the documents that all yields, in any order. The same map as before counts as unchanged. A
// document that cannot be decoded counts as absent, and an error names it.
func (d *Documents) Read(all func(yield func(azure.ID, map[string]any) bool)) []error {
	var problems []error
	seen := map[string]bool{}
	for id, doc := range all {
		key := id.Key()
		seen[key] = true
		if have, ok := d.read[key]; ok && reflect.ValueOf(have).Pointer() == reflect.ValueOf(doc).Pointer() {
			continue
		}
		d.read[key] = doc
		if err := d.put(id, doc); err != nil {
			d.forget(key)
			problems = append(problems, fmt.Errorf("document of %s: %w", id, err))
		}
	}
	for key := range d.read {
		if !seen[key] && !d.stays(key, seen) {
			delete(d.read, key)
			d.forget(key)
		}
	}
	return problems
}

func (d *Documents) forget(key string) {
	delete(d.networks, key)
	delete(d.interfaces, key)
	delete(d.tables, key)
	delete(d.groups, key)
	delete(d.balancers, key)
	delete(d.addresses, key)
	delete(d.gateways, key)
	delete(d.applications, key)
}

func (d *Documents) put(id azure.ID, doc map[string]any) error {
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	switch t := strings.ToLower(id.Type()); t {
	case "microsoft.network/virtualnetworks":
		return decode(d.networks, id, text)
	case "microsoft.network/networkinterfaces", strings.ToLower(instanceInterfaces):
		return decode(d.interfaces, id, text)
	case "microsoft.network/routetables":
		return decode(d.tables, id, text)
	case "microsoft.network/networksecuritygroups":
		return decode(d.groups, id, text)
	case "microsoft.network/loadbalancers":
		return decode(d.balancers, id, text)
	case "microsoft.network/natgateways":
		return decode(d.gateways, id, text)
	case "microsoft.network/applicationgateways":
		return decode(d.applications, id, text)
	case "microsoft.network/publicipaddresses", strings.ToLower(instanceAddresses):
		return decode(d.addresses, id, text)
	default:
		return fmt.Errorf("unknown type, want one of %s", strings.Join(Types(), ", "))
	}
}

func decode[P any](into map[string]*resource[P], id azure.ID, text []byte) error {
	r := &resource[P]{}
	if err := json.Unmarshal(text, r); err != nil {
		return err
	}
	r.ID = id
	into[id.Key()] = r
	return nil
}
