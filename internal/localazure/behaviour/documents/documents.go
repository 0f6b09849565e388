// Package documents has resource types that are documents and little else. A client can create, read, change, list and
// delete these resources, and few of them affect other resources. Some are created with other resources, or have keys. Layer L2.
package documents

import (
	_ "embed"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

//go:embed types.txt
var table string

//go:embed routes.txt
var routes string

// Family is the name of the style of all these types, except the types of Microsoft.Network.
const Family = "documents"

// Provider has the types of the table.
func Provider() behaviour.Provider {
	types := behaviour.Describe(table, styles(), nil)
	for i := range types {
		t := &types[i]
		if strings.HasSuffix(t.Name, "/throughputSettings") {
			t.Find, t.Adopt = findThroughput, true
			t.Actions = map[string]behaviour.Action{"migrateToAutoscale": migrate(true), "migrateToManualThroughput": migrate(false)}
		}
		if c, ok := computed[t.Name]; ok {
			t.Settle, t.Own = c.settle, append(slices.Clip(t.Own), c.own)
		}
		if strings.HasSuffix(t.Name, "/diagnosticSettingsCategories") {
			t.All, t.Find = metricsCategory, findMetricsCategory
		}
		if strings.HasSuffix(t.Name, "/namespaces/disasterRecoveryConfigs") {
			t.Settle, t.Own = pairNamespaces, append(slices.Clip(t.Own), "properties.role")
		}
		if children := made[t.Name]; children != nil {
			t.Settle = func(c *behaviour.Call) error {
				for path, properties := range children {
					if id := c.ID + azure.ID(path); c.Old == nil {
						c.Put(id, behaviour.Object{"properties": behaviour.Clone(properties)})
					}
				}
				return nil
			}
		}
		if kind, isAlias := strings.CutPrefix(strings.ToLower(t.Name), "microsoft.eventhub/namespaces/disasterrecoveryconfigs/"); isAlias {
			aliasRules(t, "Microsoft.EventHub/namespaces/"+kind)
		}
		if strings.EqualFold(t.Name, "Microsoft.ServiceBus/namespaces/disasterRecoveryConfigs/AuthorizationRules") {
			aliasRules(t, "Microsoft.ServiceBus/namespaces/AuthorizationRules")
		}
	}
	return behaviour.Provider{Types: types, Routes: append(behaviour.DescribeRoutes(routes), nameChecks(types)...)}
}

// computed are the members that Azure computes from other members and resources, by their types.
var computed = map[string]struct {
	own    string
	settle func(*behaviour.Call) error
}{
	"Microsoft.App/containerApps":                                                   {"properties.configuration.ingress.fqdn", nameApp},
	"Microsoft.ContainerInstance/containerGroups":                                   {"properties.ipAddress.ip", addressGroup},
	"Microsoft.Network/expressRouteCrossConnections":                                {"properties.bandwidthInMbps", joinCircuit},
	"Microsoft.Network/networkManagers/ipamPools":                                   {"properties.ipAddressType", addressFamilies},
	"Microsoft.Network/networkManagers/networkGroups/staticMembers":                 {"properties.region", locateMember},
	"Microsoft.Network/networkManagers/verifierWorkspaces/reachabilityAnalysisRuns": {"properties.intentContent", copyIntent},
}

// nameChecks are the requests that ask providers whether a name is free. It is if no resource of the type has it.
func nameChecks(types []behaviour.Type) []behaviour.Route {
	var routes []behaviour.Route
	asked := map[string]bool{"Microsoft.Management": true} // in the table
	for _, t := range types {
		namespace, _, _ := strings.Cut(t.Name, "/")
		if asked[namespace] || slices.Contains(others, namespace) {
			continue
		}
		asked[namespace] = true
		routes = append(routes, behaviour.Route{
			Method: "POST", Pattern: "/subscriptions/{subscription}/providers/" + namespace + "/checkNameAvailability",
			Permission: namespace + "/checkNameAvailability/action",
			Do: func(c *behaviour.Call) (behaviour.Reply, error) {
				name, kind := behaviour.Text(c.Body, "name"), behaviour.Text(c.Body, "type")
				if kind == "" {
					kind = namespace + "/namespaces"
				}
				for id := range behaviour.Everywhere(c.World, kind) {
					if strings.EqualFold(id.Name(), name) {
						return behaviour.Reply{Status: 200, Body: behaviour.Object{"nameAvailable": false, "reason": "NameInUse",
							"message": "The name '" + name + "' is already in use."}}, nil
					}
				}
				return behaviour.Reply{Status: 200, Body: behaviour.Object{"nameAvailable": true, "reason": "None", "message": ""}}, nil
			},
		})
	}
	return routes
}

// others are the namespaces that have packages of their own here.
var others = []string{"Microsoft.Authorization", "Microsoft.Compute", "Microsoft.KeyVault", "Microsoft.Network", "Microsoft.Resources",
	"Microsoft.Storage"}

// styles are the combinations of what a PUT and a DELETE answer, by names such as "201a-200".
func styles() map[string]behaviour.Style {
	all := map[string]behaviour.Style{"network": behaviour.Network()}
	for put, write := range writes() {
		for del, remove := range removals() {
			s := behaviour.Plain(Family)
			s.Protocol = behaviour.ProviderOperations()
			s.Creating, s.Updating, s.Deleting = "Creating", "Updating", "Deleting"
			s.Overlap = behaviour.Queue
			s.Long = map[behaviour.Verb]behaviour.Headers{}
			write(&s)
			remove(&s)
			all[put+"-"+del] = s
		}
	}
	return all
}

type change = func(s *behaviour.Style)

// writes are what a PUT answers.
func writes() map[string]change {
	long := func(s *behaviour.Style) {
		s.Long[behaviour.Create], s.Long[behaviour.Update] = behaviour.AsyncOperation, behaviour.AsyncOperation
	}
	return map[string]change{
		"200":  func(s *behaviour.Style) { s.Created = 200 },
		"201":  func(*behaviour.Style) {},
		"200a": func(s *behaviour.Style) { s.Created = 200; long(s) },
		"201a": long,
		"202a": func(s *behaviour.Style) { s.Created, s.Updated = 202, 202; long(s) },
	}
}

// removals are what a DELETE answers.
func removals() map[string]change {
	return map[string]change{
		"200": func(*behaviour.Style) {},
		"204": func(s *behaviour.Style) { s.Deleted = 204 },
		"202a": func(s *behaviour.Style) {
			s.Deleted = 202
			s.Long[behaviour.Delete] = behaviour.AsyncOperation | behaviour.Location
		},
	}
}
