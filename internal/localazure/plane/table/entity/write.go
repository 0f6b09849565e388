package entity

import (
	"net/url"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/table/odata"
)

// Place is where the entities of a table are.
type Place struct {
	// Base is the URL of the service, with a slash at its end.
	Base           string
	Account, Table string
}

// Path is the path of an entity behind the URL of the service.
func (p Place) Path(k Key) string {
	quote := func(key string) string { return "'" + url.PathEscape(strings.ReplaceAll(key, "'", "''")) + "'" }
	return p.Table + "(" + partitionKey + "=" + quote(k.Partition) + "," + rowKey + "=" + quote(k.Row) + ")"
}

// Write adds an entity to an object. If properties are chosen by their names, it has these alone, and null for those that it lacks.
func (p Place) Write(o *odata.Object, level odata.Level, e Entity, chosen []string) {
	if level == odata.Full {
		o.Set("odata.type", p.Account+"."+p.Table)
		o.Set("odata.id", p.Base+p.Path(e.Key))
	}
	if level != odata.None {
		o.Set("odata.etag", e.ETag())
	}
	if level == odata.Full {
		o.Set("odata.editLink", p.Path(e.Key))
	}
	for _, name := range []string{partitionKey, rowKey, timestamp} {
		if chosen == nil || slices.Contains(chosen, name) {
			o.SetValue(level, name, e.Get(name), true)
		}
	}
	for _, property := range e.Properties {
		if chosen == nil || slices.Contains(chosen, property.Name) {
			o.SetValue(level, property.Name, property.Value, false)
		}
	}
	for _, name := range chosen {
		if e.Get(name).Type == "" {
			o.Set(name, nil)
		}
	}
}
