package file

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"

	"kaz/internal/emulator/behaviour"
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
		return refuse(http.StatusInternalServerError, "OperationTimedOut", "The operation could not be completed within the permitted time.")
	}
	return nil
}

func wrongType() *refusal {
	return refuse(http.StatusConflict, "ResourceTypeMismatch", "The specified resource type does not match the type of the existing resource.")
}

// fail answers with an error.
func (c *call) fail(err error) {
	e := refused(err)
	if e == nil {
		c.service.Log.Error("request to file shares", "method", c.r.Method, "path", c.r.URL.Path, "error", err)
		e = refuse(http.StatusInternalServerError, "InternalError", "The server encountered an internal error. Please retry the request.")
	}
	c.w.Header().Set("x-ms-error-code", e.code)
	if c.r.Method == http.MethodHead {
		c.w.WriteHeader(e.status)
		return
	}
	message := fmt.Sprintf("%s\nRequestId:%s\nTime:%s", e.message, c.id, behaviour.Timestamp(time.Now()))
	c.xml(e.status, struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}{Code: e.code, Message: message})
}

// xml answers with a document.
func (c *call) xml(status int, document any) {
	text, err := xml.Marshal(document)
	if err != nil {
		c.service.Log.Error("answer of file shares", "error", err)
		status, text = http.StatusInternalServerError, nil
	}
	c.w.Header().Set("Content-Type", "application/xml")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append([]byte(xml.Header), text...)) // the client is gone
}
