package routes

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// How many routes a table can hold: usually, and where Azure has granted more,
// which shows in a table that holds more than the usual.
const (
	mostRoutes    = 400
	grantedRoutes = 1000
	nearlyPercent = 90
)

// limit is how many routes the table can hold.
func limit(in Input, have int) int {
	switch {
	case in.Most > 0:
		return in.Most
	case have > mostRoutes:
		return grantedRoutes
	}
	return mostRoutes
}

// Limits lists what Azure allows of everything in the table's region, among it how
// many routes: see [LimitIn].
func Limits(c Config) azure.Query {
	region := strings.ToLower(strings.ReplaceAll(c.Location, " ", ""))
	return azure.Query{
		Scope: azure.SubscriptionID(c.Subscription).Resource("Microsoft.Network/locations", region),
		Type:  "Microsoft.Network/locations/usages",
	}
}

// LimitIn finds how many routes a table can hold, 0 where that is not said.
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

// Crowded reports whether what was decided depends on how many routes the table can
// hold.
func Crowded(problems []plan.Problem) bool {
	return slices.ContainsFunc(problems, func(p plan.Problem) bool { return p.Reason == ReasonFull || p.Reason == ReasonNearlyFull })
}

// warn tells of a table that will be full soon, while there is still time.
func (d *decision) warn(in Input) {
	if d.count*100 < d.most*nearlyPercent {
		return
	}
	d.problems = append(d.problems, plan.Problem{
		Object: in.Table, Reason: ReasonNearlyFull, Warning: true,
		Message: fmt.Sprintf("route table %s holds %d of the %d routes that Azure allows", in.Table, d.count, d.most),
	})
}
