package scaleset

import (
	"cmp"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
	"kaz/internal/localazure/behaviour/network/publicip"
)

// builder stores the instances of a uniform scale set, with their disks and interfaces.
type builder struct {
	world     behaviour.World
	set       azure.ID
	doc       behaviour.Object // of the scale set
	addresses *ipam.Subnets
	template  behaviour.Object
}

// instanceTemplate returns what all instances of a model have in common.
func instanceTemplate(set behaviour.Object) behaviour.Object {
	doc := behaviour.Object{
		"location": behaviour.Text(set, "location"),
		"sku":      behaviour.Object{"name": behaviour.Text(set, "sku.name"), "tier": behaviour.Text(set, "sku.tier")},
		"properties": behaviour.Object{
			"modelDefinitionApplied":    "VirtualMachineScaleSet",
			"resilientVMDeletionStatus": "Disabled",
		},
	}
	applyModel(doc, set)
	return doc
}

// applyModel writes the scale set's model into an instance's document. It keeps the fields that belong to the instance.
func applyModel(doc, set behaviour.Object) {
	model := behaviour.Clone(behaviour.Sub(set, schema.ProfilePath))
	storage, had := behaviour.Sub(model, "storageProfile"), behaviour.Sub(doc, "properties.storageProfile")
	vm.ExactVersion(storage, vm.ImageOf(behaviour.Object{"properties": model}))
	if disk := behaviour.Sub(had, "osDisk"); disk != nil {
		for _, own := range []string{"name", "managedDisk"} {
			behaviour.Set(storage, "osDisk."+own, disk[own])
		}
	}
	if disks := had["dataDisks"]; disks != nil {
		storage["dataDisks"] = disks
	}
	behaviour.Default(storage, "dataDisks", []any{})
	os := behaviour.Sub(model, "osProfile")
	delete(os, "computerNamePrefix")
	if name := behaviour.Text(doc, "properties.osProfile.computerName"); name != "" {
		os["computerName"] = name
	}
	props := doc["properties"].(behaviour.Object)
	props["storageProfile"], props["osProfile"] = storage, os
	props["hardwareProfile"] = behaviour.Object{"vmSize": behaviour.Text(set, "sku.name")}
	props["networkProfileConfiguration"] = behaviour.Object{
		"networkInterfaceConfigurations": behaviour.Clone(behaviour.At(set, schema.NetworkPath+".networkInterfaceConfigurations")),
	}
	for _, shared := range schema.ModelFields() {
		if v, ok := model[shared]; ok {
			props[shared] = v
		}
	}
	for _, shared := range []string{"tags", "plan", "identity"} {
		if v := set[shared]; v != nil {
			doc[shared] = behaviour.Clone(v)
		} else {
			delete(doc, shared)
		}
	}
	doc["sku"] = behaviour.Object{"name": behaviour.Text(set, "sku.name"), "tier": behaviour.Text(set, "sku.tier")}
	behaviour.Set(doc, schema.Runtime+".model", schema.Number(set, schema.Runtime+".model"))
	behaviour.Set(doc, schema.Runtime+".network", schema.Number(set, schema.Runtime+".network"))
}

// create stores the instance with a number.
func (b *builder) create(n int, zone string, domain int) error {
	name := b.set.Name() + "_" + strconv.Itoa(n)
	id := b.set.Child("virtualMachines", strconv.Itoa(n))
	doc := behaviour.Clone(b.template)
	doc["instanceId"] = strconv.Itoa(n)
	if zone != "" {
		doc["zones"] = []any{zone}
	}
	props := doc["properties"].(behaviour.Object)
	props["vmId"], props["timeCreated"] = b.world.GUID(), behaviour.Stamp(b.world.Now())
	behaviour.Set(doc, "properties.osProfile.computerName",
		behaviour.Text(b.doc, schema.ProfilePath+".osProfile.computerNamePrefix")+base36(n))
	behaviour.Set(doc, schema.Runtime+".power", vm.Running)
	behaviour.Set(doc, schema.Runtime+".faultDomain", domain)
	if data := vm.CustomData(b.doc); data != "" {
		behaviour.Set(doc, schema.Runtime+".customData", data)
		vm.BeginGuest(b.world, doc)
	}
	b.disks(doc, name, n)
	applyExtensions(doc, b.doc, id)
	schema.SetState(doc, schema.Creating)
	if err := b.interfaces(doc, id); err != nil {
		return err
	}
	b.world.Put(id, doc)
	return nil
}

// diskOwner returns the id of an instance as disks name it: with the scale set's name before the number.
func diskOwner(set azure.ID, number string) azure.ID {
	return set.Child("virtualMachines", set.Name()+"_"+number)
}

