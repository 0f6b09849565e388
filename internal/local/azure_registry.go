package local

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"

	"kaz/internal/emulator/plane/registry"
)

// registrySuffix is the domain of registries that this local Azure names to clients
// which were given its own address. Names in it lead nowhere else on any machine.
const registrySuffix = "azurecr.localhost"

var domainForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

func (o *AzureOptions) registrySuffix() string {
	if o.RegistrySuffix == "" {
		return registrySuffix
	}
	return o.RegistrySuffix
}

func (o *AzureOptions) checkRegistrySuffix() error {
	if !domainForm.MatchString(o.registrySuffix()) {
		return fmt.Errorf("--registry-suffix %s: want a domain in lower case such as %s", o.RegistrySuffix, registrySuffix)
	}
	return nil
}

// openRegistries opens the registries. What is pushed is kept beside the state.
func (a *Azure) openRegistries(o AzureOptions) error {
	dir := ""
	if o.State != "" {
		dir = strings.TrimSuffix(o.State, filepath.Ext(o.State)) + "-registries"
	}
	var err error
	a.registries, err = registry.New(registry.Config{Tokens: a.tokens, World: a.look, Suffix: o.registrySuffix(), Dir: dir, Log: a.log})
	return err
}

// overRegistries answers requests to hosts of registries, and leaves others to a
// handler.
func (a *Azure) overRegistries(others http.Handler) http.Handler {
	var images http.Handler = a.registries
	if a.requestLog != nil {
		images = logged(images, a.requestLog)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.registries.Answers(r.Host) {
			images.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}
