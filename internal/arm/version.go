package arm

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
)

// versionTable gives api-versions by lower-case type or start of a type; the
// longest start that ends at a slash wins.
type versionTable map[string]string

// versions is the one place where api-versions are chosen. Azure's public SDKs
// speak these, so every cloud that users have knows them.
func versions() versionTable {
	const (
		compute    = "2025-04-01"
		disk       = "2025-01-02"
		network    = "2025-05-01"
		scaleSetIP = "2018-10-01" // the only version in which scale sets' NICs and public IPs exist
		resources  = "2021-04-01"
	)
	return versionTable{
		"microsoft.compute":                                                           compute,
		"microsoft.compute/disks":                                                     disk,
		"microsoft.compute/snapshots":                                                 disk,
		"microsoft.compute/diskaccesses":                                              disk,
		"microsoft.compute/diskencryptionsets":                                        disk,
		"microsoft.compute/galleries":                                                 "2025-03-03",
		"microsoft.compute/cloudservices":                                             "2024-11-04",
		"microsoft.compute/skus":                                                      "2021-07-01",
		"microsoft.compute/virtualmachinescalesets/networkinterfaces":                 scaleSetIP,
		"microsoft.compute/virtualmachinescalesets/publicipaddresses":                 scaleSetIP,
		"microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces": scaleSetIP,

		"microsoft.network":                 network,
		"microsoft.network/dnszones":        "2018-05-01",
		"microsoft.network/privatednszones": "2024-06-01",

		"microsoft.resources":               resources,
		"microsoft.resources/subscriptions": "2022-12-01",
		// Of any provider: what it offers, and its registration.
		"microsoft.resources/subscriptions/providers":      resources,
		"microsoft.resources/subscriptions/resourcegroups": resources,

		"microsoft.authorization":                      "2022-04-01",
		"microsoft.authorization/locks":                "2020-05-01",
		"microsoft.containerregistry":                  "2023-07-01",
		"microsoft.containerregistry/registries/tasks": "2019-06-01-preview",
		"microsoft.containerservice":                   "2025-02-01",
		"microsoft.keyvault":                           "2024-11-01",
		"microsoft.managedidentity":                    "2024-11-30",
		"microsoft.storage":                            "2025-01-01",
	}
}

// StackVersions are the api-versions of an Azure Stack Hub, for
// [Config.APIVersions].
func StackVersions() map[string]string {
	return map[string]string{
		"Microsoft.Authorization":                   "2015-07-01",
		"Microsoft.Compute/virtualMachines":         "2017-12-01",
		"Microsoft.Compute/virtualMachineScaleSets": "2019-07-01",
		"Microsoft.Compute/availabilitySets":        "2019-07-01",
		"Microsoft.Compute/disks":                   "2019-03-01",
		"Microsoft.Compute/snapshots":               "2019-03-01",
		"Microsoft.Network":                         "2018-11-01",
		"Microsoft.Network/privateLinkServices":     "2019-03-01",
		"Microsoft.Storage":                         "2018-02-01",
	}
}

// ChinaVersions are the api-versions in which the cloud in China differs, for
// [Config.APIVersions].
func ChinaVersions() map[string]string {
	return map[string]string{"Microsoft.Storage": "2023-05-01"}
}

func newVersionTable(overrides map[string]string) (versionTable, error) {
	table := versions()
	wellFormed := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-[a-z]+)?$`)
	for t, v := range overrides {
		if !wellFormed.MatchString(v) {
			return nil, fmt.Errorf("api-version %q of %s: expected YYYY-MM-DD or YYYY-MM-DD-preview", v, t)
		}
	}
	maps.Copy(table, lowerKeys(overrides))
	return table, nil
}

func lowerKeys[V any](m map[string]V) map[string]V {
	lower := make(map[string]V, len(m))
	for k, v := range m {
		lower[strings.ToLower(k)] = v
	}
	return lower
}

// of is the api-version of a type.
func (t versionTable) of(fullType string) (string, bool) {
	entry := strings.ToLower(fullType)
	for {
		if v, ok := t[entry]; ok {
			return v, true
		}
		i := strings.LastIndexByte(entry, '/')
		if i < 0 {
			return "", false
		}
		entry = entry[:i]
	}
}
