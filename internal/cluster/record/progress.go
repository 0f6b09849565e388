package record

import (
	"context"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/forecast"
	"kaz/internal/cluster/naming"
)

// Progress is how far Azure has come with a cluster.
type Progress struct {
	Status
	// Began is when the open change began, or the last deployment, zero if Azure does not say it.
	Began time.Time
	// Open is the change that has begun and not ended, nil for none.
	Open *Change
	// Expected are the units of the definition, empty if it is not known.
	Expected []string
	// Forecast are the same units, to estimate how long the rest takes.
	Forecast []forecast.Unit
	Machines []Machine
}

// Machine is a machine of a cluster.
type Machine struct {
	Name  string
	State string // provisioningState
}

// UnderWay reports whether a deployment or a change has begun and not ended.
func (p Progress) UnderWay() bool { return p.Open != nil || isRunning(p.State) }

// Progress reads how far Azure has come with a cluster.
func (st Store) Progress(ctx context.Context, n naming.Names) (Progress, error) {
	s, open, err := st.readWithChange(ctx, n)
	p := Progress{Status: s.status(n, open), Open: open, Began: s.Main.Began()}
	if err != nil || p.State == Absent {
		return p, err
	}
	if open != nil {
		p.Began, _ = time.Parse(time.RFC3339, open.Began) // zero without it
	}
	if s.Definition != nil {
		if plan, err := cluster.WithMembers(*s.Definition, s.Generations()); err == nil {
			p.Forecast = forecast.Of(plan.Graph)
			for i := range p.Forecast {
				u := &p.Forecast[i]
				p.Expected = append(p.Expected, u.Name)
				if d, begun := s.Units[u.Name]; begun {
					u.Began, u.Took, u.Ended = d.Began(), d.Took(), d.Properties.ProvisioningState == "Succeeded"
				}
			}
		}
	}
	p.Machines, err = st.fleet(ctx, n, s)
	return p, err
}

// fleet reads the machines of a cluster: those that have its tag, and the instances of its scale sets.
func (st Store) fleet(ctx context.Context, n naming.Names, s State) ([]Machine, error) {
	all, err := st.Machines(ctx, n)
	if err != nil {
		return nil, err
	}
	sets := map[string]bool{}
	for key, r := range s.Resources {
		if !strings.EqualFold(r.Type, ScaleSetType) || !strings.EqualFold(r.Tags[naming.ClusterTag], n.Cluster) {
			continue
		}
		sets[key] = true
		instances, err := st.Instances(ctx, r.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, instances...)
	}
	seen := map[string]bool{}
	var fleet []Machine
	for _, m := range all {
		ours := strings.EqualFold(m.Tags[naming.ClusterTag], n.Cluster) || sets[m.set().Key()]
		if ours && !seen[m.ID.Key()] {
			seen[m.ID.Key()] = true
			fleet = append(fleet, Machine{m.name(), m.Properties.ProvisioningState})
		}
	}
	slices.SortFunc(fleet, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return fleet, nil
}

// set is the scale set that a machine is an instance of, "" for none.
func (i Instance) set() azure.ID {
	if i.Properties.ScaleSet.ID != "" {
		return i.Properties.ScaleSet.ID
	}
	if up := i.ID.Parent(); up.Is(ScaleSetType) {
		return up
	}
	return ""
}

// name is the name of a machine in the cluster, as far as Azure has chosen it.
func (i Instance) name() string {
	if i.Properties.OS.Name != "" {
		return strings.ToLower(i.Properties.OS.Name)
	}
	return i.ID.Name()
}
