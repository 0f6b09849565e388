package vm

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

func virtualMachines() behaviour.Type {
	return behaviour.Type{
		Name:    schema.MachineType,
		Style:   behaviour.Compute(),
		Where:   behaviour.Located,
		Own:     []string{schema.Runtime, "resources", "properties.vmId", "properties.timeCreated", "properties.instanceView"},
		Fill:    fillMachine,
		Settle:  settleMachine,
		Failed:  FailedMachine,
		Removed: removedMachine,
		Show:    showMachine,
		Filter:  FilterMachines,
		Actions: machineActions(),
		Views: map[string]func(c *behaviour.Call) (any, error){
			"instanceView": func(c *behaviour.Call) (any, error) { return machineView(c, c.ID, c.Old), nil },
			"vmSizes": func(c *behaviour.Call) (any, error) {
				return behaviour.Object{"value": SizeList()}, nil
			},
		},
	}
}

func machineView(w behaviour.World, id azure.ID, doc behaviour.Object) behaviour.Object {
	view := InstanceView(doc)
	var extensions []behaviour.Object
	for _, extension := range w.List(id, MachineExtensionType) {
		extensions = append(extensions, extension)
	}
	if views := ExtensionViews(extensions); len(views) > 0 {
		view["extensions"] = views
	}
	if domain, ok := behaviour.Int(doc, schema.Runtime+".faultDomain"); ok {
		view["platformFaultDomain"] = domain
		if behaviour.At(doc, "properties.availabilitySet") != nil {
			view["platformUpdateDomain"] = schema.Number(doc, schema.Runtime+".updateDomain")
		}
	}
	return view
}

func showMachine(c *behaviour.Call, view behaviour.Object) {
	if c.Expands("instanceView") || strings.EqualFold(c.Query.Get("statusonly"), "true") {
		if stored, ok := c.Get(c.ID); ok {
			behaviour.Set(view, "properties.instanceView", machineView(c.World, c.ID, stored))
		}
	}
	showExtensions(c, view)
	schema.ShowUserData(c, view, "properties.userData")
	delete(view, schema.Runtime)
}

func fillMachine(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	behaviour.PlaceInZone(c)
	if c.Old != nil {
		if err := CheckStays(c.Old); err != nil {
			return err
		}
		schema.KeepRest(c)
		if err := schema.CheckUnchanged(c, "zones", "properties.osProfile.computerName", "properties.osProfile.adminUsername",
			"properties.storageProfile.osDisk.name", "properties.availabilitySet"); err != nil {
			return err
		}
		c.Touch(c.ID) // every write changes the etag, even one without a change
	}
	if err := schema.CheckZones(c); err != nil {
		return err
	}
	size, err := SizeOf(behaviour.Text(c.Doc, "properties.hardwareProfile.vmSize"), "vmSize")
	if err != nil {
		return err
	}
	if c.Old == nil {
		err := CheckQuota(c, azure.SubscriptionID(c.ID.Subscription()), behaviour.Text(c.Doc, "location"), size.Name,
			behaviour.Text(c.Doc, "properties.priority"), 1)
		if err != nil {
			return err
		}
	}
	behaviour.Default(c.Doc, "properties.vmId", c.GUID())
	behaviour.Default(c.Doc, "properties.timeCreated", behaviour.Stamp(c.Now()))
	behaviour.Default(c.Doc, schema.Runtime+".power", Running)
	if err := fillMachineStorage(c, size); err != nil {
		return err
	}
	BeginGuest(c, c.Doc)
	if err := fillMachineNetwork(c, size); err != nil {
		return err
	}
	return placeMachine(c)
}

func fillMachineStorage(c *behaviour.Call, size catalog.Size) error {
	model := behaviour.Sub(c.Doc, "properties")
	image := FillOSDisk(c, model, size)
	storage := behaviour.Sub(model, "storageProfile")
	ExactVersion(storage, image)
	behaviour.Default(storage, "osDisk.name", OSDiskName(c, c.ID.Name(), image))
	behaviour.Default(storage, "osDisk.deleteOption", "Detach")
	if behaviour.Text(storage, "osDisk.createOption") != "Attach" && !isSpecialized(c, storage) {
		if err := schema.Required(c.Doc, "properties.osProfile", "osProfile"); err != nil {
			return err
		}
		behaviour.Default(model, "osProfile.computerName", c.ID.Name())
		if err := CheckOSProfile(model); err != nil {
			return err
		}
		KeepCustomData(c.Doc, model)
		FillOSProfile(model, image.OS == "Windows", true)
	}
	if c.Old == nil {
		if err := checkOSDisk(c, storage); err != nil {
			return err
		}
	}
	if err := PlaceOSDisk(c, storage, behaviour.Sub(c.Old, "properties.storageProfile"), size, image); err != nil {
		return err
	}
	d := machineDisks(c.World, c.ID, c.Doc)
	d.Old, d.Size = c.Old, size
	return d.Attach()
}

