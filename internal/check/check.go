// Package check reads a cluster and its Azure for `kaz check`. The decisions are in internal/plan/check. It only lists and gets, each
// list within a bound. A read that fails is noted, and the others go on. Layer L3.
package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"

	"kaz/internal/azure"
	plan "kaz/internal/plan/check"
	"kaz/internal/plan/rights"
)

// Bounds of what is read. More is a failed read.
const (
	pageSize  = 500
	mostPages = 20 // of a list of Kubernetes
	mostSets  = 100
	// mostAccounts is of storage accounts, mostGateways of application gateways, mostZones of DNS zones.
	mostAccounts, mostGateways, mostZones = 50, 5, 200

	mostIPs = 20 // public IPs outside the resource group, each of which is a read
	// longest is the time limit of a read.
	longest = 30 * time.Second
	// longestPath is the time limit of the request to an endpoint.
	longestPath = 8 * time.Second
)

// Config says what is read, and how.
type Config struct {
	// Now is the clock of this machine. Ages are counted up to it.
	Now time.Time

	Kubernetes kubernetes.Interface
	// Azure is nil if it cannot be opened, and Fault says why.
	Azure azure.Reader
	Fault error

	// JSON is what was found in azure.json.
	JSON plan.Config
	// Group has the machines and disks, LoadBalancers the load balancers, PublicIPs the public IPs.
	Group, LoadBalancers, PublicIPs azure.ID
	// Location is the region in which quotas are read.
	Location    string
	ClusterName string
	// Balancers are the names of the load balancers, without the suffix of internal ones.
	Balancers []string

	// Endpoints are those of Azure that must be reached, and APIServer is the URL of the API server. Reach returns why an endpoint is not
	// reached.
	Endpoints []Endpoint
	APIServer string
	Reach     func(ctx context.Context, url string) error
	// Health runs the action that tells the health of the backends of an application gateway. It is the only request that is no GET.
	Health func(context.Context, azure.ID) (azure.Document, error)
	// SignIn gets a token. Rights compares the rights of the identity with those of the cloud-controller-manager and of further features.
	SignIn func(context.Context) error
	Rights func(context.Context, []Use) plan.Granted
	// Skew returns how far the clock of this machine is ahead of Azure's, by the answers so far.
	Skew func() (time.Duration, error)
}

// Endpoint is an address of Azure.
type Endpoint struct{ Name, URL string }

// Use is a use of features of the rights table besides those of the cloud-controller-manager: at the scope in a resource group or
// subscription, or at a resource in it. Without a scope, azure.json says where.
type Use struct {
	Features     []rights.Feature
	Scope        rights.Scope
	At, Resource azure.ID
}

// Run reads what the check before an occasion needs, "" for all, and judges it.
func Run(ctx context.Context, c Config, before string) plan.Report {
	g := &gatherer{Config: c, facts: &plan.Facts{
		Now: c.Now, Group: c.Group, ClusterName: c.ClusterName, Balancers: c.Balancers, Config: c.JSON,
	}}
	needs := plan.Needs(before)
	for _, r := range g.reads() {
		if needs[r.source] {
			g.facts.Note(r.source, g.read(ctx, r))
		}
	}
	return plan.Judge(g.facts, before)
}

// gatherer collects the facts.
type gatherer struct {
	Config
	facts *plan.Facts
	// silent is whether the API server let a read wait too long. Further ones would use up the time of those of Azure.
	silent bool
	// signedIn is why no further request to Azure can work, nil if it is not known.
	signedIn error
}

// read is one source of facts.
type read struct {
	source            plan.Source
	kubernetes, azure bool // what is asked
	do                func(context.Context) error
}

// reads are in the order in which they are made. Services are read before and after Azure.
func (g *gatherer) reads() []read {
	return []read{
		{plan.AzureJSON, false, false, func(context.Context) error { return nil }},
		{plan.Nodes, true, false, g.nodes},
		{plan.Services, true, false, g.services(&g.facts.Services)},
		{plan.Volumes, true, false, g.volumes},
		{plan.Attachments, true, false, g.attachments},
		{plan.Components, true, false, g.components},
		{plan.APIServer, true, false, g.version},
		{plan.Claims, true, false, g.claims},
		{plan.Classes, true, false, g.classes},
		{plan.Pending, true, false, g.pending},
		{plan.Events, true, false, g.events},
		{plan.Paths, false, false, g.paths},
		{plan.SignIn, false, true, g.signIn},
		{plan.Rights, false, true, g.rights},
		{plan.Machines, false, true, g.machines},
		{plan.LoadBalancers, false, true, g.loadBalancers},
		{plan.PublicIPs, false, true, g.publicIPs},
		{plan.Disks, false, true, g.disks},
		{plan.Shares, false, true, g.shares},
		{plan.Gateways, false, true, g.gateways},
		{plan.Zones, false, true, g.zones},
		{plan.Usages, false, true, g.usages},
		{plan.Clock, false, true, g.clock},
		{plan.Present, true, false, g.services(&g.facts.Present)},
	}
}

func (g *gatherer) read(ctx context.Context, r read) error {
	switch {
	case r.azure && g.Azure == nil && g.Fault == nil:
		return errors.New("there is no client for Azure")
	case r.azure && g.Azure == nil:
		return g.Fault
	case r.azure && g.signedIn != nil:
		return errors.New("there is no token for Azure: see identity")
	case r.kubernetes && g.silent:
		return errors.New("the API server did not answer an earlier read in time")
	}
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := r.do(limited)
	if err != nil && limited.Err() != nil {
		g.silent = g.silent || r.kubernetes
		return fmt.Errorf("no answer in time: %w", err)
	}
	return err
}

func (g *gatherer) signIn(ctx context.Context) error {
	if g.signedIn = g.SignIn(ctx); g.signedIn == nil {
		return nil
	}
	if ctx.Err() != nil {
		return g.signedIn // no answer is not a refusal
	}
	g.facts.TokenFault = g.signedIn.Error()
	return nil
}

func (g *gatherer) rights(ctx context.Context) error {
	g.facts.Rights = g.Rights(ctx, g.uses())
	return nil
}

func (g *gatherer) clock(context.Context) (err error) {
	g.facts.Skew, err = g.Skew()
	return err
}
