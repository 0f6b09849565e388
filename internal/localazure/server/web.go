package server

import (
	"crypto/rand"
	"net/url"
	"strings"

	"kaz/internal/localazure/plane/fabric/wiring"
	"kaz/internal/localazure/web"
)

// openWeb opens the web page. Its link has a token of its own, which is good for nothing else.
func (a *Server) openWeb(o Options, s settings) (err error) {
	callers := map[string]string{strings.ToLower(a.owner.ClientID): "owner", strings.ToLower(a.system.ClientID): "managed identity"}
	for _, application := range s.identities.All() {
		callers[strings.ToLower(application.ClientID)] = application.Name
	}
	secret := rand.Text()
	a.web, err = web.New(web.Options{
		Azure: a.emulator, Recorder: a.recorder, Token: secret, Write: o.WebWrite, Callers: callers, Why: o.Why,
		Done: a.closing, Log: a.log,
	})
	a.info.Web = a.info.ARMHTTP + web.Path + "?" + url.Values{"token": {secret}}.Encode()
	return err
}

// ShowBalancers lets the web page show which members of load balancing rules are healthy. What runs the machines calls it after each
// change.
func (a *Server) ShowBalancers(all []wiring.Balancer) { a.web.ShowBalancers(all) }
