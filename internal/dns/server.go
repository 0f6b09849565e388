package dns

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"kaz/internal/plan/records"
)

// MediaType is the media type of the protocol. ExternalDNS compares it byte by byte.
const MediaType = "application/external.dns.webhook+json;version=1"

// LongestBody is the size in bytes of a request that is read. ExternalDNS reads answers of the same size by default.
const LongestBody = 32 << 20

// Server answers the requests of ExternalDNS.
type Server struct {
	provider *Provider
	log      *slog.Logger
	deadline time.Duration
}

// NewServer returns a server for a provider.
func NewServer(p *Provider) *Server { return &Server{p, p.config.Log, p.config.Deadline} }

// Handler returns the handler of the protocol.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.serve(mux, "/{$}", map[string]call{http.MethodGet: {"negotiate", s.negotiate}})
	s.serve(mux, "/records", map[string]call{http.MethodGet: {"records", s.records}, http.MethodPost: {"apply", s.apply}})
	s.serve(mux, "/adjustendpoints", map[string]call{http.MethodPost: {"adjust", s.adjust}})
	return mux
}

// call is a call of the protocol. Its answer is encoded, but for nil.
type call struct {
	name   string
	answer func(r *http.Request) (any, error)
}

// badRequest is an error of the client.
type badRequest struct {
	status int
	err    error
}

func (e *badRequest) Error() string { return e.err.Error() }

func (e *badRequest) Unwrap() error { return e.err }

func (s *Server) serve(mux *http.ServeMux, pattern string, calls map[string]call) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		c, ok := calls[r.Method]
		if !ok {
			for method := range calls {
				w.Header().Add("Allow", method)
			}
			http.Error(w, "the method is not allowed", http.StatusMethodNotAllowed)
			return
		}
		start := time.Now()
		status := s.answer(w, r, c)
		s.provider.config.Metrics.answered(c.name, status, time.Since(start))
	})
}

// answer answers a request and returns the status.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, c call) int {
	ctx, cancel := context.WithTimeout(r.Context(), s.deadline)
	defer cancel()
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, LongestBody)
	value, err := s.protect(r, c)
	if err != nil {
		return s.fail(w, r, c, err)
	}
	if value == nil {
		w.WriteHeader(http.StatusNoContent)
		return http.StatusNoContent
	}
	text, err := json.Marshal(value)
	if err != nil {
		return s.fail(w, r, c, err)
	}
	w.Header().Set("Content-Type", MediaType)
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(append(text, '\n')); err != nil {
		s.log.DebugContext(ctx, "the client is gone", "call", c.name, "error", err)
	}
	return http.StatusOK
}

// errPanic is the error of a call that panicked.
var errPanic = errors.New("internal error; the log has the details")

// protect calls c and turns a panic into an error, which ExternalDNS survives.
func (s *Server) protect(r *http.Request, c call) (value any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.ErrorContext(r.Context(), "panic", "call", c.name, "cause", cause, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return c.answer(r)
}

// fail answers an error: 503, or what the client did wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, c call, err error) int {
	status := http.StatusServiceUnavailable
	if bad, ok := errors.AsType[*badRequest](err); ok {
		status = bad.status
	}
	s.log.WarnContext(r.Context(), "the request is not answered as wanted", "call", c.name, "status", status, "error", err)
	http.Error(w, err.Error(), status)
	return status
}

func (s *Server) negotiate(r *http.Request) (any, error) {
	if err := accepts(r); err != nil {
		return nil, err
	}
	return s.provider.Filter(r.Context())
}

func (s *Server) records(r *http.Request) (any, error) {
	if err := accepts(r); err != nil {
		return nil, err
	}
	return s.provider.Records(r.Context())
}

func (s *Server) adjust(r *http.Request) (any, error) {
	if err := accepts(r); err != nil {
		return nil, err
	}
	var endpoints []records.Endpoint
	if err := decode(r, &endpoints); err != nil {
		return nil, err
	}
	return s.provider.Adjust(r.Context(), endpoints)
}

func (s *Server) apply(r *http.Request) (any, error) {
	var changes records.Changes
	if err := decode(r, &changes); err != nil {
		return nil, err
	}
	return nil, s.provider.Apply(r.Context(), changes)
}

// accepts checks that the client takes the media type.
func accepts(r *http.Request) error {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if header == "" {
		return nil
	}
	for part := range strings.SplitSeq(header, ",") {
		kind, parameters, err := mime.ParseMediaType(part)
		if err == nil && (kind == "*/*" || kind == "application/*" || isOurs(kind, parameters)) {
			return nil
		}
	}
	return &badRequest{http.StatusNotAcceptable, errors.New("the media type must be " + MediaType)}
}

func isOurs(kind string, parameters map[string]string) bool {
	return kind == "application/external.dns.webhook+json" && (parameters["version"] == "" || parameters["version"] == "1")
}

// decode reads the body of a request.
func decode(r *http.Request, into any) error {
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !isOurs(kind, parameters) {
		return &badRequest{http.StatusUnsupportedMediaType, errors.New("the media type of the body must be " + MediaType)}
	}
	decoder := json.NewDecoder(r.Body)
	err = decoder.Decode(into)
	if err == nil {
		_, err = decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.Join(errors.New("there is more after the end of the document"), err)
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &badRequest{http.StatusRequestEntityTooLarge, large}
	}
	return &badRequest{http.StatusBadRequest, err}
}
