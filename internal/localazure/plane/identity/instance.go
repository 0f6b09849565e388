package identity

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const (
	machineType  = "Microsoft.Compute/virtualMachines"
	scaleSetType = "Microsoft.Compute/virtualMachineScaleSets"
	instanceType = scaleSetType + "/virtualMachines"
)

func isInstance(id azure.ID) bool { return id.Is(instanceType) }

func findMachine(w behaviour.World, id azure.ID) (behaviour.Object, bool) {
	if !id.Is(machineType) && !id.Is(instanceType) {
		return nil, false
	}
	return w.Get(id)
}

// instance answers a request for the metadata of a machine.
func (s *Service) instance(w http.ResponseWriter, r *http.Request, machine azure.ID, path string) {
	query := lowerKeys(r.URL.Query())
	if query.Get("api-version") == "" {
		fail(w, http.StatusBadRequest, "Bad request",
			"api-version was not specified in the request. For more information refer to aka.ms/azureimds")
		return
	}
	leaf, isLeaf := strings.CutPrefix(path, computePath+"/")
	if isLeaf {
		path = computePath
	}
	if f := query.Get("format"); f != "" && !strings.EqualFold(f, "json") && (!isLeaf || !strings.EqualFold(f, "text")) {
		fail(w, http.StatusBadRequest, "Bad request", fmt.Sprintf("format %q is not supported here: json is", f))
		return
	}
	var body any
	s.World(func(w behaviour.World) {
		doc, ok := findMachine(w, machine)
		if !ok {
			return
		}
		m := view{world: w, id: machine, doc: doc}
		switch path {
		case "/metadata/instance":
			body = object{"compute": m.compute(), "network": m.network()}
		case computePath:
			body = m.compute()
		case "/metadata/instance/network":
			body = m.network()
		case "/metadata/loadbalancer":
			body = m.loadBalancer()
		}
	})
	if body == nil {
		fail(w, http.StatusNotFound, "not_found", fmt.Sprintf("There is no virtual machine %s.", machine))
		return
	}
	if isLeaf {
		sendLeaf(w, body.(object), leaf)
		return
	}
	send(w, http.StatusOK, body)
}

// computePath is the path of the metadata of a machine itself.
const computePath = "/metadata/instance/compute"

// sendLeaf answers with one value of a document, as text. The name is a path in lower case, such as osprofile/computername.
func sendLeaf(w http.ResponseWriter, of object, name string) {
	text, ok := leafOf(of, strings.Split(name, "/"))
	if !ok {
		fail(w, http.StatusNotFound, "Not found", fmt.Sprintf("%s has no text of that name: %s", computePath, name))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text) // the client is gone
}

// leafOf is the text at a path of a document. The names of the path are in lower case.
func leafOf(of object, path []string) (string, bool) {
	for key, value := range of {
		if strings.ToLower(key) != path[0] {
			continue
		}
		if inner, ok := value.(object); ok && len(path) > 1 {
			return leafOf(inner, path[1:])
		}
		text, ok := value.(string)
		return text, ok && len(path) == 1
	}
	return "", false
}

type object = behaviour.Object

// view returns a machine's metadata from the resources.
type view struct {
	world behaviour.World
	id    azure.ID
	doc   object
}

func (v view) text(paths ...string) string {
	for _, p := range paths {
		if s := behaviour.Text(v.doc, p); s != "" {
			return s
		}
	}
	return ""
}

// number returns a count as metadata spells it: a string, empty for none.
func number(doc object, path string) string {
	if n, ok := behaviour.Int(doc, path); ok {
		return fmt.Sprint(n)
	}
	return ""
}

