package template

import (
	"errors"
	"fmt"

	"kaz/internal/template/fault"
)

// Error is what is wrong with a template, and where. It wraps errors of [Azure].
type Error = fault.Error

// tooEarly is a function that asks for a resource before any resource exists.
type tooEarly string

func (e tooEarly) Error() string {
	return fmt.Sprintf("the template function '%s' is not expected at this location", string(e))
}

// NeedsResources reports whether an expression could not be computed because it asks for a resource.
func NeedsResources(err error) bool {
	_, ok := errors.AsType[tooEarly](err)
	return ok
}
