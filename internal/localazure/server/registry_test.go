package server

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kaz/internal/azure"
)

// A registry keeps images over a restart, under both of its names. The request log has its requests.
func TestRegistryKeepsImages(t *testing.T) {
	dir := t.TempDir()
	o := Options{ProxyAddress: "127.0.0.1:0", State: filepath.Join(dir, "azure.json"),
		RequestLog: filepath.Join(dir, "requests.log"), AccessControl: "on", RegistrySuffix: "azurecr.corp"}
	a, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	arm, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(a.Info().Subscription, "rg")
	for _, w := range []azure.Write{
		{ID: group, Body: azure.Document(`{"location":"westeurope"}`)},
		{ID: group.Resource("Microsoft.ContainerRegistry/registries", "images"),
			Body: azure.Document(`{"location":"westeurope","sku":{"name":"Basic"}}`)},
	} {
		if _, err := arm.Put(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	const size, layers = 100, 1
	pushed, err := random.Image(size, layers)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pushed.Digest()
	if err != nil {
		t.Fatal(err)
	}
	options := func(a *Server) []remote.Option {
		return []remote.Option{
			remote.WithTransport(clientOf(t, a, true).Transport), remote.WithContext(t.Context()),
			remote.WithAuth(&authn.Basic{Username: a.Info().ClientID, Password: a.Info().ClientSecret}),
		}
	}
	if err := remote.Write(name.MustParseReference("images.azurecr.io/app:1"), pushed, options(a)...); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a = startServer(t, o)
	for _, image := range []name.Reference{name.MustParseReference("images.azurecr.io/app:1"),
		name.MustParseReference("images.azurecr.corp/app:1")} {
		found, err := remote.Head(image, options(a)...)
		if err != nil || found.Digest != want {
			t.Errorf("%s: %v %v, want %s", image, found, err, want)
		}
	}
	if _, err := remote.Head(name.MustParseReference("images.azurecr.io/app:1"),
		remote.WithTransport(clientOf(t, a, true).Transport)); err == nil || !strings.Contains(err.Error(), "UNAUTHORIZED") {
		t.Errorf("without a login: %v", err)
	}
	text, err := os.ReadFile(o.RequestLog)
	if err != nil {
		t.Fatal(err)
	}
	if log := string(text); !strings.Contains(log, `"path":"/v2/app/manifests/1"`) || !strings.Contains(log, `"path":"/oauth2/token"`) {
		t.Errorf("request log: %s", log)
	}
	// Endpoint discovery returns the domain to clients of the address.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Info().MetadataEndpoint+"?api-version=2019-05-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := clientOf(t, a, false).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), `"acrLoginServer":"azurecr.corp"`) {
		t.Errorf("endpoint discovery: %s %v", body, err)
	}
}

func TestRegistrySuffix(t *testing.T) {
	for suffix, ok := range map[string]bool{"": true, "azurecr.local.corp": true, "a.b": true, "azurecr": false, ".azurecr.corp": false,
		"Azurecr.corp": false, "azurecr.corp:443": false, "-a.b": false} {
		o := Options{RegistrySuffix: suffix}
		if err := o.checkRegistrySuffix(); (err == nil) != ok {
			t.Errorf("%q: %v", suffix, err)
		}
	}
}
