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
