package service

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/controller"
	"kaz/internal/reconcile"
)

// rewritable is what load balancers share, and what Azure wants well before it takes them.
func rewritable() controller.Rewritable {
	return controller.Rewritable{
		Types: []string{network.SecurityGroups, network.Subnets, network.PublicIPAddresses, network.LoadBalancers},
		Refers: map[string]func(azure.Document) []azure.ID{
			network.LoadBalancers:       controller.ReferencesOf[network.LoadBalancer],
			network.PrivateLinkServices: controller.ReferencesOf[network.PrivateLinkService],
			network.Subnets: controller.ReferencesOf[struct {
				NetworkSecurityGroup *azure.Reference `json:"networkSecurityGroup,omitempty"`
			}],
		},
		Hidden: subnetsOf,
	}
}

// isShared reports whether a document is not one Service's alone.
func isShared(id azure.ID) bool { return !id.Is(network.PublicIPAddresses) }

// subnetsOf are those of the network that Azure names in a refusal: a network is not well while
// one of its subnets is not, and kaz writes subnets, not networks. Where they may not be read
// they are left to others.
func subnetsOf(ctx context.Context, client reconcile.Azure, refusal *azure.Error) ([]azure.Document, error) {
	if !azure.ID(refusal.Target).Is(network.VirtualNetworks) {
		return nil, nil
	}
	docs, err := client.Fresh().List(ctx, azure.Query{Scope: azure.ID(refusal.Target), Type: network.Subnets})
	if azure.KindOf(err) == azure.Denied {
		return nil, nil
	}
	return docs, err
}
