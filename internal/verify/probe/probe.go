// Package probe is the table of the probes of `kaz verify`: each one tries a belief about Azure. The beliefs are in beliefs.md.txt, of
// which docs/reference/unproven.md is made. Layer L3.
package probe

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/verify/bench"
)

// Probe tries a belief.
type Probe struct {
	// Name is what the page of beliefs and --only call it.
	Name string
	Area string
	// Tries says what is done, and what the answer tells.
	Tries string
	// Rights are the actions that it needs at its resource group.
	Rights []string
	// Cents is a bound of what it costs, in hundredths of a US dollar. Minutes is how long it usually takes.
	Cents, Minutes int
	// Needs are the fixtures that it uses.
	Needs []string
	// Run does it. The requests of a bench that failed do nothing, so it has no errors to look at.
	Run func(context.Context, *bench.Bench)
}

// Fixture is what several probes use. It is made once for a run, when the first probe needs it.
type Fixture struct {
	Name           string
	Rights         []string
	Cents, Minutes int
	Make           func(context.Context, *bench.Bench)
}

// Table lists all probes, by area.
func Table() []Probe {
	return slices.Concat(
		networkProbes(), diskProbes(), machineProbes(), storageProbes(), dnsProbes(), deploymentProbes(), vaultProbes(), scaleSetProbes(),
		apiProbes(), gatewayProbes(),
	)
}

// Areas lists the areas in the order of the table.
func Areas() []string {
	var all []string
	for _, p := range Table() {
		if !slices.Contains(all, p.Area) {
			all = append(all, p.Area)
		}
	}
	return all
}

// Select returns the probes of areas, or with names; all probes if only is empty.
func Select(only []string) ([]Probe, error) {
	all := Table()
	if len(only) == 0 {
		return all, nil
	}
	for _, name := range only {
		if !slices.ContainsFunc(all, func(p Probe) bool { return p.Area == name || p.Name == name }) {
			return nil, fmt.Errorf("--only %s: no area or probe has this name; want some of %s, or a name of --list",
				name, strings.Join(Areas(), ", "))
		}
	}
	return slices.DeleteFunc(all, func(p Probe) bool {
		return !slices.Contains(only, p.Area) && !slices.Contains(only, p.Name)
	}), nil
}

// FixturesOf returns the fixtures that probes need, in the order in which they are made.
func FixturesOf(probes []Probe) []Fixture {
	return slices.DeleteFunc(fixtures(), func(f Fixture) bool {
		return !slices.ContainsFunc(probes, func(p Probe) bool { return slices.Contains(p.Needs, f.Name) })
	})
}

// Cost is what probes need together.
type Cost struct {
	Cents, Minutes int
	Rights         []string
}

// CostOf adds the costs of probes and of their fixtures. The rights are sorted.
func CostOf(probes []Probe) Cost {
	c := Cost{Rights: slices.Clone(groupRights)}
	for _, f := range FixturesOf(probes) {
		c.add(f.Cents, f.Minutes, f.Rights)
	}
	for _, p := range probes {
		c.add(p.Cents, p.Minutes, p.Rights)
	}
	slices.Sort(c.Rights)
	c.Rights = slices.Compact(c.Rights)
	return c
}

func (c *Cost) add(cents, minutes int, rights []string) {
	c.Cents += cents
	c.Minutes += minutes
	c.Rights = append(c.Rights, rights...)
}

// groupRights are what a run needs at the subscription.
var groupRights = []string{
	"Microsoft.Resources/subscriptions/read", "Microsoft.Resources/subscriptions/locations/read",
	"Microsoft.Resources/subscriptions/resourceGroups/read", "Microsoft.Resources/subscriptions/resourceGroups/write",
	"Microsoft.Resources/subscriptions/resourceGroups/delete",
}

// all returns the rights to read, write and delete resources of types.
func all(fullTypes ...string) []string {
	var rights []string
	for _, t := range fullTypes {
		rights = append(rights, t+"/read", t+"/write", t+"/delete")
	}
	return rights
}
