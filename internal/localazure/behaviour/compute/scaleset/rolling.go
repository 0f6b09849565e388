package scaleset

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// rollingPath is the path of the latest rolling upgrade in the stored document of a scale set.
const rollingPath = schema.Runtime + ".rollingUpgrade"

const rollingType = schema.ScaleSetType + "/rollingUpgrades"

// rollingUpgrades is the type of the latest rolling upgrade of a scale set.
func rollingUpgrades() behaviour.Type {
	style := behaviour.Compute()
	style.Etag, style.EtagHeader = behaviour.NoEtag, behaviour.Never
	return behaviour.Type{
		Name: rollingType, Style: style, ReadOnly: true,
		All: func(*behaviour.Call) ([]behaviour.Object, error) { return nil, nil },
		Find: func(c *behaviour.Call) (behaviour.Object, error) {
			set, _ := c.Get(c.ID.Parent())
			upgrade := behaviour.Sub(set, rollingPath)
			if c.ID.Name() != "latest" || upgrade == nil {
				return nil, behaviour.Refusal(404, "NotFound",
					"The rolling upgrade of Virtual Machine Scale Set '%s' was not found.", c.ID.Parent().Name())
			}
			return behaviour.Object{"id": string(c.ID), "name": "latest", "type": rollingType,
				"location": behaviour.Text(set, "location"), "properties": behaviour.Clone(upgrade)}, nil
		},
	}
}

// rollingUpgrade returns the action that upgrades the instances of a scale set batch by batch.
func rollingUpgrade() behaviour.Action {
	return behaviour.Action{
		Long: true,
		Do: func(c *behaviour.Call) (any, error) {
			if schema.IsFlexible(c.Old) {
				return nil, behaviour.Conflict("OperationNotAllowed",
					"Rolling upgrades are not supported for Virtual Machine Scale Set '%s' with Flexible orchestration mode.", c.ID.Name())
			}
			setRolling(c, "RollingForward", 0)
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			ids := allMembers(c.World, c.ID)
			if err := upgrade(c, c.Doc, ids); err != nil {
				return nil, err
			}
			setRolling(c, "Completed", len(ids))
			return nil, nil
		},
	}
}

func setRolling(c *behaviour.Call, code string, done int) {
	at := behaviour.Stamp(c.Now())
	behaviour.Default(c.Doc, rollingPath+".runningStatus.startTime", at)
	for field, value := range map[string]any{
		"policy":                       behaviour.Clone(behaviour.At(c.Doc, "properties.upgradePolicy.rollingUpgradePolicy")),
		"runningStatus.code":           code,
		"runningStatus.lastAction":     "Start",
		"runningStatus.lastActionTime": at,
		"progress": behaviour.Object{"successfulInstanceCount": done, "failedInstanceCount": 0, "inProgressInstanceCount": 0,
			"pendingInstanceCount": 0},
	} {
		behaviour.Set(c.Doc, rollingPath+"."+field, value)
	}
}

// Routes returns the request that stops a rolling upgrade: it is a POST to a resource without an action.
func Routes() []behaviour.Route {
	return []behaviour.Route{{
		Method: "POST", Writes: true,
		Pattern: "/subscriptions/{subscription}/resourceGroups/{group}/providers/" + schema.ScaleSetType +
			"/{set}/rollingUpgrades/cancel",
		Permission: rollingType + "/action",
		Do: func(c *behaviour.Call) (behaviour.Reply, error) {
			set := azure.GroupID(c.Param["subscription"], c.Param["group"]).Resource(schema.ScaleSetType, c.Param["set"])
			doc, ok := c.Get(set)
			switch {
			case !ok:
				return behaviour.Reply{}, behaviour.NotFound(set)
			case behaviour.Text(doc, rollingPath+".runningStatus.code") != "RollingForward" || !c.Cancel(set):
				return behaviour.Reply{}, behaviour.Conflict("OperationNotAllowed",
					"There is no ongoing Rolling Upgrade to cancel on Virtual Machine Scale Set '%s'.", set.Name())
			}
			c.Edit(set, func(doc behaviour.Object) {
				behaviour.Set(doc, rollingPath+".runningStatus.code", "Cancelled")
				behaviour.Set(doc, rollingPath+".runningStatus.lastAction", "Cancel")
			})
			return behaviour.Reply{Status: 200}, nil
		},
	}}
}
