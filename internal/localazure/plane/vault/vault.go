// Package vault is the data plane of key vaults in the local Azure. Clients write, read, list, change and delete secrets,
// and recover or purge deleted secrets. Layer L2.
//
// Secrets are documents of Microsoft.KeyVault, so Azure Resource Manager shows and writes the same secrets. Keys,
// certificates, backups, access policies and the firewall of vaults are absent.
package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/cloud"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Do(f func(w behaviour.World) error) error
}

// Service serves all vaults.
type Service struct {
	// Authenticate checks a token of Entra ID for one of the audiences.
	Authenticate func(token string, audiences ...string) (*behaviour.Principal, error)
	// Azure has the vaults and the role assignments.
	Azure Azure
	// Authority is the address of the login, as refusals name it.
	Authority string
}

// Answers reports whether a host belongs to a vault.
func (s *Service) Answers(host string) bool {
	_, suffix := split(host)
	return suffix != ""
}

// split splits a host into a vault's name and the domain.
func split(host string) (name, suffix string) {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	for _, c := range cloud.Clouds() {
		if name, ok := strings.CutSuffix(host, "."+c.Vault); ok && name != "" {
			return name, c.Vault
		}
	}
	return "", ""
}

// call is a request in a transaction.
type call struct {
	behaviour.World
	r     *http.Request
	query url.Values
	// vault is the vault, doc its document.
	vault azure.ID
	doc   behaviour.Object
	// secret is the secret in the path, "" for none, version what the path has after it.
	secret  azure.ID
	version string
	now     time.Time
}

// operation is what a request can do.
type operation struct {
	// action is the data action that the operation needs, after the data action of secrets.
	action string
	// do returns the body of the reply, nil for 204.
	do func(c *call) (any, error)
}

// operations are the operations by method and path. The data actions are from Azure's role "Key Vault Secrets Officer".
var operations = map[string]operation{
	"GET /secrets":                        {"readMetadata/action", (*call).list},
	"PUT /secrets/{name}":                 {"setSecret/action", (*call).set},
	"GET /secrets/{name}":                 {"getSecret/action", (*call).get},
	"GET /secrets/{name}/{version}":       {"getSecret/action", (*call).get},
	"PATCH /secrets/{name}":               {"update/action", (*call).update},
	"PATCH /secrets/{name}/{version}":     {"update/action", (*call).update},
	"DELETE /secrets/{name}":              {"delete", (*call).delete},
	"GET /secrets/{name}/versions":        {"readMetadata/action", (*call).versions},
	"GET /deletedsecrets":                 {"readMetadata/action", (*call).listDeleted},
	"GET /deletedsecrets/{name}":          {"readMetadata/action", (*call).getDeleted},
	"DELETE /deletedsecrets/{name}":       {"purge/action", (*call).purge},
	"POST /deletedsecrets/{name}/recover": {"recover/action", (*call).recover},
}

// operationOf returns the operation of a request, with the name and the version in its path.
func operationOf(r *http.Request) (o operation, name, version string, known bool) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	pattern := r.Method + " /" + strings.ToLower(path[0])
	if len(path) > 1 {
		name, pattern = path[1], pattern+"/{name}"
	}
	if len(path) > 2 {
		version = path[2]
		if o, known = operations[pattern+"/"+strings.ToLower(version)]; known {
			return o, name, "", true
		}
		pattern += "/{version}"
	}
	o, known = operations[pattern]
	const longest = 3
	return o, name, version, known && len(path) <= longest
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, suffix := split(r.Host)
	audience := "https://" + suffix
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	caller, err := s.Authenticate(token, audience, audience+"/")
	if err != nil {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization=%q, resource=%q`, s.Authority, audience))
		fail(w, refuse(http.StatusUnauthorized, "Unauthorized",
			"AKV10000: Request is missing a Bearer or PoP token, or the token is not valid: %v", err))
		return
	}
	body, err := s.answer(r, caller, name)
	switch {
	case err != nil:
		fail(w, err)
	case body == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		send(w, http.StatusOK, body)
	}
}

// answer carries out a request to a vault, and returns the body of the reply.
func (s *Service) answer(r *http.Request, caller *behaviour.Principal, name string) (body any, err error) {
	o, secret, version, known := operationOf(r)
	switch {
	case !known:
		return nil, refuse(http.StatusMethodNotAllowed, "NotSupported",
			"The local Azure has the operations of secrets at /secrets and /deletedsecrets, but for backups.")
	case r.URL.Query().Get("api-version") == "":
		return nil, bad("api-version must be specified")
	}
	do := s.Azure.Do
	if r.Method == http.MethodGet {
		do = func(f func(w behaviour.World) error) (err error) {
			s.Azure.Look(func(w behaviour.World) { err = f(w) })
			return err
		}
	}
	err = do(func(w behaviour.World) error {
		c := &call{World: w, r: r, query: r.URL.Query(), version: version, now: w.Now()}
		if err := c.open(caller, o, name, secret); err != nil {
			return err
		}
		body, err = o.do(c)
		return err
	})
	return body, err
}

// open finds the vault and the secret, and returns why the caller may not use them.
func (c *call) open(caller *behaviour.Principal, o operation, vault, secret string) error {
	for id, doc := range behaviour.Everywhere(c, "Microsoft.KeyVault/vaults") {
		if strings.EqualFold(id.Name(), vault) {
			c.vault, c.doc = id, doc
		}
	}
	if c.vault == "" {
		return refuse(http.StatusNotFound, "VaultNotFound", "The vault %s does not exist.", vault)
	}
	scope := c.vault
	if secret != "" {
		c.secret = c.vault.Child("secrets", secret)
		if doc, there := c.Get(c.secret); there {
			c.secret = azure.ID(behaviour.Text(doc, "id")) // as the first PUT spelled it
		}
		scope = c.secret
	}
	action := "Microsoft.KeyVault/vaults/secrets/" + o.action
	if !c.AllowedData(caller, action, scope) {
		return refuse(http.StatusForbidden, "Forbidden", "Caller is not authorized to perform action on resource. Caller: %s; "+
			"Action: '%s'; Vault: %s", caller.ObjectID, action, vault).because("ForbiddenByRbac")
	}
	return nil
}

// refusal is an error as the client sees it.
type refusal struct {
	status               int
	code, inner, message string
}

func (e *refusal) Error() string { return fmt.Sprintf("%d %s: %s", e.status, e.code, e.message) }

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// because sets the code of the inner error.
func (e *refusal) because(inner string) *refusal { e.inner = inner; return e }

func bad(format string, args ...any) *refusal {
	return refuse(http.StatusBadRequest, "BadParameter", format, args...)
}

func fail(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		e = refuse(http.StatusInternalServerError, "InternalServerError", "%v", err)
	}
	body := map[string]any{"code": e.code, "message": e.message}
	if e.inner != "" {
		body["innererror"] = map[string]string{"code": e.inner}
	}
	send(w, e.status, map[string]any{"error": body})
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
