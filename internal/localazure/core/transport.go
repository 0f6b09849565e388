package core

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// Transport carries requests to the emulator on the caller's goroutine, without
// sockets: what tests under testing/synctest need.
func (e *Emulator) Transport() http.RoundTripper { return transport{e} }

type transport struct{ e *Emulator }

// errCut is what a client sees of a connection that was cut.
var errCut = errors.New("the local Azure cut the connection: unexpected EOF")

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(hr *http.Request) (answer *http.Response, err error) {
	in := hr.Clone(hr.Context())
	in.URL = new(*hr.URL)
	if in.Host == "" {
		in.Host = hr.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	in.RequestURI = (&url.URL{Path: in.URL.Path, RawQuery: in.URL.RawQuery}).RequestURI()
	in.RemoteAddr = "in-process"
	out := &recorder{header: http.Header{}}
	defer func() {
		if p := recover(); p != nil {
			if cut, ok := p.(error); !ok || !errors.Is(cut, http.ErrAbortHandler) {
				panic(p)
			}
			answer, err = nil, errCut
		}
	}()
	t.e.ServeHTTP(out, in)
	if err := hr.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(out.status) + " " + http.StatusText(out.status), StatusCode: out.status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: out.header, Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: hr,
	}, nil
}

// recorder keeps a reply.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *recorder) WriteHeader(status int) { r.status = status }
