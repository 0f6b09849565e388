package key

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Annotation is one annotation key whose value is a T.
type Annotation[T any] struct {
	Name    string
	Doc     string // what it does, one sentence
	Allowed string // what values it takes, to follow "allowed is"
	Default T

	parse func(string) (T, error)
	// doubt says why a value is none of the allowed ones though it is taken as it is: that is
	// how the key has always been read. nil is for keys whose parser knows.
	doubt func(T) error
	// doubtText is the same for keys whose values do not tell what was written.
	doubtText func(string) error
}

// Read returns the annotation's value, or its default when it is absent. A value
// that is not allowed is an [*Error].
func (a Annotation[T]) Read(annotations map[string]string) (T, error) {
	v, _, err := a.Lookup(annotations)
	return v, err
}

// Lookup is Read that also says whether the annotation is there.
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

// Doubt says why a value that Lookup takes is none of the allowed ones, nil where it is one.
func (a Annotation[T]) Doubt(v T) error {
	if a.doubt == nil {
		return nil
	}
	return a.doubt(v)
}

// doubts is what is wrong with a value that keeps nobody from being served.
func (a Annotation[T]) doubts(annotations map[string]string, _ []int32) []*Error {
	v, there, err := a.Lookup(annotations)
	if wrong, ok := errors.AsType[*Error](err); ok {
		return []*Error{wrong}
	}
	if !there {
		return nil
	}
	text := annotations[a.Name]
	err = a.Doubt(v)
	if err == nil && a.doubtText != nil {
		err = a.doubtText(text)
	}
	if err != nil {
		return []*Error{{Key: a.Name, Value: text, Allowed: a.Allowed, Cause: err}}
	}
	return nil
}

func (a Annotation[T]) entry() Entry {
	return Entry{Name: a.Name, Doc: a.Doc, Allowed: a.Allowed, Default: fmt.Sprint(a.Default)}
}

// PortAnnotation is an annotation key with a service port's number in its name.
type PortAnnotation[T any] struct {
	Name    string // with PORT where the number stands
	Doc     string
	Allowed string

	parse func(string) (T, error)
	doubt func(T) error

	doubtText func(string) error
}

// Lookup returns the annotation's value for a port, and whether there is one.
func (a PortAnnotation[T]) Lookup(annotations map[string]string, port int32) (T, bool, error) {
	return a.of(port).Lookup(annotations)
}

// of is the annotation of a port.
func (a PortAnnotation[T]) of(port int32) Annotation[T] {
	return Annotation[T]{Name: a.For(port), Allowed: a.Allowed, parse: a.parse, doubt: a.doubt, doubtText: a.doubtText}
}

// For is the annotation's key for a port.
func (a PortAnnotation[T]) For(port int32) string {
	return strings.Replace(a.Name, portInName, strconv.Itoa(int(port)), 1)
}

func (a PortAnnotation[T]) doubts(annotations map[string]string, ports []int32) []*Error {
	var all []*Error
	for _, port := range ports {
		all = append(all, a.of(port).doubts(annotations, nil)...)
	}
	return all
}

func (a PortAnnotation[T]) entry() Entry {
	return Entry{Name: a.Name, Doc: a.Doc, Allowed: a.Allowed}
}

const portInName = "PORT"

// Entry is what the reference says of a key.
type Entry struct{ Name, Doc, Allowed, Default string }

// Error is a key with a value that is not allowed.
type Error struct {
	Key, Value string
	Allowed    string
	Cause      error // why, where there is more to say; may be nil
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %q is not allowed", e.Key, e.Value)
	if e.Cause != nil && e.Cause.Error() != "" {
		text += " (" + e.Cause.Error() + ")"
	}
	return text + ", allowed is " + e.Allowed
}

func (e *Error) Unwrap() error { return e.Cause }
