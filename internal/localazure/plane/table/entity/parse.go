package entity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"kaz/internal/localazure/plane/table/odata"
)

// Parse reads an entity that a client sends. It has the key of the URL, if there is one, and the keys in its body otherwise.
func Parse(body []byte, at *Key) (e Entity, err error) {
	values, types, err := members(body)
	if err != nil {
		return e, err
	}
	keys := map[string]string{}
	for _, m := range values {
		if m.name == timestamp {
			continue // the service gives the time
		}
		v, err := m.read(types[m.name])
		switch {
		case err != nil:
			return e, Invalid("the property %s: %v", m.name, err)
		case m.name == partitionKey || m.name == rowKey:
			if v.Type != odata.String {
				return e, needed(m.name)
			}
			keys[m.name] = v.Text()
		case v.Type == "": // null is not kept
		default:
			if err := checkProperty(m.name, v); err != nil {
				return e, err
			}
			e.Properties = append(e.Properties, Property{m.name, v})
		}
	}
	if at != nil {
		e.Key = *at
		return e, e.Check()
	}
	for name, key := range map[string]*string{partitionKey: &e.Partition, rowKey: &e.Row} {
		value, given := keys[name]
		if !given {
			return e, needed(name)
		}
		*key = value
	}
	if err := e.Key.Check(); err != nil {
		return e, err
	}
	return e, e.Check()
}

func needed(name string) error {
	return invalid("PropertiesNeedValue", "The values are not specified for all properties in the entity: %s needs a text.", name)
}

// Invalid returns the refusal of a request that is wrong in a way for which there is no code.
func Invalid(format string, args ...any) error {
	return invalid("InvalidInput", "One of the request inputs is not valid: %s.", fmt.Sprintf(format, args...))
}

// Check returns why a key is not allowed.
func (k Key) Check() error {
	for name, value := range map[string]string{partitionKey: k.Partition, rowKey: k.Row} {
		if strings.ContainsAny(value, `/\#?`) || strings.ContainsFunc(value, isControl) {
			return invalid("OutOfRangeInput", "The '%s' parameter of value '%s' is out of range.", name, value)
		}
		if n := odata.Width(value); n > mostKey {
			return invalid("KeyValueTooLarge", "The value of %s has %d bytes, at most %d are allowed.", name, n, mostKey)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7F && r <= 0x9F }

var propertyName = regexp.MustCompile(`^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}\p{Pc}\p{Cf}]*$`)

func checkProperty(name string, v odata.Value) error {
	if n := len([]rune(name)); n > mostName {
		return invalid("PropertyNameTooLong", "The property name exceeds the maximum allowed length (%d): it has %d characters.",
			mostName, n)
	}
	if !propertyName.MatchString(name) {
		return invalid("PropertyNameInvalid", "The property name is invalid: %q is no identifier.", name)
	}
	const counter = 4
	if n := v.Size() - counter; n > mostValue {
		return invalid("PropertyValueTooLarge",
			"The property value exceeds the maximum allowed size (64KB): %s has %d bytes, at most %d are allowed.", name, n, mostValue)
	}
	return nil
}

// member is a member of an object in JSON.
type member struct {
	name string
	raw  json.RawMessage
}

// members returns the members of an object in their order, and the types that it gives for them. It leaves out what describes the object.
func members(body []byte) (values []member, types map[string]odata.Type, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, Invalid("the body is no JSON object")
	}
	types, seen := map[string]odata.Type{}, map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, Invalid("%v", err)
		}
		m := member{name: fmt.Sprint(t)}
		if err := d.Decode(&m.raw); err != nil {
			return nil, nil, Invalid("%v", err)
		}
		if seen[m.name] {
			return nil, nil, invalid("DuplicatePropertiesSpecified", "A property is specified more than one time: %s.", m.name)
		}
		seen[m.name] = true
		name, annotation, annotated := strings.Cut(m.name, "@odata.")
		switch {
		case annotation == "type":
			var text string
			if err := json.Unmarshal(m.raw, &text); err != nil {
				return nil, nil, Invalid("%s is %s, want the name of a type", m.name, m.raw)
			}
			types[name] = odata.Type(text)
		case annotated || strings.HasPrefix(m.name, "odata."):
		default:
			values = append(values, m)
		}
	}
	_, err = d.Token()
	if _, after := d.Token(); err != nil || !errors.Is(after, io.EOF) {
		return nil, nil, Invalid("the body is no JSON object alone")
	}
	return values, types, nil
}

// read reads the value of a member. Its type can be given. It is the zero value for null.
func (m member) read(given odata.Type) (odata.Value, error) {
	text := string(m.raw)
	switch text[0] {
	case 'n':
		return odata.Value{}, nil
	case '{', '[':
		return odata.Value{}, errors.New("objects and lists are no values")
	case 't', 'f':
		return of(odata.Boolean, text, given)
	case '"':
		var s string
		if err := json.Unmarshal(m.raw, &s); err != nil {
			return odata.Value{}, err
		}
		return of(odata.String, s, given, odata.Boolean, odata.Int32, odata.Int64, odata.Double, odata.DateTime, odata.GUID, odata.Binary)
	}
	number := odata.Double
	if !strings.ContainsAny(text, ".eE") {
		if _, err := odata.Parse(odata.Int32, text); err == nil {
			number = odata.Int32
		}
	}
	return of(number, text, given, odata.Int32, odata.Int64, odata.Double)
}

// of reads a value of the given type, or of that which its JSON has by itself.
func of(own odata.Type, text string, given odata.Type, allowed ...odata.Type) (odata.Value, error) {
	if given == "" || given == own {
		return odata.Parse(own, text)
	}
	for _, t := range allowed {
		if t == given {
			return odata.Parse(t, text)
		}
	}
	return odata.Value{}, fmt.Errorf("%.100q is no value of the type %s", text, given)
}
