package examples_test

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"net/http"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/kind"
)

// target is what a request is to.
type target struct {
	kind *kind.Kind
	id   azure.ID // the resource, or for a list its parent or scope
	list bool
}

// targetOf finds the resource type of a path. Without one, the kind is nil.
func targetOf(kinds kind.Table, path string) target {
	if id, err := azure.ParseID(path); err == nil && kinds.Of(id.Type()) != nil {
		return target{kind: kinds.Of(id.Type()), id: id}
	}
	cut := strings.LastIndexByte(path, '/')
	above, last := path[:max(cut, 0)], path[cut+1:]
	if cut := strings.LastIndex(above, "/providers/"); cut >= 0 && !strings.Contains(above[cut+len("/providers/"):], "/") {
		return target{kind: kinds.Of(above[cut+len("/providers/"):] + "/" + last), id: azure.ID(above[:cut]), list: true}
	}
	id, err := azure.ParseID(above)
	if err != nil {
		return target{}
	}
	if child := kinds.Of(id.Type() + "/" + last); child != nil {
		return target{kind: child, id: id, list: true}
	}
	return target{kind: kinds.Of(id.Type()), id: id}
}

// known is what the examples say about the types: bodies of requests that make them, and versions of their API.
type known struct {
	bodies   map[string][][]byte     // by type in lower case
	versions map[string]string       // by type, and by namespace, in lower case
	models   map[string]reflect.Type // of the bodies, by type in lower case
	kinds    kind.Table
	scenes   map[string]*scene // by the names of examples
}

func newKnown(kinds kind.Table) *known {
	return &known{bodies: map[string][][]byte{}, versions: map[string]string{}, models: map[string]reflect.Type{}, kinds: kinds}
}

// note adds an example to what is known, and finds its target.
func (a *known) note(c *call) {
	c.target = targetOf(a.kinds, c.sent.path)
	if c.target.kind == nil {
		return
	}
	c.locate()
	name := strings.ToLower(c.target.kind.Name)
	namespace, _, _ := strings.Cut(name, "/")
	a.versions[namespace] = c.sent.version
	if c.sent.method == http.MethodPut && c.whole() {
		a.versions[name] = c.sent.version
		if body := c.body(); body.IsValid() {
			a.models[name] = body.Type()
		}
		a.bodies[name] = append(a.bodies[name], c.sent.body)
	}
}

func (a *known) version(id azure.ID) string {
	name := strings.ToLower(id.Type())
	namespace, _, _ := strings.Cut(name, "/")
	for _, key := range []string{name, namespace} {
		if v := a.versions[key]; v != "" {
			return v
		}
	}
	return "2024-11-01"
}

// whole reports whether the request is to its target itself, not to an action or a view of it.
func (c *call) whole() bool {
	return !c.target.list && strings.EqualFold(strings.TrimRight(c.sent.path, "/"), string(c.target.id))
}

// minimal are the smallest bodies of types that examples refer to. {group} stands for the id of the resource group,
// {name} for the name of the resource, {number} for a number that no other
// body of the type has, {parent} for the parent's number, {parentID} for its id.
//
//go:embed testdata/minimal.json
var minimalText []byte

func minimal(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(minimalText, &all); err != nil {
		t.Fatal(err)
	}
	lower := map[string]json.RawMessage{}
	for name, body := range all {
		lower[strings.ToLower(name)] = body
	}
	return lower
}

// setup makes what an example refers to.
type setup struct {
	testing.TB
	*known
	azure   *core.Emulator
	minimal map[string]json.RawMessage
	region  string
	target  azure.ID
	tried   map[string]bool
	counts  map[string]int // of the minimal bodies so far, by type in lower case
	numbers map[string]int // of what has a minimal body, by id in lower case
	// wanted are addresses that subnets and networks must have, by their ids in lower case.
	wanted map[string]netip.Addr
	// made are the ids in lower case of what was made as an example documents it.
	made map[string]bool
	// groups are the ids in lower case of the resource groups.
	groups map[string]bool
	// fixed are the ids in lower case of what a scene made in a certain state.
	fixed map[string]bool
	// refused are the answers to requests that were to make something.
	refused []string
}

const defaultRegion = "eastus"

