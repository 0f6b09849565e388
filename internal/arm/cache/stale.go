package cache

import (
	"strings"

	"kaz/internal/azure"
)

// asks are the actions that only read, whatever they are called on.
func asks() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{
		"listKeys", "listCredentials", "listAccountSas", "listServiceSas", "listClusterAdminCredential",
		"listClusterUserCredential", "validate", "whatIf", "exportTemplate", "checkNameAvailability",
		"retrieveBootDiagnosticsData", "effectiveRouteTable", "effectiveNetworkSecurityGroups",
	} {
		names[strings.ToLower(name)] = true
	}
	return names
}

// within reports whether type t is kind, or a part of it. Both are in lower case.
func within(t, kind string) bool {
	return kind == "" || t == kind || len(t) > len(kind) && t[len(kind)] == '/' && t[:len(kind)] == kind
}

// write is a change of Azure that may make reads stale.
type write struct {
	id    azure.ID
	typ   string // lower case
	stale []string
}

// reaches reports whether a read may have another result after the write.
func (w write) reaches(r read) bool {
	for _, t := range w.stale {
		if within(r.typ, strings.ToLower(t)) {
			return true
		}
	}
	if !r.list {
		return r.scope.Under(w.id) || r.scope.TopLevel().Equal(w.id.TopLevel())
	}
	return (w.id.Under(r.scope) || r.scope.Under(w.id)) && (within(r.typ, w.typ) || within(w.typ, r.typ) || r.typ == everyResource)
}

// everyResource is the type of lists that hold resources of all types.
const everyResource = "microsoft.resources/resources"
