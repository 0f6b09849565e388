package compute

import (
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func instances() behaviour.Type {
	style := behaviour.Compute()
	style.Created, style.Updated = 200, 200
	return behaviour.Type{
		Name:    instanceType,
		Style:   style,
		Where:   behaviour.Anywhere,
		Own:     []string{runtime, "instanceId", "sku", "zones", "tags", "resources", "properties.vmId", "properties.timeCreated", "properties.latestModelApplied", "properties.instanceView", "properties.networkProfile", "properties.osProfile"},
		Fill:    fillInstance,
		Settle:  settleInstance,
		Failed:  failedMachine,
		Removed: removedInstance,
		Missing: missingInstance,
		Show:    showInstance,
		Filter:  filterMachines,
		Actions: instanceActions(),
		Views: map[string]func(c *behaviour.Call) (any, error){
			"instanceView": func(c *behaviour.Call) (any, error) { return scaleSetInstanceView(c.World, c.ID, c.Old), nil },
		},
	}
}

func scaleSetInstanceView(w behaviour.World, id azure.ID, doc behaviour.Object) behaviour.Object {
	set, _ := w.Get(id.Parent())
	view := instanceView(doc)
	if extensions := extensionViews(behaviour.Objects(doc, "resources")); len(extensions) > 0 {
		view["extensions"] = extensions
	}
	view["platformUpdateDomain"] = number(doc, runtime+".faultDomain")
	view["platformFaultDomain"] = number(doc, runtime+".faultDomain")
	if behaviour.Bool(set, "properties.singlePlacementGroup") {
		view["placementGroupId"] = behaviour.Text(set, "properties.uniqueId")
	}
	return view
}

func showInstance(c *behaviour.Call, view behaviour.Object) {
	set, _ := c.Get(c.ID.Parent())
	view["name"] = c.ID.Parent().Name() + "_" + c.ID.Name()
	behaviour.Set(view, "properties.latestModelApplied", latest(set, view))
	if c.Expands("instanceView") || strings.EqualFold(c.Query.Get("$select"), "instanceView") {
		stored, ok := c.Get(c.ID)
		if ok {
			behaviour.Set(view, "properties.instanceView", scaleSetInstanceView(c.World, c.ID, stored))
		}
	}
	delete(view, runtime)
}

// latest reports whether an instance has the latest model of its scale set.
func latest(set, instance behaviour.Object) bool {
	if number(instance, runtime+".model") != number(set, runtime+".model") {
		return false
	}
	return number(instance, runtime+".network") == number(set, runtime+".network") || sameNetwork(set, instance)
}

func sameNetwork(set, instance behaviour.Object) bool {
	const configs = ".networkInterfaceConfigurations"
	return behaviour.Equal(behaviour.At(set, networkPath+configs), behaviour.At(instance, "properties.networkProfileConfiguration"+configs))
}

// missingInstance is the error for an instance that is not there, or whose scale
// set is not.
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

func inactive(id string) error {
	return behaviour.Invalid("InvalidParameter", "The provided instanceId %s is not an active Virtual Machine Scale Set VM instanceId.", id).At("instanceIds")
}

func fillInstance(c *behaviour.Call) error {
	if err := wellFormed(c); err != nil {
		return err
	}
	if c.Old == nil {
		if _, err := strconv.Atoi(c.ID.Name()); err != nil {
			return notANumber()
		}
		return inactive(c.ID.Name())
	}
	if err := (transition{}).refusal(c.Old); err != nil {
		return err
	}
	keepRest(c)
	if err := unchangeable(c, "location", "properties.hardwareProfile.vmSize", "properties.storageProfile.osDisk.name", "properties.storageProfile.imageReference"); err != nil {
		return err
	}
	size, err := sizeOf(behaviour.Text(c.Doc, "sku.name"), "sku.name")
	if err != nil {
		return err
	}
	d := instanceDisks(c.World, c.ID, c.Doc)
	d.old, d.size = c.Old, size
	if err := d.attach(); err != nil {
		return err
	}
	if !c.Changed("properties.networkProfileConfiguration") {
		return nil
	}
	return fillInstanceNetwork(c)
}

// fillInstanceNetwork gives an instance interfaces of its own.
func fillInstanceNetwork(c *behaviour.Call) error {
	if err := fillInterfaceModels(c, "properties.networkProfileConfiguration"); err != nil {
		return err
	}
	set, _ := c.Get(c.ID.Parent())
	behaviour.Set(c.Doc, "properties.modelDefinitionApplied", "VirtualMachine")
	behaviour.Set(c.Doc, runtime+".network", 0)
	if sameNetwork(set, c.Doc) {
		behaviour.Set(c.Doc, runtime+".network", number(set, runtime+".network"))
	}
	b := builder{world: c.World, set: c.ID.Parent(), doc: set, addresses: newAddresses(c.World)}
	return b.interfaces(c.Doc, c.ID)
}

func instanceDisks(w behaviour.World, id azure.ID, doc behaviour.Object) dataDisks {
	set := id.Parent()
	return dataDisks{world: w, owner: diskOwner(set, id.Name()), machine: set.Name() + "_" + id.Name(), doc: doc}
}

func settleInstance(c *behaviour.Call) error {
	instanceDisks(c.World, c.ID, c.Doc).detach()
	return nil
}

// removedInstance takes the disk along that was made for the instance, and gives
// its place in the capacity back.
func removedInstance(c *behaviour.Call) error {
	instanceDisks(c.World, c.ID, c.Old).drop("Delete")
	if behaviour.Bool(c.Old, runtime+".released") {
		return nil
	}
	set, ok := c.Get(c.ID.Parent())
	if !ok || state(set) == deleting {
		return nil
	}
	c.Edit(c.ID.Parent(), func(set behaviour.Object) {
		behaviour.Set(set, capacityPath, max(number(set, capacityPath)-1, 0))
	})
	return nil
}

// instanceActions are what can be done to one instance.
func instanceActions() map[string]behaviour.Action {
	actions := map[string]behaviour.Action{
		"reimage":    {Long: true, Do: refuseLeaving, Settle: reimageOne},
		"reimageAll": {Long: true, Do: refuseLeaving, Settle: reimageOne},
		"simulateEviction": {Status: 204, Do: func(c *behaviour.Call) (any, error) {
			return nil, evict(c)
		}},
		"retrieveBootDiagnosticsData": {Do: bootDiagnostics},
		"performMaintenance":          {Long: true, Do: refuseLeaving},
		"attachDetachDataDisks":       attachDetach(instanceDisks, "sku.name"),
	}
	for name, t := range transitions() {
		actions[name] = powerAction(t)
	}
	return actions
}

func refuseLeaving(c *behaviour.Call) (any, error) { return nil, transition{}.refusal(c.Old) }

// powerAction changes the power state of one machine.
func powerAction(t transition) behaviour.Action {
	return behaviour.Action{
		Long: true,
		Do: func(c *behaviour.Call) (any, error) {
			if err := t.refusal(c.Old); err != nil {
				return nil, err
			}
			t.begin(c, c.Doc)
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			t.end(c, c.Doc)
			return nil, nil
		},
	}
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
		newOSDisk(w, old, diskOwner(id, behaviour.Text(doc, "instanceId")), doc)
	}
	setPower(w, doc, Running)
}

