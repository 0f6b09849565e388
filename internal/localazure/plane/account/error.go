package account

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/sas"
)

// refuse returns an error as the client sees it.
func refuse(status int, code, format string, args ...any) *behaviour.Error {
	return behaviour.Refusal(status, code, format, args...)
}

// InvalidHeader refuses the value of a header.
func InvalidHeader(name, value, want string) error {
	return refuse(http.StatusBadRequest, "InvalidHeaderValue",
		"The value for one of the HTTP headers is not in the correct format: %s is %q, want %s.", name, value, want)
}

// InvalidParameter refuses the value of a parameter of the URL.
func InvalidParameter(name, value, want string) error {
	return refuse(http.StatusBadRequest, "InvalidQueryParameterValue",
		"Value for one of the query parameters specified in the request URI is invalid: %s is %q, want %s.", name, value, want)
}

// MissingHeader refuses a request without a header.
func MissingHeader(name string) error {
	return refuse(http.StatusBadRequest, "MissingRequiredHeader",
		"An HTTP header that's mandatory for this request is not specified: %s.", name)
}

// InvalidDocument refuses a body that is not the XML that it should be.
func InvalidDocument(err error) error {
	return refuse(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid: %v", err)
}

// TooLarge refuses a body of too many bytes.
func TooLarge(err error) error {
	return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
}

// Permission is the code of a refusal for missing rights.
const Permission = "AuthorizationPermissionMismatch"

// Mismatch refuses a signature or a token that is valid, but for other requests.
func Mismatch(code, what string) error {
	return refuse(http.StatusForbidden, code, "%s", sas.Mismatch(what))
}

// Unsigned refuses a request that has a wrong signature.
func Unsigned(detail string) error {
	return refuse(http.StatusForbidden, sas.Failed, "%s", sas.Failure(detail))
}

// RequestID is the header with the id of a request.
const RequestID = "x-ms-request-id"

type fault struct {
	XMLName xml.Name `xml:"Error"`
	Code    string   `xml:"Code"`
	Message string   `xml:"Message"`
}

// Fail answers with an error, as XML.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*behaviour.Error](err)
	if !ok {
		e = refuse(http.StatusInternalServerError, "InternalError", "%v", err)
	}
	w.Header().Set("x-ms-error-code", e.Code)
	if e.Status == http.StatusNotModified || r.Method == http.MethodHead {
		w.WriteHeader(e.Status)
		return
	}
	Reply(w, e.Status, fault{Code: e.Code, Message: fmt.Sprintf("%s\nRequestId:%s\nTime:%s", e.Message, w.Header().Get(RequestID),
		behaviour.Timestamp(time.Now()))})
}

// Reply answers with a document.
func Reply(w http.ResponseWriter, status int, body any) {
	text, err := xml.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, fmt.Appendf(nil, "<Error><Code>InternalError</Code></Error>")
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...)) // the client is gone
}
