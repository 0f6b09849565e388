package vault

import (
	"strings"

	"kaz/internal/emulator/behaviour"
)

// Value is a stored secret as the data plane shows it.
type Value struct {
	ID, Version, Value, ContentType string
	Enabled                         bool
	Attributes                      behaviour.Object
}

// ValueOf returns the secret of a stored document.
func ValueOf(doc behaviour.Object) Value {
	id := behaviour.Text(doc, "properties.secretUriWithVersion")
	value, _ := doc[valueField].(string)
	return Value{
		ID: id, Version: id[strings.LastIndexByte(id, '/')+1:], Value: value, ContentType: behaviour.Text(doc, "properties.contentType"),
		Enabled: behaviour.Bool(doc, "properties.attributes.enabled"), Attributes: behaviour.Sub(doc, "properties.attributes"),
	}
}
