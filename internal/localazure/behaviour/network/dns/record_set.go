package dns

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// Limits of a record set, from Microsoft's limits and its pages about records, the same for private and public zones.
const (
	mostRecords   = 20
	longestString = 255  // characters of a string in a TXT record
	longestTXT    = 4096 // characters of all strings in a TXT record set
)

// recordType is a type of DNS records with the names of its property in private and in public zones.
type recordType struct {
	name            string
	private, public string
	// fields are the required fields of a record.
	fields []string
	// one is true for sets of exactly one record, which is an object instead of an array.
	one bool
}

var recordTypes = []recordType{
	{name: "A", private: "aRecords", public: "ARecords", fields: []string{"ipv4Address"}},
	{name: "AAAA", private: "aaaaRecords", public: "AAAARecords", fields: []string{"ipv6Address"}},
	{name: "CNAME", private: "cnameRecord", public: "CNAMERecord", fields: []string{"cname"}, one: true},
	{name: "MX", private: "mxRecords", public: "MXRecords", fields: []string{"preference", "exchange"}},
	{name: "PTR", private: "ptrRecords", public: "PTRRecords", fields: []string{"ptrdname"}},
	{name: "SOA", private: "soaRecord", public: "SOARecord", fields: []string{"email"}, one: true},
	{name: "SRV", private: "srvRecords", public: "SRVRecords", fields: []string{"priority", "weight", "port", "target"}},
	{name: "TXT", private: "txtRecords", public: "TXTRecords", fields: []string{"value"}},
	{name: "NS", public: "NSRecords", fields: []string{"nsdname"}},
	{name: "CAA", public: "caaRecords", fields: []string{"flags", "tag", "value"}},
	{name: "DS", public: "DSRecords", fields: []string{"keyTag", "algorithm", "digest"}},
	{name: "NAPTR", public: "NAPTRRecords", fields: []string{"order", "preference", "flags", "services", "regexp", "replacement"}},
	{name: "TLSA", public: "TLSARecords", fields: []string{"usage", "selector", "matchingType", "certAssociationData"}},
}

// zoneKind has the differences between private and public zones.
type zoneKind struct {
	fullType string // resource type of the zones
	ttl      string // name of the property
	public   bool
	most     int // record sets of a zone
}

var (
	privateZone = zoneKind{fullType: schema.Namespace + "privateDnsZones", ttl: "ttl", most: 25000}
	publicZone  = zoneKind{fullType: schema.Namespace + "dnszones", ttl: "TTL", public: true, most: 10000}
)

// types returns the record types of a kind of zones.
func (z zoneKind) types() []recordType {
	return slices.DeleteFunc(slices.Clone(recordTypes), func(r recordType) bool { return z.property(r) == "" })
}

func (z zoneKind) property(r recordType) string {
	if z.public {
		return r.public
	}
	return r.private
}

// recordSets returns the resource types of a zone's records.
func (z zoneKind) recordSets() []behaviour.Type {
	style := behaviour.Plain("DNS record sets")
	style.Etag, style.EtagHeader = behaviour.BareGUID, behaviour.OnGetAndPut
	style.Bare = true
	style.Mismatch = func(id azure.ID, _, have string) *behaviour.Error {
		e := behaviour.Refusal(412, "PreconditionFailed", "The Record set %s has been modified (etag mismatch).", id.Name())
		if have == "" {
			e = behaviour.Refusal(412, "PreconditionFailed", "The Record set %s does not exist.", id.Name())
		}
		e.Bare = true
		return e
	}
	style.Exists = func(id azure.ID) *behaviour.Error {
		e := behaviour.Refusal(412, "PreconditionFailed", "The Record set %s exists already and hence cannot be created again.", id.Name())
		e.Bare = true
		return e
	}
	var types []behaviour.Type
	for _, r := range z.types() {
		types = append(types, behaviour.Type{
			Name: z.fullType + "/" + r.name, Style: style, NoState: !z.public, Page: 100, Latency: z.fullType + "/A",
			Own:     []string{"properties.fqdn", "properties.isAutoRegistered"},
			Fill:    func(c *behaviour.Call) error { return z.fillRecordSet(c, r) },
			Refuse:  func(c *behaviour.Call) error { return z.refuseApex(c, r) },
			Missing: missingRecord,
			All:     func(c *behaviour.Call) ([]behaviour.Object, error) { return z.list(c, r), nil },
			Show:    z.showRecordSet(),
		})
	}
	return types
}

