package contract

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// examples are the documented examples of a client, as the source of an official module has them: requests as Go expressions, and
// answers as Go expressions in comments. They are read where the module is, so that the repository has no copy of them.
type examples struct {
	testing.TB
	files     *gotoken.FileSet
	functions map[string]*ast.FuncDecl
	comments  []*ast.CommentGroup
	constants map[string]string
}

// readExamples reads the examples in a file of a module, which has a function that a file of the same folder defines.
func readExamples(t testing.TB, function any, file string) *examples {
	t.Helper()
	at := reflect.ValueOf(function).Pointer()
	source, _ := runtime.FuncForPC(at).FileLine(at)
	dir := filepath.Dir(source)
	e := &examples{TB: t, files: gotoken.NewFileSet(), functions: map[string]*ast.FuncDecl{}, constants: map[string]string{}}
	parsed := e.parse(filepath.Join(dir, file))
	e.comments = parsed.Comments
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			_, name, _ := strings.Cut(f.Name.Name, "_")
			e.functions[name] = f
		}
	}
	for _, d := range e.parse(filepath.Join(dir, "constants.go")).Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == gotoken.CONST {
			e.declare(g)
		}
	}
	return e
}

func (e *examples) parse(file string) *ast.File {
	e.Helper()
	parsed, err := parser.ParseFile(e.files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		e.Fatal(err)
	}
	return parsed
}

// declare notes the values of constants that are texts.
func (e *examples) declare(d *ast.GenDecl) {
	for _, s := range d.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 {
			continue
		}
		if text, ok := v.Values[0].(*ast.BasicLit); ok && text.Kind == gotoken.STRING {
			e.constants[v.Names[0].Name] = e.unquote(text)
		}
	}
}

func (e *examples) unquote(l *ast.BasicLit) string {
	e.Helper()
	text, err := strconv.Unquote(l.Value)
	if err != nil {
		e.Fatal(err)
	}
	return text
}

func (e *examples) function(name string) *ast.FuncDecl {
	e.Helper()
	f := e.functions[name]
	if f == nil {
		e.Fatalf("the module has no example of %s", name)
	}
	return f
}

// argument is an argument of the example's call of its method. The context is argument 0.
func argument[T any](e *examples, method string, i int) T {
	e.Helper()
	var found ast.Expr
	ast.Inspect(e.function(method), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, named := call.Fun.(*ast.SelectorExpr); named && s.Sel.Name == method && len(call.Args) > i {
			found = call.Args[i]
		}
		return true
	})
	if found == nil {
		e.Fatalf("the example of %s has no argument %d", method, i)
	}
	return valueOf[T](e, found)
}

// answer is what the example says that Azure answers.
func answer[T any](e *examples, method string) T {
	e.Helper()
	f := e.function(method)
	for _, c := range e.comments {
		if c.Pos() < f.Body.Pos() || c.End() > f.Body.End() {
			continue
		}
		_, text, assigned := strings.Cut(c.Text(), "\nres.")
		if _, page, ofPage := strings.Cut(c.Text(), "\npage."); ofPage {
			text, assigned = page, true
		}
		_, value, ok := strings.Cut(text, " = ")
		if !assigned || !ok {
			continue
		}
		expression, err := parser.ParseExprFrom(e.files, method, value, parser.SkipObjectResolution)
		if err != nil {
			e.Fatal(err)
		}
		return valueOf[T](e, expression)
	}
	e.Fatalf("the example of %s has no answer", method)
	return *new(T)
}

func valueOf[T any](e *examples, x ast.Expr) T {
	e.Helper()
	v, err := e.value(x, reflect.TypeFor[T]())
	if err != nil {
		e.Fatal(err)
	}
	return v.Interface().(T)
}

// value is what an expression of an example stands for, as a value of type t.
func (e *examples) value(x ast.Expr, t reflect.Type) (reflect.Value, error) {
	switch x := x.(type) {
	case *ast.UnaryExpr:
		return e.value(x.X, t)
	case *ast.CallExpr: // to.Ptr(...)
		if len(x.Args) == 1 {
			return e.value(x.Args[0], t)
		}
	case *ast.CompositeLit:
		return e.composite(x, t)
	case *ast.BasicLit, *ast.Ident, *ast.SelectorExpr:
		return e.scalar(x, t)
	}
	return reflect.Value{}, fmt.Errorf("%s: %T is nothing that an example has", e.files.Position(x.Pos()), x)
}

