package azure_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
)

func TestDocumentSaysItsIDAndEtag(t *testing.T) {
	for doc, want := range map[string][2]string{
		`{"name":"x","id":"/a","etag":"W/\"1\"","properties":{}}`: {"/a", `W/"1"`},
		` { "properties":{"id":"/no"} , "id" : "/a" }`:            {"/a", ""},
		`{"tags":{"etag":"no"},"etag":"2"}`:                       {"", "2"},
		`{"a":"\\","b\"":"}","id":"/\u0061"}`:                     {"/a", ""},
		`{"id":null}`:                                             {"", ""}, `{"id":7}`: {"", ""}, `[]`: {"", ""}, ``: {"", ""},
		`{`: {"", ""}, `{"id":"`: {"", ""}, `{"id"`: {"", ""},
	} {
		if d := azure.Document(doc); string(d.ID()) != want[0] || d.Etag() != want[1] {
			t.Errorf("%s: id %q, etag %q", doc, d.ID(), d.Etag())
		}
	}
}

// The id of a document is the one that a JSON decoder finds, whatever text fields the document begins with.
func TestDocumentIDIsWhatADecoderFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOf(rapid.SampledFrom([]string{"a", "id", "etag", "z", "i\"d"}), rapid.String()).Draw(t, "fields")
		text, err := json.MarshalIndent(fields, rapid.SampledFrom([]string{"", " "}).Draw(t, "prefix"),
			rapid.SampledFrom([]string{"", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ ID string }
		if err := json.Unmarshal(text, &head); err != nil {
			t.Fatal(err)
		}
		if d := azure.Document(text); string(d.ID()) != head.ID {
			t.Fatalf("%s: %q is not %q", text, d.ID(), head.ID)
		}
	})
}
