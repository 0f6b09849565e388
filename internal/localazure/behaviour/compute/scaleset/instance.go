package scaleset

import (
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/network/ipam"
)

func instances() behaviour.Type {
	style := behaviour.Compute()
	style.Created, style.Updated = 200, 200
	mismatch := style.Mismatch
	style.Mismatch = func(id azure.ID, sent, have string) *behaviour.Error {
		if have == "" { // a write of a deleted instance is refused whatever its condition is
			return inactive(id.Name())
		}
		return mismatch(id, sent, have)
	}
	return behaviour.Type{
		Name:  schema.InstanceType,
		Style: style,
		Where: behaviour.Anywhere,
		Own: []string{schema.Runtime, "instanceId", "sku", "zones", "tags", "resources", "properties.vmId", "properties.timeCreated",
			"properties.latestModelApplied", "properties.instanceView", "properties.networkProfile", "properties.osProfile"},
		Fill:    fillInstance,
		Settle:  settleInstance,
		Failed:  vm.FailedMachine,
		Removed: removedInstance,
		Missing: missingInstance,
		Show:    showInstance,
		Filter:  vm.FilterMachines,
		Actions: instanceActions(),
		Star:    true,
		Views: map[string]func(c *behaviour.Call) (any, error){
			"instanceView": func(c *behaviour.Call) (any, error) { return scaleSetInstanceView(c.World, c.ID, c.Old), nil },
		},
	}
}

func scaleSetInstanceView(w behaviour.World, id azure.ID, doc behaviour.Object) behaviour.Object {
	set, _ := w.Get(id.Parent())
	view := vm.InstanceView(doc)
	if extensions := vm.ExtensionViews(behaviour.Objects(doc, "resources")); len(extensions) > 0 {
		view["extensions"] = extensions
	}
	view["platformUpdateDomain"] = schema.Number(doc, schema.Runtime+".faultDomain")
	view["platformFaultDomain"] = schema.Number(doc, schema.Runtime+".faultDomain")
	if behaviour.Bool(set, "properties.singlePlacementGroup") {
		view["placementGroupId"] = behaviour.Text(set, "properties.uniqueId")
	}
	return view
}

func showInstance(c *behaviour.Call, view behaviour.Object) {
	set, _ := c.Get(c.ID.Parent())
	view["name"] = c.ID.Parent().Name() + "_" + c.ID.Name()
	behaviour.Set(view, "properties.latestModelApplied", vm.Latest(set, view))
	if c.Expands("instanceView") || strings.EqualFold(c.Query.Get("$select"), "instanceView") {
		stored, ok := c.Get(c.ID)
		if ok {
			behaviour.Set(view, "properties.instanceView", scaleSetInstanceView(c.World, c.ID, stored))
		}
	}
	schema.ShowUserData(c, view, "properties.userData")
	delete(view, schema.Runtime)
}

// missingInstance returns the error for a missing instance, also of a missing scale set.
func missingInstance(c *behaviour.Call) error {
	if _, ok := c.Get(c.ID.Parent()); !ok {
		return behaviour.NotFound(c.ID)
	}
	if _, err := strconv.Atoi(c.ID.Name()); err != nil {
		return notANumber()
	}
	return behaviour.Refusal(404, "NotFound", "The entity was not found in this Azure location.")
}

func notANumber() error {
	return behaviour.Invalid("InvalidParameter", "Virtual Machine Scale Set VM instanceId must be a number.").At("instanceId")
}

func inactive(id string) *behaviour.Error {
	return behaviour.Invalid("InvalidParameter", "The provided instanceId %s is not an active Virtual Machine Scale Set VM instanceId.",
		id).At("instanceIds")
}

func fillInstance(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	if c.Old == nil {
		if _, err := strconv.Atoi(c.ID.Name()); err != nil {
			return notANumber()
		}
		return inactive(c.ID.Name())
	}
	if err := vm.CheckStays(c.Old); err != nil {
		return err
	}
	schema.KeepRest(c)
	if err := schema.CheckUnchanged(c, "location", "properties.hardwareProfile.vmSize", "properties.storageProfile.osDisk.name",
		"properties.storageProfile.imageReference"); err != nil {
		return err
	}
	size, err := vm.SizeOf(behaviour.Text(c.Doc, "sku.name"), "sku.name")
	if err != nil {
		return err
	}
	d := instanceDisks(c.World, c.ID, c.Doc)
	d.Old, d.Size = c.Old, size
	if err := d.Attach(); err != nil {
		return err
	}
	if !c.Changed("properties.networkProfileConfiguration") {
		return nil
	}
	return fillInstanceNetwork(c)
}

