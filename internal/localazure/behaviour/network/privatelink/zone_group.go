package privatelink

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// zoneGroups is the type that writes the names of a private endpoint into private DNS zones.
func zoneGroups() behaviour.Type {
	return behaviour.Type{
		Name:  schema.Namespace + "privateEndpoints/privateDnsZoneGroups",
		Style: schema.RetryAfter(10, 10),
		Fill: func(c *behaviour.Call) error {
			if err := schema.CheckName(c.ID); err != nil {
				return err
			}
			return schema.List(c, "properties.privateDnsZoneConfigs")
		},
		Settle: writeZoneRecords,
		Missing: func(c *behaviour.Call) error {
			return behaviour.Refusal(404, "NotFound", "Resource %s not found.", c.ID.Name())
		},
		Removed: func(c *behaviour.Call) error {
			removeZoneRecords(c.World, c.Old)
			return nil
		},
	}
}

func zoneConfigurations() behaviour.Type {
	return schema.Inside("privateEndpoints/privateDnsZoneGroups/privateDnsZoneConfigs", "properties.privateDnsZoneConfigs", behaviour.Type{
		ReadOnly: true,
		Own:      []string{"properties.recordSets"},
		Fill: func(c *behaviour.Call) error {
			id := azure.ID(behaviour.Text(c.Doc, "properties.privateDnsZoneId"))
			if _, err := azure.ParseID(string(id)); err != nil || !id.Is(schema.Namespace+"privateDnsZones") {
				return schema.Malformed("InvalidPrivateDnsZoneId",
					"Value '%s' of properties.privateDnsZoneId of resource %s is not the id of a private DNS zone.", id, c.ID)
			}
			if _, ok := c.Get(id); !ok {
				return behaviour.InvalidReference(c.ID, id)
			}
			return schema.List(c, "properties.recordSets")
		},
	})
}

// writeZoneRecords writes the A records of the endpoint's names and lists them in the group.
func writeZoneRecords(c *behaviour.Call) error {
	removeZoneRecords(c.World, c.Old)
	endpoint, ok := c.Get(c.ID.Parent())
	if !ok {
		return behaviour.InvalidReference(c.ID, c.ID.Parent())
	}
	for _, config := range behaviour.Objects(c.Doc, "properties.privateDnsZoneConfigs") {
		zone := azure.ID(behaviour.Text(config, "properties.privateDnsZoneId"))
		records := []any{}
		for _, name := range endpointNames(c.World, endpoint) {
			if !strings.EqualFold(zone.Name(), "privatelink."+name.public) {
				continue
			}
			if err := c.Apply(behaviour.Itself(), zone.Child("A", name.host), endpointRecord(name.addresses)); err != nil {
				return err
			}
			records = append(records, behaviour.Object{
				"recordType": "A", "recordSetName": name.host, "fqdn": name.host + "." + strings.ToLower(zone.Name()),
				"ttl": endpointTTL, "ipAddresses": schema.Array(name.addresses), "provisioningState": "Succeeded",
			})
		}
		behaviour.Set(config, "properties.recordSets", records)
	}
	return nil
}

const endpointTTL = 10

func endpointRecord(addresses []string) behaviour.Object {
	records := make([]any, len(addresses))
	for i, a := range addresses {
		records[i] = behaviour.Object{"ipv4Address": a}
	}
	return behaviour.Object{"properties": behaviour.Object{"ttl": endpointTTL, "aRecords": records}}
}

// removeZoneRecords deletes the records that a group has written.
func removeZoneRecords(w behaviour.World, group behaviour.Object) {
	for _, config := range behaviour.Objects(group, "properties.privateDnsZoneConfigs") {
		zone := azure.ID(behaviour.Text(config, "properties.privateDnsZoneId"))
		for _, record := range behaviour.Objects(config, "properties.recordSets") {
			w.Delete(zone.Child("A", behaviour.Text(record, "recordSetName")))
		}
	}
}
