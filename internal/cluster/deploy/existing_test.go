package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/core"
)

// documents are the resources of a cluster's groups that the lists have, by id.
func (l *lab) documents(p cluster.Plan) map[azure.ID]map[string]any {
	l.t.Helper()
	state, err := l.Read(l.t.Context(), p.Names, p.Groups()...)
	if err != nil {
		l.t.Fatal(err)
	}
	all := map[azure.ID]map[string]any{}
	for _, r := range state.Resources {
		if !r.ID.Under(record.SpecID(p.Names)) {
			all[r.ID] = l.document(r.ID)
		}
	}
	return all
}

func (l *lab) document(id azure.ID) map[string]any {
	l.t.Helper()
	doc, err := l.client.Get(l.t.Context(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(doc, &o); err != nil {
		l.t.Fatal(err)
	}
	return o
}

// edit changes the properties of a resource, as a controller does.
func (l *lab) edit(id azure.ID, change func(properties map[string]any)) {
	l.t.Helper()
	doc := l.document(id)
	change(doc["properties"].(map[string]any))
	body, err := json.Marshal(doc)
	if err == nil {
		err = l.write(id, string(body))
	}
	if err != nil {
		l.t.Fatalf("%s: %v", id, err)
	}
}

func appended(list any, json ...any) []any {
	all, _ := list.([]any)
	return append(slices.Clone(all), json...)
}

// controllers do what other programs do with the resources of a cluster.
func (l *lab) controllers(p cluster.Plan) {
	l.t.Helper()
	group := p.Names.Group()
	balancer := group.Resource("Microsoft.Network/loadBalancers", "kubernetes")
	address := group.Resource("Microsoft.Network/publicIPAddresses", "kubernetes-ip")
	front := `{"name":"service","properties":{"publicIPAddress":{"id":"` + string(address) + `-service"}}}`
	const static = `{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`
	for _, made := range []struct {
		id   azure.ID
		body string
	}{{address, static}, {address + "-service", static}, {balancer, `{"location":"westeurope","sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[` + front + `],"backendAddressPools":[{"name":"kubernetes"}]}}`}} {
		if err := l.write(made.id, made.body); err != nil {
			l.t.Fatal(err)
		}
	}
	pool := map[string]any{"id": string(balancer) + "/backendAddressPools/kubernetes"}
	rule := map[string]any{"name": "service", "properties": map[string]any{"priority": 500, "direction": "Inbound", "access": "Allow",
		"protocol": "Tcp", "sourcePortRange": "*", "destinationPortRange": "80", "sourceAddressPrefix": "Internet",
		"destinationAddressPrefix": "*"}}
	additions := map[string]func(o map[string]any){
		"Microsoft.Network/virtualNetworks": func(o map[string]any) {
			space := o["addressSpace"].(map[string]any)
			space["addressPrefixes"] = appended(space["addressPrefixes"], "10.77.0.0/16")
			for _, subnet := range o["subnets"].([]any) {
				subnet.(map[string]any)["properties"].(map[string]any)["serviceEndpoints"] = []any{map[string]any{"service": "Microsoft.Storage"}}
			}
			o["subnets"] = append([]any{map[string]any{"name": "users", "properties": map[string]any{"addressPrefix": "10.77.0.0/24"}}},
				o["subnets"].([]any)...)
		},
		"Microsoft.Network/networkSecurityGroups": func(o map[string]any) { o["securityRules"] = appended(o["securityRules"], rule) },
		"Microsoft.Network/routeTables": func(o map[string]any) {
			o["routes"] = appended(o["routes"], map[string]any{"name": "node", "properties": map[string]any{"addressPrefix": "10.244.9.0/24",
				"nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.224.0.9"}})
		},
		"Microsoft.Network/networkInterfaces": func(o map[string]any) {
			ip := o["ipConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)
			ip["loadBalancerBackendAddressPools"] = appended(ip["loadBalancerBackendAddressPools"], pool)
		},
		"Microsoft.Network/loadBalancers": func(o map[string]any) {
			o["backendAddressPools"] = appended(o["backendAddressPools"], map[string]any{"name": "others"})
		},
		"Microsoft.Network/natGateways": func(o map[string]any) {
			o["publicIpAddresses"] = appended(o["publicIpAddresses"], map[string]any{"id": string(address)})
		},
		"Microsoft.KeyVault/vaults": func(o map[string]any) {
			o["networkAcls"] = map[string]any{"bypass": "AzureServices", "defaultAction": "Allow", "ipRules": []any{}}
		},
		"Microsoft.Storage/storageAccounts": func(o map[string]any) {
			o["networkAcls"] = map[string]any{"bypass": "AzureServices", "defaultAction": "Allow",
				"ipRules": []any{map[string]any{"value": "203.0.113.1", "action": "Allow"}}}
		},
	}
	for id := range l.documents(p) {
		member := !strings.HasSuffix(string(id), "-nic") || strings.Contains(id.Name(), "-cp-") // of the load balancer of the API server alone
		if add := additions[id.Type()]; add != nil && (id.Type() != record.NICType || !member) {
			l.edit(id, add)
		}
		if _, tagged := l.document(id)["tags"]; tagged {
			tag := `{"operation":"Merge","properties":{"tags":{"owner":"team"}}}`
			if _, err := azure.Do(l.t.Context(), l.client, azure.Request{Verb: azure.Patch, ID: id.Resource(record.TagsType, "default"),
				Body: azure.Document(tag), Unseen: true}); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}

// forgetHistory deletes all deployments of a group, as people do.
func (l *lab) forgetHistory(group azure.ID) {
	l.t.Helper()
	all, err := l.client.List(l.t.Context(), azure.Query{Scope: group, Type: record.DeploymentType})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, doc := range all {
		var d record.Deployment
		if err := json.Unmarshal(doc, &d); err != nil {
			l.t.Fatal(err)
		}
		if err := l.client.Delete(l.t.Context(), d.ID); err != nil {
			l.t.Fatal(err)
		}
	}
}

// missing are the paths of values that a document has no longer. Elements of lists are found by their name or id.
func missing(path string, before, after any) []string {
	switch before := before.(type) {
	case map[string]any:
		now, _ := after.(map[string]any)
		var all []string
		for _, key := range slices.Sorted(maps.Keys(before)) {
			if !slices.Contains([]string{"etag", "kaz_revision", "capacity"}, key) {
				all = append(all, missing(path+"."+key, before[key], now[key])...)
			}
		}
		return all
	case []any:
		now, _ := after.([]any)
		var all []string
		for i, one := range before {
			at := slices.IndexFunc(now, func(other any) bool { return identity(one) == identity(other) })
			if at < 0 {
				all = append(all, fmt.Sprintf("%s[%d]", path, i))
			} else {
				all = append(all, missing(fmt.Sprintf("%s[%d]", path, i), one, now[at])...)
			}
		}
		return all
	}
	if !reflect.DeepEqual(before, after) {
		return []string{fmt.Sprintf("%s: %v -> %v", path, before, after)}
	}
	return nil
}

func identity(value any) string {
	if o, ok := value.(map[string]any); ok {
		for _, key := range []string{"name", "id", "service"} {
			if o[key] != nil {
				return strings.ToLower(fmt.Sprint(o[key]))
			}
		}
	}
	return strings.ToLower(fmt.Sprint(value))
}

// TestAdditionsStay checks for every unit that a later deployment keeps what other programs wrote into its resources: after the history
// was deleted, after tags change, after a pool grows, and after a tag goes.
func TestAdditionsStay(t *testing.T) {
	files := []string{"ha.yaml", "team-a.yaml", "team-b.yaml"}
	l := newLab(t, core.Options{})
	p := example(t, nil, files...)
	l.deploy(p)
	l.controllers(p)
	tagged := func(d *definition.Definition) { d.Cluster.Spec.Azure.Tags["new"] = "tag" }
	grown := func(d *definition.Definition) {
		tagged(d)
		for i, pool := range d.Pools {
			if pool.Metadata.Name == "db" {
				d.Pools[i].Spec.Replicas = 3
			}
		}
	}
	for _, step := range []struct {
		name   string
		change func(*definition.Definition)
		forget bool
	}{{"again", nil, true}, {"tags", tagged, false}, {"scale", grown, false}, {"all again", grown, true}} {
		before := l.documents(p)
		if step.forget {
			l.forgetHistory(p.Names.Group())
		}
		r := l.deploy(example(t, step.change, files...))
		if r.Unchanged {
			t.Errorf("%s: nothing was deployed", step.name)
		}
		after := l.documents(p)
		for id, doc := range before {
			if gone := missing("", doc, after[id]); len(gone) > 0 {
				t.Errorf("%s: %s %s lost %v", step.name, id.Type(), id.Name(), gone)
			}
			if more := missing("", after[id], doc); step.forget && len(more) > 0 {
				t.Errorf("%s: %s %s has changed: %v", step.name, id.Type(), id.Name(), more)
			}
		}
		for _, name := range []string{"virtualNetworks/prod-vnet", "networkInterfaces/prod-db-0-nic", "loadBalancers/prod-api-lb"} {
			tags, _ := after[p.Names.Group()+azure.ID("/providers/Microsoft.Network/"+name)]["tags"].(map[string]any)
			if step.change != nil && tags["new"] != "tag" {
				t.Errorf("%s: %s has tags %v", step.name, name, tags)
			}
		}
		if again := l.deploy(example(t, step.change, files...)); !again.Unchanged {
			t.Errorf("%s: the deployment never ends: %v", step.name, again.Units)
		}
	}
	machine := p.Names.Group().Resource(record.MachineType, "prod-db-2")
	if _, err := l.client.Get(t.Context(), machine); err != nil {
		t.Errorf("the pool did not grow: %v", err)
	}
	l.deploy(example(t, nil, files...))
	vnet := l.document(p.Names.Group().Resource("Microsoft.Network/virtualNetworks", "prod-vnet"))
	if tags := vnet["tags"].(map[string]any); tags["new"] != nil || tags["owner"] != "team" {
		t.Errorf("tags %v: want without the tag that the definition no longer has", tags)
	}
}

// TestSources checks that a source of the API server that the definition no longer has is removed, also after a deployment that failed,
// and that rules of others stay.
func TestSources(t *testing.T) {
	l := newLab(t, core.Options{})
	sources := func(sources ...string) cluster.Plan {
		return example(t, func(d *definition.Definition) { d.Cluster.Spec.Network.SSHSources = sources }, "ha.yaml")
	}
	p := sources("198.51.100.7/32", "VirtualNetwork")
	l.deploy(p)
	l.controllers(p)
	bad := sources("198.51.100.7/32")
	bad.Definition.Patches = append(bad.Definition.Patches, definition.TemplatePatch{Spec: definition.PatchSpec{
		Target: definition.Target{Type: "Microsoft.Network/virtualNetworks"}, Merge: map[string]any{"location": "nowhere"}}})
	failing, err := cluster.New(bad.Definition)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Deploy(t.Context(), failing, l.save); err == nil {
		t.Error("the deployment did not fail")
	}
	l.deploy(sources("198.51.100.7/32"))
	var names []string
	group := l.document(p.Names.Group().Resource("Microsoft.Network/networkSecurityGroups", "prod-cp-nsg"))
	for _, rule := range group["properties"].(map[string]any)["securityRules"].([]any) {
		names = append(names, fmt.Sprint(rule.(map[string]any)["name"]))
	}
	old := func(name string) bool { return strings.HasPrefix(name, "ssh-") }
	if !slices.Contains(names, "service") || !slices.Contains(names, "ssh") || slices.ContainsFunc(names, old) {
		t.Errorf("rules %v, want service of others, ssh, and none for the service tag", names)
	}
}

// lagging hides resources from lists of Azure.
type lagging struct {
	next http.RoundTripper
	hide func(id string) bool
}

// RoundTrip implements http.RoundTripper.
func (g lagging) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.next.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/resources") {
		return answer, err
	}
	var list struct {
		Value []map[string]any `json:"value"`
		Next  string           `json:"nextLink,omitempty"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, err
	}
	list.Value = slices.DeleteFunc(list.Value, func(o map[string]any) bool { return g.hide(fmt.Sprint(o["id"])) })
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	err = json.NewEncoder(w).Encode(list)
	return w.Result(), err
}

// TestLaggingList checks that a list of Azure that lacks resources makes no difference: a read of each of them decides.
func TestLaggingList(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "ha.yaml", "team-b.yaml")
	l.deploy(p)
	l.controllers(p)
	before := l.documents(p)
	l.connect(lagging{l.azure.Transport(), func(string) bool { return true }})
	l.requests()
	if r := l.deploy(p); !r.Unchanged {
		t.Errorf("deployed %v", r.Units)
	}
	if writes, _ := l.requests(); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
	l.deploy(example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.Tags["new"] = "tag" }, "ha.yaml", "team-b.yaml"))
	l.connect(l.azure.Transport())
	for id, doc := range before {
		if gone := missing("", doc, l.document(id)); len(gone) > 0 {
			t.Errorf("%s %s lost %v", id.Type(), id.Name(), gone)
		}
	}
}

// TestLaggingMember checks that the name of a replaced member stays its name although a list lacks its machine.
func TestLaggingMember(t *testing.T) {
	l := newLab(t, core.Options{})
	p, err := cluster.WithMembers(example(t, nil, "dev.yaml").Definition, map[int]int{0: 2})
	if err != nil {
		t.Fatal(err)
	}
	w := work{plan: p, template: p.Template(emit.Options{})}
	if err := l.Deployer.write(t.Context(), w, map[string]string{"pkiCA": "a", "pkiEtcdCA": "b", "pkiFrontProxyCA": "c",
		"pkiServiceAccount": "d", "bootstrapToken": "e"}); err != nil {
		t.Fatal(err)
	}
	l.connect(lagging{l.azure.Transport(), func(id string) bool { return strings.Contains(id, "/virtualMachines/") }})
	l.deploy(example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"} }, "dev.yaml"))
	if _, err := l.client.Get(t.Context(), p.Names.Group().Resource(record.MachineType, "dev-cp-0")); !azure.IsNotFound(err) {
		t.Errorf("a second first member was made: %v", err)
	}
}

// TestOddAnswer checks that only a clear answer of Azure makes a resource absent.
func TestOddAnswer(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	for status, body := range map[int]string{403: `{"error":{"code":"AuthorizationFailed","message":"no"}}`, 200: `{"id":"/other"}`} {
		l.connect(fixedAnswer{l.azure.Transport(), "/networkSecurityGroups/dev-node-nsg", status, body})
		l.requests()
		_, err := l.Deploy(t.Context(), example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"} },
			"dev.yaml"), l.save)
		if err == nil || !strings.Contains(err.Error(), "dev-node-nsg") {
			t.Errorf("%d: got %v", status, err)
		}
		if writes, _ := l.requests(); len(writes) > 0 {
			t.Errorf("%d: wrote %v", status, writes)
		}
	}
}

// fixedAnswer answers reads of paths with this end.
type fixedAnswer struct {
	next   http.RoundTripper
	end    string
	status int
	body   string
}

// RoundTrip implements http.RoundTripper.
func (a fixedAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, a.end) {
		return a.next.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	_, _ = w.WriteString(a.body)
	return w.Result(), nil
}

// TestTagsAlone checks that a change of tags writes no document of Azure.
func TestTagsAlone(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	w, err := l.prepare(t.Context(), example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"}
	}, "dev.yaml"), false)
	if err != nil {
		t.Fatal(err)
	}
	for unit, template := range w.template.Units {
		for _, r := range template["resources"].([]any) {
			kind := fmt.Sprint(r.(map[string]any)["type"])
			if kind != "Microsoft.Authorization/roleAssignments" {
				t.Errorf("unit %s writes %s: %v", unit, kind, r)
			}
		}
	}
	if len(w.existing.retags) == 0 {
		t.Error("no tags change")
	}
	changes, err := l.WhatIf(t.Context(), w.plan)
	if err != nil || !slices.ContainsFunc(changes, func(c Change) bool { return strings.Contains(c.String(), "tags.a: (none) -> \"b\"") }) {
		t.Errorf("%v: %v", err, changes)
	}
}

// between calls a function after Azure has answered a read of a resource, and before the client has the answer.
type between struct {
	next http.RoundTripper
	read func(path string)
}

// RoundTrip implements http.RoundTripper.
func (b between) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if r.Method == http.MethodGet {
		b.read(r.URL.Path)
	}
	return answer, err
}

// TestWriteBetween checks that what another program writes between each read of a shared document and the write that follows it stays.
func TestWriteBetween(t *testing.T) {
	files := []string{"ha.yaml", "team-a.yaml", "team-b.yaml"}
	l := newLab(t, core.Options{})
	p := example(t, nil, files...)
	l.deploy(p)
	route, rules := func(n int) map[string]any {
		return map[string]any{"name": fmt.Sprint("foreign-", n), "properties": map[string]any{
			"addressPrefix": fmt.Sprintf("10.%d.0.0/24", 70+n)}}
	}, func(n int) map[string]any {
		return map[string]any{"name": fmt.Sprint("foreign-", n), "properties": map[string]any{"priority": 500 + n, "direction": "Inbound",
			"access": "Allow", "protocol": "Tcp", "sourcePortRange": "*", "destinationPortRange": "80", "sourceAddressPrefix": "Internet",
			"destinationAddressPrefix": "*"}}
	}
	network := p.Names.Group() + "/providers/Microsoft.Network/"
	lists := map[azure.ID]func(o map[string]any, n int){
		network + "virtualNetworks/prod-vnet": func(o map[string]any, n int) {
			space := o["addressSpace"].(map[string]any)
			space["addressPrefixes"] = appended(space["addressPrefixes"], fmt.Sprintf("10.%d.0.0/16", 70+n))
			o["subnets"] = appended(o["subnets"], route(n))
		},
		network + "networkSecurityGroups/prod-cp-nsg": func(o map[string]any, n int) {
			o["securityRules"] = appended(o["securityRules"], rules(n))
		},
		network + "networkInterfaces/prod-db-0-nic": func(o map[string]any, n int) {
			o["dnsSettings"] = map[string]any{"internalDnsNameLabel": fmt.Sprint("foreign-", n)}
		},
		network + "loadBalancers/prod-api-lb": func(o map[string]any, n int) {
			o["backendAddressPools"] = appended(o["backendAddressPools"], map[string]any{"name": fmt.Sprint("foreign-", n)})
		},
	}
	const most = 3
	count, quiet := map[azure.ID]int{}, false
	l.connect(between{l.azure.Transport(), func(path string) {
		change := lists[azure.ID(path)]
		if change == nil || quiet || count[azure.ID(path)] == most {
			return
		}
		quiet = true // its own reads are no occasion
		defer func() { quiet = false }()
		count[azure.ID(path)]++
		l.edit(azure.ID(path), func(o map[string]any) { change(o, count[azure.ID(path)]) })
	}})
	l.deploy(example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Network.SSHSources = []string{"198.51.100.7/32"}
		for kind, merge := range map[string]map[string]any{
			"Microsoft.Network/networkInterfaces": {"disableTcpStateTracking": true},
			"Microsoft.Network/virtualNetworks":   {"enableVmProtection": true},
			"Microsoft.Network/loadBalancers": {"probes": []any{map[string]any{"name": "readyz", "properties": map[string]any{
				"protocol": "Https", "port": 6443.0, "requestPath": "/readyz", "intervalInSeconds": 9.0, "probeThreshold": 2.0}}}},
		} {
			d.Patches = append(d.Patches, definition.TemplatePatch{Spec: definition.PatchSpec{Target: definition.Target{Type: kind},
				Merge: map[string]any{"properties": merge}}})
		}
	}, files...))
	quiet = true
	for id := range lists {
		if count[id] < most {
			t.Errorf("%s: was read %d times, want %d and more", id.Name(), count[id], most)
		}
		text, err := json.Marshal(l.document(id))
		if err != nil {
			t.Fatal(err)
		}
		for n := range count[id] {
			want := fmt.Sprintf("\"foreign-%d\"", n+1)
			if id.Type() == record.NICType && n+1 < most {
				continue // its label is one value
			}
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lost %s: %s", id.Name(), want, text)
			}
		}
	}
	for id, want := range map[azure.ID]string{network + "networkSecurityGroups/prod-cp-nsg": `"ssh"`,
		network + "networkInterfaces/prod-db-0-nic": `"disableTcpStateTracking":true`,
		network + "virtualNetworks/prod-vnet":       `"enableVmProtection":true`} {
		if text, _ := json.Marshal(l.document(id)); !strings.Contains(string(text), want) {
			t.Errorf("%s has not %s: %s", id.Name(), want, text)
		}
	}
}

// TestTagsOfMachines checks that a later definition changes the tags of what is written only once, and that the tags that say from what a
// machine was made stay.
func TestTagsOfMachines(t *testing.T) {
	l := newLab(t, core.Options{})
	tagged := func(tags map[string]string) cluster.Plan {
		return example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.Tags = tags }, "ha.yaml", "team-a.yaml", "team-b.yaml")
	}
	p := tagged(map[string]string{"cost": "1", "old": "x"})
	l.deploy(p)
	before := l.documents(p)
	l.deploy(tagged(map[string]string{"cost": "2"}))
	for _, name := range []string{"Compute/virtualMachines/prod-cp-0", "Compute/virtualMachines/prod-db-0",
		"Network/networkSecurityGroups/prod-node-nsg"} {
		id := p.Names.Group() + azure.ID("/providers/Microsoft."+name)
		want := maps.Clone(before[id]["tags"].(map[string]any))
		want["cost"] = "2"
		delete(want, "old")
		if got := l.document(id)["tags"]; !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s has tags %v, want %v", name, got, want)
		}
	}
}
