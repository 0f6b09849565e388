// Package resources has the behaviour of Microsoft.Resources: resource groups and
// subscriptions. Layer L2.
package resources

import (
	"regexp"

	"kaz/internal/emulator/behaviour"
)

// Provider is Microsoft.Resources.
func Provider() behaviour.Provider {
	return behaviour.Provider{Types: []behaviour.Type{resourceGroups()}}
}

var groupName = regexp.MustCompile(`^[-\w._()]{0,89}[-\w_()]$`)

func resourceGroups() behaviour.Type {
	return behaviour.Type{
		Name:  "Microsoft.Resources/resourceGroups",
		Style: behaviour.Group(),
		Where: behaviour.Located,
		Own:   []string{"properties"},
		Fill: func(c *behaviour.Call) error {
			if !groupName.MatchString(c.ID.Name()) {
				e := behaviour.Invalid("InvalidResourceGroup", "The provided resource group name '%s' has these invalid characters or is too long. The name can only be a letter, digit, '-', '.', '(', ')' or '_', is at most 90 long and does not end with a period.", c.ID.Name())
				e.Gateway = true
				return e
			}
			return nil
		},
	}
}
