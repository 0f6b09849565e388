package compute

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

func virtualMachines() behaviour.Type {
	return behaviour.Type{
		Name:    machineType,
		Style:   behaviour.Compute(),
		Where:   behaviour.Located,
		Own:     []string{runtime, "resources", "properties.vmId", "properties.timeCreated", "properties.instanceView"},
		Fill:    fillMachine,
		Settle:  settleMachine,
		Failed:  failedMachine,
		Removed: removedMachine,
		Show:    showMachine,
		Filter:  filterMachines,
		Actions: machineActions(),
		Views: map[string]func(c *behaviour.Call) (any, error){
			"instanceView": func(c *behaviour.Call) (any, error) { return machineView(c, c.ID, c.Old), nil },
			"vmSizes": func(c *behaviour.Call) (any, error) {
				return behaviour.Object{"value": sizeList()}, nil
			},
		},
	}
}

func machineView(w behaviour.World, id azure.ID, doc behaviour.Object) behaviour.Object {
	view := instanceView(doc)
	var extensions []behaviour.Object
	for _, extension := range w.List(id, machineExtensionType) {
		extensions = append(extensions, extension)
	}
	if views := extensionViews(extensions); len(views) > 0 {
		view["extensions"] = views
	}
	if domain, ok := behaviour.Int(doc, runtime+".faultDomain"); ok {
		view["platformFaultDomain"] = domain
		if behaviour.At(doc, "properties.availabilitySet") != nil {
			view["platformUpdateDomain"] = number(doc, runtime+".updateDomain")
		}
	}
	return view
}

func showMachine(c *behaviour.Call, view behaviour.Object) {
	if c.Expands("instanceView") || strings.EqualFold(c.Query.Get("statusOnly"), "true") {
		if stored, ok := c.Get(c.ID); ok {
			behaviour.Set(view, "properties.instanceView", machineView(c.World, c.ID, stored))
		}
	}
	showExtensions(c, view)
	delete(view, runtime)
}

func fillMachine(c *behaviour.Call) error {
	if err := wellFormed(c); err != nil {
		return err
	}
	if c.Old != nil {
		if err := (transition{}).refusal(c.Old); err != nil {
			return err
		}
		keepRest(c)
		if err := unchangeable(c, "zones", "properties.osProfile.computerName", "properties.osProfile.adminUsername", "properties.storageProfile.osDisk.name", "properties.availabilitySet"); err != nil {
			return err
		}
		c.Touch(c.ID) // every write of a machine counts, even one that says nothing new
	}
	if err := checkPlace(c); err != nil {
		return err
	}
	size, err := sizeOf(behaviour.Text(c.Doc, "properties.hardwareProfile.vmSize"), "vmSize")
	if err != nil {
		return err
	}
	fillIdentity(c)
	behaviour.Default(c.Doc, "properties.vmId", c.GUID())
	behaviour.Default(c.Doc, "properties.timeCreated", behaviour.Stamp(c.Now()))
	behaviour.Default(c.Doc, runtime+".power", Running)
	if err := fillMachineStorage(c, size); err != nil {
		return err
	}
	if err := fillMachineNetwork(c, size); err != nil {
		return err
	}
	return placeMachine(c)
}

func fillMachineStorage(c *behaviour.Call, size catalog.Size) error {
	model := behaviour.Sub(c.Doc, "properties")
	image := fillOSDisk(c, model, size)
	storage := behaviour.Sub(model, "storageProfile")
	exactVersion(storage, image)
	behaviour.Default(storage, "osDisk.name", c.ID.Name()+"_OsDisk_1_"+hex32(c))
	behaviour.Default(storage, "osDisk.deleteOption", "Detach")
	if behaviour.Text(storage, "osDisk.createOption") != "Attach" {
		if err := required(c.Doc, "properties.osProfile", "osProfile"); err != nil {
			return err
		}
		behaviour.Default(model, "osProfile.computerName", c.ID.Name())
		fillOSProfile(model, image.OS == "Windows", true)
	}
	if c.Old == nil {
		if err := checkOSDisk(c, storage); err != nil {
			return err
		}
	}
	d := machineDisks(c.World, c.ID, c.Doc)
	d.old, d.size = c.Old, size
	return d.attach()
}

