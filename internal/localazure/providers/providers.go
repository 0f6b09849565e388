// Package providers has the table of all resource providers of the local Azure. Layer L2.
package providers

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/authorization/pim"
	"kaz/internal/localazure/behaviour/compute"
	"kaz/internal/localazure/behaviour/documents"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/registry"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/resources/provider"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/behaviour/vault"
	"kaz/internal/localazure/core/model"
)

// All returns the providers. Their types are judged by the official models, and have the api-versions of Azure's catalogue.
func All() []behaviour.Provider {
	all := []behaviour.Provider{
		resources.Provider(),
		network.Provider(),
		compute.Provider(),
		storage.Provider(),
		identity.Provider(),
		registry.Provider(),
		vault.Provider(),
		authorization.Provider(),
		pim.Provider(),
		documents.Provider(),
	}
	for _, p := range all {
		for i := range p.Types {
			p.Types[i].Model = model.Official()
			p.Types[i].Versions = provider.Versions(p.Types[i].Name)
		}
	}
	return all
}
