package netns

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kaz/internal/localazure/plane/fabric/wiring"
)

// Kernel applies a [wiring.Net] to the kernel. It must not be used by several goroutines at once.
type Kernel struct {
	have  wiring.Net
	rules map[string]wiring.Ruleset // the rulesets in force, by namespace
	// unsure are the namespaces with an error in the last Apply. For these, have contains everything that may exist,
	// and the next Apply writes everything again.
	unsure map[string]bool
}

// Apply changes the kernel to the net and touches only the differences. After an error the rest is in force, and the
// next Apply tries again.
func (k *Kernel) Apply(ctx context.Context, want wiring.Net) error {
	have, was := k.have, byName(k.have)
	next := wiring.Net{}
	unsure := map[string]bool{}
	var problems []error
	for _, s := range want.Namespaces {
		if _, ok := was[s.Name]; !ok && s.Own {
			if err := create(s.Name); err != nil {
				problems = append(problems, err)
				continue
			}
		}
		next.Namespaces = append(next.Namespaces, s)
	}
	lost := unlink(ctx, have, want)
	made, err := link(ctx, have, want)
	next.Links = made
	problems = append(problems, err...)
	devices := fresh(have, next)
	for i, s := range next.Namespaces {
		c := change{have: was[s.Name], want: s, devices: devices[s.Name], lost: lost, all: k.unsure[s.Name]}
		err := errors.Join(c.apply(ctx), k.filter(ctx, s))
		if err != nil {
			problems = append(problems, err)
			unsure[s.Name] = true
			next.Namespaces[i] = union(was[s.Name], s)
		}
	}
	problems = append(problems, k.remove(was, byName(want))...)
	k.have, k.unsure = next, unsure
	return errors.Join(problems...)
}

