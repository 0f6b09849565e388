package probe

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

// zone is the fixture with a public DNS zone, privateZone that with a private one.
const (
	zone        = "zone"
	privateZone = "private-zone"
)

const (
	zoneType        = "Microsoft.Network/dnsZones"
	privateZoneType = "Microsoft.Network/privateDnsZones"
	profileType     = "Microsoft.Network/trafficManagerProfiles"
)

func dnsProbes() []Probe {
	const area = "dns"
	needs := []string{zone}
	records := all(zoneType+"/A", zoneType+"/TXT", zoneType+"/CNAME")
	return []Probe{
		{
			Name: "record-etags", Area: area, Minutes: 1, Needs: needs, Rights: records, Run: recordEtags,
			Tries: "PUT and DELETE a record set with wrong preconditions; want 412, and a new ETag in the answer of each PUT",
		},
		{
			Name: "record-metadata", Area: area, Minutes: 1, Needs: needs, Rights: records, Run: recordMetadata,
			Tries: "keep JSON texts of 8 KiB in the metadata of a record set, and read them",
		},
		{
			Name: "record-limits", Area: area, Minutes: 1, Needs: needs, Rights: records, Run: recordLimits,
			Tries: "write record sets beyond the limits of 20 records and of 4,096 characters; want refusals",
		},
		{
			Name: "alias-address", Area: area, Minutes: 1, Cents: 1, Needs: needs, Rights: append(all(pipType), records...),
			Run:   aliasAddress,
			Tries: "make an alias of a public IP; want that it is read without records",
		},
		{
			Name: "alias-profile", Area: area, Minutes: 1, Cents: 1, Needs: needs, Rights: append(all(profileType), records...),
			Run:   aliasProfile,
			Tries: "make an alias of a Traffic Manager profile with an external endpoint; want that it is read without records",
		},
		{
			Name: "profile-endpoints", Area: area, Minutes: 1, Cents: 1, Rights: all(profileType, profileType+"/externalEndpoints"),
			Run:   profileEndpoints,
			Tries: "PUT a Traffic Manager profile without endpoints; want that it keeps those that it has",
		},
		{
			Name: "profile-priorities", Area: area, Minutes: 1, Cents: 1, Rights: all(profileType), Run: profilePriorities,
			Tries: "create a profile with priorities on some endpoints and not on others; want BadRequest",
		},
		{
			Name: "private-record-names", Area: area, Minutes: 2, Cents: 1, Needs: []string{privateZone},
			Rights: all(privateZoneType + "/A"),
			Run:    privateRecordNames,
			Tries:  "PUT a private record set with capital letters in its name; want that it is shown in lower case",
		},
		{
			Name: "private-zone-tags", Area: area, Minutes: 2, Rights: all(privateZoneType), Run: privateZoneTags,
			Tries: "create private zones with 16 tags and with a blank in the name of a tag; want refusals",
		},
	}
}

func zoneID(b *bench.Bench) azure.ID {
	return b.GroupID().Resource(zoneType, "kazv"+b.Random+".example.net")
}

func makeZone(ctx context.Context, b *bench.Bench) {
	b.Make(ctx, zoneID(b), object{"location": "global"})
}

func privateZoneID(b *bench.Bench) azure.ID {
	return b.GroupID().Resource(privateZoneType, "kazv"+b.Random+".internal")
}

func makePrivateZone(ctx context.Context, b *bench.Bench) {
	b.Make(ctx, privateZoneID(b), object{"location": "global"})
}

// addresses are A records.
func addresses(ips ...string) object {
	var records list
	for _, ip := range ips {
		records = append(records, object{"ipv4Address": ip})
	}
	return object{"properties": object{"TTL": 300, "ARecords": records}}
}

func recordEtags(ctx context.Context, b *bench.Bench) {
	id := zoneID(b).Child("A", "etags")
	first := b.Make(ctx, id, addresses("192.0.2.1"), bench.IfNew())
	a := b.Try(ctx, azure.Put, id, addresses("192.0.2.2"), bench.IfNew())
	b.Agree(a.Refused(http.StatusPreconditionFailed), "PUT of a record set that exists with If-None-Match: *: %s", a)
	second := b.Make(ctx, id, addresses("192.0.2.3"), bench.IfMatch(first.Etag()))
	read := b.Get(ctx, id)
	fresh := second.Etag() != first.Etag() && second.Etag() == read.Etag()
	b.Agree(fresh, "the answer of a PUT has the ETag that a read has, and another one than before: %t", fresh)
	a = b.Try(ctx, azure.Put, id, addresses("192.0.2.4"), bench.IfMatch(first.Etag()))
	b.Agree(a.Refused(http.StatusPreconditionFailed), "PUT with an old ETag: %s", a)
	a = b.Try(ctx, azure.Delete, id, nil, bench.IfMatch(first.Etag()))
	b.Agree(a.Refused(http.StatusPreconditionFailed), "DELETE with an old ETag: %s", a)
}

