package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// planeLine is a line of the request log for a request to a plane. Its keys equal those of the lines that the emulator
// writes for Azure Resource Manager.
type planeLine struct {
	Time      string  `json:"time"`
	Method    string  `json:"method"`
	Path      string  `json:"path"`
	Version   string  `json:"apiVersion,omitempty"`
	Status    int     `json:"status"`
	Code      string  `json:"errorCode,omitempty"`
	Duration  float64 `json:"durationMs"`
	UserAgent string  `json:"userAgent,omitempty"`
	In        int64   `json:"bytesIn"`
	Out       int     `json:"bytesOut"`
}

// logged returns a handler that writes a line for each request to h.
func logged(h http.Handler, to io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &recorder{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(seen, r)
		const perMillisecond = 1000
		text, err := json.Marshal(planeLine{
			Time: began.UTC().Format(time.RFC3339Nano), Method: r.Method, Path: r.URL.Path, Version: r.URL.Query().Get("api-version"),
			Status: seen.status, Code: seen.code(), Duration: float64(time.Since(began).Microseconds()) / perMillisecond,
			UserAgent: r.UserAgent(), In: max(r.ContentLength, 0), Out: seen.size,
		})
		if err == nil {
			// One write is one line, so that lines of concurrent writers do not mix. A full disk does not stop the response.
			_, _ = to.Write(append(text, '\n'))
		}
	})
}

// recorder records the status, the size and the error body of a response.
type recorder struct {
	http.ResponseWriter
	status, size int
	errorBody    []byte
}

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	w.size += len(b)
	if w.status >= http.StatusBadRequest {
		w.errorBody = append(w.errorBody, b...)
	}
	return w.ResponseWriter.Write(b)
}

// code returns the error code of the response, "" for none.
func (w *recorder) code() string {
	var body struct {
		Kind  any   `json:"error"`
		Codes []int `json:"error_codes"`
	}
	if len(w.errorBody) == 0 || json.Unmarshal(w.errorBody, &body) != nil {
		return ""
	}
	if len(body.Codes) > 0 {
		return fmt.Sprintf("AADSTS%d", body.Codes[0])
	}
	kind, _ := body.Kind.(string)
	return kind
}
