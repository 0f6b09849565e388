package pullcredential

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"kaz/internal/azure/secret"
)

// The protocol: https://kubernetes.io/docs/reference/config-api/kubelet-credentialprovider.v1/
const (
	APIVersion   = "credentialprovider.kubelet.k8s.io/v1"
	requestKind  = "CredentialProviderRequest"
	responseKind = "CredentialProviderResponse"
)

// Request is the request of the kubelet.
type Request struct {
	Image string
	// ServiceAccountToken is the token of the pod's service account. ServiceAccountAnnotations are
	// the annotations that the kubelet is configured to pass on.
	ServiceAccountToken       secret.Text
	ServiceAccountAnnotations map[string]string
}

// largestRequest is the size limit of a request: more than an image, a token and 256 KiB of
// annotations need.
const largestRequest = 1 << 20

// Read reads the kubelet's request. Its errors do not quote the input, which may contain a token.
func Read(r io.Reader) (Request, error) {
	text, err := io.ReadAll(io.LimitReader(r, largestRequest+1))
	if err != nil {
		return Request{}, fmt.Errorf("read the request: %w", err)
	}
	if len(text) > largestRequest {
		return Request{}, fmt.Errorf("the request is larger than %d bytes", largestRequest)
	}
	var request struct {
		APIVersion  string            `json:"apiVersion"`
		Kind        string            `json:"kind"`
		Image       string            `json:"image"`
		Token       string            `json:"serviceAccountToken"`
		Annotations map[string]string `json:"serviceAccountAnnotations"`
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return Request{}, fmt.Errorf("the request on standard input is not a %s in JSON: %s", requestKind, place(err, len(text)))
	}
	switch {
	case request.APIVersion != APIVersion:
		return Request{}, fmt.Errorf("group version %q is not supported, only %s is", shorten(request.APIVersion), APIVersion)
	case request.Kind != requestKind:
		return Request{}, fmt.Errorf("kind %q is not supported, only %s is", shorten(request.Kind), requestKind)
	case request.Image == "":
		return Request{}, errors.New("image in plugin request was empty")
	}
	token := secret.New(request.Token)
	return Request{Image: request.Image, ServiceAccountToken: token, ServiceAccountAnnotations: request.Annotations}, nil
}

// place returns the position of a JSON error, without quoting the text.
func place(err error, size int) string {
	if size == 0 {
		return "there is nothing"
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("field %q has the wrong type, want %s", wrong.Field, wrong.Type)
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("syntax error at byte %d of %d", syntax.Offset, size)
	}
	return "it cannot be read"
}

// shorten cuts a text from another program, so that messages stay readable.
func shorten(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// Login is a user name and a password.
type Login struct {
	username string
	password secret.Text
}

// NewLogin returns a login.
func NewLogin(username string, password secret.Text) Login { return Login{username, password} }

// Response is the response to the kubelet.
type Response struct {
	// Cache is how long the kubelet may cache the logins for the registry; 0 disables the cache.
	Cache time.Duration
	// Logins by registry; * matches a part of the host name. nil means no login.
	Logins map[string]Login
}

// Write writes the response, the only output with passwords.
func (r Response) Write(w io.Writer) error {
	type auth struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	var logins map[string]auth
	for registry, l := range r.Logins {
		if logins == nil {
			logins = map[string]auth{}
		}
		logins[registry] = auth{l.username, l.password.Reveal()}
	}
	return json.NewEncoder(w).Encode(struct {
		Kind         string          `json:"kind"`
		APIVersion   string          `json:"apiVersion"`
		CacheKeyType string          `json:"cacheKeyType"`
		Cache        string          `json:"cacheDuration"`
		Auth         map[string]auth `json:"auth,omitempty"`
	}{responseKind, APIVersion, "Registry", r.Cache.String(), logins})
}