// fillInstanceNetwork gives an instance its own interfaces.
func fillInstanceNetwork(c *behaviour.Call) error {
	if err := fillInterfaceModels(c, "properties.networkProfileConfiguration"); err != nil {
		return err
	}
	set, _ := c.Get(c.ID.Parent())
	behaviour.Set(c.Doc, "properties.modelDefinitionApplied", "VirtualMachine")
	behaviour.Set(c.Doc, schema.Runtime+".network", 0)
	if vm.SameNetwork(set, c.Doc) {
		behaviour.Set(c.Doc, schema.Runtime+".network", schema.Number(set, schema.Runtime+".network"))
	}
	b := builder{world: c.World, set: c.ID.Parent(), doc: set, addresses: ipam.NewSubnets(c.World, c.ID.Parent())}
	return b.interfaces(c.Doc, c.ID)
}

func instanceDisks(w behaviour.World, id azure.ID, doc behaviour.Object) manageddisk.DataDisks {
	set := id.Parent()
	return manageddisk.DataDisks{World: w, Owner: diskOwner(set, id.Name()), Machine: set.Name() + "_" + id.Name(), Doc: doc}
}

func settleInstance(c *behaviour.Call) error {
	instanceDisks(c.World, c.ID, c.Doc).Detach()
	return nil
}

// removedInstance deletes the OS disk of the instance and takes the instance off the capacity.
func removedInstance(c *behaviour.Call) error {
	instanceDisks(c.World, c.ID, c.Old).Drop("Delete")
	if behaviour.Bool(c.Old, schema.Runtime+".released") {
		return nil
	}
	set, ok := c.Get(c.ID.Parent())
	if !ok || schema.State(set) == schema.Deleting {
		return nil
	}
	c.Edit(c.ID.Parent(), func(set behaviour.Object) {
		behaviour.Set(set, schema.CapacityPath, max(schema.Number(set, schema.CapacityPath)-1, 0))
	})
	return nil
}

// instanceActions returns the actions on one instance.
func instanceActions() map[string]behaviour.Action {
	actions := map[string]behaviour.Action{
		"reimage":    {Long: true, Do: vm.RefuseLeaving, Settle: reimageOne},
		"reimageAll": {Long: true, Do: vm.RefuseLeaving, Settle: reimageOne},
		"simulateEviction": {Status: 204, Do: func(c *behaviour.Call) (any, error) {
			return nil, vm.Evict(c)
		}},
		"retrieveBootDiagnosticsData": {Do: vm.BootDiagnostics},
		"performMaintenance":          {Long: true, Do: vm.RefuseLeaving},
		"runCommand":                  vm.RunCommand(),
		"attachDetachDataDisks":       manageddisk.AttachDetach(instanceDisks, "sku.name", vm.CheckStays),
	}
	for name, t := range vm.Transitions() {
		actions[name] = vm.PowerAction(t)
	}
	return actions
}

func reimageOne(c *behaviour.Call) (any, error) {
	set, _ := c.Get(c.ID.Parent())
	reimage(c.World, c.ID.Parent(), set, c.Doc)
	return nil, nil
}

// reimage gives an instance a new OS disk with the model's image.
func reimage(w behaviour.World, id azure.ID, set, doc behaviour.Object) {
	old := behaviour.RefID(doc, "properties.storageProfile.osDisk.managedDisk")
	applyImage(doc, set)
	if old != "" {
		manageddisk.NewOSDisk(w, old, diskOwner(id, behaviour.Text(doc, "instanceId")), doc)
	}
	vm.SetPower(w, doc, vm.Running)
}

// applyImage copies the image of the model, and nothing else, to an instance.
func applyImage(doc, set behaviour.Object) {
	ref := behaviour.Sub(set, schema.ProfilePath+".storageProfile.imageReference")
	if ref == nil {
		return
	}
	behaviour.Set(doc, "properties.storageProfile.imageReference", behaviour.Clone(ref))
	vm.ExactVersion(behaviour.Sub(doc, "properties.storageProfile"), vm.ImageOf(doc))
}
