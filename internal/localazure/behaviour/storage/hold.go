package storage

import (
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// policyType is the type of the immutability policy of a container, which has at most one.
const policyType = AccountType + "/blobServices/containers/immutabilityPolicies"

// setLegalHold adds tags to the legal hold of a container, clearLegalHold removes them. A container is held while it has tags.
func setLegalHold(c *behaviour.Call) (any, error) {
	return changeLegalHold(c, func(held []string, tag string) []string {
		if !slices.Contains(held, tag) {
			held = append(held, tag)
		}
		return held
	})
}

func clearLegalHold(c *behaviour.Call) (any, error) {
	return changeLegalHold(c, func(held []string, tag string) []string {
		return slices.DeleteFunc(held, func(other string) bool { return other == tag })
	})
}

func changeLegalHold(c *behaviour.Call, change func(held []string, tag string) []string) (any, error) {
	was := behaviour.Objects(c.Doc, "properties.legalHold.tags")
	var held []string
	for _, tag := range was {
		held = append(held, behaviour.Text(tag, "tag"))
	}
	for _, tag := range behaviour.Texts(c.Body, "tags") {
		held = change(held, strings.ToLower(tag))
	}
	slices.Sort(held)
	tags, names := []any{}, []any{}
	for _, name := range held {
		names = append(names, name)
		entry := behaviour.Object{"tag": name, "timestamp": behaviour.Timestamp(c.Now()), "tenantId": c.Tenant()}
		if i := slices.IndexFunc(was, func(o behaviour.Object) bool { return o["tag"] == name }); i >= 0 {
			entry = was[i]
		} else if c.Caller.Principal != nil {
			entry["objectIdentifier"] = c.Caller.Principal.ObjectID
		}
		tags = append(tags, entry)
	}
	behaviour.Set(c.Doc, "properties.legalHold", behaviour.Object{"hasLegalHold": len(tags) > 0, "tags": tags})
	behaviour.Set(c.Doc, "properties.hasLegalHold", len(tags) > 0)
	reply := behaviour.Object{"hasLegalHold": len(tags) > 0, "tags": names}
	if all, given := behaviour.At(c.Body, "allowProtectedAppendWritesAll").(bool); given {
		behaviour.Set(c.Doc, "properties.legalHold.protectedAppendWritesHistory",
			behaviour.Object{"allowProtectedAppendWritesAll": all, "timestamp": behaviour.Timestamp(c.Now())})
		reply["allowProtectedAppendWritesAll"] = all
	}
	return reply, nil
}

// policyHistory is the field of an immutability policy with its changes, which its container shows.
const policyHistory = behaviour.Private + "history"

// notePut notes in the history of a policy that it was written.
func notePut(c *behaviour.Call) error {
	noteChange(c, "put")
	return nil
}

func noteChange(c *behaviour.Call, update string) {
	properties := behaviour.Sub(c.Doc, "properties")
	change := behaviour.Object{"update": update, "timestamp": behaviour.Timestamp(c.Now()), "tenantId": c.Tenant()}
	for _, name := range []string{"immutabilityPeriodSinceCreationInDays", "allowProtectedAppendWrites", "allowProtectedAppendWritesAll"} {
		if value := properties[name]; value != nil {
			change[name] = value
		}
	}
	_, change["objectIdentifier"] = c.Caller.Principal.IDs()
	c.Doc[policyHistory] = append(behaviour.Array(c.Doc, policyHistory), change)
}

// lockPolicy locks an immutability policy, extendPolicy changes the period of a locked one.
func lockPolicy(c *behaviour.Call) (any, error) {
	behaviour.Set(c.Doc, "properties.state", "Locked")
	noteChange(c, "lock")
	return shownPolicy(c), nil
}

func shownPolicy(c *behaviour.Call) behaviour.Object {
	shown := behaviour.Clone(c.Doc)
	behaviour.Hide(shown)
	return shown
}

func extendPolicy(c *behaviour.Call) (any, error) {
	const days = "properties.immutabilityPeriodSinceCreationInDays"
	was, _ := behaviour.Int(c.Doc, days)
	now, given := behaviour.Int(c.Body, days)
	if behaviour.Text(c.Doc, "properties.state") != "Locked" || given && now < was {
		return nil, behaviour.Conflict("ImmutabilityPolicyUpdateNotAllowed",
			"The immutability policy can only be extended, and only when it is locked: the period is %d days.", was)
	}
	if given {
		behaviour.Set(c.Doc, days, now)
	}
	noteChange(c, "extend")
	return shownPolicy(c), nil
}

// refuseLocked refuses to delete a locked policy.
func refuseLocked(c *behaviour.Call) error {
	if behaviour.Text(c.Old, "properties.state") == "Locked" {
		return behaviour.Conflict("ContainerImmutabilityPolicyFailure", "The immutability policy is locked and cannot be deleted.")
	}
	return nil
}

// noPolicy is the body of the reply to the deletion of a policy.
func noPolicy(c *behaviour.Call) any {
	return behaviour.Object{"id": string(c.ID), "name": c.ID.Name(), "type": c.Type.Name, "etag": behaviour.Text(c.Old, "etag"),
		"properties": behaviour.Object{"immutabilityPeriodSinceCreationInDays": 0, "state": "Unlocked"}}
}

// showPolicy shows at a container whether it has an immutability policy, and the policy.
func showPolicy(c *behaviour.Call, view behaviour.Object) {
	for _, policy := range c.List(c.ID, policyType) {
		behaviour.Set(view, "properties.hasImmutabilityPolicy", true)
		history := append([]any{}, behaviour.Array(policy, policyHistory)...)
		shown := behaviour.Object{"updateHistory": history, "properties": behaviour.Clone(behaviour.Sub(policy, "properties"))}
		if etag := behaviour.Text(policy, "etag"); etag != "" {
			shown["etag"] = strings.Trim(etag, `"`)
		}
		behaviour.Set(view, "properties.immutabilityPolicy", shown)
	}
}
