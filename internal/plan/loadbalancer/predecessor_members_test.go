package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
)

// machine is a node and what Azure has of it.
type machine struct {
	n         int               // in its name and addresses, and its number in the scale set
	set       string            // scale set, "" for none
	flex      bool              // whether the scale set is a flexible one
	group     string            // resource group, "" for the cluster's
	labels    map[string]string // of the node
	gone, off bool              // deleted, or deallocated, behind Kubernetes' back
}

func (m machine) name() string { return fmt.Sprintf("%s%06d", firstText(m.set, "vm"), m.n) }

func (m machine) address(six bool) string {
	if six {
		return fmt.Sprintf("fd00::%x", m.n+4)
	}
	return fmt.Sprintf("10.0.0.%d", m.n+4)
}

func (m machine) uniform() bool { return m.set != "" && !m.flex }

func computeID(group, kind, name string) azure.ID {
	return azure.ID("/subscriptions/s/resourceGroups/" + firstText(group, "rg") + "/providers/Microsoft.Compute/" + kind + "/" + name)
}

func (m machine) id() azure.ID {
	if m.uniform() {
		return computeID(m.group, "virtualMachineScaleSets", m.set) + azure.ID("/virtualMachines/"+strconv.Itoa(m.n))
	}
	return computeID(m.group, "virtualMachines", m.name())
}

func (m machine) nic() azure.ID {
	return azure.ID(strings.Replace(string(computeID(m.group, "networkInterfaces", m.name()+"-nic")), "Microsoft.Compute",
		"Microsoft.Network", 1))
}

func (m machine) node() *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name(), Labels: m.labels},
		Spec: v1.NodeSpec{ProviderID: "azure://" + string(m.id())}}
	for _, six := range []bool{false, true} {
		n.Status.Addresses = append(n.Status.Addresses, v1.NodeAddress{Type: v1.NodeInternalIP, Address: m.address(six)})
	}
	return n
}

const twoFamilies = `[{"name":"ipconfig","properties":{"primary":true,"privateIPAddressVersion":"IPv4"}},{"name":"ipconfig6","properties":{"privateIPAddressVersion":"IPv6"}}]`

// furnish puts a machine into Azure, in no pool.
func (m machine) furnish(w *subscription) {
	if m.gone {
		return
	}
	configured := `{"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"ipConfigurations":` + twoFamilies + `}}]}`
	power := map[bool]string{false: "running", true: "deallocated"}[m.off]
	view := `"instanceView":{"statuses":[{"code":"ProvisioningState/succeeded"},{"code":"PowerState/` + power + `"}]}`
	set := computeID(m.group, "virtualMachineScaleSets", m.set)
	if m.set != "" {
		w.put(set, parse(`{"location":"westeurope","properties":{"orchestrationMode":"`+
			map[bool]string{false: "Uniform", true: "Flexible"}[m.flex]+
			`","virtualMachineProfile":{"networkProfile":`+configured+`}}}`))
	}
	if m.uniform() {
		w.put(m.id(),
			parse(`{"location":"westeurope","properties":{"hardwareProfile":{},"networkProfileConfiguration":`+configured+`,`+view+`}}`))
		return
	}
	vm := parse(`{"location":"westeurope","properties":{"hardwareProfile":{},"networkProfile":{"networkInterfaces":[{"id":"` +
		string(m.nic()) + `"}]},` + view + `}}`)
	if m.flex {
		sub(vm, "properties")["virtualMachineScaleSet"] = ref(set)
	}
	w.put(m.id(), vm)
	nic := parse(`{"location":"westeurope","properties":{"primary":true,"ipConfigurations":` + twoFamilies + `}}`)
	sub(nic, "properties")["virtualMachine"] = ref(m.id())
	for i, c := range children(sub(nic, "properties"), "ipConfigurations") {
		sub(c, "properties")["privateIPAddress"] = m.address(i == 1)
	}
	w.put(m.nic(), nic)
}

// --- members of the pools

