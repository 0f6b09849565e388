package nodes

import (
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

const scheme = "azure://"

// ProviderID returns the provider id of a machine: its id as Azure spells it, with the resource group
// in lower case. Other programs compare provider ids as text, so there is only this spelling.
func ProviderID(id azure.ID) (string, error) {
	text := string(id)
	const word = "/resourceGroups/"
	start := strings.Index(text, word)
	if start < 0 || !strings.HasPrefix(text, "/subscriptions/") {
		return "", fmt.Errorf("%q isn't in Azure resource ID format: it lacks /subscriptions/NAME/resourceGroups/NAME", text)
	}
	start += len(word)
	end := strings.IndexByte(text[start:], '/')
	if end <= 0 || !strings.HasPrefix(text[start+end:], "/providers/") {
		return "", fmt.Errorf("%q isn't in Azure resource ID format: no /providers/ follows its resource group", text)
	}
	end += start
	return scheme + text[:start] + strings.ToLower(text[start:end]) + text[end:], nil
}

// Managed reports whether a provider id names a machine in Azure. Nodes with other provider ids, such
// as "aws://...", do not belong to this provider. The comparison is case-sensitive.
func Managed(providerID string) bool {
	rest, ours := strings.CutPrefix(providerID, scheme+"/subscriptions/")
	_, rest, grouped := strings.Cut(rest, "/resourceGroups/")
	return ours && grouped && strings.Contains(rest, "/providers/Microsoft.Compute/")
}

// MachineID returns the id of the machine that a provider id names, and false for others.
func MachineID(providerID string) (azure.ID, bool) {
	if !Managed(providerID) {
		return "", false
	}
	id, err := azure.ParseID(strings.TrimPrefix(providerID, scheme))
	if err != nil {
		return "", false
	}
	return Holder(id), true
}

// Holder returns the id of the machine that a disk names as its holder: disks call instance 7 of the scale set v v_7.
func Holder(id azure.ID) azure.ID {
	if set := id.Parent(); set.Is(compute.ScaleSets) {
		if number, long := cutPrefixFold(id.Name(), set.Name()+"_"); long {
			return id[:len(id)-len(id.Name())] + azure.ID(number)
		}
	}
	return id
}

// MachineName returns the name of a machine as Azure shows it: that of instance 7 of the scale set v is v_7.
func MachineName(id azure.ID) string {
	if set := id.Parent(); set.Is(compute.ScaleSets) {
		return set.Name() + "_" + Holder(id).Name()
	}
	return id.Name()
}

// Holders returns the machines that have a disk, by the document of the disk.
func Holders(disk azure.Document) ([]azure.ID, error) {
	var d struct {
		ManagedBy         azure.ID
		ManagedByExtended []azure.ID // of a shared disk
	}
	if err := json.Unmarshal(disk, &d); err != nil {
		return nil, fmt.Errorf("machines of a disk: %w", err)
	}
	all := d.ManagedByExtended
	if len(all) == 0 && d.ManagedBy != "" {
		all = []azure.ID{d.ManagedBy}
	}
	for i, machine := range all {
		all[i] = Holder(machine)
	}
	return all, nil
}

func cutPrefixFold(s, prefix string) (rest string, found bool) {
	if len(s) <= len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
