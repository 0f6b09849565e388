package emulator

import (
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/network"
	"kaz/internal/emulator/behaviour/resources"
)

// Providers are all resource types that the local Azure knows: one line each.
func Providers() []behaviour.Provider {
	return []behaviour.Provider{
		resources.Provider(),
		network.Provider(),
	}
}
