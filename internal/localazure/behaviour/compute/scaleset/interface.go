package scaleset

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
)

// instanceInterfaces is the type of the network interfaces of instances. Their documents are the documents of
// Microsoft.Network's interfaces, so their references to subnets, pools and security groups count in the same way.
func instanceInterfaces() behaviour.Type {
	return behaviour.Type{
		Name:     schema.InstanceInterfaceType,
		Style:    behaviour.Network(),
		Where:    behaviour.Anywhere,
		ReadOnly: true,
		NoType:   true,
		Missing:  func(c *behaviour.Call) error { return missingBelow(c, c.ID.Parent()) },
		Removed: func(c *behaviour.Call) error {
			for _, id := range publicIPsOf(c.World, c.ID) {
				c.Delete(id)
			}
			for _, config := range behaviour.Objects(c.Old, "properties.ipConfigurations") {
				for _, rule := range behaviour.Objects(config, "properties."+natRulesKey) {
					loadbalancer.GiveBackPort(c.World, azure.ID(behaviour.Text(rule, "id")))
				}
			}
			return nil
		},
	}
}

func instanceAddresses() behaviour.Type {
	return behaviour.Type{
		Name:     schema.InstanceAddressType,
		Style:    behaviour.Network(),
		Inline:   "properties.ipConfigurations",
		ReadOnly: true,
	}
}

func instancePublicIPs() behaviour.Type {
	return behaviour.Type{
		Name:     schema.InstancePublicIPType,
		Style:    behaviour.Network(),
		Where:    behaviour.Anywhere,
		ReadOnly: true,
		NoType:   true,
		Show:     func(_ *behaviour.Call, view behaviour.Object) { delete(view, schema.Runtime) },
	}
}

// missingBelow returns the error for a missing child of an instance. It is the instance's error if the instance is
// missing too.
func missingBelow(c *behaviour.Call, instance azure.ID) error {
	if _, ok := c.Get(instance); !ok {
		up := *c
		up.ID = instance
		return missingInstance(&up)
	}
	return behaviour.Refusal(404, "NotFound", "Resource %s not found.", c.ID)
}

// publicIPsOf returns the public addresses of an interface.
func publicIPsOf(w behaviour.World, nic azure.ID) []azure.ID {
	doc, _ := w.Get(nic)
	var ids []azure.ID
	for _, config := range behaviour.Objects(doc, "properties.ipConfigurations") {
		holder := nic.Child("ipConfigurations", behaviour.Text(config, "name"))
		for id := range w.List(holder, schema.InstancePublicIPType) {
			ids = append(ids, id)
		}
	}
	return ids
}

// scaleSetInterfaces is the type that lists all interfaces of a scale set.
func scaleSetInterfaces() behaviour.Type {
	return behaviour.Type{
		Name:     schema.ScaleSetType + "/networkInterfaces",
		Style:    behaviour.Network(),
		ReadOnly: true,
		Find:     func(*behaviour.Call) (behaviour.Object, error) { return nil, nil },
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			all := []behaviour.Object{}
			eachInterface(c.World, c.ID, func(_ azure.ID, doc behaviour.Object) { all = append(all, doc) })
			return all, nil
		},
	}
}

// scaleSetPublicIPs is the type that lists all public addresses of a scale set.
func scaleSetPublicIPs() behaviour.Type {
	return behaviour.Type{
		Name:     schema.ScaleSetType + "/publicIPAddresses",
		Style:    behaviour.Network(),
		ReadOnly: true,
		Find:     func(*behaviour.Call) (behaviour.Object, error) { return nil, nil },
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			all := []behaviour.Object{}
			eachInterface(c.World, c.ID, func(nic azure.ID, _ behaviour.Object) {
				for _, id := range publicIPsOf(c.World, nic) {
					if doc, ok := c.Get(id); ok {
						view := behaviour.Clone(doc)
						delete(view, schema.Runtime)
						all = append(all, view)
					}
				}
			})
			return all, nil
		},
	}
}

func eachInterface(w behaviour.World, set azure.ID, f func(id azure.ID, doc behaviour.Object)) {
	for _, machine := range allMembers(w, set) {
		for id, doc := range w.List(machine, schema.InstanceInterfaceType) {
			f(id, doc)
		}
	}
}