// isSpecialized reports whether a machine is made from a specialized image of a gallery, which has its own users.
func isSpecialized(c *behaviour.Call, storage behaviour.Object) bool {
	image := behaviour.RefID(storage, "imageReference")
	for image.Is("Microsoft.Compute/galleries/images/versions") || image.Is("Microsoft.Compute/galleries/images") {
		if doc, there := c.Get(image); there && behaviour.Text(doc, "properties.osState") == "Specialized" {
			return true
		}
		image = image.Parent()
	}
	return false
}

// checkOSDisk refuses the name or the id of another machine's disk.
func checkOSDisk(c *behaviour.Call, storage behaviour.Object) error {
	id := behaviour.RefID(storage, "osDisk.managedDisk")
	if id == "" {
		id = schema.GroupOf(c.ID).Resource(schema.DiskType, behaviour.Text(storage, "osDisk.name"))
	}
	disk, exists := c.Get(id)
	attach := behaviour.Text(storage, "osDisk.createOption") == "Attach"
	switch by := behaviour.Text(disk, "managedBy"); {
	case exists && by != "":
		return behaviour.Conflict("ConflictingUserInput", "Disk '%s' cannot be attached as the disk is already owned by VM '%s'.", id, by)
	case exists && !attach:
		return behaviour.Conflict("ConflictingUserInput",
			"Disk %s already exists in resource group %s. Only CreateOption.Attach is supported.", id.Name(), strings.ToUpper(id.Group()))
	case !exists && attach:
		return behaviour.Refusal(404, "NotFound", "Disk %s is not found.", id.Name())
	}
	return nil
}

func machineDisks(w behaviour.World, id azure.ID, doc behaviour.Object) manageddisk.DataDisks {
	return manageddisk.DataDisks{World: w, Owner: id, Machine: id.Name(), Doc: doc}
}

// fillMachineNetwork checks the interfaces of a machine, and creates the interfaces that the machine only describes.
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
		return behaviour.Invalid("InvalidParameter",
			"The number of network interfaces for virtual machine %s exceeds the maximum allowed for the virtual machine size %s: "+
				"%d are asked for, %d are allowed.", c.ID.Name(), size.Name, len(refs), size.NetworkInterfaces).At("networkProfile")
	}
	primaries := 0
	for _, ref := range refs {
		nic, _ := c.Get(azure.ID(behaviour.Text(ref, "id")))
		if behaviour.Bool(nic, "properties.enableAcceleratedNetworking") && !size.Accelerated {
			return notAccelerated(c.ID, size)
		}
		if behaviour.Bool(ref, "properties.primary") {
			primaries++
		}
		if err := attachable(c, azure.ID(behaviour.Text(ref, "id"))); err != nil {
			return err
		}
	}
	if len(refs) > 1 && primaries != 1 {
		return behaviour.Invalid("VirtualMachineMustHaveOneNetworkInterfaceAsPrimary",
			"Virtual machine %s must have one network interface set as the primary; %d are.", c.ID.Name(), primaries).At("networkProfile")
	}
	return nil
}

// notAccelerated refuses accelerated networking for a machine of a size without it.
func notAccelerated(machine azure.ID, size catalog.Size) error {
	var allowed []string
	for _, s := range catalog.Sizes() {
		if s.Accelerated {
			allowed = append(allowed, s.Name)
		}
	}
	return behaviour.Invalid("VMSizeIsNotPermittedToEnableAcceleratedNetworking",
		"Virtual Machine size %s is not in the allowed list of VM sizes for accelerated networking to be enabled on Network Interface %s. "+
			"Allowed sizes: %s.", size.Name, machine, strings.Join(allowed, ", "))
}

// attachable refuses an interface that does not exist or is attached to another machine.
func attachable(c *behaviour.Call, nic azure.ID) error {
	if _, ok := c.Get(nic); !ok || !nic.Is(schema.InterfaceType) {
		return behaviour.InvalidReference(c.ID, nic)
	}
	for _, r := range c.Referrers(nic) {
		if r.Path == "properties.networkProfile.networkInterfaces" && !r.Resource.Equal(c.ID) {
			return behaviour.Invalid("NicInUse",
				"Network Interface %s is used by existing resource %s. In order to use the network interface, it must be "+
					"dissociated from the resource. To learn more, see aka.ms/deletenic.", nic, r.Resource)
		}
	}
	return nil
}

// placeMachine checks the availability set or the scale set of a machine, and chooses the machine's fault domain.
func placeMachine(c *behaviour.Call) error {
	if set := behaviour.RefID(c.Doc, "properties.availabilitySet"); set != "" {
		doc, ok := c.Get(set)
		if !ok {
			return behaviour.InvalidReference(c.ID, set)
		}
		return spread(c, set, schema.Number(doc, "properties.platformFaultDomainCount"),
			schema.Number(doc, "properties.platformUpdateDomainCount"))
	}
	set := behaviour.RefID(c.Doc, "properties.virtualMachineScaleSet")
	if set == "" {
		return nil
	}
	doc, ok := c.Get(set)
	if !ok {
		return behaviour.InvalidReference(c.ID, set)
	}
	if !schema.IsFlexible(doc) {
		return behaviour.Invalid("InvalidParameter",
			"Virtual Machine '%s' cannot be added to Virtual Machine Scale Set '%s' because its orchestrationMode is not Flexible.",
			c.ID.Name(), set.Name()).At("virtualMachineScaleSet")
	}
	if c.Old == nil {
		joined(c, set)
	}
	return spread(c, set, max(schema.Number(doc, "properties.platformFaultDomainCount"), 1), 1)
}

