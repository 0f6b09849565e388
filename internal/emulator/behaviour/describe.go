package behaviour

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Describe reads a table of resource types and returns the types with their fields, and the types that only the table has: their
// documents are stored as they are sent, with what the table fills in.
//
// A type begins with a line "type NAME" or, for a type of the table, "type NAME STYLE WHERE WORD...". The words are those of
// [typeWords], inline=PATH, and post:NAME=CODE for an action that answers with its code and nothing else. The lines of its fields
// follow:
//
//	PATH KIND WORD... = JSON
//
// KIND is bool, int, text, object, list, any, guid, time or an enumeration A|B|C. The words are own, for a field of Azure, and
// secret, for a field that clients never see. The JSON is what Azure fills in; its texts can contain
// {guid}, {Name}, {name} and {NAME} (in small letters and capitals), {subscription} and {location}. A # begins a comment.
//
// A mistake in a table is a mistake of the program, so Describe panics; the tests read all tables.
func Describe(table string, styles map[string]Style, types []Type) []Type {
	d := describer{styles: styles, types: slices.Clone(types)}
	for line := range strings.Lines(table) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "type":
			d.begin(words[1:])
		default:
			d.field(words)
		}
	}
	return d.types
}

type describer struct {
	styles map[string]Style
	types  []Type
	at     *Type
}

// typeWords are what a table may say of a type.
var typeWords = map[string]func(*Type){
	"located":    func(t *Type) { t.Where = Located },
	"anywhere":   func(t *Type) { t.Where = Anywhere },
	"global":     func(t *Type) { t.Where = Global },
	"nowhere":    func(*Type) {},
	"readonly":   func(t *Type) { t.ReadOnly = true },
	"nostate":    func(t *Type) { t.NoState = true },
	"systemData": func(t *Type) { t.Fill = func(c *Call) error { WriteSystemData(c); return nil } },
	"anyscope":   func(t *Type) { t.AnyScope = true },
}

func (d *describer) begin(words []string) {
	i := slices.IndexFunc(d.types, func(t Type) bool { return strings.EqualFold(t.Name, words[0]) })
	if (i < 0) != (len(words) > 1) {
		panic("table of types: " + words[0] + " must be a registered type, or have a style")
	}
	if i >= 0 {
		d.at = &d.types[i]
		return
	}
	style, ok := d.styles[words[1]]
	if !ok {
		panic(fmt.Sprintf("table of types: %s has the style %s; there are %v", words[0], words[1], slices.Sorted(maps.Keys(d.styles))))
	}
	t := Type{Name: words[0], Style: style}
	for _, word := range words[2:] {
		inline, isInline := strings.CutPrefix(word, "inline=")
		action, isAction := strings.CutPrefix(word, "post:")
		set := typeWords[word]
		switch {
		case isInline:
			t.Inline = inline
		case isAction:
			addAction(&t, action)
		case set != nil:
			set(&t)
		default:
			panic("table of types: " + words[0] + " has the unknown word " + word)
		}
	}
	d.types = append(d.types, t)
	d.at = &d.types[len(d.types)-1]
}

// addAction gives a type the action of a word NAME=CODE. An action with the code 202 is an operation.
func addAction(t *Type, word string) {
	name, code, _ := strings.Cut(word, "=")
	status, err := strconv.Atoi(code)
	if err != nil {
		panic(fmt.Sprintf("table of types: %s has the action %s, want NAME=CODE", t.Name, word))
	}
	if t.Actions == nil {
		t.Actions = map[string]Action{}
	}
	a := Action{Status: status}
	if status == http.StatusAccepted {
		a.Long, a.Busy, a.Headers = true, "-", AsyncOperation|Location
	}
	t.Actions[name] = a
}

func (d *describer) field(words []string) {
	const least = 2
	if d.at == nil || len(words) < least {
		panic(fmt.Sprintf("table of types: %v is not a field of a type", words))
	}
	f := Field{path: fieldPath(words[0]), kind: fieldKind(words[1])}
	kinds := []fieldKind{flagField, numberField, textField, objectField, listField, anyField, guidField, timeField}
	if !slices.Contains(kinds, f.kind) {
		f.words, f.kind = strings.Split(words[1], "|"), textField
	}
	own := f.kind == guidField || f.kind == timeField
	rest := words[least:]
	if i := slices.Index(rest, "="); i >= 0 {
		if err := json.Unmarshal([]byte(strings.Join(rest[i+1:], " ")), &f.otherwise); err != nil {
			panic(fmt.Sprintf("table of types: %s of %s: %v", words[0], d.at.Name, err))
		}
		rest = rest[:i]
	}
	for _, word := range rest {
		switch word {
		case "own":
			own = true
		case "secret":
			f.secret = true
		default:
			panic(fmt.Sprintf("table of types: %s of %s has the unknown word %s", words[0], d.at.Name, word))
		}
	}
	if own {
		d.at.Own = append(slices.Clip(d.at.Own), strings.ReplaceAll(words[0], "[]", ""))
	}
	d.at.Fields = append(d.at.Fields, f)
}

// fieldPath cuts "a.b[].c" into its keys.
func fieldPath(path string) []string {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[]", ".[]"), "{}", ".{}")
	return strings.Split(path, ".")
}
