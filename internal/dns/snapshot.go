package dns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/records"
)

// Zones says which zones are served.
type Zones struct {
	IDs     []azure.ID        // zones by id; these must exist
	Groups  []azure.ID        // resource groups and subscriptions; all their zones are served
	Tags    map[string]string // which zones of Groups: "" is any value
	Names   []string          // which zones of Groups: these names and those below them; none is all
	Public  bool
	Private bool
}

// Types returns the types of the zones.
func (z Zones) Types() (all []string) {
	if z.Public {
		all = append(all, network.DNSZones)
	}
	if z.Private {
		all = append(all, network.PrivateDNSZones)
	}
	return all
}

// Takes reports whether a zone of a group is served.
func (z Zones) Takes(r azure.Resource[network.DNSZone]) bool {
	for name, value := range z.Tags {
		if have, ok := r.Tags.Get(name); !ok || value != "" && have != value {
			return false
		}
	}
	name := strings.ToLower(r.Name)
	return len(z.Names) == 0 || slices.ContainsFunc(z.Names, func(n string) bool { return name == n || strings.HasSuffix(name, "."+n) })
}

// snapshot returns what is known of the zones. It reads what is too old. If ctx ends before, the read goes on for the next request.
func (p *Provider) snapshot(ctx context.Context) (records.Snapshot, error) {
	p.mu.Lock()
	if s, ok := p.known(); ok {
		p.mu.Unlock()
		return s, nil
	}
	r := p.reading
	if r == nil {
		r = &reading{done: make(chan struct{})}
		p.reading = r
		go p.readAll(context.WithoutCancel(ctx), r)
	}
	p.mu.Unlock()
	select {
	case <-r.done:
		return r.state, r.err
	case <-ctx.Done():
		return records.Snapshot{}, fmt.Errorf("the zones are still being read: %w", ctx.Err())
	}
}

// known returns the snapshot, and false if a part of it is missing or too old. The caller holds the lock.
func (p *Provider) known() (records.Snapshot, bool) {
	oldest := time.Now().Add(-p.config.Refresh)
	if p.state.found.IsZero() || p.state.found.Before(oldest) {
		return records.Snapshot{}, false
	}
	s := records.Snapshot{Zones: slices.Clone(p.state.zones), Sets: map[records.Key]records.Set{}}
	for _, z := range p.state.zones {
		one := p.state.read[z.ID.Key()]
		if one.at.Before(oldest) {
			return records.Snapshot{}, false
		}
		maps.Copy(s.Sets, one.sets)
	}
	return s, true
}