func (k *Kernel) remove(was, is map[string]wiring.Namespace) []error {
	var problems []error
	for name, s := range was {
		if _, stays := is[name]; stays || !s.Own {
			continue
		}
		delete(k.rules, name)
		if err := Remove(name); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// union returns everything that may exist in a namespace.
func union(a, b wiring.Namespace) wiring.Namespace {
	b.Addresses = slices.Concat(a.Addresses, b.Addresses)
	b.Neighbours = slices.Concat(a.Neighbours, b.Neighbours)
	b.Routes = slices.Concat(a.Routes, b.Routes)
	b.Marks = slices.Concat(a.Marks, b.Marks)
	return b
}

func byName(n wiring.Net) map[string]wiring.Namespace {
	all := map[string]wiring.Namespace{}
	for _, s := range n.Namespaces {
		all[s.Name] = s
	}
	return all
}

// create creates a namespace that forwards packets.
func create(name string) error {
	if err := Create(name); err != nil {
		return err
	}
	for _, s := range []struct{ name, value string }{
		{"ipv4/ip_forward", "1"},
		{"ipv6/conf/all/forwarding", "1"},
		{"ipv6/conf/all/accept_dad", "0"},
		{"ipv6/conf/default/accept_dad", "0"},
		{"ipv6/conf/default/accept_ra", "0"},
		{"ipv4/conf/all/rp_filter", "0"},
		{"ipv4/conf/default/rp_filter", "0"},
		{"ipv4/conf/all/send_redirects", "0"},
		{"ipv4/conf/default/send_redirects", "0"},
		// Ended connections expire soon, so that there is room for new connections.
		{"netfilter/nf_conntrack_tcp_timeout_time_wait", "5"},
		{"netfilter/nf_conntrack_tcp_timeout_close", "5"},
		// Packets of a connection can be missing in one direction.
		{"netfilter/nf_conntrack_tcp_be_liberal", "1"},
		// An accepted connection has the mark of the interface from which it came.
		{"ipv4/tcp_fwmark_accept", "1"},
		// Azure's idle timeout is four minutes.
		{"netfilter/nf_conntrack_udp_timeout", "240"},
		{"netfilter/nf_conntrack_udp_timeout_stream", "240"},
	} {
		if err := setting(name, s.name, s.value); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("network namespace %s: %w", name, err)
		}
	}
	return nil
}

// end names an interface.
type end struct{ namespace, device string }

// unlink removes links that are not wanted, and returns the interfaces that no longer exist. A link that cannot be
// removed is gone already with one of its namespaces.
func unlink(ctx context.Context, have, want wiring.Net) map[end]bool {
	lost := map[end]bool{}
	lines := map[string][]string{}
	wanted := linksOf(want)
	for _, l := range have.Links {
		if wanted[l] {
			continue
		}
		lost[end{l.A.Namespace, l.A.Name}], lost[end{l.B.Namespace, l.B.Name}] = true, true
		lines[l.A.Namespace] = append(lines[l.A.Namespace], "link del dev "+l.A.Name)
	}
	for namespace, all := range lines {
		_, _ = batch(ctx, namespace, all)
	}
	return lost
}

// link creates new links, and returns the wanted links that exist.
func link(ctx context.Context, have, want wiring.Net) (made []wiring.Link, problems []error) {
	lines := map[string][]string{}
	home, release := here()
	defer release()
	wanted := map[string]wiring.Link{}
	was := linksOf(have)
	for _, l := range want.Links {
		if was[l] {
			made = append(made, l)
			continue
		}
		there := Path(l.B.Namespace)
		if there == "" {
			there = home
		}
		line := fmt.Sprintf("link add name %s address %s type veth peer name %s address %s netns %s", l.A.Name, l.A.MAC, l.B.Name,
			l.B.MAC, there)
		lines[l.A.Namespace] = append(lines[l.A.Namespace], line)
		wanted[l.A.Namespace+" "+line] = l
	}
	for namespace, all := range lines {
		failures, err := batch(ctx, namespace, all)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, f := range failures {
			problems = append(problems, fmt.Errorf("network namespace %s: %w", namespace, f))
			delete(wanted, namespace+" "+f.line)
		}
		for _, line := range all {
			if l, ok := wanted[namespace+" "+line]; ok {
				made = append(made, l)
			}
		}
	}
	return made, problems
}

func linksOf(n wiring.Net) map[wiring.Link]bool {
	all := map[wiring.Link]bool{}
	for _, l := range n.Links {
		all[l] = true
	}
	return all
}

// fresh returns the new devices by namespace.
func fresh(have, want wiring.Net) map[string][]string {
	devices := map[string][]string{}
	was := linksOf(have)
	for _, l := range want.Links {
		if !was[l] {
			devices[l.A.Namespace] = append(devices[l.A.Namespace], l.A.Name)
			devices[l.B.Namespace] = append(devices[l.B.Namespace], l.B.Name)
		}
	}
	return devices
}

// change is the work in one namespace, except rules.
type change struct {
	have, want wiring.Namespace
	devices    []string // the new devices
	lost       map[end]bool
	all        bool // the contents of the namespace are unknown
}

func (c change) isNew(device string) bool { return c.all || slices.Contains(c.devices, device) }

func (c change) gone(device string) bool { return c.lost[end{c.want.Name, device}] }

func (c change) apply(ctx context.Context) error {
	var lines []string
	if (c.have.Name == "" || c.all) && c.want.Name != "" {
		lines = append(lines, "link set dev lo up")
	}
	for _, device := range c.devices {
		if err := c.quiet(device); err != nil {
			return fmt.Errorf("network namespace %s: %w", c.want.Name, err)
		}
		lines = append(lines, "link set dev "+device+" up")
	}
	lines = append(lines,
		difference(c, c.have.Addresses, c.want.Addresses, addressLine, func(a wiring.Address) string { return a.Device })...)
	lines = append(lines,
		difference(c, c.have.Neighbours, c.want.Neighbours, neighbourLine, func(n wiring.Neighbour) string { return n.Device })...)
	lines = append(lines, c.routes()...)
	failures, err := batch(ctx, c.want.Name, lines)
	problems := []error{err}
	marks := c.marks()
	for _, family := range []string{"-4", "-6"} {
		more, err := batch(ctx, c.want.Name, marks, family)
		problems = append(problems, err)
		failures = append(failures, more...)
	}
	for _, f := range failures {
		// A route is deleted with its device. A mark exists already.
		if !strings.Contains(f.line, " del ") && !strings.HasPrefix(f.line, "rule add") {
			problems = append(problems, f)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("network namespace %s: %w", c.want.Name, err)
	}
	return nil
}

// quiet stops the kernel from assigning IPv6 addresses to the interfaces of routers and of this machine. On the link to a
// machine, a router also answers for all addresses that the machine looks for, as in Azure. The reason is DHCP: a machine
// that gets its address by DHCP takes the addresses of its subnet for neighbours.
func (c change) quiet(device string) error {
	if c.want.Guest {
		return nil
	}
	if c.want.Own && strings.HasPrefix(device, machineLink) {
		for name, value := range map[string]string{"conf/" + device + "/proxy_arp": "1", "neigh/" + device + "/proxy_delay": "0"} {
			if err := setting(c.want.Name, "ipv4/"+name, value); err != nil {
				return err
			}
		}
	}
	err := setting(c.want.Name, "ipv6/conf/"+device+"/addr_gen_mode", "1")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the kernel has no IPv6
	}
	return err
}

// machineLink begins the names of a router's links to machines.
const machineLink = "n"

func addressLine(verb string, a wiring.Address) string {
	more := ""
	switch {
	case verb == "del":
	case a.Prefix.Addr().Is4():
		more = " noprefixroute"
	case a.Prefix.Addr().IsLinkLocalUnicast():
		more = " nodad"
	default:
		more = " nodad noprefixroute"
	}
	return fmt.Sprintf("addr %s %s dev %s%s", verb, a.Prefix, a.Device, more)
}

func neighbourLine(verb string, n wiring.Neighbour) string {
	if verb == "del" {
		return fmt.Sprintf("neigh del %s dev %s", n.Address, n.Device)
	}
	return fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", n.Address, n.MAC, n.Device)
}

// difference adds entries that are new or on a new device, and deletes others.
func difference[T comparable](c change, have, want []T, line func(verb string, t T) string, device func(T) string) []string {
	was, is := map[T]bool{}, map[T]bool{}
	for _, t := range have {
		was[t] = true
	}
	for _, t := range want {
		is[t] = true
	}
	var lines []string
	for _, t := range have {
		if !is[t] && !c.gone(device(t)) {
			lines = append(lines, line("del", t))
		}
	}
	for _, t := range want {
		if !was[t] || c.isNew(device(t)) {
			lines = append(lines, line("replace", t))
		}
	}
	return lines
}

// routes replaces changed routes, so that there is always a route.
func (c change) routes() []string {
	type place struct {
		table  uint32
		to     string
		metric int
	}
	at := func(r wiring.Route) place { return place{r.Table, r.To.String(), r.Metric} }
	was, is := map[place]wiring.Route{}, map[place]bool{}
	for _, r := range c.have.Routes {
		was[at(r)] = r
	}
	for _, r := range c.want.Routes {
		is[at(r)] = true
	}
	var lines []string
	for _, r := range c.have.Routes {
		if !is[at(r)] && (r.Device == "" || !c.gone(r.Device)) {
			lines = append(lines, "route del "+r.String())
		}
	}
	for _, r := range c.want.Routes {
		if old, ok := was[at(r)]; !ok || old != r || c.isNew(r.Device) {
			lines = append(lines, "route replace "+r.String())
		}
	}
	return lines
}

func marksOf(s wiring.Namespace) map[wiring.Mark]bool {
	all := map[wiring.Mark]bool{}
	for _, m := range s.Marks {
		all[m] = true
	}
	return all
}

// marks adds and deletes the rules that lead packets with a mark to their routing table.
func (c change) marks() []string {
	var lines []string
	is, was := marksOf(c.want), marksOf(c.have)
	for _, m := range c.have.Marks {
		if !is[m] {
			lines = append(lines, fmt.Sprintf("rule del fwmark 0x%x lookup %d priority %d", m.Value, m.Value, m.Order))
		}
	}
	for _, m := range c.want.Marks {
		if c.all || !was[m] {
			lines = append(lines, fmt.Sprintf("rule add fwmark 0x%x lookup %d priority %d", m.Value, m.Value, m.Order))
		}
	}
	return lines
}

// filter applies the ruleset of a namespace in one transaction.
func (k *Kernel) filter(ctx context.Context, s wiring.Namespace) error {
	have := k.rules[s.Name]
	changes := wiring.Changes(have, s.Rules)
	if changes == "" {
		return nil
	}
	if _, err := Run(ctx, s.Name, changes, "nft", "-f", "-"); err != nil {
		return fmt.Errorf("network namespace %s: %w", s.Name, err)
	}
	if k.rules == nil {
		k.rules = map[string]wiring.Ruleset{}
	}
	k.rules[s.Name] = s.Rules
	return nil
}

// Holds reports whether everything in a namespace is applied, with its links.
func (k *Kernel) Holds(namespace string) bool {
	for _, s := range k.have.Namespaces {
		if s.Name != namespace || k.unsure[namespace] {
			continue
		}
		for _, a := range s.Addresses {
			linked := func(l wiring.Link) bool { return l.B == wiring.End{Namespace: namespace, Name: a.Device, MAC: l.B.MAC} }
			if a.Device != "lo" && !slices.ContainsFunc(k.have.Links, linked) {
				return false
			}
		}
		return true
	}
	return false
}
