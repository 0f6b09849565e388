// Package providers has the table of all resource providers of the local Azure. Layer L2.
package providers

import (
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/authorization"
	"kaz/internal/emulator/behaviour/compute"
	"kaz/internal/emulator/behaviour/documents"
	"kaz/internal/emulator/behaviour/identity"
	"kaz/internal/emulator/behaviour/network"
	"kaz/internal/emulator/behaviour/registry"
	"kaz/internal/emulator/behaviour/resources"
	"kaz/internal/emulator/behaviour/storage"
	"kaz/internal/emulator/behaviour/vault"
	"kaz/internal/emulator/model"
)

// All returns the providers. Their types are judged by the official models.
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
		documents.Provider(),
	}
	for _, p := range all {
		for i := range p.Types {
			p.Types[i].Model = model.Official()
		}
	}
	return all
}
