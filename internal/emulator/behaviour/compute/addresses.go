package compute

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/network"
)

// addresses hands out the private addresses of one call. Each subnet is looked up
// once, so that a thousand instances cost one look.
type addresses struct {
	world   behaviour.World
	subnets map[string]*network.PrivateAddresses
}

func newAddresses(w behaviour.World) *addresses {
	return &addresses{world: w, subnets: map[string]*network.PrivateAddresses{}}
}

// take gives the user the lowest free address of a subnet. set is who is written.
func (a *addresses) take(set, subnet, user azure.ID, family string) (string, error) {
	known := a.subnets[subnet.Key()]
	if known == nil {
		var err error
		if known, err = network.NewPrivateAddresses(a.world, subnet, set); err != nil {
			return "", err
		}
		a.subnets[subnet.Key()] = known
	}
	return known.Take(user, family, "")
}
