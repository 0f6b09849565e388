package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"kaz/internal/azure/secret"
)

// named adds its name to the errors of a credential.
type named struct {
	azcore.TokenCredential
	kind     Kind
	identity string
	secrets  []secret.Text
}

func (n *named) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := n.TokenCredential.GetToken(ctx, o)
	if err != nil {
		return azcore.AccessToken{}, &Error{Kind: n.kind, Identity: n.identity, text: n.hide(explain(err)), cause: err}
	}
	return token, nil
}

// hide removes the secrets from a text, which may come from a server.
func (n *named) hide(text string) string {
	const shortest = 4 // replacing shorter secrets would make the text unreadable
	for _, s := range n.secrets {
		if plain := s.Reveal(); len(plain) >= shortest {
			text = strings.NewReplacer(plain, secret.Redacted, url.QueryEscape(plain), secret.Redacted).Replace(text)
		}
	}
	return text
}

// Error is a failed request for a token.
type Error struct {
	Kind     Kind
	Identity string // the identity
	text     string
	cause    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%s) got no token: %s", e.Kind, e.Identity, e.text)
}

// Unwrap returns azidentity's error.
func (e *Error) Unwrap() error { return e.cause }

// NonRetriable tells azcore not to retry: azidentity has retried already.
func (e *Error) NonRetriable() {}

// explain returns Azure's error in one line.
func explain(err error) string {
	const most = 1000
	text := err.Error()
	if failed, ok := errors.AsType[*azidentity.AuthenticationFailedError](err); ok && failed.RawResponse != nil {
		if said := answer(failed.RawResponse); said != "" {
			text = said
		}
	}
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "----", "")), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// answer returns the status and error of a token endpoint's response.
func answer(r *http.Response) string {
	body, err := runtime.Payload(r)
	if err != nil {
		return ""
	}
	var said struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
		Message     string          `json:"message"` // from App Service
	}
	if json.Unmarshal(body, &said) != nil {
		return fmt.Sprintf("HTTP %d %s", r.StatusCode, http.StatusText(r.StatusCode))
	}
	parts := []string{fmt.Sprintf("HTTP %d", r.StatusCode)}
	for _, part := range []string{strings.Trim(string(said.Error), `"`), said.Description, said.Message} {
		if part != "" && part != "null" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}
