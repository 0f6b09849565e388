package compute

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/network"
)

func scaleSets() behaviour.Type {
	return behaviour.Type{
		Name:    scaleSetType,
		Style:   behaviour.Compute(),
		Where:   behaviour.Located,
		Own:     []string{runtime, "properties.uniqueId", "properties.timeCreated"},
		Fill:    fillScaleSet,
		Settle:  settleScaleSet,
		Failed:  failedScaleSet,
		Removed: removedScaleSet,
		Show:    func(_ *behaviour.Call, view behaviour.Object) { delete(view, runtime) },
		Actions: scaleSetActions(),
		Views: map[string]func(c *behaviour.Call) (any, error){
			"instanceView": scaleSetView,
			"skus":         scaleSetSKUs,
		},
	}
}

const (
	profilePath  = "properties.virtualMachineProfile"
	networkPath  = profilePath + ".networkProfile"
	capacityPath = "sku.capacity"
	// maxCapacity is Azure's limit on a scale set, smallCapacity that of one that is
	// confined to a single placement group.
	maxCapacity   = 1000
	smallCapacity = 100
)

func flexible(doc behaviour.Object) bool {
	return strings.EqualFold(behaviour.Text(doc, "properties.orchestrationMode"), "Flexible")
}

func fillScaleSet(c *behaviour.Call) error {
	if err := wellFormed(c); err != nil {
		return err
	}
	if state(c.Old) == deleting {
		return behaviour.Conflict("OperationNotAllowed", "Operation is not allowed on Virtual Machine Scale Set '%s' since it is marked for deletion.", c.ID.Name())
	}
	keepRest(c)
	if err := checkPlace(c); err != nil {
		return err
	}
	if err := fillScaleSetModel(c); err != nil {
		return err
	}
	if err := unchangeable(c, "properties.orchestrationMode"); err != nil {
		return err
	}
	if err := checkCapacity(c); err != nil {
		return err
	}
	noteModel(c)
	return scale(c)
}

func fillScaleSetModel(c *behaviour.Call) error {
	behaviour.Default(c.Doc, "properties.orchestrationMode", "Uniform")
	behaviour.Default(c.Doc, "properties.uniqueId", c.GUID())
	behaviour.Default(c.Doc, "properties.timeCreated", behaviour.Stamp(c.Now()))
	fillIdentity(c)
	fillPlacement(c)
	model := behaviour.Sub(c.Doc, profilePath)
	if model == nil {
		if flexible(c.Doc) && behaviour.At(c.Doc, "sku.name") == nil {
			return nil // a flexible set may start empty and take what is put into it
		}
		return required(c.Doc, profilePath, "virtualMachineProfile")
	}
	size, err := sizeOf(behaviour.Text(c.Doc, "sku.name"), "sku.name")
	if err != nil {
		return err
	}
	behaviour.Default(c.Doc, "sku.tier", size.Tier())
	behaviour.Default(c.Doc, capacityPath, 0)
	behaviour.Default(model, "timeCreated", behaviour.Stamp(c.Now()))
	image := fillOSDisk(c, model, size)
	behaviour.Default(model, "osProfile.computerNamePrefix", c.ID.Name())
	fillOSProfile(model, image.OS == "Windows", false)
	if err := checkPrefix(model, image.OS); err != nil {
		return err
	}
	fillUpgradePolicy(c.Doc)
	return fillInterfaceModels(c, networkPath)
}

