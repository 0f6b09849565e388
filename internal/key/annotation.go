package key

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Annotation is an annotation key with values of type T.
type Annotation[T any] struct {
	Name    string
	Doc     string // what it does, in one sentence
	Allowed string // the allowed values, to follow "allowed is"
	Default T

	parse func(string) (T, error)
	// warn says why a value is accepted but not documented as allowed. Earlier implementations
	// accepted it. nil means that parse rejects every such value.
	warn func(T) error
	// warnText is like warn, for keys with a parsed value that hides the original text.
	warnText func(string) error
}

// Read returns the annotation's value, or its default if the annotation is absent. For a value that
// is not allowed it returns an [*Error].
func (a Annotation[T]) Read(annotations map[string]string) (T, error) {
	v, _, err := a.Lookup(annotations)
	return v, err
}

// Lookup is like Read and also reports whether the annotation is present.
func (a Annotation[T]) Lookup(annotations map[string]string) (T, bool, error) {
	text, ok := annotations[a.Name]
	if !ok {
		return a.Default, false, nil
	}
	v, err := a.parse(text)
	if err != nil {
		return a.Default, true, &Error{Key: a.Name, Value: text, Allowed: a.Allowed, Cause: err}
	}
	return v, true, nil
}

// Warning says why a value that Lookup accepts is not documented as allowed. It returns nil for an
// allowed value.
func (a Annotation[T]) Warning(v T) error {
	if a.warn == nil {
		return nil
	}
	return a.warn(v)
}

// warnings returns what is wrong with a value that is used anyway.
func (a Annotation[T]) warnings(annotations map[string]string, _ []int32) []*Error {
	v, there, err := a.Lookup(annotations)
	if wrong, ok := errors.AsType[*Error](err); ok {
		return []*Error{wrong}
	}
	if !there {
		return nil
	}
	text := annotations[a.Name]
	err = a.Warning(v)
	if err == nil && a.warnText != nil {
		err = a.warnText(text)
	}
	if err != nil {
		return []*Error{{Key: a.Name, Value: text, Allowed: a.Allowed, Cause: err}}
	}
	return nil
}

func (a Annotation[T]) entry() Entry {
	return Entry{Name: a.Name, Doc: a.Doc, Allowed: a.Allowed, Default: fmt.Sprint(a.Default)}
}

// PortAnnotation is an annotation key that contains a port number.
type PortAnnotation[T any] struct {
	Name    string // contains PORT in place of the number
	Doc     string
	Allowed string

	parse func(string) (T, error)
	warn  func(T) error

	warnText func(string) error
}

// Lookup returns the annotation's value for a port and whether it is present.
func (a PortAnnotation[T]) Lookup(annotations map[string]string, port int32) (T, bool, error) {
	return a.Of(port, *new(T)).Lookup(annotations)
}

// Of returns the annotation of one port, with the value that applies without it.
func (a PortAnnotation[T]) Of(port int32, otherwise T) Annotation[T] {
	return Annotation[T]{Name: a.For(port), Allowed: a.Allowed, Default: otherwise, parse: a.parse, warn: a.warn, warnText: a.warnText}
}

// For returns the key for one port.
func (a PortAnnotation[T]) For(port int32) string {
	return strings.Replace(a.Name, portInName, strconv.Itoa(int(port)), 1)
}

func (a PortAnnotation[T]) warnings(annotations map[string]string, ports []int32) []*Error {
	var all []*Error
	for _, port := range ports {
		all = append(all, a.Of(port, *new(T)).warnings(annotations, nil)...)
	}
	return all
}

func (a PortAnnotation[T]) entry() Entry {
	return Entry{Name: a.Name, Doc: a.Doc, Allowed: a.Allowed}
}

const portInName = "PORT"

// Entry is a key as the reference shows it.
type Entry struct{ Name, Doc, Allowed, Default string }

// Error is a key with a value that is not allowed.
type Error struct {
	Key, Value string
	Allowed    string
	Cause      error // more detail; may be nil
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %q is not allowed", e.Key, e.Value)
	if e.Cause != nil && e.Cause.Error() != "" {
		text += " (" + e.Cause.Error() + ")"
	}
	return text + ", allowed is " + e.Allowed
}

func (e *Error) Unwrap() error { return e.Cause }
