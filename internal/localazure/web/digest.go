package web

import (
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/store"
)

// digest is what the map shows of a document. It is computed once for each version.
type digest struct {
	entry   *store.Entry
	state   string // provisioningState
	facts   []string
	rows    []row
	inside  []subnet // of a network
	targets []target
}

// target is a reference to another resource: its key, and the path of the place.
type target struct{ key, path string }

// row is a line of a resource with parts, such as a frontend of a load balancer.
type row struct {
	What, Name, Text string
	pool             string  // key of a backend pool, of which the members are counted
	rule             string  // key of a load balancing rule, of which the members have a health
	Health           *health // nil if it is not known
}

// subnet is a subnet of a network.
type subnet struct {
	id       azure.ID
	prefixes string
}

// digestOf reads a document.
func digestOf(e *store.Entry) *digest {
	var doc behaviour.Object
	if json.Unmarshal(e.Text, &doc) != nil {
		return &digest{entry: e, state: "unreadable"}
	}
	d := &digest{entry: e, state: behaviour.Text(doc, "properties.provisioningState")}
	for _, r := range document.References(e.Kind, e.ID, doc) {
		d.targets = append(d.targets, target{r.Target, r.Place.Path})
	}
	look := looks[strings.ToLower(e.Kind.Name)]
	for _, f := range look.facts {
		if text := f(doc); text != "" {
			d.facts = append(d.facts, text)
		}
	}
	if look.rows != nil {
		d.rows = look.rows(doc)
	}
	for _, s := range behaviour.Objects(doc, "properties.subnets") {
		d.inside = append(d.inside, subnet{e.ID.Child("subnets", behaviour.Text(s, "name")), prefixesOf(s)})
	}
	return d
}

func prefixesOf(s behaviour.Object) string {
	if prefix := behaviour.Text(s, "properties.addressPrefix"); prefix != "" {
		return prefix
	}
	return joined("properties.addressPrefixes")(s)
}

// fact is something to know of a resource at a glance, "" for nothing.
type fact func(doc behaviour.Object) string

// look is how the map shows a type.
type look struct {
	label string // short name
	facts []fact
	rows  func(doc behaviour.Object) []row
}

const (
	virtualNetworks = "microsoft.network/virtualnetworks"
	loadBalancers   = "microsoft.network/loadbalancers"
	gateways        = "microsoft.network/applicationgateways"
	interfaces      = "microsoft.network/networkinterfaces"
	scaleSets       = "microsoft.compute/virtualmachinescalesets"
	resourceGroups  = "microsoft.resources/resourcegroups"
)

// looks are the types that the map shows with more than their name, by their names in lower case.
var looks = map[string]look{
	virtualNetworks:                       {"VNet", []fact{joined("properties.addressSpace.addressPrefixes")}, nil},
	loadBalancers:                         {"LB", []fact{text("sku.name")}, balancerRows},
	interfaces:                            {"NIC", []fact{first("properties.ipConfigurations", "properties.privateIPAddress")}, nil},
	scaleSets:                             {"VMSS", []fact{text("sku.name"), number("sku.capacity", "%d instances")}, nil},
	scaleSets + "/virtualmachines":        {"VM", []fact{text("properties.osProfile.computerName")}, nil},
	"microsoft.network/publicipaddresses": {"IP", []fact{text("properties.ipAddress")}, nil},
	"microsoft.network/publicipprefixes":  {"IPs", []fact{text("properties.ipPrefix")}, nil},
	gateways:                              {"GW", []fact{text("properties.operationalState")}, gatewayRows},
	"microsoft.network/networksecuritygroups": {"NSG",
		[]fact{count("properties.securityRules", "rule")}, nil},
	"microsoft.network/routetables":                    {"RT", []fact{count("properties.routes", "route")}, nil},
	"microsoft.network/natgateways":                    {"NAT", nil, nil},
	"microsoft.network/privateendpoints":               {"PE", nil, nil},
	"microsoft.network/dnszones":                       {"DNS", []fact{number("properties.numberOfRecordSets", "%d record sets")}, nil},
	"microsoft.network/privatednszones":                {"DNS", []fact{number("properties.numberOfRecordSets", "%d record sets")}, nil},
	"microsoft.network/trafficmanagerprofiles":         {"TM", []fact{text("properties.dnsConfig.fqdn")}, nil},
	"microsoft.compute/virtualmachines":                {"VM", []fact{text("properties.hardwareProfile.vmSize")}, nil},
	"microsoft.compute/disks":                          {"Disk", []fact{gigabytes, text("properties.diskState")}, nil},
	"microsoft.compute/snapshots":                      {"Snap", []fact{gigabytes}, nil},
	"microsoft.storage/storageaccounts":                {"Stor", []fact{text("sku.name"), text("kind")}, nil},
	"microsoft.containerregistry/registries":           {"Reg", []fact{text("properties.loginServer")}, nil},
	"microsoft.managedidentity/userassignedidentities": {"Id", []fact{text("properties.clientId")}, nil},
	"microsoft.keyvault/vaults":                        {"Vault", nil, nil},
	"microsoft.authorization/roleassignments":          {"Role", nil, nil},
	resourceGroups:                                     {"Group", nil, nil},
	"microsoft.storage/storageaccounts/fileservices/shares": {"Share",
		[]fact{number("properties.shareQuota", "%d GiB"), text("properties.enabledProtocols")}, nil},
}

