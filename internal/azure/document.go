package azure

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Document is the JSON of one resource as Azure returned it, or as it is to be
// sent. It is never changed in place.
type Document []byte

// MarshalJSON returns the document itself.
func (d Document) MarshalJSON() ([]byte, error) {
	if len(d) == 0 {
		return []byte("null"), nil
	}
	return d, nil
}

// UnmarshalJSON keeps a copy of the text.
func (d *Document) UnmarshalJSON(text []byte) error {
	*d = bytes.Clone(text)
	return nil
}

// Etag is the document's own etag, "" when it has none.
func (d Document) Etag() string {
	if text, ok := d.leading("etag"); ok {
		return text
	}
	var head struct {
		Etag string `json:"etag"`
	}
	_ = json.Unmarshal(d, &head) // what is no object has no etag
	return head.Etag
}

// ID is the id that the document gives itself, "" when it has none.
func (d Document) ID() ID {
	if text, ok := d.leading("id"); ok {
		return ID(text)
	}
	var head struct {
		ID ID `json:"id"`
	}
	_ = json.Unmarshal(d, &head) // what is no object has no id
	return head.ID
}

// leading reads the text field name if only text fields stand before it. Azure writes ids and etags that way, so a
// long document is not read to its end for them.
func (d Document) leading(name string) (string, bool) {
	rest := bytes.TrimLeft(d, " \t\r\n")
	separator := byte('{')
	for {
		key, after, ok := quotedAfter(rest, separator)
		if !ok {
			return "", false
		}
		value, after, ok := quotedAfter(after, ':')
		if !ok {
			return "", false
		}
		if string(key) == `"`+name+`"` {
			var text string
			err := json.Unmarshal(value, &text)
			return text, err == nil
		}
		rest, separator = after, ','
	}
}

// quotedAfter cuts the quoted text that follows a separator off b.
func quotedAfter(b []byte, separator byte) (quoted, rest []byte, ok bool) {
	b = bytes.TrimLeft(b, " \t\r\n")
	if len(b) == 0 || b[0] != separator {
		return nil, nil, false
	}
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[:i+1], b[i+1:], true
		}
	}
	return nil, nil, false
}

// Resource is the frame that all resources share around their properties P. It is a typed view of a [Document], with
// the fields that kaz reads or owns.
//
// The struct tag `azure` names the owner of a field, for [Overlay]:
//
//	(none)          written when set; left as it is when absent in the view
//	azure:"exact"   absent in the view means absent in Azure
//	azure:"read"    Azure's own field: never compared, never written
//	azure:"fold"    text that Azure compares without regard to case and blanks
//	azure:"required" a reference without which its holder cannot exist; see [Release]
//
// It also says how the elements of a list are paired with the elements that Azure has:
//
//	azure:"key"         at a field of the element: it tells elements apart
//	azure:"key=lun"     at the list: these fields tell them apart ("key=a+b" for two),
//	                    whatever the element's own tags say
//	azure:"positional"  a list of structs without a key, compared by position
//	azure:"ordered"     a list with a meaning in its order: it takes the order of the view
//	azure:"set"         a list of texts without order
//
// The key of a [Child] is its name, the key of a [Reference] its id. Lists of plain values are compared by position
// unless they are a set. Any other list is an error; see [CheckView].
type Resource[P any] struct {
	ID               ID                `json:"id,omitempty" azure:"read"`
	Name             string            `json:"name,omitempty" azure:"read"`
	Type             string            `json:"type,omitempty" azure:"read"`
	Etag             string            `json:"etag,omitempty" azure:"read"`
	InstanceID       string            `json:"instanceId,omitempty" azure:"read"`
	Location         string            `json:"location,omitempty" azure:"fold"`
	ExtendedLocation *ExtendedLocation `json:"extendedLocation,omitempty"`
	Zones            []string          `json:"zones,omitempty" azure:"set"`
	SKU              *SKU              `json:"sku,omitempty"`
	Kind             string            `json:"kind,omitempty" azure:"fold"`
	Tags             Tags              `json:"tags,omitempty"`
	Properties       P                 `json:"properties"`
}

// Child is a named sub-resource that its parent's document holds inline.
type Child[P any] struct {
	ID         ID       `json:"id,omitempty" azure:"read"`
	Name       string   `json:"name" azure:"key,fold"`
	Etag       string   `json:"etag,omitempty" azure:"read"`
	Zones      []string `json:"zones,omitempty" azure:"set"`
	Properties P        `json:"properties"`
}

func (c Child[P]) partID() (ID, string) { return c.ID, c.Name }

// Reference is how a document names another resource.
type Reference struct {
	ID ID `json:"id" azure:"key"`
}

// Ref is a reference to id.
func Ref(id ID) *Reference { return &Reference{ID: id} }

// To is the id that is referred to, "" where there is no reference.
func (r *Reference) To() ID {
	if r == nil {
		return ""
	}
	return r.ID
}

// SKU is the grade of a resource; Capacity counts the instances of a scale set.
type SKU struct {
	Name     string `json:"name,omitempty" azure:"fold"`
	Tier     string `json:"tier,omitempty" azure:"fold"`
	Capacity *int64 `json:"capacity,omitempty"`
}

// ExtendedLocation is an edge zone.
type ExtendedLocation struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Tags are names and values at a resource. Azure compares the names without
// regard to case. Tags that a view does not mention stay as they are; the value
// [DropTag] takes one away.
type Tags map[string]string

// What Azure takes as tags of a resource; the lengths are in characters.
const (
	MostTags        = 50
	LongestTagName  = 512
	LongestTagValue = 256
	NotInTagNames   = `<>%&\?/`
)

// DropTag as a wanted tag's value takes the tag away. No real value can be this.
const DropTag = "\x00"

// Get reads a tag by its name in any case.
func (t Tags) Get(name string) (string, bool) {
	if v, ok := t[name]; ok {
		return v, true
	}
	for k, v := range t {
		if strings.EqualFold(k, name) {
			return v, true
		}
	}
	return "", false
}

// Decode gives the typed view of a document. A document that does not have the
// shape of P is an error that names the resource.
func Decode[P any](d Document) (Resource[P], error) {
	var r Resource[P]
	if err := json.Unmarshal(d, &r); err != nil {
		return r, fmt.Errorf("document of %s: %w", nameless(d.ID()), err)
	}
	return r, nil
}

// ListAs reads resources as values of a type of the caller.
func ListAs[T any](ctx context.Context, r Reader, q Query) ([]T, error) {
	docs, err := r.List(ctx, q)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, doc := range docs {
		var one T
		if err := json.Unmarshal(doc, &one); err != nil {
			return nil, fmt.Errorf("document of %s: %w", nameless(doc.ID()), err)
		}
		all = append(all, one)
	}
	return all, nil
}

func nameless(id ID) string {
	if id == "" {
		return "a resource without id"
	}
	return string(id)
}
