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

// Place is where a scope of the table of rights is: a resource group and, where all that
// is needed of it is needed of one resource in it, that resource.
type Place struct{ Group, Resource azure.ID }

func (p Place) narrowest() azure.ID { return cmp.Or(p.Resource, p.Group) }

// Lack is a right that is missing.
type Lack struct {
	rights.Need
	At azure.ID
}

func (l Lack) String() string {
	return fmt.Sprintf("no right to %s on %s, which is needed to %s", l.Action, l.At, l.Why)
}

// Unknown is a scope at which Azure does not say what rights there are.
type Unknown struct {
	At  azure.ID
	Err error
}

// Findings are what a look at the rights has brought.
type Findings struct {
	Missing []Lack
	Unknown []Unknown
	// Hopeless is why nothing at all can work, nil where something can.
	Hopeless error
}

// Rights compares what is needed with what Azure says that we may do, and asks it once
// about each resource group. Scopes without a place are not asked about.
func (d *Doors) Rights(ctx context.Context, needs []rights.Need, places map[rights.Scope]Place) Findings {
	groups := needsByGroup(needs, places)
	answers := make([]Findings, len(groups))
	var asking sync.WaitGroup
	for i, g := range groups {
		asking.Go(func() { answers[i] = d.rightsIn(ctx, g, places) })
	}
	asking.Wait()
	var all Findings
	for _, a := range answers {
		all.Missing = append(all.Missing, a.Missing...)
		all.Unknown = append(all.Unknown, a.Unknown...)
	}
	all.Hopeless = d.hopeless(ctx, groups, all, places)
	return all
}

// group is what is needed of a resource group.
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

// rightsIn asks about a group and, since roles may have been given for single resources
// only, about those in it at which something would be missing.
func (d *Doors) rightsIn(ctx context.Context, g group, places map[rights.Scope]Place) Findings {
	granted, err := d.granted(ctx, g.id)
	if err != nil {
		return Findings{Unknown: []Unknown{{g.id, err}}}
	}
	var found Findings
	known := map[azure.ID][]rights.Permission{}
	seen := map[string]bool{}
	for _, n := range rights.Missing(g.needs, granted) {
		at, there := places[n.Scope].narrowest(), granted
		if !at.Equal(g.id) {
			if there, err = d.grantedOnce(ctx, at, known); err != nil {
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

func (d *Doors) grantedOnce(ctx context.Context, id azure.ID, known map[azure.ID][]rights.Permission) ([]rights.Permission, error) {
	if granted, ok := known[id]; ok {
		return granted, nil
	}
	granted, err := d.granted(ctx, id)
	if err == nil {
		known[id] = granted
	}
	return granted, err
}

func (d *Doors) granted(ctx context.Context, scope azure.ID) ([]rights.Permission, error) {
	docs, err := d.Fresh().List(ctx, azure.Query{Scope: scope, Type: permissions})
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

// hopeless reports why nothing can work: Azure does not take us for somebody of the
// subscription, or nothing that is needed is allowed. Where it does not say what is
// allowed, a read that everything begins with tells.
func (d *Doors) hopeless(ctx context.Context, groups []group, found Findings, places map[rights.Scope]Place) error {
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
		return errors.New("azure gives us none of the rights that are needed: is this the right identity, and has it a role on " + string(machines) + "?")
	}
	_, err := d.List(ctx, azure.Query{Scope: machines, Type: compute.ScaleSets})
	if azure.KindOf(err) == azure.Denied {
		return err
	}
	return nil
}
