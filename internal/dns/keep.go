package dns

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/records"
)

// Lease is how long the contributions of a cluster to shared names are good without a renewal.
const Lease = 10 * time.Minute

// renewals are the renewals in a lease. Six clusters write at most 1.5 times in a minute. A cluster is silent if its lease does not change
// for the time of as many renewals. With a renewal before that to see it for the last time, and one after it to notice, a dead cluster is
// out of DNS after two leases at most.
const renewals = 2.5

// spread is the part of the time between two renewals that is left to chance.
const spread = .1

// freshRenewals is how often a cluster that was silent renews its lease before it is answered again.
const freshRenewals = 2

// Keeper keeps the leases of a cluster that shares names with others, and takes the contributions of clusters that died out of DNS. Its
// fields belong to one goroutine.
type Keeper struct {
	*Provider
	ready Readiness // nil for none
	every time.Duration

	own     map[string]*renewal            // by zone
	others  map[string]map[string]sighting // by zone and cluster
	orphans map[records.Orphan]time.Time   // when the zone was read in which they were seen first
}

// renewal is the lease of this cluster in a zone.
type renewal struct {
	have  *records.Set // nil if it is not known
	at    time.Time    // of the last renewal
	fresh int          // renewals since the last failure
	// unused is when the zone was read in which this cluster had nothing for the first time, zero if it has something.
	unused time.Time
}

// sighting is what was seen of the lease of another cluster.
type sighting struct {
	etag   string // "" if there is none
	since  time.Time
	every  time.Duration
	silent bool
}

// Readiness says which objects of the cluster have a ready endpoint.
type Readiness interface {
	// Ready has objects as KIND/NAMESPACE/NAME. Those of which it is not known are not in it.
	Ready() map[string]bool
	// Changed has a value after the answer of Ready changed.
	Changed() <-chan struct{}
}

// NewKeeper returns a keeper. ready may be nil.
func (p *Provider) NewKeeper(ready Readiness) *Keeper {
	every := time.Duration(float64(p.config.Lease) / renewals)
	return &Keeper{Provider: p, ready: ready, every: every, own: map[string]*renewal{}, others: map[string]map[string]sighting{}}
}

// Run keeps the leases until ctx ends. Renewals of several clusters are spread.
func (k *Keeper) Run(ctx context.Context) error {
	var changed <-chan struct{}
	if k.ready != nil {
		changed = k.ready.Changed()
	}
	var next <-chan time.Time
	for round := k.Round; ; {
		if err := round(ctx); err != nil && ctx.Err() == nil {
			k.config.Log.WarnContext(ctx, "names shared with other clusters were not kept; it is tried again", "error", err)
		}
		if next == nil {
			next = time.After(time.Duration(float64(k.every) * (1 + spread*rand.Float64())))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			round = k.look
		case <-next:
			round, next = k.Round, nil
		}
	}
}

// look changes which contributions of this cluster are answered, after its endpoints changed.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.every)
	defer cancel()
	return k.mark(ctx, records.Marks{Cluster: k.config.Cluster, Ready: k.ready.Ready()})
}

// Round renews the leases of this cluster, looks at those of the others, and changes which contributions are answered.
func (k *Keeper) Round(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.every)
	defer cancel()
	s, err := k.snapshot(ctx)
	if err != nil {
		k.failed()
		return err
	}
	marks := records.Marks{Cluster: k.config.Cluster, Silent: map[string][]string{}, Back: map[string]bool{}}
	if k.ready != nil {
		marks.Ready = k.ready.Ready()
	}
	marks.Orphans = k.orphaned(s)
	var problems []error
	for _, z := range s.Zones {
		if err := k.zone(ctx, z, s.Clusters(z), &marks); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(append(problems, k.mark(ctx, marks), k.locked(ctx, k.routes))...)
}

// orphaned returns the contributions that nothing needed in two reads of the zone: one list may lack a record set.
func (k *Keeper) orphaned(s records.Snapshot) (all []records.Orphan) {
	seen := map[records.Orphan]time.Time{}
	for _, o := range s.Orphans(k.config.Cluster) {
		at := k.readAt(o.Key.Zone)
		first, known := k.orphans[o]
		if !known {
			first = at
		} else if at.After(first) {
			all = append(all, o)
		}
		seen[o] = first
	}
	k.orphans = seen
	return all
}

// readAt returns when a zone was read, by its key.
func (k *Keeper) readAt(zone string) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state.read[zone].at
}

