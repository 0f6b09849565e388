package clustertest

import (
	"context"
	"net/http"
	"net/http/httptest"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/vault"
	"kaz/internal/engine/dataplane"
)

// Vaults are the key vaults of the local Azure, for everybody who asks.
func (a *Azure) Vaults() dataplane.Client {
	return dataplane.Client{
		Token: func(context.Context, string) (string, error) { return "t", nil },
		HTTP: served{&vault.Service{World: a.Look, Authenticate: func(string, ...string) (*behaviour.Principal, error) {
			return nil, nil
		}}},
	}
}

// served sends requests to a handler.
type served struct{ http.Handler }

// Do implements the client of [dataplane.Client].
func (s served) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}
