package azure_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"kaz/internal/azure"
)

type disk struct {
	LUN  int       `json:"lun"`
	Name string    `json:"name,omitempty"`
	Disk *diskLink `json:"managedDisk,omitempty"`
}

type diskLink struct {
	ID azure.ID `json:"id"`
}

type record struct {
	Value []string `json:"value,omitempty"`
	TTL   int      `json:"ttl,omitempty"`
}

type exchange struct {
	Preference int    `json:"preference,omitempty"`
	Exchange   string `json:"exchange,omitempty" azure:"fold"`
}

type label string

type shared struct {
	Disks   []disk     `json:"disks,omitempty" azure:"key=lun"`
	TXT     []record   `json:"txt,omitempty" azure:"key=value"`
	MX      []exchange `json:"mx,omitempty" azure:"key=preference+exchange"`
	Labels  []label    `json:"labels,omitempty" azure:"set"`
	Servers []string   `json:"servers,omitempty"`
}

const sharedDocument = `{"disks":[ {"lun":3 , "name":"theirs","caching":"None","size":1.50},
 {"name":"ours-0","lun":0,"managedDisk":{"id":"/D/0"},"caching":"None"}, {"lun":1,"name":"ours-1"}],
 "txt":[{"value":["v=spf1","<a>"],"ttl":1},{"value":["V=SPF1","<a>"]}],
 "mx":[{"preference":10,"exchange":"Mail.example"},{"preference":20,"exchange":"mail.example"}],
 "labels":["ours-a","theirs"],"servers":["a","b"],"other":{"b":1,"a":2}}`

func oursByName(d disk) bool { return strings.HasPrefix(d.Name, "ours-") }

func TestMerge(t *testing.T) {
	byName := azure.Ours(oursByName)
	for _, test := range []struct {
		name  string
		want  shared
		owner []azure.Owner
		diff  []string
	}{
		{name: "nothing stated", owner: []azure.Owner{byName}},
		{name: "all of ours as they are", owner: []azure.Owner{byName},
			want: shared{Disks: []disk{{LUN: 1, Name: "ours-1"}, {LUN: 0, Disk: &diskLink{"/d/0"}}}}},
		{name: "what is ours and not named goes", owner: []azure.Owner{byName},
			want: shared{Disks: []disk{{LUN: 0, Disk: &diskLink{"/d/1"}}, {LUN: 2, Name: "ours-2"}}},
			diff: []string{`disks[0].managedDisk.id: "/D/0" -> "/d/1"`, `disks[1]: - {"lun":1,"name":"ours-1"}`,
				`disks[2]: + {"lun":2,"name":"ours-2"}`}},
		{name: "all of ours go", owner: []azure.Owner{byName}, want: shared{Disks: []disk{}},
			diff: []string{`disks[0]: - {"caching":"None","lun":0,"managedDisk":{"id":"/D/0"},"name":"ours-0"}`,
				`disks[1]: - {"lun":1,"name":"ours-1"}`}},
		{name: "without an owner nothing goes", want: shared{Disks: []disk{{LUN: 3, Name: "named"}, {LUN: 4}}},
			diff: []string{`disks[3].name: "theirs" -> "named"`, `disks[4]: + {"lun":4}`}},
		{name: "keys of lists and of case", want: shared{TXT: []record{{Value: []string{"v=spf1", "<a>"}}}}},
		{name: "two fields as a key", want: shared{MX: []exchange{{Preference: 20, Exchange: "MAIL.example"}, {Preference: 30}}},
			diff: []string{`mx[30,]: + {"preference":30}`}},
		{name: "texts with an owner", owner: []azure.Owner{azure.Ours(func(l label) bool { return strings.HasPrefix(string(l), "ours") })},
			want: shared{Labels: []label{"ours-b"}}, diff: []string{`labels[ours-a]: - "ours-a"`, `labels[ours-b]: + "ours-b"`}},
		{name: "a list of plain values is one value", want: shared{Servers: []string{"a"}}, diff: []string{`servers: ["a","b"] -> ["a"]`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, changes, err := azure.Merge(azure.Document(sharedDocument), test.want, test.owner...)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, c := range changes {
				lines = append(lines, c.String())
			}
			if d := cmp.Diff(test.diff, lines); d != "" {
				t.Error("changes (-want +got):\n" + d)
			}
			kept := []string{`"other":{"b":1,"a":2}`}
			if len(test.owner) > 0 {
				kept = append(kept, `{"lun":3 , "name":"theirs","caching":"None","size":1.50}`)
			}
			for _, text := range kept {
				if !strings.Contains(string(got), text) {
					t.Errorf("%s was touched:\n%s", text, got)
				}
			}
			if _, again, err := azure.Merge(got, test.want, test.owner...); err != nil || len(again) > 0 {
				t.Errorf("a second time still changes %v, %v", again, err)
			}
		})
	}
}

