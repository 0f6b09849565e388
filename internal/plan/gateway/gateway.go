// Package gateway decides the content of an application gateway: what serves a cluster's Ingresses, beside what others have there.
// Layer L1: decisions only.
//
// The gateway is one document for many objects, and Azure takes it as a whole or not at all. So each object is checked by itself before,
// and a problem of one object changes nothing of another.
package gateway

import (
	"fmt"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/layout"
	"kaz/internal/plan/gateway/limit"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/plan/gateway/merge"
)

// Config says which gateway serves a cluster, and how.
type Config struct {
	Gateway azure.ID
	merge.Ownership
	// Identity tells the cluster from others.
	Identity string
	Ingress  ingress.Options
	// Answers is the namespace/name of the Service that answers 404 and 500 for the application gateway, "" for none.
	Answers string
}

// Input is all facts of a decision.
type Input struct {
	Config
	Ingresses []*networking.Ingress // of the controller's class
	Objects   *cluster.Objects
	Rewrites  ingress.RewriteObjects
	// Kept are Ingresses that Azure has refused as they are. What the gateway has for them alone stays as it is.
	Kept []*networking.Ingress
	// Undecided says that there are further Ingresses, about which the caller has not decided. What the gateway has for them stays.
	Undecided bool
	Have      plan.Snapshot

	API          gatewayapi.Objects
	Applications gatewayapi.Applications
	// Public and Private are the addresses of the application gateway, empty if they are not known.
	Public, Private string
}

// Decision is what is decided.
type Decision struct {
	Graph    plan.Graph
	Problems []plan.Problem
	layout.Result
	Live live.Gateway
	// API has the statuses of the objects of the Gateway API.
	API gatewayapi.Result
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
	d.Result, d.Problems = in.build(g, in.Ingresses)
	if len(in.Kept) > 0 {
		d.Live.Mine = in.withoutKept(g, d.Result)
		d.Result, d.Problems = in.build(d.Live, in.Ingresses)
	}
	if g.IsStopped() {
		d.Hold = fmt.Errorf("the application gateway %s is stopped, and a write would start it", in.Gateway)
		return d, nil
	}
	if d.IsEmpty() && !g.HasMine() {
		return d, nil // nothing is claimed before there is something to claim
	}
	return d, d.Graph.Add(in.Node(d.Live, d.Result, in.Identity, in.Undecided))
}

// build lays out what serves Ingresses.
func (in Input) build(g live.Gateway, ingresses []*networking.Ingress) (layout.Result, []plan.Problem) {
	sites, problems := ingress.Read(ingress.Input{
		Options: in.Ingress, Ingresses: ingresses, Objects: in.Objects, Gateway: g, Rewrites: in.Rewrites,
	})
	sites, refused := limit.Admit(sites, g)
	r := layout.Build(sites, g, in.Prefix)
	return r, slices.Concat(problems, refused, r.Problems)
}

// withoutKept returns the cluster's children without those that only the kept Ingresses need. These count as those of others: they stay,
// with what they refer to.
func (in Input) withoutKept(g live.Gateway, decided layout.Result) live.Mine {
	all, _ := in.build(g, slices.Concat(in.Ingresses, in.Kept))
	kept := map[string]bool{}
	for name, objects := range all.Objects {
		if _, stated := decided.Objects[name]; stated {
			continue
		}
		kept[name] = slices.ContainsFunc(in.Kept, func(i *networking.Ingress) bool {
			return slices.Contains(objects, ingress.Object(i).Key())
		})
	}
	return func(name string) bool { return g.Mine(name) && !kept[strings.ToLower(name)] }
}
