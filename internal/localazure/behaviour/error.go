package behaviour

import (
	"errors"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/short"
)

// Error is a refusal as the client sees it.
type Error struct {
	Status  int      `json:"status,omitempty"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Target  string   `json:"target,omitempty"`
	Details []*Error `json:"details,omitempty"`
	// Info is further information, each with its type.
	Info []ErrorInfo `json:"info,omitempty"`
	// Gateway errors are made by ARM itself and not by a provider.
	Gateway bool `json:"gateway,omitempty"`
	// Bare errors are sent without the "error" around them.
	Bare bool `json:"bare,omitempty"`
	// Keep leaves what an operation did before it failed, as a deployment does.
	Keep bool `json:"keep,omitempty"`
	// Later is no failure: the operation goes on, and its end is tried again soon.
	Later bool `json:"-"`
	// RetryAfter in seconds is sent as a header when not 0.
	RetryAfter int `json:"retryAfter,omitempty"`
}

// ErrorInfo is further information about an error.
type ErrorInfo struct {
	Type string `json:"type"`
	Info Object `json:"info"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message) }

// At sets the error's target.
func (e *Error) At(target string) *Error { e.Target = target; return e }

// With adds a detail.
func (e *Error) With(code, format string, args ...any) *Error {
	e.Details = append(e.Details, &Error{Code: code, Message: short.Text(fmt.Sprintf(format, args...))})
	return e
}

// Later returns the error with which the end of an operation says that the operation goes on.
func Later() *Error {
	return &Error{Status: 202, Code: "Later", Message: "The operation goes on.", Keep: true, Later: true}
}

// GoesOn reports whether an error is the error of [Later].
func GoesOn(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Later
}

// Refusal is a provider's error. Its message is bounded, whatever it quotes of the request.
func Refusal(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Message: short.Text(fmt.Sprintf(format, args...))}
}

// Invalid is 400 with a code, the most common refusal.
func Invalid(code, format string, args ...any) *Error { return Refusal(400, code, format, args...) }

// Conflict is 409 with a code.
func Conflict(code, format string, args ...any) *Error { return Refusal(409, code, format, args...) }

// NotFound is ARM's own answer for a resource that is not there.
func NotFound(id azure.ID) *Error {
	if id.Group() != "" && id.Is("Microsoft.Resources/resourceGroups") {
		return GroupNotFound(id.Group())
	}
	top := id.TopLevel()
	e := Refusal(404, "ResourceNotFound",
		"The Resource '%s/%s' under resource group '%s' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
		top.Type(), top.Name(), top.Group())
	e.Gateway = true
	return e
}

// ChildNotFound is ARM's own answer for a child that ARM knows itself, because it has a location. It does not ask for the parent.
func ChildNotFound(id azure.ID) *Error {
	of := string(id)[strings.LastIndex(string(id), "/providers/")+len("/providers/"):]
	return Gateway(404, "ResourceNotFound", "The Resource '%s' under resource group '%s' was not found. For more details please go to "+
		"https://aka.ms/ARMResourceNotFoundFix", of, id.Group())
}

// GroupNotFound is ARM's answer for anything in a group that is not there.
func GroupNotFound(group string) *Error {
	e := Refusal(404, "ResourceGroupNotFound", "Resource group '%s' could not be found.", group)
	e.Gateway = true
	return e
}

// ParentNotFound is ARM's answer for a child of a parent that does not exist.
func ParentNotFound(verb string, id azure.ID) *Error {
	e := Refusal(404, "ParentResourceNotFound",
		"Failed to perform '%s' on resource(s) of type '%s', because the parent resource '%s' could not be found.",
		verb, id.Type()[len(id.Namespace())+1:], id.Parent())
	e.Gateway = true
	return e
}

// InvalidReference is the network provider's answer to a reference to nothing.
func InvalidReference(from, to azure.ID) *Error {
	return Invalid("InvalidResourceReference",
		"Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and that both "+
			"resources are in the same region.", to, from)
}

// Gateway is a refusal by the resource manager itself, which asks no provider.
func Gateway(status int, code, format string, args ...any) *Error {
	e := Refusal(status, code, format, args...)
	e.Gateway = true
	return e
}

// UnknownNamespace is the refusal of a provider that there is not.
func UnknownNamespace(namespace string) error {
	return Gateway(404, "InvalidResourceNamespace", "The resource namespace '%s' is invalid.", namespace)
}

// UnknownVersion is the refusal of an api-version that a type does not have. The location is that of the resource, "" if there is none.
func UnknownVersion(fullType, version, location string, supported []string) error {
	namespace, name, _ := strings.Cut(fullType, "/")
	versions := strings.Join(supported, ", ")
	if location == "" {
		return Gateway(404, "InvalidResourceType", "The resource type '%s' could not be found in the namespace '%s' for api version '%s'. "+
			"The supported api-versions are '%s'.", name, namespace, version, versions)
	}
	return Gateway(400, "NoRegisteredProviderFound", "No registered resource provider found for location '%s' and API version '%s' "+
		"for type '%s'. The supported api-versions are '%s'.", location, version, name, versions)
}

// UnknownType is the refusal of a type that a provider does not have.
func UnknownType(namespace, name, version string) error {
	return Gateway(404, "InvalidResourceType", "The resource type '%s' could not be found in the namespace '%s' for api version '%s'.",
		name, namespace, version)
}
