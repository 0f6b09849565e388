// Package resources has the behaviour of Microsoft.Resources: groups and deployments. It also has what the resource manager
// itself answers: subscriptions, tenants, locations, the catalogue of providers, and lists of all resources. Layer L2.
package resources

import (
	"regexp"
	"slices"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/feature"
	"kaz/internal/localazure/behaviour/resources/provider"
	"kaz/internal/localazure/behaviour/tagname"
)

const groupType = "Microsoft.Resources/resourceGroups"

// Provider is Microsoft.Resources.
func Provider() behaviour.Provider {
	read := func(pattern, permission string, do func(*behaviour.Call) (behaviour.Reply, error)) behaviour.Route {
		return behaviour.Route{Method: "GET", Pattern: pattern, Do: do, Permission: permission}
	}
	const (
		here            = "/subscriptions/{subscription}"
		shortDeployment = "/resourceGroups/{group}/deployments/{deployment}"
	)
	return behaviour.Provider{
		Types: append([]behaviour.Type{resourceGroups(), deployments(), deploymentOperations(), stacks(), tags(), tagname.Type()},
			feature.Types()...),
		Routes: slices.Concat(feature.Routes(isProvider), tagname.Routes(), provider.Routes(), []behaviour.Route{
			{Method: "POST", Pattern: "/providers/Microsoft.Resources/calculateTemplateHash", Do: templateHash},
			read("/tenants", "", listTenants),
			read("/subscriptions", "", listSubscriptions),
			read(here, "", getSubscription),
			read(here+"/locations", "", listLocations),
			read(here+"/resources", "Microsoft.Resources/subscriptions/resources/read", listInSubscription),
			read(here+"/resourceGroups/{group}/resources", "Microsoft.Resources/subscriptions/resourceGroups/resources/read", listInGroup),
			{Method: "POST", Pattern: here + "/resourceGroups/{group}/exportTemplate", Do: exportGroup,
				Permission: "Microsoft.Resources/subscriptions/resourceGroups/exportTemplate/action"},
			read(here+shortDeployment+"/operations", "Microsoft.Resources/deployments/operations/read", shortOperations),
			read(here+shortDeployment+"/operations/{operation}", "Microsoft.Resources/deployments/operations/read", shortOperations),
		}),
	}
}

func isProvider(namespace string) bool { return provider.Document("", namespace) != nil }

var groupName = regexp.MustCompile(`^[-\p{L}\p{N}._()]{0,89}[-\p{L}\p{N}_()]$`)

func resourceGroups() behaviour.Type {
	return behaviour.Type{
		Name:    groupType,
		Style:   behaviour.Group(),
		Where:   behaviour.Located,
		Own:     []string{"properties"},
		Actions: moves(),
		Fill: func(c *behaviour.Call) error {
			if !groupName.MatchString(c.ID.Name()) {
				e := behaviour.Invalid("InvalidResourceGroup",
					"The provided resource group name '%s' has these invalid characters or is too long. The name can only be a "+
						"letter, digit, '-', '.', '(', ')' or '_', is at most 90 long and does not end with a period.", c.ID.Name())
				e.Gateway = true
				return e
			}
			return nil
		},
		Filter: func(_ *behaviour.Call, filter string) (func(behaviour.Object) bool, error) {
			return resourceFilter(filter)
		},
	}
}