func (b *builder) disks(doc behaviour.Object, name string, n int) {
	diskName := osDiskName(b.set.Name()+"_"+name, schema.Hex32(b.world))
	disk := schema.GroupOf(b.set).Resource(schema.DiskType, diskName)
	owner := diskOwner(b.set, strconv.Itoa(n))
	behaviour.Set(doc, "properties.storageProfile.osDisk.name", diskName)
	if behaviour.Text(doc, "properties.storageProfile.osDisk.diffDiskSettings.option") == "" {
		behaviour.Set(doc, "properties.storageProfile.osDisk.managedDisk.id", string(disk))
		manageddisk.NewOSDisk(b.world, disk, owner, doc)
	}
	d := manageddisk.DataDisks{World: b.world, Owner: owner, Machine: name, Doc: doc}
	for _, entry := range behaviour.Objects(doc, manageddisk.DataDisksPath) {
		made := d.Create(entry)
		behaviour.Set(entry, "managedDisk.id", string(made))
		behaviour.Default(entry, "name", made.Name())
		b.world.Edit(made, func(disk behaviour.Object) {
			disk["managedBy"] = string(owner)
			behaviour.Set(disk, "properties.diskState", "Attached")
		})
	}
}

// interfaces stores the network interfaces of an instance's configuration and deletes others. An IP configuration keeps
// its address.
func (b *builder) interfaces(doc behaviour.Object, id azure.ID) error {
	configs := behaviour.Objects(doc, "properties.networkProfileConfiguration.networkInterfaceConfigurations")
	keepNames, refs := map[string]bool{}, []any{}
	for _, config := range configs {
		nic := id.Child("networkInterfaces", behaviour.Text(config, "name"))
		keepNames[nic.Key()] = true
		if err := b.nic(nic, id, doc, config); err != nil {
			return err
		}
		ref := behaviour.Ref(nic)
		if len(configs) > 1 {
			behaviour.Set(ref, "properties.primary", behaviour.Bool(config, "properties.primary"))
		}
		refs = append(refs, ref)
	}
	for nic := range b.world.List(id, schema.InstanceInterfaceType) {
		if !keepNames[nic.Key()] {
			b.world.Delete(nic)
		}
	}
	behaviour.Set(doc, "properties.networkProfile.networkInterfaces", refs)
	return nil
}

// nic stores one interface.
func (b *builder) nic(nic, machine azure.ID, doc, config behaviour.Object) error {
	old, exists := b.world.Get(nic)
	fresh := newInterface(b.world, machine, behaviour.Text(doc, "location"), config)
	if exists {
		for _, own := range []string{"resourceGuid", "macAddress"} {
			behaviour.Set(fresh, "properties."+own, behaviour.Text(old, "properties."+own))
		}
		behaviour.Set(fresh, "properties.dnsSettings.internalDomainNameSuffix",
			behaviour.Text(old, "properties.dnsSettings.internalDomainNameSuffix"))
	}
	var addresses []any
	for i, model := range behaviour.Objects(config, "properties.ipConfigurations") {
		name := behaviour.Text(model, "name")
		address, err := b.address(nic, model, behaviour.Named(old, "properties.ipConfigurations", name), i == 0)
		if err != nil {
			return err
		}
		addresses = append(addresses, address)
	}
	behaviour.Set(fresh, "properties.ipConfigurations", addresses)
	b.world.Put(nic, fresh)
	return b.publicIPs(nic, doc, config)
}

// address returns one IP configuration. old is the earlier one, nil for a new one.
func (b *builder) address(nic azure.ID, model, old behaviour.Object, isFirst bool) (behaviour.Object, error) {
	name, family := behaviour.Text(model, "name"), behaviour.Text(model, "properties.privateIPAddressVersion")
	subnet := behaviour.RefID(model, "properties.subnet")
	id := nic.Child("ipConfigurations", name)
	private := behaviour.Text(old, "properties.privateIPAddress")
	if private == "" || !behaviour.RefID(old, "properties.subnet").Equal(subnet) {
		var err error
		if private, err = b.addresses.Take(subnet, id, family, ""); err != nil {
			return nil, err
		}
	}
	primary := isFirst
	if _, said := behaviour.At(model, "properties.primary").(bool); said {
		primary = behaviour.Bool(model, "properties.primary")
	}
	props := behaviour.Object{
		"privateIPAddress": private, "privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": family,
		"subnet": behaviour.Ref(subnet), "primary": primary, "isInUseWithService": false,
	}
	for _, list := range []string{"loadBalancerBackendAddressPools", "applicationGatewayBackendAddressPools", "applicationSecurityGroups"} {
		if refs := behaviour.Objects(model, "properties."+list); len(refs) > 0 {
			all := make([]any, len(refs))
			for i, ref := range refs {
				all[i] = behaviour.Ref(azure.ID(behaviour.Text(ref, "id")))
			}
			props[list] = all
		}
	}
	if rules := b.natRules(nic, model, old); len(rules) > 0 {
		props[natRulesKey] = rules
	}
	if public := behaviour.Sub(model, "properties.publicIPAddressConfiguration"); public != nil {
		props["publicIPAddress"] = behaviour.Ref(id.Child("publicIPAddresses", behaviour.Text(public, "name")))
	}
	return behaviour.Object{"name": name, "properties": props}, nil
}

// natRulesKey is the list of an IP configuration with the inbound NAT rules that lead to it.
const natRulesKey = "loadBalancerInboundNatRules"

