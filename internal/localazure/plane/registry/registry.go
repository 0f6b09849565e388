// Package registry is the data plane of container registries in the local Azure. Clients push images to a registry resource
// and pull them. They log in with a token of Entra ID, as the admin user or as a service principal. Layer L2.
//
// The login follows ACR's documentation of its token exchange, because there are no recordings of it. go-containerregistry
// stores and serves the images.
package registry

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	resource "kaz/internal/localazure/behaviour/registry"
	"kaz/internal/localazure/plane/cloud"
	"kaz/internal/localazure/plane/token"
)

// Config is the configuration of a [Service]. Tokens and World are required.
type Config struct {
	// Tokens checks tokens and passwords of Entra ID.
	Tokens *token.Service
	// World gives access to the registries and the role assignments.
	World func(func(w behaviour.World))
	// Suffix is a domain of registries in addition to the domains of Azure's clouds, "" for none.
	Suffix string
	// Dir is the directory of the images; "" keeps them in memory.
	Dir string
	// Log receives logins. Nil is slog.Default.
	Log *slog.Logger
}

// Service serves all registries. It is safe for concurrent use.
type Service struct {
	Config
	key []byte // key of the registries' own tokens

	mu     sync.Mutex
	stores map[azure.ID]*store
}

// New returns a service. Its tokens stay valid after a restart as long as the tokens of Entra ID do.
func New(c Config) (*Service, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	key, err := hkdf.Key(sha256.New, x509.MarshalPKCS1PrivateKey(c.Tokens.Key), nil, "kaz registry tokens", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("key of the registries' tokens: %w", err)
	}
	return &Service{Config: c, key: key, stores: map[azure.ID]*store{}}, nil
}

// Answers reports whether a host, with or without a port, belongs to a registry.
func (s *Service) Answers(host string) bool {
	name, _ := s.split(host)
	return name != ""
}

// split splits a host into a registry's name and the domain.
func (s *Service) split(host string) (name, domain string) {
	host = bare(host)
	for _, domain := range s.domains() {
		if name, ok := strings.CutSuffix(host, "."+domain); ok {
			return name, domain
		}
	}
	return "", ""
}

func (s *Service) domains() []string {
	var all []string
	for _, c := range cloud.Clouds() {
		all = append(all, c.Registry)
	}
	if s.Suffix != "" {
		all = append(all, strings.ToLower(s.Suffix))
	}
	return all
}

// bare returns a host in lower case and without its port.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// account is the part of a registry's document that this package needs.
type account struct {
	id        azure.ID
	server    string // host of the request
	created   string
	user      string // the admin's name
	passwords []string
	anonymous bool // anonymous pull is enabled
	armTokens bool // tokens for Azure Resource Manager are accepted too
}

// find returns the registry of a host.
func (s *Service) find(host string) (account, bool) {
	name, domain := s.split(host)
	var found account
	s.World(func(w behaviour.World) {
		for server, doc := range resource.Registries(w) {
			own, _, _ := strings.Cut(server, ".")
			if server != name+"."+domain && (domain != strings.ToLower(s.Suffix) || own != name) || !isServing(doc) {
				continue
			}
			found = account{
				id: azure.ID(behaviour.Text(doc, "id")), server: name + "." + domain,
				created:   behaviour.Text(doc, "properties.creationDate"),
				anonymous: behaviour.Bool(doc, "properties.anonymousPullEnabled"),
				armTokens: behaviour.Text(doc, "properties.policies.azureADAuthenticationAsArmPolicy.status") != "disabled",
			}
			if user, passwords, enabled := resource.Admin(doc); enabled {
				found.user, found.passwords = user, passwords[:]
			}
		}
	})
	return found, found.id != ""
}

// isServing reports whether a registry is usable: neither under creation nor under deletion.
func isServing(registry behaviour.Object) bool {
	state := behaviour.Text(registry, "properties.provisioningState")
	return state != "Creating" && state != "Deleting"
}

// ServeHTTP implements http.Handler for hosts that [Service.Answers].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	a, ok := s.find(r.Host)
	if !ok {
		// Azure does not resolve the name of a registry that does not exist.
		refuse(http.StatusNotFound, "NAME_UNKNOWN", "There is no registry %s.", bare(r.Host)).write(w)
		return
	}
	v := call{service: s, registry: a, w: w, r: r}
	var err error
	switch path := r.URL.Path; {
	case path == "/oauth2/exchange":
		err = v.exchange()
	case path == "/oauth2/token":
		err = v.token()
	case path == "/v2" || strings.HasPrefix(path, "/v2/"):
		err = v.content()
	default:
		err = refuse(http.StatusNotFound, "NOT_FOUND", "There is nothing at %s.", path)
	}
	if err != nil {
		v.fail(err)
	}
}

// call is one request to a registry.
type call struct {
	service  *Service
	registry account
	w        http.ResponseWriter
	r        *http.Request
}