// checkOSDisk refuses a name that another machine's disk has.
func checkOSDisk(c *behaviour.Call, storage behaviour.Object) error {
	id := behaviour.RefID(storage, "osDisk.managedDisk")
	if id == "" {
		id = groupOf(c.ID).Resource(diskType, behaviour.Text(storage, "osDisk.name"))
	}
	disk, exists := c.Get(id)
	attach := behaviour.Text(storage, "osDisk.createOption") == "Attach"
	switch by := behaviour.Text(disk, "managedBy"); {
	case exists && by != "":
		return behaviour.Conflict("ConflictingUserInput", "Disk '%s' cannot be attached as the disk is already owned by VM '%s'.", id, by)
	case exists && !attach:
		return behaviour.Conflict("ConflictingUserInput", "Disk %s already exists in resource group %s. Only CreateOption.Attach is supported.", id.Name(), strings.ToUpper(id.Group()))
	case !exists && attach:
		return behaviour.Refusal(404, "NotFound", "Disk %s is not found.", id.Name())
	}
	return nil
}

func machineDisks(w behaviour.World, id azure.ID, doc behaviour.Object) dataDisks {
	return dataDisks{world: w, owner: id, machine: id.Name(), doc: doc}
}

// fillMachineNetwork checks the interfaces that a machine is to have, and makes
// those that it only describes.
func fillMachineNetwork(c *behaviour.Call, size catalog.Size) error {
	if configs := behaviour.Objects(c.Doc, "properties.networkProfile.networkInterfaceConfigurations"); len(configs) > 0 && c.Old == nil {
		if err := makeInterfaces(c, configs); err != nil {
			return err
		}
	}
	refs := behaviour.Objects(c.Doc, "properties.networkProfile.networkInterfaces")
	if len(refs) == 0 {
		return behaviour.Invalid("InvalidParameter", "Required parameter 'networkProfile' is missing (null).").At("networkProfile")
	}
	if len(refs) > size.NetworkInterfaces {
		return behaviour.Invalid("InvalidParameter", "The number of network interfaces for virtual machine %s exceeds the maximum allowed for the virtual machine size %s: %d are asked for, %d are allowed.", c.ID.Name(), size.Name, len(refs), size.NetworkInterfaces).At("networkProfile")
	}
	primaries := 0
	for _, ref := range refs {
		if behaviour.Bool(ref, "properties.primary") {
			primaries++
		}
		if err := attachable(c, azure.ID(behaviour.Text(ref, "id"))); err != nil {
			return err
		}
	}
	if len(refs) > 1 && primaries != 1 {
		return behaviour.Invalid("VirtualMachineMustHaveOneNetworkInterfaceAsPrimary", "Virtual machine %s must have one network interface set as the primary; %d are.", c.ID.Name(), primaries).At("networkProfile")
	}
	return nil
}

// attachable refuses an interface that is not there or is another machine's.
func attachable(c *behaviour.Call, nic azure.ID) error {
	if _, ok := c.Get(nic); !ok || !nic.Is(networkIface) {
		return behaviour.InvalidReference(c.ID, nic)
	}
	for _, r := range c.Referrers(nic) {
		if r.Path == "properties.networkProfile.networkInterfaces" && !r.Resource.Equal(c.ID) {
			return behaviour.Invalid("NicInUse", "Network Interface %s is used by existing resource %s. In order to use the network interface, it must be dissociated from the resource. To learn more, see aka.ms/deletenic.", nic, r.Resource)
		}
	}
	return nil
}

// placeMachine checks what a machine is put into and gives it its fault domain.
func placeMachine(c *behaviour.Call) error {
	if set := behaviour.RefID(c.Doc, "properties.availabilitySet"); set != "" {
		doc, ok := c.Get(set)
		if !ok {
			return behaviour.InvalidReference(c.ID, set)
		}
		return spread(c, set, number(doc, "properties.platformFaultDomainCount"), number(doc, "properties.platformUpdateDomainCount"))
	}
	set := behaviour.RefID(c.Doc, "properties.virtualMachineScaleSet")
	if set == "" {
		return nil
	}
	doc, ok := c.Get(set)
	if !ok {
		return behaviour.InvalidReference(c.ID, set)
	}
	if !flexible(doc) {
		return behaviour.Invalid("InvalidParameter", "Virtual Machine '%s' cannot be added to Virtual Machine Scale Set '%s' because its orchestrationMode is not Flexible.", c.ID.Name(), set.Name()).At("virtualMachineScaleSet")
	}
	if c.Old == nil {
		joined(c, set)
	}
	return spread(c, set, max(number(doc, "properties.platformFaultDomainCount"), 1), 1)
}

