package scaleset

import (
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
	"kaz/internal/localazure/core/catalog"
)

func scaleSets() behaviour.Type {
	return behaviour.Type{
		Name:    schema.ScaleSetType,
		Style:   behaviour.Compute(),
		Where:   behaviour.Located,
		Own:     []string{schema.Runtime, "properties.uniqueId", "properties.timeCreated"},
		Fill:    fillScaleSet,
		Settle:  settleScaleSet,
		Failed:  failedScaleSet,
		Removed: removedScaleSet,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			schema.ShowUserData(c, view, "properties.virtualMachineProfile.userData")
			delete(view, schema.Runtime)
		},
		Actions: scaleSetActions(),
		Views: map[string]func(c *behaviour.Call) (any, error){
			"instanceView": scaleSetView,
			"skus":         scaleSetSKUs,
		},
	}
}

// maxCapacity is Azure's limit on a scale set. smallCapacity is the limit of a scale set with a single placement group.
const (
	maxCapacity   = 1000
	smallCapacity = 100
)

func fillScaleSet(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	if schema.State(c.Old) == schema.Deleting {
		return behaviour.Conflict("OperationNotAllowed",
			"Operation is not allowed on Virtual Machine Scale Set '%s' since it is marked for deletion.", c.ID.Name())
	}
	schema.KeepRest(c)
	if err := schema.CheckZones(c); err != nil {
		return err
	}
	if err := fillScaleSetModel(c); err != nil {
		return err
	}
	if err := schema.CheckUnchanged(c, "properties.orchestrationMode"); err != nil {
		return err
	}
	if err := checkCapacity(c); err != nil {
		return err
	}
	countModelChanges(c)
	return scale(c)
}

func fillScaleSetModel(c *behaviour.Call) error {
	behaviour.Default(c.Doc, "properties.orchestrationMode", "Uniform")
	behaviour.Default(c.Doc, "properties.uniqueId", c.GUID())
	behaviour.Default(c.Doc, "properties.timeCreated", behaviour.Stamp(c.Now()))
	fillPlacement(c)
	model := behaviour.Sub(c.Doc, schema.ProfilePath)
	if model == nil {
		if schema.IsFlexible(c.Doc) && behaviour.At(c.Doc, "sku.name") == nil {
			return nil // a flexible set may be empty until machines join it
		}
		return schema.Required(c.Doc, schema.ProfilePath, "virtualMachineProfile")
	}
	size, err := vm.SizeOf(behaviour.Text(c.Doc, "sku.name"), "sku.name")
	if err != nil {
		return err
	}
	behaviour.Default(c.Doc, "sku.tier", size.Tier())
	behaviour.Default(c.Doc, schema.CapacityPath, 0)
	behaviour.Default(model, "timeCreated", behaviour.Stamp(c.Now()))
	behaviour.Default(model, "storageProfile.osDisk.caching", "None") // a machine of its own has ReadWrite
	image := vm.FillOSDisk(c, model, size)
	old := behaviour.Sub(c.Old, schema.ProfilePath+".storageProfile")
	if err := vm.PlaceOSDisk(c, behaviour.Sub(model, "storageProfile"), old, size, image); err != nil {
		return err
	}
	for _, disk := range behaviour.Objects(model, "storageProfile.dataDisks") {
		behaviour.Default(disk, "caching", "None")
		behaviour.Default(disk, "managedDisk.storageAccountType", manageddisk.DefaultDiskSKU(size))
	}
	behaviour.Default(model, "osProfile.computerNamePrefix", c.ID.Name())
	if err := vm.CheckOSProfile(model); err != nil {
		return err
	}
	vm.KeepCustomData(c.Doc, model)
	vm.FillOSProfile(model, image.OS == "Windows", false)
	if err := checkPrefix(model, image.OS); err != nil {
		return err
	}
	fillUpgradePolicy(c.Doc)
	if err := fillInterfaceModels(c, schema.NetworkPath); err != nil {
		return err
	}
	return checkAccelerated(c, size)
}

