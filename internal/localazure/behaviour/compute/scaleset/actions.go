package scaleset

import (
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/network/ipam"
)

// scaleSetActions returns the actions on several machines of a scale set. Their bodies name the machines in
// instanceIds: none, or "*", means all.
func scaleSetActions() map[string]behaviour.Action {
	actions := map[string]behaviour.Action{
		// This is not "delete", the verb that deletes the scale set itself.
		"Delete": {Long: true, Latency: "deleteInstances", Do: deleteChosen,
			Settle: func(c *behaviour.Call) (any, error) { return nil, settleMembers(c, c.Doc) }},
		"manualupgrade":           {Long: true, Do: chooseInto, Settle: upgradeChosen},
		"osRollingUpgrade":        rollingUpgrade(),
		"extensionRollingUpgrade": rollingUpgrade(),
		"performMaintenance":      {Long: true, Do: chooseInto, Settle: upgradeChosen},
		"reimage":                 {Long: true, Do: chooseInto, Settle: reimageChosen},
		"reimageall":              {Long: true, Do: chooseInto, Settle: reimageChosen},
	}
	actions["convertToSinglePlacementGroup"] = behaviour.Action{Do: oneGroup}
	actions["forceRecoveryServiceFabricPlatformUpdateDomainWalk"] = behaviour.Action{Do: walkDomain}
	for name, t := range vm.Transitions() {
		actions[name] = groupPowerAction(t)
	}
	return actions
}

// oneGroup puts all instances into one placement group, which has at most 100.
func oneGroup(c *behaviour.Call) (any, error) {
	if capacity := schema.Number(c.Doc, schema.CapacityPath); capacity > smallCapacity {
		return nil, behaviour.Conflict("OperationNotAllowed", "Scale set '%s' with %d instances cannot be converted to a single "+
			"placement group, which has at most %d.", c.ID.Name(), capacity, smallCapacity)
	}
	behaviour.Set(c.Doc, "properties.singlePlacementGroup", true)
	return nil, nil
}

// walkDomain says which update domain follows the one that a request names. No domain is updated here.
func walkDomain(c *behaviour.Call) (any, error) {
	domain, err := strconv.Atoi(c.Query.Get("platformUpdateDomain"))
	if err != nil || domain < 0 {
		return nil, behaviour.Invalid("InvalidParameter", "The value '%s' of parameter 'platformUpdateDomain' is invalid: it is a "+
			"number from 0.", c.Query.Get("platformUpdateDomain")).At("platformUpdateDomain")
	}
	return behaviour.Object{"walkPerformed": true, "nextPlatformUpdateDomain": domain + 1}, nil
}

// chosen returns the machines that a request names.
func chosen(c *behaviour.Call) ([]azure.ID, error) {
	if err := schema.CheckShape(c); err != nil {
		return nil, err
	}
	all := members(c.World, c.Old, c.ID)
	names := behaviour.Texts(c.Body, "instanceIds")
	if len(names) == 0 || len(names) == 1 && names[0] == "*" {
		return all, nil
	}
	byName := map[string]azure.ID{}
	for _, id := range all {
		byName[strings.ToLower(id.Name())] = id
	}
	var ids []azure.ID
	for _, name := range names {
		id, ok := byName[strings.ToLower(name)]
		if !ok {
			return nil, inactive(name)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// storeChosen stores the chosen machines for the end of the operation.
func storeChosen(c *behaviour.Call, ids []azure.ID) {
	names := make([]any, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	c.Notes["chosen"] = names
}

func storedChoice(c *behaviour.Call) []azure.ID {
	var ids []azure.ID
	for _, id := range behaviour.Texts(c.Notes, "chosen") {
		ids = append(ids, azure.ID(id))
	}
	return ids
}

func chooseInto(c *behaviour.Call) (any, error) {
	ids, err := chosen(c)
	if err != nil {
		return nil, err
	}
	storeChosen(c, ids)
	for _, id := range ids {
		c.Edit(id, func(doc behaviour.Object) { schema.SetState(doc, schema.Updating) })
	}
	return nil, nil
}

// deleteChosen takes the chosen machines off the capacity at once. The end of the operation deletes them.
func deleteChosen(c *behaviour.Call) (any, error) {
	if err := schema.CheckShape(c); err != nil {
		return nil, err
	}
	if len(behaviour.Texts(c.Body, "instanceIds")) == 0 {
		return nil, behaviour.Invalid("InvalidParameter", "Required parameter 'instanceIds' is missing (null).").At("instanceIds")
	}
	ids, err := chosen(c)
	if err != nil {
		return nil, err
	}
	left := schema.Number(c.Doc, schema.CapacityPath)
	for _, id := range ids {
		doc, _ := c.Get(id)
		if behaviour.Bool(doc, schema.Runtime+".released") || schema.State(doc) == schema.Deleting {
			continue
		}
		release(c.World, id)
		left--
	}
	behaviour.Set(c.Doc, schema.CapacityPath, max(left, 0))
	return nil, nil
}

func upgradeChosen(c *behaviour.Call) (any, error) { return nil, upgrade(c, c.Doc, storedChoice(c)) }

// upgrade applies the latest model of a scale set to instances, with its network.
func upgrade(c *behaviour.Call, set behaviour.Object, ids []azure.ID) error {
	b := builder{world: c.World, set: c.ID, doc: set, addresses: ipam.NewSubnets(c.World, c.ID)}
	for _, id := range ids {
		doc, ok := c.Get(id)
		if !ok || behaviour.Bool(doc, schema.Runtime+".released") || schema.State(doc) == schema.Deleting {
			continue
		}
		if vm.Latest(set, doc) && schema.State(doc) == schema.Succeeded {
			continue
		}
		fresh := behaviour.Clone(doc)
		if !vm.Latest(set, doc) {
			behaviour.Set(fresh, "properties.modelDefinitionApplied", "VirtualMachineScaleSet")
			applyModel(fresh, set)
			applyExtensions(fresh, set, id)
			if err := b.interfaces(fresh, id); err != nil {
				return err
			}
		}
		schema.SetState(fresh, schema.Succeeded)
		c.Put(id, fresh)
	}
	return nil
}

func reimageChosen(c *behaviour.Call) (any, error) {
	for _, id := range storedChoice(c) {
		doc, ok := c.Get(id)
		if !ok {
			continue
		}
		fresh := behaviour.Clone(doc)
		reimage(c.World, c.ID, c.Doc, fresh)
		schema.SetState(fresh, schema.Succeeded)
		c.Put(id, fresh)
	}
	return nil, nil
}

// groupPowerAction returns the action that changes the power state of several machines.
func groupPowerAction(t vm.Transition) behaviour.Action {
	change := func(c *behaviour.Call, ids []azure.ID, provisioning string, power func(*behaviour.Call, behaviour.Object)) {
		for _, id := range ids {
			doc, ok := c.Get(id)
			if !ok || schema.State(doc) == schema.Deleting {
				continue
			}
			fresh := behaviour.Clone(doc)
			power(c, fresh)
			schema.SetState(fresh, provisioning)
			c.Put(id, fresh)
		}
	}
	return behaviour.Action{
		Long: true,
		Do: func(c *behaviour.Call) (any, error) {
			ids, err := chosen(c)
			if err != nil {
				return nil, err
			}
			storeChosen(c, ids)
			change(c, ids, schema.Updating, t.Begin)
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			change(c, storedChoice(c), schema.Succeeded, t.End)
			return nil, nil
		},
	}
}