func TestMergeRefusesWhatIsNotOurs(t *testing.T) {
	for name, test := range map[string]struct {
		want shared
		path string
	}{
		"to change another's element":        {shared{Disks: []disk{{LUN: 3, Name: "ours-3"}}}, "disks[3]"},
		"to add what would be another's":     {shared{Disks: []disk{{LUN: 7, Name: "x"}}}, "disks[7]"},
		"to make another's of what was ours": {shared{Disks: []disk{{LUN: 1, Name: "theirs"}}}, "disks[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := azure.Merge(azure.Document(sharedDocument), test.want, azure.Ours(oursByName))
			if err == nil || !strings.Contains(err.Error(), test.path) {
				t.Errorf("%v, want an error about %s", err, test.path)
			}
		})
	}
}

// Elements that are not ours survive byte for byte, whatever the view states and whatever is there. This holds for
// each list of each view of the repository.
func TestMergeKeepsForeignElements(t *testing.T) {
	lists := 0
	for _, view := range append(views(), reflect.TypeFor[shared]()) {
		azure.WalkLists(view, func(l azure.List) {
			if len(l.Key) == 0 {
				return
			}
			lists++
			t.Run(view.String()+"."+l.Path, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) { keepsTheElementsOfOthers(t, view, l) })
			})
		})
	}
	if lists < 10 {
		t.Errorf("only %d lists were found", lists)
	}
}

func keepsTheElementsOfOthers(t *rapid.T, view reflect.Type, l azure.List) {
	salt := rapid.Uint32().Draw(t, "salt")
	ours := func(text []byte) bool { // half of all keys
		h := fnv.New32a()
		fmt.Fprint(h, salt, keyText(text, l))
		return h.Sum32()%2 == 0
	}
	owner := azure.OwnerOf(l.Elem, ours)
	have := annotated(t, generate(t, view, "have"))
	wanted := generate(t, view, "want")
	onlyOurs(wanted, l, ours)
	got, _, err := azure.Merge(have, wanted.Interface(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := azure.Merge(got, wanted.Interface(), owner); err != nil || len(again) > 0 {
		t.Fatalf("not at rest: %v %v\n%s", again, err, got)
	}
	path := strings.Split(strings.ReplaceAll(l.Path, "[]", ".[]"), ".")
	kept := elementsAt(got, path)
	for _, x := range elementsAt(have, path) {
		if !ours(x) && !slices.ContainsFunc(kept, func(y []byte) bool { return bytes.Equal(x, y) }) {
			t.Fatalf("lost or touched: %s\nhave %s\ngot %s", x, have, got)
		}
	}
	var stated [][]byte
	wantedText, _ := json.Marshal(wanted.Interface())
	for _, x := range elementsAt(wantedText, path) {
		stated = append(stated, []byte(keyText(x, l)))
	}
	for _, y := range kept {
		wasThere := slices.ContainsFunc(elementsAt(have, path), func(x []byte) bool { return keyText(x, l) == keyText(y, l) })
		if isStated := slices.ContainsFunc(stated, func(k []byte) bool { return string(k) == keyText(y, l) }); !isStated && !wasThere {
			t.Fatalf("nothing asked for %s", y)
		}
	}
}

// keyText is an element's key.
func keyText(element []byte, l azure.List) string {
	var all map[string]json.RawMessage
	if json.Unmarshal(element, &all) != nil {
		return strings.ToLower(string(element))
	}
	var parts []string
	for _, k := range l.Key {
		// as omitempty writes them
		if string(all[k]) != "0" && string(all[k]) != `""` && string(all[k]) != "null" && string(all[k]) != "[]" {
			var compact bytes.Buffer
			_ = json.Compact(&compact, all[k]) // an absent one is empty
			parts = append(parts, strings.ToLower(compact.String()))
		}
	}
	return strings.Join(parts, "+")
}

// generate draws a view. Keys come from a small alphabet, so that those of two views
// meet, and are distinct within a list.
func generate(t *rapid.T, typ reflect.Type, name string) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name+" is there") {
			v.Set(generate(t, typ.Elem(), name).Addr())
		}
	case reflect.Struct:
		for f := range typ.Fields() {
			v.FieldByIndex(f.Index).Set(generate(t, f.Type, name+"."+f.Name))
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 3).Draw(t, name+" length"); n >= 0 {
			v.Set(reflect.MakeSlice(typ, 0, n))
			for i := range n {
				v.Set(reflect.Append(v, generate(t, typ.Elem(), fmt.Sprintf("%s[%d]", name, i))))
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(typ))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"a", "b", "c", "d<", "e"}).Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default:
		v.SetInt(rapid.Int64Range(0, 4).Draw(t, name))
	}
	return v
}

