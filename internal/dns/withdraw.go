package dns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/records"
)

// Withdrawal is what became of the contributions of a cluster.
type Withdrawal struct {
	Names []string `json:"names"`          // those that the cluster left
	Kept  []string `json:"kept,omitempty"` // those that only it has
}

// LiveError says that a cluster lives, so it would add its contributions again.
type LiveError struct {
	Cluster string
	Ago     time.Duration // since the renewal of its lease, by its own clock
}

func (e *LiveError) Error() string {
	return fmt.Sprintf("cluster %s renewed its lease %v ago: stop its ExternalDNS first", e.Cluster, e.Ago.Round(time.Second))
}

// Withdraw takes all contributions of the cluster of the configuration out of shared names, in the zones of the provider, for a cluster
// that is gone. Names that no other cluster has stay, but with last. A cluster that renewed its lease lately is an error, but with live.
func (p *Provider) Withdraw(ctx context.Context, last, live bool) (w Withdrawal, err error) {
	s, err := p.snapshot(ctx)
	if err != nil {
		return w, err
	}
	if err := p.checkDead(ctx, s, live); err != nil {
		return w, err
	}
	changes, kept := s.Leave(p.config.Cluster, last)
	w.Names, w.Kept = names(changes), kept
	for len(changes.Delete) > 0 && !p.config.DryRun {
		before := len(changes.Delete)
		if err := p.Apply(ctx, changes); err != nil {
			left, ok := errors.AsType[*IncompleteError](err)
			if !ok || left.Done == 0 {
				return w, err
			}
		}
		if s, err = p.snapshot(ctx); err != nil {
			return w, err
		}
		if changes, _ = s.Leave(p.config.Cluster, last); len(changes.Delete) >= before {
			return w, fmt.Errorf("%d records are left; the log says why", len(changes.Delete))
		}
	}
	return w, p.endLeases(ctx, s)
}

// names returns the names of changes, but for those of the registry.
func names(c records.Changes) []string {
	all := []string{}
	for _, e := range c.Delete {
		if len(e.Labels) == 0 && (len(all) == 0 || all[len(all)-1] != e.Name) {
			all = append(all, e.Name)
		}
	}
	return all
}

// checkDead returns an error if the cluster renewed a lease lately.
func (p *Provider) checkDead(ctx context.Context, s records.Snapshot, live bool) error {
	if live {
		return nil
	}
	for _, z := range s.Zones {
		set, err := p.readLease(ctx, z)
		if err != nil {
			return err
		}
		if set == nil {
			continue
		}
		if l, ok := records.ReadLease(*set); ok && time.Since(l.At) < time.Duration(renewals*float64(l.Every)) {
			return &LiveError{p.config.Cluster, time.Since(l.At)}
		}
	}
	return nil
}

// endLeases deletes the leases of the cluster where it shares nothing any longer.
func (p *Provider) endLeases(ctx context.Context, s records.Snapshot) error {
	for _, z := range s.Zones {
		set, err := p.readLease(ctx, z)
		if err != nil {
			return err
		}
		if set == nil || p.config.DryRun || slices.Contains(s.Clusters(z), p.config.Cluster) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, p.config.Deadline)
		_, err = (&run{Provider: p}).send(ctx, records.Lease{Cluster: p.config.Cluster}.End(*set))
		cancel()
		if err != nil && !azure.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (p *Provider) readLease(ctx context.Context, z records.Zone) (*records.Set, error) {
	return (&run{Provider: p}).read(ctx, records.Step{ID: records.LeaseID(z, p.config.Cluster), Zone: z})
}
