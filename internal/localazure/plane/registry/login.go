package registry

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kaz/internal/localazure/behaviour"
)

const (
	// audience is the audience of Entra ID's tokens for registries.
	audience = "https://containerregistry.azure.net"
	// tokenUser is the user name with which a client sends a refresh token as password.
	tokenUser = "00000000-0000-0000-0000-000000000000"

	largestForm = 1 << 20
)

// form returns the form of a POST or the query of a GET.
func (v call) form() (url.Values, error) {
	switch v.r.Method {
	case http.MethodGet:
		return v.r.URL.Query(), nil
	case http.MethodPost:
		v.r.Body = http.MaxBytesReader(v.w, v.r.Body, largestForm)
		if err := v.r.ParseForm(); err != nil {
			return nil, refuse(http.StatusBadRequest, "INVALID_REQUEST", "The body is not a form.")
		}
		return v.r.PostForm, nil
	}
	return nil, refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "The method %s is not supported here.", v.r.Method)
}

// exchange answers a token of Entra ID with a refresh token of the registry.
func (v call) exchange() error {
	if v.r.Method != http.MethodPost {
		return refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "The method %s is not supported here.", v.r.Method)
	}
	form, err := v.form()
	if err != nil {
		return err
	}
	switch kind := form.Get("grant_type"); kind {
	case "access_token", "access_token_refresh_token":
	default:
		return refuse(http.StatusBadRequest, "INVALID_REQUEST",
			"The grant_type %q is not supported: access_token and access_token_refresh_token are.", kind)
	}
	if err := v.checkService(form); err != nil {
		return err
	}
	p, err := v.entra(form.Get("access_token"))
	if err != nil {
		return err
	}
	if tenant := form.Get("tenant"); tenant != "" && !strings.EqualFold(tenant, p.Tenant) {
		v.service.Log.Info("token not exchanged", "registry", v.registry.server, "application", p.ApplicationID, "reason",
			"it is of tenant "+p.Tenant+", the request says "+tenant)
		return unauthorized()
	}
	h := caller{name: p.ObjectID, principal: p}
	if len(v.service.allowedActions(h, v.registry)) == 0 {
		v.service.Log.Info("token not exchanged", "registry", v.registry.server, "application", p.ApplicationID, "reason",
			"it has no role such as AcrPull there")
		return unauthorized()
	}
	t := v.claims(refreshKind, h.name, refreshLife)
	t.Client, t.Object, t.Tenant = p.ApplicationID, p.ObjectID, p.Tenant
	return v.respond(map[string]claims{"refresh_token": t})
}

// checkService checks that the request is for this registry.
func (v call) checkService(form url.Values) error {
	if name := form.Get("service"); bare(name) != v.registry.server {
		return refuse(http.StatusBadRequest, "INVALID_REQUEST", "The service %q is not this registry, %s.", name, v.registry.server)
	}
	return nil
}

// entra returns the caller with a token of Entra ID.
func (v call) entra(text string) (*behaviour.Principal, error) {
	p, err := v.service.Tokens.AuthenticateFor(text, audience, audience+"/")
	if err != nil && v.registry.armTokens {
		p, err = v.service.Tokens.Authenticate(text)
	}
	if err != nil {
		v.service.Log.Info("token not exchanged", "registry", v.registry.server, "reason", err.Error())
		return nil, unauthorized()
	}
	return p, nil
}

func (v call) claims(kind, subject string, life time.Duration) claims {
	now := time.Now()
	begin := jwt.NewNumericDate(now)
	return claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: issuer, Subject: subject, ID: rand.Text(),
			IssuedAt: begin, NotBefore: begin, ExpiresAt: jwt.NewNumericDate(now.Add(life)),
		},
		Audience: v.registry.server, Kind: kind,
	}
}

// respond answers with tokens.
func (v call) respond(all map[string]claims) error {
	answer := map[string]string{}
	for name, t := range all {
		text, err := v.service.sign(t)
		if err != nil {
			return err
		}
		answer[name] = text
	}
	writeJSON(v.w, http.StatusOK, answer)
	return nil
}

// token answers with an access token for the allowed part of the requested access.
func (v call) token() error {
	form, err := v.form()
	if err != nil {
		return err
	}
	if err := v.checkService(form); err != nil {
		return err
	}
	h, err := v.client(form)
	if err != nil {
		return err
	}
	may := v.service.allowedActions(h, v.registry)
	if len(may) == 0 {
		v.service.Log.Info("registry login refused", "registry", v.registry.server, "user", h.name, "reason",
			"it has no role such as AcrPull there")
		return unauthorized()
	}
	t := v.claims(accessKind, h.name, accessLife)
	t.Access = grant(parseScopes(form), may)
	return v.respond(map[string]claims{"access_token": t})
}

// client returns the caller that asks for an access token: by a refresh token, a password in the form, or Basic
// authentication.
func (v call) client(form url.Values) (caller, error) {
	if user, password, ok := v.r.BasicAuth(); ok {
		return v.login(user, password)
	}
	if v.r.Method == http.MethodGet {
		return caller{}, nil
	}
	switch kind := form.Get("grant_type"); kind {
	case "refresh_token":
		return v.login(tokenUser, form.Get("refresh_token"))
	case "password":
		return v.login(form.Get("username"), form.Get("password"))
	default:
		return caller{},
			refuse(http.StatusBadRequest, "INVALID_REQUEST", "The grant_type %q is not supported: refresh_token and password are.", kind)
	}
}

// login checks a user name and a password: of a refresh token, the admin user or a service principal.
func (v call) login(user, password string) (caller, error) {
	h, err := v.identify(user, password)
	if err != nil {
		v.service.Log.Info("registry login refused", "registry", v.registry.server, "user", user, "reason", err.Error())
		return caller{}, unauthorized()
	}
	return h, nil
}

func (v call) identify(user, password string) (caller, error) {
	if user == tokenUser {
		t, err := v.service.open(password, refreshKind, v.registry.server, time.Now())
		if err != nil {
			return caller{}, err
		}
		app, known := v.service.Tokens.ByObjectID(t.Object)
		return caller{name: t.Subject, principal: &behaviour.Principal{
			ObjectID: t.Object, ApplicationID: t.Client, Tenant: t.Tenant, Owner: known && app.Owner,
		}}, nil
	}
	if v.registry.user != "" && strings.EqualFold(user, v.registry.user) {
		if !oneOf(password, v.registry.passwords) {
			return caller{}, errors.New("wrong password of the admin user")
		}
		return caller{name: user, admin: true}, nil
	}
	app, ok := v.service.Tokens.ByClientID(user)
	if !ok {
		return caller{}, errors.New("neither the admin user, if it is enabled, nor an application")
	}
	if !oneOf(password, app.Secrets) {
		return caller{}, errors.New("wrong secret of the application")
	}
	return caller{name: app.ObjectID, principal: &behaviour.Principal{
		ObjectID: app.ObjectID, ApplicationID: app.ClientID, Tenant: v.service.Tokens.Tenant, Owner: app.Owner,
	}}, nil
}

func oneOf(text string, secrets []string) bool {
	found := false
	for _, s := range secrets {
		if s != "" && subtle.ConstantTimeCompare([]byte(s), []byte(text)) == 1 {
			found = true
		}
	}
	return found
}