// natRules returns the NAT rules of an IP configuration: one of each NAT pool of its model. Rules of other pools go.
func (b *builder) natRules(nic azure.ID, model, old behaviour.Object) []any {
	rules := []any{}
	kept := map[string]bool{}
	for _, pool := range behaviour.Objects(model, "properties.loadBalancerInboundNatPools") {
		if rule := loadbalancer.TakePort(b.world, azure.ID(behaviour.Text(pool, "id")), nic.Parent().Name()); rule != "" {
			kept[rule.Key()] = true
			rules = append(rules, behaviour.Ref(rule))
		}
	}
	for _, ref := range behaviour.Objects(old, "properties."+natRulesKey) {
		if rule := azure.ID(behaviour.Text(ref, "id")); !kept[rule.Key()] {
			loadbalancer.GiveBackPort(b.world, rule)
		}
	}
	return rules
}

// publicIPs stores the public addresses of a configuration and deletes others.
func (b *builder) publicIPs(nic azure.ID, doc, config behaviour.Object) error {
	wanted := map[string]bool{}
	for _, model := range behaviour.Objects(config, "properties.ipConfigurations") {
		public := behaviour.Sub(model, "properties.publicIPAddressConfiguration")
		if public == nil {
			continue
		}
		holder := nic.Child("ipConfigurations", behaviour.Text(model, "name"))
		id := holder.Child("publicIPAddresses", behaviour.Text(public, "name"))
		wanted[id.Key()] = true
		if _, ok := b.world.Get(id); ok {
			continue
		}
		fresh, err := newPublicIP(b.world, holder, doc, public)
		if err != nil {
			return err
		}
		if label := behaviour.Text(public, "properties.dnsSettings.domainNameLabel"); label != "" {
			label = "vm" + nic.Parent().Name() + "." + label
			behaviour.Set(fresh, "properties.dnsSettings", behaviour.Object{"domainNameLabel": label,
				"fqdn": publicip.DomainName(label, behaviour.Text(doc, "location"))})
		}
		b.world.Put(id, fresh)
	}
	for _, id := range publicIPsOf(b.world, nic) {
		if !wanted[id.Key()] {
			b.world.Delete(id)
		}
	}
	return nil
}

func newInterface(w behaviour.World, machine azure.ID, location string, config behaviour.Object) behaviour.Object {
	props := behaviour.Object{
		"resourceGuid": w.GUID(), "macAddress": ipam.MACAddress(w),
		"primary":                     behaviour.Bool(config, "properties.primary"),
		"enableAcceleratedNetworking": behaviour.Bool(config, "properties.enableAcceleratedNetworking"),
		"enableIPForwarding":          behaviour.Bool(config, "properties.enableIPForwarding"),
		"disableTcpStateTracking":     behaviour.Bool(config, "properties.disableTcpStateTracking"),
		"vnetEncryptionSupported":     false,
		"hostedWorkloads":             []any{}, "tapConfigurations": []any{},
		"nicType": "Standard", "allowPort25Out": true, "auxiliaryMode": "None", "auxiliarySku": "None",
		"virtualMachine": behaviour.Ref(machine),
		"dnsSettings": behaviour.Object{
			"dnsServers":               behaviour.Clone(behaviour.At(config, "properties.dnsSettings.dnsServers")),
			"appliedDnsServers":        []any{},
			"internalDomainNameSuffix": strings.ToLower(schema.Hex32(w)[:26]) + ".bx.internal.cloudapp.net",
		},
	}
	if group := behaviour.RefID(config, "properties.networkSecurityGroup"); group != "" {
		props["networkSecurityGroup"] = behaviour.Ref(group)
	}
	return behaviour.Object{"location": location, "properties": props}
}

func newPublicIP(w behaviour.World, holder azure.ID, machine, config behaviour.Object) (behaviour.Object, error) {
	version := cmp.Or(behaviour.Text(config, "properties.publicIPAddressVersion"), ipam.IPv4)
	ip, err := ipam.AllocatePublic(w, version)
	if err != nil {
		return nil, err
	}
	sku, method := cmp.Or(behaviour.Text(config, "sku.name"), "Standard"), "Static"
	if strings.EqualFold(sku, "Basic") {
		method = "Dynamic"
	}
	doc := behaviour.Object{
		schema.Runtime: behaviour.Object{"lease": string(ipam.Lease(w.Subscription(), ip))},
		"sku": behaviour.Object{
			"name": sku,
			"tier": cmp.Or(behaviour.Text(config, "sku.tier"), "Regional"),
		},
		"location": behaviour.Text(machine, "location"),
		"properties": behaviour.Object{
			"resourceGuid": w.GUID(), "ipAddress": ip, "publicIPAddressVersion": version, "publicIPAllocationMethod": method,
			"idleTimeoutInMinutes": max(schema.Number(config, "properties.idleTimeoutInMinutes"), 4), "ipTags": []any{},
			"ipConfiguration": behaviour.Ref(holder),
		},
	}
	if zones := machine["zones"]; zones != nil {
		doc["zones"] = behaviour.Clone(zones)
	}
	if tags := behaviour.At(config, "properties.ipTags"); tags != nil {
		behaviour.Set(doc, "properties.ipTags", behaviour.Clone(tags))
	}
	return doc, nil
}
