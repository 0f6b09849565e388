// Package identity has the platform services for software on a machine or in an app service: tokens of managed
// identities, and instance metadata. Layer L2.
//
// A machine is known by the network interface that a request comes from. Its service is [Service.Machine]. Every program of this
// machine reaches the address that all share, so a token needs a secret there.
package identity

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/token"
)

// AppServicePath is the path of IDENTITY_ENDPOINT.
const AppServicePath = "/msi/token"

// machinePrefix is the prefix of a machine's metadata service. The resource id of the machine follows, then the path as
// at http://169.254.169.254.
const machinePrefix = "/vm"

// Service returns tokens of managed identities and metadata of machines.
type Service struct {
	// Tokens issues the tokens.
	Tokens *token.Service
	// Header is the secret of IDENTITY_ENDPOINT, and of tokens at the shared address.
	Header string
	// Host reports whether a request names this server as its host. A name that leads here by chance, such as one of a web page that
	// a browser shows, is refused.
	Host func(r *http.Request) bool
	// System is the client id of the identity for requests that name none and do not come from a machine.
	System string
	// Attest signs the content of a document that proves on which machine it was asked for. Without it there are no such documents.
	Attest func(content []byte) ([]byte, error)
	// World gives access to the machines.
	World func(func(w behaviour.World))
}

// Handler returns the handler of requests to a path of this service at the shared address, nil for other paths.
func (s *Service) Handler(path string) http.Handler {
	h := s.shared(path)
	if h == nil || strings.EqualFold(strings.TrimSuffix(path, "/"), AppServicePath) {
		return h // IDENTITY_ENDPOINT needs the secret, under any name of this server
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.Host(r) {
			fail(w, http.StatusMisdirectedRequest, "invalid_request",
				fmt.Sprintf("The host %q is not this server. Use its address.", r.Host))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Machine returns the handler of requests that a machine sends to 169.254.169.254.
func (s *Service) Machine(machine azure.ID) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := (&url.URL{Host: r.Host}).Hostname(); host != Address {
			fail(w, http.StatusMisdirectedRequest, "invalid_request", fmt.Sprintf("The host %q is not %s.", r.Host, Address))
			return
		}
		path := strings.ToLower(strings.TrimSuffix(r.URL.Path, "/"))
		if path == tokenPath {
			needsMetadata(func(w http.ResponseWriter, r *http.Request) { s.instanceToken(w, r, machine) }).ServeHTTP(w, r)
			return
		}
		if path == attestedPath {
			needsMetadata(func(w http.ResponseWriter, r *http.Request) { s.attested(w, r, machine) }).ServeHTTP(w, r)
			return
		}
		s.metadata(path, machine).ServeHTTP(w, r)
	})
}

func (s *Service) shared(path string) http.Handler {
	lower := strings.ToLower(strings.TrimSuffix(path, "/"))
	switch {
	case lower == AppServicePath:
		return http.HandlerFunc(s.appService)
	case strings.HasPrefix(lower, machinePrefix+"/"):
		at := strings.LastIndex(lower, "/metadata/")
		if at < 0 {
			return failed(http.StatusNotFound, "not_found", "The path is "+machinePrefix+
				"/subscriptions/SUBSCRIPTION/.../NAME/metadata/instance or a sibling of that.")
		}
		return s.metadata(lower[at:], azure.ID(path[len(machinePrefix):at]))
	case strings.HasPrefix(lower, "/metadata/"):
		return s.metadata(lower, "")
	}
	return nil
}

// Address is the address of the instance metadata service.
const Address = "169.254.169.254"

const tokenPath = "/metadata/identity/oauth2/token"

// sharedToken answers requests for a token at the shared address.
func (s *Service) sharedToken(machine azure.ID) http.Handler {
	return needsMetadata(func(w http.ResponseWriter, r *http.Request) {
		if !s.knows(r.Header.Get(SecretHeader)) {
			fail(w, http.StatusForbidden, "forbidden", "At this address a token needs the header "+SecretHeader+" with the value of "+
				"IDENTITY_HEADER. Software that runs on no machine uses IDENTITY_ENDPOINT and IDENTITY_HEADER.")
			return
		}
		s.instanceToken(w, r, machine)
	})
}