// prepare makes what the request of an example needs: its target, unless it makes that, and all that its body refers to.
func (s *setup) prepare(c *call) {
	var body, answer, document map[string]any
	_ = json.Unmarshal(c.sent.body, &body) // a request without a body refers to nothing
	if c.answer.IsValid() {
		s.strip(c)
		answer, document = object(c.answer.Interface()), object(c.document.Interface())
	}
	s.region, s.target = regionOf(body, answer), c.target.id
	for _, d := range []map[string]any{body, document} {
		s.addresses(d, "")
	}
	if own := s.scenes[c.Name]; own != nil {
		s.make(c, own)
		defer s.carryOut(c, own)
	}
	s.references(body, c.target.id)
	switch {
	case c.target.list:
		s.ensure(c.target.id)
		s.elements(c, document)
		s.references(answer, "")
	case c.sent.method == http.MethodPut && c.whole():
		s.group(c.target.id)
		s.ensure(c.target.id.Parent())
	default:
		s.group(c.target.id)
		if model := s.models[strings.ToLower(c.target.kind.Name)]; !c.whole() && (!c.document.IsValid() || inside(c.document).Type() != model) {
			document = nil // of an action whose answer is not the resource
		}
		s.ensure(c.target.id, document)
		if !c.whole() {
			s.references(body, "")
		}
		s.references(answer, "")
	}
}

// strip leaves of the documented answer what a request may have.
func (s *setup) strip(c *call) {
	model := s.models[strings.ToLower(c.target.kind.Name)]
	document := inside(c.document)
	if model == nil || document.Kind() != reflect.Struct {
		return
	}
	if all := document.FieldByName("Value"); all.IsValid() {
		document = all
	}
	writable(c.module, document, model)
}

// elements makes the resources that a list shows.
func (s *setup) elements(c *call, answer map[string]any) {
	all, _ := answer["value"].([]any)
	for _, one := range all {
		doc, _ := one.(map[string]any)
		text, _ := doc["id"].(string)
		name, _ := doc["name"].(string)
		id, err := azure.ParseID(text)
		scope := string(c.target.id)
		if name = name[strings.LastIndexByte(name, '/')+1:]; name == "" && err == nil {
			name = id.Name()
		}
		if name == "" {
			continue
		}
		if err != nil || !strings.EqualFold(id.Type(), c.target.kind.Name) || !id.Under(c.target.id) {
			if c.target.id.Group() == "" {
				scope += "/resourceGroups/rg1"
			}
			id = azure.ID(scope + "/providers/" + c.target.kind.Name + "/" + name)
			if parent := c.target.id; strings.Contains(scope, "/providers/") && strings.HasPrefix(c.target.kind.Name, parent.Type()+"/") {
				id = parent.Child(c.target.kind.Segment(), name)
			}
		}
		s.target, s.region = id, regionOf(doc)
		s.ensure(id, doc)
	}
}

// object is a value as JSON shows it.
func object(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var made map[string]any
	_ = json.Unmarshal(text, &made) // a list is no object
	return made
}

func regionOf(documents ...map[string]any) string {
	for _, d := range documents {
		if region, ok := d["location"].(string); ok && isRegion(region) {
			return region
		}
	}
	return defaultRegion
}

// isRegion reports whether Azure has a region, by its name or its display name.
func isRegion(name string) bool {
	return slices.ContainsFunc(catalog.Regions(), func(r catalog.Region) bool {
		return strings.EqualFold(r.Name, strings.ReplaceAll(name, " ", ""))
	})
}

// addresses notes the private addresses that a document has in subnets.
func (s *setup) addresses(document any, subnet azure.ID) {
	switch d := document.(type) {
	case map[string]any:
		if ref, _ := d["subnet"].(map[string]any); ref != nil {
			text, _ := ref["id"].(string)
			subnet = azure.ID(text)
		}
		text, _ := d["privateIPAddress"].(string)
		if ref, _ := d["virtualNetwork"].(map[string]any); ref != nil { // of a member of a pool
			network, _ := ref["id"].(string)
			member, _ := d["ipAddress"].(string)
			if address, err := netip.ParseAddr(member); err == nil && address.Is4() {
				s.wanted[azure.ID(network).Key()] = address
			}
		}
		if address, err := netip.ParseAddr(text); err == nil && address.Is4() && subnet != "" {
			s.wanted[subnet.Key()], s.wanted[subnet.Parent().Key()] = address, address
		}
		for _, key := range slices.Sorted(maps.Keys(d)) {
			s.addresses(d[key], subnet)
		}
	case []any:
		for _, one := range d {
			s.addresses(one, subnet)
		}
	}
}