func (v view) compute() object {
	name, set := v.id.Name(), ""
	switch {
	case isInstance(v.id):
		set = v.id.Parent().Name()
		name = set + "_" + v.id.Name()
	case behaviour.RefID(v.doc, "properties.virtualMachineScaleSet") != "":
		set = behaviour.RefID(v.doc, "properties.virtualMachineScaleSet").Name()
	}
	zone := ""
	if zones := behaviour.Texts(v.doc, "zones"); len(zones) > 0 {
		zone = zones[0]
	}
	tags := v.tags()
	joined := make([]string, len(tags))
	for i, t := range tags {
		joined[i] = fmt.Sprintf("%s:%s", t["name"], t["value"])
	}
	image := behaviour.Sub(v.doc, "properties.storageProfile.imageReference")
	return object{
		"azEnvironment":          "AzurePublicCloud",
		"location":               v.text("location"),
		"name":                   name,
		"offer":                  behaviour.Text(image, "offer"),
		"osType":                 cmp.Or(v.text("properties.storageProfile.osDisk.osType"), "Linux"),
		"platformFaultDomain":    v.faultDomain(),
		"platformSubFaultDomain": "",
		"platformUpdateDomain":   v.faultDomain(),
		"provider":               "Microsoft.Compute",
		"publisher":              behaviour.Text(image, "publisher"),
		"resourceGroupName":      v.id.Group(),
		"resourceId":             string(v.id),
		"sku":                    behaviour.Text(image, "sku"),
		"subscriptionId":         v.id.Subscription(),
		"tags":                   strings.Join(joined, ";"),
		"tagsList":               tags,
		"version":                cmp.Or(behaviour.Text(image, "exactVersion"), behaviour.Text(image, "version")),
		"vmId":                   v.text("properties.vmId"),
		"vmScaleSetName":         set,
		"vmSize":                 v.text("properties.hardwareProfile.vmSize", "sku.name"),
		"zone":                   zone,
		"osProfile": object{
			"computerName":  v.text("properties.osProfile.computerName"),
			"adminUsername": v.text("properties.osProfile.adminUsername"),
			"disablePasswordAuthentication": fmt.Sprint(behaviour.Bool(v.doc,
				"properties.osProfile.linuxConfiguration.disablePasswordAuthentication")),
		},
		"publicKeys": v.publicKeys(),
		"storageProfile": object{
			"imageReference": orEmpty(image),
			"osDisk":         orEmpty(behaviour.Sub(v.doc, "properties.storageProfile.osDisk")),
			"dataDisks":      v.disks(),
		},
	}
}

// publicKeys returns the keys with which the administrator logs in.
func (v view) publicKeys() []object {
	keys := []object{}
	for _, k := range behaviour.Objects(v.doc, "properties.osProfile.linuxConfiguration.ssh.publicKeys") {
		keys = append(keys, object{"keyData": behaviour.Text(k, "keyData"), "path": behaviour.Text(k, "path")})
	}
	return keys
}

func orEmpty(o object) object {
	if o == nil {
		return object{}
	}
	return o
}

// faultDomain returns the fault domain of the machine. The compute provider writes it into a member of the document
// that clients do not see.
func (v view) faultDomain() string {
	return cmp.Or(number(v.doc, "runtime.faultDomain"), number(v.doc, "properties.platformFaultDomain"), "0")
}

func (v view) tags() []object {
	tags := []object{}
	for name, value := range behaviour.Sub(v.doc, "tags") {
		tags = append(tags, object{"name": name, "value": value})
	}
	slices.SortFunc(tags, func(a, b object) int { return strings.Compare(a["name"].(string), b["name"].(string)) })
	return tags
}

func (v view) disks() []object {
	disks := []object{}
	for _, d := range behaviour.Objects(v.doc, "properties.storageProfile.dataDisks") {
		disks = append(disks, object{
			"lun": number(d, "lun"), "name": behaviour.Text(d, "name"), "caching": behaviour.Text(d, "caching"),
			"createOption": behaviour.Text(d, "createOption"), "diskSizeGB": number(d, "diskSizeGB"),
			"managedDisk": orEmpty(behaviour.Sub(d, "managedDisk")),
		})
	}
	return disks
}

// address is one of a machine's addresses with the fields to show it.
type address struct {
	private, public string
	subnet          string // prefix of the subnet
	six             bool
}

// interfaces returns the ids of the machine's interfaces, the primary one first.
func (v view) interfaces() []azure.ID {
	refs := behaviour.Objects(v.doc, "properties.networkProfile.networkInterfaces")
	slices.SortStableFunc(refs, func(a, b object) int {
		return cmp.Compare(rank(a), rank(b))
	})
	var ids []azure.ID
	for _, r := range refs {
		ids = append(ids, azure.ID(behaviour.Text(r, "id")))
	}
	return ids
}

func rank(ref object) int {
	if behaviour.Bool(ref, "properties.primary") {
		return 0
	}
	return 1
}

func (v view) network() object {
	list := []object{}
	for _, id := range v.interfaces() {
		nic, ok := v.world.Get(id)
		if !ok {
			continue
		}
		four, six := family{}, family{}
		for _, a := range v.addresses(nic) {
			if a.six {
				six.add(a)
			} else {
				four.add(a)
			}
		}
		list = append(list, object{
			"macAddress": strings.ReplaceAll(behaviour.Text(nic, "properties.macAddress"), "-", ""),
			"ipv4":       four.object(true), "ipv6": six.object(false),
		})
	}
	return object{"interface": list}
}

