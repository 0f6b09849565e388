package file

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"

	"kaz/internal/localazure/behaviour"
)

// refusal is an error as the client sees it.
type refusal struct {
	status        int
	code, message string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.message) }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status, code, fmt.Sprintf(format, args...)}
}

func invalidHeader(name, value, want string) *refusal {
	return refuse(http.StatusBadRequest, "InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format: %s is %q, want %s.", name, value, want)
}

func missingHeader(name string) *refusal {
	return refuse(http.StatusBadRequest, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified: %s.",
		name)
}

func notFound(code, what string) *refusal {
	return refuse(http.StatusNotFound, code, "The specified %s does not exist.", what)
}

// refused converts an error to what the client sees.
func refused(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if e, ok := errors.AsType[*behaviour.Error](err); ok {
		return &refusal{e.Status, e.Code, e.Message}
	}
	switch { // a directory that is not empty counts as one that exists, too
	case errors.Is(err, fs.ErrNotExist):
		return notFound("ResourceNotFound", "resource")
	case errors.Is(err, syscall.ENOTEMPTY):
		return refuse(http.StatusConflict, "DirectoryNotEmpty", "The specified directory is not empty.")
	case errors.Is(err, fs.ErrExist):
		return refuse(http.StatusConflict, "ResourceAlreadyExists", "The specified resource already exists.")
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		return wrongType()
	case errors.Is(err, syscall.ENAMETOOLONG):
		return refuse(http.StatusBadRequest, "OutOfRangeInput", "One of the request inputs is out of range: a name is too long.")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusInternalServerError, "OperationTimedOut",
			"The operation could not be completed within the permitted time.")
	}
	return nil
}

func wrongType() *refusal {
	return refuse(http.StatusConflict, "ResourceTypeMismatch",
		"The specified resource type does not match the type of the existing resource.")
}
