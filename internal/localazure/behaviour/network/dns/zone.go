package dns

import (
	"encoding/base64"
	"fmt"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// publicZones is the type of public zones. Their creation ends in its reply, their deletion is an operation.
func publicZones() behaviour.Type {
	style := behaviour.Plain("Microsoft.Network public DNS")
	style.Etag, style.EtagHeader, style.EmptyTags = behaviour.BareGUID, behaviour.OnGetAndPut, true
	style.Long = map[behaviour.Verb]behaviour.Headers{behaviour.Delete: behaviour.AsyncOperation | behaviour.Location}
	style.Deleted = 202
	style.Protocol = zoneOperations()
	style.Updating, style.Deleting = "Updating", "Deleting"
	return behaviour.Type{
		Name: publicZone.fullType, Style: style, Where: behaviour.Global, NoState: true,
		Own: []string{"properties.maxNumberOfRecordSets", "properties.nameServers", "properties.numberOfRecordSets"},
		Fill: func(c *behaviour.Call) error {
			if err := checkZone(c); err != nil {
				return err
			}
			behaviour.Set(c.Doc, "properties.maxNumberOfRecordSets", publicZone.most)
			if behaviour.At(c.Doc, "properties.nameServers") == nil {
				shard := 1 + c.Intn(9)
				servers := make([]any, 4)
				for i := range servers {
					servers[i] = nameServer(i+1, shard)
				}
				behaviour.Set(c.Doc, "properties.nameServers", servers)
			}
			return schema.Choose(c, "properties.zoneType", "Public", "Public", "Private")
		},
		Settle: writeApex,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			behaviour.Set(view, "properties.numberOfRecordSets", publicZone.count(c, c.ID))
			behaviour.Set(view, "properties.maxNumberOfRecordsPerRecordSet", nil)
		},
	}
}

// writeApex stores the records that every zone has.
func writeApex(c *behaviour.Call) error {
	if _, ok := c.Get(c.ID.Child("NS", "@")); ok {
		return nil
	}
	servers := behaviour.Texts(c.Doc, "properties.nameServers")
	records := make([]any, len(servers))
	for i, s := range servers {
		records[i] = behaviour.Object{"nsdname": s}
	}
	const ttl = 172800
	publicZone.putApex(c, "NS", ttl, records)
	publicZone.putApex(c, "SOA", 3600, publicZone.soa(servers[0], "azuredns-hostmaster.microsoft.com"))
	return nil
}

// zoneOperations returns the protocol of private zones with other paths.
func zoneOperations() behaviour.Protocol {
	private := behaviour.PrivateDNSOperations()
	path := func(o behaviour.Operation, what string) string {
		id := base64.RawStdEncoding.EncodeToString([]byte("ZoneAsyncOperation;" + o.ID + "_" + o.Resource.Subscription()))
		return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Network/%s/%s", o.Resource.Subscription(),
			o.Resource.Group(), what, id)
	}
	return behaviour.Protocol{
		Name:   "Microsoft.Network dnsOperationStatuses",
		Status: func(o behaviour.Operation) string { return path(o, "dnsOperationStatuses") },
		Result: func(o behaviour.Operation) string { return path(o, "dnsOperationResults") },
		Poll:   private.Poll,
	}
}
