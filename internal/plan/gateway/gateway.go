// Package gateway decides the content of an application gateway: what serves a cluster's Ingresses and
// objects of the Gateway API, beside what others have there.
// Layer L1: decisions only.
//
// The gateway is one document for many objects, and Azure takes it as a whole or not at all. So each object is checked by itself before,
// and a problem of one object changes nothing of another.
package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	networking "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/layout"
	"kaz/internal/plan/gateway/limit"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/prohibited"
	"kaz/internal/plan/gateway/route"
)

// Config says which gateway serves a cluster, and how.
type Config struct {
	Gateway azure.ID
	merge.Ownership
	// Identity tells the cluster from others.
	Identity string
	Ingress  ingress.Options
	// Answers is the namespace/name of the Service that answers requests which get a status code at once, "" for none.
	Answers string
}

// Input is all facts of a decision.
type Input struct {
	Config
	Ingresses []*networking.Ingress // of the controller's class
	Objects   *cluster.Objects
	Rewrites  ingress.RewriteObjects
	// Prohibited are the hosts and paths that Ingresses do not get.
	Prohibited prohibited.Targets
	// API are the objects of the Gateway API, and Applications says which application gateway serves which Gateway.
	API          gatewayapi.Objects
	Applications gatewayapi.Applications
	// Public and Private are the addresses of the application gateway, empty if they are not known.
	Public, Private string
	// Kept are objects that Azure has refused as they are. What the gateway has for them alone stays as it is.
	Kept Kept
	// Undecided says that there are further Ingresses, about which the caller has not decided. What the gateway has for them stays.
	Undecided bool
	// Doubt says why it is not certain that there is no object, nil if it is or if there are some. Then nothing is removed.
	Doubt error
	// Now is when the decision is made. Without it, nothing is said about certificates that have expired.
	Now  time.Time
	Have plan.Snapshot
}

// Kept are objects of several kinds.
type Kept struct {
	Ingresses []*networking.Ingress
	Gateways  []*gatewayv1.Gateway
	Routes    []gatewayapi.Route
}

func (k Kept) isEmpty() bool { return len(k.Ingresses)+len(k.Gateways)+len(k.Routes) == 0 }

// Decision is what is decided.
type Decision struct {
	Graph    plan.Graph
	Problems []plan.Problem
	layout.Result
	API  gatewayapi.Result
	Live live.Gateway
	// Hold says why nothing may be written, nil if it may be.
	Hold error
}

// Desired returns the gateway with what serves the Ingresses.
func Desired(in Input) (Decision, error) {
	view, ok, err := plan.View[struct{}](in.Have, in.Gateway)
	if err != nil {
		return Decision{}, err
	}
	if !ok {
		return Decision{Hold: fmt.Errorf("the application gateway %s does not exist", in.Gateway)}, nil
	}
	g, _, err := live.Read(in.Have, in.Gateway, in.Mine(view.Tags))
	if err != nil {
		return Decision{}, err
	}
	g.Mine = in.Besides(g, in.Prohibited.Concern)
	d := Decision{Live: g}
	if len(g.Properties.Frontends) == 0 { // every gateway has one: the answer is not the whole document
		d.Hold = fmt.Errorf("the answer of Azure about the application gateway %s has no frontend IP configuration", in.Gateway)
		return d, nil
	}
	if other := in.Other(g.Tags, in.Identity); other != "" {
		d.Hold = fmt.Errorf("the prefix %s at the application gateway %s belongs to the cluster %s; this one is %s",
			in.Prefix, in.Gateway, other, in.Identity)
		return d, nil
	}
	if in.Doubt != nil && g.HasMine() {
		d.Hold = in.Doubt
		return d, nil
	}
	in.build(&d)
	if !in.Kept.isEmpty() {
		d.Live.Mine = in.withoutKept(d)
		in.build(&d)
	}
	if g.IsStopped() {
		d.Hold = fmt.Errorf("the application gateway %s is stopped, and a write would start it", in.Gateway)
		return d, nil
	}
	if d.IsEmpty() && !g.HasMine() {
		return d, nil // nothing is claimed before there is something to claim
	}
	return d, d.Graph.Add(in.Node(d.Live, d.Result, in.Identity, merge.Missing{Undecided: in.Undecided, Refused: !in.Kept.isEmpty()}))
}