// showRecordSet returns what shows a record set: private DNS shows its names in lower case, public DNS as they were sent.
func (z zoneKind) showRecordSet() func(c *behaviour.Call, view behaviour.Object) {
	if z.public {
		return nil
	}
	return func(_ *behaviour.Call, view behaviour.Object) { lowerRecord(view) }
}

func lowerRecord(view behaviour.Object) {
	lowerName(view)
	behaviour.Set(view, "properties.fqdn", strings.ToLower(behaviour.Text(view, "properties.fqdn")))
}

func missingRecord(c *behaviour.Call) error {
	if _, ok := c.Get(c.ID.Parent()); !ok {
		return behaviour.ParentNotFound("read", c.ID)
	}
	return behaviour.Refusal(404, "NotFound", "The resource record '%s' does not exist in resource group '%s' of subscription '%s'.",
		c.ID.Name(), c.ID.Group(), c.ID.Subscription())
}

// badRecord returns the error for an invalid record set.
func badRecord(format string, args ...any) error {
	e := behaviour.Invalid("BadRequest", format, args...)
	e.Bare = true
	return e
}

// refuseApex refuses to delete the SOA and NS records that a zone needs.
func (z zoneKind) refuseApex(c *behaviour.Call, r recordType) error {
	if r.name == "SOA" || r.name == "NS" && c.ID.Name() == "@" {
		return badRecord("Recordsets of type '%s' with name '@' cannot be deleted.", r.name)
	}
	return nil
}

func (z zoneKind) fillRecordSet(c *behaviour.Call, r recordType) error {
	if err := checkRecordName(c.ID, r); err != nil {
		return err
	}
	if err := z.checkRoom(c); err != nil {
		return err
	}
	properties := behaviour.Sub(c.Doc, "properties")
	z.spell(properties)
	ttl, ok := behaviour.Int(properties, z.ttl)
	const longest = 2147483647
	if !ok || ttl < 0 || ttl > longest {
		return badRecord("The TTL of record set '%s' must be a whole number of seconds from 0 to %d.", c.ID.Name(), longest)
	}
	properties[z.ttl] = ttl
	if err := z.checkRecords(c, r, properties); err != nil {
		return err
	}
	if err := z.checkAlias(c, r); err != nil {
		return err
	}
	if err := z.checkTarget(c, r); err != nil {
		return err
	}
	properties["fqdn"] = recordName(c.ID)
	if z.public {
		behaviour.Default(c.Doc, "properties.targetResource", behaviour.Object{})
		behaviour.Default(c.Doc, "properties.trafficManagementProfile", behaviour.Object{})
	} else {
		properties["isAutoRegistered"] = false
	}
	return nil
}

// recordName returns the full name of a record set, with a final dot.
func recordName(id azure.ID) string {
	zone := id.Parent().Name() + "."
	if id.Name() == "@" {
		return zone
	}
	return id.Name() + "." + zone
}

// spell renames properties to the spelling of this kind of zones.
func (z zoneKind) spell(properties behaviour.Object) {
	spelled := []string{z.ttl, "metadata", "targetResource"}
	for _, r := range z.types() {
		spelled = append(spelled, z.property(r))
	}
	for key, value := range properties {
		i := slices.IndexFunc(spelled, func(s string) bool { return strings.EqualFold(s, key) })
		if i >= 0 && spelled[i] != key {
			delete(properties, key)
			properties[spelled[i]] = value
		}
	}
}

// checkRoom refuses a new record set in a zone that has as many as it can have.
func (z zoneKind) checkRoom(c *behaviour.Call) error {
	if _, exists := c.Get(c.ID); exists || z.count(c, c.ID.Parent()) < z.most {
		return nil
	}
	return badRecord("The record set '%s' cannot be created: the zone has %d record sets, the most that it can have.", c.ID.Name(), z.most)
}

// checkRecordName checks a name relative to its zone. It is "@" or has labels of letters, digits, underscores and
// hyphens. The first label may be a wildcard, except for NS. An SOA record is at "@".
func checkRecordName(id azure.ID, r recordType) error {
	name := id.Name()
	if name == "@" {
		return nil
	}
	if r.name == "SOA" {
		return badRecord("A record set of type 'SOA' must have the name '@', not '%s'.", name)
	}
	const longestLabel, longestName = 63, 253
	for i, label := range strings.Split(name, ".") {
		wildcard := i == 0 && label == "*" && r.name != "NS"
		if !wildcard && !isLabel(label) || len(label) > longestLabel || len(recordName(id)) > longestName+1 {
			return badRecord("The relative record set name '%s' is invalid.", name)
		}
	}
	return nil
}

