package core

import (
	"errors"
	"maps"
	"strings"

	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/world"
)

// CountedFault is a rule with its number, and with how often it has matched and applied.
type CountedFault = fault.Counted

// Settings are what can change while a local Azure runs.
type Settings struct {
	// Latency is a factor: 0 is no time, 1 is as long as on Azure.
	Latency  float64
	Throttle bool
	Quotas   map[string]int
}

// Settings returns the settings of now.
func (e *Emulator) Settings() Settings {
	s := Settings{Latency: e.Latency.Factor.Value(), Throttle: e.Throttle.On()}
	e.Read(func(t *world.Transaction) { s.Quotas = maps.Clone(t.Quotas) })
	return s
}

// SetLatency changes how long things take that begin from now on.
func (e *Emulator) SetLatency(factor float64) { e.Latency.Factor.Set(factor) }

// SetThrottle turns rate limits on or off. All limits begin anew.
func (e *Emulator) SetThrottle(on bool) { e.Throttle.Switch(on) }

// SetQuotas adds or replaces limits of vCPUs. Machines that exceed a new limit stay.
func (e *Emulator) SetQuotas(limits map[string]int) error {
	return e.Write(func(*world.Transaction) error {
		quotas := maps.Clone(e.Tenancy.Quotas)
		if quotas == nil {
			quotas = map[string]int{}
		}
		for name, limit := range limits {
			maps.DeleteFunc(quotas, func(known string, _ int) bool { return strings.EqualFold(known, name) })
			quotas[name] = limit
		}
		e.Tenancy.Quotas = quotas
		return nil
	})
}

// Stored returns the number of resources that are stored.
func (e *Emulator) Stored() (count int) {
	e.Read(func(t *world.Transaction) { count = len(t.All()) })
	return count
}

// Clear removes all resources with everything that they hold, and cancels their operations. Locks and policies do not refuse it. It
// returns the number of resources that were stored.
func (e *Emulator) Clear() (count int, err error) {
	err = e.Write(func(t *world.Transaction) error {
		count = len(t.All())
		// What the removal of a resource creates, such as a deleted key vault, is removed in the next round.
		const mostRounds = 10
		for range mostRounds {
			all := t.All()
			if len(all) == 0 {
				return nil
			}
			for _, entry := range all {
				t.Delete(entry.ID)
			}
		}
		return errors.New("the removal of resources creates others again and again")
	})
	return count, err
}
