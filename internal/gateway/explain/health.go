package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"kaz/internal/azure"
)

// healthAnswer is the answer of the action backendhealth.
type healthAnswer struct {
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

func readHealthAnswer(doc azure.Document) ([]Health, error) {
	var answer healthAnswer
	if len(doc) > 0 {
		if err := json.Unmarshal(doc, &answer); err != nil {
			return nil, fmt.Errorf("the health of backends: %w", err)
		}
	}
	var all []Health
	for _, pool := range answer.Pools {
		for _, set := range pool.Settings {
			for _, s := range set.Servers {
				all = append(all, Health{Pool: pool.Pool.ID.Name(), Settings: set.Settings.ID.Name(), Address: s.Address, State: s.Health,
					Log: s.Log})
			}
		}
	}
	slices.SortFunc(all, func(a, b Health) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Settings, b.Settings), cmp.Compare(a.Address, b.Address))
	})
	return all, nil
}