func isLabel(label string) bool {
	for _, r := range label {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return label != "" && label[0] != '-' && label[len(label)-1] != '-'
}

func (z zoneKind) checkRecords(c *behaviour.Call, r recordType, properties behaviour.Object) error {
	for _, other := range z.types() {
		if property := z.property(other); other.name != r.name && !empty(properties[property]) {
			return badRecord("The record set '%s' of type '%s' must not have the property '%s'.", c.ID.Name(), r.name, property)
		}
	}
	records, err := z.records(c, r, properties)
	if err != nil {
		return err
	}
	if len(records) > mostRecords {
		return badRecord("The record set '%s' has %d records; at most %d are allowed.", c.ID.Name(), len(records), mostRecords)
	}
	for _, record := range records {
		if err := checkRecord(c, r, record); err != nil {
			return err
		}
	}
	if r.name == "TXT" {
		return checkTXT(records)
	}
	return nil
}

// records returns the records of a set, one for the types that have an object instead of an array. A set may be created
// before its records, but for SOA.
func (z zoneKind) records(c *behaviour.Call, r recordType, properties behaviour.Object) ([]behaviour.Object, error) {
	property := z.property(r)
	value := properties[property]
	if r.one {
		record, ok := value.(behaviour.Object)
		switch {
		case ok:
			return []behaviour.Object{record}, nil
		case value == nil && (r.name != "SOA" || z.aliased(properties)):
			return nil, nil
		}
		return nil, badRecord("The record set '%s' of type '%s' must have the property '%s'.", c.ID.Name(), r.name, property)
	}
	if value == nil {
		value = []any{}
		properties[property] = value
	}
	elements, ok := value.([]any)
	if !ok {
		return nil, badRecord("The property '%s' of record set '%s' must be an array.", property, c.ID.Name())
	}
	records := make([]behaviour.Object, len(elements))
	for i, element := range elements {
		if records[i], ok = element.(behaviour.Object); !ok {
			return nil, badRecord("The property '%s' of record set '%s' must have objects.", property, c.ID.Name())
		}
	}
	return records, nil
}

// checkTXT checks how long the strings of a TXT record set are.
func checkTXT(records []behaviour.Object) error {
	total := 0
	for _, record := range records {
		for _, text := range behaviour.Texts(record, "value") {
			n := utf8.RuneCountInString(text)
			if n > longestString {
				return badRecord("The value '%s' has %d characters. A string of a TXT record has at most %d.", text, n, longestString)
			}
			total += n
		}
	}
	if total > longestTXT {
		return badRecord("The combined length of all TXT records in a record set may not exceed %d characters.", longestTXT)
	}
	return nil
}

// aliased reports whether a public record set is an alias of an Azure resource.
func (z zoneKind) aliased(properties behaviour.Object) bool {
	return behaviour.Text(properties, "targetResource.id") != ""
}

func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case behaviour.Object:
		return len(v) == 0
	}
	return false
}

func checkRecord(c *behaviour.Call, r recordType, record behaviour.Object) error {
	for _, name := range r.fields {
		if record[name] == nil {
			return badRecord("A record of record set '%s' of type '%s' has no '%s'.", c.ID.Name(), r.name, name)
		}
	}
	var want func(netip.Addr) bool
	var property string
	switch r.name {
	case "A":
		want, property = netip.Addr.Is4, "ipv4Address"
	case "AAAA":
		want, property = netip.Addr.Is6, "ipv6Address"
	default:
		return nil
	}
	if a, ok := ipam.Parse(behaviour.Text(record, property)); !ok || !want(a) {
		return badRecord("The value '%v' of '%s' in record set '%s' is not a valid IP address.", record[property], property, c.ID.Name())
	}
	return nil
}

// checkAlias refuses a CNAME beside other records of the same name.
func (z zoneKind) checkAlias(c *behaviour.Call, r recordType) error {
	zone := c.ID.Parent()
	if r.name != "CNAME" {
		if _, taken := c.Get(zone.Child("CNAME", c.ID.Name())); taken {
			return badRecord("The record set '%s' cannot be created because a CNAME record with the same name already exists "+
				"in this zone.", c.ID.Name())
		}
		return nil
	}
	if c.ID.Name() == "@" {
		return badRecord("A CNAME record set cannot have the name '@'.")
	}
	for _, other := range z.types() {
		if other.name == "CNAME" {
			continue
		}
		if _, taken := c.Get(zone.Child(other.name, c.ID.Name())); taken {
			return badRecord("The CNAME record set '%s' cannot be created because a record set of type '%s' with the same name "+
				"already exists in this zone.", c.ID.Name(), other.name)
		}
	}
	return nil
}

