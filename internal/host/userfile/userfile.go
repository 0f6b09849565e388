// Package userfile words the errors of libraries about JSON and YAML files of users. Layer L4.
package userfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	// wrongType is how the library says that a value has another type than its Go field.
	wrongType = regexp.MustCompile(`json: cannot unmarshal (\w+)(?: \S+)? into Go (?:struct field (\S+)|value) of type (\S+)`)
	// unknownField is how it names a field that does not exist.
	unknownField = regexp.MustCompile(`json: unknown field "([^"]*)"`)
	// noise are prefixes about the steps of the library.
	noise = regexp.MustCompile(`^(error (unmarshaling|converting) (JSON|YAML to JSON): |while decoding JSON: |yaml: |json: )+`)
)

// Explain words an error about a file: the field, what it is, and what is allowed. It keeps what it does not know.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if m := wrongType.FindStringSubmatch(text); m != nil {
		is, want := kind(m[1]), goKind(m[3])
		if m[2] == "" {
			return fmt.Errorf("the document is %s: want %s", is, want)
		}
		_, field, _ := strings.Cut(m[2], ".") // without the name of the Go type
		return fmt.Errorf("field %s is %s: want %s", field, is, want)
	}
	if m := unknownField.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("field %s is unknown", m[1])
	}
	if plain := noise.ReplaceAllString(text, ""); plain != text {
		return errors.New(plain)
	}
	return err
}

// kind names a type of JSON.
func kind(name string) string {
	switch name {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "true or false"
	case "string":
		return "a text"
	default:
		return "a number"
	}
}

// goKind names the type of JSON for a Go type.
func goKind(name string) string {
	switch {
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case name == "string":
		return "a text"
	case name == "bool":
		return "true or false"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "float"):
		return "a number"
	default:
		return "an object"
	}
}
