package records

import (
	"maps"
	"slices"
	"strings"
)

// Endpoint is the records of one type of a name, as ExternalDNS sends and reads them.
type Endpoint struct {
	Name             string            `json:"dnsName,omitempty"` // without the final dot
	Targets          []string          `json:"targets,omitempty"`
	Type             string            `json:"recordType,omitempty"`
	SetIdentifier    string            `json:"setIdentifier,omitempty"`
	TTL              int64             `json:"recordTTL,omitempty"` // seconds, 0 for none
	Labels           map[string]string `json:"labels,omitempty"`
	ProviderSpecific []Property        `json:"providerSpecific,omitempty"`
}

// Property is a property that ExternalDNS does not interpret.
type Property struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// Changes are what ExternalDNS wants to change. UpdateOld and UpdateNew are the same sets before and after.
type Changes struct {
	Create    []Endpoint `json:"create,omitempty"`
	UpdateOld []Endpoint `json:"updateOld,omitempty"`
	UpdateNew []Endpoint `json:"updateNew,omitempty"`
	Delete    []Endpoint `json:"delete,omitempty"`
}

// Properties of endpoints.
const (
	// AliasProperty has the id of the Azure resource that an alias record set follows. The annotation
	// external-dns.kubernetes.io/webhook-azure-alias sets it.
	AliasProperty = "webhook/azure-alias"

	tagsProperty   = "azure/tags"          // of an annotation: k=v,k2=v2
	metadataPrefix = "azure/metadata-"     // of metadata, before the key
	metadataKeys   = "azure/metadata-keys" // the keys of the metadata, joined by commas
	ownedRecord    = "ownedRecord"         // label of a TXT record of ExternalDNS's registry: the name that it is about
	ownerLabel     = "owner"               // label with the id of the ExternalDNS that owns the record
	resourceLabel  = "resource"            // label with the kind, namespace and name of the object that the record comes from
)

// property returns the value of a property.
func (e Endpoint) property(name string) (string, bool) {
	i := slices.IndexFunc(e.ProviderSpecific, func(p Property) bool { return p.Name == name })
	if i < 0 {
		return "", false
	}
	return e.ProviderSpecific[i].Value, true
}

// alias returns the id of the resource that the endpoint follows, in lower case, and "" for none. TXT records of the registry carry the
// properties of the record that they are about.
func (e Endpoint) alias() string {
	if !aliasable(e.Type) {
		return ""
	}
	id, _ := e.property(AliasProperty)
	return strings.ToLower(strings.TrimSuffix(id, "/"))
}

// aliasable reports whether Azure has aliases of a type.
func aliasable(recordType string) bool {
	return slices.Contains([]string{"A", "AAAA", "CNAME"}, recordType)
}

// metadata returns the metadata that the properties describe, nil for none.
func (e Endpoint) metadata() map[string]string {
	all := map[string]string{}
	if keys, ok := e.property(metadataKeys); ok {
		for key := range strings.SplitSeq(keys, ",") {
			if value, _ := e.property(metadataPrefix + key); value != "" {
				all[key] = value
			}
		}
	}
	if tags, ok := e.property(tagsProperty); ok {
		for tag := range strings.SplitSeq(tags, ",") {
			key, value, _ := strings.Cut(tag, "=")
			if key, value = strings.TrimSpace(key), strings.TrimSpace(value); key != "" && value != "" {
				all[key] = value
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// properties returns the properties of metadata and an alias, in a fixed order: ExternalDNS compares them as texts.
func properties(metadata map[string]string, alias string) (all []Property) {
	keys := slices.Sorted(maps.Keys(metadata))
	for _, key := range keys {
		all = append(all, Property{metadataPrefix + key, metadata[key]})
	}
	if len(keys) > 0 {
		all = append(all, Property{metadataKeys, strings.Join(keys, ",")})
	}
	if alias != "" {
		all = append(all, Property{AliasProperty, alias})
	}
	return all
}

// Problem is why something that ExternalDNS wants is not done.
type Problem struct {
	Name, Type string
	Reason     Reason
	Message    string
}

func (p Problem) String() string {
	return p.Name + " " + p.Type + ": " + string(p.Reason) + ": " + p.Message
}

// Reason is a class of problems, as metrics count them.
type Reason string

// The reasons.
const (
	NoZone      Reason = "NoZone"      // no zone contains the name
	Unsupported Reason = "Unsupported" // Azure has no such records
	Invalid     Reason = "Invalid"     // the record cannot exist in Azure
	Truncated   Reason = "Truncated"   // only a part of the targets is written
	Conflict    Reason = "Conflict"    // the record set is not what ExternalDNS saw
	Protected   Reason = "Protected"   // the configuration protects the name
	Unowned     Reason = "Unowned"     // the TXT record that owns the record cannot be written
	Incomplete  Reason = "Incomplete"  // another record of the host cannot be written, so nothing is removed
	Held        Reason = "Held"        // too many deletions at once
	Refused     Reason = "Refused"     // Azure refused the record
)
