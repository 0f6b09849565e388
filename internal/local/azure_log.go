package local

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// planeLine is a request to a plane in the request log. The keys are those of the
// lines that the emulator writes for Azure Resource Manager.
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

// logged writes a line for each request that h answers.
func logged(h http.Handler, to io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &seenWriter{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(seen, r)
		const perMillisecond = 1000
		text, err := json.Marshal(planeLine{
			Time: began.UTC().Format(time.RFC3339Nano), Method: r.Method, Path: r.URL.Path, Version: r.URL.Query().Get("api-version"),
			Status: seen.status, Code: seen.code(), Duration: float64(time.Since(began).Microseconds()) / perMillisecond,
			UserAgent: r.UserAgent(), In: max(r.ContentLength, 0), Out: seen.size,
		})
		if err == nil {
			// One write is one line, whoever else writes to the file. A full disk must
			// not stop the answer.
			_, _ = to.Write(append(text, '\n'))
		}
	})
}

// seenWriter notes what is answered, errors with their text.
type seenWriter struct {
	http.ResponseWriter
	status, size int
	refusal      []byte
}

func (w *seenWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(b []byte) (int, error) {
	w.size += len(b)
	if w.status >= http.StatusBadRequest {
		w.refusal = append(w.refusal, b...)
	}
	return w.ResponseWriter.Write(b)
}

// code is the error that was answered, as the plane calls it.
func (w *seenWriter) code() string {
	var body struct {
		Kind  any   `json:"error"`
		Codes []int `json:"error_codes"`
	}
	if len(w.refusal) == 0 || json.Unmarshal(w.refusal, &body) != nil {
		return ""
	}
	if len(body.Codes) > 0 {
		return fmt.Sprintf("AADSTS%d", body.Codes[0])
	}
	kind, _ := body.Kind.(string)
	return kind
}
