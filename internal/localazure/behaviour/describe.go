package behaviour

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Describe reads a table of resource types and returns types with the fields of the table. It also returns types that only
// the table has. The documents of these types are stored as they are sent, with the values that the table fills in.
//
// A type begins with a line "type NAME" or, for a type of the table, "type NAME STYLE WHERE WORD...". A WORD is one of
// [typeWords], inline=PATH, or post:NAME=CODE. The last is an action that answers with its code and no body. The lines of
// the type's fields, actions and views follow:
//
//	PATH KIND WORD... = JSON
//	PATH referrers FROM... = []
//	post NAME CODE = JSON
//	get NAME = JSON
//
// KIND is bool, int, text, object, list, any, guid, time or an enumeration A|B|C. The word own marks a field that belongs
// to Azure. The word secret marks a field that clients never see. The kind referrers is a list of what refers to the resource at the
// paths FROM, which Azure computes: [{"id": ID}], or [ID] for the kind referrerIDs. With = [] an empty list is shown too.
// The JSON is what Azure fills in. Its texts can contain these placeholders:
//
//   - {guid}, {id}, {now}
//   - {key1}, {key2}: keys that the resource always has, {number}: a number of nine digits
//   - {Name}, {name}, {NAME}: as it is, in small letters, in capitals
//   - {Top}: the name of the outermost resource
//   - {subscription}, {group}, {tenant}, {location}
//   - {body.PATH}: in answers of actions the value of the request at PATH; without a value the field is left out
//   - {resource}, {resource.PATH}: the resource as a GET shows it, and its value at PATH; without a value the field is left out
//   - {referrers}: the ids of the resources that refer to the resource
//   - {param.NAME}: in routes a part of the path
//
// A word that begins with # begins a comment. A line that ends with \ goes on in the next line.
//
// An action with the code 202 is an operation, and its JSON is the output of the operation. Actions and views without a
// value have an empty reply.
//
// A mistake in a table is a mistake of the program, so Describe panics. The tests read all tables.
func Describe(table string, styles map[string]Style, types []Type) []Type {
	d := describer{styles: styles, types: slices.Clone(types), index: make(map[string]int, len(types))}
	for i, t := range slices.Backward(types) { // the first one counts
		d.index[strings.ToLower(t.Name)] = i
	}
	for words := range tableLines(table) {
		switch words[0] {
		case "type":
			d.begin(words[1:])
		case "post":
			d.action(words[1:])
		case "get":
			d.view(words[1:])
		default:
			d.field(words)
		}
	}
	return d.types
}

// DescribeRoutes reads a table of requests with fixed answers, such as catalogues:
//
//	METHOD PATTERN... = JSON
//
// The texts of the JSON can contain the placeholders of [Describe]. The path determines the permission: for
// "/subscriptions/{subscription}/providers/N/locations/{location}/kinds" it is "N/locations/kinds/read".
func DescribeRoutes(table string) []Route {
	var routes []Route
	for words := range tableLines(table) {
		sign := slices.Index(words, "=")
		if sign < 2 || sign == len(words)-1 {
			panic(fmt.Sprintf("table of routes: %v is not METHOD PATTERN... = JSON", words))
		}
		answer := parseJSON("table of routes: "+words[1], words[sign+1:])
		for _, pattern := range words[1:sign] {
			routes = append(routes, Route{
				Method: words[0], Pattern: pattern, Permission: routePermission(words[0], pattern),
				Do: func(c *Call) (Reply, error) { return Reply{Status: http.StatusOK, Body: c.expand(answer)}, nil },
			})
		}
	}
	return routes
}

// routePermission returns the permission for a pattern, "" for a pattern outside of subscriptions.
func routePermission(method, pattern string) string {
	_, path, found := strings.Cut(pattern, "/providers/")
	if !found || !strings.HasPrefix(pattern, "/subscriptions/") {
		return ""
	}
	kept := slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return strings.HasPrefix(s, "{") })
	if method == http.MethodGet {
		return strings.Join(kept, "/") + "/read"
	}
	return strings.Join(kept, "/") + "/action"
}

// tableLines yields the words of the lines of a table, without comments and empty lines.
func tableLines(table string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		var words []string
		for line := range strings.Lines(table) {
			more := strings.Fields(line)
			if i := slices.IndexFunc(more, func(w string) bool { return strings.HasPrefix(w, "#") }); i >= 0 {
				more = more[:i]
			}
			words = append(words, more...)
			if n := len(words); n > 0 && words[n-1] == "\\" {
				words = words[:n-1]
				continue
			}
			if len(words) > 0 && !yield(words) {
				return
			}
			words = nil
		}
	}
}

func parseJSON(where string, words []string) any {
	var value any
	if err := json.Unmarshal([]byte(strings.Join(words, " ")), &value); err != nil {
		panic(fmt.Sprintf("%s: %v", where, err))
	}
	return value
}

