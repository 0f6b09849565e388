package entity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/odata"
)

// all is an entity with values of all types.
const all = `{"odata.etag":"x","PartitionKey":"p","RowKey":"it's","Timestamp":"2020-01-01T00:00:00Z","Flag":false,"Small":1234,
	"Wide":12345678901,"Large@odata.type":"Edm.Int64","Large":"9007199254740993","Real":4,"Real@odata.type":"Edm.Double","Tiny":1e-7,
	"Missing":null,"Not":"NaN","Not@odata.type":"Edm.Double","Text":"<a&b>","Id@odata.type":"Edm.Guid","Id":"4185404A-5818-48c3-b9be-f217df0dba6f",
	"At@odata.type":"Edm.DateTime","At":"2013-08-02T17:37:43.9004348Z","Raw@odata.type":"Edm.Binary","Raw":"AQID"}`

// The JSON of an entity has as much as the level of metadata says.
func TestWrite(t *testing.T) {
	e, err := entity.Parse([]byte(all), nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Stamp = time.Date(2025, 1, 2, 3, 4, 5, 600, time.UTC)
	const values = `"Flag":false,"Small":1234,"Wide":12345678901.0,%s"Large":"9007199254740993","Real":4.0,"Tiny":1E-07,%s"Not":"NaN",` +
		`"Text":"<a&b>",%s"Id":"4185404a-5818-48c3-b9be-f217df0dba6f",%s"At":"2013-08-02T17:37:43.9004348Z",%s"Raw":"AQID"}`
	const etag = `"odata.etag":"W/\"datetime'2025-01-02T03%%3A04%%3A05.0000006Z'\"",`
	const keys = `"PartitionKey":"p","RowKey":"it's",%s"Timestamp":"2025-01-02T03:04:05.0000006Z",`
	kind := func(name, t string) any { return `"` + name + `@odata.type":"Edm.` + t + `",` }
	kinds := []any{kind("Large", "Int64"), kind("Not", "Double"), kind("Id", "Guid"), kind("At", "DateTime"), kind("Raw", "Binary")}
	path := `T(PartitionKey='p',RowKey='it%27%27s')`
	want := map[odata.Level]string{
		odata.None:    fmt.Sprintf("{"+keys+values, "", "", "", "", "", ""),
		odata.Minimal: fmt.Sprintf("{"+etag+keys+values, append([]any{""}, kinds...)...),
		odata.Full: `{"odata.type":"acc.T","odata.id":"https://h/` + path + `",` + fmt.Sprintf(etag+`"odata.editLink":"%s",`+keys+values,
			append([]any{path, kind("Timestamp", "DateTime")}, kinds...)...),
	}
	place := entity.Place{Base: "https://h/", Account: "acc", Table: "T"}
	for level, text := range want {
		var o odata.Object
		place.Write(&o, level, e, nil)
		if got := string(o.Bytes()); got != text {
			t.Errorf("%s:\n got %s\nwant %s", level, got, text)
		}
	}
	var o odata.Object
	place.Write(&o, odata.None, e, []string{"Text", "Absent", "RowKey"})
	if got := string(o.Bytes()); got != `{"RowKey":"it's","Text":"<a&b>","Absent":null}` {
		t.Errorf("chosen properties: %s", got)
	}
}

// What is kept of an entity is the entity.
func TestKept(t *testing.T) {
	e, err := entity.Parse([]byte(all), nil)
	if err != nil {
		t.Fatal(err)
	}
	again := keep(t, e)
	if again.Get("Not").Text() != "NaN" || len(again.Properties) != len(e.Properties) {
		t.Errorf("got %+v, want %+v", again, e)
	}
	e.Properties = e.Properties[:6] // NaN is not equal to itself
	if got := keep(t, e); !reflect.DeepEqual(got, e) {
		t.Errorf("got %+v, want %+v", got, e)
	}
}

func keep(t *testing.T, e entity.Entity) (again entity.Entity) {
	t.Helper()
	text, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestLimits(t *testing.T) {
	with := func(members string) string { return `{"PartitionKey":"p","RowKey":"r"` + members + `}` }
	many := func(n, size int) (text string) {
		for i := range n {
			text += fmt.Sprintf(`,"P%d":"%s"`, i, strings.Repeat("x", size))
		}
		return with(text)
	}
	for _, test := range []struct{ name, body, code string }{
		{"252 properties", many(252, 1), ""},
		{"253 properties", many(253, 1), "TooManyProperties"},
		{"the largest text", with(`,"A":"` + strings.Repeat("é", 32<<10) + `"`), ""},
		{"too large a text", with(`,"A":"` + strings.Repeat("é", 32<<10) + `é"`), "PropertyValueTooLarge"},
		{"too large a binary", with(`,"A@odata.type":"Edm.Binary","A":"` + strings.Repeat("AAAA", 22<<10) + `"`), "PropertyValueTooLarge"},
		{"15 large properties", many(15, 32<<10), ""},
		{"16 large properties", many(16, 32<<10), "EntityTooLarge"},
		{"no row key", `{"PartitionKey":"p"}`, "PropertiesNeedValue"},
		{"a key that is no text", `{"PartitionKey":"p","RowKey":1}`, "PropertiesNeedValue"},
		{"a key with a slash", `{"PartitionKey":"a/b","RowKey":"r"}`, "OutOfRangeInput"},
		{"a key with a control character", `{"PartitionKey":"p","RowKey":"a\u0085"}`, "OutOfRangeInput"},
		{"the longest key", `{"PartitionKey":"p","RowKey":"` + strings.Repeat("x", 512) + `"}`, ""},
		{"too long a key", `{"PartitionKey":"p","RowKey":"` + strings.Repeat("x", 513) + `"}`, "KeyValueTooLarge"},
		{"a name that is no identifier", with(`,"a-b":1`), "PropertyNameInvalid"},
		{"too long a name", with(`,"` + strings.Repeat("x", 256) + `":1`), "PropertyNameTooLong"},
		{"a property twice", with(`,"A":1,"A":2`), "DuplicatePropertiesSpecified"},
		{"an object", with(`,"A":{}`), "InvalidInput"},
		{"an unknown type", with(`,"A@odata.type":"Edm.Time","A":"x"`), "InvalidInput"},
		{"a value of another type", with(`,"A@odata.type":"Edm.Int64","A":"x"`), "InvalidInput"},
		{"a truth that is a GUID", with(`,"A@odata.type":"Edm.Guid","A":true`), "InvalidInput"},
		{"too early a time", with(`,"A@odata.type":"Edm.DateTime","A":"1600-12-31T23:59:59Z"`), "InvalidInput"},
		{"a list", `[]`, "InvalidInput"},
		{"something behind", with("") + "x", "InvalidInput"},
		{"nothing", "", "InvalidInput"},
	} {
		_, err := entity.Parse([]byte(test.body), nil)
		code := ""
		if e, ok := errors.AsType[*behaviour.Error](err); ok {
			code = e.Code
		}
		if code != test.code || (err == nil) != (code == "") {
			t.Errorf("%s: got %v, want the code %q", test.name, err, test.code)
		}
	}
}

// What can be read is written and kept in the same way again.
func FuzzParse(f *testing.F) {
	f.Add(all)
	f.Add(`{"PartitionKey":"","RowKey":"","é":1.0E+30}`)
	f.Add(`{"A@odata.type":"Edm.Int32","A":2147483648}`)
	f.Fuzz(func(t *testing.T, text string) {
		e, err := entity.Parse([]byte(text), &entity.Key{Partition: "p", Row: "r"})
		if err != nil {
			return
		}
		again := keep(t, e)
		for _, level := range []odata.Level{odata.Minimal, odata.Full} {
			var first, second odata.Object
			entity.Place{Base: "https://h/"}.Write(&first, level, e, nil)
			entity.Place{Base: "https://h/"}.Write(&second, level, again, nil)
			parsed, err := entity.Parse(first.Bytes(), &e.Key)
			if err != nil || string(first.Bytes()) != string(second.Bytes()) || len(parsed.Properties) != len(e.Properties) {
				t.Errorf("%s: %s and %s, parsed %v", text, first.Bytes(), second.Bytes(), err)
			}
		}
	})
}