// labelOf is the short name of a type.
func labelOf(fullType string) string {
	key := strings.ToLower(fullType)
	if l, ok := looks[key]; ok {
		return l.label
	}
	last := fullType[strings.LastIndexByte(fullType, '/')+1:]
	if l, ok := looks["microsoft.network/"+strings.ToLower(last)]; ok { // as those of instances of scale sets
		return l.label
	}
	return last
}

func text(path string) fact {
	return func(doc behaviour.Object) string { return behaviour.Text(doc, path) }
}

func number(path, format string) fact {
	return func(doc behaviour.Object) string {
		if n, ok := behaviour.At(doc, path).(float64); ok {
			return fmt.Sprintf(format, int64(n))
		}
		return ""
	}
}

func gigabytes(doc behaviour.Object) string { return number("properties.diskSizeGB", "%d GiB")(doc) }

func count(path, noun string) fact {
	return func(doc behaviour.Object) string { return plural(len(behaviour.Objects(doc, path)), noun) }
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func joined(path string) fact {
	return func(doc behaviour.Object) string {
		list, _ := behaviour.At(doc, path).([]any)
		var texts []string
		for _, x := range list {
			if s, ok := x.(string); ok {
				texts = append(texts, s)
			}
		}
		return strings.Join(texts, ", ")
	}
}

func first(list, path string) fact {
	return func(doc behaviour.Object) string {
		for _, o := range behaviour.Objects(doc, list) {
			return behaviour.Text(o, path)
		}
		return ""
	}
}

// nameAt is the name of the resource that an object refers to.
func nameAt(o behaviour.Object, path string) string {
	id, err := azure.ParseID(behaviour.Text(o, path+".id"))
	if err != nil {
		return ""
	}
	return id.Name()
}

// balancerRows are the frontends, the rules and the pools of a load balancer.
func balancerRows(doc behaviour.Object) (rows []row) {
	for _, f := range behaviour.Objects(doc, "properties.frontendIPConfigurations") {
		at := nameAt(f, "properties.publicIPAddress")
		if at == "" {
			at = strings.TrimSpace(nameAt(f, "properties.subnet") + " " + behaviour.Text(f, "properties.privateIPAddress"))
		}
		rows = append(rows, row{What: "frontend", Name: behaviour.Text(f, "name"), Text: at})
	}
	for _, r := range behaviour.Objects(doc, "properties.loadBalancingRules") {
		ports := fmt.Sprintf("%s %s → %s", behaviour.Text(r, "properties.protocol"), whole(r, "properties.frontendPort"),
			whole(r, "properties.backendPort"))
		rows = append(rows, row{What: "rule", Name: behaviour.Text(r, "name"), Text: ports, rule: ruleKey(r)})
	}
	for _, p := range behaviour.Objects(doc, "properties.backendAddressPools") {
		pool := row{What: "pool", Name: behaviour.Text(p, "name")}
		if addresses := behaviour.Objects(p, "properties.loadBalancerBackendAddresses"); len(addresses) > 0 {
			pool.Text = memberCount(len(addresses))
		} else if id, err := azure.ParseID(behaviour.Text(p, "id")); err == nil {
			pool.pool = id.Key()
		}
		rows = append(rows, pool)
	}
	return rows
}

func memberCount(n int) string { return plural(n, "member") }

func whole(o behaviour.Object, path string) string {
	if text := number(path, "%d")(o); text != "" {
		return text
	}
	return "?"
}

// gatewayRows are the listeners and the pools of an application gateway, with the health of their members if something probes them.
func gatewayRows(doc behaviour.Object) (rows []row) {
	for _, l := range behaviour.Objects(doc, "properties.httpListeners") {
		host := behaviour.Text(l, "properties.hostName")
		if host == "" {
			host = joined("properties.hostNames")(l)
		}
		rows = append(rows, row{What: "listener", Name: behaviour.Text(l, "name"),
			Text: strings.TrimSpace(behaviour.Text(l, "properties.protocol") + " " + host)})
	}
	probed := map[string]*health{}
	for _, h := range healthOfPools(doc) {
		probed[h.Of] = &h
	}
	for _, p := range behaviour.Objects(doc, "properties.backendAddressPools") {
		name := behaviour.Text(p, "name")
		rows = append(rows, row{What: "pool", Name: name, Text: memberCount(len(behaviour.Objects(p, "properties.backendAddresses"))),
			Health: probed[name]})
	}
	return rows
}