// scalar is a text, a number, a truth value or a constant, or a pointer to one.
func (e *examples) scalar(x ast.Expr, t reflect.Type) (reflect.Value, error) {
	if t.Kind() == reflect.Pointer {
		inner, err := e.scalar(x, t.Elem())
		return pointer(t, inner), err
	}
	v, text := reflect.New(t).Elem(), ""
	switch x := x.(type) {
	case *ast.BasicLit:
		text = strings.Trim(x.Value, `"`)
		if x.Kind == gotoken.STRING {
			text = e.unquote(x)
		}
	case *ast.Ident:
		text = x.Name
	case *ast.SelectorExpr:
		text = e.constants[x.Sel.Name]
	}
	var err error
	switch t.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.Int32, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
	default:
		err = errors.New("an example has no value of the type " + t.String())
	}
	return v, err
}

func (e *examples) composite(x *ast.CompositeLit, t reflect.Type) (reflect.Value, error) {
	switch t.Kind() {
	case reflect.Pointer:
		inner, err := e.composite(x, t.Elem())
		return pointer(t, inner), err
	case reflect.Slice:
		all := reflect.MakeSlice(t, 0, len(x.Elts))
		for _, element := range x.Elts {
			v, err := e.value(element, t.Elem())
			if err != nil {
				return all, err
			}
			all = reflect.Append(all, v)
		}
		return all, nil
	case reflect.Struct, reflect.Map:
		return e.members(x, t)
	}
	return reflect.Value{}, fmt.Errorf("%s: an example has no %s", e.files.Position(x.Pos()), t)
}

// members is a struct or a map with texts as keys.
func (e *examples) members(x *ast.CompositeLit, t reflect.Type) (reflect.Value, error) {
	made := reflect.New(t).Elem()
	if t.Kind() == reflect.Map {
		made.Set(reflect.MakeMap(t))
	}
	for _, element := range x.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return made, fmt.Errorf("%s: a member without a name", e.files.Position(element.Pos()))
		}
		name, isField := pair.Key.(*ast.Ident)
		if !isField {
			v, err := e.value(pair.Value, t.Elem())
			if err != nil {
				return made, err
			}
			made.SetMapIndex(reflect.ValueOf(e.unquote(pair.Key.(*ast.BasicLit))), v)
			continue
		}
		field := made.FieldByName(name.Name)
		if !field.IsValid() {
			return made, fmt.Errorf("%s has no field %s", t, name.Name)
		}
		v, err := e.value(pair.Value, field.Type())
		if err != nil {
			return made, err
		}
		field.Set(v)
	}
	return made, nil
}

// pointer is a pointer of type t to a value.
func pointer(t reflect.Type, to reflect.Value) reflect.Value {
	p := reflect.New(t.Elem())
	if to.IsValid() {
		p.Elem().Set(to)
	}
	return p
}

// lacks returns the paths at which got lacks, or has otherwise, what want has. Elements of lists that have names are found by them.
func lacks(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		have, _ := got.(map[string]any)
		var all []string
		for name, value := range want {
			all = append(all, lacks(path+"."+name, value, have[name])...)
		}
		slices.Sort(all)
		return all
	case []any:
		have, _ := got.([]any)
		var all []string
		for i, value := range want {
			all = append(all, lacks(fmt.Sprintf("%s[%d]", path, i), value, elementLike(have, i, value))...)
		}
		return all
	}
	if reflect.DeepEqual(want, got) {
		return nil
	}
	return []string{fmt.Sprintf("%s: %v, want %v", path, got, want)}
}

// elementLike is the element with the name of another one, or at the same place.
func elementLike(all []any, i int, like any) any {
	if named, _ := like.(map[string]any); named["name"] != nil {
		for _, one := range all {
			if o, _ := one.(map[string]any); o["name"] == named["name"] {
				return one
			}
		}
		return nil
	}
	if i < len(all) {
		return all[i]
	}
	return nil
}