// readAll reads what is too old, and ends the reading.
func (p *Provider) readAll(ctx context.Context, r *reading) {
	ctx, cancel := context.WithTimeout(ctx, longestRead)
	defer cancel()
	err := p.refresh(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	var ok bool
	if r.state, ok = p.known(); err == nil && !ok {
		err = errors.New("the zones changed while they were read")
	}
	r.err, p.failure, p.reading = err, err, nil
	close(r.done)
}

// refresh reads the zones and record sets that are too old.
func (p *Provider) refresh(ctx context.Context) error {
	release, err := p.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	now := time.Now()
	oldest := now.Add(-p.config.Refresh)
	p.mu.Lock()
	found, zones := p.state.found, p.state.zones
	p.mu.Unlock()
	if found.IsZero() || found.Before(oldest) {
		if zones, err = p.findZones(ctx, zones); err != nil {
			return err
		}
		p.mu.Lock()
		p.state.found, p.state.zones = now, zones
		maps.DeleteFunc(p.state.read, func(key string, _ zoneState) bool {
			return !slices.ContainsFunc(zones, func(z records.Zone) bool { return z.ID.Key() == key })
		})
		p.mu.Unlock()
	}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(max(p.config.Parallel, 1))
	for _, z := range zones {
		p.mu.Lock()
		at := p.state.read[z.ID.Key()].at
		p.mu.Unlock()
		if at.IsZero() || at.Before(oldest) {
			tasks.Go(func() error { return p.readZone(ctx, z) })
		}
	}
	return tasks.Wait()
}

// readZone reads the record sets of a zone.
func (p *Provider) readZone(ctx context.Context, z records.Zone) error {
	start := time.Now()
	list := network.DNSZones + "/recordsets"
	if z.Private {
		list = network.PrivateDNSZones + "/ALL"
	}
	docs, err := p.config.Azure.Fresh().List(ctx, azure.Query{Scope: z.ID, Type: list, Patience: longestRead})
	p.config.Metrics.listed(err)
	if err != nil {
		if azure.IsNotFound(err) {
			p.forgetZones()
		}
		return fmt.Errorf("list the record sets of zone %s: %w", z.ID, err)
	}
	sets := make(map[records.Key]records.Set, len(docs))
	for _, doc := range docs {
		s, err := records.Read(z, doc)
		if err != nil {
			return err
		}
		sets[s.Key()] = s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.read[z.ID.Key()] = zoneState{at: start, sets: sets}
	return nil
}

// forgetZones has the zones found again.
func (p *Provider) forgetZones() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.found = time.Time{}
}

// forget has the record sets of a zone read again.
func (p *Provider) forget(z records.Zone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.state.read[z.ID.Key()]
	one.at = time.Time{}
	p.state.read[z.ID.Key()] = one
}

// note records what a write left: doc is the record set, nil if it is gone.
func (p *Provider) note(z records.Zone, key records.Key, doc azure.Document) {
	var set records.Set
	if doc != nil {
		var err error
		if set, err = records.Read(z, doc); err != nil || set.Etag == "" {
			p.forget(z)
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	sets := p.state.read[z.ID.Key()].sets
	if sets == nil {
		return
	}
	if doc == nil {
		delete(sets, key)
		return
	}
	sets[key] = set
}

// findZones returns the zones that are served, in the order of their names. known are those of the last time.
func (p *Provider) findZones(ctx context.Context, known []records.Zone) ([]records.Zone, error) {
	found, err := p.config.Zones.all(ctx, p.config.Azure.Fresh())
	if err != nil {
		return nil, err
	}
	// A list that lacks a zone must not let ExternalDNS believe that its records are gone.
	for _, z := range known {
		if _, ok := found[z.ID.Key()]; ok {
			continue
		}
		r, err := readZone(ctx, p.config.Azure.Fresh(), z.ID)
		if err != nil && !azure.IsNotFound(err) {
			return nil, fmt.Errorf("zone %s, which is missing in a list: %w", z.ID, err)
		}
		if err == nil && p.config.Zones.Takes(r) {
			found.add(r, z.ID)
		}
	}
	return found.inOrder()
}

// Survey reads all zones and their record sets, as a provider does before its first answer. It writes nothing.
func Survey(ctx context.Context, c Config) (records.Snapshot, error) { return New(c).snapshot(ctx) }

// Find returns the zones that serve a name: of the public and of the private ones, those with the longest name that contains it. A name can
// be served by several zones, each for its networks.
func Find(ctx context.Context, from azure.Reader, c Zones, name string) (found []records.Zone, err error) {
	all, err := c.all(ctx, from)
	if err != nil {
		return nil, err
	}
	for _, private := range []bool{false, true} {
		longest := ""
		for _, z := range all {
			if z.Private == private && z.Contains(name) && len(z.Name) > len(longest) {
				longest = z.Name
			}
		}
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if z := all[key]; z.Private == private && longest != "" && z.Name == longest {
				found = append(found, z)
			}
		}
	}
	return found, nil
}

// all reads the zones.
func (z Zones) all(ctx context.Context, from azure.Reader) (zones, error) {
	found := zones{}
	for _, id := range z.IDs {
		r, err := readZone(ctx, from, id)
		if err != nil {
			return nil, fmt.Errorf("zone %s: %w", id, err)
		}
		found.add(r, id)
	}
	for _, scope := range z.Groups {
		for _, t := range z.Types() {
			all, err := azure.ListAs[azure.Resource[network.DNSZone]](ctx, from, azure.Query{Scope: scope, Type: t})
			if err != nil {
				return nil, fmt.Errorf("list the zones of %s: %w", scope, err)
			}
			for _, r := range all {
				if z.Takes(r) {
					found.add(r, r.ID)
				}
			}
		}
	}
	return found, nil
}

// zones are zones by the keys of their ids.
type zones map[string]records.Zone

// add adds a zone, unless it is an old one of the type of public zones that is private.
func (z zones) add(r azure.Resource[network.DNSZone], id azure.ID) {
	if strings.EqualFold(r.Properties.ZoneType, "Private") && id.Is(network.DNSZones) {
		return
	}
	z[id.Key()] = records.Zone{
		ID: id, Name: strings.ToLower(strings.TrimSuffix(id.Name(), ".")), Private: id.Is(network.PrivateDNSZones),
	}
}

func readZone(ctx context.Context, from azure.Reader, id azure.ID) (azure.Resource[network.DNSZone], error) {
	doc, err := from.Get(ctx, id)
	if err != nil {
		return azure.Resource[network.DNSZone]{}, err
	}
	return azure.Decode[network.DNSZone](doc)
}

// inOrder sorts zones. Two zones of the same name are an error, because their records cannot be told apart.
func (z zones) inOrder() ([]records.Zone, error) {
	all := slices.SortedFunc(maps.Values(z), func(a, b records.Zone) int { return strings.Compare(a.Name, b.Name) })
	for i := range all[:max(len(all)-1, 0)] {
		if a, b := all[i], all[i+1]; a.Name == b.Name {
			return nil, fmt.Errorf("zones %s and %s have the same name: serve them with two providers, each with --zone or --zone-type",
				a.ID, b.ID)
		}
	}
	return all, nil
}