// checkAccelerated refuses accelerated networking for a size without it.
func checkAccelerated(c *behaviour.Call, size catalog.Size) error {
	for _, config := range behaviour.Objects(c.Doc, schema.NetworkPath+".networkInterfaceConfigurations") {
		if behaviour.Bool(config, "properties.enableAcceleratedNetworking") && !size.Accelerated {
			return behaviour.Invalid("VMSizeIsNotPermittedToEnableAcceleratedNetworkingForVmss",
				"Virtual machine at index 0 of VM scale set %s has size %s, which is not compatible with enabling accelerated networking "+
					"in the network profile on the scale set.", c.ID, size.Name)
		}
	}
	return nil
}

func fillPlacement(c *behaviour.Call) {
	zones := len(behaviour.Array(c.Doc, "zones"))
	if schema.IsFlexible(c.Doc) {
		behaviour.Default(c.Doc, "properties.platformFaultDomainCount", 1)
		behaviour.Default(c.Doc, "properties.singlePlacementGroup", false)
		return
	}
	domains := 5
	if zones > 1 {
		domains = 1
	}
	behaviour.Default(c.Doc, "properties.platformFaultDomainCount", domains)
	behaviour.Default(c.Doc, "properties.singlePlacementGroup", zones <= 1)
	behaviour.Default(c.Doc, "properties.overprovision", true)
	behaviour.Default(c.Doc, "properties.doNotRunExtensionsOnOverprovisionedVMs", false)
	if zones > 1 {
		behaviour.Default(c.Doc, "properties.zoneBalance", false)
	}
}

func fillUpgradePolicy(doc behaviour.Object) {
	behaviour.Default(doc, "properties.upgradePolicy.mode", "Manual")
	if auto := behaviour.Sub(doc, "properties.upgradePolicy.automaticOSUpgradePolicy"); auto != nil {
		behaviour.Default(auto, "enableAutomaticOSUpgrade", false)
		behaviour.Default(auto, "useRollingUpgradePolicy", false)
		behaviour.Default(auto, "disableAutomaticRollback", false)
	}
}

// maxWindowsPrefix is the longest prefix that leaves room for six digits in a Windows computer name of 15 characters.
const maxWindowsPrefix = 9

func checkPrefix(model behaviour.Object, os string) error {
	prefix := behaviour.Text(model, "osProfile.computerNamePrefix")
	if os == "Windows" && len(prefix) > maxWindowsPrefix {
		return behaviour.Invalid("InvalidParameter",
			"Windows computer name prefix cannot be more than %d characters long, be entirely numeric, or contain the following "+
				"characters: ` ~ ! @ # $ %% ^ & * ( ) = + _ [ ] { } \\ | ; : . ' \" , < > / ?.", maxWindowsPrefix).At("computerNamePrefix")
	}
	return nil
}

func checkCapacity(c *behaviour.Call) error {
	capacity, ok := behaviour.Int(c.Doc, schema.CapacityPath)
	most := maxCapacity
	if behaviour.Bool(c.Doc, "properties.singlePlacementGroup") {
		most = smallCapacity
	}
	if behaviour.At(c.Doc, schema.CapacityPath) != nil && (!ok || capacity < 0 || capacity > most) {
		return behaviour.Invalid("InvalidParameter",
			"The value '%v' of parameter 'sku.capacity' is out of range. Value must be between 0 and %d for virtual machine scale "+
				"set '%s' (singlePlacementGroup is %v).",
			behaviour.At(c.Doc, schema.CapacityPath), most, c.ID.Name(),
			behaviour.Bool(c.Doc, "properties.singlePlacementGroup")).At("sku.capacity")
	}
	return nil
}

