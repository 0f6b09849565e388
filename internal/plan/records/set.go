package records

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// Key tells record sets apart.
type Key struct{ Zone, Name, Type string }

// Set is a record set as Azure has it.
type Set struct {
	Zone     Zone
	Name     string // relative to the zone, in lower case
	Type     string
	Etag     string
	TTL      int64
	Metadata map[string]string
	Alias    string // id of the resource that the set follows, in lower case; "" for none
	Targets  []string
	// Shares are the contributions of clusters to a shared set, nil for a set of one owner. Unreadable is why they are not known.
	Shares     Shares
	Unreadable error
	// Own is true for sets that belong to Azure: the SOA record, the name servers of the zone, and registered machines. Leases of clusters
	// are kept from ExternalDNS in the same way.
	Own bool
	Doc azure.Document
}

// FullName returns the full name of the set.
func (s Set) FullName() string { return s.Zone.full(s.Name) }

// ID returns the id of a set.
func (s Set) ID() azure.ID { return s.Zone.set(s.Type, s.Name) }

// Key returns the key of the set.
func (s Set) Key() Key { return keyOf(s.Zone, s.Name, s.Type) }

func keyOf(z Zone, relative, recordType string) Key {
	return Key{strings.ToLower(string(z.ID)), relative, recordType}
}

// Read reads a record set of a zone.
func Read(z Zone, doc azure.Document) (Set, error) {
	r, err := azure.Decode[network.RecordSet](doc)
	if err != nil {
		return Set{}, err
	}
	s := Set{
		Zone: z, Name: strings.ToLower(r.Name), Type: strings.ToUpper(r.Type[strings.LastIndexByte(r.Type, '/')+1:]), Etag: r.Etag,
		TTL: r.Properties.TTL, Metadata: r.Properties.Metadata, Doc: doc,
		Alias: strings.ToLower(string(r.Properties.TargetResource.To())),
	}
	if s.Name == "" || s.Type == "" {
		return Set{}, fmt.Errorf("document of %s: a record set without a name or type", r.ID)
	}
	s.Own = r.Properties.AutoRegistered || s.Type == "SOA" || s.Type == "NS" && s.Name == apex || s.isLease()
	s.Shares, s.Unreadable = readShares(s.Metadata)
	if t, ok := typeNamed(s.Type, z.Private); ok {
		s.Targets = canonicalAll(s.Type, t.targets(r.Properties))
	}
	if s.Type == "TXT" {
		// ExternalDNS looks for the owner of a record in the first target alone.
		slices.SortStableFunc(s.Targets, func(a, b string) int { return order(isHeritage(a)) - order(isHeritage(b)) })
	}
	return s, nil
}

func order(first bool) int {
	if first {
		return 0
	}
	return 1
}

// isHeritage reports whether a TXT record is one of ExternalDNS's registry. Encrypted ones cannot be told.
func isHeritage(target string) bool {
	return strings.HasPrefix(strings.Trim(target, `"`), "heritage=external-dns")
}

// isEncrypted reports whether a TXT record may be an encrypted one of ExternalDNS's registry. It is another text each time.
func isEncrypted(target string) bool {
	const shortest = 40 // bytes of nonce, tag and heritage in base64 are more
	text := strings.Trim(target, `"`)
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(text) >= shortest
}

// Endpoint returns the set as ExternalDNS reads it, and false for sets that it must not see.
func (s Set) Endpoint() (Endpoint, bool) {
	e := Endpoint{Name: s.Zone.full(s.Name), Type: s.Type, TTL: s.TTL, Targets: slices.Clone(s.Targets)}
	if s.Alias != "" {
		e.Targets = []string{s.Alias}
	}
	metadata := s.Metadata
	if s.Zone.Private {
		metadata = nil // the provider that ExternalDNS has for private zones ignores it
	}
	e.ProviderSpecific = properties(withoutEmpty(metadata), s.Alias)
	return e, !s.Own && len(e.Targets) > 0
}

