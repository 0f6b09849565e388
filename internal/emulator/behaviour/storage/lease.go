package storage

import (
	"strings"

	"kaz/internal/emulator/behaviour"
)

// leaseField is the field of a container or share with the id of its lease.
const leaseField = behaviour.Private + "lease"

// leaseStates are the states of a container or share with and without a lease, as its type spells them.
type leaseStates struct{ locked, leased, unlocked, available, broken string }

// lease returns the action that acquires, renews, changes, releases and breaks the lease of a container or share.
func lease(states leaseStates) behaviour.Action {
	return behaviour.Action{Do: func(c *behaviour.Call) (any, error) {
		action, held := behaviour.Text(c.Body, "action"), behaviour.Text(c.Doc, leaseField)
		given := behaviour.Text(c.Body, "leaseId")
		set := func(id, status, state string) {
			c.Doc[leaseField] = id
			behaviour.Set(c.Doc, "properties.leaseStatus", status)
			behaviour.Set(c.Doc, "properties.leaseState", state)
		}
		if action != "Acquire" && held == "" {
			return nil, behaviour.Conflict("LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource.")
		}
		if action != "Acquire" && action != "Break" && !strings.EqualFold(given, held) {
			return nil, behaviour.Conflict("LeaseIdMismatchWithLeaseOperation",
				"The lease ID specified did not match the lease ID for the resource.")
		}
		proposed := behaviour.Text(c.Body, "proposedLeaseId")
		switch action {
		case "Acquire":
			if held != "" && !strings.EqualFold(held, proposed) {
				return nil, behaviour.Conflict("LeaseAlreadyPresent", "There is already a lease present.")
			}
			if proposed == "" {
				proposed = c.GUID()
			}
			set(proposed, states.locked, states.leased)
			return behaviour.Object{"leaseId": proposed}, nil
		case "Renew":
			return behaviour.Object{"leaseId": held}, nil
		case "Change":
			set(proposed, states.locked, states.leased)
			return behaviour.Object{"leaseId": proposed}, nil
		case "Release":
			set("", states.unlocked, states.available)
			return behaviour.Object{"leaseId": held}, nil
		case "Break":
			set("", states.unlocked, states.broken)
			return behaviour.Object{"leaseTimeSeconds": "0"}, nil
		}
		return nil, behaviour.Invalid("InvalidRequestPropertyValue", "The value '%s' is not allowed for property action.", action)
	}}
}
