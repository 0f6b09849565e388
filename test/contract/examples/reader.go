// Package examples reads the documented examples of the official Azure SDK modules and judges the local Azure by them. The examples are
// read where the modules are, so that the repository has no copy of them.
package examples

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Module is the source of an official module: its examples and its constants.
type Module struct {
	// Text changes each text of an example before use, for example to put the right subscription into ids: those of literals and those
	// of the module's constants. Nil changes nothing.
	Text func(text string, constant bool) string
	// Types are the structs that may stand in fields of interface types, by their names.
	Types map[string]reflect.Type

	files     *token.FileSet
	constants map[string]string
	readOnly  map[string]bool
	examples  []Example
}

// Example is a documented call of a method, and its documented answer.
type Example struct {
	// Name is what is behind "Example" in the name of the function, for example "VirtualNetworksClient_Get_getVirtualNetwork".
	Name string
	// Client and Method are what is called.
	Client, Method string
	// Arguments are those of the call. The context is one of them, the first, except of pagers.
	Arguments []ast.Expr
	// Field is the field of the response that has the documented answer, "" if none is documented. Answer is its value.
	Field  string
	Answer ast.Expr
}

// Dir is the directory of the module that defines a function.
func Dir(function any) string {
	source, _ := runtime.FuncForPC(reflect.ValueOf(function).Pointer()).FileLine(reflect.ValueOf(function).Pointer())
	return filepath.Dir(source)
}

// Read reads the examples in the files of a directory that match a pattern, such as "*_client_example_test.go".
func Read(dir, pattern string) (*Module, error) {
	m := &Module{files: token.NewFileSet(), constants: map[string]string{}, readOnly: map[string]bool{}}
	constants, err := m.parse(filepath.Join(dir, "constants.go"))
	if err != nil {
		return nil, err
	}
	for _, d := range constants.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			m.declare(g)
		}
	}
	models, err := m.parse(filepath.Join(dir, "models.go"))
	if err != nil {
		return nil, err
	}
	ast.Inspect(models, func(n ast.Node) bool { return m.described(n) })
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := m.read(name); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Examples are the examples in the order of the files.
func (m *Module) Examples() []Example { return m.examples }

func (m *Module) parse(file string) (*ast.File, error) {
	return parser.ParseFile(m.files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
}

// declare notes the values of constants.
func (m *Module) declare(d *ast.GenDecl) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
			continue
		}
		if text, ok := v.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(text.Value)
			if err != nil {
				value = text.Value // a number
			}
			m.constants[v.Names[0].Name] = value
		}
	}
}

// ReadOnly reports whether a model says that Azure alone sets a field. The field is "Type.Field".
func (m *Module) ReadOnly(field string) bool { return m.readOnly[field] }

// described notes the fields of a model that only Azure sets. It reports whether the nodes below may be a model.
func (m *Module) described(n ast.Node) bool {
	model, ok := n.(*ast.TypeSpec)
	if !ok {
		return true
	}
	fields, ok := model.Type.(*ast.StructType)
	if !ok {
		return false
	}
	for _, f := range fields.Fields.List {
		if len(f.Names) == 1 && strings.HasPrefix(f.Doc.Text(), "READ-ONLY;") {
			m.readOnly[model.Name.Name+"."+f.Names[0].Name] = true
		}
	}
	return false
}

// read reads the examples of a file.
func (m *Module) read(name string) error {
	file, err := m.parse(name)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		e := Example{Name: strings.TrimPrefix(f.Name.Name, "Example")}
		ast.Inspect(f.Body, func(n ast.Node) bool { return e.called(n) })
		if e.Client == "" {
			continue
		}
		for _, c := range file.Comments {
			if c.Pos() < f.Body.Pos() || c.End() > f.Body.End() || e.Answer != nil {
				continue
			}
			if err := m.documented(&e, c.Text()); err != nil {
				return fmt.Errorf("the answer of %s: %w", e.Name, err)
			}
		}
		m.examples = append(m.examples, e)
	}
	return nil
}

// called notes a call of the form clientFactory.NewXClient().Method(arguments). It reports whether the nodes below may be one.
func (e *Example) called(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return true
	}
	made, ok := method.X.(*ast.CallExpr)
	if !ok {
		return true
	}
	client, ok := made.Fun.(*ast.SelectorExpr)
	if factory, named := client.X.(*ast.Ident); !ok || !named || factory.Name != "clientFactory" {
		return true
	}
	e.Client, e.Method, e.Arguments = strings.TrimPrefix(client.Sel.Name, "New"), method.Sel.Name, call.Args
	return false
}

// documented reads an answer from a comment of the form "res.Field = value" or "page.Field = value".
func (m *Module) documented(e *Example, comment string) error {
	for _, variable := range []string{"res", "page"} {
		_, text, found := strings.Cut(comment, "\n"+variable+".")
		field, value, assigned := strings.Cut(text, " = ")
		if !found || !assigned {
			continue
		}
		x, err := parser.ParseExprFrom(m.files, e.Name, value, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		e.Field, e.Answer = field, x
	}
	return nil
}
