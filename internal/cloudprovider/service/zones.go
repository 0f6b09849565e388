package service

import (
	"fmt"
	"reflect"
	"slices"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// unzoned is the error of a decision that would make public IPs or internal frontends while
// the zones of the region are not known: they never get them later.
type unzoned struct {
	services map[string]bool // by key, those of which each step is one's alone
	cause    error
}

func (u *unzoned) Error() string {
	return fmt.Sprintf("a new address spans the zones of the region, which are not known yet: %v", u.cause)
}

func (u *unzoned) Unwrap() error { return u.cause }

// waitForZones is the error of a decision that would be another one if there were zones, or
// that another one follows.
func waitForZones(in loadbalancer.Input, without plan.Graph, cause error) error {
	in.Config.Zones = []string{"any"}
	with, _, err := loadbalancer.Desired(in)
	if err != nil {
		return err
	}
	is, err := plan.Diff(in.Have, without)
	if err != nil {
		return err
	}
	would, err := plan.Diff(in.Have, with)
	if err != nil || len(without.Pending) == 0 && reflect.DeepEqual(is.Steps, would.Steps) {
		return err
	}
	u := &unzoned{services: map[string]bool{}, cause: cause}
	for _, s := range is.Steps {
		same := func(other plan.Step) bool { return reflect.DeepEqual(s, other) }
		switch {
		case slices.ContainsFunc(would.Steps, same):
		case len(s.For) != 1:
			u.services = nil // it is nobody's alone
			return u
		default:
			u.services[s.For[0]] = true
		}
	}
	return u
}

// among names those of a batch of n who wait, by their keys, so that the others are served
// without them.
func (u *unzoned) among(n int, key func(i int) string) error {
	culprits := map[int]error{}
	for i := range n {
		if u.services[key(i)] {
			culprits[i] = u
		}
	}
	if len(culprits) == 0 {
		return u
	}
	return &reconcile.Refusal{Culprits: culprits}
}
