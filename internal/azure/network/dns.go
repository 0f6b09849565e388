package network

import "kaz/internal/azure"

// Full types of DNS zones. The type of a record set is that of its zone with the record type, such as "/A".
const (
	DNSZones        = "Microsoft.Network/dnsZones"
	PrivateDNSZones = "Microsoft.Network/privateDnsZones"
)

// DNSZone is the properties of a public or private zone.
type DNSZone struct {
	ZoneType              string   `json:"zoneType,omitempty" azure:"read"`
	NumberOfRecordSets    int      `json:"numberOfRecordSets,omitempty" azure:"read"`
	MaxNumberOfRecordSets int      `json:"maxNumberOfRecordSets,omitempty" azure:"read"`
	NameServers           []string `json:"nameServers,omitempty" azure:"read"` // with a final dot
}

// RecordSet is the properties of a record set with the names that public zones give them. Private zones spell them with a
// small first letter, and decoding takes both.
type RecordSet struct {
	TTL            int64             `json:"TTL"` // seconds
	Metadata       map[string]string `json:"metadata,omitempty"`
	TargetResource *azure.Reference  `json:"targetResource,omitempty"` // of an alias
	A              []ARecord         `json:"ARecords,omitempty" azure:"positional"`
	AAAA           []AAAARecord      `json:"AAAARecords,omitempty" azure:"positional"`
	CNAME          *CNAMERecord      `json:"CNAMERecord,omitempty"`
	MX             []MXRecord        `json:"MXRecords,omitempty" azure:"positional"`
	NS             []NSRecord        `json:"NSRecords,omitempty" azure:"positional"`
	PTR            []PTRRecord       `json:"PTRRecords,omitempty" azure:"positional"`
	SRV            []SRVRecord       `json:"SRVRecords,omitempty" azure:"positional"`
	TXT            []TXTRecord       `json:"TXTRecords,omitempty" azure:"positional"`
	CAA            []CAARecord       `json:"caaRecords,omitempty" azure:"positional"`

	AutoRegistered bool `json:"isAutoRegistered,omitempty" azure:"read"` // of a machine in a linked network; only in private zones
}

// ARecord is an IPv4 address.
type ARecord struct {
	Address string `json:"ipv4Address"`
}

// AAAARecord is an IPv6 address.
type AAAARecord struct {
	Address string `json:"ipv6Address"`
}

// CNAMERecord is the one record of a CNAME set.
type CNAMERecord struct {
	Name string `json:"cname"`
}

// MXRecord is a mail exchange.
type MXRecord struct {
	Preference int32  `json:"preference"`
	Exchange   string `json:"exchange"`
}

// NSRecord is a name server.
type NSRecord struct {
	Name string `json:"nsdname"`
}

// PTRRecord is a name of an address.
type PTRRecord struct {
	Name string `json:"ptrdname"`
}

// SRVRecord is a service.
type SRVRecord struct {
	Priority int32  `json:"priority"`
	Weight   int32  `json:"weight"`
	Port     int32  `json:"port"`
	Target   string `json:"target"`
}

// TXTRecord is the strings of a TXT record, each of at most 255 bytes.
type TXTRecord struct {
	Value []string `json:"value"`
}

// CAARecord says which authorities may issue certificates.
type CAARecord struct {
	Flags int32  `json:"flags"`
	Tag   string `json:"tag"`
	Value string `json:"value"`
}
