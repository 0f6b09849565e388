package definition

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the reference page and the JSON Schema anew")

const preamble = `# Cluster definition reference

A definition is YAML with documents of the ` + "`apiVersion`" + ` ` + "`" + APIVersion + "`" + ` and four kinds. [The guide](../guides/cluster.md)
explains how to use it; [example definitions](../example-manifests/cluster) can be copied. ` + "`kaz cluster explain FIELD`" + ` prints a row of
these tables, and the [JSON Schema](cluster.schema.json) completes fields in editors.

The tables are generated: ` + "`go test ./internal/cluster/definition -run TestReference -update`" + `. The column "a change" says what a
change of the field means for a cluster that exists. The column "used by" names the programs and the resources of Azure in which the value
ends: the definition is checked by their rules when it is read, and all mistakes are reported together.
`

func TestReference(t *testing.T) {
	schema, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"../../../docs/reference/cluster.md":          preamble + Reference(),
		"../../../docs/reference/cluster.schema.json": string(schema),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != want {
			t.Errorf("%s is not up to date (%v): go test ./internal/cluster/definition -run TestReference -update", file, err)
		}
	}
}