// fillInterfaceModels completes the network interfaces of a model.
func fillInterfaceModels(c *behaviour.Call, path string) error {
	configs := behaviour.Objects(c.Doc, path+".networkInterfaceConfigurations")
	if len(configs) == 0 {
		return behaviour.Invalid("InvalidParameter",
			"Required parameter 'networkInterfaceConfigurations' is missing (null).").At("networkInterfaceConfigurations")
	}
	for _, config := range configs {
		if err := schema.CheckName(config, "networkInterfaceConfiguration.name"); err != nil {
			return err
		}
		behaviour.Default(config, "properties.primary", len(configs) == 1)
		behaviour.Default(config, "properties.enableAcceleratedNetworking", false)
		behaviour.Default(config, "properties.disableTcpStateTracking", false)
		behaviour.Default(config, "properties.dnsSettings.dnsServers", []any{})
		behaviour.Default(config, "properties.enableIPForwarding", false)
		if err := fillAddressModels(c, config); err != nil {
			return err
		}
	}
	primaries := slices.DeleteFunc(configs, func(o behaviour.Object) bool { return !behaviour.Bool(o, "properties.primary") })
	if len(primaries) != 1 {
		return behaviour.Invalid("InvalidParameter",
			"Virtual Machine Scale Set %s must have exactly one primary network interface configuration; it has %d.", c.ID.Name(),
			len(primaries)).At("networkInterfaceConfigurations")
	}
	return checkPoolVersions(c, configs)
}

func fillAddressModels(c *behaviour.Call, config behaviour.Object) error {
	if group := behaviour.RefID(config, "properties.networkSecurityGroup"); group != "" {
		if _, ok := c.Get(group); !ok {
			return behaviour.InvalidReference(c.ID, group)
		}
	}
	addresses := behaviour.Objects(config, "properties.ipConfigurations")
	if len(addresses) == 0 {
		return behaviour.Invalid("InvalidParameter", "Required parameter 'ipConfigurations' is missing (null).").At("ipConfigurations")
	}
	for _, address := range addresses {
		if err := schema.CheckName(address, "ipConfiguration.name"); err != nil {
			return err
		}
		if public := behaviour.Sub(address, "properties.publicIPAddressConfiguration"); public != nil {
			if err := schema.CheckName(public, "publicIPAddressConfiguration.name"); err != nil {
				return err
			}
		}
		behaviour.Default(address, "properties.privateIPAddressVersion", "IPv4")
		subnet := behaviour.RefID(address, "properties.subnet")
		if subnet == "" {
			return behaviour.Invalid("InvalidParameter", "Required parameter 'subnet' of ipConfiguration '%s' is missing (null).",
				behaviour.Text(address, "name")).At("subnet")
		}
		if _, ok := c.Get(subnet); !ok {
			return behaviour.InvalidReference(c.ID, subnet)
		}
		if err := loadbalancer.CheckPools(c.World, c.ID, loadbalancer.PoolsOf(address)); err != nil {
			return err
		}
	}
	return nil
}

// countModelChanges counts the changes of the model, so that instances can tell whether they have the latest. The network has
// its own count, because an instance can have its own network.
func countModelChanges(c *behaviour.Call) {
	for counter, first := range map[string]int{"next": 0, "model": 1, "network": 1} {
		behaviour.Default(c.Doc, schema.Runtime+"."+counter, first)
	}
	if c.Old == nil {
		return
	}
	if c.Changed(schema.NetworkPath) {
		behaviour.Set(c.Doc, schema.Runtime+".network", schema.Number(c.Doc, schema.Runtime+".network")+1)
	}
	rest := func(doc behaviour.Object) behaviour.Object {
		model := behaviour.Clone(behaviour.Sub(doc, schema.ProfilePath))
		delete(model, "networkProfile")
		return behaviour.Object{"model": model, "size": behaviour.Text(doc, "sku.name")}
	}
	if !behaviour.Equal(rest(c.Old), rest(c.Doc)) {
		behaviour.Set(c.Doc, schema.Runtime+".model", schema.Number(c.Doc, schema.Runtime+".model")+1)
	}
}

