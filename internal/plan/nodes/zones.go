package nodes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// Zones returns the availability zones of a region for virtual machines, from the document of the
// provider Microsoft.Compute. A region without zones has none. The document uses display names of
// regions ("West Europe").
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

// normal returns the name of a region as in ids and labels.
func normal(region string) string {
	return strings.ToLower(strings.ReplaceAll(region, " ", ""))
}