// candidate reports whether a node may be in a pool at all.
func (p *predecessor) candidate(m machine) bool {
	if _, is := m.labels["node.kubernetes.io/exclude-from-external-load-balancers"]; is {
		return false
	}
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, is := m.labels[label]; is && (p.ExcludeControlPlane || p.PoolByIP) {
			return false
		}
	}
	return !strings.EqualFold(m.labels["kubernetes.azure.com/managed"], "false")
}

func (p *predecessor) elsewhere(m machine) bool {
	group := firstText(m.labels["kubernetes.azure.com/resource-group"], m.group)
	return group != "" && !strings.EqualFold(group, p.ResourceGroup)
}

func (p *predecessor) joins(m machine) bool {
	if p.PoolByIP {
		return p.candidate(m)
	}
	return p.candidate(m) && !p.elsewhere(m) && !m.gone && !m.off
}

// members brings the members of all pools about.
func (p *predecessor) members() {
	for _, id := range p.balancerIDs() {
		inside := strings.HasSuffix(string(id), "-internal")
		if p.PresetExternal && !inside || p.PresetInternal && inside {
			continue
		}
		for _, pool := range p.list(id, "backendAddressPools") {
			owner := p.localOwner(nameOf(pool))
			six := strings.HasSuffix(strings.ToLower(nameOf(pool)), "-ipv6")
			switch {
			case owner == nil && !strings.EqualFold(strings.TrimSuffix(nameOf(pool), "-IPv6"), p.ClusterName):
			case p.PoolByIP:
				p.listMembers(id, nameOf(pool), six, owner)
			default:
				p.attach(id.Child("backendAddressPools", nameOf(pool)), six)
			}
		}
	}
}

func (p *predecessor) localOwner(pool string) *v1.Service {
	for _, s := range p.services {
		if len(p.Balancers) > 0 && local(s) && strings.TrimSuffix(pool, "-ipv6") == strings.ToLower(s.Namespace+"-"+s.Name) {
			return s
		}
	}
	return nil
}

// placed reports whether a node belongs to one of several load balancers.
func (p *predecessor) placed(m machine, id azure.ID) bool {
	if len(p.Balancers) == 0 {
		return true
	}
	var there []string
	for _, b := range p.Balancers {
		if p.see(p.balancerID(b.Name, false)) == nil && p.see(p.balancerID(b.Name, true)) == nil {
			continue
		}
		if b.PrimaryVMSet == m.set {
			return strings.TrimSuffix(id.Name(), "-internal") == b.Name
		}
		there = append(there, b.Name)
	}
	// The scenes have such nodes only where one load balancer is left.
	return len(there) == 1 && strings.TrimSuffix(id.Name(), "-internal") == there[0]
}

func (p *predecessor) listMembers(id azure.ID, name string, six bool, owner *v1.Service) {
	pool := named(p.list(id, "backendAddressPools"), name)
	want := map[string]string{}
	for _, m := range p.machines {
		if owner != nil && slices.Contains(p.endpoints[keyOf(owner)], m.name()) || owner == nil && p.joins(m) && p.placed(m, id) {
			want[m.address(six)] = m.name()
		}
	}
	have := children(sub(pool, "properties"), "loadBalancerBackendAddresses")
	same := len(have) == len(want)
	for _, a := range have {
		same = same && want[at(a, "properties", "ipAddress")] != "" && at(a, "properties", "virtualNetwork") == ""
	}
	if same || len(want) == 0 && len(p.Balancers) == 0 {
		return
	}
	var list []any
	for _, address := range slices.Sorted(maps.Keys(want)) {
		list = append(list, object{"name": want[address], "properties": object{"ipAddress": address}})
	}
	lb := p.doc(id)
	props := sub(named(children(sub(lb, "properties"), "backendAddressPools"), name), "properties")
	props["virtualNetwork"] = object{"id": strings.Replace(string(p.network(p.VirtualNetworkResourceGroup, "virtualNetworks",
		p.VirtualNetwork)),
		"/"+p.NetworkSubscription+"/", "/"+p.Subscription+"/", 1)}
	props["loadBalancerBackendAddresses"] = list
	p.write(id, lb, "members of %s: %v", name, slices.Sorted(maps.Keys(want)))
}

