package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"kaz/internal/plan/records"
)

// Name is the explanation of a name.
type Name struct {
	Name  string `json:"name"`
	Zones []Zone `json:"zones"`
	// Waits are what must happen next, and Problems what does not happen by itself.
	Waits    []string `json:"waits,omitempty"`
	Problems []string `json:"problems,omitempty"`
}

// Zone is what one zone has of a name.
type Zone struct {
	ID      string   `json:"id"`
	Private bool     `json:"private,omitempty"`
	Sets    []Set    `json:"recordSets,omitempty"`
	Owners  []Owner  `json:"owners,omitempty"`
	Answers []Answer `json:"answers,omitempty"`
}

// Set is a record set.
type Set struct {
	Type          string         `json:"type"`
	TTL           int64          `json:"ttl"` // seconds
	Targets       []string       `json:"targets,omitempty"`
	Alias         string         `json:"alias,omitempty"` // id of the resource that the set follows
	Contributions []Contribution `json:"contributions,omitempty"`
}

// Contribution is what a cluster has in a shared record set.
type Contribution struct {
	SetIdentifier string   `json:"setIdentifier"`
	Cluster       string   `json:"cluster"`
	TTL           int64    `json:"ttl"`
	Targets       []string `json:"targets"`
	From          string   `json:"from,omitempty"` // KIND/NAMESPACE/NAME
	State         string   `json:"state"`
	// Renewed is when the cluster renewed its lease, by its own clock; zero if there is no lease.
	Renewed time.Time `json:"renewed,omitzero"`
}

// Owner is a TXT record of ExternalDNS's registry.
type Owner struct {
	Record string `json:"record"`
	Text   string `json:"text"`
}

// Explain decides what the facts mean.
func (f Facts) Explain() Name {
	n := Name{Name: f.Name}
	for _, z := range f.Zones {
		one := Zone{ID: string(z.Zone.ID), Private: z.Zone.Private, Answers: z.Answers}
		for _, s := range z.Sets {
			one.Sets = append(one.Sets, f.set(z, s, &n))
		}
		for _, s := range z.Claims {
			for _, text := range s.Targets {
				one.Owners = append(one.Owners, Owner{s.FullName(), text})
			}
		}
		for _, a := range z.Answers {
			n.compare(z, a)
		}
		n.Zones = append(n.Zones, one)
	}
	if !slices.ContainsFunc(n.Zones, func(z Zone) bool { return len(z.Sets) > 0 }) {
		n.problem("there is no record set of the name")
	}
	return n
}

func (n *Name) wait(format string, args ...any) {
	n.Waits = append(n.Waits, fmt.Sprintf(format, args...))
}

func (n *Name) problem(format string, args ...any) {
	n.Problems = append(n.Problems, fmt.Sprintf(format, args...))
}

// set explains a record set.
func (f Facts) set(z ZoneFacts, s records.Set, n *Name) Set {
	v := Set{Type: s.Type, TTL: s.TTL, Targets: s.Targets, Alias: s.Alias}
	if s.Unreadable != nil {
		n.problem("the %s record set has contributions that cannot be read, so no cluster changes it: %v", s.Type, s.Unreadable)
	}
	live := s.Shares.Live()
	for _, id := range slices.Sorted(maps.Keys(s.Shares)) {
		c := s.Shares[id]
		lease, leased := z.Leases[c.Cluster]
		one := Contribution{SetIdentifier: id, Cluster: c.Cluster, TTL: c.TTL, Targets: c.Targets, From: c.Resource}
		if leased {
			one.Renewed = lease.At.UTC()
		}
		if c.Routing != nil {
			one.State = n.routed(s, id, c, z.Monitors[s.Alias])
		} else {
			one.State = state(c, slices.Contains(live, id))
			f.judge(n, c, lease, leased)
		}
		v.Contributions = append(v.Contributions, one)
	}
	return v
}

// judge notes what keeps a contribution from being answered, or will do so.
func (f Facts) judge(n *Name, c records.Contribution, lease records.Lease, leased bool) {
	late := f.Now.Sub(lease.At)
	switch {
	case c.Out != "":
		n.problem("cluster %s: %s", c.Cluster, outText[c.Out])
	case !leased:
		n.wait("cluster %s has no lease yet; without one it is taken out of the answers", c.Cluster)
	case late > 2*lease.Every:
		n.wait("cluster %s renews its lease every %v, and did so %v ago by its own clock: it is taken out of the answers if it does not "+
			"go on", c.Cluster, lease.Every, late.Round(time.Second))
	}
}

