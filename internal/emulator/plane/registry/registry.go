// Package registry is the data plane of container registries in the local Azure:
// each registry that exists as a resource is one that images are pushed to and
// pulled from, after a login with a token of Entra ID, the admin user or a service
// principal. Layer L2.
//
// The login was modelled on ACR's documentation of its token exchange, as there are no
// recordings of it. How images are stored and served is go-containerregistry's.
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
	"kaz/internal/emulator/behaviour"
	resource "kaz/internal/emulator/behaviour/registry"
	"kaz/internal/emulator/plane/cloud"
	"kaz/internal/emulator/plane/token"
)

// Config is what a [Service] needs to know. Tokens and World are required.
type Config struct {
	// Tokens checks who logs in.
	Tokens *token.Service
	// World lets look at the registries and at who has which role.
	World func(func(w behaviour.World))
	// Suffix is a domain under which registries are reached besides those of Azure's
	// clouds, "" for none.
	Suffix string
	// Dir keeps what is pushed; "" keeps it in memory.
	Dir string
	// Log gets logins; nil is slog.Default.
	Log *slog.Logger
}

// Service is all registries. It is safe for concurrent use.
type Service struct {
	Config
	key []byte // signs the registries' own tokens

	mu      sync.Mutex
	shelves map[azure.ID]*shelf
}

// New makes a service. Its tokens are good as long as those of Entra ID are, a new
// start included.
func New(c Config) (*Service, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	key, err := hkdf.Key(sha256.New, x509.MarshalPKCS1PrivateKey(c.Tokens.Key), nil, "kaz registry tokens", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("key of the registries' tokens: %w", err)
	}
	return &Service{Config: c, key: key, shelves: map[azure.ID]*shelf{}}, nil
}

// Answers reports whether a host, with or without a port, is that of a registry.
func (s *Service) Answers(host string) bool {
	name, _ := s.split(host)
	return name != ""
}

// split takes a host apart into a registry's name and the domain.
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

// bare is a host in lower case and without its port.
func bare(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// account is what a registry's document says that counts here.
type account struct {
	id        azure.ID
	server    string // the host that was asked
	created   string
	user      string // the admin's name
	passwords []string
	anonymous bool // everybody may pull
	armTokens bool // tokens for Azure Resource Manager are good too
}

// find is the registry at a host.
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

// isServing reports whether a registry is there for its users: neither being made nor
// being taken away.
func isServing(registry behaviour.Object) bool {
	state := behaviour.Text(registry, "properties.provisioningState")
	return state != "Creating" && state != "Deleting"
}

// ServeHTTP implements http.Handler for hosts that [Service.Answers].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	a, ok := s.find(r.Host)
	if !ok {
		// The name of a registry that does not exist is not resolved in Azure.
		refuse(http.StatusNotFound, "NAME_UNKNOWN", "There is no registry %s.", bare(r.Host)).write(w)
		return
	}
	v := visit{service: s, registry: a, w: w, r: r}
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

// visit is one request to a registry.
type visit struct {
	service  *Service
	registry account
	w        http.ResponseWriter
	r        *http.Request
}