type describer struct {
	styles map[string]Style
	types  []Type
	index  map[string]int // of the types by their lower-case names
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
	"notype":     func(t *Type) { t.NoType = true },
	"systemData": func(t *Type) { t.Fill = func(c *Call) error { WriteSystemData(c); return nil } },
	"etag":       func(t *Type) { t.Style.Etag, t.Style.Unconditional = QuotedGUID, true },
	"anyscope":   func(t *Type) { t.AnyScope = true },
	"tracked":    func(t *Type) { t.Missing = func(c *Call) error { return ChildNotFound(c.ID) } },
}

func (d *describer) begin(words []string) {
	key := strings.ToLower(words[0])
	i, known := d.index[key]
	if known == (len(words) > 1) {
		panic("table of types: " + words[0] + " must be a registered type, or have a style")
	}
	if known {
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
			name, code, _ := strings.Cut(action, "=")
			addAction(&t, name, code, nil)
		case set != nil:
			set(&t)
		default:
			panic("table of types: " + words[0] + " has the unknown word " + word)
		}
	}
	d.index[key] = len(d.types)
	d.types = append(d.types, t)
	d.at = &d.types[len(d.types)-1]
}

// addAction gives a type an action. An action with the code 202 is an operation.
func addAction(t *Type, name, code string, answer any) {
	status, err := strconv.Atoi(code)
	if err != nil {
		panic(fmt.Sprintf("table of types: %s has the action %s with the code %q", t.Name, name, code))
	}
	reply := func(c *Call) (any, error) { return c.expand(answer), nil }
	a := Action{Status: status}
	switch {
	case status == http.StatusAccepted:
		a.Long, a.Busy, a.Headers = true, "-", AsyncOperation|Location
		if answer != nil {
			a.Settle = reply
		}
	case answer != nil:
		a.Do = reply
	}
	t.Actions = maps.Clone(t.Actions)
	if t.Actions == nil {
		t.Actions = map[string]Action{}
	}
	t.Actions[name] = a
}

// action reads what follows the word post.
func (d *describer) action(words []string) {
	const least, value = 2, 3
	if d.at == nil || len(words) < least || len(words) > least && words[least] != "=" {
		panic(fmt.Sprintf("table of types: post %v is not NAME CODE = JSON in a type", words))
	}
	var answer any
	if len(words) > value {
		answer = parseJSON("table of types: "+words[0]+" of "+d.at.Name, words[value:])
	}
	addAction(d.at, words[0], words[1], answer)
}

// view reads what follows the word get.
func (d *describer) view(words []string) {
	const least = 3
	if d.at == nil || len(words) < least || words[1] != "=" {
		panic(fmt.Sprintf("table of types: get %v is not NAME = JSON in a type", words))
	}
	answer := parseJSON("table of types: "+words[0]+" of "+d.at.Name, words[2:])
	views := maps.Clone(d.at.Views)
	if views == nil {
		views = map[string]func(*Call) (any, error){}
	}
	views[words[0]] = func(c *Call) (any, error) { return c.expand(answer), nil }
	d.at.Views = views
}

func (d *describer) field(words []string) {
	const least = 2
	if d.at == nil || len(words) < least {
		panic(fmt.Sprintf("table of types: %v is not a field of a type", words))
	}
	if words[1] == "referrers" || words[1] == "referrerIDs" {
		d.referrers(words)
		return
	}
	f := Field{path: fieldPath(words[0]), kind: fieldKind(words[1])}
	kinds := []fieldKind{flagField, numberField, textField, objectField, listField, anyField, guidField, timeField}
	if !slices.Contains(kinds, f.kind) {
		f.words, f.kind = strings.Split(words[1], "|"), textField
	}
	own := f.kind == guidField || f.kind == timeField
	rest := words[least:]
	if i := slices.Index(rest, "="); i >= 0 {
		f.otherwise = parseJSON("table of types: "+words[0]+" of "+d.at.Name, rest[i+1:])
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

// referrers reads a list of what refers to the resource.
func (d *describer) referrers(words []string) {
	const first = 2
	path, from, empty := words[0], words[first:], false
	if n := len(from); n > 1 && from[n-1] == "[]" && from[n-2] == "=" {
		from, empty = from[:n-2], true
	}
	if len(from) == 0 || slices.Contains(from, "=") {
		panic(fmt.Sprintf("table of types: %v of %s is not PATH referrers FROM... = []", words, d.at.Name))
	}
	show := d.at.Show
	d.at.Own = append(slices.Clip(d.at.Own), path)
	d.at.Show = func(c *Call, view Object) {
		if show != nil {
			show(c, view)
		}
		ids, seen := []any{}, map[string]bool{}
		for _, r := range c.Referrers(c.ID) {
			if !slices.Contains(from, r.Path) || seen[r.Object.Key()] {
				continue
			}
			seen[r.Object.Key()] = true
			if words[1] == "referrers" {
				ids = append(ids, Ref(r.Object))
			} else {
				ids = append(ids, string(r.Object))
			}
		}
		if len(ids) > 0 || empty {
			Set(view, path, ids)
		}
	}
}

// fieldPath cuts "a.b[].c" into its keys.
func fieldPath(path string) []string {
	path = strings.ReplaceAll(strings.ReplaceAll(path, "[]", ".[]"), "{}", ".{}")
	return strings.Split(path, ".")
}
