package scaleset

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// checkPoolVersions refuses a scale set with addresses of both families in one load balancer pool. The addresses of the
// model and of all instances count. Seen in github.com/kubernetes/kubernetes/issues/93085.
func checkPoolVersions(c *behaviour.Call, configs []behaviour.Object) error {
	v := poolVersions{set: c.ID, in: map[string]behaviour.Object{}}
	if c.ID.Is(schema.InstanceType) {
		v.set = c.ID.Parent()
	}
	for _, config := range configs {
		if err := v.add(config); err != nil {
			return err
		}
	}
	if v.set != c.ID {
		model, _ := c.Get(v.set)
		for _, config := range behaviour.Objects(model, schema.NetworkPath+".networkInterfaceConfigurations") {
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

// poolVersions has one address of a scale set for each load balancer pool.
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
				return behaviour.Invalid("AllNicIpConfigurationsOfLbBackendPoolOnVMScaleSetMustHaveSamePrivateIpAddressVersion",
					"Network interface ipConfiguration '%s' of VM Scale Set '%s' has privateIpAddressVersion '%s' that does not "+
						"match with privateIpAddressVersion '%s' of ipConfiguration '%s' in the same load balancer backend "+
						"address pool '%s'.",
					behaviour.Text(other, "name"), v.set, of, version, behaviour.Text(address, "name"), pool)
			}
		}
	}
	return nil
}
