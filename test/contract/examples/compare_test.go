package examples_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// miss is a field of a documented answer that the local Azure does not answer.
type miss struct {
	rule string // the type and the field in the module, such as "Subnet.AddressPrefix"
	why  string
}

// comparison compares an answer with the documented one, in the types of the module.
type comparison struct {
	// readOnly reports whether Azure alone sets a field of a model.
	readOnly func(rule string) bool
	// made says that what was sent is the documented answer: its ids name what Azure makes anew.
	made bool
	// call is the method of the example's client.
	call string
	// mistakes are those of the example itself.
	mistakes map[string]string
	// excused are the mistakes because of which fields differ, with the reasons.
	excused []string
	misses  []miss
}

func (c *comparison) add(rule, format string, args ...any) {
	c.misses = append(c.misses, miss{rule, fmt.Sprintf(format, args...)})
}

// compare compares got with what is documented. sent is what the request has at the same place, if anything.
func (c *comparison) compare(rule string, documented, got, sent reflect.Value) {
	documented, got, sent = inside(documented), inside(got), inside(sent)
	if !documented.IsValid() {
		return
	}
	if !got.IsValid() {
		if !c.mayLack(rule, documented) {
			c.add(rule, "missing")
		}
		return
	}
	if documented.Type() != got.Type() {
		c.add(rule, "%s, want %s", got.Type(), documented.Type())
		return
	}
	if !sent.IsValid() || sent.Kind() != documented.Kind() {
		sent = reflect.Value{}
	}
	switch documented.Kind() {
	case reflect.Struct:
		if documented.Type() != reflect.TypeFor[time.Time]() {
			c.members(documented, got, sent)
		}
	case reflect.Slice:
		c.elements(rule, documented, got, sent)
	case reflect.Map:
		c.entries(rule, documented, got, sent)
	default:
		c.scalar(rule, documented, got, sent)
	}
}

// inside is the value behind pointers and interfaces, invalid for nil.
func inside(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if v.IsValid() && (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.IsNil() {
		return reflect.Value{}
	}
	return v
}

func (c *comparison) members(documented, got, sent reflect.Value) {
	t := documented.Type()
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		var request reflect.Value
		if sent.IsValid() && !c.readOnly(t.Name()+"."+field.Name) {
			request = sent.FieldByName(field.Name)
		}
		c.compare(t.Name()+"."+field.Name, documented.Field(i), got.Field(i), request)
	}
}

// elements compares lists: elements with names by their names, others by their places.
func (c *comparison) elements(rule string, documented, got, sent reflect.Value) {
	if documented.Len() > 0 && got.Len() == 0 && !c.mayLack(rule, documented) {
		c.add(rule, "an empty list")
		return
	}
	for i := range documented.Len() {
		want := documented.Index(i)
		if idOf(want) != "" && i > 0 && reflect.DeepEqual(want.Interface(), documented.Index(i-1).Interface()) {
			continue // the same resource once more
		}
		one := like(got, i, want)
		if !one.IsValid() {
			if !c.mayLack(rule, documented) {
				c.add(rule, "lacks an element")
			}
			continue
		}
		var request reflect.Value
		if sent.IsValid() {
			request = like(sent, i, want)
		}
		c.compare(rule+"[]", want, one, request)
	}
}

// like is the element with the name of another one, or at the same place.
func like(list reflect.Value, i int, other reflect.Value) reflect.Value {
	if name := nameOf(other); name != "" {
		for i := range list.Len() {
			if strings.EqualFold(nameOf(list.Index(i)), name) {
				return list.Index(i)
			}
		}
	}
	if i < list.Len() {
		return list.Index(i)
	}
	return reflect.Value{}
}

// idOf is the resource id of an element, "" if it has none.
func idOf(element reflect.Value) string {
	element = inside(element)
	if !element.IsValid() || element.Kind() != reflect.Struct {
		return ""
	}
	id := inside(element.FieldByName("ID"))
	if !id.IsValid() || id.Kind() != reflect.String || !strings.HasPrefix(id.String(), "/subscriptions/") {
		return ""
	}
	return id.String()
}

// nameOf is the name of an element without the names of its parents, "" if it has none.
func nameOf(element reflect.Value) string {
	element = inside(element)
	if !element.IsValid() || element.Kind() != reflect.Struct {
		return ""
	}
	name := inside(element.FieldByName("Name"))
	if !name.IsValid() {
		name = inside(element.FieldByName("ID")) // such as that of a rule
	}
	if !name.IsValid() || name.Kind() != reflect.String || strings.HasPrefix(name.String(), "/subscriptions/") {
		return ""
	}
	return name.String()[strings.LastIndexByte(name.String(), '/')+1:]
}

func (c *comparison) entries(rule string, documented, got, sent reflect.Value) {
	if !sent.IsValid() {
		if documented.Len() > 0 && got.Len() == 0 {
			c.add(rule, "an empty object")
		}
		return
	}
	for _, key := range documented.MapKeys() {
		if request := sent.MapIndex(key); request.IsValid() {
			c.compare(rule+"{}", documented.MapIndex(key), got.MapIndex(key), request)
		}
	}
}