// withoutEmpty returns metadata without empty values, which cannot be asked for.
func withoutEmpty(metadata map[string]string) map[string]string {
	all := maps.Clone(metadata)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// wanted is a record set as it is to be.
type wanted struct {
	Zone     Zone
	Name     string
	Type     string
	TTL      int64
	Metadata map[string]string // nil leaves private zones as they are
	Alias    string
	Targets  []string
	Shares   Shares
}

// isAs reports whether Azure has the set as it is wanted.
func (w wanted) isAs(s Set) bool {
	return s.TTL == w.TTL && s.Alias == w.Alias && (w.Alias != "" || sameTargets(w.Type, s.Targets, w.Targets)) &&
		maps.EqualFunc(s.Shares, w.Shares, Contribution.equal) &&
		(w.Zone.Private || maps.Equal(withoutEmpty(foreign(s.Metadata)), w.Metadata))
}

// document returns the document of the set. It keeps what Azure has beside what is wanted.
func (w wanted) document(have *Set) (azure.Document, error) {
	t, ok := typeNamed(w.Type, w.Zone.Private)
	if !ok {
		return nil, fmt.Errorf("%s: no such records in the zone", w.Type)
	}
	properties := map[string]any{}
	if have != nil {
		kept, err := others(have.Doc, w.Zone.Private)
		if err != nil {
			return nil, err
		}
		maps.Copy(properties, kept)
	}
	ttl, list := "TTL", t.public
	if w.Zone.Private {
		ttl, list = "ttl", t.private
	}
	properties[ttl] = w.TTL
	if w.Metadata != nil || len(w.Shares) > 0 {
		metadata, err := w.Shares.metadata(w.Metadata)
		if err != nil {
			return nil, err
		}
		properties["metadata"] = metadata
		if len(metadata) == 0 {
			delete(properties, "metadata")
		}
	}
	if w.Alias != "" {
		properties["targetResource"] = azure.Ref(azure.ID(w.Alias))
		return encode(properties)
	}
	var all []any
	for _, target := range w.Targets {
		r, err := t.parse(target)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	properties[list] = all
	if t.one {
		properties[list] = all[0]
	}
	return encode(properties)
}

func encode(properties map[string]any) (azure.Document, error) {
	return json.Marshal(map[string]any{"properties": properties})
}

// others returns the properties of a document that no endpoint decides and that can be written. Metadata of private zones is one.
func others(doc azure.Document, private bool) (map[string]any, error) {
	var d struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, fmt.Errorf("document of %s: %w", doc.ID(), err)
	}
	decided := []string{"ttl", "targetresource", "fqdn", "provisioningstate", "isautoregistered"}
	if !private {
		decided = append(decided, "metadata")
	}
	for _, t := range types {
		decided = append(decided, strings.ToLower(t.public))
	}
	maps.DeleteFunc(d.Properties, func(key string, value any) bool {
		object, isObject := value.(map[string]any)
		return value == nil || isObject && len(object) == 0 || slices.Contains(decided, strings.ToLower(key))
	})
	return d.Properties, nil
}

// restored returns the document that brings a deleted set back.
func restored(s Set) (azure.Document, error) {
	var d struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(s.Doc, &d); err != nil {
		return nil, fmt.Errorf("document of %s: %w", s.Doc.ID(), err)
	}
	maps.DeleteFunc(d.Properties, func(key string, value any) bool {
		object, isObject := value.(map[string]any)
		return value == nil || isObject && len(object) == 0 ||
			slices.Contains([]string{"fqdn", "provisioningstate", "isautoregistered"}, strings.ToLower(key))
	})
	return encode(d.Properties)
}

// ownerOf returns the owner in a TXT record of ExternalDNS's registry, "" for none.
func ownerOf(target string) string {
	for field := range strings.SplitSeq(strings.Trim(target, `"`), ",") {
		if owner, ok := strings.CutPrefix(field, "external-dns/owner="); ok {
			return owner
		}
	}
	return ""
}

// Endpoints returns the record sets as the ExternalDNS of a cluster reads them, in the order of their names and types. Of shared sets it
// reads its own contributions.
func (s Snapshot) Endpoints(cluster string) []Endpoint {
	all := make([]Endpoint, 0, len(s.Sets))
	for _, set := range s.Sets {
		if len(set.Shares) > 0 {
			all = append(all, set.contributions(cluster)...)
		} else if e, ok := set.Endpoint(); ok {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Endpoint) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Type, b.Type), strings.Compare(a.SetIdentifier, b.SetIdentifier))
	})
	return all
}

// contributions returns what a cluster has in a shared set.
func (s Set) contributions(cluster string) (all []Endpoint) {
	for id, c := range s.Shares {
		if c.Cluster == cluster {
			all = append(all, Endpoint{
				Name: s.Zone.full(s.Name), Type: s.Type, TTL: c.TTL, Targets: slices.Clone(c.Targets), SetIdentifier: id,
				ProviderSpecific: c.Routing.properties(),
			})
		}
	}
	return all
}