// failed notes that nothing is known: this cluster may be the one that is cut off.
func (k *Keeper) failed() {
	clear(k.others)
	for _, r := range k.own {
		r.fresh = 0
	}
}

// zone renews the lease in a zone, and finds out which clusters are silent there. clusters are those that contribute, as was last read.
func (k *Keeper) zone(ctx context.Context, z records.Zone, clusters []string, marks *records.Marks) error {
	key := z.ID.Key()
	contributes := slices.Contains(clusters, k.config.Cluster)
	r := k.own[key]
	if r == nil {
		r = &renewal{}
		k.own[key] = r
	}
	if r.isUnused(contributes, k.readAt(key)) {
		return k.end(ctx, z)
	}
	err := k.renew(ctx, z, r)
	k.config.Metrics.renewed(err)
	if err != nil {
		r.have, r.fresh = nil, 0
		delete(k.others, key)
		return err
	}
	if r.renewed(time.Now(), k.config.Lease); r.fresh == freshRenewals {
		k.forget(z) // others may have taken this cluster out since the record sets were read
	}
	marks.Back[key] = r.fresh >= freshRenewals
	leases, err := k.leases(ctx, z)
	if _, own := leases[k.config.Cluster]; err == nil && !own {
		err = fmt.Errorf("the leases of zone %s lack the one that was just written", z.Name)
	}
	if err != nil {
		delete(k.others, key)
		return err
	}
	marks.Silent[key] = k.silent(ctx, z, clusters, leases)
	k.config.Metrics.silentIn(z, len(marks.Silent[key]))
	return nil
}

// renewed notes a renewal. After a longer time than a lease it is the first one again.
func (r *renewal) renewed(now time.Time, lease time.Duration) {
	if now.Sub(r.at) > lease {
		r.fresh = 0
	}
	r.at = now
	r.fresh++
}

// isUnused reports whether the lease is not needed, which two reads of the zone must say: one list may lack record sets. read is when the
// zone was read.
func (r *renewal) isUnused(contributes bool, read time.Time) bool {
	switch {
	case contributes:
		r.unused = time.Time{}
	case r.unused.IsZero():
		r.unused = read
	}
	return !contributes && (r.have == nil || read.After(r.unused))
}

// leases reads the leases of all clusters in a zone, by cluster.
func (k *Keeper) leases(ctx context.Context, z records.Zone) (map[string]records.Set, error) {
	q := azure.Query{Scope: z.ID, Type: network.DNSZones + "/TXT", Suffix: records.LeaseLabel}
	if z.Private {
		q.Type = network.PrivateDNSZones + "/TXT"
	}
	docs, err := k.config.Azure.Fresh().List(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list the leases of zone %s: %w", z.ID, err)
	}
	all := map[string]records.Set{}
	for _, doc := range docs {
		set, err := records.Read(z, doc)
		if err != nil {
			return nil, err
		}
		if l, ok := records.ReadLease(set); ok {
			all[l.Cluster] = set
		}
	}
	return all, nil
}

// renew writes the lease of this cluster.
func (k *Keeper) renew(ctx context.Context, z records.Zone, r *renewal) error {
	lease := records.Lease{Cluster: k.config.Cluster, Every: k.every, At: time.Now()}
	if r.have == nil {
		have, err := k.readLease(ctx, z)
		if err != nil {
			return err
		}
		r.have = have
	}
	step, err := lease.Renew(z, r.have)
	if err != nil {
		return err
	}
	doc, err := k.write(ctx, step)
	if err != nil {
		return err
	}
	set, err := records.Read(z, doc)
	r.have = &set
	return err
}

// end deletes the lease of this cluster in a zone where it shares nothing any longer.
func (k *Keeper) end(ctx context.Context, z records.Zone) error {
	r := k.own[z.ID.Key()]
	if r.have == nil {
		return nil
	}
	_, err := k.write(ctx, records.Lease{Cluster: k.config.Cluster}.End(*r.have))
	delete(k.own, z.ID.Key())
	if azure.IsNotFound(err) {
		return nil
	}
	return err
}

