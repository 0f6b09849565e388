package imds

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
)

// refused returns the error of a response with another status than 200.
func refused(r *http.Response, path, endpoint string, body []byte) error {
	e := &azure.Error{Kind: kindOf(r.StatusCode), Op: "GET " + endpoint + path + ":", Status: r.StatusCode,
		Code: strconv.Itoa(r.StatusCode)}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		e.Message = said.Error
		if said.Description != "" {
			e.Message += ": " + said.Description
		}
	} else {
		e.Message = excerpt(body)
	}
	return e
}

// kindOf returns the error kind of a status. The service answers 410 while it is being updated.
func kindOf(status int) azure.Kind {
	switch {
	case status == http.StatusNotFound:
		return azure.NotFound
	case status == http.StatusTooManyRequests:
		return azure.Throttled
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return azure.Denied
	case status == http.StatusGone, status == http.StatusRequestTimeout, status >= http.StatusInternalServerError:
		return azure.Unavailable
	}
	return azure.Invalid
}

// excerpt returns the start of an unexpected response in one line.
func excerpt(body []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(string(body[:min(len(body), 2*most)])), " ")
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}
