package network

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// showGatewayParts shows at the parts of an application gateway which other parts refer to them.
func showGatewayParts(c *behaviour.Call, view behaviour.Object) {
	byID := map[string]behaviour.Object{}
	eachPart(view, func(_ string, part behaviour.Object) { byID[azure.ID(behaviour.Text(part, "id")).Key()] = part })
	eachPart(view, func(list string, from behaviour.Object) {
		property := strings.TrimSuffix(list, "Collection")
		for _, value := range behaviour.Sub(from, "properties") {
			reference, _ := value.(behaviour.Object)
			to := byID[azure.ID(behaviour.Text(reference, "id")).Key()]
			if to == nil || len(reference) != 1 {
				continue
			}
			path := "properties." + property
			behaviour.Set(to, path, append(behaviour.Array(to, path), behaviour.Ref(azure.ID(behaviour.Text(from, "id")))))
		}
	})
}

// eachPart calls f with the parts in the lists of a document, and the names of the lists.
func eachPart(doc behaviour.Object, f func(list string, part behaviour.Object)) {
	for list := range behaviour.Sub(doc, "properties") {
		for _, part := range behaviour.Objects(doc, "properties."+list) {
			if behaviour.Text(part, "id") != "" && part["properties"] != nil {
				f(list, part)
				eachPart(part, f)
			}
		}
	}
}

// turn returns the action that starts or stops an application gateway.
func turn(state string) behaviour.Action {
	return behaviour.Action{Long: true, Settle: func(c *behaviour.Call) (any, error) {
		behaviour.Set(c.Doc, "properties.operationalState", state)
		return nil, nil
	}}
}
