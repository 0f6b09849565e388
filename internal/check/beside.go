package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/storage"
	"kaz/internal/dns"
	plan "kaz/internal/plan/check"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/rights"
)

// shares reads the storage accounts that volumes name, with their shares. What cannot be read is a fact.
func (g *gatherer) shares(ctx context.Context) error {
	ids := g.facts.AccountIDs()
	if len(ids) > mostAccounts {
		return fmt.Errorf("there are %d storage accounts: at most %d are read", len(ids), mostAccounts)
	}
	for _, id := range ids {
		a := plan.Account{ID: id}
		_, err := g.Azure.Get(ctx, id)
		if err == nil {
			a.Shares, err = azure.ListAs[azure.Resource[storage.Share]](ctx, g.Azure,
				azure.Query{Scope: storage.FileServiceOf(id), Type: storage.Shares})
		}
		switch {
		case ctx.Err() != nil:
			return err
		case azure.IsNotFound(err):
			a.Absent = true
		case err != nil:
			a.Fault = err.Error()
		}
		g.facts.Accounts = append(g.facts.Accounts, a)
	}
	return nil
}

// patienceOfHealth is how long the health of the backends of one gateway may take.
const patienceOfHealth = 20 * time.Second

// gateways reads the application gateways that the controller in the cluster writes, and the health of their backends.
func (g *gatherer) gateways(ctx context.Context) error {
	ids := g.facts.GatewayIDs()
	if len(ids) > mostGateways {
		return fmt.Errorf("there are %d application gateways: at most %d are read", len(ids), mostGateways)
	}
	for _, id := range ids {
		one := plan.Gateway{ID: id}
		doc, err := g.Azure.Get(ctx, id)
		switch {
		case azure.IsNotFound(err):
			one.Absent = true
		case err != nil:
			return err
		default:
			if one.Doc, err = azure.Decode[network.ApplicationGateway](doc); err != nil {
				return err
			}
			if one.Health, err = g.health(ctx, id); err != nil {
				one.HealthFault = err.Error()
			}
		}
		g.facts.Gateways = append(g.facts.Gateways, one)
	}
	return ctx.Err()
}

func (g *gatherer) health(ctx context.Context, id azure.ID) ([]health.Backend, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceOfHealth)
	defer cancel()
	answer, err := g.Health(ctx, id)
	if err != nil {
		return nil, err
	}
	return health.Read(answer)
}

// served returns the zones that the flags of the external-dns-webhook in the cluster select, none without one.
func (g *gatherer) served() (z dns.Zones) {
	a, runs := g.facts.Arguments["external-dns-webhook"]
	if !runs {
		return z
	}
	kind := a.Last("zone-type")
	z = dns.Zones{Public: kind != "private", Private: kind == "private" || kind == "all", Tags: map[string]string{}}
	for _, id := range a.List("zone") {
		z.IDs = append(z.IDs, azure.ID(id))
	}
	for _, name := range a.List("zone-resource-group") {
		id := azure.ID(name)
		if !strings.Contains(name, "/") {
			id = azure.GroupID(g.Group.Subscription(), name)
		}
		z.Groups = append(z.Groups, id)
	}
	for _, s := range a.List("zone-subscription") {
		z.Groups = append(z.Groups, azure.SubscriptionID(s))
	}
	for _, name := range a.List("zone-name") {
		z.Names = append(z.Names, strings.ToLower(strings.Trim(name, ".")))
	}
	for _, tag := range a.List("zone-tag") {
		key, value, _ := strings.Cut(tag, "=")
		z.Tags[key] = value
	}
	if len(z.IDs)+len(z.Groups) == 0 {
		z.Groups = []azure.ID{g.Group}
	}
	return z
}

// zones reads the zones that the external-dns-webhook in the cluster serves.
func (g *gatherer) zones(ctx context.Context) error {
	served := g.served()
	add := func(z plan.Zone) error {
		if len(g.facts.Zones) == mostZones {
			return fmt.Errorf("there are more than %d zones", mostZones)
		}
		g.facts.Zones = append(g.facts.Zones, z)
		return nil
	}
	for _, id := range served.IDs {
		doc, err := g.Azure.Get(ctx, id)
		z := plan.Zone{ID: id, Absent: azure.IsNotFound(err)}
		if err == nil {
			z.Doc, err = azure.Decode[network.DNSZone](doc)
		}
		if err != nil && !z.Absent {
			return err
		}
		if err := add(z); err != nil {
			return err
		}
	}
	for _, group := range served.Groups {
		for _, t := range served.Types() {
			all, err := azure.ListAs[azure.Resource[network.DNSZone]](ctx, g.Azure, azure.Query{Scope: group, Type: t})
			if err != nil {
				return fmt.Errorf("list the zones of %s: %w", group, err)
			}
			for _, one := range all {
				if !served.Takes(one) {
					continue
				}
				if err := add(plan.Zone{ID: one.ID, Doc: one}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// uses returns the features of the components in the cluster, with where they are used if azure.json does not say that.
func (g *gatherer) uses() []Use {
	all := []Use{{Features: plan.FeaturesOf(g.facts.Components)}}
	for _, id := range g.facts.GatewayIDs() {
		all = append(all, Use{Features: []rights.Feature{rights.Gateways, rights.GatewayReadiness}, Scope: rights.ApplicationGateways,
			At: azure.GroupID(id.Subscription(), id.Group()), Resource: id})
	}
	served := g.served()
	for _, id := range slices.Concat(served.IDs, served.Groups) {
		u := Use{Scope: rights.RecordZones, At: id}
		if served.Public {
			u.Features = append(u.Features, rights.PublicZones)
		}
		if served.Private {
			u.Features = append(u.Features, rights.PrivateRecordZones)
		}
		if id.Group() != "" {
			u.At = azure.GroupID(id.Subscription(), id.Group())
		}
		if !u.At.Equal(id) {
			u.Resource = id
		}
		all = append(all, u)
	}
	return all
}
