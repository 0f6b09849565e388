package behaviour

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// Field describes a member of the documents of a type: what clients may send there, and what Azure fills in.
type Field struct {
	// path has the keys that lead to the field. The key "[]" goes to each element of an array, "{}" to each value of an object.
	path  []string
	kind  fieldKind
	words []string // of an enumeration, in Azure's spelling
	// otherwise is the value that Azure writes where there is none, nil for none. It is written only into objects that exist.
	otherwise any
	secret    bool // clients never see it
}

// fieldKind is the JSON type of a field.
type fieldKind string

const (
	flagField   fieldKind = "bool"
	numberField fieldKind = "int"
	textField   fieldKind = "text"
	objectField fieldKind = "object"
	listField   fieldKind = "list"
	anyField    fieldKind = "any"
	// guidField is a GUID that Azure makes once, timeField the time of the creation.
	guidField fieldKind = "guid"
	timeField fieldKind = "time"
)

// Fields describe the documents of a type.
type Fields []Field

// Normalize converts values as Azure's deserialisers do. It accepts a text for a number or a boolean, a number for a text,
// and a word of an enumeration in another case. It returns an error for a value that does not fit.
func (fs Fields) Normalize(c *Call) error {
	for _, f := range fs {
		if err := f.normalize(c, c.Doc, 0); err != nil {
			return err
		}
	}
	return nil
}

// Complete writes what the document leaves out.
func (fs Fields) Complete(c *Call) {
	for _, f := range fs {
		f.complete(c, c.Doc, 0)
	}
}

// each calls f with the values at the next key of the path.
func each(value any, key string, f func(any) error) error {
	switch key {
	case "[]":
		list, _ := value.([]any)
		for _, element := range list {
			if err := f(element); err != nil {
				return err
			}
		}
	case "{}":
		object, _ := value.(Object)
		for _, element := range object {
			if err := f(element); err != nil {
				return err
			}
		}
	default:
		if object, ok := value.(Object); ok && object[key] != nil {
			return f(object[key])
		}
	}
	return nil
}

func (f Field) normalize(c *Call, value any, depth int) error {
	key, last := f.path[depth], depth == len(f.path)-1
	if !last {
		return each(value, key, func(next any) error { return f.normalize(c, next, depth+1) })
	}
	switch holder := value.(type) {
	case Object:
		if holder[key] == nil {
			return nil
		}
		converted, ok := f.convert(holder[key])
		if !ok {
			return f.refuse(c, holder[key])
		}
		holder[key] = converted
		if f.secret {
			delete(holder, key)
		}
	case []any:
		for i, element := range holder {
			converted, ok := f.convert(element)
			if !ok {
				return f.refuse(c, element)
			}
			holder[i] = converted
		}
	}
	return nil
}

// convert returns a value as the field has it, and whether it fits.
func (f Field) convert(value any) (any, bool) {
	switch f.kind {
	case flagField:
		return flag(value)
	case numberField:
		return wholeNumber(value)
	case textField, guidField, timeField:
		return f.word(value)
	case objectField:
		o, ok := value.(Object)
		return o, ok
	case listField:
		l, ok := value.([]any)
		return l, ok
	case anyField:
	}
	return value, true
}

func flag(value any) (any, bool) {
	switch v := value.(type) {
	case bool:
		return v, true
	case string:
		b, err := strconv.ParseBool(strings.ToLower(v))
		return b, err == nil && len(v) > 1
	}
	return nil, false
}

func wholeNumber(value any) (any, bool) {
	switch v := value.(type) {
	case float64, int, int64:
		return v, true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return float64(n), err == nil
	}
	return nil, false
}

// word returns a text, in Azure's spelling if it is of the enumeration. A word that the enumeration lacks stays: a newer version
// of the API may have it.
func (f Field) word(value any) (any, bool) {
	switch v := value.(type) {
	case string:
		if i := slices.IndexFunc(f.words, func(w string) bool { return strings.EqualFold(w, v) }); i >= 0 {
			return f.words[i], true
		}
		return v, true
	case bool:
		return strconv.FormatBool(v), f.words == nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), f.words == nil
	}
	return nil, false
}

// refuse is the provider's error for a value that does not fit.
func (f Field) refuse(c *Call, value any) error {
	path := strings.ReplaceAll(strings.Join(f.path, "."), ".[]", "[]")
	text, _ := json.Marshal(value)
	message := fmt.Sprintf("Could not convert the value %s to %s. Path '%s' of resource %s.", text, f.name(), path, c.ID)
	if c.Type.Style.Details {
		return Invalid("InvalidRequestFormat", "Cannot parse the request.").With("InvalidJson", "%s", message)
	}
	return Gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: '%s'", message)
}

