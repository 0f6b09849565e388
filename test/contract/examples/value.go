package examples

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"time"
)

// Value is what an expression of an example stands for, as a value of type t.
func (m *Module) Value(x ast.Expr, t reflect.Type) (reflect.Value, error) {
	if t.Kind() == reflect.Interface {
		return m.any(x, t)
	}
	if name, ok := x.(*ast.Ident); ok && name.Name == "nil" {
		return reflect.Zero(t), nil
	}
	switch x := x.(type) {
	case *ast.UnaryExpr:
		if x.Op == token.SUB {
			return m.scalar(x, t)
		}
		return m.Value(x.X, t)
	case *ast.CallExpr:
		return m.call(x, t)
	case *ast.CompositeLit:
		return m.composite(x, t)
	case *ast.BasicLit, *ast.Ident, *ast.SelectorExpr:
		return m.scalar(x, t)
	}
	return reflect.Value{}, m.unknown(x, t)
}

func (m *Module) unknown(x ast.Expr, t reflect.Type) error {
	return fmt.Errorf("%s: %T is nothing that an example has as %s", m.files.Position(x.Pos()), x, t)
}

// call is to.Ptr(value), []byte(text), a constant of a type, or a function that parses a time.
func (m *Module) call(x *ast.CallExpr, t reflect.Type) (reflect.Value, error) {
	if f, ok := x.Fun.(*ast.FuncLit); ok {
		return m.time(f, t)
	}
	if len(x.Args) == 1 {
		return m.Value(x.Args[0], t)
	}
	return reflect.Value{}, m.unknown(x, t)
}

// time is the time that the function f parses, or makes of seconds.
func (m *Module) time(f *ast.FuncLit, t reflect.Type) (reflect.Value, error) {
	var parsed time.Time
	err := errors.New("a function without a time")
	ast.Inspect(f, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && err != nil {
			parsed, err = timeOf(text)
		}
		return true
	})
	v := reflect.ValueOf(parsed)
	if t.Kind() == reflect.Pointer {
		v = pointer(t, v)
	}
	if err == nil && !v.CanConvert(t) {
		err = m.unknown(f, t)
	}
	return v, err
}

// timeOf is a time as a text, or in seconds.
func timeOf(literal *ast.BasicLit) (time.Time, error) {
	if literal.Kind == token.INT {
		seconds, err := strconv.ParseInt(literal.Value, 10, 64)
		return time.Unix(seconds, 0).UTC(), err
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return time.Time{}, err
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		var at time.Time
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, err
}

// any is a value in a field of an interface type: JSON, or a struct that implements it.
func (m *Module) any(x ast.Expr, t reflect.Type) (reflect.Value, error) {
	if name, ok := x.(*ast.Ident); ok && name.Name == "nil" {
		return reflect.Zero(t), nil
	}
	made, kind := reflect.Type(nil), x
	if u, ok := x.(*ast.UnaryExpr); ok && u.Op == token.AND {
		kind = u.X
	}
	switch k := kind.(type) {
	case *ast.BasicLit:
		made = map[token.Token]reflect.Type{token.STRING: reflect.TypeFor[string](), token.INT: reflect.TypeFor[float64](),
			token.FLOAT: reflect.TypeFor[float64]()}[k.Kind]
	case *ast.Ident:
		made = reflect.TypeFor[bool]()
	case *ast.CompositeLit:
		switch k.Type.(type) {
		case *ast.MapType:
			made = reflect.TypeFor[map[string]any]()
		case *ast.ArrayType:
			made = reflect.TypeFor[[]any]()
		case *ast.SelectorExpr:
			return m.implementation(k, t)
		}
	}
	if made == nil || !made.AssignableTo(t) {
		return reflect.Value{}, m.unknown(x, t)
	}
	return m.Value(kind, made)
}

// implementation is a pointer to a struct that implements the interface type t.
func (m *Module) implementation(x *ast.CompositeLit, t reflect.Type) (reflect.Value, error) {
	name, _ := x.Type.(*ast.SelectorExpr)
	made := m.Types[name.Sel.Name]
	if made == nil || !reflect.PointerTo(made).AssignableTo(t) {
		return reflect.Value{}, m.unknown(x, t)
	}
	return m.composite(x, reflect.PointerTo(made))
}

// scalar is a text, a number, a truth value or a constant, or a pointer to one.
func (m *Module) scalar(x ast.Expr, t reflect.Type) (reflect.Value, error) {
	if t.Kind() == reflect.Pointer {
		inner, err := m.scalar(x, t.Elem())
		return pointer(t, inner), err
	}
	v := reflect.New(t).Elem()
	text, err := m.text(x)
	if err != nil {
		return v, err
	}
	switch t.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.Int32, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
	case reflect.Float32, reflect.Float64:
		var n float64
		n, err = strconv.ParseFloat(text, 64)
		v.SetFloat(n)
	case reflect.Slice:
		v.SetBytes([]byte(text))
	default:
		err = m.unknown(x, t)
	}
	return v, err
}

// text is a scalar as it is written.
func (m *Module) text(x ast.Expr) (string, error) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind != token.STRING {
			return x.Value, nil
		}
		text, err := strconv.Unquote(x.Value)
		return m.spell(text, false), err
	case *ast.UnaryExpr:
		text, err := m.text(x.X)
		return "-" + text, err
	case *ast.Ident:
		return x.Name, nil
	case *ast.SelectorExpr:
		if value, ok := m.constants[x.Sel.Name]; ok {
			return m.spell(value, true), nil
		}
		return "", fmt.Errorf("the module has no constant %s", x.Sel.Name)
	}
	return "", m.unknown(x, reflect.TypeFor[string]())
}

func (m *Module) spell(text string, constant bool) string {
	if m.Text == nil {
		return text
	}
	return m.Text(text, constant)
}

func (m *Module) composite(x *ast.CompositeLit, t reflect.Type) (reflect.Value, error) {
	switch t.Kind() {
	case reflect.Pointer:
		inner, err := m.composite(x, t.Elem())
		return pointer(t, inner), err
	case reflect.Slice:
		all := reflect.MakeSlice(t, 0, len(x.Elts))
		for _, element := range x.Elts {
			v, err := m.Value(element, t.Elem())
			if err != nil {
				return all, err
			}
			all = reflect.Append(all, v)
		}
		return all, nil
	case reflect.Map:
		return m.mapping(x, t)
	case reflect.Struct:
		return m.members(x, t)
	}
	return reflect.Value{}, m.unknown(x, t)
}

// mapping is a map with texts as keys.
func (m *Module) mapping(x *ast.CompositeLit, t reflect.Type) (reflect.Value, error) {
	made := reflect.MakeMap(t)
	for _, element := range x.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return made, m.unknown(element, t)
		}
		key, err := m.text(pair.Key)
		if err != nil {
			return made, err
		}
		v, err := m.Value(pair.Value, t.Elem())
		if err != nil {
			return made, err
		}
		made.SetMapIndex(reflect.ValueOf(key), v)
	}
	return made, nil
}

func (m *Module) members(x *ast.CompositeLit, t reflect.Type) (reflect.Value, error) {
	made := reflect.New(t).Elem()
	for _, element := range x.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return made, m.unknown(element, t)
		}
		name, ok := pair.Key.(*ast.Ident)
		if !ok {
			return made, m.unknown(pair.Key, t)
		}
		field := made.FieldByName(name.Name)
		if !field.IsValid() {
			return made, fmt.Errorf("%s has no field %s", t, name.Name)
		}
		v, err := m.Value(pair.Value, field.Type())
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
