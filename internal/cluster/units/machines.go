package units

import (
	"fmt"

	"kaz/internal/azure/machinesize"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/plan/poolnode"
)

// Marker is the file that a machine writes when it has joined the cluster, and Report has the reason if it has not.
const (
	Marker = "/run/kaz/bootstrap-success"
	Report = "/run/kaz/bootstrap.json"
)

// waitCommand waits on a machine until its boot is complete. It prints the report of the boot if that fails, so that the
// error of the deployment names the phase and the cause. It has no secrets.
const waitCommand = `for i in $(seq 180); do [ -e ` + Marker + ` ] && exit 0; ` +
	`grep -qs '"failed": *true' ` + Report + ` && { cat ` + Report + ` >&2; exit 1; }; sleep 5; done; ` +
	`echo "not complete within 15 minutes" >&2; cat ` + Report + ` >&2; exit 124`

// controlPlane adds a unit for each member. Members are made one after the other: etcd takes one new member at a time.
func (b *builder) controlPlane(ids identities, n network, a api, granted access) graph.Ready {
	spec := b.spec.ControlPlane
	var set graph.AvailabilitySet
	if len(spec.Zones) == 0 {
		u := b.unit("control-plane")
		set.Ref = u.Add(graph.Resource{
			Symbol: "set", Type: "Microsoft.Compute/availabilitySets", Name: b.names.With("cp-as"),
			Body: object{"location": b.location(), "sku": object{"name": "Aligned"}, "properties": object{
				"platformFaultDomainCount": 2, "platformUpdateDomainCount": 5,
			}},
		})
	}
	after := append(append([]graph.Ref(nil), granted.controlPlane...), a.names...)
	for _, secret := range SecretsOf(b.d) {
		after = append(after, graph.SelfRef("vault", secret))
	}
	var ready graph.Ready
	for i := range spec.Replicas {
		generation := b.generations[i]
		m := machine{name: b.names.Member(i, generation), unit: b.unit(naming.MemberUnit(i, generation)),
			subnet: n.controlPlane, pools: a.pools,
			identity: ids.controlPlane, size: spec.VMSize, image: spec.Image, customData: b.boot.ControlPlane,
			osDisk: definition.OSDisk{SizeGiB: spec.OSDisk.SizeGiB, Type: spec.OSDisk.Type}, set: set, after: after,
			tags: object{naming.RoleTag: "control-plane", naming.VersionTag: b.spec.Kubernetes.Version,
				naming.RevisionTag: definition.Revision(b.d, "")}}
		if len(spec.Zones) > 0 {
			m.zones = zoneNames(spec.Zones[i%len(spec.Zones) : i%len(spec.Zones)+1])
		}
		disk := m.unit.Add(graph.Resource{
			Symbol: "etcd", Type: "Microsoft.Compute/disks", Name: m.name + "-etcd",
			Body: m.zonal(object{"location": b.location(), "sku": object{"name": spec.EtcdDisk.Type}, "properties": object{
				"creationData": object{"createOption": "Empty"}, "diskSizeGB": spec.EtcdDisk.SizeGiB,
			}}),
		})
		m.disks = []any{object{"lun": 0, "createOption": "Attach", "caching": "None", "deleteOption": "Detach", "managedDisk": id(disk)}}
		if !ready.IsZero() {
			m.after = append(append([]graph.Ref(nil), after...), ready.Ref)
		}
		ready = b.addMachine(m)
	}
	return ready
}

// machine is a standalone machine.
type machine struct {
	name             string
	unit             *graph.Unit
	symbol           string // before the symbols of its parts, "" if the unit has one machine
	subnet           graph.Subnet
	pools            []graph.BackendPool
	identity         graph.Identity
	size, customData string
	image            definition.Image
	osDisk           definition.OSDisk
	disks, zones     []any
	set              graph.AvailabilitySet
	after            []graph.Ref
	tags             object
	spot             *definition.Spot
}

func (m machine) zonal(body object) object {
	if len(m.zones) > 0 {
		body["zones"] = m.zones
	}
	return body
}