func recordMetadata(ctx context.Context, b *bench.Bench) {
	id := zoneID(b).Child("TXT", "metadata")
	const values, size = 4, 2000
	body := object{"properties": object{"TTL": 300, "TXTRecords": list{object{"value": list{"x"}}}}}
	metadata := object{}
	for i := range values {
		metadata[fmt.Sprint("kaz-", i)] = fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("a", size))
	}
	body["properties"].(object)["metadata"] = metadata
	a := b.Try(ctx, azure.Put, id, body)
	kept := bench.Text(b.Look(ctx, id).Body, "properties.metadata.kaz-3") == metadata["kaz-3"]
	b.Agree(!a.Failed && kept, "metadata of %d JSON texts of %d bytes: %s; it is read as it was written: %t", values, size, a, kept)
}

func recordLimits(ctx context.Context, b *bench.Bench) {
	var ips []string
	const beyond = 21
	for i := range beyond {
		ips = append(ips, fmt.Sprintf("192.0.2.%d", i+1))
	}
	refusal(ctx, b, "21 addresses", zoneID(b).Child("A", "many"), addresses(ips...))
	var strs list
	for range 17 {
		strs = append(strs, strings.Repeat("a", 250))
	}
	refusal(ctx, b, "TXT record of 4,250 characters", zoneID(b).Child("TXT", "long"), object{"properties": object{
		"TTL": 300, "TXTRecords": list{object{"value": strs}},
	}})
}

// alias checks that an alias is read with its target and without records.
func alias(ctx context.Context, b *bench.Bench, id, target azure.ID) {
	a := b.Try(ctx, azure.Put, id, object{"properties": object{"TTL": 300, "targetResource": ref(target)}})
	b.Agree(!a.Failed, "PUT of an alias of %s: %s", kind(target), a)
	doc := b.Look(ctx, id).Body
	led := target.Equal(azure.ID(bench.Text(doc, "properties.targetResource.id")))
	n := bench.Count(doc, "properties.ARecords") + bench.Count(doc, "properties.AAAARecords")
	b.Agree(led && n == 0 && !bench.Has(doc, "properties.CNAMERecord"), "its GET has the target: %t; it has %d addresses", led, n)
}

func aliasAddress(ctx context.Context, b *bench.Bench) {
	ip := b.ID(pipType, "ip")
	b.Make(ctx, ip, sku("Standard", at(b, object{"publicIPAllocationMethod": "Static"})))
	alias(ctx, b, zoneID(b).Child("A", "address"), ip)
}

func profile(b *bench.Bench, endpoints list) object {
	properties := object{
		"profileStatus": "Enabled", "trafficRoutingMethod": "Weighted",
		"dnsConfig":     object{"relativeName": b.Unique("tm"), "ttl": 30},
		"monitorConfig": object{"protocol": "HTTP", "port": 80, "path": "/"},
	}
	if endpoints != nil {
		properties["endpoints"] = endpoints
	}
	return object{"location": "global", "properties": properties}
}

func endpoint(name, target string, priority int) object {
	properties := object{"target": target, "endpointStatus": "Enabled", "weight": 1}
	if priority > 0 {
		properties["priority"] = priority
	}
	return object{"name": name, "type": profileType + "/externalEndpoints", "properties": properties}
}

func aliasProfile(ctx context.Context, b *bench.Bench) {
	id := b.ID(profileType, "profile")
	b.Make(ctx, id, profile(b, list{endpoint("one", "203.0.113.10", 0)}))
	alias(ctx, b, zoneID(b).Child("A", "profile"), id)
}

func profileEndpoints(ctx context.Context, b *bench.Bench) {
	id := b.ID(profileType, "profile")
	b.Make(ctx, id, profile(b, nil))
	b.Make(ctx, id.Child("externalEndpoints", "one"), endpoint("one", "203.0.113.11", 0))
	a := b.Try(ctx, azure.Put, id, profile(b, nil))
	n := bench.Count(b.Get(ctx, id), "properties.endpoints")
	b.Agree(!a.Failed && n == 1, "PUT of a profile without endpoints: %s; it has %d of 1 endpoints", a, n)
}

func profilePriorities(ctx context.Context, b *bench.Bench) {
	refusal(ctx, b, "profile with a priority on one of two endpoints", b.ID(profileType, "profile"),
		profile(b, list{endpoint("one", "203.0.113.12", 1), endpoint("two", "203.0.113.13", 0)}), "BadRequest")
}

func privateRecordNames(ctx context.Context, b *bench.Bench) {
	b.Make(ctx, privateZoneID(b).Child("A", "Capital"), object{"properties": object{
		"ttl": 300, "aRecords": list{object{"ipv4Address": "10.0.0.1"}},
	}})
	for _, d := range b.List(ctx, privateZoneID(b), privateZoneType+"/A") {
		name := bench.Text(d, "name")
		b.Agree(name == "capital", "the record set Capital is listed as %s", name)
	}
}

func privateZoneTags(ctx context.Context, b *bench.Bench) {
	many := object{}
	const beyond = 16
	for i := range beyond {
		many[fmt.Sprint("tag", i)] = "x"
	}
	id := b.GroupID().Resource(privateZoneType, "kazv"+b.Random+"-tags.internal")
	refusal(ctx, b, "16 tags", id, object{"location": "global", "tags": many})
	refusal(ctx, b, "a tag with a blank", id, object{"location": "global", "tags": object{"a b": "x"}})
}
