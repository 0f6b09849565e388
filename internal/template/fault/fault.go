// Package fault has the errors of templates: what is wrong, in which expression, and where in the template. Layer L1: it knows texts alone.
package fault

import (
	"errors"
	"fmt"

	"kaz/internal/azure/short"
)

// Error is what is wrong with a template, and where.
type Error struct {
	// Path leads to the place in the template: "resources[1].properties.subnet.id". It is
	// "" for what concerns the whole template.
	Path string
	// Expression is the expression there, without its brackets, "" for none.
	Expression string
	// Message is what the resource manager says of it.
	Message string
	// Parse says that the resource manager cannot read the template.
	Parse bool

	err  error
	root bool // the path begins at the top of the template
}

func (e *Error) Error() string {
	text := e.Message
	if e.Expression != "" {
		text = "[" + short.Text(e.Expression) + "]: " + text
	}
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	return text
}

// Unwrap returns the error behind it, nil for none.
func (e *Error) Unwrap() error { return e.err }

// Invalid is an error at a path of the template.
func Invalid(path, format string, args ...any) error {
	return &Error{Path: short.Text(path), Message: short.Text(fmt.Sprintf(format, args...)), root: true}
}

// In says in which expression an error happened, unless that is known already.
func In(expression string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Expression: expression, Message: short.Text(err.Error()), err: err}
}

// Under puts a segment before the path of an error, unless that is complete already.
func Under(segment string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Message: short.Text(err.Error()), err: err}
	}
	if !e.root {
		e.Path = short.Text(segment + e.Path)
	}
	return e
}

// At makes the path of an error complete: it began at base.
func At(base string, err error) error {
	if err == nil {
		return nil
	}
	err = Under(base, err)
	e, _ := errors.AsType[*Error](err)
	e.root = true
	return e
}

// Unreadable is the error of a template that the resource manager cannot read, at a path.
func Unreadable(path, format string, args ...any) error {
	return &Error{Path: short.Text(path), Message: short.Text(fmt.Sprintf(format, args...)), Parse: true, root: true}
}

// Message is what the resource manager says of an error.
func Message(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Message
	}
	return err.Error()
}