// addMachine adds a machine with its network interface and the extension that waits for its boot.
func (b *builder) addMachine(m machine) graph.Ready {
	var pools []any
	for _, pool := range m.pools {
		pools = append(pools, id(pool))
	}
	ip := object{"primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": id(m.subnet)}
	if len(pools) > 0 {
		ip["loadBalancerBackendAddressPools"] = pools
	}
	nic := m.unit.Add(graph.Resource{
		Symbol: m.symbol + "nic", Type: "Microsoft.Network/networkInterfaces", Name: m.name + "-nic",
		Body: object{"location": b.location(), "properties": b.networkInterface(m.size, ip)},
	})
	profile := b.osProfile(m.customData)
	profile["computerName"] = m.name
	properties := object{
		"hardwareProfile": object{"vmSize": m.size},
		"osProfile":       profile,
		"storageProfile":  m.storage(orEmpty(m.disks), true),
		"networkProfile": object{"networkInterfaces": []any{object{"id": nic, "properties": object{"primary": true,
			"deleteOption": "Delete"}}}},
		"diagnosticsProfile": object{"bootDiagnostics": object{"enabled": true}},
	}
	if !m.set.IsZero() {
		properties["availabilitySet"] = id(m.set)
	}
	setSpot(properties, m.spot)
	vm := m.unit.Add(graph.Resource{
		Symbol: m.symbol + "machine", Type: "Microsoft.Compute/virtualMachines", Name: m.name, After: m.after, Once: true,
		Body: m.zonal(object{"location": b.location(), "tags": m.tags, "identity": userAssigned(m.identity), "properties": properties}),
	})
	wait := m.unit.Add(graph.Resource{
		Symbol: m.symbol + "wait", Type: "Microsoft.Compute/virtualMachines/extensions", Name: m.name + "/" + poolnode.BootExtension,
		After: []graph.Ref{vm},
		Body:  object{"location": b.location(), "properties": waitExtension()},
	})
	return graph.Ready{Ref: wait}
}

func waitExtension() object {
	return object{
		"publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.1", "autoUpgradeMinorVersion": true,
		"settings": object{"commandToExecute": waitCommand},
	}
}

func orEmpty(items []any) []any {
	if items == nil {
		return []any{}
	}
	return items
}

// userAssigned is the map of user-assigned identities of a machine. Its keys are ids, so it is rendered by the linker.
func userAssigned(i graph.Identity) object {
	return object{"type": "UserAssigned", "userAssignedIdentities": graph.Keyed{Key: i.Ref, Value: object{}}}
}

func (b *builder) osProfile(customData string) object {
	var keys []any
	for _, key := range b.spec.Access.SSHPublicKeys {
		keys = append(keys, object{"path": "/home/" + b.spec.Access.AdminUser + "/.ssh/authorized_keys", "keyData": key})
	}
	profile := object{
		"adminUsername": b.spec.Access.AdminUser,
		"linuxConfiguration": object{
			"disablePasswordAuthentication": true, "provisionVMAgent": true, "ssh": object{"publicKeys": keys},
		},
	}
	if customData != "" {
		profile["customData"] = customData
	}
	return profile
}

func imageReference(i definition.Image) object {
	if i.ID != "" {
		return object{"id": i.ID}
	}
	return object{"publisher": i.Publisher, "offer": i.Offer, "sku": i.SKU, "version": i.Version}
}

// storage is the storage profile of a machine, or of the machines of a scale set.
func (m machine) storage(disks []any, standalone bool) object {
	profile := object{"imageReference": imageReference(m.image), "osDisk": osDisk(m.osDisk, m.size, standalone), "dataDisks": disks}
	if machinesize.NVMeOnly(m.size) {
		profile["diskControllerType"] = "NVMe"
	}
	return profile
}

// networkInterface has the properties of the network interface of a machine of a size, with an IP configuration. Azure leaves
// accelerated networking off unless it is asked for.
func (b *builder) networkInterface(size string, ip object) object {
	properties := object{
		"enableIPForwarding": b.spec.Kubernetes.PodNetwork == "CloudRoutes",
		"ipConfigurations":   []any{object{"name": "primary", "properties": ip}},
	}
	if s, _ := machinesize.Find(size); s.Accelerated {
		properties["enableAcceleratedNetworking"] = true
	}
	return properties
}

func osDisk(d definition.OSDisk, size string, standalone bool) object {
	disk := object{
		"createOption": "FromImage", "caching": "ReadWrite", "diskSizeGB": d.SizeGiB, "managedDisk": object{"storageAccountType": d.Type},
	}
	if d.Ephemeral {
		disk["caching"], disk["managedDisk"] = "ReadOnly", object{"storageAccountType": "Standard_LRS"}
		settings := object{"option": "Local"}
		if placement := machinesize.Placement(size, d.SizeGiB); placement != "" {
			settings["placement"] = placement
		}
		disk["diffDiskSettings"] = settings
	}
	if standalone {
		disk["deleteOption"] = "Delete"
	}
	return disk
}

func setSpot(properties object, spot *definition.Spot) {
	if spot == nil {
		return
	}
	properties["priority"], properties["evictionPolicy"] = "Spot", spot.EvictionPolicy
	properties["billingProfile"] = object{"maxPrice": graph.Number(spot.MaxPrice)}
}

