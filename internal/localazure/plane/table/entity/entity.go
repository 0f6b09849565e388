// Package entity has the entities of tables: what they consist of, their JSON, and their limits. Layer L2.
package entity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/table/odata"
)

// The properties that each entity has.
const (
	partitionKey = "PartitionKey"
	rowKey       = "RowKey"
	timestamp    = "Timestamp"
)

// Key tells an entity from the others of its table.
type Key struct{ Partition, Row string }

// Compare returns the order in which queries return the entities of two keys.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Partition, other.Partition), strings.Compare(k.Row, other.Row))
}

// Property is a property of an entity.
type Property struct {
	Name  string
	Value odata.Value
}

// Entity is an entity. Its properties are in the order in which they were written first. It is not changed once it is kept.
type Entity struct {
	Key
	// Stamp is when it was written. Two writes of an entity never have the same.
	Stamp      time.Time
	Properties []Property
}

// Get returns the value of a property, the zero value for an absent one.
func (e Entity) Get(name string) odata.Value {
	switch name {
	case partitionKey:
		return odata.StringOf(e.Partition)
	case rowKey:
		return odata.StringOf(e.Row)
	case timestamp:
		return odata.TimeOf(e.Stamp)
	}
	if i := e.index(name); i >= 0 {
		return e.Properties[i].Value
	}
	return odata.Value{}
}

func (e Entity) index(name string) int {
	return slices.IndexFunc(e.Properties, func(p Property) bool { return p.Name == name })
}

// Merge returns the entity with the properties of another one.
func (e Entity) Merge(changes Entity) Entity {
	merged := Entity{Key: e.Key, Properties: slices.Clone(e.Properties)}
	for _, p := range changes.Properties {
		if i := merged.index(p.Name); i >= 0 {
			merged.Properties[i] = p
		} else {
			merged.Properties = append(merged.Properties, p)
		}
	}
	return merged
}

// ETag tells the content of an entity from others that it had.
func (e Entity) ETag() string {
	return `W/"datetime'` + url.QueryEscape(odata.TimeOf(e.Stamp).Text()) + `'"`
}

// Size is how many bytes an entity counts.
func (e Entity) Size() int {
	const head, each = 4, 8
	n := head + odata.Width(e.Partition) + odata.Width(e.Row)
	for _, p := range e.Properties {
		n += each + odata.Width(p.Name) + p.Value.Size()
	}
	return n
}

// The limits of an entity.
const (
	mostProperties = 255 - 3 // the keys and the time count
	mostSize       = 1 << 20
	mostValue      = 64 << 10
	mostKey        = 1 << 10
	mostName       = 255
)

// Check returns the limit that an entity exceeds.
func (e Entity) Check() error {
	if n := len(e.Properties); n > mostProperties {
		return invalid("TooManyProperties", "The entity contains more properties than allowed: it has %d besides the three of each "+
			"entity, at most %d are allowed.", n, mostProperties)
	}
	if n := e.Size(); n > mostSize {
		return invalid("EntityTooLarge", "The entity is larger than the maximum size permitted: it has %d bytes, at most %d are allowed.",
			n, mostSize)
	}
	return nil
}

func invalid(code, format string, args ...any) error {
	return behaviour.Refusal(http.StatusBadRequest, code, format, args...)
}

// kept is the form in which entities are kept: each property is its name, its type and its value.
type kept struct {
	Partition  string      `json:"p"`
	Row        string      `json:"r"`
	Stamp      time.Time   `json:"t"`
	Properties [][3]string `json:"v,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e Entity) MarshalJSON() ([]byte, error) {
	k := kept{Partition: e.Partition, Row: e.Row, Stamp: e.Stamp}
	for _, p := range e.Properties {
		k.Properties = append(k.Properties, [3]string{p.Name, string(p.Value.Type), p.Value.Text()})
	}
	return json.Marshal(k)
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Entity) UnmarshalJSON(text []byte) error {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	*e = Entity{Key: Key{k.Partition, k.Row}, Stamp: k.Stamp}
	for _, p := range k.Properties {
		v, err := odata.Parse(odata.Type(p[1]), p[2])
		if err != nil {
			return fmt.Errorf("property %s: %w", p[0], err)
		}
		e.Properties = append(e.Properties, Property{p[0], v})
	}
	return nil
}
