package blob

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kaz/internal/localazure/behaviour"
)

// refuse returns an error as the client sees it.
func refuse(status int, code, format string, args ...any) *behaviour.Error {
	return behaviour.Refusal(status, code, format, args...)
}

func invalidHeader(name, value, want string) error {
	return refuse(http.StatusBadRequest, "InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format: %s is %q, want %s.", name, value, want)
}

func invalidParameter(name, value, want string) error {
	return refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
		"Value for one of the query parameters specified in the request URI is invalid: %s is %q, want %s.", name, value, want)
}

func missingHeader(name string) error {
	return refuse(http.StatusBadRequest, "MissingRequiredHeader",
		"An HTTP header that's mandatory for this request is not specified: %s.", name)
}

func noContainer() error {
	return refuse(http.StatusNotFound, "ContainerNotFound", "The specified container does not exist.")
}

func noBlob() error {
	return refuse(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
}

type fault struct {
	XMLName xml.Name `xml:"Error"`
	Code    string   `xml:"Code"`
	Message string   `xml:"Message"`
}

func fail(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*behaviour.Error](err)
	if !ok {
		e = refuse(http.StatusInternalServerError, "InternalError", "%v", err)
	}
	w.Header().Set("x-ms-error-code", e.Code)
	if e.Status == http.StatusNotModified || r.Method == http.MethodHead {
		w.WriteHeader(e.Status)
		return
	}
	reply(w, e.Status, fault{Code: e.Code, Message: fmt.Sprintf("%s\nRequestId:%s\nTime:%s", e.Message, w.Header().Get(requestID),
		behaviour.Timestamp(time.Now()))})
}

// reply answers with a document.
func reply(w http.ResponseWriter, status int, body any) {
	text, err := xml.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, fmt.Appendf(nil, "<Error><Code>InternalError</Code></Error>")
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...)) // the client is gone
}