func (f Field) name() string {
	switch {
	case len(f.words) > 0:
		return "one of " + strings.Join(f.words, ", ")
	case f.kind == flagField:
		return "a boolean"
	case f.kind == numberField:
		return "a whole number"
	case f.kind == objectField:
		return "an object"
	case f.kind == listField:
		return "an array"
	}
	return "a string"
}

func (f Field) complete(c *Call, value any, depth int) {
	key, last := f.path[depth], depth == len(f.path)-1
	if !last {
		_ = each(value, key, func(next any) error { f.complete(c, next, depth+1); return nil }) // the function returns no error
		return
	}
	holder, ok := value.(Object)
	if !ok || holder[key] != nil {
		return
	}
	switch {
	case f.kind == guidField:
		holder[key] = c.GUID()
	case f.kind == timeField:
		holder[key] = Stamp(c.Now())
	case f.otherwise != nil:
		holder[key] = c.expand(f.otherwise)
	}
}

// expand returns a copy of a value of a table for this call, with what its texts name in braces.
func (c *Call) expand(value any) any {
	switch v := value.(type) {
	case Object:
		made := make(Object, len(v))
		for key, element := range v {
			if made[key] = c.expand(element); made[key] == nil {
				delete(made, key)
			}
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, element := range v {
			made[i] = c.expand(element)
		}
		return made
	case string:
		if name, ok := strings.CutPrefix(v, "{param."); ok {
			return c.Param[strings.TrimSuffix(name, "}")]
		}
		if path, ok := strings.CutPrefix(v, "{body."); ok {
			return clone(At(c.Body, strings.TrimSuffix(path, "}")))
		}
		if path, ok := strings.CutPrefix(v, "{resource."); ok {
			return clone(At(c.Doc, strings.TrimSuffix(path, "}")))
		}
		if v == "{referrers}" {
			return c.referrerIDs()
		}
		if v == "{resource}" {
			if view, there := c.View(c.ID); there {
				return view
			}
			return nil
		}
		return c.expandText(v)
	}
	return value
}

// referrerIDs are the ids of the resources that refer to the resource, each once.
func (c *Call) referrerIDs() []any {
	ids, seen := []any{}, map[string]bool{}
	for _, r := range c.Referrers(c.ID) {
		if !seen[r.Resource.Key()] {
			seen[r.Resource.Key()] = true
			ids = append(ids, string(r.Resource))
		}
	}
	return ids
}

func (c *Call) expandText(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	if strings.Contains(text, "{guid}") {
		text = strings.ReplaceAll(text, "{guid}", c.GUID())
	}
	if strings.Contains(text, "{now}") {
		text = strings.ReplaceAll(text, "{now}", Stamp(c.Now()))
	}
	if strings.Contains(text, "{key") {
		text = strings.NewReplacer("{key1}", keyOf(c.ID, "1"), "{key2}", keyOf(c.ID, "2")).Replace(text)
	}
	if strings.Contains(text, "{number}") {
		text = strings.ReplaceAll(text, "{number}", numberOf(c.ID))
	}
	subscription, location := c.ID.Subscription(), c.Location()
	if c.ID == "" {
		subscription, location = c.Param["subscription"], c.Param["location"]
	}
	name := c.ID.Name()
	return strings.NewReplacer("{id}", string(c.ID), "{Top}", c.ID.TopLevel().Name(), "{Name}", name, "{name}", strings.ToLower(name),
		"{NAME}", strings.ToUpper(name), "{subscription}", subscription, "{location}", location, "{tenant}", c.Tenant(),
		"{group}", c.ID.Group()).Replace(text)
}

// numberOf returns a number of nine digits that a resource always has.
func numberOf(id azure.ID) string {
	const least, most = 100_000_000, 900_000_000
	sum := sha256.Sum256([]byte(id.Key()))
	return strconv.Itoa(least + int(binary.BigEndian.Uint32(sum[:])%most))
}

// keyOf returns a key in base64 that a resource always has.
func keyOf(id azure.ID, which string) string {
	sum := sha256.Sum256([]byte(id.Key() + " " + which))
	return base64.StdEncoding.EncodeToString(sum[:])
}
