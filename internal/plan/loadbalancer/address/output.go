package address

import (
	"kaz/internal/azure"
	"kaz/internal/plan"
)

// OfPublicIP stands for the address of a public IP until Azure has chosen it.
func OfPublicIP(id azure.ID) string { return plan.Output(id, "properties.ipAddress") }

// OfFrontend stands for the private address of a frontend until Azure has chosen it.
func OfFrontend(balancer azure.ID, name string) string {
	return plan.Output(balancer, "properties.frontendIPConfigurations["+name+"].properties.privateIPAddress")
}