// annotated is a view as a document that has fields which no view knows, spread over
// lines, and no two elements of the same key.
func annotated(t *rapid.T, view reflect.Value) azure.Document {
	text, err := json.Marshal(view.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	annotate(tree)
	text, err = json.MarshalIndent(tree, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func annotate(tree any) {
	switch x := tree.(type) {
	case map[string]any:
		for _, deeper := range x {
			annotate(deeper)
		}
		x["unknown"] = []any{1.5, "<&>", map[string]any{"z": nil, "a": "\\\"}"}}
	case []any:
		for _, deeper := range x {
			annotate(deeper)
		}
	}
}

// onlyOurs leaves out of a view what its list's owner would refuse.
func onlyOurs(v reflect.Value, l azure.List, ours func([]byte) bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			onlyOurs(v.Elem(), l, ours)
		}
	case reflect.Struct:
		for f := range v.Type().Fields() {
			onlyOurs(v.FieldByIndex(f.Index), l, ours)
		}
	case reflect.Slice:
		var kept []reflect.Value
		for i := range v.Len() {
			text, _ := json.Marshal(v.Index(i).Interface())
			if v.Index(i).Type() != l.Elem || ours(text) {
				kept = append(kept, v.Index(i))
			}
			onlyOurs(v.Index(i), l, ours)
		}
		if !v.IsNil() {
			v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, len(kept)), kept...))
		}
	}
}

// elementsAt are the elements of the lists at a path.
func elementsAt(doc []byte, path []string) [][]byte {
	if len(path) == 0 {
		var all []json.RawMessage
		_ = json.Unmarshal(doc, &all) // what is no list has no elements
		elements := make([][]byte, len(all))
		for i, x := range all {
			elements[i] = x
		}
		return elements
	}
	if path[0] == "[]" {
		var deeper [][]byte
		for _, x := range elementsAt(doc, nil) {
			deeper = append(deeper, elementsAt(x, path[1:])...)
		}
		return deeper
	}
	var object map[string]json.RawMessage
	_ = json.Unmarshal(doc, &object)
	return elementsAt(object[path[0]], path[1:])
}

func TestRelease(t *testing.T) {
	type rule struct {
		Port *azure.Reference `json:"port,omitempty" azure:"required"`
		Pool *azure.Reference `json:"pool,omitempty"`
	}
	type port struct {
		Address *azure.Reference `json:"address,omitempty" azure:"required"`
	}
	type router struct {
		Ports []azure.Child[port] `json:"ports,omitempty"`
		Rules []azure.Child[rule] `json:"rules,omitempty"`
		Peers []azure.Reference   `json:"peers,omitempty"`
		Seen  []azure.Reference   `json:"seen,omitempty" azure:"read"`
	}
	const doc = `{"properties":{"rules":[{"name":"x","properties":{"port":{"id":"/s/p1"},"pool":{"id":"/q"}}},
 {"name":"y", "more":1,"properties":{"port":{"id":"/s/p2"},"pool":{"id":"/A/1/pools/b"}}}],
 "ports":[{"name":"p1","id":"/S/P1","properties":{"address":{"id":"/a/1"}}},{"name":"p2","id":"/s/p2","properties":{"address":{"id":"/a/2"}}}],
 "peers":[{"id":"/a/11"},{"id":"/a/1"}],"seen":[{"id":"/a/1"}]}}`
	got, changes, err := azure.Release(azure.Document(doc), azure.Resource[router]{}, "/A/1")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{"rules":[{"name":"y","more":1,"properties":{"port":{"id":"/s/p2"}}}],` +
		`"ports":[{"name":"p2","id":"/s/p2","properties":{"address":{"id":"/a/2"}}}],"peers":[{"id":"/a/11"}],"seen":[{"id":"/a/1"}]}}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error("document (-want +got):\n" + d)
	}
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	if d := cmp.Diff([]string{"properties.ports[p1]", "properties.rules[x]", "properties.rules[y].properties.pool", "properties.peers[1]"},
		paths); d != "" {
		t.Error("changes (-want +got):\n" + d)
	}
	if same, none, err := azure.Release(azure.Document(doc), azure.Resource[router]{}, "/b"); err != nil || len(none) > 0 ||
		string(same) != doc {
		t.Errorf("nothing to release: %v %v", none, err)
	}
}
