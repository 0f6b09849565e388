package nodes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// Zones are the availability zones of a region, from the document of the provider
// Microsoft.Compute: the zones that virtual machines can be in. A region without
// zones has none. Azure writes regions as people do in it ("West Europe").
func Zones(provider azure.Document, region string) ([]string, error) {
	var p struct {
		ResourceTypes []struct {
			ResourceType string `json:"resourceType"`
			ZoneMappings []struct {
				Location string   `json:"location"`
				Zones    []string `json:"zones"`
			} `json:"zoneMappings"`
		} `json:"resourceTypes"`
	}
	if err := json.Unmarshal(provider, &p); err != nil {
		return nil, fmt.Errorf("document of the provider Microsoft.Compute: %w", err)
	}
	var zones []string
	for _, t := range p.ResourceTypes {
		if !strings.EqualFold(t.ResourceType, "virtualMachines") {
			continue
		}
		for _, m := range t.ZoneMappings {
			if sameRegion(m.Location, region) {
				zones = append(zones, m.Zones...)
			}
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones), nil
}

func sameRegion(a, b string) bool { return strings.EqualFold(normal(a), normal(b)) }

// normal is a region as ids and labels write it.
func normal(region string) string {
	return strings.ToLower(strings.ReplaceAll(region, " ", ""))
}