// around changes the ranges of a network or a subnet so that it has a wanted address.
func (s *setup) around(id azure.ID, body map[string]any) {
	const network, subnet = 16, 24
	address, ok := s.wanted[id.Key()]
	properties, _ := body["properties"].(map[string]any)
	switch {
	case !ok || properties == nil:
	case properties["addressPrefix"] != nil:
		properties["addressPrefix"] = netip.PrefixFrom(address, subnet).Masked().String()
	case properties["addressSpace"] != nil:
		space, _ := properties["addressSpace"].(map[string]any)
		all, _ := space["addressPrefixes"].([]any)
		if own := netip.PrefixFrom(address, network).Masked().String(); space != nil && !slices.Contains(all, any(own)) {
			space["addressPrefixes"] = append(all, own)
		}
	}
}

// references makes what a document refers to, apart from what is within its own resource.
func (s *setup) references(document any, own azure.ID) {
	switch d := document.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(d)) {
			if how, _ := d["createOption"].(string); key == "managedDisk" && how != "Attach" && how != "" {
				continue // the machine makes this disk
			}
			if id, err := azure.ParseID(key); err == nil { // an identity
				s.ensure(id)
			}
			s.references(d[key], own)
		}
	case []any:
		for _, one := range d {
			s.references(one, own)
		}
	case string:
		if id, err := azure.ParseID(d); err == nil && own == "" || err == nil && !id.Under(own) && !own.Under(id) {
			s.ensure(id)
		}
	}
}

func (s *setup) group(id azure.ID) {
	if group := azure.GroupID(id.Subscription(), id.Group()); id.Group() != "" && !s.groups[group.Key()] {
		s.groups[group.Key()] = true
		s.put(group, map[string]any{"location": s.region})
	}
}

// ensure makes a resource unless it exists: with one of the documents, as an example makes it, or with a minimal body.
func (s *setup) ensure(id azure.ID, documents ...map[string]any) {
	k := s.kinds.Of(id.Type())
	if k == nil || s.fixed[id.Key()] {
		return
	}
	if s.tried[id.Key()] { // for what refers to it
		s.replace(id, documents)
		return
	}
	s.tried[id.Key()] = true
	s.group(id)
	if strings.EqualFold(k.Name, "Microsoft.Resources/resourceGroups") {
		return
	}
	if s.exists(id) { // from the beginning, such as a service of an account
		for _, body := range documents {
			s.made[id.Key()] = body != nil && s.put(id, body)
		}
		return
	}
	s.ensure(id.Parent())
	if k.ReadOnly && k.Inline != "" {
		s.embed(id, k, documents)
		return
	}
	for i, body := range s.candidates(id, documents) {
		s.references(body, id)
		if s.put(id, body) {
			s.made[id.Key()] = i < len(documents) && documents[i] != nil
			return
		}
	}
}

// replace makes a resource that exists as a document says.
func (s *setup) replace(id azure.ID, documents []map[string]any) {
	for _, body := range documents {
		if body == nil || s.made[id.Key()] || !s.exists(id) {
			continue
		}
		s.made[id.Key()] = true // what the body refers to may refer to the resource
		s.references(body, id)
		s.made[id.Key()] = s.put(id, body)
	}
}

func (s *setup) exists(id azure.ID) bool {
	status, _ := s.send(http.MethodGet, id, nil)
	return status == http.StatusOK
}

// candidates are bodies that may make a resource, the best first.
func (s *setup) candidates(id azure.ID, documents []map[string]any) (all []map[string]any) {
	for _, d := range documents {
		if d != nil {
			all = append(all, d)
		}
	}
	var texts [][]byte
	name := strings.ToLower(id.Type())
	if smallest, ok := s.minimal[name]; ok {
		group := azure.GroupID(id.Subscription(), id.Group())
		number := s.counts[name]
		s.counts[name]++
		s.numbers[id.Key()] = number
		texts = append(texts, []byte(strings.NewReplacer("{group}", string(group), "{name}", id.Name(), "{number}", strconv.Itoa(number), "{parentID}", string(id.Parent()),
			"{parent}", strconv.Itoa(s.numbers[id.Parent().Key()])).Replace(string(smallest))))
	}
	texts = append(texts, s.bodies[name][:min(len(s.bodies[name]), mostBodies)]...)
	for _, text := range texts {
		body := map[string]any{}
		_ = json.Unmarshal(text, &body) // an empty body is an empty object
		if location, ok := body["location"].(string); ok && isRegion(location) {
			body["location"] = s.region
		}
		s.around(id, body)
		all = append(all, body)
	}
	if len(all) == 0 {
		all = append(all, map[string]any{"properties": map[string]any{}})
	}
	return all
}