// SecretHeader is the header with the secret of IDENTITY_ENDPOINT.
const SecretHeader = "X-IDENTITY-HEADER"

// knows reports whether a caller knows the secret of this service.
func (s *Service) knows(secret string) bool {
	return s.Header != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(s.Header)) == 1
}

// metadata answers requests about a machine, or about no machine. It gives tokens only to requests with the secret.
func (s *Service) metadata(path string, machine azure.ID) http.Handler {
	switch path {
	case tokenPath:
		return s.sharedToken(machine)
	case attestedPath:
		return s.sharedAttested(machine)
	case "/metadata/instance", "/metadata/loadbalancer", "/metadata/instance/compute", "/metadata/instance/network":
		if machine == "" {
			return failed(http.StatusNotFound, "not_found", "The request comes from no virtual machine: use "+machinePrefix+
				" followed by the resource id of a virtual machine and "+path+".")
		}
		return needsMetadata(func(w http.ResponseWriter, r *http.Request) { s.instance(w, r, machine, path) })
	}
	if machine != "" && strings.HasPrefix(path, computePath+"/") {
		return needsMetadata(func(w http.ResponseWriter, r *http.Request) { s.instance(w, r, machine, path) })
	}
	if machine != "" || strings.HasPrefix(path, "/metadata/instance") || strings.HasPrefix(path, "/metadata/identity") {
		return failed(http.StatusNotFound, "not_found", "The requested metadata is not found.")
	}
	return nil
}

// needsMetadata refuses requests that a browser or a forwarder could have been tricked into sending.
func needsMetadata(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "Only GET is allowed.")
		case !strings.EqualFold(r.Header.Get("Metadata"), "true"):
			fail(w, http.StatusBadRequest, "invalid_request", "Required metadata header not specified")
		case r.Header.Get("X-Forwarded-For") != "":
			fail(w, http.StatusBadRequest, "invalid_request", "X-Forwarded-For header is not allowed")
		default:
			f(w, r)
		}
	})
}

func failed(status int, kind, message string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fail(w, status, kind, message) })
}

func fail(w http.ResponseWriter, status int, kind, message string) {
	send(w, status, map[string]string{"error": kind, "error_description": message})
}

func send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

// appService handles the managed identity endpoint of an app service.
func (s *Service) appService(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, message string) {
		send(w, status, map[string]any{"statusCode": status, "message": message})
	}
	header := r.Header.Get(SecretHeader)
	if header == "" {
		header = r.Header.Get("Secret") // name in the protocol's first version
	}
	query := lowerKeys(r.URL.Query())
	switch {
	case r.Method != http.MethodGet:
		refuse(http.StatusMethodNotAllowed, "Only GET is allowed.")
		return
	case !s.knows(header):
		refuse(http.StatusUnauthorized, "The X-IDENTITY-HEADER header is missing or is not the value of IDENTITY_HEADER.")
		return
	case query.Get("api-version") == "":
		refuse(http.StatusBadRequest, "The api-version parameter is missing.")
		return
	case query.Get("resource") == "":
		refuse(http.StatusBadRequest, "The resource parameter is missing.")
		return
	}
	app, err := s.wanted(query, "")
	if err != nil {
		refuse(http.StatusBadRequest, "No User Assigned or Delegated Managed Identity found for specified ClientId/ResourceId/PrincipalId.")
		return
	}
	s.respond(w, app, query.Get("resource"))
}

// instanceToken handles the managed identity endpoint of a machine.
func (s *Service) instanceToken(w http.ResponseWriter, r *http.Request, machine azure.ID) {
	query := lowerKeys(r.URL.Query())
	if query.Get("api-version") == "" {
		fail(w, http.StatusBadRequest, "invalid_request", "Required query variable 'api-version' is missing")
		return
	}
	if query.Get("resource") == "" {
		fail(w, http.StatusBadRequest, "invalid_request", "Required query variable 'resource' is missing")
		return
	}
	app, err := s.wanted(query, machine)
	switch {
	case errors.Is(err, errNoMachine):
		fail(w, http.StatusNotFound, "not_found", fmt.Sprintf("There is no virtual machine %s.", machine))
	case err != nil:
		fail(w, http.StatusBadRequest, "invalid_request", "Identity not found")
	default:
		s.respond(w, app, query.Get("resource"))
	}
}