// ipConfiguration is the one of a family that an instance, a scale set or a network
// interface has.
func ipConfiguration(o object, six bool) object {
	props := sub(o, "properties")
	if profile, is := props["virtualMachineProfile"].(object); is {
		props = sub(profile, "networkProfile")
	} else if profile, is := props["networkProfileConfiguration"].(object); is {
		props = profile
	}
	if nics := children(props, "networkInterfaceConfigurations"); len(nics) > 0 {
		props = sub(nics[0], "properties")
	}
	for _, c := range children(props, "ipConfigurations") {
		if (at(c, "properties", "privateIPAddressVersion") == "IPv6") == six {
			return sub(c, "properties")
		}
	}
	return object{}
}

func inPool(o object, pool azure.ID, six bool) bool {
	return slices.ContainsFunc(children(ipConfiguration(o, six), "loadBalancerBackendAddressPools"),
		func(r object) bool { return pool.Equal(azure.ID(at(r, "id"))) })
}

// attached is where the membership of a machine is written.
func (m machine) attached() azure.ID {
	if m.uniform() {
		return m.id()
	}
	return m.nic()
}

func (p *predecessor) attach(pool azure.ID, six bool) {
	join := func(id azure.ID) {
		if o := p.see(id); o == nil || inPool(o, pool, six) {
			return
		}
		o := p.doc(id)
		c := ipConfiguration(o, six)
		list, _ := c["loadBalancerBackendAddressPools"].([]any)
		c["loadBalancerBackendAddressPools"] = append(list, ref(pool))
		p.write(id, o, "joins %s", pool)
	}
	var stay, leave []machine
	for _, m := range p.machines {
		switch {
		case p.joins(m):
			if m.set != "" {
				join(computeID(m.group, "virtualMachineScaleSets", m.set))
			}
			join(m.attached())
			stay = append(stay, m)
		case !p.candidate(m) && inPool(p.see(m.attached()), pool, six):
			leave = append(leave, m)
		}
	}
	if len(stay) == 0 {
		return // a pool must not become empty
	}
	for _, m := range leave {
		o := p.doc(m.attached())
		c := ipConfiguration(o, six)
		c["loadBalancerBackendAddressPools"] = anys(slices.DeleteFunc(children(c, "loadBalancerBackendAddressPools"),
			func(r object) bool { return pool.Equal(azure.ID(at(r, "id"))) }))
		p.write(m.attached(), o, "leaves %s", pool)
	}
}

// leave removes all members from the pools of a load balancer that is to be deleted.
func (p *predecessor) leave(lb azure.ID) {
	for _, key := range slices.Sorted(maps.Keys(p.azure.docs)) {
		o := p.doc(azure.ID(key))
		for _, six := range []bool{false, true} {
			c := ipConfiguration(o, six)
			list := children(c, "loadBalancerBackendAddressPools")
			rest := slices.DeleteFunc(slices.Clone(list), func(r object) bool { return azure.ID(at(r, "id")).Under(lb) })
			if len(rest) != len(list) {
				c["loadBalancerBackendAddressPools"] = anys(rest)
				p.write(azure.ID(key), o, "leaves %s", lb)
			}
		}
	}
}

// --- private link services

func (p *predecessor) linkOf(frontend azure.ID) (azure.ID, object) {
	for _, key := range slices.Sorted(maps.Keys(p.azure.docs)) {
		if !azure.ID(key).Is("Microsoft.Network/privateLinkServices") {
			continue
		}
		o := p.azure.docs[key]
		for _, r := range children(sub(o, "properties"), "loadBalancerFrontendIpConfigurations") {
			if frontend.Equal(azure.ID(at(r, "id"))) {
				return azure.ID(at(o, "id")), p.doc(azure.ID(key))
			}
		}
	}
	return "", nil
}

func (p *predecessor) removeLinks(frontend azure.ID) {
	if id, o := p.linkOf(frontend); o != nil {
		p.erase(id, "its frontend goes")
	}
}

