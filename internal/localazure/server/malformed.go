package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// envelopes gives the error responses of net/http itself, to malformed HTTP, the form of Azure's errors. They pass no
// handler, so the connection rewrites them. Responses over TLS stay unchanged.
type envelopes struct{ net.Listener }

func (l envelopes) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return envelopeConn{tcp}, err
	}
	return c, err
}

type envelopeConn struct{ *net.TCPConn }

// libraryError follows the status line in the error responses of net/http itself. Responses of handlers differ: their
// first header is the date.
const libraryError = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

func (c envelopeConn) Write(b []byte) (int, error) {
	if bytes.HasPrefix(b, []byte("HTTP/1.1 4")) || bytes.HasPrefix(b, []byte("HTTP/1.1 5")) {
		if line, text, ok := bytes.Cut(b, []byte(libraryError)); ok && !bytes.Contains(line, []byte("\r\n")) {
			if _, err := c.TCPConn.Write(envelope(string(line), string(text))); err != nil {
				return 0, err
			}
			return len(b), nil
		}
	}
	return c.TCPConn.Write(b)
}

// envelope returns an error response in Azure's form.
func envelope(line, text string) []byte {
	status := http.StatusBadRequest
	if fields := strings.Fields(line); len(fields) > 1 {
		if n, err := strconv.Atoi(fields[1]); err == nil {
			status = n
		}
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{
		"code":    strings.ReplaceAll(http.StatusText(status), " ", ""),
		"message": "The request is not valid HTTP: " + text + ".",
	}})
	if err != nil {
		body = nil // texts are always JSON
	}
	return fmt.Appendf(nil,
		"HTTP/1.1 %d %s\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(body), body)
}
