package arm

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
)

// interaction is a request to the real Azure and its answer.
type interaction struct {
	Request struct {
		Method, URL, Body string
		Headers           map[string][]string
	}
	Response struct {
		Code    int
		Body    string
		Headers map[string][]string
	}
}

func (i interaction) path() string {
	u, err := url.Parse(i.Request.URL)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}

// replay answers with what Azure answered, in the order of the recording.
type replay struct {
	mu       sync.Mutex
	recorded []interaction
	next     int
	missing  []string
}

func (p *replay) Do(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.next; i < len(p.recorded); i++ {
		r := p.recorded[i]
		if r.Request.Method != req.Method || !strings.EqualFold(r.path(), req.URL.Path) {
			continue
		}
		p.next = i + 1
		header := http.Header{}
		for k, v := range r.Response.Headers {
			header[http.CanonicalHeaderKey(k)] = v
		}
		return &http.Response{StatusCode: r.Response.Code, Header: header, Body: io.NopCloser(strings.NewReader(r.Response.Body)),
			Request: req}, nil
	}
	p.missing = append(p.missing, req.Method+" "+req.URL.Path)
	return &http.Response{StatusCode: http.StatusTeapot, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

func cassettes(t *testing.T) map[string][]interaction {
	files, err := filepath.Glob("../../../shared/recordings/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the recordings of real Azure are not beside this checkout")
	}
	found := map[string][]interaction{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Interactions []interaction }
		if err := yaml.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found[filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)] = c.Interactions
	}
	return found
}

// The client understands what the real Azure answered. It makes every write of the recordings, gets the recorded
// answers, and ends as the recording does.
func TestRecordingsOfRealAzure(t *testing.T) {
	counts := map[string]int{}
	for name, recorded := range cassettes(t) {
		for i, r := range recorded {
			u, err := url.Parse(r.Request.URL)
			if err != nil || !strings.HasPrefix(u.Host, "management.") {
				counts["other hosts"]++
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				counts[again(t, fmt.Sprintf("%s #%d", name, i), u, recorded[i:])]++
			})
		}
	}
	t.Log(counts)
	if counts["write"] < 100 || counts["get"] < 100 || counts["list"] < 20 {
		t.Errorf("too little was replayed: %v", counts)
	}
}

// again repeats the first request of a recording through a client.
func again(t *testing.T, name string, u *url.URL, recorded []interaction) string {
	r := recorded[0]
	p := &replay{recorded: recorded}
	d := open(t, p, func(c *Config) {
		c.Endpoint, c.Retries = "https://"+u.Host, -1
		c.APIVersions = map[string]string{"Microsoft.ServiceGateway": "2025-01-01"}
	})
	id, ctx := azure.ID(strings.TrimSuffix(u.Path, "/")), t.Context()
	var doc azure.Document
	var err error
	kind := "write"
	switch r.Request.Method {
	case http.MethodGet:
		if kind, doc, err = ask(t, d, u, id); kind == "skipped" {
			return kind
		}
	case http.MethodPut, http.MethodPatch:
		w := azure.Write{ID: id, Body: azure.Document(r.Request.Body), IfMatch: strings.Join(r.Request.Headers["If-Match"], "")}
		if r.Request.Method == http.MethodPatch {
			doc, err = d.Patch(ctx, w)
		} else {
			doc, err = d.Put(ctx, w)
		}
	case http.MethodDelete:
		err = d.Delete(ctx, id)
	case http.MethodPost:
		at := id.Name()
		if _, bad := typeOf(id[:len(id)-len(at)-1]); bad != nil {
			return "skipped"
		}
		doc, err = d.Post(ctx, id[:len(id)-len(at)-1], at, azure.Document(r.Request.Body))
	default:
		return "skipped"
	}
	if len(p.missing) > 0 {
		return "cut short by the recorder"
	}
	judge(t, name, r, doc, err)
	return kind
}

func ask(t *testing.T, d *Client, u *url.URL, id azure.ID) (string, azure.Document, error) {
	q := u.Query()
	if q.Has("$expand") || q.Has("$skiptoken") || strings.Contains(strings.ToLower(u.Path), "operation") {
		return "skipped", nil, nil
	}
	if _, err := azure.ParseID(string(id)); err == nil {
		doc, err := d.Get(t.Context(), id)
		return "get", doc, err
	}
	i := strings.LastIndexByte(string(id), '/')
	scope := id[:i]
	fullType := scope.Type() + string(id[i:])
	if before, namespace, ok := cutProvider(string(scope)); ok {
		scope, fullType = azure.ID(before), namespace+string(id[i:])
	}
	if _, err := azure.ParseID(string(scope)); err != nil && scope != "" {
		return "skipped", nil, nil
	}
	docs, err := d.List(t.Context(), azure.Query{Scope: scope, Type: fullType})
	if len(docs) > 0 {
		return "list", docs[0], err
	}
	return "list", nil, err
}

// judge compares what the client made of an answer with the answer.
func judge(t *testing.T, name string, r interaction, doc azure.Document, err error) {
	switch code := r.Response.Code; {
	case code >= 400:
		if r.Request.Method == http.MethodDelete && code == http.StatusNotFound && err == nil {
			return
		}
		if err == nil {
			t.Errorf("%s: %s %s: no error for HTTP %d", name, r.Request.Method, r.Request.URL, code)
			return
		}
		if azure.KindOf(err) == azure.Internal || !strings.Contains(err.Error(), "(") && strings.Contains(r.Response.Body, `"code"`) {
			t.Errorf("%s: %s %s: HTTP %d %s\nis of kind %v: %v", name, r.Request.Method, r.Request.URL, code, r.Response.Body,
				azure.KindOf(err), err)
		}
	case err != nil:
		t.Errorf("%s: %s %s: HTTP %d\n%v", name, r.Request.Method, r.Request.URL, code, err)
	case (r.Request.Method == http.MethodPut || r.Request.Method == http.MethodPatch) && !isObject(doc):
		t.Errorf("%s: %s %s: no document: %q", name, r.Request.Method, r.Request.URL, doc)
	}
}