// joined adds a machine to the capacity of a flexible scale set.
func joined(c *behaviour.Call, set azure.ID) {
	c.Edit(set, func(doc behaviour.Object) {
		if behaviour.At(doc, schema.CapacityPath) != nil {
			behaviour.Set(doc, schema.CapacityPath, schema.Number(doc, schema.CapacityPath)+1)
		}
	})
}

func spread(c *behaviour.Call, set azure.ID, faultDomains, updateDomains int) error {
	if behaviour.At(c.Doc, schema.Runtime+".faultDomain") != nil {
		return nil
	}
	count := 0
	for _, r := range c.Referrers(set) {
		if r.Resource.Is(schema.MachineType) && !r.Resource.Equal(c.ID) {
			count++
		}
	}
	behaviour.Set(c.Doc, schema.Runtime+".faultDomain", count%max(faultDomains, 1))
	behaviour.Set(c.Doc, schema.Runtime+".updateDomain", count%max(updateDomains, 1))
	return nil
}

// settleMachine ends a write: it creates or attaches the OS disk and detaches the marked data disks.
func settleMachine(c *behaviour.Call) error {
	os := behaviour.Sub(c.Doc, "properties.storageProfile.osDisk")
	ephemeral := behaviour.Text(os, "diffDiskSettings.option") != ""
	if behaviour.Text(os, "managedDisk.id") == "" && behaviour.At(os, "vhd") == nil && !ephemeral {
		id := schema.GroupOf(c.ID).Resource(schema.DiskType, behaviour.Text(os, "name"))
		behaviour.Set(os, "managedDisk.id", string(id))
		manageddisk.NewOSDisk(c.World, id, c.ID, c.Doc)
	} else if id := behaviour.RefID(os, "managedDisk"); id != "" {
		c.Edit(id, func(disk behaviour.Object) {
			if behaviour.Text(disk, "managedBy") == "" {
				disk["managedBy"] = string(c.ID)
				behaviour.Set(disk, "properties.diskState", "Attached")
			}
		})
	}
	machineDisks(c.World, c.ID, c.Doc).Detach()
	return nil
}

// removedMachine deletes or detaches the machine's disks and interfaces, as their delete options say. It takes the
// machine off the capacity of a flexible scale set.
func removedMachine(c *behaviour.Call) error {
	machineDisks(c.World, c.ID, c.Old).Drop("Detach")
	for _, ref := range behaviour.Objects(c.Old, "properties.networkProfile.networkInterfaces") {
		if strings.EqualFold(behaviour.Text(ref, "properties.deleteOption"), "Delete") {
			c.Delete(azure.ID(behaviour.Text(ref, "id")))
		}
	}
	set := behaviour.RefID(c.Old, "properties.virtualMachineScaleSet")
	if set == "" || behaviour.Bool(c.Old, schema.Runtime+".released") {
		return nil
	}
	if doc, ok := c.Get(set); ok && schema.State(doc) != schema.Deleting && schema.Number(doc, schema.CapacityPath) > 0 {
		c.Edit(set, func(doc behaviour.Object) {
			behaviour.Set(doc, schema.CapacityPath, schema.Number(doc, schema.CapacityPath)-1)
		})
	}
	return nil
}

func machineActions() map[string]behaviour.Action {
	actions := map[string]behaviour.Action{
		"simulateEviction":            {Status: 204, Do: func(c *behaviour.Call) (any, error) { return nil, Evict(c) }},
		"retrieveBootDiagnosticsData": {Do: BootDiagnostics},
		"performMaintenance":          {Long: true, Do: RefuseLeaving},
		"reimage":                     {Long: true, Do: RefuseLeaving},
		"generalize":                  {Do: generalize},
		"capture":                     capture(),
		"runCommand":                  RunCommand(),
		"assessPatches":               assessPatches(),
		"convertToManagedDisks":       {Long: true, Do: RefuseLeaving},
		"attachDetachDataDisks":       manageddisk.AttachDetach(machineDisks, "properties.hardwareProfile.vmSize", CheckStays),
	}
	for name, t := range Transitions() {
		actions[name] = PowerAction(t)
	}
	return actions
}

// generalize marks a machine as the source of images. A generalized machine cannot start.
func generalize(c *behaviour.Call) (any, error) {
	if power := PowerOf(c.Old); !slices.Contains([]string{Stopped, Deallocated}, power) {
		return nil, behaviour.Conflict("OperationNotAllowed",
			"The Virtual Machine '%s' cannot be generalized while it is %s. Stop it first.", c.ID.Name(), power)
	}
	behaviour.Set(c.Doc, schema.Runtime+".generalized", true)
	return nil, nil
}

func SizeList() []any {
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