// respond answers with a token. Numbers are strings in both protocols.
func (s *Service) respond(w http.ResponseWriter, app token.Application, resource string) {
	t, err := s.Tokens.Issue(app, "", resource, token.ManagedLifetime)
	if err != nil {
		fail(w, http.StatusInternalServerError, "server_error", "The token could not be made.")
		return
	}
	lifetime := strconv.FormatInt(int64(t.Expires.Sub(t.Issued).Seconds()), 10)
	send(w, http.StatusOK, map[string]string{
		"access_token": t.Text, "token_type": "Bearer", "resource": resource, "client_id": app.ClientID,
		"expires_on": strconv.FormatInt(t.Expires.Unix(), 10), "not_before": strconv.FormatInt(t.Issued.Unix(), 10),
		"expires_in": lifetime, "ext_expires_in": lifetime,
	})
}

var (
	errNoIdentity = errors.New("identity not found")
	errNoMachine  = errors.New("machine not found")
)

// wanted returns the identity that a request names by its client id, its object id or its resource, or the only
// identity. On a machine it must be one of the machine's own.
func (s *Service) wanted(query url.Values, machine azure.ID) (token.Application, error) {
	var app token.Application
	ok := false
	resource := query.Get("mi_res_id")
	if resource == "" {
		resource = query.Get("msi_res_id")
	}
	object := query.Get("object_id")
	if object == "" {
		object = query.Get("principal_id")
	}
	named := true
	switch {
	case query.Get("client_id") != "":
		app, ok = s.Tokens.ByClientID(query.Get("client_id"))
	case object != "":
		app, ok = s.Tokens.ByObjectID(object)
	case resource != "":
		app, ok = s.Tokens.ByResourceID(azure.ID(resource))
	default:
		named = false
	}
	if named && (!ok || !app.Managed) {
		return app, errNoIdentity
	}
	if machine != "" {
		return s.onMachine(app, named, machine)
	}
	if !named {
		if app, ok = s.Tokens.ByClientID(s.System); !ok {
			return app, errNoIdentity
		}
	}
	return app, nil
}

// onMachine checks that the machine has the identity, or returns its only one.
func (s *Service) onMachine(app token.Application, named bool, machine azure.ID) (token.Application, error) {
	has, err := s.identityOf(machine)
	if err != nil {
		return app, err
	}
	var assigned []azure.ID
	for id := range behaviour.Sub(has, "userAssignedIdentities") {
		assigned = append(assigned, azure.ID(id))
	}
	if named {
		for _, id := range assigned {
			if id.Equal(app.ResourceID) {
				return app, nil
			}
		}
		return app, errNoIdentity
	}
	if principal := behaviour.Text(has, "principalId"); principal != "" {
		return token.Application{Name: machine.Name(), ObjectID: principal, ClientID: token.GUIDFor(principal), Managed: true,
			ResourceID: machine}, nil
	}
	if len(assigned) != 1 {
		return app, errNoIdentity
	}
	app, ok := s.Tokens.ByResourceID(assigned[0])
	if !ok {
		return app, errNoIdentity
	}
	return app, nil
}

// identityOf returns the "identity" of a machine, or of its scale set.
func (s *Service) identityOf(machine azure.ID) (has behaviour.Object, err error) {
	s.World(func(w behaviour.World) {
		doc, ok := findMachine(w, machine)
		if !ok {
			err = errNoMachine
			return
		}
		if has = behaviour.Sub(doc, "identity"); has == nil && isInstance(machine) {
			set, _ := w.Get(machine.Parent())
			has = behaviour.Sub(set, "identity")
		}
	})
	return has, err
}

func lowerKeys(values url.Values) url.Values {
	lower := url.Values{}
	for key, v := range values {
		lower[strings.ToLower(key)] = v
	}
	return lower
}
