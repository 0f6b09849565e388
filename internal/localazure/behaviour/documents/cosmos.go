package documents

import (
	"strings"

	"kaz/internal/localazure/behaviour"
)

// findThroughput returns the throughput with which a database or container of Cosmos DB was made, nil if it has none of its own.
func findThroughput(c *behaviour.Call) (behaviour.Object, error) {
	parent, there := c.Get(c.ID.Parent())
	if !there || c.ID.Name() != "default" {
		return nil, nil
	}
	resource := behaviour.Object{"minimumThroughput": "400"}
	most, scales := behaviour.Int(parent, "properties.options.autoscaleSettings.maxThroughput")
	if scales {
		resource["autoscaleSettings"] = behaviour.Object{"maxThroughput": most}
	}
	throughput, fixed := behaviour.Int(parent, "properties.options.throughput")
	if !fixed && !scales && strings.HasSuffix(c.ID.Parent().Type(), "databaseAccounts/tables") {
		const least = 400
		throughput, fixed = least, true // a table always has its own
	}
	if fixed {
		resource["throughput"] = throughput
	}
	if !fixed && !scales {
		return nil, nil
	}
	return behaviour.Object{"id": string(c.ID), "name": "default", "type": c.Type.Name,
		"properties": behaviour.Object{"resource": resource}}, nil
}

// migrate returns the action that makes the throughput of a database or container follow its load, or fixes it.
func migrate(follow bool) behaviour.Action {
	return behaviour.Action{Status: 202, Long: true, Deferred: true, Busy: "-", Headers: behaviour.AsyncOperation | behaviour.Location,
		Do: func(c *behaviour.Call) (any, error) {
			const least, factor = 1000, 10
			resource := behaviour.Object{"minimumThroughput": "400", "throughput": 400}
			if follow {
				throughput, _ := behaviour.Int(c.Doc, "properties.resource.throughput")
				resource = behaviour.Object{"minimumThroughput": "1000", "throughput": max(throughput, least) / factor,
					"autoscaleSettings": behaviour.Object{"maxThroughput": max(throughput, least)}}
			}
			behaviour.Set(c.Doc, "properties.resource", resource)
			return c.Doc, nil
		}}
}
