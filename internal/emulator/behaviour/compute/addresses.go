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

// checkPoolVersions: what a scale set has in a pool of a load balancer is of one family, be it
// in its model or in an instance. Seen in github.com/kubernetes/kubernetes/issues/93085.
func checkPoolVersions(c *behaviour.Call, configs []behaviour.Object) error {
	v := poolVersions{set: c.ID, in: map[string]behaviour.Object{}}
	if c.ID.Is(instanceType) {
		v.set = c.ID.Parent()
	}
	for _, config := range configs {
		if err := v.add(config); err != nil {
			return err
		}
	}
	if v.set != c.ID {
		model, _ := c.Get(v.set)
		for _, config := range behaviour.Objects(model, networkPath+".networkInterfaceConfigurations") {
			if err := v.add(config); err != nil {
				return err
			}
		}
		return nil
	}
	var err error
	eachInterface(c.World, c.ID, func(_ azure.ID, doc behaviour.Object) {
		if err == nil {
			err = v.add(doc)
		}
	})
	return err
}

// poolVersions are the addresses that a scale set has in pools, one of each.
type poolVersions struct {
	set azure.ID
	in  map[string]behaviour.Object
}

func (v poolVersions) add(nic behaviour.Object) error {
	for _, address := range behaviour.Objects(nic, "properties.ipConfigurations") {
		version := behaviour.Text(address, "properties.privateIPAddressVersion")
		for _, ref := range behaviour.Objects(address, "properties.loadBalancerBackendAddressPools") {
			pool := azure.ID(behaviour.Text(ref, "id"))
			other, there := v.in[pool.Key()]
			if !there {
				v.in[pool.Key()] = address
				continue
			}
			if of := behaviour.Text(other, "properties.privateIPAddressVersion"); of != version {
				return behaviour.Invalid("AllNicIpConfigurationsOfLbBackendPoolOnVMScaleSetMustHaveSamePrivateIpAddressVersion", "Network interface ipConfiguration '%s' of VM Scale Set '%s' has privateIpAddressVersion '%s' that does not match with privateIpAddressVersion '%s' of ipConfiguration '%s' in the same load balancer backend address pool '%s'.",
					behaviour.Text(other, "name"), v.set, of, version, behaviour.Text(address, "name"), pool)
			}
		}
	}
	return nil
}