func (p *predecessor) ensureLink(f part) {
	if !switched(f.s, "azure-pls-create") || f.six {
		return
	}
	frontend := f.balancer.Child("frontendIPConfigurations", f.frontend)
	id, have := p.linkOf(frontend)
	if have != nil && tagOf(have, ownerTag) != "" && tagOf(have, ownerTag) != keyOf(f.s) {
		return // it is shared
	}
	name := firstText(noted(f.s, "azure-pls-name"), "pls-"+f.frontend)
	var dirty []string
	if have == nil {
		id = p.network(firstText(noted(f.s, "azure-pls-resource-group"), p.PrivateLinkResourceGroup), "privateLinkServices", name)
		have = object{"location": p.Location, "properties": object{
			"loadBalancerFrontendIpConfigurations": []any{ref(frontend)}, "enableProxyProtocol": false,
		}}
		if p.EdgeZone != nil {
			have["extendedLocation"] = object{"name": p.EdgeZone.Name, "type": p.EdgeZone.Type}
		}
		dirty = append(dirty, "made")
	}
	subnet := p.subnetID(firstText(noted(f.s, "azure-pls-ip-configuration-subnet"), subnetOf(f.s)))
	props := sub(have, "properties")
	if want := p.linkAddresses(f.s, name, subnet); linkText(want) != linkText(children(props, "ipConfigurations")) {
		props["ipConfigurations"] = anys(want)
		dirty = append(dirty, "addresses "+linkText(want))
	}
	for what, want := range map[string][]string{
		"fqdns":         strings.Fields(noted(f.s, "azure-pls-fqdns")),
		"visibility":    strings.Fields(noted(f.s, "azure-pls-visibility")),
		"auto approval": strings.Fields(noted(f.s, "azure-pls-auto-approval")),
	} {
		into, key := props, "fqdns"
		if what != "fqdns" {
			into, key = sub(props, map[string]string{"visibility": "visibility", "auto approval": "autoApproval"}[what]), "subscriptions"
		}
		if slices.Contains(want, "*") {
			want = []string{"*"}
		}
		slices.Sort(want)
		old := manyOf(object{"properties": into}, "", key)
		slices.Sort(old)
		if !slices.Equal(old, want) {
			into[key] = anys(want)
			dirty = append(dirty, what)
		}
	}
	if proxy := strconv.FormatBool(switched(f.s, "azure-pls-proxy-protocol")); firstText(at(have, "properties", "enableProxyProtocol"),
		"false") != proxy {
		props["enableProxyProtocol"] = proxy == "true"
		dirty = append(dirty, "proxy protocol")
	}
	want := maps.Clone(p.Tags)
	if want == nil {
		want = azure.Tags{}
	}
	want[clusterTag], want[ownerTag] = p.ClusterName, keyOf(f.s)
	p.tag(have, want, []string{clusterTag, ownerTag}, &dirty)
	if dirty == nil {
		return
	}
	if o := p.doc(subnet); at(o, "properties", "privateLinkServiceNetworkPolicies") != "Disabled" {
		sub(o, "properties")["privateLinkServiceNetworkPolicies"] = "Disabled"
		p.write(subnet, o, "policies off")
	}
	p.write(id, have, "%s for %s", dirty, keyOf(f.s))
}

func (p *predecessor) linkAddresses(s *v1.Service, link string, subnet azure.ID) (list []object) {
	static := strings.Fields(noted(s, "azure-pls-ip-configuration-ip-address"))
	for i := range int(number(noted(s, "azure-pls-ip-configuration-ip-address-count"), 1)) {
		tail, props := fmt.Sprintf("-dynamic-%d", i-len(static)), object{
			"primary": i == 0, "privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4", "subnet": ref(subnet),
		}
		if i < len(static) {
			tail = "-static-" + static[i]
			props["privateIPAllocationMethod"], props["privateIPAddress"] = "Static", static[i]
		}
		head := subnet.Name() + "-" + link
		list = append(list, object{"name": head[:min(len(head), 80-len(tail))] + tail, "properties": props})
	}
	return list
}

// linkText is what is compared of a private link service's addresses.
func linkText(list []object) string {
	var out []string
	for _, c := range list {
		static := ""
		if at(c, "properties", "privateIPAllocationMethod") == "Static" {
			static = at(c, "properties", "privateIPAddress")
		}
		out = append(out, strings.ToLower(static+" "+at(c, "properties", "primary")+" "+at(c, "properties", "subnet", "id")))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