// settleScaleSet ends a write: it completes new instances, deletes marked ones and, unless the upgrade policy is
// Manual, applies the latest model to all.
func settleScaleSet(c *behaviour.Call) error {
	if err := settleMembers(c, c.Doc); err != nil {
		return err
	}
	if err := awaitScripts(c); err != nil {
		return err
	}
	if schema.IsFlexible(c.Doc) || strings.EqualFold(behaviour.Text(c.Doc, "properties.upgradePolicy.mode"), "Manual") {
		return nil
	}
	return upgrade(c, c.Doc, allMembers(c.World, c.ID))
}

// awaitScripts waits until the extensions of all machines that boot have run.
func awaitScripts(c *behaviour.Call) error {
	var waiting error
	for _, id := range members(c.World, c.Doc, c.ID) {
		doc, _ := c.Get(id)
		err := vm.AwaitScripts(c.World, id, doc)
		if err != nil && !behaviour.GoesOn(err) {
			return err
		}
		if err != nil {
			waiting = err
		}
	}
	return waiting
}

// failedScaleSet leaves the scale set as Azure does after a failed operation. New machines exist in state Failed,
// machines to remove stay, and the capacity counts all.
func failedScaleSet(c *behaviour.Call) {
	all := members(c.World, c.Doc, c.ID)
	for _, id := range all {
		c.Edit(id, func(doc behaviour.Object) {
			switch {
			case behaviour.Bool(doc, schema.Runtime+".released"):
				behaviour.Remove(doc, schema.Runtime+".released")
				schema.SetState(doc, schema.Succeeded)
			case schema.State(doc) == schema.Creating:
				behaviour.Set(doc, schema.Runtime+".power", "")
				schema.SetState(doc, schema.Failed)
			case schema.State(doc) == schema.Updating:
				vm.FailedPower(doc)
				schema.SetState(doc, schema.Failed)
			}
		})
	}
	if behaviour.At(c.Doc, schema.CapacityPath) != nil {
		behaviour.Set(c.Doc, schema.CapacityPath, len(all))
	}
}

// removedScaleSet deletes the machines of a flexible set. Instances of a uniform set are its children and are deleted
// already.
func removedScaleSet(c *behaviour.Call) error {
	for _, id := range flexMembers(c.World, c.ID) {
		c.Delete(id)
	}
	return nil
}

func scaleSetView(c *behaviour.Call) (any, error) {
	counts, codes := map[string]int{}, []string{}
	count := func(code string) {
		if counts[code] == 0 {
			codes = append(codes, code)
		}
		counts[code]++
	}
	for _, id := range members(c.World, c.Old, c.ID) {
		doc, ok := c.Get(id)
		if !ok {
			continue
		}
		count("ProvisioningState/" + strings.ToLower(schema.State(doc)))
		if power := vm.PowerOf(doc); power != "" {
			count("PowerState/" + power)
		}
	}
	slices.SortFunc(codes, func(a, b string) int { return strings.Compare(b, a) }) // provisioning states before power states
	summary := []any{}
	for _, code := range codes {
		summary = append(summary, behaviour.Object{"code": code, "count": counts[code]})
	}
	return behaviour.Object{
		"virtualMachine": behaviour.Object{"statusesSummary": summary},
		"statuses":       vm.Statuses(schema.State(c.Old), "", behaviour.Text(c.Old, "properties.timeCreated")),
	}, nil
}

func scaleSetSKUs(c *behaviour.Call) (any, error) {
	return behaviour.Object{"value": []any{behaviour.Object{
		"resourceType": schema.ScaleSetType,
		"sku":          behaviour.Object{"name": behaviour.Text(c.Old, "sku.name"), "tier": behaviour.Text(c.Old, "sku.tier")},
		"capacity":     behaviour.Object{"minimum": 0, "maximum": maxCapacity, "defaultCapacity": 1, "scaleType": "Automatic"},
	}}}, nil
}
