// Package cassette records the exchanges with Azure Resource Manager and keeps them in a file without secrets. The file has the form of
// go-vcr, version 2, which other tools read, too. Layer L3.
package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"
)

// Exchange is a request and its answer, with both bodies.
type Exchange struct {
	// Probe is the label of the recorder at the time of the request, "" for none.
	Probe        string
	Method, URL  string
	Header       http.Header
	Body         []byte
	Status       int
	AnswerHeader http.Header
	Answer       []byte
	Took         time.Duration
}

// Transport carries requests, as azcore's transporters do.
type Transport interface {
	Do(*http.Request) (*http.Response, error)
}

// Recorder is a transport that keeps each exchange. It is safe for concurrent use.
type Recorder struct {
	next Transport

	mu        sync.Mutex
	probe     string
	exchanges []Exchange
}

// NewRecorder returns a recorder in front of a transport.
func NewRecorder(next Transport) *Recorder { return &Recorder{next: next} }

// largest bounds the bodies that are kept, in bytes.
const largest = 64 << 20

// Do implements [Transport]. Requests without an answer are not kept.
func (r *Recorder) Do(req *http.Request) (*http.Response, error) {
	var sent []byte
	if req.Body != nil {
		var err error
		if sent, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	start, header := time.Now(), req.Header.Clone()
	answer, err := r.next.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, largest))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exchanges = append(r.exchanges, Exchange{
		Probe: r.probe, Method: req.Method, URL: req.URL.String(), Header: header, Body: sent,
		Status: answer.StatusCode, AnswerHeader: answer.Header.Clone(), Answer: body, Took: time.Since(start),
	})
	return answer, nil
}

// Label names the probe of the exchanges that follow.
func (r *Recorder) Label(probe string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.probe = probe
}

// Len returns how many exchanges there are.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.exchanges)
}

// From returns the exchanges from a number on.
func (r *Recorder) From(n int) []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Exchange(nil), r.exchanges[n:]...)
}

// tape is the form of the file.
type tape struct {
	Version      int           `yaml:"version"`
	Interactions []interaction `yaml:"interactions"`
}

type interaction struct {
	ID       int      `yaml:"id"`
	Probe    string   `yaml:"probe,omitempty"`
	Request  request  `yaml:"request"`
	Response response `yaml:"response"`
}

type request struct {
	Body    string              `yaml:"body"`
	Headers map[string][]string `yaml:"headers"`
	URL     string              `yaml:"url"`
	Method  string              `yaml:"method"`
}

type response struct {
	Body     string              `yaml:"body"`
	Headers  map[string][]string `yaml:"headers"`
	Status   string              `yaml:"status"`
	Code     int                 `yaml:"code"`
	Duration string              `yaml:"duration"`
}

// Write writes exchanges without their secrets: see [Clean].
func Write(w io.Writer, exchanges []Exchange) error {
	t := tape{Version: 2, Interactions: []interaction{}}
	for i, e := range Clean(exchanges) {
		t.Interactions = append(t.Interactions, interaction{
			ID: i, Probe: e.Probe,
			Request: request{Body: string(e.Body), Headers: e.Header, URL: e.URL, Method: e.Method},
			Response: response{
				Body: string(e.Answer), Headers: e.AnswerHeader, Code: e.Status,
				Status:   fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)),
				Duration: e.Took.Round(time.Millisecond).String(),
			},
		})
	}
	text := yaml.NewEncoder(w)
	text.SetIndent(2)
	if err := text.Encode(t); err != nil {
		return err
	}
	return text.Close()
}

// Read reads a cassette.
func Read(r io.Reader) ([]Exchange, error) {
	var t tape
	if err := yaml.NewDecoder(r).Decode(&t); err != nil {
		return nil, fmt.Errorf("not a cassette: want YAML with a list interactions: %w", err)
	}
	if len(t.Interactions) == 0 {
		return nil, errors.New("not a cassette: it has no interactions")
	}
	var all []Exchange
	for i, x := range t.Interactions {
		if x.Request.Method == "" || x.Request.URL == "" || x.Response.Code == 0 {
			return nil, fmt.Errorf("interaction %d of the cassette: want request.method, request.url and response.code", i)
		}
		took, _ := time.ParseDuration(x.Response.Duration) // no duration is zero
		all = append(all, Exchange{
			Probe: x.Probe, Method: x.Request.Method, URL: x.Request.URL, Header: canonical(x.Request.Headers),
			Body: []byte(x.Request.Body), Status: x.Response.Code, AnswerHeader: canonical(x.Response.Headers),
			Answer: []byte(x.Response.Body), Took: took,
		})
	}
	return all, nil
}

func canonical(h map[string][]string) http.Header {
	header := http.Header{}
	for name, values := range h {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return header
}