// pool adds the unit of a node pool.
func (b *builder) pool(p definition.NodePool, ids identities, n network, e egress, ready graph.Ready, granted access) {
	name, s := p.Metadata.Name, p.Spec
	u := b.unit(naming.PoolUnit(name))
	m := machine{unit: u, subnet: n.pools[name], identity: ids.nodes, size: s.VMSize, image: s.Image, osDisk: s.OSDisk,
		customData: b.boot.Pools[name], after: append([]graph.Ref{ready.Ref}, granted.nodes...), tags: b.poolTags(p)}
	if !e.pool.IsZero() {
		m.pools = []graph.BackendPool{e.pool}
	}
	if s.Priority == "Spot" {
		m.spot = &s.Spot
	}
	if s.Backend != "StandaloneVM" {
		b.ports["pool."+name] = b.scaleSet(m, p)
		return
	}
	for i := range s.Replicas {
		one := m
		one.name, one.symbol = fmt.Sprintf("%s-%s-%d", b.names.Cluster, name, i), fmt.Sprintf("%d-", i)
		if len(s.Zones) > 0 {
			one.zones = zoneNames(s.Zones[i%len(s.Zones) : i%len(s.Zones)+1])
		}
		one.disks = dataDisks(s.DataDisks, true)
		b.addMachine(one)
	}
}

// The tags of a scale set with its limits for the autoscaler. Further ones describe its nodes, for a pool without nodes.
const LeastTag, MostTag = "min", "max"

// ForAutoscaler reports whether a tag of a scale set is for the autoscaler.
func ForAutoscaler(tag string) bool {
	return tag == LeastTag || tag == MostTag || poolnode.Describes(tag)
}

func (b *builder) poolTags(p definition.NodePool) object {
	tags := object{naming.RoleTag: "node", naming.PoolTag: p.Metadata.Name, naming.VersionTag: b.spec.Kubernetes.Version,
		naming.RevisionTag: definition.Revision(b.d, p.Metadata.Name)}
	if a := p.Spec.Autoscaling; a != nil {
		tags[LeastTag], tags[MostTag] = fmt.Sprint(a.Min), fmt.Sprint(a.Max)
		for tag, value := range definition.Node(b.d, p).Tags() {
			tags[tag] = value
		}
	}
	return tags
}

func dataDisks(disks []definition.Disk, standalone bool) []any {
	all := []any{}
	for lun, d := range disks {
		disk := object{"lun": lun, "createOption": "Empty", "diskSizeGB": d.SizeGiB, "managedDisk": object{"storageAccountType": d.Type}}
		if standalone {
			disk["deleteOption"] = "Delete"
		}
		all = append(all, disk)
	}
	return all
}

// scaleSet adds a scale set. Its capacity is the number at first: the template does not write a scale set that exists.
func (b *builder) scaleSet(m machine, p definition.NodePool) graph.Ref {
	s := p.Spec
	ip := object{"primary": true, "subnet": id(m.subnet)}
	if len(m.pools) > 0 {
		ip["loadBalancerBackendAddressPools"] = []any{id(m.pools[0])}
	}
	card := b.networkInterface(m.size, ip)
	card["primary"] = true
	network := object{"networkInterfaceConfigurations": []any{object{"name": "primary", "properties": card}}}
	name := b.names.With(p.Metadata.Name)
	profile := b.osProfile(m.customData)
	profile["computerNamePrefix"] = name
	virtualMachine := object{
		"osProfile":          profile,
		"storageProfile":     m.storage(dataDisks(s.DataDisks, false), false),
		"networkProfile":     network,
		"diagnosticsProfile": object{"bootDiagnostics": object{"enabled": true}},
		"extensionProfile":   object{"extensions": []any{object{"name": poolnode.BootExtension, "properties": waitExtension()}}},
	}
	setSpot(virtualMachine, m.spot)
	properties := object{"virtualMachineProfile": virtualMachine, "singlePlacementGroup": false}
	if s.Backend == "VMSSUniform" {
		properties["orchestrationMode"], properties["overprovision"] = "Uniform", false
		properties["upgradePolicy"] = object{"mode": "Manual"}
	} else {
		properties["orchestrationMode"], properties["platformFaultDomainCount"] = "Flexible", 1
		network["networkApiVersion"] = "2020-11-01"
	}
	body := object{
		"location": b.location(), "tags": m.tags, "identity": userAssigned(m.identity),
		"sku": object{"name": m.size, "tier": "Standard", "capacity": s.Replicas}, "properties": properties,
	}
	if len(s.Zones) > 0 {
		body["zones"] = zoneNames(s.Zones)
	}
	return m.unit.Add(graph.Resource{
		Symbol: "scale-set", Type: "Microsoft.Compute/virtualMachineScaleSets", Name: name, After: m.after, Body: body,
		// The cloud-controller-manager writes pools into it, and the autoscaler its capacity.
		Once: true,
	})
}
