package registry

import (
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// operations returns the protocol of registries. Clients poll below the registry, and find results at its region with
// the name in capitals.
func operations() behaviour.Protocol {
	return behaviour.Protocol{
		Name: "Microsoft.ContainerRegistry operationStatuses",
		Status: func(o behaviour.Operation) string {
			return string(o.Resource) + "/operationStatuses/registries-" + o.ID
		},
		Result: func(o behaviour.Operation) string {
			return "/subscriptions/" + o.Resource.Subscription() + "/providers/Microsoft.ContainerRegistry/locations/" +
				strings.ToUpper(o.Location) + "/operationResults/registries-" + o.ID
		},
		Poll: func(o behaviour.Operation, result bool) behaviour.Reply {
			body := behaviour.Object{"status": o.State()}
			if o.Error != nil {
				body["error"] = o.Error.Body()
			}
			isWrite := slices.Contains([]behaviour.Verb{behaviour.Create, behaviour.Update, behaviour.Patch, behaviour.Delete}, o.Verb)
			switch {
			case result && !isWrite && o.Error == nil && o.Output != nil:
				return behaviour.Reply{Status: 200, Body: o.Output}
			case !o.End.IsZero():
			case result:
				return behaviour.Reply{Status: 202}
			case o.Verb == behaviour.Create:
				body["status"] = "Creating"
			default:
				body["status"] = "Updating"
			}
			return behaviour.Reply{Status: 200, Body: body}
		},
	}
}
