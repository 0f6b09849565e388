package gateway

import (
	networking "k8s.io/api/networking/v1"

	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/rewriteobject"
)

// Facts are the objects of a cluster that one application gateway serves, and what they refer to.
type Facts struct {
	Ingresses []*networking.Ingress
	Objects   *cluster.Objects
	Rewrites  rewriteobject.Reader // nil if the API server has no such objects
	// Prohibited are the hosts and paths that Ingresses do not get.
	Prohibited prohibited.Targets
	API        gatewayapi.Objects
	// Public and Private are the addresses of the application gateway, empty if they are not known.
	Public, Private string
}

// Input returns the input of a decision about the application gateway of a Config, which serves all Ingresses and Gateways of the facts.
func (f Facts) Input(c Config) Input {
	in := Input{
		Config: c, Ingresses: f.Ingresses, Objects: f.Objects, API: f.API, Applications: gatewayapi.Applications{},
		Public: f.Public, Private: f.Private, Prohibited: f.Prohibited,
	}
	if f.Rewrites != nil {
		in.Rewrites = rewriteobject.NewLookup(f.Rewrites).Find
	}
	for _, g := range f.API.Gateways {
		in.Applications[gatewayapi.KeyOf(g)] = c.Gateway
	}
	return in
}