// routed says how Traffic Manager routes to a contribution, and notes what it does not have.
func (n *Name) routed(s records.Set, id string, c records.Contribution, monitors map[string]string) string {
	status, there := monitors[id]
	switch {
	case !there:
		n.problem("profile %s has no endpoint %s; cluster %s writes it again within a renewal of its lease", s.Alias, id, c.Cluster)
		status = "missing"
	case status != "Online":
		n.wait("Traffic Manager says %s of endpoint %s, which it asks by %s", status, id, c.Routing.Probe)
	}
	return c.Routing.Policy + " " + c.Routing.Value + ": " + status
}

// outText says why a contribution is not answered.
var outText = map[records.Out]string{
	records.Silent: "it did not renew its lease, so the other clusters took it out of the answers; it comes back by itself after " +
		"two renewals",
	records.Empty: "its Service has no ready endpoint",
}

func state(c records.Contribution, live bool) string {
	switch {
	case c.Out == "":
		return "answered"
	case live:
		return "answered, because no other one is left (" + string(c.Out) + ")"
	}
	return "out: " + string(c.Out)
}

// compare notes a name server that does not answer what the zone has.
func (n *Name) compare(z ZoneFacts, a Answer) {
	if a.Error != "" {
		return
	}
	i := slices.IndexFunc(z.Sets, func(s records.Set) bool { return s.Type == a.Type })
	if i < 0 {
		if len(a.Targets) > 0 {
			n.problem("name server %s answers %s for %s, which the zone does not have", a.Server, strings.Join(a.Targets, ", "), a.Type)
		}
		return
	}
	s := z.Sets[i]
	if s.Alias == "" && s.Type != "TXT" && !slices.Equal(slices.Sorted(slices.Values(s.Targets)), a.Targets) {
		n.wait("name server %s does not answer the %s record set yet: it has %s", a.Server, a.Type,
			cmp.Or(strings.Join(a.Targets, ", "), a.Code))
	}
}

// String returns the explanation as a text.
func (n Name) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Name %s\n", n.Name)
	for _, z := range n.Zones {
		fmt.Fprintf(w, "  zone\t%s (%s)\n", z.ID, z.kind())
		if len(z.Sets) == 0 {
			fmt.Fprintf(w, "  no record set\n")
		}
		for _, s := range z.Sets {
			fmt.Fprintf(w, "  %s\t%d s\t%s\n", s.Type, s.TTL, cmp.Or(s.Alias, strings.Join(s.Targets, ", ")))
			for _, c := range s.Contributions {
				fmt.Fprintf(w, "    %s\t%d s\t%s\t%s\t%s\n", c.SetIdentifier, c.TTL, strings.Join(c.Targets, ", "), c.State, c.origin())
			}
		}
		for _, o := range z.Owners {
			fmt.Fprintf(w, "  owner\t%s\t%s\n", o.Record, o.Text)
		}
		for _, a := range z.Answers {
			fmt.Fprintln(w, a.line())
		}
	}
	for _, list := range []struct {
		title string
		lines []string
	}{{"Waits", n.Waits}, {"Problems", n.Problems}} {
		for i, line := range list.lines {
			if i == 0 {
				fmt.Fprintf(w, "%s:\n", list.title)
			}
			fmt.Fprintf(w, "- %s\n", line)
		}
	}
	if err := w.Flush(); err != nil { // a strings.Builder takes all
		return err.Error()
	}
	return b.String()
}

// line is the line of an answer in a text.
func (a Answer) line() string {
	return fmt.Sprintf("  answer\t%s\t%s", a.Type, a.text())
}

// text is what a name server answers.
func (a Answer) text() string {
	switch {
	case a.Error != "":
		return fmt.Sprintf("name server %s cannot be asked: %s", a.Server, a.Error)
	case len(a.Targets) == 0:
		return fmt.Sprintf("%s of %s", a.Code, a.Server)
	}
	return fmt.Sprintf("%s, %d s, of %s", strings.Join(a.Targets, ", "), a.TTL, a.Server)
}

func (z Zone) kind() string {
	if z.Private {
		return "private"
	}
	return "public"
}

// origin says where a contribution comes from.
func (c Contribution) origin() string {
	text := "cluster " + c.Cluster
	if c.From != "" {
		text += ", " + c.From
	}
	if !c.Renewed.IsZero() {
		text += ", lease renewed " + c.Renewed.Format(time.DateTime)
	}
	return text
}
