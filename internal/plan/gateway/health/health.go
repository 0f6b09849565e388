// Package health reads what an application gateway says of the health of its backends. Layer L1.
package health

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"kaz/internal/azure"
)

// Action is the action that asks an application gateway for the health of its backends.
const Action = "backendhealth"

// Healthy is the state of a backend that gets requests.
const Healthy = "Healthy"

// Backend is the health of one backend as some settings reach it, by the names of the gateway's children.
type Backend struct {
	Pool, Settings, Address, State, Log string
}

// answer is the answer of the action backendhealth.
type answer struct {
	Pools []struct {
		Pool     azure.Reference `json:"backendAddressPool"`
		Settings []struct {
			Settings azure.Reference `json:"backendHttpSettings"`
			Servers  []struct {
				Address string `json:"address"`
				Health  string `json:"health"`
				Log     string `json:"healthProbeLog"`
			} `json:"servers"`
		} `json:"backendHttpSettingsCollection"`
	} `json:"backendAddressPools"`
}

// Read returns the health of all backends, sorted. It is not nil without an error.
func Read(doc azure.Document) ([]Backend, error) {
	var a answer
	if len(doc) > 0 {
		if err := json.Unmarshal(doc, &a); err != nil {
			return nil, fmt.Errorf("the health of backends: %w", err)
		}
	}
	all := []Backend{}
	for _, pool := range a.Pools {
		for _, set := range pool.Settings {
			for _, s := range set.Servers {
				all = append(all, Backend{Pool: pool.Pool.ID.Name(), Settings: set.Settings.ID.Name(), Address: s.Address, State: s.Health,
					Log: s.Log})
			}
		}
	}
	slices.SortFunc(all, func(a, b Backend) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Settings, b.Settings), cmp.Compare(a.Address, b.Address))
	})
	return all, nil
}

// Pool is a pool as some settings reach it.
type Pool struct {
	Name, Settings string
	Backends       int
	Log            string // of the first backend that has one
}

// dead are the states of a backend that gets no requests. Other states than those known may be those of backends that do.
var dead = []string{"Unhealthy", "Down"}

// Dead returns the pools that have backends, of which none is healthy. all is sorted.
func Dead(all []Backend) (pools []Pool) {
	alive := false
	for i, b := range all {
		if i == 0 || b.Pool != all[i-1].Pool || b.Settings != all[i-1].Settings {
			if alive {
				pools = pools[:len(pools)-1]
			}
			pools, alive = append(pools, Pool{Name: b.Pool, Settings: b.Settings}), false
		}
		p := &pools[len(pools)-1]
		p.Backends++
		p.Log = cmp.Or(p.Log, b.Log)
		alive = alive || !slices.Contains(dead, b.State)
	}
	if alive {
		pools = pools[:len(pools)-1]
	}
	return pools
}