// silent returns the clusters that do not renew their leases, in order. If there is a new one, the record sets are read again, because it
// may have contributed since they were read.
func (k *Keeper) silent(ctx context.Context, z records.Zone, clusters []string, leases map[string]records.Set) (all []string) {
	now, before, seen := time.Now(), k.others[z.ID.Key()], map[string]sighting{}
	for _, cluster := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(clusters, slices.Collect(maps.Keys(leases)))))) {
		if cluster == k.config.Cluster {
			continue
		}
		one := sighting{every: k.every}
		if set, ok := leases[cluster]; ok {
			one.etag = set.Etag
			if l, ok := records.ReadLease(set); ok {
				one.every = max(l.Every, k.every)
			}
		}
		if last, known := before[cluster]; known && last.etag == one.etag {
			one.since, one.silent = last.since, now.Sub(last.since) >= time.Duration(renewals*float64(one.every))
			if one.silent && !last.silent {
				k.config.Log.WarnContext(ctx, "cluster is silent", "cluster", cluster, "zone", z.Name, "since", last.since.UTC())
				k.forget(z)
			}
		} else {
			one.since = now
		}
		if seen[cluster] = one; one.silent {
			all = append(all, cluster)
		}
	}
	k.others[z.ID.Key()] = seen
	return all
}

// write carries out one step at the pace of its zone.
func (k *Keeper) write(ctx context.Context, s records.Step) (azure.Document, error) {
	if k.config.DryRun {
		return nil, errDryRun
	}
	return (&run{Provider: k.Provider}).send(ctx, s)
}

// errDryRun is the error of leases that are not written.
var errDryRun = errors.New("dry run: leases are not written")

// mark changes which contributions are answered. Between parts of the work ExternalDNS has its turn.
func (k *Keeper) mark(ctx context.Context, marks records.Marks) error {
	for {
		if _, err := k.snapshot(ctx); err != nil {
			return err
		}
		err := k.part(ctx, marks)
		if left, ok := errors.AsType[*IncompleteError](err); !ok || left.Done == 0 {
			return err
		}
	}
}

// part makes what of the changes fits in the time of one request.
func (k *Keeper) part(ctx context.Context, marks records.Marks) error {
	return k.locked(ctx, func(ctx context.Context, s records.Snapshot) error {
		now := s.Orphans(k.config.Cluster) // what was written since the round began may need some
		marks.Orphans = slices.DeleteFunc(marks.Orphans, func(o records.Orphan) bool { return !slices.Contains(now, o) })
		plan := s.Mark(marks, k.config.Options)
		if len(plan.Last) > 0 {
			k.lookAgain(ctx, s, plan.Last)
			plan = s.Mark(marks, k.config.Options)
		}
		k.report(ctx, plan.Problems)
		if len(plan.Hosts) == 0 || k.config.DryRun {
			return nil
		}
		k.config.Log.InfoContext(ctx, "changing shared names", "sets", len(plan.Hosts), "silent", marks.Silent)
		err := k.carryOut(ctx, plan)
		if len(marks.Orphans) > 0 {
			k.mu.Lock()
			k.removed++ // not before: the records that ExternalDNS reads meanwhile may have the claims or not
			k.mu.Unlock()
		}
		return err
	})
}

// lookAgain reads sets where no other cluster was known when the zone was read: one may have come since. The number of sets in a round is
// limited.
func (k *Keeper) lookAgain(ctx context.Context, s records.Snapshot, sets []records.Key) {
	const most = 20
	for _, key := range sets[:min(len(sets), most)] {
		old := s.Sets[key]
		doc, err := k.config.Azure.Fresh().Get(ctx, old.ID())
		if err != nil {
			k.config.Log.DebugContext(ctx, "a set that may have other clusters was not read", "name", old.Name, "error", err)
			continue
		}
		set, err := records.Read(old.Zone, doc)
		if err != nil || set.Etag == old.Etag {
			continue
		}
		k.note(old.Zone, key, doc)
		s.Sets[key] = set
	}
}

// routes brings back what this cluster has in Traffic Manager.
func (k *Keeper) routes(ctx context.Context, s records.Snapshot) error {
	writes, err := s.Routes(k.config.Options)
	if err != nil || k.config.DryRun {
		return err
	}
	return (&run{Provider: k.Provider}).traffic(ctx, writes)
}

// locked does something while nothing else reads or writes zones, for the time of one request.
func (k *Keeper) locked(ctx context.Context, do func(ctx context.Context, s records.Snapshot) error) error {
	ctx, cancel := context.WithTimeout(ctx, k.config.Deadline)
	defer cancel()
	release, err := k.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	k.mu.Lock()
	s, ok := k.known()
	k.mu.Unlock()
	if !ok {
		return errors.New("the zones are being read again")
	}
	return do(ctx, s)
}
