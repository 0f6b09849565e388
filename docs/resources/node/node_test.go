// Package node_test checks the pages of this folder against the code.
package node_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/cloud-provider/api"

	"kaz/internal/plan/nodes"
)

// told are the keys in the first column of a page's tables.
func told(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` ").FindAllStringSubmatch(string(text), -1) {
		keys = append(keys, m[1])
	}
	return keys
}

// texts are all texts in the code of a component.
func texts(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("../../../internal", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			switch filepath.Base(filepath.Dir(path)) {
			case "nodegroup": // its labels are those of nodes that others make
				return nil
			case "claim": // its keys are those of volumes
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if _, imports := n.(*ast.ImportSpec); imports {
					return false
				}
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						found[text] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// Each key on the pages is one that the code uses, and each key of a node that the code
// uses is on the pages.
func TestPagesTellOfAllKeys(t *testing.T) {
	code := texts(t, "nodemanager", "cloudprovider", "plan")
	whole := nodes.Metadata{Description: nodes.Description{InstanceType: "s", Zone: "z", Region: "r"}, SubFaultDomain: "d",
		InterconnectGroup: "g"}
	written := slices.Collect(maps.Keys(whole.Labels()))
	written = append(written, slices.Collect(maps.Keys(nodes.BetaLabels(whole.Labels())))...)
	for _, key := range append(written, v1.LabelNodeExcludeBalancers, v1.TaintNodeOutOfService, api.TaintExternalCloudProvider) {
		code[key] = true
	}
	pages := append(told(t, "labels.md"), told(t, "annotations.md")...)
	if len(pages) < 15 {
		t.Fatalf("only %q on the pages", pages)
	}
	for i, key := range pages {
		if !code[key] {
			t.Errorf("nothing uses %s", key)
		}
		if slices.Contains(pages[:i], key) {
			t.Errorf("%s is told of twice", key)
		}
	}
	of := regexp.MustCompile(`^([a-z.-]*\.)?(kubernetes\.io|kubernetes\.azure\.com)/[A-Za-z-]+$|^ToBeDeleted`)
	others := regexp.MustCompile(`^service\.(beta\.)?kubernetes\.io/|^kubernetes\.io/service|^appgw\.ingress\.`)
	for key := range code {
		if of.MatchString(key) && !others.MatchString(key) && !slices.Contains(pages, key) {
			t.Errorf("the pages do not tell of %s", key)
		}
	}
}

// The reasons of events and conditions that the page explains are the code's, and the
// framework's.
func TestReasons(t *testing.T) {
	code := texts(t, "nodemanager", "cloudprovider", "plan")
	frameworks := []string{"RouteCreated", "NoRouteCreated", "DeletingNode", "DeletingNodeFailed", "FailedToCreateRoute"}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## Conditions and Events")
	if !ok {
		t.Fatal("the page has no reasons")
	}
	for line := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, m := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(first, -1) {
			if !code[m[1]] && !slices.Contains(frameworks, m[1]) {
				t.Errorf("nothing has the reason %s", m[1])
			}
		}
	}
}

// Kubernetes reads the examples, field by field, and what they say of nodes is on the
// page.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../example-manifests/node/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	known := told(t, "labels.md")
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if node, ok := object.(*v1.Node); ok {
			for key := range node.Labels {
				if !slices.Contains(known, key) {
					t.Errorf("%s: the page does not tell of %s", file, key)
				}
			}
		}
	}
}
