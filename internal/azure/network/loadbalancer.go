package network

import "kaz/internal/azure"

// LoadBalancer is the properties of a load balancer.
type LoadBalancer struct {
	FrontendIPConfigurations []azure.Child[FrontendIPConfiguration] `json:"frontendIPConfigurations,omitempty"`
	BackendAddressPools      []azure.Child[BackendAddressPool]      `json:"backendAddressPools,omitempty"`
	LoadBalancingRules       []azure.Child[LoadBalancingRule]       `json:"loadBalancingRules,omitempty"`
	Probes                   []azure.Child[Probe]                   `json:"probes,omitempty"`

	// kaz never writes the following fields. It reads them to see what a frontend is used for.
	OutboundRules   []azure.Child[OutboundRule]   `json:"outboundRules,omitempty" azure:"read"`
	InboundNATRules []azure.Child[InboundNATRule] `json:"inboundNatRules,omitempty" azure:"read"`
	InboundNATPools []azure.Child[InboundNATPool] `json:"inboundNatPools,omitempty" azure:"read"`
}

// FrontendIPConfiguration is one address of a load balancer.
type FrontendIPConfiguration struct {
	PublicIPAddress *azure.Reference `json:"publicIPAddress,omitempty" azure:"required"`
	Subnet          *azure.Reference `json:"subnet,omitempty" azure:"required"`
	// PrivateIPAddress may be absent in a view: Azure then chooses an address. A view without an opinion repeats the
	// present address.
	PrivateIPAddress          string `json:"privateIPAddress,omitempty" azure:"exact"`
	PrivateIPAllocationMethod string `json:"privateIPAllocationMethod,omitempty" azure:"fold"`
	PrivateIPAddressVersion   string `json:"privateIPAddressVersion,omitempty" azure:"fold"`
}

// BackendAddressPool is a set of receivers. With membership by NIC, the interfaces' documents say
// which ones are members, and Azure shows them here.
type BackendAddressPool struct {
	BackendIPConfigurations []azure.Reference `json:"backendIPConfigurations,omitempty" azure:"read"`
	// The following fields are the members of a pool by address. Azure also shows the members by NIC there, which are
	// not written.
	VirtualNetwork               *azure.Reference              `json:"virtualNetwork,omitempty" azure:"exact"`
	LoadBalancerBackendAddresses []azure.Child[BackendAddress] `json:"loadBalancerBackendAddresses,omitempty"`
}

// BackendAddress is a member of a pool by address.
type BackendAddress struct {
	IPAddress string `json:"ipAddress,omitempty" azure:"fold"`
	// VirtualNetwork is where the address is, unless the pool says so for all.
	VirtualNetwork *azure.Reference `json:"virtualNetwork,omitempty" azure:"exact"`

	NetworkInterfaceIPConfiguration *azure.Reference `json:"networkInterfaceIPConfiguration,omitempty" azure:"read"`
}

// LoadBalancingRule sends what arrives at a frontend's port to a pool.
type LoadBalancingRule struct {
	Protocol                string           `json:"protocol,omitempty" azure:"fold"`
	FrontendPort            int32            `json:"frontendPort"`
	BackendPort             int32            `json:"backendPort"`
	EnableFloatingIP        *bool            `json:"enableFloatingIP,omitempty"`
	EnableTCPReset          *bool            `json:"enableTcpReset,omitempty"`
	LoadDistribution        string           `json:"loadDistribution,omitempty" azure:"fold"`
	DisableOutboundSNAT     *bool            `json:"disableOutboundSnat,omitempty"`
	IdleTimeoutInMinutes    *int32           `json:"idleTimeoutInMinutes,omitempty"`
	FrontendIPConfiguration *azure.Reference `json:"frontendIPConfiguration,omitempty" azure:"required"`
	BackendAddressPool      *azure.Reference `json:"backendAddressPool,omitempty"`
	// BackendAddressPools repeats BackendAddressPool in what Azure returns. The two must agree in what is sent back.
	BackendAddressPools []azure.Reference `json:"backendAddressPools,omitempty"`
	Probe               *azure.Reference  `json:"probe,omitempty" azure:"exact"`
}

// Probe is a health probe: how the load balancer asks a pool member whether it is healthy.
type Probe struct {
	Protocol          string `json:"protocol,omitempty" azure:"fold"`
	Port              int32  `json:"port"`
	RequestPath       string `json:"requestPath,omitempty" azure:"exact"`
	IntervalInSeconds int32  `json:"intervalInSeconds,omitempty"`
	ProbeThreshold    int32  `json:"probeThreshold,omitempty"`
}

// OutboundRule gives a pool its addresses for outgoing connections.
type OutboundRule struct {
	FrontendIPConfigurations []azure.Reference `json:"frontendIPConfigurations,omitempty"`
}

// InboundNATRule sends a frontend's port to one machine, or a range of ports to the
// machines of a pool, one port each.
type InboundNATRule struct {
	Protocol                string           `json:"protocol,omitempty"`
	FrontendPort            int32            `json:"frontendPort,omitempty"`
	FrontendPortRangeStart  int32            `json:"frontendPortRangeStart,omitempty"`
	FrontendPortRangeEnd    int32            `json:"frontendPortRangeEnd,omitempty"`
	FrontendIPConfiguration *azure.Reference `json:"frontendIPConfiguration,omitempty"`
}

// InboundNATPool sends a range of a frontend's ports to the machines of a scale
// set, one port each.
type InboundNATPool struct {
	Protocol                string           `json:"protocol,omitempty"`
	FrontendPortRangeStart  int32            `json:"frontendPortRangeStart,omitempty"`
	FrontendPortRangeEnd    int32            `json:"frontendPortRangeEnd,omitempty"`
	FrontendIPConfiguration *azure.Reference `json:"frontendIPConfiguration,omitempty"`
}
