package rights

// The features of the external-dns-webhook.
const (
	// PublicZones writes record sets of public DNS zones.
	PublicZones Feature = "public-dns-zones"
	// PrivateRecordZones writes record sets of private DNS zones.
	PrivateRecordZones Feature = "private-dns-zones"
	// Aliases makes record sets that follow an Azure resource.
	Aliases Feature = "dns-aliases"
	// RoutedNames has Traffic Manager answer names that clusters share.
	RoutedNames Feature = "dns-traffic-manager"
)

// DNSFeatures returns the features of the external-dns-webhook, in the order of the reference.
func DNSFeatures() []Feature { return []Feature{PublicZones, PrivateRecordZones, Aliases, RoutedNames} }

// dnsZones are the needs of the external-dns-webhook. It writes neither zones nor the records of their apex that belong to Azure.
func dnsZones() []Need {
	needs := []Need{
		{network + "dnszones/read", RecordZones, PublicZones, "find zones", false},
		{network + "dnszones/recordsets/read", RecordZones, PublicZones, "list the records of a zone", false},
		{network + "privateDnsZones/read", RecordZones, PrivateRecordZones, "find zones", false},
		{network + "privateDnsZones/ALL/read", RecordZones, PrivateRecordZones, "list the records of a zone", false},
		{network + "publicIPAddresses/join/action", RecordZones, Aliases, "make a record set that follows a public IP", true},
	}
	for _, t := range []string{"trafficManagerProfiles", "trafficManagerProfiles/externalEndpoints"} {
		for _, verb := range []string{"read", "write", "delete"} {
			const why = "have Traffic Manager answer names that clusters share, in the group of the zone or that of the flag"
			needs = append(needs, Need{network + t + "/" + verb, RecordZones, RoutedNames, why, true})
		}
	}
	for _, t := range []string{"A", "AAAA", "CAA", "CNAME", "MX", "NS", "PTR", "SRV", "TXT"} {
		needs = append(needs, recordNeeds("dnszones/"+t, PublicZones)...)
		if t != "CAA" && t != "NS" {
			needs = append(needs, recordNeeds("privateDnsZones/"+t, PrivateRecordZones)...)
		}
	}
	return needs
}

func recordNeeds(t string, f Feature) []Need {
	return []Need{
		{network + t + "/read", RecordZones, f, "read a record set that changed meanwhile", false},
		{network + t + "/write", RecordZones, f, "write record sets", false},
		{network + t + "/delete", RecordZones, f, "delete record sets", false},
	}
}
