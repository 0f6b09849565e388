package terraform

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// TestFirstResources checks the example of the guide of the local Azure: it has the format of terraform fmt, and each reference leads to a
// resource of the file. The provider is not a Go module, so nothing here knows the resources' arguments.
func TestFirstResources(t *testing.T) {
	const file = "../../../docs/example-manifests/local-azure/first.tf"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(hclwrite.Format(text)), string(text)); diff != "" {
		t.Errorf("not in the format of terraform fmt: %s", diff)
	}
	parsed, problems := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	body := parsed.Body.(*hclsyntax.Body)
	resources := map[string]bool{}
	for _, b := range body.Blocks {
		if b.Type == "resource" {
			resources[b.Labels[0]+"."+b.Labels[1]] = true
		}
	}
	if len(resources) == 0 {
		t.Fatal("no resource")
	}
	_ = hclsyntax.VisitAll(body, func(node hclsyntax.Node) hcl.Diagnostics {
		reference, ok := node.(*hclsyntax.ScopeTraversalExpr)
		if !ok || reference.Traversal.RootName() == "path" {
			return nil
		}
		step, ok := reference.Traversal[1].(hcl.TraverseAttr)
		if name := reference.Traversal.RootName() + "." + step.Name; !ok || !resources[name] {
			t.Errorf("%s: no resource %s", reference.Range(), name)
		}
		return nil
	})
}
