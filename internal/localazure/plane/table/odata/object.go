package odata

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
)

// Level says how much an answer tells of its values besides them.
type Level string

// The levels of metadata.
const (
	None    Level = "nometadata"
	Minimal Level = "minimalmetadata"
	Full    Level = "fullmetadata"
)

// LevelOf returns the level in a media type such as application/json;odata=fullmetadata. It reports whether the type is JSON.
func LevelOf(media string) (Level, bool) {
	media = strings.ToLower(strings.ReplaceAll(media, " ", ""))
	if media == "json" || media == "" || media == "*/*" {
		return Minimal, true
	}
	for one := range strings.SplitSeq(media, ",") {
		kind, parameters, _ := strings.Cut(one, ";")
		if kind != "application/json" && kind != "*/*" {
			continue
		}
		for parameter := range strings.SplitSeq(parameters, ";") {
			if level, ok := strings.CutPrefix(parameter, "odata="); ok {
				switch l := Level(strings.Trim(level, `"`)); l {
				case None, Minimal, Full:
					return l, true
				}
				return "", false
			}
		}
		return Minimal, true
	}
	return "", false
}

// ContentType is the type of an answer.
func (l Level) ContentType() string {
	return "application/json;odata=" + string(l) + ";streaming=true;charset=utf-8"
}

// typeSuffix ends the name of the member with the type of another member.
const typeSuffix = "@odata.type"

// Object is a JSON object with its members in the order in which they are set.
type Object struct{ text bytes.Buffer }

// Set adds a member.
func (o *Object) Set(name string, value any) {
	separator := byte(',')
	if o.text.Len() == 0 {
		separator = '{'
	}
	o.text.WriteByte(separator)
	o.write(name)
	o.text.WriteByte(':')
	o.write(value)
}

// SetValue adds a value, with its type if the level wants that and the JSON does not show it. Declared types are those that the
// service's own description has.
func (o *Object) SetValue(level Level, name string, v Value, declared bool) {
	if level == Full && (v.Type == DateTime || !declared && v.annotated()) || level == Minimal && !declared && v.annotated() {
		o.Set(name+typeSuffix, string(v.Type))
	}
	o.Set(name, v.json())
}

// annotated reports whether the JSON of a value does not show its type.
func (v Value) annotated() bool {
	switch v.Type {
	case Binary, DateTime, GUID, Int64:
		return true
	case Double:
		f, _ := v.number()
		return math.IsInf(f, 0) || math.IsNaN(f)
	}
	return false
}

func (v Value) json() any {
	switch {
	case v.Type == "":
		return nil
	case v.Type == Boolean || v.Type == Int32 || v.Type == Double && !v.annotated():
		return json.RawMessage(v.Text())
	}
	return v.Text()
}

// write writes JSON as Azure does, without escapes for HTML.
func (o *Object) write(value any) {
	if raw, ok := value.(json.RawMessage); ok {
		o.text.Write(raw)
		return
	}
	e := json.NewEncoder(&o.text)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // texts, objects and lists of them always have JSON
	o.text.Truncate(o.text.Len() - len("\n"))
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) { return o.Bytes(), nil }

// Bytes returns the JSON.
func (o *Object) Bytes() []byte {
	if o.text.Len() == 0 {
		return []byte("{}")
	}
	return append(bytes.Clone(o.text.Bytes()), '}')
}
