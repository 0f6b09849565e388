package storage

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// newReplication stores an object replication policy with the name "default" under a new name, a GUID. The policy of the
// source account must have the same name.
func newReplication(c *behaviour.Call) (behaviour.Reply, error) {
	account := azure.GroupID(c.Param["subscription"], c.Param["group"]).Resource(AccountType, c.Param["account"])
	if _, there := c.Get(account); !there {
		return behaviour.Reply{}, behaviour.ParentNotFound("write", account.Child("objectReplicationPolicies", "default"))
	}
	id := account.Child("objectReplicationPolicies", c.GUID())
	if err := c.Apply(c.Caller, id, c.Body); err != nil {
		return behaviour.Reply{}, err
	}
	view, _ := c.View(id)
	return behaviour.Reply{Status: 200, Body: view}, nil
}

// keepRuleIDs gives a rule without an ID that of the old rule between the same containers, so that the same request again changes
// nothing. A rule between others gets a new ID.
func keepRuleIDs(c *behaviour.Call) error {
	for _, rule := range behaviour.Objects(c.Doc, "properties.rules") {
		for _, old := range behaviour.Objects(c.Old, "properties.rules") {
			if old["sourceContainer"] == rule["sourceContainer"] && old["destinationContainer"] == rule["destinationContainer"] {
				behaviour.Default(rule, "ruleId", old["ruleId"])
			}
		}
	}
	return nil
}
