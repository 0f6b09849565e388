package emulator

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

const lockType = "Microsoft.Authorization/locks"

// checkLocks refuses a change of what a management lock protects. A lock holds for its scope and everything below. A
// deletion also removes what is below the resource, so a lock below refuses it, too.
func (s scopes) checkLocks(r *request) error {
	if strings.EqualFold(r.Kind.Name, lockType) {
		return nil
	}
	verb := "write"
	if r.method == http.MethodDelete {
		verb = "delete"
	}
	for _, e := range s.docs.Entries(azure.SubscriptionID(r.ID.Subscription()), lockType) {
		scope := e.ID.Parent()
		if !r.ID.Under(scope) && (verb != "delete" || !scope.Under(r.ID)) {
			continue
		}
		if verb == "delete" || behaviour.Text(s.docs.Doc(e), "properties.level") == "ReadOnly" {
			return behaviour.Gateway(http.StatusConflict, "ScopeLocked",
				"The scope '%s' cannot perform %s operation because following scope(s) are locked: '%s'. Please remove the lock and "+
					"try again.", r.ID, verb, scope)
		}
	}
	return nil
}
