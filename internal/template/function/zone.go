package function

import "strings"

// LogicalZone is the logical name of a zone by its physical name, "" for none.
func LogicalZone(known map[string]string, name string) string {
	for logical, physical := range known {
		if strings.EqualFold(physical, name) {
			return logical
		}
	}
	return ""
}

// PhysicalZone is the physical name of a zone by its logical name, "" for none.
func PhysicalZone(known map[string]string, name string) string { return known[name] }
