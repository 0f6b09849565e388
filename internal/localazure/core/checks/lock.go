package checks

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
)

const lockType = "Microsoft.Authorization/locks"

// changeOf is what management locks see of an action: "delete", "write" of any other change, "" of a read and of what is done to a lock.
func changeOf(action string) string {
	at := strings.LastIndexByte(action, '/')
	switch verb := action[at+1:]; {
	case verb == "read" || strings.EqualFold(action[:max(at, 0)], lockType):
		return ""
	case verb == "delete":
		return verb
	}
	return "write"
}

// locks is Unlocked for a request from outside. A lock refuses a POST even if the right to a read is enough for it.
func (t Checks) locks(r *message.Request, _ *behaviour.Call) error {
	change := changeOf(r.Right())
	if r.Method == http.MethodPost {
		change = "write"
	}
	return t.Unlocked(r.ID, change)
}

// Unlocked refuses a change of what a management lock protects. A lock holds for its scope and everything below. A
// deletion also removes what is below the resource, so a lock below refuses it, too.
func (t Checks) Unlocked(id azure.ID, change string) error {
	if change == "" {
		return nil
	}
	for _, e := range t.docs.Entries(azure.SubscriptionID(id.Subscription()), lockType) {
		scope := e.ID.Parent()
		if !id.Under(scope) && (change != "delete" || !scope.Under(id)) {
			continue
		}
		if change == "delete" || behaviour.Text(t.docs.Doc(e), "properties.level") == "ReadOnly" {
			return behaviour.Gateway(http.StatusConflict, "ScopeLocked",
				"The scope '%s' cannot perform %s operation because following scope(s) are locked: '%s'. Please remove the lock and "+
					"try again.", id, change, scope)
		}
	}
	return nil
}
