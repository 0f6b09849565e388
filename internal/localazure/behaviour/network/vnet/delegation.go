package vnet

import (
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// delegated are the services that subnets can be delegated to, each with its actions on the subnet.
var delegated = []struct{ service, actions string }{
	{"Microsoft.Web/serverFarms", "subnets/action"},
	{"Microsoft.ContainerInstance/containerGroups", "subnets/action"},
	{"Microsoft.Batch/batchAccounts", "subnets/action"},
	{"Microsoft.Sql/managedInstances", joins + prepares},
	{"Microsoft.Databricks/workspaces", joins + prepares},
	{"Microsoft.Netapp/volumes", interfaces + joins},
	{"Microsoft.StreamAnalytics/streamingJobs", joins},
	{"Microsoft.DBforPostgreSQL/flexibleServers", joins},
	{"Microsoft.DBforMySQL/flexibleServers", joins},
	{"Microsoft.DBforMySQL/serversv2", joins},
	{"Microsoft.App/environments", joins},
	{"Microsoft.ContainerService/managedClusters", joins},
	{"Microsoft.Network/dnsResolvers", joins},
}

const (
	joins      = "subnets/join/action"
	prepares   = " subnets/prepareNetworkPolicies/action subnets/unprepareNetworkPolicies/action"
	interfaces = "networkinterfaces/* "
)

func delegations() behaviour.Type {
	return schema.Inside("virtualNetworks/subnets/delegations", "properties.delegations", behaviour.Type{
		ReadOnly: true,
		Fill: func(c *behaviour.Call) error {
			service := behaviour.Text(c.Doc, "properties.serviceName")
			if service == "" {
				return schema.Missing(c, "properties.serviceName")
			}
			for _, d := range delegated {
				if strings.EqualFold(d.service, service) {
					behaviour.Set(c.Doc, "properties.actions", delegatedActions(d.actions))
				}
			}
			return schema.List(c, "properties.actions")
		},
	})
}

// delegatedActions returns the full names of actions.
func delegatedActions(short string) []any {
	var all []any
	for action := range strings.FieldsSeq(short) {
		action = strings.Replace(schema.Namespace+action, "/subnets/", "/virtualNetworks/subnets/", 1)
		all = append(all, action)
	}
	return all
}

// availableDelegations is the request for what a subnet can be delegated to, in a region or in a group. Azure writes the word
// resourceGroup of the ids without the s.
func availableDelegations(scope, shown string) behaviour.Route {
	const name = "Microsoft.Network/availableDelegations"
	return behaviour.Route{
		Method:     "GET",
		Pattern:    scope + "/providers/Microsoft.Network/locations/{location}/availableDelegations",
		Permission: "Microsoft.Network/locations/availableDelegations/read",
		Do: func(c *behaviour.Call) (behaviour.Reply, error) {
			prefix := strings.NewReplacer("{subscription}", c.Param["subscription"], "{group}", c.Param["group"]).Replace(shown)
			var all []any
			for _, d := range delegated {
				short := strings.ReplaceAll(d.service, "/", ".")
				all = append(all, behaviour.Object{"name": short, "id": prefix + "/providers/" + name + "/" + short, "type": name,
					"serviceName": d.service, "actions": delegatedActions(d.actions)})
			}
			return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": all}}, nil
		},
	}
}
