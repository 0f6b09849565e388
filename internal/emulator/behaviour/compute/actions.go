package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// scaleSetActions are what can be done to several machines of a scale set at once.
// Their bodies name them in instanceIds: none, or "*", means all.
func scaleSetActions() map[string]behaviour.Action {
	actions := map[string]behaviour.Action{
		// Not "delete", which is the verb that deletes the scale set itself.
		"Delete":        {Long: true, Latency: "deleteInstances", Do: deleteChosen, Settle: func(c *behaviour.Call) (any, error) { return nil, settleMembers(c, c.Doc) }},
		"manualupgrade": {Long: true, Do: chooseInto, Settle: upgradeChosen},
		"reimage":       {Long: true, Do: chooseInto, Settle: reimageChosen},
		"reimageall":    {Long: true, Do: chooseInto, Settle: reimageChosen},
	}
	for name, t := range transitions() {
		actions[name] = groupPowerAction(t)
	}
	return actions
}

// chosen are the machines that a request names.
func chosen(c *behaviour.Call) ([]azure.ID, error) {
	if err := wellFormed(c); err != nil {
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

// noted keeps the chosen machines for the end of the operation.
func noted(c *behaviour.Call, ids []azure.ID) {
	names := make([]any, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	c.Notes["chosen"] = names
}

func notedIDs(c *behaviour.Call) []azure.ID {
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
	noted(c, ids)
	for _, id := range ids {
		c.Edit(id, func(doc behaviour.Object) { setState(doc, updating) })
	}
	return nil, nil
}

// deleteChosen gives the places of the chosen machines back at once; the machines
// are gone at the end.
func deleteChosen(c *behaviour.Call) (any, error) {
	if err := wellFormed(c); err != nil {
		return nil, err
	}
	if len(behaviour.Texts(c.Body, "instanceIds")) == 0 {
		return nil, behaviour.Invalid("InvalidParameter", "Required parameter 'instanceIds' is missing (null).").At("instanceIds")
	}
	ids, err := chosen(c)
	if err != nil {
		return nil, err
	}
	left := number(c.Doc, capacityPath)
	for _, id := range ids {
		doc, _ := c.Get(id)
		if behaviour.Bool(doc, runtime+".released") || state(doc) == deleting {
			continue
		}
		release(c.World, id)
		left--
	}
	behaviour.Set(c.Doc, capacityPath, max(left, 0))
	return nil, nil
}

func upgradeChosen(c *behaviour.Call) (any, error) { return nil, upgrade(c, c.Doc, notedIDs(c)) }

// upgrade gives instances the latest model of their scale set, with its network.
func upgrade(c *behaviour.Call, set behaviour.Object, ids []azure.ID) error {
	b := builder{world: c.World, set: c.ID, doc: set, addresses: newAddresses(c.World)}
	for _, id := range ids {
		doc, ok := c.Get(id)
		if !ok || behaviour.Bool(doc, runtime+".released") || state(doc) == deleting {
			continue
		}
		if latest(set, doc) && state(doc) == succeeded {
			continue
		}
		fresh := behaviour.Clone(doc)
		if !latest(set, doc) {
			behaviour.Set(fresh, "properties.modelDefinitionApplied", "VirtualMachineScaleSet")
			applyModel(fresh, set)
			applyExtensions(fresh, set, id)
			if err := b.interfaces(fresh, id); err != nil {
				return err
			}
		}
		setState(fresh, succeeded)
		c.Put(id, fresh)
	}
	return nil
}

func reimageChosen(c *behaviour.Call) (any, error) {
	for _, id := range notedIDs(c) {
		doc, ok := c.Get(id)
		if !ok {
			continue
		}
		fresh := behaviour.Clone(doc)
		reimage(c.World, c.ID, c.Doc, fresh)
		setState(fresh, succeeded)
		c.Put(id, fresh)
	}
	return nil, nil
}

// groupPowerAction changes the power state of several machines.
func groupPowerAction(t transition) behaviour.Action {
	change := func(c *behaviour.Call, ids []azure.ID, provisioning string, power func(*behaviour.Call, behaviour.Object)) {
		for _, id := range ids {
			doc, ok := c.Get(id)
			if !ok || state(doc) == deleting {
				continue
			}
			fresh := behaviour.Clone(doc)
			power(c, fresh)
			setState(fresh, provisioning)
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
			noted(c, ids)
			change(c, ids, updating, t.begin)
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			change(c, notedIDs(c), succeeded, t.end)
			return nil, nil
		},
	}
}
