package server

import (
	"cmp"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	"kaz/internal/localazure/plane/registry"
)

// registrySuffix is the default domain of registries for clients that use the address of this local Azure. Its names
// resolve to this machine only.
const registrySuffix = "azurecr.localhost"

var domainForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

func (o *Options) registrySuffix() string {
	return cmp.Or(o.RegistrySuffix, registrySuffix)
}

func (o *Options) checkRegistrySuffix() error {
	if !domainForm.MatchString(o.registrySuffix()) {
		return fmt.Errorf("--registry-suffix %s: want a domain in lower case such as %s", o.RegistrySuffix, registrySuffix)
	}
	return nil
}

// openRegistries opens the registries. They store images beside the state.
func (a *Server) openRegistries(o Options) error {
	dir := ""
	if o.State != "" {
		dir = strings.TrimSuffix(o.State, filepath.Ext(o.State)) + "-registries"
	}
	var err error
	a.registries, err = registry.New(registry.Config{Tokens: a.tokens, World: a.Look, Suffix: o.registrySuffix(), Dir: dir, Log: a.log})
	return err
}

// hosted answers requests to hosts of its own.
type hosted interface {
	http.Handler
	Answers(host string) bool
}

// withHosts answers requests to hosts of data planes and passes the others on.
func (a *Server) withHosts(others http.Handler, planes ...hosted) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, plane := range planes {
			if !plane.Answers(r.Host) {
				continue
			}
			logged(plane, a.requestLog).ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}