// build lays out what serves Ingresses and the objects of the Gateway API, at the gateway that the decision has.
func (in Input) build(d *Decision) {
	sites, problems := ingress.Read(ingress.Input{
		Options: in.Ingress, Ingresses: in.Ingresses, Objects: in.Objects, Gateway: d.Live, Rewrites: in.Rewrites,
		Prohibited: in.Prohibited,
	})
	d.API = gatewayapi.Read(gatewayapi.Input{
		Objects: in.API, Applications: in.Applications, Cluster: in.Objects, Gateway: d.Live, Public: in.Public, Private: in.Private,
	})
	sites = append(sites, d.API.Sites...)
	slices.SortStableFunc(sites, func(a, b route.Site) int { return route.Compare(a.Object, b.Object) })
	sites, refused := limit.Admit(sites, d.Live)
	d.Result = layout.Build(sites, d.Live, in.Prefix, in.answers())
	d.Problems = slices.Concat(problems, refused, d.Result.Problems, in.expired(sites))
	d.API.Refuse(d.Problems)
}

// ReasonExpired is the reason of problems with certificates that have expired. They are served: an application gateway has no other ones.
const ReasonExpired = "CertificateExpired"

// expired says which Secrets of sites have an expired certificate.
func (in Input) expired(sites []route.Site) (problems []plan.Problem) {
	said := map[[3]string]bool{}
	for _, s := range sites {
		if s.TLS == nil || s.TLS.Certificate == nil || in.Now.IsZero() {
			continue
		}
		c := s.TLS.Certificate
		key := [3]string{s.Object.Key(), c.Namespace, c.Secret}
		if said[key] || c.Expires.After(in.Now) {
			continue
		}
		said[key] = true
		problems = append(problems, plan.Problem{Object: s.Object.Key(), Reason: ReasonExpired, Warning: true, Message: fmt.Sprintf(
			"the certificate of Secret %s/%s has expired at %s, and clients refuse it; want a new certificate in the Secret", c.Namespace,
			c.Secret, c.Expires.UTC().Format(time.RFC3339))})
	}
	return problems
}

// answers returns the backend that answers with status codes. It gives the code of the path's first segment.
func (in Input) answers() *route.Backend {
	namespace, name, ok := strings.Cut(in.Answers, "/")
	if !ok {
		return nil
	}
	const named = "answers"
	port := in.Objects.Port(namespace, name, networking.ServiceBackendPort{Name: named})
	b := &route.Backend{
		Namespace: namespace, Service: name, Port: named, Pool: port.Pool, Probe: cluster.Healthy(network.GatewayHTTP),
		Settings: network.GatewaySettings{
			Port: port.Target, Protocol: network.GatewayHTTP, CookieBasedAffinity: network.SwitchedOff, RequestTimeout: answerTimeout,
		},
	}
	b.Probe.Path, b.Probe.Interval, b.Probe.Timeout = "/200", answerTimeout, answerTimeout
	return b
}

const answerTimeout = 5 // seconds

// withoutKept returns the cluster's children without those that only the kept objects need. These count as those of others: they stay, with
// what they refer to.
func (in Input) withoutKept(decided Decision) live.Mine {
	whole := in
	whole.Ingresses = slices.Concat(in.Ingresses, in.Kept.Ingresses)
	whole.API.Gateways = slices.Concat(in.API.Gateways, in.Kept.Gateways)
	whole.API.Routes = slices.Concat(in.API.Routes, in.Kept.Routes)
	whole.Applications = gatewayapi.Applications{}
	maps.Copy(whole.Applications, in.Applications)
	for _, g := range in.Kept.Gateways {
		whole.Applications[gatewayapi.KeyOf(g)] = in.Gateway
	}
	all := Decision{Live: decided.Live}
	whole.build(&all)
	mine, spared := decided.Live.Mine, in.Spared(decided.Live, all.Gateway, decided.Gateway)
	return func(name string) bool {
		key := strings.ToLower(name)
		_, needed := all.Objects[key]
		_, stated := decided.Objects[key]
		return mine(name) && !spared[key] && (stated || !needed)
	}
}
