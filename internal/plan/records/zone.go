package records

import (
	"fmt"
	"strings"

	"golang.org/x/net/idna"

	"kaz/internal/azure"
)

const (
	longestLabel = 63
	longestName  = 253
	apex         = "@" // the relative name of the zone itself
)

// Zone is a zone of Azure DNS.
type Zone struct {
	ID      azure.ID
	Name    string // in lower case, without the final dot
	Private bool
}

// set returns the id of a record set of the zone.
func (z Zone) set(recordType, name string) azure.ID { return z.ID.Child(recordType, name) }

// SetID returns the id of the record set of a full name, and false if the zone does not contain it.
func (z Zone) SetID(name, recordType string) (azure.ID, bool) {
	relative, ok := z.relative(normalName(name))
	return z.set(recordType, relative), ok
}

// Contains reports whether a full name is in the zone.
func (z Zone) Contains(name string) bool {
	_, ok := z.relative(normalName(name))
	return ok
}

// relative returns a name relative to the zone, and false if the zone does not contain it.
func (z Zone) relative(name string) (string, bool) {
	if name == z.Name {
		return apex, true
	}
	return strings.CutSuffix(name, "."+z.Name)
}

// full returns the full name of a relative one.
func (z Zone) full(relative string) string {
	if relative == apex {
		return z.Name
	}
	return relative + "." + z.Name
}

// find returns the zone with the longest name that contains a name.
func find(zones []Zone, name string) (best Zone, relative string, ok bool) {
	for _, z := range zones {
		if r, in := z.relative(name); in && (!ok || len(z.Name) > len(best.Name)) {
			best, relative, ok = z, r, true
		}
	}
	return best, relative, ok
}

// normalName returns a name in lower case, in its ASCII form and without the final dot.
func normalName(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	for i := range len(name) {
		if name[i] >= 0x80 {
			if ascii, err := idna.ToASCII(name); err == nil {
				return strings.ToLower(ascii)
			}
			return name
		}
	}
	return name
}

// checkName returns why Azure cannot have a relative name.
func checkName(z Zone, relative, recordType string) error {
	if relative == apex {
		switch recordType {
		case "CNAME":
			return fmt.Errorf("a CNAME cannot be at the apex of zone %s; use an alias: annotation webhook-azure-alias at a record of "+
				"type A", z.Name)
		case "NS":
			return fmt.Errorf("the NS records at the apex of zone %s belong to Azure", z.Name)
		}
		return nil
	}
	if len(z.full(relative)) > longestName {
		return fmt.Errorf("the name has %d characters; at most %d are allowed", len(z.full(relative)), longestName)
	}
	for i, label := range strings.Split(relative, ".") {
		switch {
		case label == "*" && i == 0 && recordType != "NS":
		case label == "*":
			return fmt.Errorf("a wildcard must be the first label, and not of NS records")
		case !isLabel(label):
			return fmt.Errorf("label %q: must be 1 to %d letters, digits, underscores and hyphens; with a wildcard in a TXT name, set "+
				"--txt-wildcard-replacement of ExternalDNS", label, longestLabel)
		}
	}
	return nil
}

func isLabel(label string) bool {
	for _, r := range label {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return label != "" && len(label) <= longestLabel && label[0] != '-' && label[len(label)-1] != '-'
}
