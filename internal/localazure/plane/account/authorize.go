package account

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/sas"
	"kaz/internal/localazure/plane/sharedkey"
)

// audience is the audience of tokens for all accounts.
const audience = "https://storage.azure.com"

// Tokens checks tokens of Entra ID.
type Tokens struct {
	// Authenticate checks a token for one of the audiences.
	Authenticate func(token string, audiences ...string) (*behaviour.Principal, error)
	// Authority is the address of the login, as refusals name it.
	Authority string
}

// Caller returns the principal that has sent the token of a request.
func (t Tokens) Caller(w http.ResponseWriter, r *http.Request) (*behaviour.Principal, error) {
	if r.Header.Get("Authorization") == "" {
		return nil, refuse(http.StatusUnauthorized, "NoAuthenticationInformation",
			"Server failed to authenticate the request. Please refer to the information in the www-authenticate header.")
	}
	own := "https://" + strings.ToLower(r.Host)
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	caller, err := t.Authenticate(token, audience, audience+"/", own, own+"/")
	if err != nil {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer authorization_uri=%s resource_id=%s", t.Authority, audience))
		return nil, refuse(http.StatusUnauthorized, "InvalidAuthenticationInfo", "Server failed to authenticate the request: %v", err)
	}
	return caller, nil
}

// Target is what a signature can be for.
type Target struct {
	// Account is the name of the account, and Keys are its keys.
	Account string
	Keys    [2]string
	// Service is the letter of a service, Kind that of what the request is about: s for the service, c for a container of it, such as a
	// queue or a table, and o for what is in one.
	Service, Kind string
}

// CheckKey returns why a request is not signed with a key of the account. Such a signature allows everything.
func (t Target) CheckKey(r *http.Request, now time.Time) error {
	if wrong := sharedkey.Check(r, t.Account, t.Keys, now); wrong != "" {
		return Unsigned(wrong)
	}
	return nil
}

// CheckSAS returns why the signature for an account in the parameters of a URL is not one for the target.
func (t Target) CheckSAS(v url.Values) error {
	switch {
	case !sas.SignedBy(t.Keys, storage.AccountSASText(t.Account, v), v.Get("sig")):
		return Unsigned("Signature did not match.")
	case !strings.Contains(v.Get("ss"), t.Service):
		return Mismatch("AuthorizationServiceMismatch", "service")
	case !strings.Contains(v.Get("srt"), t.Kind):
		return Mismatch("AuthorizationResourceTypeMismatch", "resource type")
	}
	return nil
}

// CheckUse returns why a signature must not be used now, by this request. It does not check the signature.
func CheckUse(r *http.Request, v url.Values, now time.Time) error {
	if code, message := sas.Check(r, v, now); code != "" {
		return refuse(http.StatusForbidden, code, "%s", message)
	}
	return nil
}
