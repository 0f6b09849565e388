package routes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// The number of routes in a table: the default, and the raised limit that a table above the default
// shows.
const (
	mostRoutes    = 400
	grantedRoutes = 1000
	nearlyPercent = 90
)

// limit returns how many routes the table can hold.
func limit(in Input, have int) int {
	switch {
	case in.Most > 0:
		return in.Most
	case have > mostRoutes:
		return grantedRoutes
	}
	return mostRoutes
}

// Limits is the query for Azure's limits in the table's region: see [LimitIn].
func Limits(c Config) azure.Query {
	region := strings.ToLower(strings.ReplaceAll(c.Location, " ", ""))
	return azure.Query{
		Scope: azure.SubscriptionID(c.Subscription).Resource("Microsoft.Network/locations", region),
		Type:  "Microsoft.Network/locations/usages",
	}
}

// LimitIn returns how many routes a table can hold, 0 if the limits do not have it.
func LimitIn(limits []azure.Document) int {
	for _, doc := range limits {
		var one struct {
			Name  struct{ Value string }
			Limit int
		}
		if err := json.Unmarshal(doc, &one); err == nil && strings.EqualFold(one.Name.Value, "RoutesPerRouteTable") {
			return max(one.Limit, 0)
		}
	}
	return 0
}

// Crowded reports whether a decision depends on the number of routes that the table can hold.
func Crowded(problems []plan.Problem) bool {
	return slices.ContainsFunc(problems, func(p plan.Problem) bool { return p.Reason == ReasonFull || p.Reason == ReasonNearlyFull })
}

// warn adds a warning about a nearly full table.
func (d *decision) warn(in Input) {
	if d.count*100 < d.most*nearlyPercent {
		return
	}
	d.problems = append(d.problems, plan.Problem{
		Object: in.Table, Reason: ReasonNearlyFull, Warning: true,
		Message: fmt.Sprintf("route table %s holds %d of the %d routes that Azure allows", in.Table, d.count, d.most),
	})
}