// mostBodies is how many bodies of other examples are tried.
const mostBodies = 3

// embed writes a resource that lives in its parent into the parent.
func (s *setup) embed(id azure.ID, k *kind.Kind, documents []map[string]any) {
	body := maps.Clone(s.candidates(id, documents)[0])
	for _, name := range []string{"id", "type", "etag"} {
		delete(body, name)
	}
	body["name"] = id.Name()
	s.references(body, id)
	status, text := s.send(http.MethodGet, id.Parent(), nil)
	var holder map[string]any
	if err := json.Unmarshal(text, &holder); status != http.StatusOK || err != nil {
		return
	}
	path := strings.Split(k.Inline, ".")
	at := holder
	for _, name := range path[:len(path)-1] {
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	list, _ := at[path[len(path)-1]].([]any)
	list = slices.DeleteFunc(list, func(one any) bool {
		other, _ := one.(map[string]any)
		name, _ := other["name"].(string)
		return strings.EqualFold(name, id.Name())
	})
	at[path[len(path)-1]] = append(list, body)
	if s.put(id.Parent(), holder) {
		s.made[id.Key()] = len(documents) > 0 && documents[0] != nil
	}
}

// nameElements gives the elements of lists that have properties, but no name, the name that their id ends with, or a number. All resources
// inside of others have names, which some examples leave out.
func nameElements(document any, own azure.ID) {
	switch d := document.(type) {
	case map[string]any:
		for _, inner := range d {
			nameElements(inner, own)
		}
	case []any:
		for i, one := range d {
			nameElements(one, own)
			element, _ := one.(map[string]any)
			id, _ := element["id"].(string)
			_, whole := element["properties"]
			part := id != "" && (azure.ID(id).Under(own) || strings.EqualFold(azure.ID(id).Parent().Type(), own.Type()))
			if (whole || part) && element["name"] == nil {
				element["name"] = cmp.Or(id[strings.LastIndexByte(id, '/')+1:], "element"+strconv.Itoa(i+1))
			}
			if whole && part {
				delete(element, "id") // of some examples it is that of another resource
			}
		}
	}
}

// dropMadeDisks takes away the ids of the disks that a machine makes: they are in the answer, and not in the request.
func dropMadeDisks(document any) {
	switch d := document.(type) {
	case map[string]any:
		how, _ := d["createOption"].(string)
		if disk, _ := d["managedDisk"].(map[string]any); disk != nil && how != "" && how != "Attach" {
			delete(disk, "id")
		}
		for _, inner := range d {
			dropMadeDisks(inner)
		}
	case []any:
		for _, one := range d {
			dropMadeDisks(one)
		}
	}
}

// certifyElements gives certificates of gateways the data that no answer shows.
func certifyElements(document map[string]any) {
	properties, _ := document["properties"].(map[string]any)
	for _, key := range []string{"sslCertificates", "trustedRootCertificates", "trustedClientCertificates"} {
		all, _ := properties[key].([]any)
		for _, one := range all {
			element, _ := one.(map[string]any)
			inner, _ := element["properties"].(map[string]any)
			if inner == nil || inner["keyVaultSecretId"] != nil || inner["data"] != nil && inner["data"] != hidden {
				continue
			}
			inner["data"] = certificate(key == "sslCertificates")
			if key == "sslCertificates" {
				inner["password"] = hidden
			}
		}
	}
}

// put reports whether the resource was made.
func (s *setup) put(id azure.ID, body map[string]any) bool {
	s.Helper()
	sent := maps.Clone(body)
	for _, name := range []string{"id", "name", "type", "etag", "systemData"} {
		delete(sent, name)
	}
	nameElements(sent, id)
	certifyElements(sent)
	dropMadeDisks(sent)
	reply := s.attempt(id, sent)
	for range mostRepairs {
		if reply == "" || !s.repair(id, sent, reply) {
			break
		}
		reply = s.attempt(id, sent)
	}
	if reply != "" {
		bb, _ := json.Marshal(sent)
		text := "PUT " + id.Type() + ": " + reply + string(bb)
		if id.Equal(s.target) {
			text = "target " + text
		}
		s.refused = append(s.refused, text)
	}
	return reply == ""
}

// mostRepairs is how many refusals of a body are answered by another body.
const mostRepairs = 8

var (
	nameless = regexp.MustCompile(`every element of ([\w.]+) of resource`)
	unknown  = regexp.MustCompile(`Could not find member '(\w+)' on object of type '\w+'\. Path '([\w.\[\]]+)'`)
	foreign  = regexp.MustCompile(`Error converting value \\"[^"]*\\" to type '\w+'\. Path '([\w.\[\]]+)'`)
	absent   = regexp.MustCompile(`Resource (/subscriptions/\S+) referenced by resource \S+ was not found`)
)

// repair changes a documented body that Azure does not take: an answer has members that a request has not, and leaves out names. It makes
// a resource that is missing. It reports whether there is something to try again.
func (s *setup) repair(id azure.ID, sent map[string]any, reply string) bool {
	for code, location := range map[string]string{"LocationRequired": s.region, "LocationNotAvailableForResourceType": "global"} {
		if strings.Contains(reply, `"`+code+`"`) {
			sent["location"] = location
			return true
		}
	}
	if found := nameless.FindStringSubmatch(reply); found != nil {
		list, _ := at(sent, found[1]).([]any)
		for i, one := range list {
			if element, _ := one.(map[string]any); element != nil && element["name"] == nil {
				element["name"] = "element" + strconv.Itoa(i+1)
			}
		}
		return list != nil
	}
	if found := unknown.FindStringSubmatch(reply); found != nil {
		return remove(sent, found[2])
	}
	if found := foreign.FindStringSubmatch(reply); found != nil {
		return remove(sent, found[1])
	}
	if found := absent.FindStringSubmatch(reply); found != nil && !azure.ID(found[1]).Under(id) && !s.tried[azure.ID(found[1]).Key()] {
		s.ensure(azure.ID(found[1]))
		return true
	}
	return false
}

// at is what a document has at a path such as properties.rules[0].name.
func at(document any, path string) any {
	words := steps(path)
	holder := holderOf(document, words)
	return holder[words[len(words)-1]]
}

// set gives a document a member, and reports whether the document has a place for it.
func set(document any, path string, value any) bool {
	words := steps(path)
	holder := holderOf(document, words)
	if holder != nil {
		holder[words[len(words)-1]] = value
	}
	return holder != nil
}

// remove takes a member away, and reports whether it was there.
func remove(document any, path string) bool {
	words := steps(path)
	holder := holderOf(document, words)
	_, has := holder[words[len(words)-1]]
	delete(holder, words[len(words)-1])
	return has
}

func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// holderOf is the object that has, or may have, the member at a path, nil for none.
func holderOf(document any, words []string) map[string]any {
	for _, word := range words[:len(words)-1] {
		switch d := document.(type) {
		case map[string]any:
			document = d[word]
		case []any:
			n, err := strconv.Atoi(word)
			if err != nil || n >= len(d) {
				return nil
			}
			document = d[n]
		}
	}
	holder, _ := document.(map[string]any)
	return holder
}

// attempt sends a resource and returns the refusal, "" if the resource was made.
func (s *setup) attempt(id azure.ID, body map[string]any) string {
	s.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	status, reply := s.send(http.MethodPut, id, text)
	if status == http.StatusMethodNotAllowed { // Azure has it from the beginning
		status, reply = s.send(http.MethodPatch, id, text)
	}
	if status < http.StatusBadRequest {
		return ""
	}
	return string(reply)
}

func (s *setup) send(method string, id azure.ID, body []byte) (status int, text []byte) {
	s.Helper()
	status, text, err := send(context.Background(), s.azure, request{method: method, path: string(id), version: s.version(id), body: body})
	if err != nil {
		s.Fatal(err)
	}
	return status, text
}
