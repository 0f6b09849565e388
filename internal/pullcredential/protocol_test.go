package pullcredential

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure/secret"
)

func TestRead(t *testing.T) {
	const head = `{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderRequest",`
	want := Request{Image: "foo.azurecr.io/a:1", ServiceAccountToken: secret.New("s3cret"), ServiceAccountAnnotations: map[string]string{"a": "b"}}
	got, err := Read(strings.NewReader(head +
		`"image":"foo.azurecr.io/a:1","serviceAccountToken":"s3cret","serviceAccountAnnotations":{"a":"b"},"new":1}`))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for text, want := range map[string]string{
		``:                           "there is nothing",
		`{`:                          "syntax error at byte 1 of 1",
		`s3cret`:                     "syntax error at byte 1 of 6",
		`[]`:                         "wrong type",
		head + `"image":["s3cret"]}`: `field "image" has the wrong type, want string`,
		head + `"image":"x","serviceAccountToken":12345}`: `field "serviceAccountToken" has the wrong type`,
		head + `"image":""}`:                              "image in plugin request was empty",
		head + `"image":"x"} s3cret`:                      "syntax error",
		`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1","kind":"CredentialProviderRequest","image":"x"}`: `group version "credentialprovider.kubelet.k8s.io/v1alpha1" is not supported`,
		`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1beta1","kind":"CredentialProviderRequest","image":"x"}`:  "is not supported",
		`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderResponse","image":"x"}`:      `kind "CredentialProviderResponse" is not supported`,
		`{}`: "is not supported",
		`"` + strings.Repeat("x", largestRequest): "larger than",
	} {
		_, err := Read(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "12345")) {
			t.Errorf("%.100s: the request is in the error %v", text, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(`{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderRequest","image":"foo.azurecr.io/a","serviceAccountToken":"t"}`)
	f.Add(`{"apiVersion":1}`)
	f.Add(`{"image":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read(strings.NewReader(text))
		if err == nil && r.Image == "" {
			t.Errorf("%q: an image is missing", text)
		}
	})
}

func TestWrite(t *testing.T) {
	for want, r := range map[string]Response{
		`{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","cacheDuration":"0s"}`: {},
		`{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","cacheDuration":"1h0m0s","auth":{"*.azurecr.*":{"username":"","password":""},"a":{"username":"u","password":"p"}}}`: {
			Cache: time.Hour, Logins: map[string]Login{"*.azurecr.*": {}, "a": NewLogin("u", secret.New("p"))},
		},
	} {
		var got strings.Builder
		if err := r.Write(&got); err != nil || strings.TrimSpace(got.String()) != want {
			t.Errorf("%v\n got %s\nwant %s", err, &got, want)
		}
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	l := NewLogin("user", secret.New("s3cret"))
	var log strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "login", l, "response", Response{Logins: map[string]Login{"a": l}}, "provider", Provider{Principal: &l})
	}
	text, err := json.Marshal(Response{Logins: map[string]Login{"a": l}})
	if err != nil {
		t.Fatal(err)
	}
	all := []string{log.String(), string(text), fmt.Sprintf("%+v %#v", Response{Logins: map[string]Login{"a": l}}, Provider{Principal: &l})}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		all = append(all, fmt.Sprintf(verb, l))
	}
	for _, shown := range all {
		if strings.Contains(shown, "s3cret") || strings.Contains(shown, "733363726574") {
			t.Errorf("printed: %s", shown)
		}
	}
}