// applyImage takes over the image of the model and nothing else.
func applyImage(doc, set behaviour.Object) {
	ref := behaviour.Sub(set, profilePath+".storageProfile.imageReference")
	if ref == nil {
		return
	}
	behaviour.Set(doc, "properties.storageProfile.imageReference", behaviour.Clone(ref))
	exactVersion(behaviour.Sub(doc, "properties.storageProfile"), imageOf(doc))
}

// evict does what happens to a spot machine that has to make room.
func evict(c *behaviour.Call) error {
	if !strings.EqualFold(behaviour.Text(c.Old, "properties.priority"), "Spot") {
		return behaviour.Conflict("OperationNotAllowed", "The operation 'simulateEviction' is only allowed on Spot virtual machines; '%s' is not one.", c.ID.Name())
	}
	if strings.EqualFold(behaviour.Text(c.Old, "properties.evictionPolicy"), "Delete") {
		c.Delete(c.ID)
		return nil
	}
	setPower(c.World, c.Doc, Deallocated)
	return nil
}

func bootDiagnostics(c *behaviour.Call) (any, error) {
	if !behaviour.Bool(c.Old, "properties.diagnosticsProfile.bootDiagnostics.enabled") {
		return nil, behaviour.Conflict("OperationNotAllowed", "Boot diagnostics is not enabled for the VM '%s'.", c.ID.Name())
	}
	base := first(strings.TrimSuffix(behaviour.Text(c.Old, "properties.diagnosticsProfile.bootDiagnostics.storageUri"), "/"), c.Host+"/bootdiagnostics")
	return behaviour.Object{
		"consoleScreenshotBlobUri": base + "/" + c.ID.Name() + ".screenshot.bmp",
		"serialConsoleLogBlobUri":  base + "/" + c.ID.Name() + ".serialconsole.log",
	}, nil
}