// family returns the addresses of one IP version.
type family struct{ addresses, subnets []object }

func (f *family) add(a address) {
	f.addresses = append(f.addresses, object{"privateIpAddress": a.private, "publicIpAddress": a.public})
	if p, err := netip.ParsePrefix(a.subnet); err == nil {
		s := object{"address": p.Masked().Addr().String(), "prefix": fmt.Sprint(p.Bits())}
		if !slices.ContainsFunc(f.subnets, func(o object) bool { return behaviour.Equal(o, s) }) {
			f.subnets = append(f.subnets, s)
		}
	}
}

func (f *family) object(subnets bool) object {
	o := object{"ipAddress": f.addresses}
	if f.addresses == nil {
		o["ipAddress"] = []object{}
	}
	if subnets || len(f.subnets) > 0 {
		o["subnet"] = f.subnets
	}
	return o
}

func (v view) addresses(nic object) []address {
	var all []address
	for _, c := range behaviour.Objects(nic, "properties.ipConfigurations") {
		a := address{private: behaviour.Text(c, "properties.privateIPAddress")}
		if parsed, err := netip.ParseAddr(a.private); err == nil {
			a.six = parsed.Is6()
		} else {
			a.six = behaviour.Text(c, "properties.privateIPAddressVersion") == "IPv6"
		}
		if public, ok := v.world.Get(behaviour.RefID(c, "properties.publicIPAddress")); ok {
			// The load balancer's part of the metadata shows standard addresses. This part does not.
			if !strings.EqualFold(behaviour.Text(public, "sku.name"), "Standard") {
				a.public = behaviour.Text(public, "properties.ipAddress")
			}
		}
		if subnet, ok := v.world.Get(behaviour.RefID(c, "properties.subnet")); ok {
			a.subnet = prefixOf(subnet, a.six)
		}
		all = append(all, a)
	}
	return all
}

func prefixOf(subnet object, six bool) string {
	for _, text := range append(behaviour.Texts(subnet, "properties.addressPrefixes"), behaviour.Text(subnet, "properties.addressPrefix")) {
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is6() == six {
			return text
		}
	}
	return ""
}

// loadBalancer returns the public addresses that lead to the machine.
func (v view) loadBalancer() object {
	public, inbound, outbound := []object{}, []object{}, []object{}
	for _, id := range v.interfaces() {
		nic, ok := v.world.Get(id)
		if !ok {
			continue
		}
		for _, c := range behaviour.Objects(nic, "properties.ipConfigurations") {
			private := behaviour.Text(c, "properties.privateIPAddress")
			if ip, ok := v.world.Get(behaviour.RefID(c, "properties.publicIPAddress")); ok &&
				strings.EqualFold(behaviour.Text(ip, "sku.name"), "Standard") {
				public = append(public,
					object{"frontendIpAddress": behaviour.Text(ip, "properties.ipAddress"), "privateIpAddress": private})
			}
			for _, pool := range behaviour.Objects(c, "properties.loadBalancerBackendAddressPools") {
				inbound = append(inbound, v.rules(azure.ID(behaviour.Text(pool, "id")), private)...)
			}
		}
	}
	return object{"loadbalancer": object{"publicIpAddresses": public, "inboundRules": inbound, "outboundRules": outbound}}
}

// rules returns what the load balancer of a pool sends to an address.
func (v view) rules(pool azure.ID, private string) []object {
	balancer, ok := v.world.Get(pool.Parent())
	if !ok {
		return nil
	}
	var rules []object
	for _, r := range behaviour.Objects(balancer, "properties.loadBalancingRules") {
		if !behaviour.RefID(r, "properties.backendAddressPool").Equal(pool) {
			continue
		}
		frontend, _ := v.world.Get(behaviour.RefID(r, "properties.frontendIPConfiguration"))
		ip, _ := v.world.Get(behaviour.RefID(frontend, "properties.publicIPAddress"))
		front := cmp.Or(behaviour.Text(ip, "properties.ipAddress"), behaviour.Text(frontend, "properties.privateIPAddress"))
		at := cmp.Or(front, "")
		rules = append(rules, object{
			"protocol": behaviour.Text(r, "properties.protocol"), "frontendIpAddress": at,
			"frontendPort":     behaviour.At(r, "properties.frontendPort"),
			"privateIpAddress": private, "backendPort": behaviour.At(r, "properties.backendPort"),
		})
	}
	return rules
}