// scalar compares values: what the request says must come back, and a word of the API must be the documented one. Other values, such as
// ids, times and addresses, are made up in the documentation.
func (c *comparison) scalar(rule string, documented, got, sent reflect.Value) {
	want := sent
	if !sent.IsValid() || sent.Type() != documented.Type() {
		want = reflect.Value{}
	}
	if word := documented.Kind() == reflect.String && documented.Type().PkgPath() != ""; !want.IsValid() && word && documented.String() != "" &&
		!passing[documented.String()] {
		want = documented
	}
	madeUp := c.made && (computed[rule] || strings.HasSuffix(rule, "ID"))
	if strings.HasSuffix(strings.ToLower(rule), ".etag") || madeUp {
		return
	}
	if want.IsValid() && !equal(want, got) && !equal(documented, got) && !c.mistaken(rule) {
		c.add(rule, "%v, want %v", got, want)
	}
}

// equal compares values. Texts may differ in case and in spaces: ids and regions are shown in the provider's spelling.
func equal(a, b reflect.Value) bool {
	if a.Kind() != reflect.String {
		return a.Interface() == b.Interface()
	}
	plain := func(v reflect.Value) string { return strings.ReplaceAll(v.String(), " ", "") }
	return strings.EqualFold(plain(a), plain(b))
}

// passing are the states that a resource has for a while: which one an example shows is chance.
var passing = map[string]bool{"Updating": true, "Creating": true, "Deleting": true, "Succeeded": true, "Failed": true, "InProgress": true,
	"Accepted": true, "Running": true, "ResolvingDNS": true, "Connected": true, "Connecting": true, "NotConnected": true}

// mayLack reports whether an answer need not have a field that an example shows: it shows which other resources refer to this one, which
// the example does not make, a secret, or a member without content, which recorded answers of Azure leave out.
func (c *comparison) mayLack(rule string, documented reflect.Value) bool {
	return secrets[rule] || blank(documented) || c.readOnly(strings.TrimSuffix(rule, "[]")) && refers(documented) || c.mistaken(rule)
}

func (c *comparison) mistaken(rule string) bool {
	why := cmp.Or(mistakes[rule], mistakes[c.call+" "+rule], c.mistakes[rule])
	if mistake := rule + ": " + why; why != "" && !slices.Contains(c.excused, mistake) {
		c.excused = append(c.excused, mistake)
	}
	return why != ""
}

// refers reports whether a value is a reference to a resource, or a list of them.
func refers(v reflect.Value) bool {
	v = inside(v)
	if !v.IsValid() {
		return false
	}
	if v.Kind() == reflect.Slice && v.Len() > 0 {
		return refers(v.Index(0))
	}
	return idOf(v) != ""
}

// blank reports whether a documented value is an empty text, or an object without members.
func blank(v reflect.Value) bool {
	v = inside(v)
	return v.IsValid() && v.IsZero() && (v.Kind() == reflect.String || v.Kind() == reflect.Struct)
}

// secrets are the fields that the documentation shows and Azure does not.
var secrets = map[string]bool{
	"VirtualMachineExtensionProperties.ProtectedSettings":         true,
	"VirtualMachineScaleSetExtensionProperties.ProtectedSettings": true,
}

// computed are the fields whose values Azure sets itself, although their models do not say so. An example's value is made up.
var computed = map[string]bool{
	"AuthorizationPropertiesFormat.AuthorizationKey":                true,
	"CustomDNSConfigPropertiesFormat.Fqdn":                          true,
	"CustomDNSConfigPropertiesFormat.IPAddresses[]":                 true,
	"BastionHostPropertiesFormat.DNSName":                           true,
	"ExpressRouteCircuitPeeringPropertiesFormat.PrimaryAzurePort":   true,
	"ExpressRouteCircuitPeeringPropertiesFormat.SecondaryAzurePort": true,
	"ExpressRouteCircuitPropertiesFormat.ServiceKey":                true,
	"VaultProperties.VaultURI":                                      true,
}

// mistakes are the fields that an answer cannot have, although the documentation shows them, with the reason. Some are mistakes in the
// answers of one method alone, which stands before the field.
var mistakes = map[string]string{
	"AvailabilitySetProperties.Statuses":                                "recorded answers of Azure have none",
	"GalleryImageVersionSafetyProfile.PolicyViolations":                 "Azure sets them for images that it finds to be unsafe, which the examples' are not",
	"BlobServicesClient.SetServiceProperties BlobServiceProperties.SKU": "as FileServiceProperties.SKU",
	"FileServicesClient.SetServiceProperties FileServiceProperties.SKU": "recorded answers of Azure to a PUT have no SKU, those to a GET have it",
	"AccountProperties.AccountMigrationInProgress":                      "the model says that it is null unless a migration goes on",
	"AccountProperties.IsSKUConversionBlocked":                          "the model says that it is null unless a migration goes on",
	"SSHPublicKeyResource.Type":                                         "recorded answers of Azure have no type",
	"VaultProperties.HsmPoolResourceID":                                 "the examples' vaults are in no pool of hardware security modules",
}
