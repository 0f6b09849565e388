package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is what the Go source of one module of the official SDK says of its resource types.
type source struct {
	structs    map[string]*structure
	enums      map[string][]string
	operations []operation
	answers    map[string]string // the structures of answers, by receiver and name of the operation
}

// structure is an object of a request or an answer.
type structure struct {
	fields []field
	open   bool // further members of any name are allowed
}

func (s *structure) has(name string) bool {
	return slices.ContainsFunc(s.fields, func(f field) bool { return f.jsonName == name })
}

// folded returns the field of a name in any case: modules have spelled some names differently.
func (s *structure) folded(name string) (field, bool) {
	i := slices.IndexFunc(s.fields, func(f field) bool { return strings.EqualFold(f.jsonName, name) })
	if i < 0 {
		return field{}, false
	}
	return s.fields[i], true
}

// field is a member of an object.
type field struct {
	goName, jsonName   string
	goType             ast.Expr
	required, readOnly bool
}

// operation is a PUT or PATCH of a resource, with the structure of its body, or a GET with the structure of its answer.
type operation struct {
	verb, path, version, body string
}

// readSource reads the Go files of a module's folder.
func readSource(dir string) (*source, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &source{structs: map[string]*structure{}, enums: map[string][]string{}, answers: map[string]string{}}
	var functions []*ast.FuncDecl
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.GenDecl:
				s.declare(d)
			case *ast.FuncDecl:
				functions = append(functions, d)
			}
		}
	}
	for _, f := range functions {
		name, isAnswer := strings.CutSuffix(f.Name.Name, "HandleResponse")
		switch {
		case name == "MarshalJSON" || name == "UnmarshalJSON":
			s.nameMembers(f)
		case isAnswer:
			s.answers[receiver(f)+"."+name] = decoded(f)
		}
	}
	for _, f := range functions {
		if name, ok := strings.CutSuffix(f.Name.Name, "CreateRequest"); ok {
			s.addOperation(f, s.answers[receiver(f)+"."+name])
		}
	}
	return s, nil
}

// declare notes the structs and enumerations of a declaration.
func (s *source) declare(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch v := spec.(type) {
		case *ast.TypeSpec:
			if body, ok := v.Type.(*ast.StructType); ok {
				s.structs[v.Name.Name] = &structure{fields: fieldsOf(body)}
			}
		case *ast.ValueSpec:
			kind, typed := v.Type.(*ast.Ident)
			if d.Tok != token.CONST || !typed || len(v.Values) != 1 {
				continue
			}
			if text, ok := literal(v.Values[0]); ok {
				s.enums[kind.Name] = append(s.enums[kind.Name], text)
			}
		}
	}
}

func fieldsOf(body *ast.StructType) []field {
	var fields []field
	for _, f := range body.Fields.List {
		if len(f.Names) != 1 || !f.Names[0].IsExported() {
			continue
		}
		doc := f.Doc.Text()
		flags, _, _ := strings.Cut(doc, "\n")
		fields = append(fields, field{goName: f.Names[0].Name, goType: f.Type, jsonName: tagged(f.Tag),
			required: strings.HasPrefix(flags, "REQUIRED;"),
			readOnly: strings.HasPrefix(flags, "READ-ONLY;") || strings.HasPrefix(flags, "REQUIRED; READ-ONLY;")})
	}
	return fields
}

// tagged is the JSON name in the tag of a field, none without a tag. Only early modules have tags.
func tagged(tag *ast.BasicLit) string {
	if tag == nil {
		return ""
	}
	text, _ := literal(tag)
	name, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
	return name
}

