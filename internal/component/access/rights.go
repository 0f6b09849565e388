package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/rights"
)

const permissions = "Microsoft.Authorization/permissions"

// Place is the location of a scope of the rights table: a resource group, and the resource in it if
// only that resource is used.
type Place struct{ Group, Resource azure.ID }

func (p Place) narrowest() azure.ID { return cmp.Or(p.Resource, p.Group) }

// Lack is a missing right.
type Lack struct {
	rights.Need
	At azure.ID
}

func (l Lack) String() string {
	return fmt.Sprintf("no right to %s on %s, which is needed to %s", l.Action, l.At, l.Why)
}

// Unknown is a scope at which the rights cannot be read.
type Unknown struct {
	At  azure.ID
	Err error
}

// Findings are the results of a check of rights.
type Findings struct {
	Missing []Lack
	Unknown []Unknown
	// Hopeless says why nothing can work; nil if something can.
	Hopeless error
}

// Rights compares the needed rights with the granted ones. It sends one request for each resource
// group and skips scopes without a place.
func (c *Clients) Rights(ctx context.Context, needs []rights.Need, places map[rights.Scope]Place) Findings {
	groups := needsByGroup(needs, places)
	answers := make([]Findings, len(groups))
	var asking sync.WaitGroup
	for i, g := range groups {
		asking.Go(func() { answers[i] = c.rightsIn(ctx, g, places) })
	}
	asking.Wait()
	var all Findings
	for _, a := range answers {
		all.Missing = append(all.Missing, a.Missing...)
		all.Unknown = append(all.Unknown, a.Unknown...)
	}
	all.Hopeless = c.hopeless(ctx, groups, all, places)
	return all
}

// group holds the needs in one resource group.
type group struct {
	id    azure.ID
	needs []rights.Need
}

func needsByGroup(needs []rights.Need, places map[rights.Scope]Place) []group {
	var groups []group
	for _, n := range needs {
		at := places[n.Scope].Group
		if at == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.id.Equal(at) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{id: at})
		}
		groups[i].needs = append(groups[i].needs, n)
	}
	return groups
}

// rightsIn checks the rights at a resource group. For what is missing there, it checks the resource,
// because a role may be assigned at a single resource.
func (c *Clients) rightsIn(ctx context.Context, g group, places map[rights.Scope]Place) Findings {
	granted, err := c.granted(ctx, g.id)
	if err != nil {
		return Findings{Unknown: []Unknown{{g.id, err}}}
	}
	var found Findings
	known := map[azure.ID][]rights.Permission{}
	seen := map[string]bool{}
	for _, n := range rights.Missing(g.needs, granted) {
		at, there := places[n.Scope].narrowest(), granted
		if !at.Equal(g.id) {
			if there, err = c.grantedOnce(ctx, at, known); err != nil {
				there = nil
			}
		}
		if key := n.Action + at.Key(); !rights.Allowed(there, n.Action) && !seen[key] {
			seen[key] = true
			found.Missing = append(found.Missing, Lack{n, at})
		}
	}
	return found
}

func (c *Clients) grantedOnce(ctx context.Context, id azure.ID, known map[azure.ID][]rights.Permission) ([]rights.Permission, error) {
	if granted, ok := known[id]; ok {
		return granted, nil
	}
	granted, err := c.granted(ctx, id)
	if err == nil {
		known[id] = granted
	}
	return granted, err
}

func (c *Clients) granted(ctx context.Context, scope azure.ID) ([]rights.Permission, error) {
	docs, err := c.Fresh().List(ctx, azure.Query{Scope: scope, Type: permissions})
	if err != nil {
		return nil, err
	}
	granted := make([]rights.Permission, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc, &granted[i]); err != nil {
			return nil, fmt.Errorf("permissions at %s: %w", scope, err)
		}
	}
	return granted, nil
}

// hopeless returns why nothing can work: Azure rejects the identity, or grants none of the needed
// rights. If the rights cannot be read, it tries to list scale sets, which every start needs.
func (c *Clients) hopeless(ctx context.Context, groups []group, found Findings, places map[rights.Scope]Place) error {
	for _, u := range found.Unknown {
		if e, ok := errors.AsType[*azure.Error](u.Err); ok && (e.Status == http.StatusUnauthorized || e.Code == "SubscriptionNotFound") {
			return u.Err
		}
	}
	needed := map[string]bool{}
	for _, g := range groups {
		if slices.ContainsFunc(found.Unknown, func(u Unknown) bool { return u.At.Equal(g.id) }) {
			continue
		}
		for _, n := range g.needs {
			if !n.Degrades {
				needed[n.Action+places[n.Scope].narrowest().Key()] = true
			}
		}
	}
	for _, l := range found.Missing {
		delete(needed, l.Action+l.At.Key())
	}
	machines := places[rights.Machines].Group
	switch {
	case len(needed) > 0 || machines == "":
		return nil
	case len(found.Unknown) == 0:
		return errors.New("none of the needed rights is granted: check the identity and its role assignments at " +
			string(machines))
	}
	_, err := c.List(ctx, azure.Query{Scope: machines, Type: compute.ScaleSets})
	if azure.KindOf(err) == azure.Denied {
		return err
	}
	return nil
}
