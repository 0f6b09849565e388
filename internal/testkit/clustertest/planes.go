package clustertest

import (
	"context"
	"net/http"
	"net/http/httptest"

	"kaz/internal/cluster/dataplane"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/blob"
	"kaz/internal/localazure/plane/vault"
)

// Vaults are the key vaults of the local Azure, for all callers.
func (a *Azure) Vaults() dataplane.Client {
	return client(&vault.Service{Azure: a, Authenticate: anybody})
}

// Blobs are the blobs of the local Azure, for all callers. All clients have the same blobs.
func (a *Azure) Blobs() dataplane.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.blobs == nil {
		a.blobs = &blob.Service{Azure: a, Authenticate: anybody}
	}
	return client(a.blobs)
}

func anybody(string, ...string) (*behaviour.Principal, error) {
	return &behaviour.Principal{ObjectID: "me"}, nil
}

func client(h http.Handler) dataplane.Client {
	return dataplane.Client{HTTP: served{h}, Token: func(context.Context, string) (string, error) { return "t", nil }}
}

// served sends requests to a handler.
type served struct{ http.Handler }

// Do implements the transport of [dataplane.Client].
func (s served) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r.Host = r.URL.Host
	s.ServeHTTP(w, r)
	return w.Result(), nil
}