// nameMembers takes the JSON names of a struct's fields from its MarshalJSON or UnmarshalJSON. Both call functions of the
// names populate... and unpopulate..., with a name as a literal and the field as a selector.
func (s *source) nameMembers(f *ast.FuncDecl) {
	of := s.structs[receiver(f)]
	if of == nil {
		return
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch v := n.(type) {
		case *ast.CaseClause:
			if len(v.List) == 1 {
				if name, ok := literal(v.List[0]); ok {
					of.nameAll(name, v)
				}
			}
		case *ast.CallExpr:
			if called, ok := v.Fun.(*ast.Ident); ok && strings.HasPrefix(called.Name, "populate") && len(v.Args) >= 3 {
				if name, ok := literal(v.Args[1]); ok {
					of.nameField(v.Args[2], name)
				}
			}
		case *ast.SelectorExpr:
			if v.Sel.Name == "AdditionalProperties" {
				of.open = true
			}
		}
		return true
	})
}

// nameAll gives a name to the fields of which a clause takes the address.
func (s *structure) nameAll(name string, clause *ast.CaseClause) {
	ast.Inspect(clause, func(n ast.Node) bool {
		if address, ok := n.(*ast.UnaryExpr); ok && address.Op == token.AND {
			s.nameField(address.X, name)
		}
		return true
	})
}

func (s *structure) nameField(selected ast.Expr, name string) {
	selector, ok := selected.(*ast.SelectorExpr)
	if !ok {
		return
	}
	for i := range s.fields {
		if s.fields[i].goName == selector.Sel.Name {
			s.fields[i].jsonName = name
		}
	}
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) != 1 {
		return ""
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}

func literal(e ast.Expr) (string, bool) {
	basic, ok := e.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

var (
	pathForm    = regexp.MustCompile(`^/.*/providers/`)
	nameForm    = regexp.MustCompile(`(\}|/default)$`)
	versionForm = regexp.MustCompile(`^20\d\d-\d\d-\d\d(-preview)?$`)
)

// addOperation reads a function that makes a request. The function has the path and the API version as literals, the verb as
// a constant of net/http, and encodes one of its parameters. Only the path of a GET of one resource ends with its name.
func (s *source) addOperation(f *ast.FuncDecl, answer string) {
	parameters := map[string]string{}
	for _, p := range f.Type.Params.List {
		if of, ok := p.Type.(*ast.Ident); ok {
			for _, name := range p.Names {
				parameters[name.Name] = of.Name
			}
		}
	}
	var o operation
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch v := n.(type) {
		case *ast.BasicLit:
			text, _ := literal(v)
			o.note(text)
		case *ast.SelectorExpr:
			o.verb = cmp.Or(verbs[v.Sel.Name], o.verb)
		case *ast.CallExpr:
			o.body = cmp.Or(parameters[encoded(v)], o.body)
		}
		return true
	})
	if o.verb == http.MethodGet {
		o.body = ""
		if nameForm.MatchString(o.path) {
			o.body = answer
		}
	}
	if o.verb != "" && o.path != "" && o.body != "" {
		s.operations = append(s.operations, o)
	}
}

// decoded is the name of the embedded structure that a function decodes an answer into, none for another answer.
func decoded(f *ast.FuncDecl) (name string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		called, isMember := call.Fun.(*ast.SelectorExpr)
		target, isAddress := call.Args[1].(*ast.UnaryExpr)
		if isMember && isAddress && called.Sel.Name == "UnmarshalAsJSON" {
			if into, ok := target.X.(*ast.SelectorExpr); ok {
				name = into.Sel.Name
			}
		}
		return true
	})
	return name
}

// verbs are the verbs of operations, by their constants in net/http.
var verbs = map[string]string{"MethodPut": http.MethodPut, "MethodPatch": http.MethodPatch, "MethodGet": http.MethodGet}

// note takes a text of the function that is a path or an API version.
func (o *operation) note(text string) {
	switch {
	case pathForm.MatchString(text) || strings.HasPrefix(text, "/subscriptions/{subscriptionId}/"):
		o.path = text
	case versionForm.MatchString(text):
		o.version = text
	}
}

// encoded returns the name of the variable that a call encodes as the body of a request, none for another call.
func encoded(call *ast.CallExpr) string {
	called, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || called.Sel.Name != "MarshalAsJSON" || len(call.Args) != 2 {
		return ""
	}
	given, ok := call.Args[1].(*ast.Ident)
	if !ok {
		return ""
	}
	return given.Name
}