func fillPlacement(c *behaviour.Call) {
	zones := len(behaviour.Array(c.Doc, "zones"))
	if flexible(c.Doc) {
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

// maxWindowsPrefix leaves room for six digits in a Windows computer name of 15.
const maxWindowsPrefix = 9

func checkPrefix(model behaviour.Object, os string) error {
	prefix := behaviour.Text(model, "osProfile.computerNamePrefix")
	if os == "Windows" && len(prefix) > maxWindowsPrefix {
		return behaviour.Invalid("InvalidParameter", "Windows computer name prefix cannot be more than %d characters long, be entirely numeric, or contain the following characters: ` ~ ! @ # $ %% ^ & * ( ) = + _ [ ] { } \\ | ; : . ' \" , < > / ?.", maxWindowsPrefix).At("computerNamePrefix")
	}
	return nil
}

func checkCapacity(c *behaviour.Call) error {
	capacity, ok := behaviour.Int(c.Doc, capacityPath)
	most := maxCapacity
	if behaviour.Bool(c.Doc, "properties.singlePlacementGroup") {
		most = smallCapacity
	}
	if behaviour.At(c.Doc, capacityPath) != nil && (!ok || capacity < 0 || capacity > most) {
		return behaviour.Invalid("InvalidParameter", "The value '%v' of parameter 'sku.capacity' is out of range. Value must be between 0 and %d for virtual machine scale set '%s' (singlePlacementGroup is %v).",
			behaviour.At(c.Doc, capacityPath), most, c.ID.Name(), behaviour.Bool(c.Doc, "properties.singlePlacementGroup")).At("sku.capacity")
	}
	return nil
}

// fillInterfaceModels completes the network interfaces that a model describes.
func fillInterfaceModels(c *behaviour.Call, path string) error {
	configs := behaviour.Objects(c.Doc, path+".networkInterfaceConfigurations")
	if len(configs) == 0 {
		return behaviour.Invalid("InvalidParameter", "Required parameter 'networkInterfaceConfigurations' is missing (null).").At("networkInterfaceConfigurations")
	}
	for _, config := range configs {
		if err := required(config, "name", "networkInterfaceConfiguration.name"); err != nil {
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
		return behaviour.Invalid("InvalidParameter", "Virtual Machine Scale Set %s must have exactly one primary network interface configuration; it has %d.", c.ID.Name(), len(primaries)).At("networkInterfaceConfigurations")
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
		if err := required(address, "name", "ipConfiguration.name"); err != nil {
			return err
		}
		behaviour.Default(address, "properties.privateIPAddressVersion", "IPv4")
		subnet := behaviour.RefID(address, "properties.subnet")
		if subnet == "" {
			return behaviour.Invalid("InvalidParameter", "Required parameter 'subnet' of ipConfiguration '%s' is missing (null).", behaviour.Text(address, "name")).At("subnet")
		}
		if _, ok := c.Get(subnet); !ok {
			return behaviour.InvalidReference(c.ID, subnet)
		}
		var pools []azure.ID
		each(address, "properties.loadBalancerBackendAddressPools", func(o behaviour.Object) {
			pools = append(pools, azure.ID(behaviour.Text(o, "id")))
		})
		if err := network.CheckPools(c.World, c.ID, pools); err != nil {
			return err
		}
	}
	return nil
}

// noteModel counts the changes of the model, so that instances can tell whether
// they have the latest: of the network, which can be set per instance as well, and
// of the rest.
func noteModel(c *behaviour.Call) {
	behaviour.Default(c.Doc, runtime, behaviour.Object{"next": 0, "model": 1, "network": 1})
	if c.Old == nil {
		return
	}
	if c.Changed(networkPath) {
		behaviour.Set(c.Doc, runtime+".network", number(c.Doc, runtime+".network")+1)
	}
	rest := func(doc behaviour.Object) behaviour.Object {
		model := behaviour.Clone(behaviour.Sub(doc, profilePath))
		delete(model, "networkProfile")
		return behaviour.Object{"model": model, "size": behaviour.Text(doc, "sku.name")}
	}
	if !behaviour.Equal(rest(c.Old), rest(c.Doc)) {
		behaviour.Set(c.Doc, runtime+".model", number(c.Doc, runtime+".model")+1)
	}
}

// settleScaleSet ends a write: new instances are there, those that had to go are
// gone, and where the policy says so all have the latest model.
func settleScaleSet(c *behaviour.Call) error {
	if err := settleMembers(c, c.Doc); err != nil {
		return err
	}
	if flexible(c.Doc) || strings.EqualFold(behaviour.Text(c.Doc, "properties.upgradePolicy.mode"), "Manual") {
		return nil
	}
	return upgrade(c, c.Doc, allMembers(c.World, c.ID))
}

// failedScaleSet leaves the scale set as Azure does when it could not do what was
// asked for: machines that were to appear are there and have failed, those that
// were to go have stayed, and the capacity counts them all.
func failedScaleSet(c *behaviour.Call) {
	all := members(c.World, c.Doc, c.ID)
	for _, id := range all {
		c.Edit(id, func(doc behaviour.Object) {
			switch {
			case behaviour.Bool(doc, runtime+".released"):
				behaviour.Remove(doc, runtime+".released")
				setState(doc, succeeded)
			case state(doc) == creating:
				behaviour.Set(doc, runtime+".power", "")
				setState(doc, failed)
			case state(doc) == updating:
				failedPower(doc)
				setState(doc, failed)
			}
		})
	}
	if behaviour.At(c.Doc, capacityPath) != nil {
		behaviour.Set(c.Doc, capacityPath, len(all))
	}
}

// removedScaleSet takes the machines of a flexible set along; instances of a
// uniform one lie below it and are gone already.
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
		count("ProvisioningState/" + strings.ToLower(state(doc)))
		if power := PowerOf(doc); power != "" {
			count("PowerState/" + power)
		}
	}
	slices.SortFunc(codes, func(a, b string) int { return strings.Compare(b, a) }) // provisioning before power
	summary := []any{}
	for _, code := range codes {
		summary = append(summary, behaviour.Object{"code": code, "count": counts[code]})
	}
	return behaviour.Object{
		"virtualMachine": behaviour.Object{"statusesSummary": summary},
		"statuses":       statuses(state(c.Old), "", behaviour.Text(c.Old, "properties.timeCreated")),
	}, nil
}

func scaleSetSKUs(c *behaviour.Call) (any, error) {
	return behaviour.Object{"value": []any{behaviour.Object{
		"resourceType": scaleSetType,
		"sku":          behaviour.Object{"name": behaviour.Text(c.Old, "sku.name"), "tier": behaviour.Text(c.Old, "sku.tier")},
		"capacity":     behaviour.Object{"minimum": 0, "maximum": maxCapacity, "defaultCapacity": 1, "scaleType": "Automatic"},
	}}}, nil
}