// allRecordSets returns the type that lists the records of all types of a zone.
func (z zoneKind) allRecordSets(segment string) behaviour.Type {
	return behaviour.Type{
		Name: z.fullType + "/" + segment, Style: behaviour.Plain("DNS record sets"), ReadOnly: true, Page: 100,
		Find: func(*behaviour.Call) (behaviour.Object, error) { return nil, nil },
		All:  func(c *behaviour.Call) ([]behaviour.Object, error) { return z.list(c, z.types()...), nil },
	}
}

// list returns the record sets of some types with the requested name suffix.
func (z zoneKind) list(c *behaviour.Call, types ...recordType) []behaviour.Object {
	suffix := strings.ToLower(c.Query.Get("$recordsetnamesuffix"))
	all := []behaviour.Object{}
	for _, r := range types {
		for id, doc := range c.List(c.ID, z.fullType+"/"+r.name) {
			if strings.HasSuffix(strings.ToLower(id.Name()), suffix) {
				if !z.public {
					doc = behaviour.Clone(doc)
					lowerRecord(doc)
				}
				all = append(all, doc)
			}
		}
	}
	return all
}

// count returns the number of record sets of a zone.
func (z zoneKind) count(c *behaviour.Call, zone azure.ID) int {
	n := 0
	for _, r := range z.types() {
		n += c.Count(zone, z.fullType+"/"+r.name)
	}
	return n
}

// putApex stores a record set at the apex of the zone.
func (z zoneKind) putApex(c *behaviour.Call, name string, ttl int, records any) {
	id := c.ID.Child(name, "@")
	r := recordTypes[slices.IndexFunc(recordTypes, func(r recordType) bool { return r.name == name })]
	properties := behaviour.Object{z.ttl: ttl, z.property(r): records, "fqdn": recordName(id)}
	if z.public {
		properties["targetResource"], properties["trafficManagementProfile"] = behaviour.Object{}, behaviour.Object{}
	} else {
		properties["isAutoRegistered"] = false
	}
	c.Put(id, behaviour.Object{"properties": properties})
}

// soa returns the start of authority record of a zone.
func (z zoneKind) soa(host, email string) behaviour.Object {
	record := behaviour.Object{"host": host, "email": email, "serialNumber": 1, "refreshTime": 3600, "retryTime": 300,
		"expireTime": 2419200}
	if z.public {
		record["minimumTTL"] = 300
	} else {
		record["minimumTtl"] = 10
	}
	return record
}

// checkZone checks that the name of a zone has at least two labels, and that it has not too many tags, and none with a blank in its name:
// Microsoft's documentation of tags forbids both. The error's text was not looked up.
func checkZone(c *behaviour.Call) error {
	const mostTags = 15 // documented; other resources have 50
	if tags := behaviour.Sub(c.Doc, "tags"); len(tags) > mostTags {
		return behaviour.Invalid("BadRequest", "The zone '%s' has %d tags. A zone can have at most %d.", c.ID.Name(), len(tags), mostTags)
	}
	for _, name := range slices.Sorted(maps.Keys(behaviour.Sub(c.Doc, "tags"))) {
		if strings.Contains(name, " ") {
			return behaviour.Invalid("BadRequest", "The tag '%s' of the zone '%s' has a blank in its name.", name, c.ID.Name())
		}
	}
	labels := strings.Split(c.ID.Name(), ".")
	ok := len(labels) > 1
	for _, label := range labels {
		ok = ok && isLabel(label)
	}
	if !ok {
		return behaviour.Invalid("BadRequest",
			"The domain name '%s' is invalid. The provided domain name should have at least two labels of letters, digits, "+
				"underscores and hyphens.", c.ID.Name())
	}
	return nil
}

// nameServer returns the name of the nth name server of a zone.
func nameServer(n int, shard int) string {
	return fmt.Sprintf("ns%d-%02d.azure-dns.%s.", n, shard, [...]string{"com", "net", "org", "info"}[n-1])
}
