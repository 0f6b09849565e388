package blob_test

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/blob"
	"kaz/internal/localazure/providers"
)

// asking sends a request as a client with a token, and returns its reply.
type asking func(method, path, token, body string, headers ...string) *http.Response

// start returns a client of an account "acc" with a container "c".
func start(t testing.TB) asking {
	t.Helper()
	return startIn(t, "")
}

// startIn is start with a directory for blobs, "" for none.
func startIn(t testing.TB, dir string) asking {
	t.Helper()
	return serve(t, withContainer(t), dir)
}

// withContainer is a local Azure with the account and the container.
func withContainer(t testing.TB) *core.Emulator {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	group, account := groupID(), groupID().Resource("Microsoft.Storage/storageAccounts", "acc")
	if err := e.Do(func(w behaviour.World) error {
		w.Put(group, behaviour.Object{"location": "westeurope"})
		w.Put(account, behaviour.Object{"location": "westeurope", "properties": behaviour.Object{
			"primaryEndpoints": behaviour.Object{"blob": "https://acc.blob.core.windows.net/"}}})
		w.Put(account.Child("blobServices", "default"), behaviour.Object{})
		w.Put(account.Child("blobServices", "default").Child("containers", "c"), behaviour.Object{})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return e
}

func groupID() azure.ID { return azure.GroupID(core.DefaultSubscription, "rg") }

// serve returns a client of an account "acc" of a local Azure.
func serve(t testing.TB, e *core.Emulator, dir string) asking {
	t.Helper()
	s := service(t, e, dir)
	return func(method, path, token, body string, headers ...string) *http.Response {
		r := httptest.NewRequest(method, "https://acc.blob.core.windows.net"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		got := w.Result()
		for name, values := range maps.Clone(got.Header) { // as a client reads them
			delete(got.Header, name)
			got.Header[http.CanonicalHeaderKey(name)] = values
		}
		return got
	}
}

// service is the data plane of a local Azure.
func service(t testing.TB, e *core.Emulator, dir string) *blob.Service {
	t.Helper()
	s := &blob.Service{Azure: e, Authenticate: func(token string, _ ...string) (*behaviour.Principal, error) {
		if token != "good" {
			return nil, errors.New("no token")
		}
		return &behaviour.Principal{ObjectID: "me"}, nil
	}}
	if dir != "" {
		if err := s.Load(dir, nil); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Answers("acc.blob.core.windows.net:443") || s.Answers("acc.file.core.windows.net") {
		t.Error("the service answers for the wrong hosts")
	}
	return s
}

// Of several clients that create a blob on the condition that it does not exist, one succeeds. The others read its content.
func TestConditions(t *testing.T) {
	ask := start(t)
	for _, name := range []string{"etcd/3", "etcd/1", "etcd/2", "other"} {
		ask("PUT", "/c/"+name, "good", "x").Body.Close()
	}
	for query, want := range map[string]string{
		"": "etcd/1 etcd/2 etcd/3 other", "&prefix=etcd/": "etcd/1 etcd/2 etcd/3", "&prefix=none": "",
		"&prefix=etcd/&maxresults=2": "etcd/1 etcd/2 next ZXRjZC8z", "&prefix=etcd/&maxresults=2&marker=ZXRjZC8z": "etcd/3",
	} {
		got := ask("GET", "/c?restype=container&comp=list"+query, "good", "")
		var page struct {
			Names []string `xml:"Blobs>Blob>Name"`
			Next  string   `xml:"NextMarker"`
		}
		err := xml.NewDecoder(got.Body).Decode(&page)
		got.Body.Close()
		if page.Next != "" {
			page.Names = append(page.Names, "next", page.Next)
		}
		if names := strings.Join(page.Names, " "); err != nil || names != want {
			t.Errorf("list%s: %v, %s, want %s", query, err, names, want)
		}
	}
	etag := ""
	for _, c := range []struct {
		name    string
		answer  func() *http.Response
		status  int
		content string
	}{
		{"without a token", func() *http.Response { return ask("GET", "/c/b", "bad", "") }, 401, ""},
		{"no container", func() *http.Response { return ask("GET", "/d/b", "good", "") }, 404, ""},
		{"no blob", func() *http.Response { return ask("GET", "/c/b", "good", "") }, 404, ""},
		{"the first", func() *http.Response { return ask("PUT", "/c/b", "good", "one", "If-None-Match", "*") }, 201, ""},
		{"the second", func() *http.Response { return ask("PUT", "/c/b", "good", "two", "If-None-Match", "*") }, 409, ""},
		{"the content", func() *http.Response { return ask("GET", "/c/b", "good", "") }, 200, "one"},
		{"an old version", func() *http.Response { return ask("PUT", "/c/b", "good", "x", "If-Match", `"0x0"`) }, 412, ""},
		{"the version", func() *http.Response { return ask("PUT", "/c/b", "good", "x", "If-Match", etag) }, 201, ""},
		{"a list", func() *http.Response { return ask("GET", "/c?restype=container&comp=list&prefix=b", "good", "") }, 200, ""},
		{"its end", func() *http.Response { return ask("DELETE", "/c/b", "good", "") }, 202, ""},
		{"after its end", func() *http.Response { return ask("GET", "/c/b", "good", "") }, 404, ""},
	} {
		got := c.answer()
		text, err := io.ReadAll(got.Body)
		if err != nil || c.content == "" {
			text = nil // an error has a document
		}
		got.Body.Close()
		if got.StatusCode != c.status || string(text) != c.content {
			t.Errorf("%s: %d %q, want %d %q", c.name, got.StatusCode, text, c.status, c.content)
		}
		if got.Header.Get("ETag") != "" {
			etag = got.Header.Get("ETag")
		}
	}
}
