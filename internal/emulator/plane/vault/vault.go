// Package vault is the data plane of key vaults in the local Azure: clients read the secrets that were written through ARM.
// Layer L2.
//
// It serves reading a secret only, by its name, with its current version. Writing, listing, keys and certificates are absent.
package vault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	resource "kaz/internal/emulator/behaviour/vault"
	"kaz/internal/emulator/plane/cloud"
)

// Service serves all vaults.
type Service struct {
	// Authenticate checks a token of Entra ID for one of the audiences.
	Authenticate func(token string, audiences ...string) (*behaviour.Principal, error)
	// World gives access to the vaults and the role assignments.
	World func(func(w behaviour.World))
	// Authority is the address of the login, as refusals name it.
	Authority string
}

// Answers reports whether a host is that of a vault.
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

const readSecret = "Microsoft.KeyVault/vaults/secrets/getSecret/action"

var errRefused = errors.New("refused")

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, suffix := split(r.Host)
	audience := "https://" + suffix
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	caller, err := s.Authenticate(token, audience, audience+"/")
	if err != nil {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer authorization=%q, resource=%q`, s.Authority, audience))
		fail(w, http.StatusUnauthorized, "Unauthorized", "AKV10000: Request is missing a Bearer or PoP token, or the token is not valid: "+
			err.Error())
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet || len(path) < 2 || len(path) > 3 || path[0] != "secrets" {
		fail(w, http.StatusMethodNotAllowed, "NotSupported", "The local Azure reads secrets only: GET /secrets/NAME.")
		return
	}
	if r.URL.Query().Get("api-version") == "" {
		fail(w, http.StatusBadRequest, "BadParameter", "api-version must be specified")
		return
	}
	s.secret(w, caller, name, path[1:])
}

// secret answers with a secret. path is its name and perhaps its version.
func (s *Service) secret(w http.ResponseWriter, caller *behaviour.Principal, vault string, path []string) {
	var found resource.Value
	err := fmt.Errorf("no vault %s", vault)
	s.World(func(world behaviour.World) {
		for id := range behaviour.Everywhere(world, "Microsoft.KeyVault/vaults") {
			if strings.EqualFold(id.Name(), vault) {
				found, err = read(world, caller, id.Child("secrets", path[0]))
			}
		}
	})
	switch {
	case errors.Is(err, errRefused):
		fail(w, http.StatusForbidden, "Forbidden", fmt.Sprintf("Caller is not authorized to perform action on resource. Caller: %s; "+
			"Action: '%s'; Vault: %s", caller.ObjectID, readSecret, vault))
	case err != nil || len(path) > 1 && path[1] != found.Version:
		fail(w, http.StatusNotFound, "SecretNotFound",
			fmt.Sprintf("A secret with (name/id) %s was not found in this key vault.", strings.Join(path, "/")))
	case !found.Enabled:
		fail(w, http.StatusForbidden, "Forbidden", "Operation get is not allowed on a disabled secret.")
	default:
		send(w, http.StatusOK, map[string]any{"value": found.Value, "id": found.ID, "contentType": found.ContentType,
			"attributes": found.Attributes})
	}
}

func read(world behaviour.World, caller *behaviour.Principal, id azure.ID) (resource.Value, error) {
	if !world.AllowedData(caller, readSecret, id) {
		return resource.Value{}, errRefused
	}
	doc, ok := world.Get(id)
	if !ok {
		return resource.Value{}, fmt.Errorf("no secret %s", id)
	}
	return resource.ValueOf(doc), nil
}

func fail(w http.ResponseWriter, status int, code, message string) {
	send(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}
