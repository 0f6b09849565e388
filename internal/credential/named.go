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
)

// named is a credential whose errors say which one it is.
type named struct {
	azcore.TokenCredential
	kind    Kind
	who     string
	secrets []Secret
}

func (n *named) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := n.TokenCredential.GetToken(ctx, o)
	if err != nil {
		return azcore.AccessToken{}, &Error{Kind: n.kind, Who: n.who, text: n.hide(explain(err)), cause: err}
	}
	return token, nil
}

// hide takes our secrets out of a text, should whoever answered have repeated one.
func (n *named) hide(text string) string {
	const shortest = 4 // a shorter one would only make the text unreadable
	for _, s := range n.secrets {
		if len(s) >= shortest {
			text = strings.NewReplacer(string(s), hidden, url.QueryEscape(string(s)), hidden).Replace(text)
		}
	}
	return text
}

// Error is a token that was not given.
type Error struct {
	Kind  Kind
	Who   string // the identity that asked
	text  string
	cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s) got no token: %s", e.Kind, e.Who, e.text) }

// Unwrap is azidentity's error.
func (e *Error) Unwrap() error { return e.cause }

// NonRetriable tells azcore that asking again at once is futile: azidentity has
// tried again already.
func (e *Error) NonRetriable() {}

// explain is what Azure said, in one line.
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

// answer is the status and the error that a token endpoint answered with.
func answer(r *http.Response) string {
	body, err := runtime.Payload(r)
	if err != nil {
		return ""
	}
	var said struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
		Message     string          `json:"message"` // App Service's
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
