package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// bodyTimeout is how long a client may send nothing of a body that it has begun.
const bodyTimeout = time.Minute

// withBodyTimeout ends the body of a request when the client sends nothing of it for a time. The time begins anew with all data, so
// that a slow transfer of any length is possible.
func withBodyTimeout(next http.Handler, timeout time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &patientBody{ReadCloser: r.Body, connection: http.NewResponseController(w), timeout: timeout}
			body.await() // also if the handler reads nothing: the server then drains the body itself
			r.Body = body
		}
		next.ServeHTTP(w, r)
	})
}

// patientBody is a body with a deadline that moves while data comes.
type patientBody struct {
	io.ReadCloser
	connection *http.ResponseController
	timeout    time.Duration
}

func (b *patientBody) await() {
	// A connection without deadlines, as in tests, has none of the clients that this is against.
	_ = b.connection.SetReadDeadline(time.Now().Add(b.timeout))
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	b.await()
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// The connection may now wait for the reply as long as it takes.
		_ = b.connection.SetReadDeadline(time.Time{})
	}
	return n, err
}
