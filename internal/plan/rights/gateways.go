package rights

// The features of the application-gateway-controller.
const (
	// Gateways writes an application gateway.
	Gateways Feature = "application-gateways"
	// GatewayFirewalls uses web application firewall policies.
	GatewayFirewalls Feature = "application-gateway-firewalls"
	// GatewayReadiness lets pods with the readiness gate become ready.
	GatewayReadiness Feature = "application-gateway-readiness"
)

// GatewayFeatures returns the features of the application-gateway-controller, in the order of the reference.
func GatewayFeatures() []Feature { return []Feature{Gateways, GatewayFirewalls, GatewayReadiness} }

func gateways() []Need {
	return []Need{
		{network + "applicationGateways/read", ApplicationGateways, Gateways, "read the application gateway", false},
		{network + "applicationGateways/write", ApplicationGateways, Gateways, "write what serves Ingresses", false},
		{network + "publicIPAddresses/join/action", PublicIPs, Gateways, "write an application gateway that has a public IP", false},
		{network + "publicIPAddresses/read", PublicIPs, Gateways, "write the public address to the status of Ingresses", true},
		{network + "virtualNetworks/subnets/join/action", VirtualNetwork, Gateways, "write a gateway that is in a subnet", false},
		{
			network + "applicationGatewayWebApplicationFirewallPolicies/join/action", ApplicationGateways, GatewayFirewalls,
			"write an application gateway with a firewall policy", true,
		},
		{
			network + "applicationGateways/backendhealth/action", ApplicationGateways, GatewayReadiness,
			"let pods with the readiness gate become ready, and report pools without a healthy backend", true,
		},
	}
}