// joined counts a machine that a client puts into a flexible scale set.
func joined(c *behaviour.Call, set azure.ID) {
	c.Edit(set, func(doc behaviour.Object) {
		if behaviour.At(doc, capacityPath) != nil {
			behaviour.Set(doc, capacityPath, number(doc, capacityPath)+1)
		}
	})
}

func spread(c *behaviour.Call, set azure.ID, faultDomains, updateDomains int) error {
	if behaviour.At(c.Doc, runtime+".faultDomain") != nil {
		return nil
	}
	count := 0
	for _, r := range c.Referrers(set) {
		if r.Resource.Is(machineType) && !r.Resource.Equal(c.ID) {
			count++
		}
	}
	behaviour.Set(c.Doc, runtime+".faultDomain", count%max(faultDomains, 1))
	behaviour.Set(c.Doc, runtime+".updateDomain", count%max(updateDomains, 1))
	return nil
}

// settleMachine ends a write: the machine has its OS disk, and the disks that were
// to leave it have left.
func settleMachine(c *behaviour.Call) error {
	os := behaviour.Sub(c.Doc, "properties.storageProfile.osDisk")
	ephemeral := behaviour.Text(os, "diffDiskSettings.option") != ""
	if behaviour.Text(os, "managedDisk.id") == "" && behaviour.At(os, "vhd") == nil && !ephemeral {
		id := groupOf(c.ID).Resource(diskType, behaviour.Text(os, "name"))
		behaviour.Set(os, "managedDisk.id", string(id))
		newOSDisk(c.World, id, c.ID, c.Doc)
	} else if id := behaviour.RefID(os, "managedDisk"); id != "" {
		c.Edit(id, func(disk behaviour.Object) {
			if behaviour.Text(disk, "managedBy") == "" {
				disk["managedBy"] = string(c.ID)
				behaviour.Set(disk, "properties.diskState", "Attached")
			}
		})
	}
	machineDisks(c.World, c.ID, c.Doc).detach()
	return nil
}

// removedMachine leaves disks and interfaces behind, or takes along those that say
// so. The place in a flexible scale set is given back.
func removedMachine(c *behaviour.Call) error {
	machineDisks(c.World, c.ID, c.Old).drop("Detach")
	each(c.Old, "properties.networkProfile.networkInterfaces", func(ref behaviour.Object) {
		if strings.EqualFold(behaviour.Text(ref, "properties.deleteOption"), "Delete") {
			c.Delete(azure.ID(behaviour.Text(ref, "id")))
		}
	})
	set := behaviour.RefID(c.Old, "properties.virtualMachineScaleSet")
	if set == "" || behaviour.Bool(c.Old, runtime+".released") {
		return nil
	}
	if doc, ok := c.Get(set); ok && state(doc) != deleting && number(doc, capacityPath) > 0 {
		c.Edit(set, func(doc behaviour.Object) { behaviour.Set(doc, capacityPath, number(doc, capacityPath)-1) })
	}
	return nil
}

func machineActions() map[string]behaviour.Action {
	actions := map[string]behaviour.Action{
		"simulateEviction":            {Status: 204, Do: func(c *behaviour.Call) (any, error) { return nil, evict(c) }},
		"retrieveBootDiagnosticsData": {Do: bootDiagnostics},
		"performMaintenance":          {Long: true, Do: refuseLeaving},
		"reimage":                     {Long: true, Do: refuseLeaving},
		"generalize":                  {Do: generalize},
		"attachDetachDataDisks":       attachDetach(machineDisks, "properties.hardwareProfile.vmSize"),
	}
	for name, t := range transitions() {
		actions[name] = powerAction(t)
	}
	return actions
}

// generalize marks a machine as one that images are made from; it cannot start again.
func generalize(c *behaviour.Call) (any, error) {
	if power := PowerOf(c.Old); !slices.Contains([]string{Stopped, Deallocated}, power) {
		return nil, behaviour.Conflict("OperationNotAllowed", "The Virtual Machine '%s' cannot be generalized while it is %s. Stop it first.", c.ID.Name(), power)
	}
	behaviour.Set(c.Doc, runtime+".generalized", true)
	return nil, nil
}

func sizeList() []any {
	const mib = 1024
	list := []any{}
	for _, s := range catalog.Sizes() {
		list = append(list, behaviour.Object{
			"name": s.Name, "numberOfCores": s.VCPUs, "memoryInMB": int(s.MemoryGiB * mib), "maxDataDiskCount": s.DataDisks,
			"osDiskSizeInMB": 1023 * mib, "resourceDiskSizeInMB": s.TempGiB * mib,
		})
	}
	return list
}
