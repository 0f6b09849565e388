// Package docs_test checks that what a page of this folder names is there.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = ".."

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// named is a function or type with its package or receiver: loadbalancer.Desired, Controller.pass.
	named = regexp.MustCompile(`^[A-Za-z]\w*\.[A-Za-z]\w*$`)
	file  = regexp.MustCompile(`^[\w./-]+\.(go|txt|md)$`)
	// placed is a name with its file: `Controller.pass` (`pass.go`).
	placed = regexp.MustCompile("`([A-Za-z]\\w*\\.[A-Za-z]\\w*)`\\s+\\(`([^`]+\\.go)`\\)")
)

// folders are where the page's paths begin.
var folders = []string{"", "internal", "internal/cloudprovider/service", "internal/plan/loadbalancer", "internal/localazure/core"}

// checkNames checks that the files, packages and functions exist that a page names. It returns the page.
func checkNames(t *testing.T, path string, declared map[string]map[string]bool) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	for _, m := range quoted.FindAllStringSubmatch(page, -1) {
		switch name := m[1]; {
		case strings.HasSuffix(name, "options.go"), strings.Contains(name, "NAME"): // of each program
		case file.MatchString(name), strings.HasPrefix(name, "internal/") && !strings.Contains(name, "PROVIDER"):
			if find(name) == "" {
				t.Errorf("there is no %s", name)
			}
		case named.MatchString(name) && !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".yaml"):
			if len(declared[name]) == 0 {
				t.Errorf("nothing declares %s", name)
			}
		}
	}
	return page
}

// TestAddAComponent checks what the page for new components names.
func TestAddAComponent(t *testing.T) {
	page := checkNames(t, "add-a-component.md", declarations(t))
	for _, m := range regexp.MustCompile("`((?:cmd|deploy|docs|test|tools)/[^` ]+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[1], "NAME") && find(m[1]) == "" {
			t.Errorf("there is no %s", m[1])
		}
	}
}

// TestArchitecture checks that the files, packages and functions exist that the page for developers names.
func TestArchitecture(t *testing.T) {
	declared := declarations(t)
	page := checkNames(t, "architecture.md", declared)
	pairs := placed.FindAllStringSubmatch(page, -1)
	if len(pairs) < 5 {
		t.Errorf("%d names with their files, want those of the way of a Service", len(pairs))
	}
	for _, m := range pairs {
		if !declared[m[1]][find(m[2])] {
			t.Errorf("%s is not in %s", m[1], m[2])
		}
	}
	packages, err := os.ReadDir(filepath.Join(root, "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range packages {
		if !strings.Contains(page, "`internal/"+d.Name()+"`") {
			t.Errorf("the table of layers does not have internal/%s", d.Name())
		}
	}
}

// TestPlannerPackages checks that the table of the load balancer planner has exactly its packages.
func TestPlannerPackages(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "### Packages of the load balancer planner")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
				listed[m[1]] = true
			}
		}
	}
	entries, err := os.ReadDir(filepath.Join(root, "internal", "plan", "loadbalancer"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "testdata" && !listed[e.Name()] {
			t.Errorf("package %s is not listed", e.Name())
		}
		delete(listed, e.Name())
	}
	for name := range listed {
		t.Errorf("there is no package %s", name)
	}
}

// find is the path of a file or folder in the repository, "" if there is none.
func find(name string) string {
	for _, folder := range folders {
		path := filepath.Join(root, folder, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// declarations are the files that declare a name, with the name of its package or its receiver.
func declarations(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, name := range namesIn(f) {
			if all[name] == nil {
				all[name] = map[string]bool{}
			}
			all[name][path] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func namesIn(f *ast.File) []string {
	var names []string
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, f.Name.Name+"."+decl.Name.Name)
			if decl.Recv != nil {
				names = append(names, receiver(decl.Recv.List[0].Type)+"."+decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, one := range decl.Specs {
				if declared, is := one.(*ast.TypeSpec); is {
					names = append(names, f.Name.Name+"."+declared.Name.Name)
				}
			}
		}
	}
	return names
}

// receiver is the name of a receiver's type, without its parameters.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
